"""Glob patterns and extended regular expressions of bash, matched without running away."""

from __future__ import annotations

import re
from collections.abc import Iterable

from translator.shell.values import QUOTED, Chunk

MAX_SEARCH = 4096
"""Longer texts are not searched with a pattern that holds wildcards."""

_CLASSES = {
    "alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "blank": " \\t", "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "word": r"\w", "cntrl": r"\x00-\x1f\x7f",
    "print": " -~", "graph": "!-~",
}  # fmt: skip
_NESTED_REPEAT = re.compile(r"[*+}]\)*\)[*+{]")


class Pattern:
    """A glob pattern, quoted characters literal."""

    __slots__ = ("_simple", "literal", "regex", "wild")

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        marked: list[tuple[str, bool]] = []
        for chunk in chunks:
            quoted = bool(chunk.flags & QUOTED)
            marked.extend((char, quoted) for char in chunk.text)
        self.literal = "".join(char for char, _ in marked)
        self.wild = any(not quoted and char in "*?[(" for char, quoted in marked)
        self.regex = _Translator(marked).translate() if self.wild else re.escape(self.literal)
        self._simple = not self.wild

    def matches(self, text: str) -> bool | None:
        """Whether the whole text matches; None when that would take too long to find out."""
        if self._simple:
            return text == self.literal
        if not self._bounded(text):
            return None
        try:
            return re.compile(self.regex, re.DOTALL).fullmatch(text) is not None
        except (re.error, OverflowError, RecursionError):
            return text == self.literal

    def _bounded(self, text: str) -> bool:
        stars = self.regex.count(".*") + self.regex.count(")*") + self.regex.count(")+")
        if len(text) > MAX_SEARCH * 16 or len(self.regex) > MAX_SEARCH:
            return False
        return stars <= 1 or len(text) ** min(stars, 6) <= 50_000_000

    def prefix(self, text: str, *, longest: bool) -> int | None:
        """The length of the shortest or longest matching prefix; -1 for no match, None when too long to find out."""
        if self._simple:
            return len(self.literal) if text.startswith(self.literal) else -1
        return self._scan(text, range(len(text), -1, -1) if longest else range(len(text) + 1), suffix=False)

    def suffix(self, text: str, *, longest: bool) -> int | None:
        """The offset where the shortest or longest matching suffix begins; -1 and None as in `prefix`."""
        if self._simple:
            return len(text) - len(self.literal) if text.endswith(self.literal) else -1
        return self._scan(text, range(len(text) + 1) if longest else range(len(text), -1, -1), suffix=True)

    def _scan(self, text: str, cuts: range, *, suffix: bool) -> int | None:
        if len(text) > MAX_SEARCH or not self._bounded(text):
            return None
        try:
            match = re.compile(self.regex, re.DOTALL).fullmatch
        except (re.error, OverflowError, RecursionError):
            return -1
        for cut in cuts:
            if (match(text, cut) if suffix else match(text, 0, cut)) is not None:
                return cut
        return -1

    def spans(self, text: str, *, everywhere: bool) -> list[tuple[int, int]] | None:
        """Non-empty matches from the left; None when too long to find out."""
        if self._simple:
            regex = re.escape(self.literal)
        elif len(text) > MAX_SEARCH or not self._bounded(text):
            return None
        else:
            regex = self.regex
        if not self.literal:
            return []
        if not text:
            return [(0, 0)] if self.matches(text) else []
        try:
            found = [hit.span() for hit in re.finditer(regex, text, re.DOTALL) if hit.end() > hit.start()]
        except (re.error, OverflowError, RecursionError):
            return []
        return found if everywhere else found[:1]


class _Translator:
    """Glob to regular expression."""

    def __init__(self, marked: list[tuple[str, bool]]) -> None:
        self.marked = marked

    def translate(self) -> str:
        return self._run(0, len(self.marked), 0)

    def _run(self, at: int, end: int, depth: int) -> str:
        out: list[str] = []
        while at < end:
            char, quoted = self.marked[at]
            if quoted:
                out.append(re.escape(char))
                at += 1
                continue
            if char in "?*+@!" and at + 1 < end and self.marked[at + 1] == ("(", False) and depth < 10:
                close = self._close(at + 2, end)
                if close > 0:
                    out.append(self._group(char, at + 2, close, depth))
                    at = close + 1
                    continue
            if char == "*":
                if not out or out[-1] != ".*":
                    out.append(".*")
            elif char == "?":
                out.append(".")
            elif char == "[" and (close := self._bracket_end(at + 1, end)) > 0:
                out.append(self._bracket(at + 1, close))
                at = close
            else:
                out.append(re.escape(char))
            at += 1
        return "".join(out)

    def _close(self, at: int, end: int) -> int:
        level = 1
        for i in range(at, end):
            if self.marked[i] == ("(", False):
                level += 1
            elif self.marked[i] == (")", False):
                level -= 1
                if level == 0:
                    return i
        return -1

    def _group(self, kind: str, start: int, end: int, depth: int) -> str:
        bounds, level = [start], 0
        for i in range(start, end):
            if self.marked[i] == ("(", False):
                level += 1
            elif self.marked[i] == (")", False):
                level -= 1
            elif self.marked[i] == ("|", False) and level == 0:
                bounds.append(i + 1)
        ends = [b - 1 for b in bounds[1:]] + [end]
        body = "|".join(self._run(low, high, depth + 1) for low, high in zip(bounds, ends, strict=True))
        if kind == "!":
            return rf"(?:(?!(?:{body})\Z).*)"
        if kind == "@":
            return f"(?:{body})"
        return f"(?:{body})?" if kind == "?" else f"(?:{body}){kind}+"

    def _bracket_end(self, at: int, end: int) -> int:
        if at < end and self.marked[at][0] in "!^":
            at += 1
        first = at
        while at < end:
            char, _ = self.marked[at]
            if char == "[" and at + 1 < end and self.marked[at + 1][0] == ":":
                close = next(
                    (i for i in range(at + 2, end - 1) if self.marked[i][0] == ":" and self.marked[i + 1][0] == "]"), -1
                )
                if close > 0:
                    at = close + 2
                    continue
            if char == "]" and at > first:
                return at
            at += 1
        return -1

    def _bracket(self, start: int, end: int) -> str:
        inside = "".join(char for char, _ in self.marked[start:end])
        negated = inside[:1] in {"!", "^"}
        if negated:
            inside = inside[1:]
        body = re.sub(r"[\\\[\]^&~|]", lambda hit: "\\" + hit.group(), _posix(inside, keep=True))
        body = body.replace("\x00", "")
        for name, chars in _CLASSES.items():
            body = body.replace(f"\x01{name}\x01", chars)
        return f"[{'^' if negated else ''}{body}]"


def _posix(text: str, *, keep: bool = False) -> str:
    """Replace ``[:digit:]`` by its range (or by a marker that survives escaping)."""
    return re.sub(
        r"\[:(\w+):\]",
        lambda hit: (
            (f"\x01{hit.group(1)}\x01" if keep else _CLASSES[hit.group(1)]) if hit.group(1) in _CLASSES else hit.group()
        ),
        text,
    )


def regex_match(chunks: Iterable[Chunk], text: str) -> re.Match[str] | bool | None:
    """``text =~ regex``; False for no match, None when it cannot be decided here."""
    source = "".join(re.escape(c.text) if c.flags & QUOTED else _posix(c.text) for c in chunks)
    if len(source) > 1000 or len(text) > MAX_SEARCH or (_NESTED_REPEAT.search(source) and len(text) > 20):
        return None
    if len(text) ** min(source.count("*") + source.count("+"), 6) > 50_000_000:
        return None
    try:
        return re.compile(source, re.DOTALL).search(text) or False
    except (re.error, OverflowError, RecursionError):
        return None
