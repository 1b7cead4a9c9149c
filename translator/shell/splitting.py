"""Word splitting: what an unquoted expansion becomes."""

from __future__ import annotations

import re

from translator.shell.values import BREAK, HOLE, QUOTED, SPLIT, Chunk, Value

_DEFAULT_FIELDS = re.compile(r"[^ \t\n]+")


class Splitter:
    """Cuts chunks into fields at breaks and, where they are marked for it, at IFS."""

    def __init__(self, ifs: str | None, result: list[Value]) -> None:
        self.ifs = ifs
        self.result = result
        self.current: list[Chunk] = []
        self.exists = False
        self.blank_ended = False
        self.holes: list[Chunk] = []

    def run(self, chunks: list[Chunk]) -> None:
        """Split; words that vanished with none before them leave their marks in ``holes``."""
        for chunk in chunks:
            flags = chunk.flags
            if flags & BREAK:
                self._finish()
                # The elements of an array are joined by a blank, which a separator after it takes in.
                self.blank_ended = self.blank_ended or (self.ifs is not None and " " in self.ifs)
            elif not flags & SPLIT or chunk.unknown is not None:
                self.current.append(chunk)
                self.exists = self.exists or bool(chunk.text) or bool(flags & QUOTED)
                self.blank_ended = self.blank_ended and not self.exists
            elif self.ifs is None:
                self._default(chunk)
            else:
                self._custom(chunk, self.ifs)
        self._finish()

    def _finish(self, *, force: bool = False) -> None:
        if self.exists or force:
            self.result.append(Value(self.current))
        else:
            self._vanish([chunk for chunk in self.current if chunk.flags & HOLE])
        self.current, self.exists = [], False

    def _vanish(self, holes: list[Chunk]) -> None:
        """A word that vanished leaves its mark on the word before it."""
        if holes and self.result:
            self.result[-1] = Value([*self.result[-1].chunks, *holes])
        else:
            self.holes.extend(holes)

    def _default(self, chunk: Chunk) -> None:
        text, at = chunk.text, 0
        for hit in _DEFAULT_FIELDS.finditer(text):
            low, high = hit.span()
            if low > at:
                self._finish()
            self.current.append(chunk if high - low == len(text) else chunk.cut(low, high))
            self.exists = True
            at = high
        if at < len(text):
            self._finish()

    def _custom(self, chunk: Chunk, ifs: str) -> None:
        text, at = chunk.text, 0
        for position, char in enumerate(text):
            if char not in ifs:
                continue
            if position > at:
                self._take(chunk, at, position)
            at = position + 1
            if char in " \t\n":
                if self.exists:
                    self._finish()
                    self.blank_ended = True
            elif self.blank_ended and not self.exists:
                self.blank_ended = False
            else:
                self._finish(force=True)
        if at < len(text):
            self._take(chunk, at, len(text))

    def _take(self, chunk: Chunk, low: int, high: int) -> None:
        self.current.append(chunk.cut(low, high))
        self.exists = True
        self.blank_ended = False
