"""Expansion of words: parameters, substitutions, word splitting and quote removal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from translator.shell import arithmetic
from translator.shell.lexer import Arith, Cmd, Lexer, Lit, Opaque, Param, Part, RawWord
from translator.shell.params import Parameters
from translator.shell.splitting import Splitter
from translator.shell.syntax import Assign
from translator.shell.values import BREAK, HOLE, QUOTED, SOFT, SPLIT, Chunk, DerivedSource, Source, Unknown, Value

if TYPE_CHECKING:
    from translator.shell.interp import Interpreter


class UnknownArithmeticError(Exception):
    """An arithmetic expression depends on something unknown."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(unknown.expression)
        self.unknown = unknown


PUT_IT_THERE = "write the value in its place"


class Expander:
    """Expands parts of words against the interpreter's state."""

    def __init__(self, interp: Interpreter) -> None:
        self.interp = interp
        self.params = Parameters(interp, self)

    # -- words

    def fields(self, words: Iterable[RawWord | Assign], source: Source) -> list[Value]:
        """Words to fields, as the arguments of a command or the elements of an array."""
        result: list[Value] = []
        for word in words:
            if isinstance(word, Assign):
                raise TypeError("an assignment is not a word")
            parts = word.parts
            if len(parts) == 1 and type(parts[0]) is Lit:
                part = parts[0]
                if part.quoted or not part.text.startswith("~"):
                    result.append(self._literal(part, source))
                    continue
            chunks: list[Chunk] = []
            self.emit(parts, source, chunks, splitting=True)
            self._tilde(parts, chunks)
            self.split(chunks, result)
        self.interp.spend(len(result))
        return result

    def _literal(self, part: Lit, source: Source) -> Value:
        if isinstance(source, DerivedSource):
            chunks: list[Chunk] = []
            self._emit_literal(part, source, chunks, splitting=False)
            return Value(chunks)
        return Value((Chunk(part.text, source, part.start, None, QUOTED if part.quoted else 0),))

    def value(self, word: RawWord | None, source: Source) -> Value:
        """A word where no splitting happens: the right side of an assignment, the subject of ``case``."""
        if word is None:
            return Value(())
        return self.joined(word.parts, source)

    def joined(self, parts: Sequence[Part], source: Source) -> Value:
        """Parts as one string."""
        if len(parts) == 1 and type(parts[0]) is Lit and not parts[0].text.startswith("~"):
            return self._literal(parts[0], source)
        chunks: list[Chunk] = []
        self.emit(parts, source, chunks, splitting=False)
        self._tilde(parts, chunks)
        if any(chunk.flags & BREAK for chunk in chunks):
            chunks = [Chunk(" ", c.source, c.offset) if c.flags & BREAK else c for c in chunks]
        return Value(chunks)

    def span(self, start: int, end: int, source: Source) -> Value:
        """A span of text expanded like the inside of double quotes (heredocs, arithmetic)."""
        return self.joined(Lexer(source).span(start, end), source)

    # -- parts

    def emit(self, parts: Sequence[Part], source: Source, out: list[Chunk], *, splitting: bool) -> None:
        """Append the chunks of parts; unquoted expansions are marked for splitting when ``splitting``."""
        for part in parts:
            kind = type(part)
            if kind is Lit:
                self._emit_literal(part, source, out, splitting=False)  # type: ignore[arg-type]
            elif kind is Param:
                self.params.emit(part, source, out, splitting=splitting)  # type: ignore[arg-type]
            elif kind is Cmd:
                value = self.interp.substitute(part, source)  # type: ignore[arg-type]
                self.add(value, part, out, splitting)
            elif kind is Arith:
                assert isinstance(part, Arith)
                self.add(self.arithmetic_value(part.parts, part, source), part, out, splitting)
            else:
                assert isinstance(part, Opaque)
                self._emit_opaque(part, source, out)

    def _emit_literal(self, part: Lit, source: Source, out: list[Chunk], *, splitting: bool) -> None:
        flags = QUOTED if part.quoted else (SPLIT if splitting else 0)
        if isinstance(source, DerivedSource) and source.text.startswith(part.text, part.start):
            chunks = source.chunks_between(part.start, part.start + len(part.text))
            out.extend(c.flagged(flags) for c in chunks)
            if chunks:
                return
        out.append(Chunk(part.text, source, part.start, None, flags))

    def _emit_opaque(self, part: Opaque, source: Source, out: list[Chunk]) -> None:
        text = source.text[part.start : part.end]
        if part.reason == "unknown" and isinstance(source, DerivedSource):
            out.extend(chunk.flagged(QUOTED) for chunk in source.chunks_between(part.start, part.end))
            return
        place = source.place(part.start)
        if part.reason == "placeholder":
            self.interp.report("R071", "warning", f"{text} is a placeholder, not a value", place, PUT_IT_THERE)
        elif part.reason == "bad substitution":
            self.interp.report("R060", "error", f"{_short(text)} is not a valid expansion", place)
        unknown = Unknown(text, None, part.reason, place)
        out.append(Chunk(text, source, part.start, unknown, QUOTED))

    def add(self, value: Value, part: Part, out: list[Chunk], splitting: bool) -> None:
        """Append a value that an expansion gave, in that expansion's quoting context."""
        flags = QUOTED if part.quoted else (SPLIT if splitting else 0)
        if part.quoted and not value.chunks:
            out.append(Chunk("", self.interp.source, 0, None, QUOTED))
        out.extend([chunk.flagged(flags) for chunk in value.chunks])

    def _tilde(self, parts: Sequence[Part], chunks: list[Chunk]) -> None:
        first = parts[0] if parts else None
        if type(first) is Lit and not first.quoted and first.text.startswith("~") and chunks:
            chunk = chunks[0]
            head = re.match(r"~[\w.-]*", chunk.text)
            if head is None or not (chunk.text[head.end() :].startswith("/") or len(chunk.text) == head.end()):
                return
            name = head.group()
            home = self.interp.state.vars.get("HOME")
            if name == "~" and home is not None and home.scalar is not None:
                new = [c.flagged(QUOTED) for c in home.scalar.chunks]
            else:
                unknown = Unknown(name, "HOME" if name == "~" else None, "a home directory", chunk.place())
                new = [Chunk(name, chunk.source, chunk.offset, unknown, QUOTED)]
            chunks[0:1] = [*new, chunk.cut(len(name), len(chunk.text))]

    # -- splitting

    def split(self, chunks: list[Chunk], result: list[Value]) -> None:
        """Cut chunks into fields at breaks and, where marked, at IFS."""
        if len(chunks) == 1 and not chunks[0].flags & (SPLIT | BREAK | HOLE):
            if chunks[0].text or chunks[0].flags & QUOTED:
                result.append(Value(chunks))
            return
        splitter = Splitter(self.interp.ifs(), result)
        splitter.run(chunks)
        self.interp.holes.extend(hole.unknown for hole in splitter.holes if hole.unknown is not None)

    # -- arithmetic

    def arithmetic_value(self, parts: Sequence[Part], part: Part, source: Source) -> Value:
        """``$(( ))`` as a value: digits, or an unknown."""
        expression = source.text[part.start : part.end]
        value = self.joined(parts, source)
        try:
            number = self.arithmetic(value)
        except UnknownArithmeticError as error:
            unknown = Unknown(expression, error.unknown.name, error.unknown.reason, source.place(part.start))
            return Value((Chunk(expression, source, part.start, unknown),))
        except arithmetic.ArithmeticFaultError as error:
            place = source.place(part.start)
            names = list(dict.fromkeys(hole.name for hole in value.holes if hole.name))
            if names:
                reason, fix = not_set(names), supply(*names)
            else:
                reason, fix = str(error), ""
            self.interp.report("R066", "error", f"{_short(expression)}: {reason}", place, fix)
            unknown = Unknown(expression, names[0] if names else None, reason, place)
            return Value((Chunk(expression, source, part.start, unknown),))
        return Value((Chunk(str(number), source, part.start),))

    def arithmetic(self, text: Value) -> int:
        """The value of an expression. Raises `UnknownArithmeticError` and ``ArithmeticFaultError``."""
        for chunk in text.chunks:
            if chunk.is_unknown and chunk.unknown is not None:
                raise UnknownArithmeticError(chunk.unknown)
        return arithmetic.evaluate(text.text.replace('"', ""), self._number_of, self._set_number)

    def _number_of(self, name: str, index: str | None) -> str:
        value = self.params.lookup_element(name, index)
        if value is None:
            return ""
        for chunk in value.chunks:
            if chunk.is_unknown and chunk.unknown is not None and not chunk.flags & SOFT:
                raise UnknownArithmeticError(chunk.unknown)
            if chunk.flags & SOFT and chunk.unknown is not None:
                raise UnknownArithmeticError(chunk.unknown)
        return value.text

    def _set_number(self, name: str, index: str | None, text: str) -> None:
        self.interp.assign(name, index, Value((Chunk(text, self.interp.source, self.interp.offset),)))


def supply(*names: str) -> str:
    """How the user can give the values of variables and positional parameters."""
    parameters = [name for name in names if name.isdigit()]
    ways = [f"--set {name}=value" for name in names if not name.isdigit()]
    if parameters:
        ways.append(f"{_parameters(parameters)} with --args")
    return f"pass {' and '.join(ways)}"


def not_set(names: Sequence[str]) -> str:
    """That variables and positional parameters are not set."""
    what = [name for name in names if not name.isdigit()]
    parameters = [name for name in names if name.isdigit()]
    if parameters:
        what.append(f"positional {_parameters(parameters)}")
    return f"{' and '.join(what)} {'is' if len(names) == 1 else 'are'} not set"


def _parameters(numbers: Sequence[str]) -> str:
    return f"parameter{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
