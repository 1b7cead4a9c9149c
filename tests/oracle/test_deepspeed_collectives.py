"""The account of communication under DeepSpeed against the collectives that the real package runs through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from collective_counts import accounted, observed
from environments import OracleServer, environment

pytestmark = pytest.mark.oracle

NAME = "deepspeed-0.19.2"
TOKENS = 16
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
}
SHARDING = ("none", "optimizer", "optimizer_gradients")
# The norm of gradients, overflow, and whether ranks agree: some numbers each.
SMALL_BYTES = 64


@pytest.fixture(scope="module")
def deepspeed() -> Iterator[OracleServer]:
    found = environment(NAME)
    if reason := found.missing():
        pytest.skip(reason)
    with found.serve("deepspeed_collectives.py") as running:
        yield running


@pytest.mark.parametrize(
    ("stage", "ranks", "micro_batches", "tensor"),
    [(0, 4, 1, 1), (0, 4, 3, 1), (1, 4, 1, 1), (1, 4, 3, 1), (2, 4, 1, 1), (2, 2, 3, 1), (0, 2, 1, 2), (0, 2, 3, 2)],
)
def test_calls_and_bytes_are_those_of_the_real_package(
    deepspeed: OracleServer, stage: int, ranks: int, micro_batches: int, tensor: int
) -> None:
    config: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": micro_batches,
        "zero_optimization": {"stage": stage},
    }
    if tensor > 1:
        config["tensor_parallel"] = {"autotp_size": tensor}
    answer = deepspeed.request("collectives", config=config, world_size=ranks, tokens=TOKENS, **SIZES)
    assert answer["ok"], answer
    assert answer["head"] == [SIZES["vocab_size"], SIZES["hidden_size"]], "AutoTP leaves the head whole"
    flat = {
        "model.layers": SIZES["num_hidden_layers"],
        "model.hidden": SIZES["hidden_size"],
        "model.ffn": SIZES["intermediate_size"],
        "model.heads": SIZES["num_attention_heads"],
        "model.kv_heads": SIZES["num_key_value_heads"],
        "model.vocab": SIZES["vocab_size"],
        "model.gated": True,
        "model.norm": "rmsnorm",
        "parallel.tensor": tensor,
        "parallel.data.degree": ranks // tensor,
        "parallel.data.shard": ranks // tensor,
        "parallel.data.sharding": SHARDING[stage],
        "batch.micro_batch": 1,
        "batch.seq_len": TOKENS,
        "batch.accumulation": micro_batches,
        "precision.compute": "fp32",
        "precision.parameters": "fp32",
        "precision.grad_reduce": "fp32",
    }
    values = {"zero_optimization.stage": stage, "tensor_parallel.autotp_size": tensor}
    answer["calls"] = [call for call in answer["calls"] if call["bytes"] > SMALL_BYTES]
    assert accounted("deepspeed", "0.19.2", flat, values) == observed(answer)
