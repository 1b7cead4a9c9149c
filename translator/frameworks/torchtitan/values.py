"""Values of TOML against the type of an option.

torchtitan checks nothing of the kind when it loads a file (``config/manager.py:161-185`` of 0.2.2, and tyro only warns
about a default that is not of its type), so a value of another type is read as what it says, and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from translator.catalogue import Entry

UNUSABLE = object()
# Choices that the code compares in lower case (components/checkpoint.py:233 of 0.2.2).
_CASELESS = frozenset({"checkpoint.async_mode"})


class Typed(NamedTuple):
    """A value as the option's type has it, or `UNUSABLE`.

    ``exact`` is whether nothing had to be changed, ``known`` whether it is among the choices.
    """

    value: object
    exact: bool = True
    known: bool = True


def _bool(value: object) -> object:
    if isinstance(value, int) and value in {0, 1}:
        return bool(value)
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    return UNUSABLE


def _int(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return UNUSABLE
    return UNUSABLE


def _float(value: object) -> object:
    if isinstance(value, (bool, str)):
        try:
            return float(value)
        except ValueError:
            return UNUSABLE
    return UNUSABLE


def _str(value: object) -> object:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else UNUSABLE


_KINDS: dict[str, tuple[type, Callable[[object], object]]] = {
    "bool": (bool, _bool),
    "int": (int, _int),
    "float": (float, _float),
    "str": (str, _str),
}


def _scalar(entry: Entry, value: object) -> tuple[object, bool]:
    kind, convert = _KINDS.get(entry.kind, (object, lambda _: UNUSABLE))
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value, True
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        # torchtitan keeps the integer; as a number it is the same.
        try:
            return (value if "int" in entry.type_name else float(value)), True
        except OverflowError:
            return UNUSABLE, False
    return convert(value), False


def _list(entry: Entry, value: object, depth: int) -> tuple[object, bool]:
    if depth == 0:
        return _scalar(entry, value)
    exact = isinstance(value, list)
    if not isinstance(value, list):
        if isinstance(value, str) and "| str" in entry.type_name:
            return value, True
        if depth > 1:
            return UNUSABLE, False
        value = value.split(",") if isinstance(value, str) else [value]
    items: list[object] = []
    for item in value:
        inner, same = _list(entry, item, depth - 1)
        if inner is UNUSABLE or (depth > 1 and not isinstance(item, list)):
            return UNUSABLE, False
        items.append(inner)
        exact = exact and same
    return items, exact


def typed(entry: Entry, value: object) -> Typed:
    """The value of an option, checked against the catalogue."""
    found, exact = _list(entry, value, {"*": 1, "+": 1, "**": 2}.get(str(entry.arity), 0))
    if found is UNUSABLE:
        return Typed(UNUSABLE, exact=False)
    if entry.address in _CASELESS and isinstance(found, str):
        found = found.lower()
    single = [found] if not isinstance(found, list) else found
    known = entry.choices is None or all(item in entry.choices for item in single)
    return Typed(found, exact, known)


def describe(entry: Entry) -> str:
    """The type of an option in words."""
    if entry.choices is not None:
        return "one of " + ", ".join(map(str, entry.choices))
    plain = {"bool": "true or false", "int": "an integer", "float": "a number", "str": "a string"}.get(
        entry.kind, entry.kind
    )
    return {"*": f"a list, each item {plain}", "**": f"a list of lists, each item {plain}"}.get(str(entry.arity), plain)


def shown(value: object) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def near(name: str, pool: Iterable[str]) -> str:
    """A question that names what may have been meant; empty when nothing is near."""
    from rapidfuzz import fuzz, process

    names = sorted(pool)
    hits = [hit[0] for hit in process.extract(name, names, scorer=fuzz.ratio, limit=3, score_cutoff=70)]
    hits = hits or [other for other in names if len(name) > 2 and other.startswith(name)][:3]
    return "did you mean " + " or ".join(hits) + "?" if hits else ""
