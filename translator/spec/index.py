"""The leaves of the spec as a list, without pydantic: names, types, bounds, what they touch.

``schemas/spec.json`` is generated from the models (``python -m translator.spec.whole -o schemas/spec.json``; a test
compares the two). Building the models takes longer than a whole conversion, so what only needs to know the leaves,
or to see that a value is sound, reads this.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from translator.resources import schema_path
from translator.spec.touches import Touches

FILE = "spec.json"


class LeafInfo:
    """What is known of one leaf without a value: path, documentation, what it touches, which values it takes.

    ``kind`` is ``int float bool str choice``, a list of one of them (``list[int]``) or ``dict[str, str]``;
    ``choices`` belongs to ``choice``; ``low`` and ``high`` are inclusive bounds.
    """

    __slots__ = ("choices", "doc", "high", "kind", "low", "path", "touches", "type_name")

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.path: str = row["path"]
        self.doc: str = row["doc"]
        self.touches = Touches(row["touches"])
        self.type_name: str = row["type"]
        self.choices: tuple[str, ...] = tuple(row.get("choices", ()))
        self.kind: str = "choice" if self.choices else self.type_name
        self.low: float | None = row.get("ge")
        self.high: float | None = row.get("le")

    def surely_takes(self, value: object) -> bool:
        """Whether the leaf takes ``value`` as it is. False means unsure: the model itself must decide then."""
        if self.kind.startswith("list["):
            item = self.kind[5:-1]
            return type(value) is list and all(_is(item, element) for element in value)
        if self.kind == "dict[str, str]":
            return type(value) is dict and all(_is("str", part) for pair in value.items() for part in pair)
        if self.kind == "choice":
            return type(value) is str and value in self.choices
        if not _is(self.kind, value):
            return False
        low, high = self.low, self.high
        # Compared this way round a NaN is refused, as the model refuses it.
        return (low is None or value >= low) and (high is None or value <= high)  # type: ignore[operator]


def _is(kind: str, value: object) -> bool:
    found = type(value)
    if kind == "float":
        return found is float or (found is int and abs(value) < 2**53)  # type: ignore[arg-type]
    if kind == "str":
        return found is str and (value.isascii() or _encodable(value))  # type: ignore[attr-defined,arg-type]
    return (kind == "int" and found is int) or (kind == "bool" and found is bool)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def leaves() -> dict[str, LeafInfo]:
    """Every leaf of the spec by dotted path, in the order of the sections (``extras`` is no leaf)."""
    with schema_path(FILE).open("rb") as stream:
        return {row["path"]: LeafInfo(row) for row in json.loads(stream.read())["leaves"]}


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted paths to nested dictionaries, the form that ``Spec.model_validate`` takes; None is left out."""
    root: dict[str, Any] = {}
    for path, value in flat.items():
        if value is None:
            continue
        node = root
        *parents, last = path.split(".")
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = value
    return root
