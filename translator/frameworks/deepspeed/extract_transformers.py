"""Extracts the fields of transformers' ``TrainingArguments``: they complete a DeepSpeed configuration.

Addresses are ``hf.<name>``, flags ``--<name>`` (``HfArgumentParser`` takes hyphens too).
"""

from __future__ import annotations

from pathlib import Path

from translator.catalogue.annotations import read_annotation
from translator.catalogue.document import catalogue_text
from translator.catalogue.evaluate import Evaluator, NotStatic, plain
from translator.catalogue.model import Entry
from translator.catalogue.source_tree import SourceTree
from translator.errors import SourceError

CATALOGUE = "transformers"
MODULE = "transformers.training_args"
PREFIX = "hf."
ACTION = "argument"


def extract(tree: SourceTree) -> list[Entry]:
    """The fields of ``TrainingArguments``, by address.

    Raises `SourceError` when the tree holds no such class.
    """
    module = tree.module(MODULE)
    ref = tree.class_of(module, "TrainingArguments") if module is not None else None
    if ref is None:
        raise SourceError(f"{tree.root} has no TrainingArguments", fix="give the root of an unpacked wheel")
    evaluator = Evaluator(tree)
    entries: list[Entry] = []
    for item in evaluator.fields(ref):
        value = read_annotation(item.annotation, item.module, evaluator)
        dynamic: str | None = None
        default: object = None
        try:
            default = plain(evaluator.default(item))
        except NotStatic as reason:
            dynamic = str(reason)
        kind = value.kind if value.kind in {"bool", "int", "float", "dict"} else "str"
        if value.kind == "custom" and "bool" in value.type_name and "str" not in value.type_name:
            kind = "bool"
        flags = (f"--{item.name}",)
        entries.append(
            Entry(
                flags[0],
                f"{PREFIX}{item.name}",
                kind,
                ACTION,
                flags,
                default,
                dynamic is None,
                dynamic,
                None,
                value.arity,
                None,
                value.type_name,
                value.optional,
                None,
                item.module.place(item.node),
            )
        )
    return sorted(entries, key=lambda entry: entry.address)


def generate(version: str, source: Path) -> str:
    """The catalogue file of one version, as text. Raises `SourceError` for another tree."""
    return catalogue_text(CATALOGUE, version, extract(SourceTree(source)))
