"""What the functions of torchtitan's own config registries state, for launch lines that name one of them.

Facts only: ``schemas/torchtitan/configs-<version>.json`` is generated from upstream source, by the same reader that
reads a person's configuration (``ttx catalogue extract torchtitan 0.3.0 --configs --source DIR``).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from translator.catalogue.classes import decode
from translator.errors import SourceError
from translator.findings import Place
from translator.native import Given, Missing, Native
from translator.resources import schema_path

MODELS = "torchtitan/models"
REGISTRY = "config_registry.py"
# Marks a value that was not evaluated; its expression is kept.
OPEN = "open"
# Image generation has a trainer of its own.
SKIPPED = frozenset({"flux"})


@cache
def _document(version: str) -> Any:
    try:
        return json.loads(schema_path("torchtitan", f"configs-{version}.json").read_bytes())
    except OSError:
        return {}


def functions_of(module: str, version: str) -> tuple[str, ...]:
    """The configuration functions of a module of torchtitan's own; empty for any other."""
    found = _document(version).get(module.removeprefix("torchtitan.models.").removesuffix(".config_registry"), {})
    return tuple(found) if isinstance(found, dict) else ()


def read(module: str, function: str, version: str, place: Place | None) -> Native:
    """What a function states; all of it stands where the launch names it.

    Raises `SourceError` when the module has no such function.
    """
    known = functions_of(module, version)
    name = module.removeprefix("torchtitan.models.").removesuffix(".config_registry")
    if function not in known:
        shown = ", ".join(known[:12]) + (f" and {len(known) - 12} more" if len(known) > 12 else "")
        raise SourceError(f"torchtitan's {name} has no function {function}", place=place, fix=f"it has {shown}")
    native = Native("torchtitan", version)
    for address, value in _document(version)[name][function].items():
        is_open = isinstance(value, dict) and value.keys() == {OPEN}
        stated = Missing(value[OPEN], "torchtitan makes it while running", "") if is_open else decode(value)
        native.given[address] = Given(address, stated, address, place)
    return native


def generate(version: str, source: Path) -> str:
    """The file of one version, as text. Raises `SourceError` for a tree without registries."""
    from translator.catalogue.document import classes_text
    from translator.frameworks.torchtitan.extract_python import as_json
    from translator.frameworks.torchtitan.syntax_python import read_source
    from translator.pyconfig import functions
    from translator.source import Source

    tables: dict[str, dict[str, Any]] = {}
    for path in sorted(Path(source, MODELS).glob(f"*/{REGISTRY}")):
        family = path.parent.name
        if family in SKIPPED:
            continue
        text = path.read_text(encoding="utf-8")
        beside = Source(str(path), text, path.parent)
        tables[family] = {}
        for item in functions(text, str(path)):
            native = read_source(str(path), text, function=item.name, version=version, read_sibling=beside.read_sibling)
            tables[family][item.name] = {
                name: {OPEN: given.missing.expression} if given.missing is not None else as_json(given.value)
                for name, given in native.given.items()
            }
    if not tables:
        raise SourceError(f"{source} has no {MODELS}/*/{REGISTRY}")
    return classes_text("torchtitan", version, tables)
