"""Rows that several families share: sizes, heads, rotary positions, windows, experts, activations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.deepspeed.hf_models.base import Config, Leaves, Row, all_fixed, link, number, words

_ROPE_UTILS = "modeling_rope_utils.py"
ROPE_BASE = 10_000.0  # modeling_rope_utils.py, RotaryEmbeddingConfigMixin.default_theta
# activations.py: names that compute the same function.
GELU = {"gelu_new": "gelu", "gelu_pytorch_tanh": "gelu", "gelu_fast": "gelu", "gelu_python": "gelu"}
_ACTIVATIONS = {"silu": "silu", "gelu": "gelu", "relu2": "squared_relu", "quick_gelu": "quick_gelu", "relu": "relu"}


def integer(value: Any) -> int:
    """A count; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def activation(key: str, source: str, *, tanh: bool = False) -> Row:
    """The activation of the feed-forward; ``tanh`` writes GELU by its tanh approximation, as the family does."""
    pairs = {**_ACTIVATIONS}
    if tanh:
        del pairs["gelu"]
        pairs = {"gelu_pytorch_tanh": "gelu", **pairs}
    return words(key, "activation", pairs, source, also={"swish": "silu", "gelu": "gelu", **GELU})


SIZES: tuple[Row, ...] = (
    link("num_hidden_layers", "layers"),
    link("hidden_size", "hidden"),
    link("max_position_embeddings", "max_positions"),
)


def vocabulary() -> Row:
    """The rows of the embedding are the vocabulary: transformers pads nothing by itself."""

    def read(config: Config) -> Mapping[str, Any]:
        return {"vocab": config.get("vocab_size"), "vocab_padded": config.get("vocab_size")}

    def write(leaves: Leaves) -> Mapping[str, Any]:
        size = leaves.get("vocab") or leaves.get("vocab_padded")
        return {} if size is None else {"vocab_size": size}

    return Row(("vocab_size",), ("vocab", "vocab_padded"), read, write, "the embedding has the vocabulary's rows")


def heads(*, width: bool = True, grouped: bool = True) -> Row:
    """Heads, key-value heads where they may be fewer, and the width of a head where it is an entry."""
    keys = ("num_attention_heads", *(("num_key_value_heads",) if grouped else ()), *(("head_dim",) if width else ()))

    def read(config: Config) -> Mapping[str, Any]:
        count = config.get("num_attention_heads")
        stated = config.get("head_dim") if width else None
        return {
            "heads": count,
            "kv_heads": (config.get("num_key_value_heads") or count) if grouped else count,
            "head_dim": stated or (integer(config.get("hidden_size")) // integer(count) if integer(count) else None),
        }

    def write(leaves: Leaves) -> Mapping[str, Any]:
        count = leaves.get("heads")
        if count is None:
            return {}
        found: dict[str, Any] = {"num_attention_heads": count}
        if grouped:
            found["num_key_value_heads"] = leaves.get("kv_heads") or count
        if width:
            found["head_dim"] = leaves.get("head_dim") or integer(leaves.get("hidden")) // count
        return found

    note = "heads: no grouping here, each as wide as the model over their number"
    return Row(keys, ("heads", "kv_heads", "head_dim"), read, write, note if not width else "")


_SCALES = {
    "linear": {"factor": "rope.scaling_factor"},
    "llama3": {
        "factor": "rope.scaling_factor",
        "low_freq_factor": "rope.low_freq_factor",
        "high_freq_factor": "rope.high_freq_factor",
        "original_max_position_embeddings": "rope.original_max_positions",
    },
    "yarn": {
        "factor": "rope.scaling_factor",
        "original_max_position_embeddings": "rope.original_max_positions",
        "beta_fast": "rope.beta_fast",
        "beta_slow": "rope.beta_slow",
    },
}
_MSCALE = {"mscale": "mla.mscale", "mscale_all_dim": "mla.mscale_all_dim"}
_DEFAULT_BETAS = {"beta_fast": 32.0, "beta_slow": 1.0}  # modeling_rope_utils.py, _compute_yarn_parameters
_FLOATS = frozenset({"factor", "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow"})


def rope(
    *,
    base: float = ROPE_BASE,
    base_key: str = "rope_theta",
    fraction_key: str = "partial_rotary_factor",
    fraction: float = 1.0,
    latent: bool = False,
) -> Row:
    """Rotary positions, written as transformers 4 has them (``rope_theta``, ``rope_scaling``), which 5 reads as well.

    `modeling_rope_utils.py:775` moves both into ``rope_parameters``, which is read too. ``latent`` adds yarn's scales
    of latent attention.
    """
    kinds = {kind: {**keys, **(_MSCALE if latent and kind == "yarn" else {})} for kind, keys in _SCALES.items()}
    named = tuple(dict.fromkeys(leaf for keys in kinds.values() for leaf in keys.values()))
    leaves = ("positions", "rope_base", "rope.fraction", "rope.scaling", *named)

    def read(config: Config) -> Mapping[str, Any]:
        stated = config.get("rope_scaling") or config.get("rope_parameters") or {}
        scaling: Config = stated if isinstance(stated, Mapping) else {}
        outer: Config = scaling.get("full_attention") if isinstance(scaling.get("full_attention"), Mapping) else scaling  # type: ignore[assignment]
        kind = outer.get("rope_type") or outer.get("type") or "default"
        found: dict[str, Any] = {
            "positions": "rope",
            "rope_base": float(outer.get("rope_theta") or config.get(base_key) or base),
            "rope.fraction": float(outer.get("partial_rotary_factor") or config.get(fraction_key) or fraction),
            "rope.scaling": {"default": "none"}.get(kind, kind if kind in kinds else None),
        }
        for key, leaf in kinds.get(kind, {}).items():
            value = outer.get(key, _DEFAULT_BETAS.get(key) if kind == "yarn" else None)
            if value is None and key == "original_max_position_embeddings":
                value = config.get("original_max_position_embeddings") or config.get("max_position_embeddings")
            found[leaf] = float(value) if key in _FLOATS and isinstance(value, int | float) else value
        return found

    def write(leaves: Leaves) -> Mapping[str, Any]:
        found: dict[str, Any] = {base_key: leaves.get("rope_base") or base}
        if fraction_key != "partial_rotary_factor" or (leaves.get("rope.fraction") or 1.0) != 1.0:
            found[fraction_key] = leaves.get("rope.fraction") or fraction
        kind = leaves.get("rope.scaling")
        if kind in kinds:
            values = {key: leaves[leaf] for key, leaf in kinds[kind].items() if leaves.get(leaf) is not None}
            found["rope_scaling"] = {"rope_type": kind, **values}
        else:
            found["rope_scaling"] = None
        return found

    keys = (base_key, fraction_key, "rope_scaling", "rope_parameters", "original_max_position_embeddings")
    return Row(
        keys, leaves, read, write, f"rotary positions, plain or stretched by linear, llama3, yarn ({_ROPE_UTILS})"
    )


def window(key: str = "sliding_window") -> Row:
    """A window over all layers, or over none."""

    def read(config: Config) -> Mapping[str, Any]:
        return {"attention_window": config.get(key), "attention_window_pattern": None}

    return Row(
        (key,),
        ("attention_window", "attention_window_pattern"),
        read,
        lambda leaves: {key: leaves.get("attention_window")},
        "a window over every layer or over none",
    )


def layered_window(*, every: int = 0, switch: bool = False) -> Row:
    """A window in the layers that ``layer_types`` calls ``sliding_attention``.

    Without that entry: with ``every`` each n-th layer is full; with ``switch`` a window needs ``use_sliding_window``
    and starts at layer ``max_window_layers``.
    """

    def layers_with_all(config: Config) -> list[int]:
        count = integer(config.get("num_hidden_layers"))
        kinds = config.get("layer_types")
        if isinstance(kinds, list):
            return [at for at, kind in enumerate(kinds) if kind == "full_attention"]
        if switch:
            return list(range(min(count, integer(config.get("max_window_layers")))))
        pattern = integer(config.get("sliding_window_pattern")) or every
        return [at for at in range(count) if pattern and (at + 1) % pattern == 0]

    def read(config: Config) -> Mapping[str, Any]:
        size = config.get("sliding_window")
        whole = layers_with_all(config)
        if (switch and not config.get("use_sliding_window")) or len(whole) >= integer(config.get("num_hidden_layers")):
            size = None
        return {"attention_window": size, "attention_window_pattern": (whole or None) if size else None}

    def write(leaves: Leaves) -> Mapping[str, Any]:
        count, size = integer(leaves.get("layers")), leaves.get("attention_window")
        whole = (leaves.get("attention_window_pattern") or []) if size else range(count)
        found: dict[str, Any] = {"sliding_window": size}
        found["layer_types"] = ["full_attention" if at in whole else "sliding_attention" for at in range(count)]
        if switch:
            found["use_sliding_window"] = bool(size)
            found["max_window_layers"] = len(whole) if size else count
        return found

    keys = ("sliding_window", "layer_types", *(("use_sliding_window", "max_window_layers") if switch else ()))
    keys += ("sliding_window_pattern",) if every else ()
    return Row(keys, ("attention_window", "attention_window_pattern"), read, write)


def attention_bias(key: str, source: str) -> Row:
    """One entry for the biases of all four attention linears, which the spec's leaf knows of three."""
    return Row(
        (key,),
        ("bias_qkv",),
        lambda config: {"bias_qkv": bool(config.get(key))},
        lambda leaves: {key: bool(leaves.get("bias_qkv"))},
        f"bias_qkv: all four attention linears have a bias, or none ({source})",
    )


# What every llama-like decoder has in common, whatever its entries.
PLAIN: Mapping[str, Any] = {
    "norm": "rmsnorm",
    "hidden_dropout": 0.0,
    "attention_softmax": "vanilla",
    "attention_output_gate": False,
    "attention_mask": "causal",
    "residual_fp32": False,
    "activation_clamp": None,
    "rope.skip_layers": None,
    "init_output_scaling": "none",
    "mtp.layers": 0,
}
PRE_NORM: Mapping[str, Any] = {"norm_placement": "pre", "norm_one_plus": False, "gated": True}
NO_MLA: Mapping[str, Any] = {"mla.enabled": False}
HALVES: Mapping[str, Any] = {"rope.interleaved": False}
NO_WINDOW: Mapping[str, Any] = {"attention_window": None, "attention_window_pattern": None}
DENSE: Mapping[str, Any] = {"moe.experts": None}


def decoder(model: str) -> tuple[Row, ...]:
    """What the llama-like families share: sizes, norm, dropout of attention, initial weights, tied embeddings."""
    return (
        *SIZES,
        vocabulary(),
        link("rms_norm_eps", "norm_eps"),
        number("attention_dropout", "attention_dropout"),
        number("initializer_range", "init_std", 0.02),
        Row(
            ("tie_word_embeddings",),
            ("tied_embeddings",),
            lambda config: {"tied_embeddings": bool(config.get("tie_word_embeddings"))},
            lambda leaves: {"tie_word_embeddings": bool(leaves.get("tied_embeddings"))},
        ),
        *all_fixed(PLAIN, model),
    )


EXPERTS: Mapping[str, Any] = {
    "moe.shared_gate": False,
    "moe.router_jitter": None,
    "moe.capacity_factor": None,
    "moe.capacity_padding": None,
    "moe.drop_policy": None,
    "moe.scores_on_input": False,
    "moe.z_loss_coefficient": None,
    "moe.grouped_gemm": True,
    "moe.dispatcher": None,
}


def experts(
    model: str, *, count: str, width: str, normalize: bool | str, other_counts: tuple[str, ...] = ()
) -> tuple[Row, ...]:
    """Experts chosen by softmax scores. ``normalize`` is an entry, or what the code fixes.

    No token is dropped. The balancing loss is on where ``output_router_logits`` is.
    """

    def read(config: Config) -> Mapping[str, Any]:
        number_of = next((config[key] for key in other_counts if config.get(key)), None) or config.get(count)
        on = bool(config.get("output_router_logits"))
        coefficient = config.get("router_aux_loss_coef")
        return {
            "moe.experts": number_of,
            "moe.top_k": config.get("num_experts_per_tok"),
            "moe.ffn": config.get(width),
            "moe.router_normalize": bool(config.get(normalize)) if isinstance(normalize, str) else normalize,
            "moe.balancing": ["aux_loss"] if on else ["none"],
            "moe.aux_loss_coefficient": [float(coefficient)] if on and coefficient is not None else None,
        }

    def write(leaves: Leaves) -> Mapping[str, Any]:
        found: dict[str, Any] = {count: leaves.get("moe.experts"), "num_experts_per_tok": leaves.get("moe.top_k")}
        found[width] = leaves.get("moe.ffn") or leaves.get("ffn")
        if isinstance(normalize, str):
            found[normalize] = bool(leaves.get("moe.router_normalize"))
        balancing, coefficients = leaves.get("moe.balancing") or ["none"], leaves.get("moe.aux_loss_coefficient")
        found["output_router_logits"] = balancing != ["none"] and bool(coefficients)
        found["router_aux_loss_coef"] = coefficients[0] if coefficients else 0.001
        return found

    keys = (count, *other_counts, "num_experts_per_tok", width, "output_router_logits", "router_aux_loss_coef")
    keys += (normalize,) if isinstance(normalize, str) else ()
    names = ("experts", "top_k", "ffn", "router_normalize", "balancing", "aux_loss_coefficient")
    leaves = tuple(f"moe.{name}" for name in names)
    note = f"one balancing loss over all layers of a micro batch, or none ({model})"
    plain = {"moe.router_score": "softmax", "moe.router_scaling": 1.0, "moe.router_groups": 0}
    plain |= {"moe.router_group_top_k": 0, "moe.router_bias": False, "moe.router_bias_rate": None}
    plain |= {"moe.router_dtype": "compute"}
    return (Row(keys, leaves, read, write, note), *all_fixed({**EXPERTS, **plain}, model))
