"""GPT-2 (learned positions) and GPT-NeoX (rotary on a part of each head, parallel residual)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.deepspeed.hf_models.base import Config, Leaves, Row, all_fixed, family, link, number, words
from translator.frameworks.deepspeed.hf_models.parts import (
    DENSE,
    GELU,
    HALVES,
    NO_MLA,
    NO_WINDOW,
    SIZES,
    heads,
    integer,
    rope,
    vocabulary,
)

_GPT2 = "models/gpt2/modeling_gpt2.py"
_NEOX = "models/gpt_neox/modeling_gpt_neox.py"
_BLOCK: Mapping[str, Any] = {
    "norm": "layernorm",
    "norm_one_plus": False,
    "norm_placement": "pre",
    "qk_norm": "none",
    "gated": False,
    "activation_clamp": None,
    "attention_softmax": "vanilla",
    "attention_output_gate": False,
    "attention_mask": "causal",
    "residual_fp32": False,
    "mtp.layers": 0,
    **NO_MLA,
    **NO_WINDOW,
    **DENSE,
}
_GELUS = {"gelu_new": "gelu", "relu": "relu", "silu": "silu", "relu2": "squared_relu", "quick_gelu": "quick_gelu"}


def _tied(default: str = "tie_word_embeddings") -> Row:
    return Row(
        (default,),
        ("tied_embeddings",),
        lambda config: {"tied_embeddings": bool(config.get(default))},
        lambda leaves: {default: bool(leaves.get("tied_embeddings"))},
    )


def _gpt2_heads() -> Row:
    def read(config: Config) -> Mapping[str, Any]:
        count = config.get("n_head")
        width = integer(config.get("n_embd")) // integer(count) if integer(count) else None
        return {"heads": count, "kv_heads": count, "head_dim": width}

    def write(leaves: Leaves) -> Mapping[str, Any]:
        return {} if leaves.get("heads") is None else {"n_head": leaves["heads"]}

    return Row(("n_head",), ("heads", "kv_heads", "head_dim"), read, write, "heads: no grouping here, of equal width")


def _gpt2_width() -> Row:
    def read(config: Config) -> Mapping[str, Any]:
        return {"ffn": config.get("n_inner") or 4 * integer(config.get("n_embd"))}

    return Row(("n_inner",), ("ffn",), read, lambda leaves: {"n_inner": leaves.get("ffn")})


def _gpt2_dropout() -> Row:
    """One leaf for the dropouts after embeddings and sublayers."""

    def read(config: Config) -> Mapping[str, Any]:
        same = config.get("resid_pdrop") == config.get("embd_pdrop")
        return {"hidden_dropout": config.get("resid_pdrop") if same else None}

    def write(leaves: Leaves) -> Mapping[str, Any]:
        rate = leaves.get("hidden_dropout") or 0.0
        return {"resid_pdrop": rate, "embd_pdrop": rate}

    return Row(("resid_pdrop", "embd_pdrop"), ("hidden_dropout",), read, write)


GPT2 = family(
    "gpt2",
    "GPT2LMHeadModel",
    "models/gpt2/configuration_gpt2.py",
    {
        "vocab_size": 50257,
        "n_positions": 1024,
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "activation_function": "gelu_new",
        "resid_pdrop": 0.1,
        "embd_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "layer_norm_epsilon": 1e-5,
        "initializer_range": 0.02,
        "tie_word_embeddings": True,
    },
    (
        vocabulary(),
        link("n_layer", "layers"),
        link("n_embd", "hidden"),
        link("n_positions", "max_positions"),
        _gpt2_heads(),
        _gpt2_width(),
        words("activation_function", "activation", _GELUS, _GPT2, also={"gelu": "gelu", "swish": "silu", **GELU}),
        _gpt2_dropout(),
        number("attn_pdrop", "attention_dropout"),
        link("layer_norm_epsilon", "norm_eps"),
        number("initializer_range", "init_std", 0.02),
        _tied(),
        *all_fixed({**_BLOCK, "positions": "learned", "bias_linear": True, "bias_qkv": True}, _GPT2),
        *all_fixed({"init_output_scaling": "depth"}, f"{_GPT2}, _init_weights"),
    ),
)
NEOX = family(
    "gpt_neox",
    "GPTNeoXForCausalLM",
    "models/gpt_neox/configuration_gpt_neox.py",
    {
        "vocab_size": 50432,
        "hidden_size": 6144,
        "num_hidden_layers": 44,
        "num_attention_heads": 64,
        "intermediate_size": 24576,
        "hidden_act": "gelu",
        "attention_dropout": 0.0,
        "hidden_dropout": 0.0,
        "max_position_embeddings": 2048,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "use_parallel_residual": True,
        "attention_bias": True,
    },
    (
        vocabulary(),
        *SIZES,
        heads(width=False, grouped=False),
        link("intermediate_size", "ffn"),
        rope(base_key="rotary_emb_base", fraction_key="rotary_pct", fraction=0.25),
        words("hidden_act", "activation", {"gelu": "gelu", "relu2": "squared_relu", "silu": "silu"}, _NEOX, also=GELU),
        number("attention_dropout", "attention_dropout"),
        number("hidden_dropout", "hidden_dropout"),
        link("layer_norm_eps", "norm_eps"),
        number("initializer_range", "init_std", 0.02),
        _tied(),
        Row(
            ("attention_bias",),
            ("bias_qkv",),
            lambda config: {"bias_qkv": bool(config.get("attention_bias"))},
            lambda leaves: {"attention_bias": bool(leaves.get("bias_qkv"))},
        ),
        *all_fixed({**_BLOCK, **HALVES, "bias_linear": True, "init_output_scaling": "none"}, _NEOX),
        *all_fixed({"rope.skip_layers": None}, _NEOX),
    ),
    # Written as a sequence of sublayers; the two at once is a block that the spec does not describe.
    {"use_parallel_residual": False},
)
FAMILIES = (GPT2, NEOX)
