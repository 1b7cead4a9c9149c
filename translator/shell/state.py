"""Variables during evaluation, and the union of two outcomes when a condition is not known."""

from __future__ import annotations

from collections.abc import Mapping

from translator.findings import Place
from translator.shell.syntax import Function
from translator.shell.values import Chunk, Source, Unknown, Value

Key = int | str


class Var:
    """A variable; replaced, never changed, so that copies of the state can share it."""

    __slots__ = ("array", "assoc", "case", "exported", "integer", "readonly", "reference", "value")

    def __init__(self, value: Value | None = None, array: Mapping[Key, Value] | None = None) -> None:
        self.value = value
        self.array = array
        self.assoc = False
        self.exported = False
        self.integer = False
        self.readonly = False
        self.reference = False
        self.case = ""

    def replaced(self, value: Value | None = None, array: Mapping[Key, Value] | None = None) -> Var:
        """The same variable with another value; attributes stay."""
        new = Var(value, array)
        new.assoc, new.exported, new.integer = self.assoc, self.exported, self.integer
        new.readonly, new.reference, new.case = self.readonly, self.reference, self.case
        return new

    @property
    def scalar(self) -> Value | None:
        """What ``$NAME`` gives: the value, or element 0 of an array."""
        if self.array is None:
            return self.value
        return self.array.get("0" if self.assoc else 0)

    def items(self) -> list[tuple[Key, Value]]:
        """Elements in the order in which ``${NAME[@]}`` gives them."""
        if self.array is None:
            return [] if self.value is None else [(0, self.value)]
        if self.assoc:
            return list(self.array.items())
        keys = list(self.array)
        ordered = sorted(keys)
        return list(self.array.items()) if keys == ordered else [(key, self.array[key]) for key in ordered]

    def elements(self) -> dict[Key, Value]:
        """A copy of the elements, in no particular order."""
        return dict(self.items()) if self.array is None else dict(self.array)

    def same(self, other: Var) -> bool:
        """True when both hold the same text."""
        if self is other:
            return True
        if (self.array is None) != (other.array is None):
            return False
        return [(key, value.text) for key, value in self.items()] == [(k, v.text) for k, v in other.items()]


class State:
    """All that a subshell would inherit."""

    __slots__ = ("functions", "options", "positional", "status", "vars")

    def __init__(self) -> None:
        self.vars: dict[str, Var] = {}
        self.functions: dict[str, Function] = {}
        self.positional: list[Value] = []
        self.options: dict[str, bool] = {}
        self.status: int | None = 0

    def copy(self) -> State:
        """An independent copy."""
        new = State()
        new.vars = dict(self.vars)
        new.functions = dict(self.functions)
        new.positional = list(self.positional)
        new.options = dict(self.options)
        new.status = self.status
        return new

    def take(self, other: State) -> None:
        """Become the other state."""
        self.vars, self.functions, self.positional = other.vars, other.functions, other.positional
        self.options, self.status = other.options, other.status


def merge(left: State, right: State, cause: Unknown, source: Source) -> tuple[State, list[str]]:
    """Either of two states: what differs becomes unknown. Also returns the names that differ."""
    merged = left.copy()
    differing: list[str] = []
    for name in {**left.vars, **right.vars}:
        one, two = left.vars.get(name), right.vars.get(name)
        if one is two or (one is not None and two is not None and one.same(two)):
            if one is not None and two is not None and two.exported and not one.exported:
                merged.vars[name] = two
            continue
        differing.append(name)
        merged.vars[name] = _either(name, one, two, cause, source)
    merged.functions = {**right.functions, **left.functions}
    if [v.text for v in left.positional] != [v.text for v in right.positional]:
        differing.append("@")
        merged.positional = _common_values(left.positional, right.positional, "$@", cause, source)
    if left.status != right.status:
        merged.status = None
    return merged, differing


def _either(name: str, one: Var | None, two: Var | None, cause: Unknown, source: Source) -> Var:
    pattern = one or two
    assert pattern is not None
    arrays = [v.array is not None for v in (one, two) if v is not None]
    if any(arrays):
        new = pattern.replaced(None, _either_array(name, one, two, cause, source))
        new.assoc = any(v.assoc for v in (one, two) if v is not None)
    else:
        new = pattern.replaced(
            _either_value(name, one.value if one else None, two.value if two else None, cause, source)
        )
    new.exported = any(v.exported for v in (one, two) if v is not None)
    return new


def _either_array(name: str, one: Var | None, two: Var | None, cause: Unknown, source: Source) -> dict[Key, Value]:
    left, right = (dict(v.items()) if v is not None else {} for v in (one, two))
    if (one is not None and one.assoc) or (two is not None and two.assoc):
        return {
            key: left[key]
            if key in left and key in right and left[key].text == right[key].text
            else _either_value(f"{name}[{key}]", left.get(key), right.get(key), cause, source)
            for key in {**left, **right}
        }
    common = _common_values(list(left.values()), list(right.values()), f"${{{name}[@]}}", cause, source)
    return dict(enumerate(common))


def _common_values(one: list[Value], two: list[Value], expression: str, cause: Unknown, source: Source) -> list[Value]:
    """The common beginning of two lists, then one unknown for whatever follows."""
    common: list[Value] = []
    for left, right in zip(one, two, strict=False):
        if left.text != right.text:
            break
        common.append(left)
    rest = [" ".join(v.text for v in values[len(common) :]) for values in (one, two)]
    common.append(Value([_unknown(expression, rest[0], rest[1], cause, source)]))
    return common


def _either_value(name: str, one: Value | None, two: Value | None, cause: Unknown, source: Source) -> Value:
    left, right = (v.text if v is not None else "" for v in (one, two))
    expression = f"${name}" if "[" not in name else f"${{{name}}}"
    head: list[Chunk] = []
    if one is not None and two is not None and one.known and two.known:
        length = next(
            (at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
        )
        while length and not left[length - 1].isspace():
            length -= 1
        head = slice_value(one, 0, length)
        left, right = left[length:], right[length:]
    return Value([*head, _unknown(expression, left, right, cause, source)])


def _unknown(expression: str, left: str, right: str, cause: Unknown, source: Source) -> Chunk:
    shown = [f"'{_short(text)}'" for text in (left, right)]
    reason = f"{shown[0]} or {shown[1]}, depending on {cause.said}"
    unknown = Unknown(expression, cause.name, reason, cause.place)
    return Chunk(expression, PlacedSource(cause.place), 0, unknown)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


class PlacedSource(Source):
    """Stands for a fixed place where there is no text to point into."""

    __slots__ = ("_place",)

    def __init__(self, place: Place) -> None:
        super().__init__("", place.file)
        self._place = place

    def place(self, offset: int, end: int | None = None) -> Place:
        """Always the same place."""
        return self._place


def slice_value(value: Value, low: int, high: int) -> list[Chunk]:
    """The chunks of characters ``low`` to ``high``; unknown chunks must not be cut through."""
    result: list[Chunk] = []
    at = 0
    for chunk in value.chunks:
        size = len(chunk.text)
        first, last = max(low - at, 0), min(high - at, size)
        if size == 0 and low <= at <= high:
            result.append(chunk)
        elif first < last:
            result.append(chunk if (first, last) == (0, size) else chunk.cut(first, last))
        at += size
    return result
