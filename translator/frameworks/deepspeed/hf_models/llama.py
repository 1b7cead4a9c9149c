"""llama: grouped heads, rotary positions, SwiGLU."""

from __future__ import annotations

from translator.frameworks.deepspeed.hf_models.base import Row, all_fixed, family, link
from translator.frameworks.deepspeed.hf_models.parts import (
    DENSE,
    HALVES,
    NO_MLA,
    NO_WINDOW,
    PRE_NORM,
    activation,
    attention_bias,
    decoder,
    heads,
    rope,
)

_MODEL = "models/llama/modeling_llama.py"

LLAMA = family(
    "llama",
    "LlamaForCausalLM",
    "models/llama/configuration_llama.py",
    {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "hidden_act": "silu",
        "max_position_embeddings": 2048,
        "initializer_range": 0.02,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
    },
    (
        *decoder(_MODEL),
        link("intermediate_size", "ffn"),
        heads(),
        rope(),
        activation("hidden_act", _MODEL),
        attention_bias("attention_bias", _MODEL),
        Row(
            ("mlp_bias",),
            ("bias_linear",),
            lambda config: {"bias_linear": bool(config.get("mlp_bias"))},
            lambda leaves: {"mlp_bias": bool(leaves.get("bias_linear"))},
        ),
        *all_fixed({**PRE_NORM, **HALVES, **NO_MLA, **NO_WINDOW, **DENSE, "qk_norm": "none"}, _MODEL),
    ),
)
FAMILIES = (LLAMA,)
