"""One entrance to the extractors: which framework has which generated files, and how each is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from translator.catalogue import extract_deepspeed, extract_megatron, extract_torchtitan, extract_transformers
from translator.catalogue.document import catalogue_text, flavors_text
from translator.catalogue.model import Entry
from translator.catalogue.source_tree import SourceTree
from translator.errors import UsageError

_OPTIONS: dict[str, Callable[[SourceTree], list[Entry]]] = {
    "deepspeed": extract_deepspeed.extract,
    "megatron": extract_megatron.extract,
    "torchtitan": extract_torchtitan.extract,
    "transformers": extract_transformers.extract,
}


def extract_entries(framework: str, source: Path) -> list[Entry]:
    """The options that a source tree declares, in order of address.

    Raises `UsageError` for a framework without an extractor, `SourceError` for a tree that is not of that framework.
    """
    extractor = _OPTIONS.get(framework)
    if extractor is None:
        known = ", ".join(sorted(_OPTIONS))
        raise UsageError(f"no extractor for {framework!r}", fix=f"known: {known}")
    return extractor(SourceTree(source))


def generate(framework: str, version: str, source: Path) -> str:
    """The catalogue file of one version, as text."""
    return catalogue_text(framework, version, extract_entries(framework, source))


def generate_flavors(version: str, source: Path) -> str:
    """torchtitan's flavor tables of one version, as text."""
    return flavors_text("torchtitan", version, *extract_torchtitan.extract_flavors(SourceTree(source)))
