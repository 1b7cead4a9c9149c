"""Llama 3: a dense decoder with grouped heads, RMSNorm, SwiGLU and rotary positions.

0.2.2, ``models/llama3/model/model.py``: no linear has a bias (:203-210, :338-340); RMSNorm before each sublayer and at
the end (:382-383, :457); head width is the residual width divided by the heads (:200); the feed-forward width is
rounded (:332-336); rotary pairs are neighbours (:164); frequencies are *always* stretched as in Llama 3.1 (:68-87),
for which a factor of 1 is the identity; embedding and head are never tied (:445, :458). ``training.seq_len`` replaces
``max_seq_len`` (args.py:53).

0.1.0, ``models/llama3/model/model.py``: the same blocks, without any stretching, and the vocabulary of the tokenizer
(``model/args.py:43``). Its flavors give no vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping

from translator.frameworks.torchtitan.models.base import (
    Family,
    Inexpressible,
    Row,
    all_fixed,
    attention_rows,
    fixed,
    integer,
    link,
)
from translator.frameworks.torchtitan.models.parts import (
    GATED_SILU,
    NO_BIAS,
    PLAIN_BLOCK,
    depth_init,
    derived_head_dim,
    rounded_width,
    width_arguments,
)

MODEL = "models/llama3/model/model.py"
SCALING = "rope_scaling_args"
SCALING_LEAVES = {
    "scaling_factor": "rope.scaling_factor",
    "low_freq_factor": "rope.low_freq_factor",
    "high_freq_factor": "rope.high_freq_factor",
    "original_max_position_embeddings": "rope.original_max_positions",
}


def feed_forward() -> Row:
    """The dense width, from a multiplier and a rounding."""

    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        hidden, multiple = integer(arguments["dim"]), integer(arguments["multiple_of"])
        return {"ffn": rounded_width(hidden, arguments.get("ffn_dim_multiplier"), multiple)}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        hidden, wanted = integer(leaves.get("hidden")), integer(leaves.get("ffn"))
        if not hidden or not wanted:
            return {}
        found = width_arguments(hidden, lambda m, multiple: rounded_width(hidden, m, multiple) == wanted, wanted)
        if found is None:
            raise Inexpressible("ffn", f"no multiplier gives a width of exactly {wanted} ({MODEL}:332)")
        return found

    return Row(("ffn_dim_multiplier", "multiple_of"), ("ffn",), read, write)


def rope_scaling(*, optional: bool) -> Row:
    """Stretching of the rotary frequencies; ``optional`` where the arguments may be absent (llama4)."""

    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        factor = arguments.get(f"{SCALING}.scaling_factor")
        if factor is None or factor == 1:
            return {"rope.scaling": "none"}
        values = {leaf: arguments[f"{SCALING}.{name}"] for name, leaf in SCALING_LEAVES.items()}
        return {"rope.scaling": "llama3", **values}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get("rope.scaling")
        if wanted == "llama3":
            given = {name: leaves.get(leaf) for name, leaf in SCALING_LEAVES.items()}
            return {f"{SCALING}.{name}": value for name, value in given.items() if value is not None}
        if wanted not in {None, "none"}:
            raise Inexpressible("rope.scaling", f"only the stretching of Llama 3.1 is known, not {wanted}")
        return {SCALING: None} if optional else {f"{SCALING}.scaling_factor": 1.0}

    return Row((SCALING,), ("rope.scaling", *SCALING_LEAVES.values()), read, write)


COMMON: tuple[Row, ...] = (
    link("dim", "hidden"),
    link("n_layers", "layers"),
    *derived_head_dim(f"{MODEL}:200"),
    feed_forward(),
    link("norm_eps", "norm_eps"),
    link("rope_theta", "rope_base"),
    link("max_seq_len", "max_positions"),
    depth_init(f"{MODEL}:385"),
    *all_fixed({**PLAIN_BLOCK, **GATED_SILU, **NO_BIAS}, MODEL),
    *all_fixed(
        {
            "rope.interleaved": True,
            "rope.skip_layers": None,
            "qk_norm": "none",
            "tied_embeddings": False,
            "attention_window": None,
            "attention_softmax": "vanilla",
            "mla.enabled": False,
        },
        MODEL,
    ),
)

ROWS_022: tuple[Row, ...] = (
    *COMMON,
    link("vocab_size", "vocab"),
    rope_scaling(optional=False),
    *attention_rows(f"{MODEL}:551", {"sdpa": "sdpa", "flex": "flex", "varlen": "varlen"}),
    fixed("moe.experts", 0, f"{MODEL}:377"),
)


def old_attention(source: str) -> Row:
    """0.1.0 says with one switch whether attention is flex."""

    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        flex = bool(arguments.get("use_flex_attn"))
        document = flex and arguments.get("attn_mask_type") == "block_causal"
        return {"attention_kernel": "flex" if flex else "sdpa", "attention_mask": "document" if document else "causal"}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get("attention_mask") or "causal"
        if wanted == "document":
            return {"use_flex_attn": True, "attn_mask_type": "block_causal"}
        if wanted != "causal":
            raise Inexpressible("attention_mask", f"attention is causal ({source})")
        return {"use_flex_attn": leaves.get("attention_kernel") == "flex", "attn_mask_type": "causal"}

    return Row(("use_flex_attn", "attn_mask_type"), ("attention_kernel", "attention_mask"), read, write)


ROWS_010: tuple[Row, ...] = (
    *COMMON,
    fixed("rope.scaling", "none", f"{MODEL}:20"),
    old_attention("models/attention.py:29"),
    fixed("moe.experts", 0, f"{MODEL}:245"),
)

FAMILIES = {
    "0.2.2": Family(
        name="llama3",
        rows=ROWS_022,
        table="llama3_args",
        module="torchtitan.models.llama3",
        arguments_class="TransformerModelArgs",
        nested={SCALING: ("RoPEScalingArgs", "torchtitan.models.llama3.model.args")},
        unused=frozenset({"eos_id"}),
        context=frozenset({"sdpa", "flex"}),
    ),
    "0.1.0": Family(
        name="llama3",
        rows=ROWS_010,
        table="llama3_configs",
        module="torchtitan.models.llama3",
        arguments_class="TransformerModelArgs",
        nested={},
        unused=frozenset({"eos_id", "vocab_size"}),
    ),
}
