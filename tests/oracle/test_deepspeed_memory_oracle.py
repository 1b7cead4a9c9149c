"""Memory under DeepSpeed, judged by the real packages on a CPU: tensors of a rank, and what models keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from environments import OracleServer

from translator import api
from translator.frameworks.deepspeed.memory.activations import layer, loss
from translator.memory.estimate import estimate, job_of_reading
from translator.memory.saved import total
from translator.memory.sizes import Job
from translator.memory.stages import stages_of
from translator.memory.terms import Kind
from translator.reading import ReadOptions
from translator.source import Source

pytestmark = pytest.mark.oracle
TOKENS, MICRO_BATCH = 128, 2
SIZES = {
    "hidden_size": 256,
    "num_attention_heads": 8,
    "intermediate_size": 640,
    "vocab_size": 1024,
    "max_position_embeddings": 256,
}
MODELS: dict[str, dict[str, Any]] = {
    "llama": {**SIZES, "model_type": "llama", "num_key_value_heads": 8},
    "llama, grouped": {**SIZES, "model_type": "llama", "num_key_value_heads": 2},
    "mistral": {**SIZES, "model_type": "mistral", "num_key_value_heads": 2, "sliding_window": None},
    "qwen2": {**SIZES, "model_type": "qwen2", "num_key_value_heads": 4},
    "qwen3": {**SIZES, "model_type": "qwen3", "num_key_value_heads": 2, "head_dim": 32},
    "mixtral": {
        **SIZES,
        "model_type": "mixtral",
        "num_key_value_heads": 2,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    },
}


HELD = {**SIZES, "model_type": "llama", "num_key_value_heads": 8, "num_hidden_layers": 2, "tie_word_embeddings": False}
RANKS, BUCKET_ELEMENTS = 4, 1_000_000
ZERO: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no ZeRO": ({"stage": 0}, {}),
    "stage 1": ({"stage": 1}, {}),
    "stage 1 with fp32 gradients": ({"stage": 1}, {"data_types": {"grad_accum_dtype": "fp32"}}),
    "stage 2": ({"stage": 2}, {}),
    "stage 2 with overlap": ({"stage": 2, "overlap_comm": True}, {}),
    "stage 3": ({"stage": 3}, {}),
    "stage 3 with fp32 gradients": ({"stage": 3}, {"data_types": {"grad_accum_dtype": "fp32"}}),
    "stage 3 without contiguous gradients": ({"stage": 3, "contiguous_gradients": False}, {}),
    "stage 2 in fp16": ({"stage": 2}, {"bf16": {"enabled": False}, "fp16": {"enabled": True, "loss_scale": 1.0}}),
    "stage 2 in fp32": ({"stage": 2}, {"bf16": {"enabled": False}}),
    "stage 3 in fp32": ({"stage": 3}, {"bf16": {"enabled": False}}),
}


@pytest.fixture(scope="module")
def keeper(deepspeed: OracleServer) -> Iterator[OracleServer]:
    """The driver that runs models, in the environment of the other DeepSpeed tests."""
    with deepspeed.environment.serve("deepspeed_memory.py") as running:
        yield running


def job(config: dict[str, Any], folder: Path) -> Job:
    """Our job of a model of two layers under DeepSpeed."""
    path = folder / "config.json"
    path.write_text(json.dumps({**config, "num_hidden_layers": 2, "torch_dtype": "bfloat16"}), encoding="utf-8")
    text = json.dumps({"train_micro_batch_size_per_gpu": MICRO_BATCH, "bf16": {"enabled": True}})
    options = ReadOptions(world_size=1, model=str(path), overrides={"batch.seq_len": TOKENS})
    found, _ = job_of_reading(api.read(Source("ds.json", text), framework="deepspeed", options=options))
    return found


def kept(server: OracleServer, config: dict[str, Any], layers: int, **more: bool) -> list[dict[str, Any]]:
    fields = {**config, "num_hidden_layers": layers}
    answer = server.request("saved", config=fields, tokens=TOKENS, micro_batch=MICRO_BATCH, **more)  # type: ignore[arg-type]
    assert answer["ok"], answer
    found: list[dict[str, Any]] = answer["kept"]
    return found


def added(server: OracleServer, config: dict[str, Any], **more: bool) -> int:
    """Bytes that the second layer adds to the first."""
    two, one = (sum(tensor["bytes"] for tensor in kept(server, config, layers, **more)) for layers in (2, 1))
    return int(two - one)


@pytest.mark.parametrize("name", MODELS)
def test_bytes_that_a_layer_keeps(name: str, keeper: OracleServer, tmp_path: Path) -> None:
    found = job(MODELS[name], tmp_path)
    theirs = added(keeper, MODELS[name])
    ours = total(layer(found, moe=found.model.moe is not None))
    print(f"{name}: ours {ours:,.0f}, kept {theirs:,}, {ours / theirs - 1:+.2%}")
    assert ours == pytest.approx(theirs, rel=0.02)


def test_gradient_checkpointing_keeps_the_inputs_of_layers(keeper: OracleServer) -> None:
    assert added(keeper, MODELS["llama"], checkpointing=True) == TOKENS * MICRO_BATCH * SIZES["hidden_size"] * 2


def test_the_loss_keeps_its_log_softmax_in_fp32(keeper: OracleServer, tmp_path: Path) -> None:
    found = job(MODELS["llama"], tmp_path)
    logits = TOKENS * MICRO_BATCH * SIZES["vocab_size"]
    large = [tensor for tensor in kept(keeper, MODELS["llama"], 1, loss=True) if tensor["bytes"] >= 4 * logits]
    assert [(tensor["type"], tensor["bytes"]) for tensor in large] == [("torch.float32", 4 * logits)]
    # That, the gradient of the loss and that of the softmax stand in the backward pass together.
    terms = {term.name: float(term.amount.max()) for term in loss(found, stages_of(found))}
    assert terms["log-softmax of the logits and gradients in fp32"] == 3 * large[0]["bytes"]


@pytest.mark.parametrize("name", ZERO)
def test_bytes_that_a_rank_holds(name: str, keeper: OracleServer, tmp_path: Path) -> None:
    zero, more = ZERO[name]
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 2,
        "bf16": {"enabled": True},
        "zero_optimization": {"reduce_bucket_size": BUCKET_ELEMENTS, **zero},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        **more,
    }
    answer = keeper.request("held", text=json.dumps(config), world_size=RANKS, config=HELD, tokens=TOKENS // 2)
    assert answer["ok"], answer
    # The optimizer is the trainer's, an AdamW; ours is stated, so that both have two moments in fp32.
    stated = {**config, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**HELD, "torch_dtype": "bfloat16"}), encoding="utf-8")
    options = ReadOptions(world_size=RANKS, model=str(path), overrides={"batch.seq_len": TOKENS // 2})
    reading = api.read(Source("ds.json", json.dumps(stated)), framework="deepspeed", options=options)
    found, _ = job_of_reading(reading)
    account = estimate(found).account
    kinds = (Kind.PARAMETERS, Kind.GRADIENTS, Kind.OPTIMIZER)
    ours = sum(float(np.max(term.amount)) for term in account.state if term.kind in kinds)
    theirs = sum(answer["within"].values())
    terms = [*account.state, *account.phases["backward pass of a layer"]]
    waiting = {term.name: float(np.max(term.amount)) for term in terms}
    # Under stage 1 the bucket waits for the last micro batch (none with fp32 gradients), under stage 3 it stays.
    if zero["stage"] == 3 or (zero["stage"] == 1 and "buckets of gradients" in waiting):
        ours += waiting["buckets of gradients"] if zero.get("contiguous_gradients", True) else 0.0
    if zero["stage"] == 3:
        # Parameters that are used again soon stay whole, at most as many as we say.
        whole = theirs - ours
        print(f"{name}: ours {ours:,.0f}, held {theirs:,}, whole parameters {whole:,.0f}")
        assert 0 <= whole <= waiting["gathered parameters"], answer
    else:
        print(f"{name}: ours {ours:,.0f}, held {theirs:,}, {ours / theirs - 1:+.2%}")
        assert ours == pytest.approx(theirs, rel=0.005), answer
