"""Qwen 2 (biases on queries, keys and values), Qwen 3 (normalised queries and keys) and its mixture of experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.deepspeed.hf_models.base import Config, Leaves, Row, all_fixed, family, link
from translator.frameworks.deepspeed.hf_models.parts import (
    DENSE,
    HALVES,
    NO_MLA,
    PRE_NORM,
    activation,
    attention_bias,
    decoder,
    experts,
    heads,
    integer,
    layered_window,
    rope,
    window,
)

_QWEN2 = "models/qwen2/modeling_qwen2.py"
_QWEN3 = "models/qwen3/modeling_qwen3.py"
_MOE = "models/qwen3_moe/modeling_qwen3_moe.py"
_COMMON: Mapping[str, Any] = {
    "vocab_size": 151936,
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 32768,
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "attention_dropout": 0.0,
}
_DENSE_BLOCK = {**PRE_NORM, **HALVES, **NO_MLA, **DENSE, "bias_linear": False}

QWEN2 = family(
    "qwen2",
    "Qwen2ForCausalLM",
    "models/qwen2/configuration_qwen2.py",
    {**_COMMON, "max_window_layers": 28},
    (
        *decoder(_QWEN2),
        link("intermediate_size", "ffn"),
        heads(width=False),
        rope(),
        activation("hidden_act", _QWEN2),
        layered_window(switch=True),
        *all_fixed({**_DENSE_BLOCK, "bias_qkv": True, "qk_norm": "none"}, _QWEN2),
    ),
)
QWEN3 = family(
    "qwen3",
    "Qwen3ForCausalLM",
    "models/qwen3/configuration_qwen3.py",
    {**_COMMON, "head_dim": 128, "attention_bias": False, "max_window_layers": 28},
    (
        *decoder(_QWEN3),
        link("intermediate_size", "ffn"),
        heads(),
        rope(),
        activation("hidden_act", _QWEN3),
        attention_bias("attention_bias", _QWEN3),
        layered_window(switch=True),
        *all_fixed({**_DENSE_BLOCK, "qk_norm": "rmsnorm"}, _QWEN3),
    ),
)


def _sparse_layers() -> Row:
    """Dense layers are listed, or all but every n-th (modeling_qwen3_moe.py: (layer + 1) % decoder_sparse_step)."""

    def read(config: Config) -> Mapping[str, Any]:
        step, listed = integer(config.get("decoder_sparse_step")), config.get("mlp_only_layers") or []
        count = integer(config.get("num_hidden_layers"))
        dense = [at for at in range(count) if at in listed or not step or (at + 1) % step]
        return {"moe.dense_layers": dense}

    def write(leaves: Leaves) -> Mapping[str, Any]:
        return {"decoder_sparse_step": 1, "mlp_only_layers": leaves.get("moe.dense_layers") or []}

    return Row(("decoder_sparse_step", "mlp_only_layers"), ("moe.dense_layers",), read, write)


def _dense_width() -> Row:
    """The width of dense layers matters only where there are some."""

    def write(leaves: Leaves) -> Mapping[str, Any]:
        width = leaves.get("ffn")
        return {} if width is None else {"intermediate_size": width}

    return Row(("intermediate_size",), ("ffn",), lambda config: {"ffn": config.get("intermediate_size")}, write)


def _switched_window() -> Row:
    plain = window()

    def read(config: Config) -> Mapping[str, Any]:
        return plain.read(config if config.get("use_sliding_window") else {**config, "sliding_window": None})

    def write(leaves: Leaves) -> Mapping[str, Any]:
        return {**plain.write(leaves), "use_sliding_window": bool(leaves.get("attention_window"))}

    return plain._replace(keys=("sliding_window", "use_sliding_window"), read=read, write=write)


QWEN3_MOE = family(
    "qwen3_moe",
    "Qwen3MoeForCausalLM",
    "models/qwen3_moe/configuration_qwen3_moe.py",
    {
        **_COMMON,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 24,
        "num_key_value_heads": 4,
        "attention_bias": False,
        "decoder_sparse_step": 1,
        "moe_intermediate_size": 768,
        "num_experts_per_tok": 8,
        "num_experts": 128,
        "norm_topk_prob": False,
        "output_router_logits": False,
        "router_aux_loss_coef": 0.001,
    },
    (
        *decoder(_MOE),
        _dense_width(),
        heads(),
        rope(),
        activation("hidden_act", _MOE),
        attention_bias("attention_bias", _MOE),
        _switched_window(),
        _sparse_layers(),
        *experts(
            _MOE,
            count="num_experts",
            width="moe_intermediate_size",
            normalize="norm_topk_prob",
            other_counts=("num_local_experts",),
        ),
        *all_fixed(
            {
                **PRE_NORM,
                **HALVES,
                **NO_MLA,
                "bias_linear": False,
                "qk_norm": "rmsnorm",
                "moe.shared_ffn": 0,
                "moe.expert_bias_linear": False,
            },
            _MOE,
        ),
    ),
)
FAMILIES = (QWEN2, QWEN3, QWEN3_MOE)
