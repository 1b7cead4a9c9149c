"""gpt-oss: a learned sink in the softmax, a window in every second layer, experts with biases and a clamped gate."""

from __future__ import annotations

from translator.frameworks.deepspeed.hf_models.base import all_fixed, family, link
from translator.frameworks.deepspeed.hf_models.parts import (
    HALVES,
    NO_MLA,
    PLAIN,
    PRE_NORM,
    attention_bias,
    decoder,
    experts,
    heads,
    layered_window,
    rope,
)

_MODEL = "models/gpt_oss/modeling_gpt_oss.py"
_OWN = ("attention_softmax", "activation_clamp")

GPT_OSS = family(
    "gpt_oss",
    "GptOssForCausalLM",
    "models/gpt_oss/configuration_gpt_oss.py",
    {
        "num_hidden_layers": 36,
        "num_local_experts": 128,
        "vocab_size": 201088,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "head_dim": 64,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "sliding_window": 128,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        },
        "attention_dropout": 0.0,
        "num_experts_per_tok": 4,
        "swiglu_limit": 7.0,
        "router_aux_loss_coef": 0.001,
        "output_router_logits": False,
        "attention_bias": True,
    },
    (
        *(row for row in decoder(_MODEL) if not set(row.leaves) & set(_OWN)),
        heads(),
        rope(base=150_000.0),
        attention_bias("attention_bias", _MODEL),
        layered_window(every=2),
        link("swiglu_limit", "activation_clamp"),
        *experts(_MODEL, count="num_local_experts", width="intermediate_size", normalize=True),
        *all_fixed(
            {
                **PRE_NORM,
                **HALVES,
                **NO_MLA,
                # x * sigmoid(1.702 x): the quick GELU (GptOssExperts).
                "activation": "quick_gelu",
                "attention_softmax": "learnable",
                "bias_linear": True,
                "qk_norm": "none",
                "moe.dense_layers": [],
                "moe.shared_ffn": 0,
                "moe.expert_bias_linear": True,
            },
            _MODEL,
        ),
    ),
    {"hidden_act": "silu"},
)
assert set(_OWN) <= set(PLAIN)
FAMILIES = (GPT_OSS,)
