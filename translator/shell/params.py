"""``$NAME``, ``${NAME...}`` and their operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from translator.shell import environ
from translator.shell.arithmetic import ArithmeticFaultError
from translator.shell.lexer import INDEX, Lexer, Param, Part
from translator.shell.patterns import Pattern
from translator.shell.state import slice_value
from translator.shell.values import BREAK, HOLE, QUOTED, SOFT, SPLIT, Chunk, Source, Unknown, Value

if TYPE_CHECKING:
    from translator.shell.expand import Expander
    from translator.shell.interp import Interpreter

_DEFAULTING = frozenset({"-", ":-", "=", ":=", "?", ":?", "+", ":+"})


def is_empty(value: Value) -> bool:
    """True when bash would see the empty string (a scheduler's variable counts as not set)."""
    return all(not chunk.text or chunk.flags & SOFT for chunk in value.chunks)


class Parameters:
    """Looks parameters up and applies the operators of ``${}``."""

    def __init__(self, interp: Interpreter, expander: Expander) -> None:
        self.interp = interp
        self.expander = expander

    # -- lookup

    def lookup(self, name: str, source: Source, start: int, text: str) -> Value | None:
        """The value of a name, a digit or a special character; None when it is not set."""
        state = self.interp.state
        var = state.vars.get(name)
        if var is not None:
            if var.reference and var.value is not None and var.value.text != name:
                return self.lookup_element(var.value.text, None)
            return var.scalar
        if name.isdigit():
            number = int(name[:9])
            if number == 0:
                return self.interp.zero
            return state.positional[number - 1] if number <= len(state.positional) else None
        special = self._special(name, source, start)
        if special is not None:
            return special
        if environ.from_machine(name) or name in {"$", "!", "-", "_"}:
            return self._unknown(name, source, start, text, "set by the machine")
        if environ.from_launcher(name):
            sure = self.interp.scheduled and name.startswith("SLURM")
            return self._unknown(
                name, source, start, text, "set by the launcher or scheduler", flags=0 if sure else SOFT
            )
        return None

    def _special(self, name: str, source: Source, start: int) -> Value | None:
        state = self.interp.state
        text: str | None = None
        if name == "#":
            text = str(len(state.positional))
        elif name == "?":
            if state.status is None:
                return self._unknown("?", source, start, "$?", "another program's exit status")
            text = str(state.status)
        elif name in {"@", "*"}:
            chunks: list[Chunk] = []
            for value in state.positional:
                if chunks:
                    chunks.append(Chunk(" ", source, start))
                chunks.extend(value.chunks)
            return Value(chunks) if state.positional else None
        elif name == "BASH_SOURCE":
            return self.interp.file_name
        elif name == "FUNCNAME":
            text = self.interp.function_name or None
        return None if text is None else Value((Chunk(text, source, start),))

    def _unknown(self, name: str, source: Source, start: int, text: str, reason: str, *, flags: int = 0) -> Value:
        supplied = name if name[0].isalpha() or name[0] == "_" else None
        unknown = Unknown(text, supplied, reason, source.place(start))
        return Value((Chunk(text, source, start, unknown, flags),))

    def lookup_element(self, name: str, index: str | None) -> Value | None:
        """A variable or array element by its index text, as arithmetic and references use it."""
        if "[" in name and name.endswith("]"):
            name, index = name[:-1].split("[", 1)
        var = self.interp.state.vars.get(name)
        if index is None or var is None:
            return self.lookup(name, self.interp.source, self.interp.offset, f"${name}")
        if index in {"@", "*"}:
            return self._join([v for _, v in var.items()])
        key = self.interp.key(var, Value((Chunk(index, self.interp.source, self.interp.offset),)))
        return dict(var.items()).get(key) if key is not None else None

    def _join(self, values: Sequence[Value], separator: str | None = None) -> Value:
        separator = self.interp.star_separator() if separator is None else separator
        chunks: list[Chunk] = []
        for at, value in enumerate(values):
            if at and separator:
                chunks.append(Chunk(separator, self.interp.source, self.interp.offset))
            chunks.extend(value.chunks)
        return Value(chunks)

    # -- expansion

    def emit(self, part: Param, source: Source, out: list[Chunk], *, splitting: bool) -> None:
        """Append what a parameter expands to."""
        if part.op == "" and part.index is None and not part.prefix and part.name not in {"@", "*"}:
            value = self.lookup(part.name, source, part.start, source.text[part.start : part.end])
            if value is None:
                value = self._hole(part, source)
            self.expander.add(value, part, out, splitting)
            return
        values = self._list(part, source)
        if values is None:
            self._emit_scalar(part, source, out, splitting)
        else:
            self._emit_list(part, values, source, out, splitting)

    def _hole(self, part: Param, source: Source) -> Value:
        if self.interp.strict_unset() and part.name not in {"@", "*"}:
            self.interp.stop_unset(part.name, source.place(part.start))
        text = source.text[part.start : part.end]
        unknown = Unknown(text, part.name, f"{part.name} is not set", source.place(part.start))
        return Value((Chunk("", source, part.start, unknown, HOLE),))

    def _list(self, part: Param, source: Source) -> list[Value] | None:
        """The elements for ``$@``, ``${A[@]}``, ``${!A[@]}``, ``${!prefix*}``; None for a scalar."""
        state = self.interp.state
        if part.op == "prefix":
            names = sorted(name for name in state.vars if name.startswith(part.name))
            return [Value((Chunk(name, source, part.start),)) for name in names]
        if part.index is None:
            return list(state.positional) if part.name in {"@", "*"} and not part.prefix else None
        if self._index_text(part, source) not in {"@", "*"}:
            return None
        var = self.interp.variable(part.name)
        if part.prefix == "!":
            return [Value((Chunk(str(k), source, part.start),)) for k, _ in var.items()] if var is not None else []
        if var is not None:
            return [value for _, value in var.items()]
        found = self.lookup(part.name, source, part.start, source.text[part.start : part.end])
        return [] if found is None else [found]

    def _index_text(self, part: Param, source: Source) -> str:
        index = part.index or ()
        return source.text[index[0].start : index[-1].end] if index else ""

    def _emit_list(self, part: Param, values: list[Value], source: Source, out: list[Chunk], splitting: bool) -> None:
        star = part.name == "*" or self._index_text(part, source) == "*"
        if part.prefix == "#":
            self.expander.add(self._count(part, values, source), part, out, splitting)
            return
        if part.op in _DEFAULTING:
            joined = self._join(values, None if star else " ") if values else None
            if part.op[-1] == "+" or joined is None or (part.op[0] == ":" and is_empty(joined)):
                chosen = self._defaulted(part, joined, source, out, splitting)
                if chosen is not None:
                    self.expander.add(chosen, part, out, splitting)
                return
        elif part.op == ":":
            values = self._slice_list(part, values, source)
        elif part.op not in {"", "prefix"}:
            values = [self._operate(part, value, source) for value in values]
        if star and part.quoted:
            self.expander.add(self._join(values), part, out, splitting)
            return
        if not values and not part.quoted and part.index is not None and part.name not in self.interp.state.vars:
            out.append(self._hole(part, source).chunks[0])
        flags = QUOTED if part.quoted else (SPLIT if splitting else 0)
        gap = Chunk("", source, part.start, None, BREAK)
        ifs = self.interp.ifs()
        joint = Chunk(ifs[0], source, part.start, None, SPLIT) if ifs and flags == SPLIT else gap
        for at, value in enumerate(values):
            if at:
                # Behind an empty element a blank joins nothing: a separator after it belongs to the gap.
                out.append(joint if values[at - 1].text or not joint.text.isspace() else gap)
            if part.quoted and not value.text:
                out.append(Chunk("", source, part.start, None, QUOTED))
            out.extend(chunk.flagged(flags) for chunk in value.chunks)

    def _count(self, part: Param, values: list[Value], source: Source) -> Value:
        for value in values:
            for unknown in value.unknowns:
                if unknown.expression.endswith("[@]}") or unknown.expression == "$@":
                    return self._refused(part, source, unknown)
        return Value((Chunk(str(len(values)), source, part.start),))

    def _slice_list(self, part: Param, values: list[Value], source: Source) -> list[Value]:
        try:
            low = self.expander.arithmetic(self.expander.joined(part.arg, source))
            count = None
            if part.arg2 is not None:
                count = self.expander.arithmetic(self.expander.joined(part.arg2, source))
        except Exception as error:
            return [self._refused(part, source, self._cause(error, part, source))]
        if part.name in {"@", "*"}:
            values = [self.interp.zero, *values]
            if low == 0 and count is not None:
                return values[: max(count, 0)]
        var = self.interp.variable(part.name)
        if var is not None and var.array and not var.assoc:
            keys = [key for key, _ in var.items() if isinstance(key, int)]
            low = low + keys[-1] + 1 if low < 0 else low
            if low < 0:
                return []
            low = sum(1 for key in keys if key < low)
        elif low < 0:
            low += len(values)
            if low < 0:
                return []
        return values[low:] if count is None else values[low : low + max(count, 0)]

    def _cause(self, error: Exception, part: Param, source: Source) -> Unknown:
        from translator.shell.expand import UnknownArithmeticError

        if isinstance(error, UnknownArithmeticError):
            return error.unknown
        if not isinstance(error, ArithmeticFaultError):
            raise error
        return Unknown(source.text[part.start : part.end], None, str(error), source.place(part.start))

    def _refused(self, part: Param, source: Source, cause: Unknown) -> Value:
        text = source.text[part.start : part.end]
        unknown = Unknown(text, cause.name, cause.reason, source.place(part.start))
        return Value((Chunk(text, source, part.start, unknown),))

    # -- scalars with operators

    def _scalar(self, part: Param, source: Source) -> Value | None:
        text = source.text[part.start : part.end]
        name = part.name
        if part.prefix == "!":
            pointer = self.lookup(name, source, part.start, text)
            if pointer is None:
                return None
            if not pointer.known:
                return self._refused(part, source, pointer.unknowns[0])
            target = pointer.text
            if target.isdigit():
                return self.lookup(target, source, part.start, f"${target}")
            return self.lookup_element(target, None)
        if part.index is None:
            return self.lookup(name, source, part.start, text)
        var = self.interp.variable(name)
        index = self.expander.joined(part.index, source)
        if var is None:
            zero = index.text in {"0", ""} or name in {"BASH_SOURCE", "FUNCNAME"}
            return self.lookup(name, source, part.start, text) if zero else None
        if not index.known:
            return self._refused(part, source, index.unknowns[0])
        key = self.interp.key(var, index)
        return dict(var.items()).get(key) if key is not None else None

    def _emit_scalar(self, part: Param, source: Source, out: list[Chunk], splitting: bool) -> None:
        value = self._scalar(part, source)
        if part.prefix == "#":
            self.expander.add(self._length(part, value, source), part, out, splitting)
            return
        if part.op in _DEFAULTING:
            chosen = self._defaulted(part, value, source, out, splitting)
            if chosen is not None:
                self.expander.add(chosen, part, out, splitting)
            return
        if value is None:
            value = self._hole(part, source)
        elif part.op:
            value = self._operate(part, value, source)
        self.expander.add(value, part, out, splitting)

    def _length(self, part: Param, value: Value | None, source: Source) -> Value:
        if value is not None and not value.known:
            return self._refused(part, source, value.unknowns[0])
        return Value((Chunk(str(len(value.text) if value is not None else 0), source, part.start),))

    def _defaulted(
        self, part: Param, value: Value | None, source: Source, out: list[Chunk], splitting: bool
    ) -> Value | None:
        """``:-`` and relatives. Emits the argument itself, then returns None; otherwise returns the value."""
        op = part.op
        soft = value is not None and bool(value.chunks) and all(c.flags & SOFT for c in value.chunks)
        missing = value is None or soft or (op[0] == ":" and is_empty(value))
        if op[-1] == "+":
            if missing:
                return Value(())
        elif not missing:
            return value
        if op[-1] == "=":
            default = self.expander.joined(part.arg, source)
            self.interp.assign(part.name, None, default)
            return default
        if op[-1] == "?":
            message = self.expander.joined(part.arg, source).text or "parameter not set"
            self.interp.stop_required(part.name, message, source.place(part.start))
            return Value(())
        self._emit_argument(part, source, out, splitting)
        return None

    def _emit_argument(self, part: Param, source: Source, out: list[Chunk], splitting: bool) -> None:
        if part.quoted and not part.arg:
            out.append(Chunk("", source, part.start, None, QUOTED))
            return
        before = len(out)
        self.expander.emit(part.arg, source, out, splitting=splitting)
        if splitting and not part.quoted:
            out[before:] = [
                chunk if chunk.flags & (QUOTED | SPLIT | BREAK) else chunk.flagged(SPLIT) for chunk in out[before:]
            ]

    def _operate(self, part: Param, value: Value, source: Source) -> Value:
        """Operators that work on the text of a value that is set."""
        if not value.known:
            return self._refused(part, source, value.unknowns[0])
        op = part.op
        if op[0] in "#%":
            return self._trim(part, value, source)
        if op[0] == "/":
            return self._replace(part, value, source)
        if op == ":":
            return self._substring(part, value, source)
        if op[0] in "^,":
            return _cased(value, upper=op[0] == "^", first=len(op) == 1)
        if op in {"@U", "@L"}:
            return _cased(value, upper=op == "@U", first=False)
        if op == "@u":
            return _cased(value, upper=True, first=True)
        cause = Unknown(source.text[part.start : part.end], None, f"{op} is not evaluated", source.place(part.start))
        return self._refused(part, source, cause)

    def _pattern(self, parts: Sequence[Part], source: Source) -> Pattern | Unknown:
        chunks: list[Chunk] = []
        self.expander.emit(parts, source, chunks, splitting=False)
        for chunk in chunks:
            if chunk.is_unknown and chunk.unknown is not None:
                return chunk.unknown
        return Pattern(chunks)

    def _trim(self, part: Param, value: Value, source: Source) -> Value:
        pattern = self._pattern(part.arg, source)
        if isinstance(pattern, Unknown):
            return self._refused(part, source, pattern)
        longest, text = len(part.op) == 2, value.text
        if part.op[0] == "#":
            cut = pattern.prefix(text, longest=longest)
            low, high = (max(cut, 0), len(text)) if cut is not None else (0, 0)
        else:
            cut = pattern.suffix(text, longest=longest)
            low, high = (0, cut if cut >= 0 else len(text)) if cut is not None else (0, 0)
        if cut is None:
            return self._refused(part, source, self._costly(part, source))
        return Value(slice_value(value, low, high))

    def _costly(self, part: Param, source: Source) -> Unknown:
        text = source.text[part.start : part.end]
        return Unknown(text, None, "the pattern is too costly to match", source.place(part.start))

    def _replace(self, part: Param, value: Value, source: Source) -> Value:
        pattern = self._pattern(part.arg, source)
        if isinstance(pattern, Unknown):
            return self._refused(part, source, pattern)
        new = self.expander.joined(part.arg2, source).chunks if part.arg2 else ()
        text = value.text
        spans: list[tuple[int, int]] | None
        if part.op in {"/#", "/%"}:
            cut = pattern.prefix(text, longest=True) if part.op == "/#" else pattern.suffix(text, longest=True)
            if cut is None:
                spans = None
            elif cut < 0:
                spans = []
            else:
                spans = [(0, cut)] if part.op == "/#" else [(cut, len(text))]
        else:
            spans = pattern.spans(text, everywhere=part.op == "//")
        if spans is None:
            return self._refused(part, source, self._costly(part, source))
        chunks: list[Chunk] = []
        at = 0
        self.interp.spend(len(spans))
        for low, high in spans:
            chunks.extend(slice_value(value, at, low))
            chunks.extend(new)
            at = high
        chunks.extend(slice_value(value, at, len(text)))
        return self.interp.bounded(Value(chunks))

    def _substring(self, part: Param, value: Value, source: Source) -> Value:
        try:
            low = self.expander.arithmetic(self.expander.joined(part.arg, source))
            size = len(value.text)
            high = size
            if part.arg2 is not None:
                count = self.expander.arithmetic(self.expander.joined(part.arg2, source))
                start = low + size if low < 0 else low
                high = count + size if count < 0 else start + count
        except Exception as error:
            return self._refused(part, source, self._cause(error, part, source))
        if low < 0:
            low += size
        if low < 0 or low > size:
            return Value(())
        return Value(slice_value(value, low, min(max(high, low), size)))

    def index_value(self, start: int, end: int, source: Source) -> Value:
        """The subscript of an assignment."""
        return self.expander.joined(Lexer(source).span(start, end, INDEX), source)


def _cased(value: Value, *, upper: bool, first: bool) -> Value:
    def change(text: str) -> str:
        return text.upper() if upper else text.lower()

    chunks: list[Chunk] = []
    done = False
    for chunk in value.chunks:
        text = chunk.text
        if first:
            text = text if done or not text else change(text[0]) + text[1:]
            done = done or bool(text)
        else:
            text = change(text)
        chunks.append(Chunk(text, chunk.source, chunk.offset, chunk.unknown, chunk.flags))
    return Value(chunks)
