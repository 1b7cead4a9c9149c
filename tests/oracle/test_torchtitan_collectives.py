"""The account of communication under torchtitan against the collectives that the real package runs through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from collective_counts import Counts, accounted, observed
from environments import OracleServer, environment

pytestmark = pytest.mark.oracle

NAME = "torchtitan-0.2.2"
TOKENS = 16
SIZES = {"dim": 32, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 64, "multiple_of": 16}
OPERATORS = {"recompute.mode": "selective", "recompute.method": "operators"}


@pytest.fixture(scope="module")
def titan() -> Iterator[OracleServer]:
    found = environment(NAME)
    if reason := found.missing():
        pytest.skip(reason)
    with found.serve("torchtitan_collectives.py") as running:
        yield running


def counted(answer: dict[str, Any], request: dict[str, Any], fields: dict[str, Any]) -> Counts:
    """The account of the job that a request describes."""
    sharded = request.get("data", 1) > 1
    flat = {
        "model.layers": request["layers"],
        "model.hidden": SIZES["dim"],
        "model.ffn": answer["ffn"],
        "model.heads": SIZES["n_heads"],
        "model.kv_heads": SIZES["n_kv_heads"],
        "model.vocab": SIZES["vocab_size"],
        "model.gated": True,
        "model.norm": "rmsnorm",
        "parallel.tensor": request["tensor"],
        "parallel.sequence_parallel": True,
        "parallel.data.degree": request["data"] * request.get("replicate", 1),
        "parallel.data.replicate": request.get("replicate", 1),
        "parallel.data.shard": request["data"],
        "parallel.data.sharding": "full" if sharded else "none",
        "parallel.data.reshard_after_forward": request.get("reshard") != "never",
        "parallel.loss_parallel": request.get("loss_parallel", True),
        "batch.micro_batch": 1,
        "batch.seq_len": TOKENS,
        "batch.accumulation": request.get("micro_batches", 1),
        "precision.compute": "bf16" if sharded else "fp32",
        "precision.grad_reduce": "fp32",
        "precision.master": "fp32",
        **fields,
    }
    values = {"parallelism.fsdp_reshard_after_forward": request.get("reshard", "default")}
    return accounted("torchtitan", "0.2.2", flat, values)


@pytest.mark.parametrize(
    ("request_", "fields"),
    [
        ({"tensor": 2, "data": 1}, {}),
        ({"tensor": 2, "data": 1, "micro_batches": 3}, {}),
        ({"tensor": 4, "data": 1, "loss_parallel": False, "n_kv_heads": 4}, {"model.kv_heads": 4}),
        ({"tensor": 2, "data": 1, "mode": "full"}, {"recompute.mode": "full"}),
        ({"tensor": 2, "data": 1, "mode": "selective", "option": "op"}, OPERATORS),
        (
            {"tensor": 2, "data": 1, "layers": 4, "mode": "selective", "option": "2"},
            {"recompute.mode": "selective", "recompute.method": "every_nth", "recompute.layers": 2},
        ),
        ({"tensor": 1, "data": 4}, {}),
        ({"tensor": 1, "data": 4, "micro_batches": 3}, {}),
        ({"tensor": 1, "data": 4, "micro_batches": 3, "reshard": "never"}, {}),
        ({"tensor": 1, "data": 4, "reshard": "always"}, {}),
        ({"tensor": 1, "data": 4, "mode": "full"}, {"recompute.mode": "full"}),
        ({"tensor": 1, "data": 4, "replicate": 2, "micro_batches": 2}, {}),
        ({"tensor": 2, "data": 4, "micro_batches": 2}, {}),
        ({"tensor": 2, "data": 4, "mode": "full", "layers": 3}, {"recompute.mode": "full"}),
    ],
    ids=lambda value: ",".join(f"{name}={one}" for name, one in value.items()) if isinstance(value, dict) else "",
)
def test_calls_and_bytes_are_those_of_the_real_package(
    titan: OracleServer, request_: dict[str, Any], fields: dict[str, Any]
) -> None:
    request = {"layers": 2, **request_}
    answer = titan.request("collectives", tokens=TOKENS, **{**SIZES, **request})
    assert answer["ok"], answer
    expected, found = observed(answer), counted(answer, request, fields)
    assert found["calls"] == expected["calls"]
    assert found["bytes"] == expected["bytes"]
    assert expected["calls"].total() > 4
