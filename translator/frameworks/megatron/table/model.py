"""Rows of the architecture: attention, positions, norms, feed-forward, embeddings.

Sources are of core 0.18.0: `megatron/core/transformer/transformer_config.py` (TC) and
`megatron/training/arguments.py` (A).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from translator.frameworks.megatron.table.moe import stretches
from translator.ledger import Entry
from translator.mapping.rows import Row, absent, choice, implied, linked, same, switch
from translator.mapping.views import NativeView, Sink, SpecView
from translator.spec.derive import classify
from translator.spec.limits import MOST_LAYERS


def _read_family(native: NativeView) -> Mapping[str, Any]:
    gated, activation = _activation(native)
    return {
        "model.family": classify(
            norm=_NORMS.get(native("normalization")),
            positions=_POSITIONS.get(native("position_embedding_type")),
            gated=gated,
            activation=activation,
            experts=native("num_experts"),
            mla=bool(native("multi_latent_attention")),
            sinks=native("softmax_type") == "learnable",
        )
    }


def _write_nothing(_: SpecView, __: Sink) -> None:
    return None


_NORMS = {"LayerNorm": "layernorm", "RMSNorm": "rmsnorm"}
_POSITIONS = {"learned_absolute": "learned", "rope": "rope", "mrope": "mrope", "relative": "relative", "none": "none"}


def _read_heads(native: NativeView) -> Mapping[str, Any]:
    heads = native("num_attention_heads")
    latent = bool(native("multi_latent_attention"))
    grouped = native("group_query_attention") and not latent
    return {
        "model.heads": heads,
        "model.kv_heads": native("num_query_groups") if grouped else heads,
        "model.head_dim": None if latent else native("kv_channels"),
    }


def _write_heads(spec: SpecView, sink: Sink) -> None:
    heads, kv_heads, head_dim = spec("model.heads"), spec("model.kv_heads"), spec("model.head_dim")
    if heads is not None:
        sink.put("num_attention_heads", heads)
    if kv_heads is not None and kv_heads != heads and not spec("model.mla.enabled"):
        sink.put("group_query_attention", True)
        sink.put("num_query_groups", kv_heads)
    hidden = spec("model.hidden")
    if head_dim is not None and not (heads and hidden == heads * head_dim):
        sink.put("kv_channels", head_dim)


_NULL_WITH_END = ("0.12.0", "0.14.0", "0.15.0", "0.16.0", "0.17.0")


def _padded(vocab: int, divisor: int, tensor: int) -> int:
    """Rows of the embedding; `megatron/training/vocab_utils.py` (0.18.0): up to a multiple of divisor times tensor."""
    multiple = divisor * tensor
    return math.ceil(vocab / multiple) * multiple


def _read_vocab(native: NativeView) -> Mapping[str, Any]:
    return {
        "model.vocab": native("vocab_size"),
        "model.vocab_padded": native("padded_vocab_size"),
        "model.vocab_divisor": native("make_vocab_size_divisible_by"),
    }


def _write_vocab(spec: SpecView, sink: Sink) -> None:
    vocab, padded = spec("model.vocab"), spec("model.vocab_padded")
    divisor = spec("model.vocab_divisor")
    if vocab is not None:
        sink.put("vocab_size", vocab)
    if divisor is not None:
        sink.put("make_vocab_size_divisible_by", divisor)
    if padded is None:
        return
    tensor = spec("parallel.tensor", 1)
    # Before 0.18 the null tokenizer appends an end-of-document token of its own.
    null = str(spec("data.tokenizer_type", "")).startswith("Null") and sink.version in _NULL_WITH_END
    by_rule = vocab is not None and padded == _padded(vocab + null, divisor or 128, tensor)
    if by_rule or sink.put("padded_vocab_size", padded):
        return
    exact = padded % tensor == 0 and (vocab is None or padded >= vocab + null)
    sink.put("make_vocab_size_divisible_by", padded // tensor if exact else 1)
    why = "this version pads the vocabulary to a multiple only"
    sink.short("model.vocab_divisor", Entry.ADAPTED, f"{why}; this one gives the rows that are wanted")
    sink.short("model.vocab_padded", Entry.APPROXIMATED, why)


def _read_positions(native: NativeView) -> Mapping[str, Any]:
    kind = native("position_embedding_type")
    if kind == "yarn":
        kind = "rope"
    latent = bool(native("multi_latent_attention"))
    if latent:
        kind = "rope"
    flat: dict[str, Any] = {"model.positions": _POSITIONS.get(kind)}
    if kind not in ("rope", "mrope"):
        return flat
    flat["model.rope_base"] = native("rotary_base")
    flat["model.rope.fraction"] = native("rotary_percent")
    flat["model.rope.interleaved"] = True if latent else bool(native("rotary_interleaved"))
    flat["model.rope.scaling"] = "none"
    if latent:
        if stretches(native):
            flat.update(_yarn(native("rotary_scaling_factor", 40.0)))
    elif native("position_embedding_type") == "yarn":
        flat.update({"model.rope.scaling": "yarn"})
    elif native("use_rope_scaling"):
        # rotary_pos_embedding.py:96: the llama-3 bounds and the original context are fixed.
        flat["model.rope.scaling"] = "llama3"
        flat["model.rope.scaling_factor"] = native("rope_scaling_factor", 8.0)
        flat["model.rope.low_freq_factor"] = 1.0
        flat["model.rope.high_freq_factor"] = 4.0
        flat["model.rope.original_max_positions"] = 8192
    elif (native("rotary_seq_len_interpolation_factor") or 1) != 1:
        flat["model.rope.scaling"] = "linear"
        flat["model.rope.scaling_factor"] = float(native("rotary_seq_len_interpolation_factor"))
    return flat


_SCALING = (
    "scaling",
    "scaling_factor",
    "low_freq_factor",
    "high_freq_factor",
    "original_max_positions",
    "beta_fast",
    "beta_slow",
)


def _yarn(factor: float) -> dict[str, Any]:
    """MLATransformerConfig's fixed yarn constants (TC:2607)."""
    return {
        "model.rope.scaling": "yarn",
        "model.rope.scaling_factor": float(factor),
        "model.rope.original_max_positions": 4096,
        "model.rope.beta_fast": 32.0,
        "model.rope.beta_slow": 1.0,
    }


def _write_positions(spec: SpecView, sink: Sink) -> None:
    kind = spec("model.positions")
    if kind is None:
        return
    latent = bool(spec("model.mla.enabled"))
    words = {neutral: native for native, neutral in _POSITIONS.items()}
    if kind not in words:
        sink.short("model.positions", Entry.UNSUPPORTED, f"no position embedding of kind {kind}")
        return
    scaling = spec("model.rope.scaling", "none")
    if latent and kind != "rope":
        sink.short("model.positions", Entry.UNSUPPORTED, "latent attention always has rotary positions")
        kind = "rope"
    sink.put("position_embedding_type", words[kind])
    if kind not in ("rope", "mrope"):
        return
    base = spec("model.rope_base")
    if base is not None:
        sink.put("rotary_base", round(base))
        if base != round(base):
            sink.short("model.rope_base", Entry.APPROXIMATED, "--rotary-base takes whole numbers only")
    _put_if(spec, sink, "model.rope.fraction", "rotary_percent")
    interleaved = spec("model.rope.interleaved")
    if interleaved and not latent:
        sink.put("rotary_interleaved", True)
    if interleaved is False and latent:
        sink.short(
            "model.rope.interleaved", Entry.UNSUPPORTED, "multi-head latent attention rotates neighbouring pairs"
        )
    factor = spec("model.rope.scaling_factor")
    if latent:
        if not sink.put("rope_type", "yarn" if scaling == "yarn" else "rope") and scaling == "none":
            sink.put("rotary_scaling_factor", 1.0, "this version always has yarn, which does nothing then")
        if sink.get("rope_type") == "rope":
            # Refused otherwise (core/transformer/transformer_config.py:2638, core 0.18.0).
            sink.put("apply_rope_fusion", False, "the fused kernel of latent attention knows yarn only")
        if scaling == "yarn":
            if factor is not None:
                sink.put("rotary_scaling_factor", factor)
            _fixed(spec, sink, _yarn(factor or 40.0))
        elif scaling != "none":
            for leaf in _SCALING:
                sink.short(f"model.rope.{leaf}", Entry.UNSUPPORTED, "latent attention has yarn scaling only")
    elif scaling == "llama3":
        sink.put("use_rope_scaling", True)
        if factor is not None:
            sink.put("rope_scaling_factor", factor)
        _fixed(
            spec,
            sink,
            {
                "model.rope.low_freq_factor": 1.0,
                "model.rope.high_freq_factor": 4.0,
                "model.rope.original_max_positions": 8192,
            },
        )
    elif scaling == "linear":
        sink.put("rotary_seq_len_interpolation_factor", round(factor or 1))
        if factor is not None and factor != round(factor):
            sink.short("model.rope.scaling_factor", Entry.APPROXIMATED, "the interpolation factor is a whole number")
    elif scaling == "yarn":
        if not sink.put("position_embedding_type", "yarn"):
            sink.short("model.rope.scaling", Entry.UNSUPPORTED, "ordinary attention has no yarn in this version")
        for leaf in ("scaling_factor", "original_max_positions", "beta_fast", "beta_slow"):
            sink.short(f"model.rope.{leaf}", Entry.UNSUPPORTED, "yarn constants of ordinary attention have no flag")


def _fixed(spec: SpecView, sink: Sink, constants: Mapping[str, Any]) -> None:
    for leaf, value in constants.items():
        wanted = spec(leaf)
        if wanted is not None and wanted != value:
            sink.short(leaf, Entry.UNSUPPORTED, f"fixed at {value} in Megatron-LM")


def _put_if(spec: SpecView, sink: Sink, leaf: str, option: str) -> None:
    value = spec(leaf)
    if value is not None:
        sink.put(option, value)


def _read_skip(native: NativeView) -> Mapping[str, Any]:
    pattern, layers = native("no_rope_freq"), native("num_layers")
    if isinstance(pattern, int) and pattern and layers and layers <= MOST_LAYERS:
        pattern = ([0] * (pattern - 1) + [1]) * (layers // pattern)
    skipped = [i for i, skip in enumerate(pattern) if skip] if isinstance(pattern, list) else []
    return {"model.rope.skip_layers": skipped or None}


def _write_skip(spec: SpecView, sink: Sink) -> None:
    skipped, layers = spec("model.rope.skip_layers"), spec("model.layers")
    if not skipped or not layers:
        return
    pattern = [1 if i in skipped else 0 for i in range(layers)]
    if not sink.put("no_rope_freq", pattern):
        sink.short("model.rope.skip_layers", Entry.UNSUPPORTED, "this version rotates in every layer")


def _activation(native: NativeView) -> tuple[bool, str]:
    if native("swiglu"):
        return True, "silu"
    if native("squared_relu"):
        return False, "squared_relu"
    if native("quick_geglu"):
        return True, "quick_gelu"
    return False, "gelu"


def _read_activation(native: NativeView) -> Mapping[str, Any]:
    gated, activation = _activation(native)
    return {"model.gated": gated, "model.activation": activation}


_ACTIVATIONS = {(True, "silu"): "swiglu", (False, "squared_relu"): "squared_relu", (True, "quick_gelu"): "quick_geglu"}


def _write_activation(spec: SpecView, sink: Sink) -> None:
    gated, activation = spec("model.gated"), spec("model.activation")
    if gated is None and activation is None:
        return
    gated = bool(gated)
    if (gated, activation) == (False, "gelu"):
        return
    option = _ACTIVATIONS.get((gated, activation))
    if option is not None and sink.put(option, True):
        if option == "squared_relu" and spec("model.bias_linear") is not False:
            # Refused otherwise (core/transformer/transformer_config.py:1890, core 0.18.0).
            sink.put("bias_gelu_fusion", False, "this activation has no fused kernel")
        return
    why = f"no activation {'gated ' if gated else ''}{activation} on the command line"
    if gated:
        sink.put("swiglu", True)
        sink.short("model.activation", Entry.UNSUPPORTED, why + "; SwiGLU is written")
    else:
        sink.short("model.activation", Entry.UNSUPPORTED, why + "; GELU is in force")


def _read_qk_norm(native: NativeView) -> Mapping[str, Any]:
    if native("qk_l2_norm"):
        return {"model.qk_norm": "l2"}
    return {"model.qk_norm": _NORMS.get(native("normalization")) if native("qk_layernorm") else "none"}


def _write_qk_norm(spec: SpecView, sink: Sink) -> None:
    kind = spec("model.qk_norm")
    if kind in (None, "none"):
        return
    if kind == "l2":
        if not sink.put("qk_l2_norm", True):
            sink.short("model.qk_norm", Entry.UNSUPPORTED, "this version has no L2 norm of queries and keys")
        return
    sink.put("qk_layernorm", True)
    if kind != spec("model.norm"):
        sink.short("model.qk_norm", Entry.APPROXIMATED, "queries and keys are normalised like the layers")


def _read_biases(native: NativeView) -> Mapping[str, Any]:
    linear = native("add_bias_linear")
    # A:1441: a bias on linears brings one on the query-key-value projection.
    return {"model.bias_linear": linear, "model.bias_qkv": bool(linear or native("add_qkv_bias"))}


def _write_biases(spec: SpecView, sink: Sink) -> None:
    linear, qkv = spec("model.bias_linear"), spec("model.bias_qkv")
    if linear is not None:
        sink.put("add_bias_linear", linear)
    if qkv and not linear:
        sink.put("add_qkv_bias", True)
    if linear and qkv is False:
        sink.short("model.bias_qkv", Entry.UNSUPPORTED, "--add-bias-linear brings a query-key-value bias")


def _read_window(native: NativeView) -> Mapping[str, Any]:
    window, layers, freq = native("window_size"), native("num_layers"), native("window_attn_skip_freq")
    if not isinstance(window, (list, tuple)):
        return {"model.attention_window": None, "model.attention_window_pattern": None}
    full: list[int] = []
    if isinstance(freq, int) and freq and layers and layers <= MOST_LAYERS:
        full = [i for i in range(layers) if (i + 1) % freq == 0]
    elif isinstance(freq, list):
        full = [i for i, windowed in enumerate(freq) if not windowed]
    # A window of (w, 0) sees the token itself and the w before it.
    return {"model.attention_window": window[0] + 1, "model.attention_window_pattern": full or None}


def _write_window(spec: SpecView, sink: Sink) -> None:
    window, full, layers = spec("model.attention_window"), spec("model.attention_window_pattern"), spec("model.layers")
    if window is None:
        return
    if not sink.put("window_size", [window - 1, 0]):
        sink.short("model.attention_window", Entry.UNSUPPORTED, "this version has no sliding window")
        sink.short("model.attention_window_pattern", Entry.UNSUPPORTED, "this version has no sliding window")
        return
    if full and layers:
        pattern = [0 if i in full else 1 for i in range(layers)]
        if not sink.put("window_attn_skip_freq", pattern):
            sink.short("model.attention_window_pattern", Entry.UNSUPPORTED, "this version windows every layer")


def _write_residual(spec: SpecView, sink: Sink) -> None:
    wanted = spec("model.residual_fp32")
    if wanted and spec("precision.compute") in (None, "fp32"):
        sink.short("model.residual_fp32", Entry.ADAPTED, "everything is in fp32")
    elif wanted is not None:
        sink.put("fp32_residual_connection", wanted)


_SOFTMAX = {"vanilla": "vanilla", "off-by-one": "off_by_one", "learnable": "learnable"}

ROWS: tuple[Row, ...] = (
    linked((), ["model.family"], read=_read_family, write=_write_nothing),
    absent("model.name", "Megatron-LM has no names of architectures", Entry.IRRELEVANT),
    same("num_layers", "model.layers"),
    same("hidden_size", "model.hidden"),
    same("ffn_hidden_size", "model.ffn"),
    linked(
        ["num_attention_heads", "group_query_attention", "num_query_groups", "kv_channels"],
        ["model.heads", "model.kv_heads", "model.head_dim"],
        read=_read_heads,
        write=_write_heads,
        influences={
            "num_attention_heads": ("model.heads",),
            "group_query_attention": ("model.kv_heads",),
            "num_query_groups": ("model.kv_heads",),
            "kv_channels": ("model.head_dim",),
        },
    ),
    linked(
        ["vocab_size", "padded_vocab_size", "make_vocab_size_divisible_by"],
        ["model.vocab", "model.vocab_padded", "model.vocab_divisor"],
        read=_read_vocab,
        write=_write_vocab,
        influences={
            "vocab_size": ("model.vocab",),
            "padded_vocab_size": ("model.vocab_padded",),
            "make_vocab_size_divisible_by": ("model.vocab_divisor",),
        },
    ),
    same("max_position_embeddings", "model.max_positions"),
    linked(
        [
            "position_embedding_type",
            "use_rotary_position_embeddings",
            "rotary_base",
            "rotary_percent",
            "rotary_interleaved",
            "use_rope_scaling",
            "rope_scaling_factor",
            "rotary_seq_len_interpolation_factor",
            "rope_type",
            "rotary_scaling_factor",
        ],
        [
            "model.positions",
            "model.rope_base",
            "model.rope.fraction",
            "model.rope.interleaved",
            "model.rope.scaling",
            "model.rope.scaling_factor",
            "model.rope.low_freq_factor",
            "model.rope.high_freq_factor",
            "model.rope.original_max_positions",
            "model.rope.beta_fast",
            "model.rope.beta_slow",
        ],
        read=_read_positions,
        write=_write_positions,
        influences={
            "position_embedding_type": ("model.positions",),
            "use_rotary_position_embeddings": ("model.positions",),
            "rotary_base": ("model.rope_base",),
            "rotary_percent": ("model.rope.fraction",),
            "rotary_interleaved": ("model.rope.interleaved",),
            "use_rope_scaling": (
                "model.rope.scaling",
                "model.rope.low_freq_factor",
                "model.rope.high_freq_factor",
                "model.rope.original_max_positions",
            ),
            "rope_scaling_factor": ("model.rope.scaling_factor",),
            "rotary_seq_len_interpolation_factor": ("model.rope.scaling", "model.rope.scaling_factor"),
            "rope_type": (
                "model.rope.scaling",
                "model.rope.original_max_positions",
                "model.rope.beta_fast",
                "model.rope.beta_slow",
            ),
            "rotary_scaling_factor": ("model.rope.scaling_factor",),
        },
    ),
    linked(["no_rope_freq"], ["model.rope.skip_layers"], read=_read_skip, write=_write_skip),
    choice("normalization", "model.norm", _NORMS),
    same("layernorm_epsilon", "model.norm_eps"),
    switch("layernorm_zero_centered_gamma", "model.norm_one_plus"),
    choice("apply_residual_connection_post_layernorm", "model.norm_placement", {False: "pre", True: "post"}),
    linked(["qk_layernorm", "qk_l2_norm"], ["model.qk_norm"], read=_read_qk_norm, write=_write_qk_norm),
    linked(
        ["swiglu", "squared_relu", "quick_geglu"],
        ["model.gated", "model.activation"],
        read=_read_activation,
        write=_write_activation,
    ),
    same("activation_func_clamp_value", "model.activation_clamp"),
    linked(
        ["add_bias_linear", "add_qkv_bias"],
        ["model.bias_linear", "model.bias_qkv"],
        read=_read_biases,
        write=_write_biases,
        influences={"add_qkv_bias": ("model.bias_qkv",)},
    ),
    choice("untie_embeddings_and_output_weights", "model.tied_embeddings", {True: False, False: True}),
    same("hidden_dropout", "model.hidden_dropout"),
    same("attention_dropout", "model.attention_dropout"),
    linked(
        ["window_size", "window_attn_skip_freq"],
        ["model.attention_window", "model.attention_window_pattern"],
        read=_read_window,
        write=_write_window,
        influences={
            "window_size": ("model.attention_window",),
            "window_attn_skip_freq": ("model.attention_window_pattern",),
        },
    ),
    choice("softmax_type", "model.attention_softmax", _SOFTMAX),
    switch("attention_output_gate", "model.attention_output_gate"),
    choice(
        "attention_backend",
        "model.attention_kernel",
        {kind: kind for kind in ("auto", "flash", "fused", "unfused", "local")},
        nearest=dict.fromkeys(("sdpa", "flex", "varlen"), ("auto", "Transformer Engine chooses the kernel")),
    ),
    implied("model.attention_mask", "causal", "GPT training in Megatron-LM uses causal attention"),
    replace(switch("fp32_residual_connection", "model.residual_fp32"), write=_write_residual),
    same("init_method_std", "model.init_std"),
    linked(
        (),
        ["model.init_output_scaling"],
        read=lambda _: {"model.init_output_scaling": "depth"},
        write=lambda _, sink: sink.short(
            "model.init_output_scaling",
            Entry.APPROXIMATED,
            "the last linear of a sublayer starts at 1/sqrt(2 layers) of the usual scale (transformer_config.py:2049)",
        ),
    ),
)
