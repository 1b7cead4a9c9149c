"""Setting variables: scalars, elements, arrays, attributes."""

from __future__ import annotations

from collections.abc import Mapping

from translator.findings import Place
from translator.shell.arithmetic import ArithmeticFaultError
from translator.shell.core import Core
from translator.shell.expand import UnknownArithmeticError
from translator.shell.state import Key, Var
from translator.shell.syntax import Assign
from translator.shell.values import HOLE, Chunk, Source, Unknown, Value


class Assigning(Core):
    """The part of the interpreter that changes variables."""

    def ifs(self) -> str | None:
        """The field separators; None for the usual blank, tab and newline."""
        var = self.state.vars.get("IFS")
        if var is None or var.scalar is None or var.scalar.text == " \t\n":
            return None
        return var.scalar.text

    def star_separator(self) -> str:
        """What joins ``"$*"``."""
        ifs = self.ifs()
        return " " if ifs is None else ifs[:1]

    def strict_unset(self) -> bool:
        """True under ``set -u``."""
        return self.state.options.get("nounset", False)

    def stop_unset(self, name: str, place: Place) -> None:
        """``set -u`` and a variable that is not set: bash would stop; reading goes on without it."""
        self.report(
            "R061", "error", f"{name} is not set, and the script runs under set -u", place,
            f"pass --set {name}=value" if not name.isdigit() else "pass it with --args",
        )  # fmt: skip

    def stop_required(self, name: str, message: str, place: Place) -> None:
        """``${NAME:?message}``."""
        self.report("R068", "error", f"{name} is required: {message}", place, f"pass --set {name}=value")

    def variable(self, name: str) -> Var | None:
        """A variable, through name references."""
        for _ in range(10):
            var = self.state.vars.get(name)
            if var is None or not var.reference or var.value is None:
                return var
            name = var.value.text
        return None

    def key(self, var: Var | None, index: Value) -> Key | None:
        """A subscript as the key of an array; None when it is not known."""
        if var is not None and var.assoc:
            return index.text
        try:
            number = self.expander.arithmetic(index)
        except (UnknownArithmeticError, ArithmeticFaultError):
            return None
        if number < 0 and var is not None and var.array:
            number += max(k for k in var.array if isinstance(k, int)) + 1
        return number

    def assign(self, name: str, index: str | None, value: Value, *, append: bool = False) -> None:
        """Set a variable or an element."""
        var = self.state.vars.get(name)
        if var is not None and var.readonly:
            return
        if var is not None and var.reference and var.value is not None and var.value.text != name:
            self.assign(var.value.text, index, value, append=append)
            return
        key: Key | None = None
        if index is not None:
            key = self.key(var, Value((Chunk(index, self.source, self.offset),)))
        elif var is not None and var.array is not None:
            key = "0" if var.assoc else 0
        if key is not None:
            elements = var.elements() if var is not None else {}
            self.spend(len(elements) // 128)
            elements[key] = self._joined(name, var, elements.get(key), value, append)
            self.state.vars[name] = (var or Var()).replaced(None, elements)
            return
        value = self._joined(name, var, var.value if var is not None else None, value, append)
        self.state.vars[name] = Var(value) if var is None else var.replaced(value)
        if self.state.options.get("allexport"):
            self.state.vars[name].exported = True

    def _joined(self, name: str, var: Var | None, old: Value | None, value: Value, append: bool) -> Value:
        if var is not None and var.integer:
            value = self._integer(value)
            if append and old is not None:
                both = Value((*old.chunks, Chunk("+", self.source, self.offset), *value.chunks))
                return self._integer(both)
        if var is not None and var.case:
            value = Value([
                Chunk(getattr(c.text, var.case)(), c.source, c.offset, c.unknown, c.flags) for c in value.chunks
            ])  # fmt: skip
        if append and old is not None:
            value = Value((*old.chunks, *value.chunks))
        if any(chunk.flags for chunk in value.chunks):
            value = Value([chunk if not chunk.flags else chunk.flagged(0) for chunk in value.chunks])
        return self._supplied(name, self.bounded(value))

    def _supplied(self, name: str, value: Value) -> Value:
        """What the user passed for a name takes the place of a value that cannot be known."""
        if value.known:
            return value
        given = self.given.get(name)
        if given is not None:
            return given
        if len(value.chunks) == 1:
            chunk = value.chunks[0]
            old = chunk.unknown
            if old is not None and old.name is None:
                unknown = Unknown(old.expression, name, old.reason, old.place)
                return Value((Chunk(chunk.text, chunk.source, chunk.offset, unknown, chunk.flags),))
        return value

    def _integer(self, value: Value) -> Value:
        try:
            number = self.expander.arithmetic(value)
        except (UnknownArithmeticError, ArithmeticFaultError):
            return value
        first = value.chunks[0] if value.chunks else Chunk("", self.source, self.offset)
        return Value((Chunk(str(number), first.source, first.offset),))

    def apply(self, assign: Assign, source: Source) -> None:
        """Carry out one assignment as written."""
        self.offset = assign.start
        if assign.array is not None:
            self._apply_array(assign, source)
            return
        value = self.expander.value(assign.value, source)
        index: str | None = None
        if assign.index is not None:
            index = self.expander.params.index_value(*assign.index, source).text
        self.assign(assign.name, index, value, append=assign.append)

    def _apply_array(self, assign: Assign, source: Source) -> None:
        name = assign.name
        if (var := self.state.vars.get(name)) is not None and var.reference and var.value is not None:
            name = var.value.text
        var = self.state.vars.get(name)
        elements: dict[Key, Value] = var.elements() if var is not None and assign.append else {}
        assoc = var is not None and var.assoc
        position = max((k for k in elements if isinstance(k, int)), default=-1) + 1
        plain: list[Value] = []
        for item in assign.array or ():
            if isinstance(item, Assign):
                assert item.index is not None
                index = self.expander.params.index_value(*item.index, source)
                key: Key | None = index.text if assoc else self.key(None, index)
                value = self.expander.value(item.value, source)
                if key is None:
                    continue
                old = elements.get(key)
                elements[key] = Value((*old.chunks, *value.chunks)) if item.append and old is not None else value
                position = key + 1 if isinstance(key, int) else position
                continue
            if assoc:
                plain.extend(self.expander.fields([item], source))
                continue
            for value in self._elements(item, source, elements, position - 1):
                elements[position] = self.bounded(self._plain(value))
                position += 1
        for key_value, value in zip(plain[::2], [*plain[1::2], Value(())], strict=False):
            elements[key_value.text] = self._plain(value)
        self.spend(len(elements) // 128)
        self.state.vars[name] = (var or Var()).replaced(None, elements)

    def _elements(self, item: object, source: Source, elements: dict[Key, Value], last: int) -> list[Value]:
        """The fields of one array word; a word that vanished leaves its mark on the element before."""
        before = len(self.holes)
        values = self.expander.fields([item], source)  # type: ignore[list-item]
        if len(self.holes) > before:
            marks = [Chunk("", source, u_offset(item), u, HOLE) for u in self.holes[before:]]
            del self.holes[before:]
            if last in elements:
                elements[last] = Value((*elements[last].chunks, *marks))
            elif values:
                values[0] = Value((*values[0].chunks, *marks))
        return values

    @staticmethod
    def _plain(value: Value) -> Value:
        if any(chunk.flags & ~(HOLE) for chunk in value.chunks):
            return Value([chunk.flagged(0) for chunk in value.chunks])
        return value

    def declare_local(self, name: str) -> None:
        """Remember the outer variable until the function returns."""
        if self.locals and name not in self.locals[-1]:
            self.locals[-1][name] = self.state.vars.get(name)

    def restore_locals(self, frame: Mapping[str, Var | None]) -> None:
        """Bring the outer variables back."""
        for name, var in frame.items():
            if var is None:
                self.state.vars.pop(name, None)
            else:
                self.state.vars[name] = var


def u_offset(item: object) -> int:
    """The offset of a word."""
    return int(getattr(item, "start", 0))
