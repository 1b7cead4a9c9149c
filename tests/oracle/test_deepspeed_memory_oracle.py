"""What models of transformers keep for their backward pass under DeepSpeed, against our terms, storage by storage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from environments import OracleServer

from translator import api
from translator.frameworks.deepspeed.memory.activations import layer, loss
from translator.memory.estimate import job_of_reading
from translator.memory.saved import total
from translator.memory.sizes import Job
from translator.memory.stages import stages_of
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


@pytest.fixture(scope="module")
def keeper(deepspeed: OracleServer) -> Iterator[OracleServer]:
    """The driver that runs models, in the environment of the other DeepSpeed tests."""
    with deepspeed.environment.serve("deepspeed_memory.py") as running:
        yield running


def job(config: dict[str, Any], folder: Any) -> Job:
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
def test_bytes_that_a_layer_keeps(name: str, keeper: OracleServer, tmp_path: Any) -> None:
    found = job(MODELS[name], tmp_path)
    theirs = added(keeper, MODELS[name])
    ours = total(layer(found, moe=found.model.moe is not None))
    print(f"{name}: ours {ours:,.0f}, kept {theirs:,}, {ours / theirs - 1:+.2%}")
    assert ours == pytest.approx(theirs, rel=0.02)


def test_gradient_checkpointing_keeps_the_inputs_of_layers(keeper: OracleServer) -> None:
    assert added(keeper, MODELS["llama"], checkpointing=True) == TOKENS * MICRO_BATCH * SIZES["hidden_size"] * 2


def test_the_loss_keeps_its_log_softmax_in_fp32(keeper: OracleServer, tmp_path: Any) -> None:
    found = job(MODELS["llama"], tmp_path)
    logits = TOKENS * MICRO_BATCH * SIZES["vocab_size"]
    large = [tensor for tensor in kept(keeper, MODELS["llama"], 1, loss=True) if tensor["bytes"] >= 4 * logits]
    assert [(tensor["type"], tensor["bytes"]) for tensor in large] == [("torch.float32", 4 * logits)]
    # That, the gradient of the loss and that of the softmax stand in the backward pass together.
    terms = {term.name: float(term.amount.max()) for term in loss(found, stages_of(found))}
    assert terms["log-softmax of the logits and gradients in fp32"] == 3 * large[0]["bytes"]
