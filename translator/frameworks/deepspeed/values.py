"""Values of a DeepSpeed configuration against the catalogue.

Strict sections are pydantic models in lax mode: ``"true"`` is a bool, ``5e8`` an integer, ``"2"`` an integer too, but
``"5e8"`` is not (checked with pydantic 2.14). Lax sections check nothing; a value of another type is kept as it is and
fails, or does not, where it is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from translator.catalogue import Entry

STRICT_ACTIONS = frozenset({"strict", "deprecated"})
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "off", "f", "false", "n", "no"})
_WORDS = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "list": "a list",
    "dict": "an object",
}


@dataclass(frozen=True, slots=True)
class Auto:
    """The value ``"auto"``: transformers or accelerate fill it in before DeepSpeed sees it."""

    def __str__(self) -> str:
        return "auto"


AUTO: Final = Auto()
LARGEST: Final = 2**63
NUMBERS: Final = frozenset({"int", "float"})


@dataclass(frozen=True, slots=True)
class Typed:
    """A value as DeepSpeed has it; ``problem`` says what is wrong with it."""

    value: object
    problem: str = ""


def takes_auto(entry: Entry) -> bool:
    """Whether ``"auto"`` is a value of the key itself (``pipeline.stages``), and not for a trainer to fill in."""
    return entry.default == "auto" or (entry.choices is not None and "auto" in entry.choices)


def describe(entry: Entry) -> str:
    """What a key takes, in words."""
    if entry.choices is not None and entry.arity is None:
        return "one of " + ", ".join(map(str, entry.choices))
    single = _WORDS.get(entry.kind, entry.type_name)
    bounds = [word for word in entry.type_name.split() if "=" in word]
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    limits = " and ".join(f"{signs[name]} {limit}" for name, _, limit in (bound.partition("=") for bound in bounds))
    words = f"a list, each item {single}" if entry.arity == "*" else single
    return f"{words} {limits}".strip()


def absurd(value: object) -> str:
    """What is wrong with a number that no size, count or rate can be; empty for anything else.

    Sizes end up in 64-bit integers of torch, and rates beyond that range overflow with the first product.
    """
    if isinstance(value, list):
        return next((problem for item in value if (problem := absurd(item))), "")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return ""
    return "" if math.isfinite(value) and abs(value) < LARGEST else "nothing can be that large"


def typed(entry: Entry, value: object) -> Typed:
    """A value of a key, as the model or the plain look-up leaves it."""
    if problem := absurd(value):
        return Typed(value, problem)
    if entry.action in STRICT_ACTIONS:
        return _strict(entry, value)
    if value is None or entry.kind == "custom" or _is_kind(entry.kind, value):
        return Typed(value)
    return Typed(value, f"{describe(entry)} is expected")


def _is_kind(kind: str, value: object) -> bool:
    if kind == "bool":
        return isinstance(value, bool)
    if kind in {"int", "float"}:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, {"str": str, "list": list, "dict": dict}.get(kind, object))


def _strict(entry: Entry, value: object) -> Typed:
    if value is None:
        return Typed(None) if entry.optional else Typed(None, f"null is not {describe(entry)}")
    if entry.arity == "*":
        items = [value] if isinstance(value, str) and "leaf_module" in entry.address else value
        if not isinstance(items, list):
            return Typed(value, f"{describe(entry)} is expected")
        found = [_scalar(entry, item) for item in items]
        bad = next((item.problem for item in found if item.problem), "")
        return Typed([item.value for item in found], bad)
    return _scalar(entry, value)


def _scalar(entry: Entry, value: object) -> Typed:
    problem = f"{describe(entry)} is expected"
    if entry.choices is not None:
        return _choice(entry, value, problem)
    converted: object | None = value
    if entry.kind == "bool":
        converted = as_bool(value)
    elif entry.kind == "int":
        converted = as_int(value)
    elif entry.kind == "float":
        converted = as_float(value)
    elif entry.kind in {"str", "list", "dict"}:
        converted = value if _is_kind(entry.kind, value) else None
    if converted is None:
        return Typed(value, problem)
    return Typed(converted, "" if _within(entry, converted) else problem)


def _choice(entry: Entry, value: object, problem: str) -> Typed:
    assert entry.choices is not None
    whole = all(isinstance(choice, int) for choice in entry.choices)
    found = as_int(value) if whole else value
    if isinstance(found, list | dict) or found not in entry.choices:
        return Typed(value, problem)
    return Typed(found)


def _within(entry: Entry, value: object) -> bool:
    if not isinstance(value, int | float):
        return True
    for word in entry.type_name.split():
        name, equals, limit = word.partition("=")
        if equals:
            bound = float(limit)
            fits = {"ge": value >= bound, "gt": value > bound, "le": value <= bound, "lt": value < bound}.get(
                name, True
            )
            if not fits:
                return False
    return True


def as_bool(value: object) -> bool | None:
    """A bool as pydantic takes it, or None."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in {0, 1}:
        return bool(value)
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    return None


def as_int(value: object) -> int | None:
    """An integer as pydantic takes it, or None."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) <= 64:
        head, _, tail = value.strip().partition(".")
        try:
            return int(head) if not tail.strip("0") else None
        except ValueError:
            return None
    return None


def as_float(value: object) -> float | None:
    """A number as pydantic takes it, or None."""
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None
