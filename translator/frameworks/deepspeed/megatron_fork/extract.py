"""Extracts the arguments of Megatron-DeepSpeed: Megatron-LM's of the time, with what the fork added.

DeepSpeed's own two (``deepspeed/__init__.py:270`` at 0.19.2) are added by the library at run time and stand here.
"""

from __future__ import annotations

from pathlib import Path

from translator.catalogue.document import catalogue_text
from translator.catalogue.model import Entry
from translator.catalogue.source_tree import SourceTree
from translator.frameworks.deepspeed.megatron_fork.forks import CATALOGUE
from translator.frameworks.megatron.extract import arguments_of

ENTRY = ("megatron.arguments", "parse_args")
_SOURCE = "deepspeed/__init__.py:%d"


def _core(name: str, kind: str, line: int) -> Entry:
    bare = kind == "bool"
    return Entry(
        f"--{name}",
        name,
        kind,
        "store_true" if bare else "store",
        (f"--{name}",),
        False if bare else None,
        arity=0 if bare else None,
        type_name=kind,
        source=_SOURCE % line,
    )


CORE = (
    _core("deepspeed", "bool", 270),
    _core("deepspeed_config", "str", 275),
    _core("deepscale", "bool", 277),
    _core("deepscale_config", "str", 282),
)


def extract(tree: SourceTree) -> list[Entry]:
    """Every argument of a checkout, by address. Raises `SourceError` when the tree is none of the fork's."""
    return sorted((*arguments_of(tree, *ENTRY), *CORE), key=lambda entry: entry.address)


def generate(version: str, source: Path) -> str:
    """The text of a catalogue, as `translator.catalogue.load` reads it."""
    return catalogue_text(CATALOGUE, version, extract(SourceTree(source)))
