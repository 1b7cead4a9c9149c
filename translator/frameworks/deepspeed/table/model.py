"""Rows of the model: a Hugging Face ``config.json`` beside the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.deepspeed import hf_models
from translator.frameworks.deepspeed.hf_models import PREFIX
from translator.ledger import Entry
from translator.mapping.rows import Row, linked, own
from translator.mapping.views import NativeView, Sink, SpecView
from translator.spec import leaves
from translator.spec.touches import Touches

CONFIG = "model_config."
NEEDED = ("layers", "hidden", "heads")
_KERNELS = {"sdpa": "sdpa", "flash_attention_2": "flash", "flex_attention": "flex", "eager": "unfused"}


def _fields() -> tuple[str, ...]:
    return tuple(leaf for leaf in leaves() if leaf.startswith(PREFIX) and leaf != "model.attention_kernel")


FIELDS = _fields()


def config_of(native: Mapping[str, Any]) -> dict[str, Any]:
    """The ``config.json`` among native values."""
    return {address.removeprefix(CONFIG): value for address, value in native.items() if address.startswith(CONFIG)}


def _read(native: NativeView) -> Mapping[str, Any]:
    config = config_of(native.mapping)
    if not config:
        return {}
    known = set(FIELDS)
    return {leaf: value for leaf, value in hf_models.read(config).leaves.items() if leaf in known}


def _write(spec: SpecView, sink: Sink) -> None:
    wanted = {leaf: spec(leaf) for leaf in FIELDS}
    if all(wanted[f"{PREFIX}{name}"] is None for name in NEEDED):
        for leaf in FIELDS:
            sink.short(leaf, Entry.UNSUPPORTED, "the architecture is not known; name it with --model")
        return
    written = hf_models.write(wanted)
    kind = written.family.model_type
    for key, value in written.config.items():
        sink.put(f"{CONFIG}{key}", value)
    for leaf, reason in written.missed.items():
        entry = Entry.APPROXIMATED if leaf in hf_models.LIGHT else Entry.UNSUPPORTED
        sink.short(f"{PREFIX}{leaf}", entry, f"transformers' {kind} has nothing for it: {reason}")
    sink.short("model.vocab_divisor", Entry.ADAPTED, "transformers does not pad the vocabulary")
    sink.short("model.vocab_padded", Entry.APPROXIMATED, "no padding: the embedding has the vocabulary's rows")
    for leaf in FIELDS:
        sink.short(leaf, Entry.APPROXIMATED, f"transformers' {kind} says otherwise")
    if wanted["model.vocab"] is None and wanted["model.vocab_padded"] is None:
        sink.need("model.vocab", "the vocabulary comes with the tokenizer; set model.vocab=N")
    elif wanted["model.vocab"] is None:
        sink.short("model.vocab", Entry.ADAPTED, "the padded vocabulary is written")


def _read_kernel(native: NativeView) -> Mapping[str, Any]:
    return {"model.attention_kernel": _KERNELS.get(native("hf.attn_implementation", ""))}


def _write_kernel(spec: SpecView, sink: Sink) -> None:
    names = {neutral: native for native, neutral in _KERNELS.items()}
    name = names.get(spec("model.attention_kernel"))
    if name is not None:
        sink.put("hf.attn_implementation", name)
    sink.short("model.attention_kernel", Entry.APPROXIMATED, "transformers picks scaled dot product attention")


# Entries that alter every forward pass, and that no leaf says; null is off.
_CAPS = ("attn_logit_softcapping", "final_logit_softcapping")


def _options() -> list[str]:
    return [f"{CONFIG}{key}" for key in hf_models.entries() if key not in _CAPS]


def _influences() -> dict[str, tuple[str, ...]]:
    wanted = set(_options())
    return {key: fed for key, fed in hf_models.influences(CONFIG).items() if key in wanted}


ROWS: tuple[Row, ...] = (
    linked(_options(), FIELDS, read=_read, write=_write, influences=_influences()),
    own([f"{CONFIG}{key}" for key in _CAPS], Touches.TRAINING, "no soft cap on logits", Entry.UNSUPPORTED),
    linked(["hf.attn_implementation"], ["model.attention_kernel"], read=_read_kernel, write=_write_kernel),
)
