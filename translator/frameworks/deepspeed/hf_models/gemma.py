"""Gemma 1 to 3: GeGLU, norms stored as an offset from 1, embeddings scaled by the square root of the width.

The spec has no leaf for that scale, nor for soft caps on logits: a configuration of this kind is written without caps,
and only where the other leaves fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.deepspeed.hf_models.base import Row, all_fixed, family, link
from translator.frameworks.deepspeed.hf_models.parts import (
    DENSE,
    HALVES,
    NO_MLA,
    NO_WINDOW,
    activation,
    attention_bias,
    decoder,
    heads,
    layered_window,
    rope,
)

_GEMMA = "models/gemma/modeling_gemma.py"
_GEMMA2 = "models/gemma2/modeling_gemma2.py"
_GEMMA3 = "models/gemma3/modeling_gemma3.py"
_BLOCK: Mapping[str, Any] = {**HALVES, **NO_MLA, **DENSE, "gated": True, "norm_one_plus": True, "bias_linear": False}
_COMMON: Mapping[str, Any] = {
    "head_dim": 256,
    "max_position_embeddings": 8192,
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "attention_dropout": 0.0,
}
_LATER: Mapping[str, Any] = {
    **_COMMON,
    "vocab_size": 256000,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "hidden_activation": "gelu_pytorch_tanh",
    "sliding_window": 4096,
}


def _rows(model: str, act: str) -> tuple[Row, ...]:
    return (
        *decoder(model),
        link("intermediate_size", "ffn"),
        heads(),
        activation(act, model, tanh=True),
        attention_bias("attention_bias", model),
    )


GEMMA = family(
    "gemma",
    "GemmaForCausalLM",
    "models/gemma/configuration_gemma.py",
    {
        **_COMMON,
        "vocab_size": 256000,
        "hidden_size": 3072,
        "intermediate_size": 24576,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "hidden_act": "gelu_pytorch_tanh",
    },
    (
        *_rows(_GEMMA, "hidden_act"),
        rope(),
        *all_fixed({**_BLOCK, **NO_WINDOW, "norm_placement": "pre", "qk_norm": "none"}, _GEMMA),
    ),
)
GEMMA2 = family(
    "gemma2",
    "Gemma2ForCausalLM",
    "models/gemma2/configuration_gemma2.py",
    _LATER,
    (
        *_rows(_GEMMA2, "hidden_activation"),
        rope(),
        layered_window(every=2),
        *all_fixed({**_BLOCK, "norm_placement": "sandwich", "qk_norm": "none"}, _GEMMA2),
    ),
    {"final_logit_softcapping": None, "attn_logit_softcapping": None},
)
GEMMA3 = family(
    "gemma3_text",
    "Gemma3ForCausalLM",
    "models/gemma3/configuration_gemma3.py",
    {**_LATER, "vocab_size": 262208, "max_position_embeddings": 131072},
    (
        *_rows(_GEMMA3, "hidden_activation"),
        rope(base=1_000_000.0),
        layered_window(every=6),
        *all_fixed({**_BLOCK, "norm_placement": "sandwich", "qk_norm": "rmsnorm"}, _GEMMA3),
    ),
)
FAMILIES = (GEMMA, GEMMA2, GEMMA3)
