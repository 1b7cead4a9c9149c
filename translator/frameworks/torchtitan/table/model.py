"""Rows of the model: a named flavor, or one of its own in a module beside the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.torchtitan.addresses import MODEL
from translator.frameworks.torchtitan.flavors import MINOR, NOT_COMPARED, Choice, Match, choose, dimensions, major
from translator.ledger import Entry
from translator.mapping.rows import Row, absent, linked
from translator.mapping.views import NativeView, Sink, SpecView
from translator.spec import leaves
from translator.spec.derive import classify

CUSTOM_MODULE = "ttx_model"
CUSTOM_FLAVOR = "ttx"
_ELSEWHERE = frozenset({"model.vocab_padded", "model.vocab_divisor", "model.activation_clamp", "model.residual_fp32"})
# A latent-attention or dense layer has no such leaf; what a family leaves out reads as None.
_NONE_IF_ZERO = ("model.moe.experts",)
_ZERO_IF_NONE = ("model.mla.q_rank",)


def _fields() -> tuple[str, ...]:
    return tuple(leaf for leaf in leaves() if leaf.startswith("model.") and leaf not in _ELSEWHERE)


FIELDS = _fields()


def _read(native: NativeView) -> Mapping[str, Any]:
    return read_leaves(native, f"{native('model.name')}/{native('model.flavor')}")


def read_leaves(native: NativeView, name: str) -> Mapping[str, Any]:
    """The leaves of the model in force, whose settled values stand under ``@model.``."""
    flat: dict[str, Any] = {leaf: native(f"{MODEL}{leaf.removeprefix('model.')}") for leaf in FIELDS}
    for leaf in _NONE_IF_ZERO:
        flat[leaf] = flat[leaf] or None
    if not flat["model.moe.experts"]:
        flat.update({leaf: None for leaf in FIELDS if leaf.startswith("model.moe.")})
    if not flat["model.moe.capacity_factor"]:
        flat["model.moe.capacity_padding"] = None
    if flat["model.mla.enabled"]:
        flat.update({leaf: flat[leaf] or 0 for leaf in _ZERO_IF_NONE})
        flat["model.head_dim"] = None
    flat["model.name"] = name
    if flat["model.layers"] is not None:
        flat["model.attention_output_gate"] = bool(flat["model.attention_output_gate"])
        flat["model.family"] = classify(
            norm=flat["model.norm"],
            positions=flat["model.positions"],
            gated=flat["model.gated"],
            activation=flat["model.activation"],
            experts=flat["model.moe.experts"],
            mla=bool(flat["model.mla.enabled"]),
            sinks=flat["model.attention_softmax"] == "learnable",
        )
    return flat


_MINOR_NOTES = {
    "model.rope.interleaved": "the pairs that rotate are laid out differently: a permutation of the weights",
    "model.attention_kernel": "the attention implementation comes with the model",
    "model.init_output_scaling": "the family initialises the last linear of a sublayer its own way",
    "model.init_std": "the family's own initial standard deviation",
}


def _write(spec: SpecView, sink: Sink) -> None:
    wanted = {leaf: spec(leaf) for leaf in FIELDS}
    if wanted["model.layers"] is None or wanted["model.hidden"] is None:
        name = wanted["model.name"]
        if isinstance(name, str) and name.count("/") == 1:
            sink.put("model.name", name.split("/")[0])
            sink.put("model.flavor", name.split("/")[1])
        else:
            sink.need("model.layers", "the architecture is not in the source; set model.layers=N, model.hidden=N ...")
        for leaf in FIELDS:
            sink.short(leaf, Entry.UNSUPPORTED, "the architecture is not known, so no flavor was chosen")
        return
    if spec("parallel.context", 1) > 1:
        _fit_context(wanted, sink)
    choice = choose(
        {leaf: value for leaf, value in wanted.items() if value is not None},
        sink.version,
        seq_len=spec("batch.seq_len"),
        pipeline=spec("parallel.pipeline.degree", 1),
    )
    if choice is None:
        sink.need("model.layers", f"no models are known for torchtitan {sink.version}")
        return
    sink.put("model.name", choice.name)
    sink.put("model.flavor", choice.flavor or CUSTOM_FLAVOR)
    if choice.custom is not None:
        _write_custom(choice.custom.arguments, choice.name, choice.nearest, sink)
    _explain(wanted, choice.name, sink)
    admit(wanted, choice, sink)
    seq_len = spec("batch.seq_len")
    if wanted["model.max_positions"] not in (None, seq_len):
        sink.short(
            "model.max_positions",
            Entry.ADAPTED,
            "torchtitan builds positions for training.seq_len; no parameter depends on it",
        )


def admit(wanted: Mapping[str, Any], choice: Choice, sink: Sink) -> None:
    """What of a model is not met, and why."""
    for leaf in FIELDS:
        if leaf.removeprefix("model.") in NOT_COMPARED:
            continue
        reason = choice.reasons.get(leaf) or _MINOR_NOTES.get(leaf)
        minor = leaf.removeprefix("model.") in MINOR
        sink.short(
            leaf,
            Entry.APPROXIMATED if minor else Entry.UNSUPPORTED,
            reason or f"torchtitan's {choice.name} cannot say it",
        )
    named = dimensions(choice.nearest.name, choice.nearest.flavor, sink.version) or {}
    if wanted["model.vocab"] is None and named.get("model.vocab") is not None:
        sink.need(
            "model.vocab", "the vocabulary comes with the tokenizer; check it against the flavor, or set model.vocab=N"
        )


def _fit_context(wanted: dict[str, Any], sink: Sink) -> None:
    """Context parallelism runs scaled dot product attention only, which has no masks between documents."""
    why = "context parallelism runs sdpa attention with a causal mask only (distributed/utils.py)"
    if wanted["model.attention_kernel"] in ("flex", "varlen"):
        wanted["model.attention_kernel"] = "sdpa"
        sink.short("model.attention_kernel", Entry.APPROXIMATED, why)
    if wanted["model.attention_mask"] == "document":
        wanted["model.attention_mask"] = "causal"
        sink.short("model.attention_mask", Entry.UNSUPPORTED, why)


_YARN = tuple(
    f"model.{leaf}"
    for leaf in (
        *(f"rope.{name}" for name in ("scaling", "scaling_factor", "original_max_positions", "beta_fast", "beta_slow")),
        *("mla.mscale", "mla.mscale_all_dim"),
    )
)


def _explain(wanted: Mapping[str, Any], name: str, sink: Sink) -> None:
    """Say what is particular to a family or a version."""
    if wanted["model.moe.experts"] and not wanted["model.moe.dense_layers"]:
        sink.short("model.ffn", Entry.IRRELEVANT, "every layer has experts; no feed-forward is dense")
    if name == "deepseek_v3" and wanted["model.rope.scaling"] == "yarn":
        why = (
            "yarn starts where training.seq_len exceeds original_seq_len (models/deepseek_v3/model/model.py:111, :234)"
        )
        for leaf in _YARN:
            sink.short(leaf, Entry.UNSUPPORTED, why)
    if sink.version == "0.1.0":
        sink.short("model.vocab", Entry.ADAPTED, "the vocabulary is the tokenizer's in this version")


LONGEST_LIST = 8


def _write_custom(arguments: Mapping[str, object], name: str, nearest: Match, sink: Sink) -> None:
    from translator.frameworks.torchtitan.custom_model import render_custom_model

    notes = [f"The nearest named flavor of {name} is {nearest.flavor}; it has another"]
    differing = sorted(leaf for leaf in major(nearest.differences) if nearest.differences[leaf][0] is not None)
    for leaf in differing[:LONGEST_LIST]:
        want, have = nearest.differences[leaf]
        notes.append(f"  {leaf.removeprefix('model.')}: {have}, not {want}")
    if len(differing) > LONGEST_LIST:
        notes.append(f"  and {len(differing) - LONGEST_LIST} more")
    text = render_custom_model(name, CUSTOM_FLAVOR, arguments, sink.version, module=CUSTOM_MODULE, notes=notes)
    sink.put("experimental.custom_import", CUSTOM_MODULE)
    sink.file(f"{CUSTOM_MODULE}.py", text)


def _write_padding(spec: SpecView, sink: Sink) -> None:
    vocab, padded = spec("model.vocab"), spec("model.vocab_padded")
    if padded is not None and vocab is not None and padded != vocab:
        sink.short(
            "model.vocab_padded",
            Entry.APPROXIMATED,
            f"no padding: {vocab} rows instead of {padded}; padded rows are never used",
        )
    elif padded is not None:
        sink.short("model.vocab_padded", Entry.APPROXIMATED, "no padding: the embedding has the tokenizer's rows")
    if spec("model.vocab_divisor") is not None:
        sink.short("model.vocab_divisor", Entry.ADAPTED, "torchtitan does not pad the vocabulary")


SHARED: tuple[Row, ...] = (
    linked(
        (),
        ["model.vocab_padded", "model.vocab_divisor"],
        read=lambda native: {"model.vocab_padded": native(f"{MODEL}vocab")},
        write=_write_padding,
    ),
    absent("model.activation_clamp", "activations are not clamped"),
    linked(
        (),
        ["model.residual_fp32"],
        read=lambda _: {"model.residual_fp32": False},
        write=lambda spec, sink: (
            sink.short("model.residual_fp32", Entry.UNSUPPORTED, "the residual stream is in the compute format")
            if spec("model.residual_fp32")
            else None
        ),
    ),
)

ROWS: tuple[Row, ...] = (
    linked(["model.name", "model.flavor", "experimental.custom_import"], FIELDS, read=_read, write=_write),
    *SHARED,
)
