"""Mistral (a window over all layers) and Mixtral (experts in every layer)."""

from __future__ import annotations

from typing import Any

from translator.frameworks.deepspeed.hf_models.base import all_fixed, family, link
from translator.frameworks.deepspeed.hf_models.parts import (
    DENSE,
    HALVES,
    NO_MLA,
    PRE_NORM,
    activation,
    decoder,
    experts,
    heads,
    rope,
    window,
)

_MISTRAL = "models/mistral/modeling_mistral.py"
_MIXTRAL = "models/mixtral/modeling_mixtral.py"
_COMMON: dict[str, Any] = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_act": "silu",
    "max_position_embeddings": 131072,
    "initializer_range": 0.02,
    "tie_word_embeddings": False,
    "attention_dropout": 0.0,
}
_BLOCK = {**PRE_NORM, **HALVES, **NO_MLA, "bias_linear": False, "bias_qkv": False, "qk_norm": "none"}

MISTRAL = family(
    "mistral",
    "MistralForCausalLM",
    "models/mistral/configuration_mistral.py",
    {**_COMMON, "rms_norm_eps": 1e-6, "sliding_window": 4096},
    (
        *decoder(_MISTRAL),
        link("intermediate_size", "ffn"),
        heads(),
        rope(),
        activation("hidden_act", _MISTRAL),
        window(),
        *all_fixed({**_BLOCK, **DENSE}, _MISTRAL),
    ),
)
MIXTRAL = family(
    "mixtral",
    "MixtralForCausalLM",
    "models/mixtral/configuration_mixtral.py",
    {
        **_COMMON,
        "rms_norm_eps": 1e-5,
        "sliding_window": None,
        "num_experts_per_tok": 2,
        "num_local_experts": 8,
        "output_router_logits": False,
        "router_aux_loss_coef": 0.001,
        "router_jitter_noise": 0.0,
    },
    (
        *decoder(_MIXTRAL),
        heads(),
        rope(base=1_000_000.0),
        activation("hidden_act", _MIXTRAL),
        window(),
        *experts(
            _MIXTRAL,
            count="num_local_experts",
            width="intermediate_size",
            normalize=True,
            other_counts=("num_experts",),
        ),
        *all_fixed({**_BLOCK, "moe.dense_layers": [], "moe.shared_ffn": 0, "moe.expert_bias_linear": False}, _MIXTRAL),
    ),
)
FAMILIES = (MISTRAL, MIXTRAL)
