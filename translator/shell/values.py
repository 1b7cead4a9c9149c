"""What reading a launch script yields: words with their places, launches, and the parts that stay unknown."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from translator.findings import Finding, Place


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part of a word that cannot be known without running the script.

    ``expression`` is the part as written (``$SLURM_NNODES``, ``$(hostname)``); ``name`` the variable whose
    value would settle it, where there is one.
    """

    expression: str
    name: str | None
    reason: str
    place: Place

    @property
    def said(self) -> str:
        """The expression, and the variable that it is the value of."""
        return self.expression if not self.name or self.name in self.expression else f"${self.name}, {self.expression}"


@dataclass(frozen=True, slots=True)
class Word:
    """One argument after expansion; unknown parts stand in ``text`` as they were written.

    ``place`` is where the characters were written: inside the array or string, not where it is expanded.
    """

    text: str
    place: Place
    unknowns: tuple[Unknown, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """One program that the script starts: its own arguments, and what its launchers say about it.

    ``launcher`` names the launchers from the outside in (``srun torchrun``). ``program`` is the script, or for
    ``-m`` the module (then also in ``module``). ``env`` holds what is exported at that point. ``nnodes`` and
    ``nproc_per_node`` are numbers when known, words when written but unknown, else None; ``world_size`` is
    the number of processes when it is known.
    """

    launcher: str
    program: Word
    module: str | None
    argv: tuple[Word, ...]
    env: dict[str, Word]
    nnodes: Word | int | None
    nproc_per_node: Word | int | None
    world_size: int | None
    place: Place


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that the script itself writes from text (``cat > path <<EOF``, ``tee``, ``echo ... >``)."""

    path: Word
    body: Word
    place: Place


@dataclass(frozen=True, slots=True)
class ScriptReading:
    """The outcome of `translator.shell.evaluate`."""

    launches: tuple[Launch, ...]
    findings: tuple[Finding, ...]
    heredocs: tuple[WrittenFile, ...] = ()
    variables: dict[str, Word] = field(default_factory=dict)


class Source:
    """A text with a name, able to turn character offsets into places."""

    __slots__ = ("_starts", "file", "text")

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self._starts: list[int] | None = None

    def place(self, offset: int, end: int | None = None) -> Place:
        """The place of a character offset, and of the end of a span when given."""
        starts = self._starts
        if starts is None:
            starts = [0]
            find = self.text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
            self._starts = starts
        line = bisect_right(starts, offset)
        column = offset - starts[line - 1] + 1
        if end is None:
            return Place(self.file, line, column)
        end_line = bisect_right(starts, end)
        return Place(self.file, line, column, end_line, end - starts[end_line - 1] + 1)


class DerivedSource(Source):
    """Text that the script put together itself (``eval "$CMD"``); places lead back to where it was written."""

    __slots__ = ("_chunks", "_offsets")

    def __init__(self, chunks: Sequence[Chunk], fallback: Source) -> None:
        super().__init__("".join(c.text for c in chunks), fallback.file)
        self._chunks = [c for c in chunks if c.text]
        self._offsets: list[int] = []
        at = 0
        for chunk in self._chunks:
            self._offsets.append(at)
            at += len(chunk.text)

    def place(self, offset: int, end: int | None = None) -> Place:
        """The place where the character was written in the original text."""
        if not self._chunks:
            return Place(self.file, 1, 1)
        index = max(bisect_right(self._offsets, offset) - 1, 0)
        chunk = self._chunks[index]
        return chunk.place(min(offset - self._offsets[index], len(chunk.text)))

    def unknown_spans(self) -> list[tuple[int, int]]:
        """Where unknown parts stand; they are not read again as code."""
        return [
            (at, at + len(chunk.text))
            for at, chunk in zip(self._offsets, self._chunks, strict=True)
            if chunk.unknown is not None
        ]

    def chunks_between(self, start: int, end: int) -> list[Chunk]:
        """The original chunks that make up a span, so that unknown parts stay typed."""
        result: list[Chunk] = []
        index = max(bisect_right(self._offsets, start) - 1, 0)
        while index < len(self._chunks) and self._offsets[index] < end:
            chunk, at = self._chunks[index], self._offsets[index]
            low, high = max(start - at, 0), min(end - at, len(chunk.text))
            if low == 0 and high == len(chunk.text):
                result.append(chunk)
            elif high > low:
                result.append(chunk.cut(low, high))
            index += 1
        return result


QUOTED = 1
"""The chunk was inside quotes where it is used."""
SPLIT = 2
"""The chunk came from an unquoted expansion: subject to word splitting."""
BREAK = 4
"""No text; ends a field, as between the elements of ``${A[@]}``."""
HOLE = 8
"""No text; marks where a variable that is not set expanded to nothing (``unknown`` says which)."""
SOFT = 16
"""An unknown that may as well be unset (a scheduler's variable outside any scheduler)."""


class Chunk:
    """A run of characters with one origin: literal text, one unknown, or a marker."""

    __slots__ = ("flags", "offset", "source", "text", "unknown")

    def __init__(self, text: str, source: Source, offset: int, unknown: Unknown | None = None, flags: int = 0) -> None:
        self.text = text
        self.source = source
        self.offset = offset
        self.unknown = unknown
        self.flags = flags

    def flagged(self, flags: int) -> Chunk:
        """The same characters in another quoting context; markers keep what they mark."""
        flags |= self.flags & (BREAK | HOLE | SOFT)
        return self if flags == self.flags else Chunk(self.text, self.source, self.offset, self.unknown, flags)

    def cut(self, low: int, high: int) -> Chunk:
        """A part of a literal chunk; an unknown is indivisible."""
        if self.unknown is not None:
            return self
        return Chunk(self.text[low:high], self.source, self.offset + low, None, self.flags)

    def place(self, at: int = 0) -> Place:
        """Where character ``at`` was written."""
        if isinstance(self.source, DerivedSource):
            return self.source.place(self.offset + at)
        limit = len(self.source.text)
        return self.source.place(min(self.offset + (0 if self.unknown else at), limit))

    @property
    def is_unknown(self) -> bool:
        """True when the characters only stand for something unknown."""
        return self.unknown is not None and not self.flags & HOLE


class Value:
    """An immutable string with provenance, as a variable holds it or a word expands to."""

    __slots__ = ("chunks", "text")

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.chunks = tuple(chunks)
        self.text = self.chunks[0].text if len(self.chunks) == 1 else "".join([c.text for c in self.chunks])

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """The unknown parts, in order."""
        return tuple(c.unknown for c in self.chunks if c.unknown is not None and not c.flags & HOLE)

    @property
    def known(self) -> bool:
        """True when every character is known."""
        return not any(c.unknown is not None and not c.flags & HOLE for c in self.chunks)

    @property
    def holes(self) -> tuple[Unknown, ...]:
        """Variables that were not set and expanded to nothing in here."""
        return tuple(c.unknown for c in self.chunks if c.flags & HOLE and c.unknown is not None)

    def place(self, fallback: Place) -> Place:
        """Where the first character was written."""
        for chunk in self.chunks:
            if chunk.text:
                last = self.chunks[-1]
                if last is chunk and chunk.unknown is None and not isinstance(chunk.source, DerivedSource):
                    start = min(chunk.offset, len(chunk.source.text))
                    return chunk.source.place(start, min(start + len(chunk.text), len(chunk.source.text)))
                return chunk.place()
        return self.chunks[0].place() if self.chunks else fallback

    def word(self, fallback: Place) -> Word:
        """The public form."""
        return Word(self.text, self.place(fallback), self.unknowns)


EMPTY = Value(())
