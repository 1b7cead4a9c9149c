"""The account of communication under Megatron-LM against the collectives that the real package runs through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from collective_counts import accounted, observed
from environments import OracleServer, environment

pytestmark = pytest.mark.oracle

NAME = "megatron-0.18.0"
TOKENS = 16
SIZES = {"hidden": 32, "heads": 4, "vocab": 64, "ffn": 48}
FULL = {"recompute_granularity": "full", "recompute_num_layers": 1}
# Ranges of the distributed optimizer are rounded up to whole alignments.
ROUNDED = 0.03


@pytest.fixture(scope="module")
def megatron() -> Iterator[OracleServer]:
    found = environment(NAME)
    if reason := found.missing():
        pytest.skip(reason)
    with found.serve("megatron_collectives.py") as running:
        yield running


@pytest.mark.parametrize(
    ("request_", "fields"),
    [
        ({"tensor": 2}, {}),
        ({"tensor": 4, "micro_batches": 3}, {}),
        ({"tensor": 2, "layers": 3, "sequence_parallel": False}, {}),
        ({"tensor": 2, "sequence_parallel": False, "micro_batches": 2}, {}),
        (
            {"tensor": 2, "recompute_method": "uniform", **FULL},
            {"recompute.mode": "full", "recompute.method": "uniform", "recompute.layers": 1},
        ),
        (
            {"tensor": 2, "layers": 4, "recompute_method": "block", **FULL},
            {"recompute.mode": "full", "recompute.method": "block", "recompute.layers": 1},
        ),
        (
            {"tensor": 2, "recompute_granularity": "selective", "recompute_modules": ["core_attn"]},
            {"recompute.mode": "selective", "recompute.modules": ["core_attn"]},
        ),
        (
            {"tensor": 2, "recompute_granularity": "selective", "recompute_modules": ["mlp"]},
            {"recompute.mode": "selective", "recompute.modules": ["mlp"]},
        ),
        ({"tensor": 1, "data": 4, "micro_batches": 3}, {}),
        ({"tensor": 2, "data": 4, "micro_batches": 2}, {}),
        ({"tensor": 1, "data": 4, "micro_batches": 2, "distributed_optimizer": True}, {}),
        ({"tensor": 2, "data": 4, "distributed_optimizer": True}, {}),
    ],
    ids=lambda value: ",".join(f"{name}={one}" for name, one in value.items()) if isinstance(value, dict) else "",
)
def test_calls_and_bytes_are_those_of_the_real_package(
    megatron: OracleServer, request_: dict[str, Any], fields: dict[str, Any]
) -> None:
    request = {"layers": 2, "sequence_parallel": request_["tensor"] > 1, **request_}
    answer = megatron.request("collectives", tokens=TOKENS, **SIZES, **request)
    assert answer["ok"], answer
    data = request.get("data", 1)
    flat = {
        "model.layers": request["layers"],
        "model.hidden": SIZES["hidden"],
        "model.ffn": SIZES["ffn"],
        "model.heads": SIZES["heads"],
        "model.vocab": SIZES["vocab"],
        "model.gated": True,
        "model.norm": "rmsnorm",
        "parallel.tensor": request["tensor"],
        "parallel.sequence_parallel": request["sequence_parallel"],
        "parallel.data.degree": data,
        "parallel.data.shard": data,
        "parallel.data.sharding": "optimizer" if request.get("distributed_optimizer") else "none",
        "batch.micro_batch": 1,
        "batch.seq_len": TOKENS,
        "batch.accumulation": request.get("micro_batches", 1),
        "precision.compute": "fp32",
        "precision.parameters": "fp32",
        "precision.grad_reduce": "fp32",
        **fields,
    }
    expected, found = observed(answer), accounted("megatron", "0.18.0", flat, {})
    assert found["calls"] == expected["calls"]
    assert found["bytes"].keys() == expected["bytes"].keys()
    for key, size in expected["bytes"].items():
        rounded = ROUNDED if request.get("distributed_optimizer") and key.endswith(f"over {data}") else 0.0
        assert size * (1 - rounded) <= found["bytes"][key] <= size, key
