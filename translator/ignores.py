"""Comments of the user's that silence findings: ``# ttx: ignore=CODE[,CODE]``, also after ``//``.

A comment on a line of its own in the comments that a file begins with holds for the whole file; one further down for
the next line, one behind something for its own line. A code may be cut short: ``ignore=P`` silences a family.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from translator.findings import Finding, Place

_MARK = "ttx:"
_COMMENT = re.compile(r"(?:#|//)[ \t]*ttx:[^\n]*")
_CODES = re.compile(r"\bignore=([A-Z]\d{0,3}(?:,[ \t]*[A-Z]\d{0,3})*)\b")
_CODE = re.compile(r"[A-Z]\d{0,3}")
_STARTS = ("#", "//")


@dataclass(slots=True)
class Ignore:
    """One code of one comment; ``lines`` are those that it holds for, None for the whole file."""

    code: str
    place: Place
    lines: range | None = None
    used: bool = False

    def covers(self, finding: Finding) -> bool:
        """Whether the comment is about a finding."""
        if not finding.code.startswith(self.code):
            return False
        if self.lines is None:
            return True
        place = finding.place
        return place is not None and place.file == self.place.file and place.line in self.lines


@dataclass(slots=True)
class Ignores:
    """What the comments of one file silence; remembers which of them did."""

    entries: list[Ignore] = field(default_factory=list)

    def silences(self, finding: Finding) -> bool:
        """Whether a finding is not to be shown."""
        found = [entry for entry in self.entries if entry.covers(finding)]
        for entry in found:
            entry.used = True
        return bool(found)

    def keep(self, findings: list[Finding]) -> list[Finding]:
        """The findings that nothing silences."""
        return [finding for finding in findings if not self.silences(finding)] if self.entries else findings


def read_ignores(name: str, text: str) -> Ignores:
    """The comments of a file that silence findings; ``name`` is the file as places name it."""
    return Ignores(list(_entries(name, text)) if _MARK in text and "ignore=" in text else [])


def _entries(name: str, text: str) -> Iterator[Ignore]:
    lines = text.split("\n")
    head = _head(lines)
    for number, line in enumerate(lines, 1):
        comment = _COMMENT.search(line)
        if comment is None:
            continue
        alone = not line[: comment.start()].strip()
        where = (None if number <= head else _next(lines, number)) if alone else range(number, number + 1)
        for codes in _CODES.finditer(line, comment.start()):
            for code in _CODE.finditer(line, *codes.span(1)):
                place = Place(name, number, code.start() + 1, number, code.end() + 1)
                yield Ignore(code[0], place, where)


def _head(lines: list[str]) -> int:
    """The number of lines that a file begins with and that hold nothing but comments, and the start of YAML."""
    for number, line in enumerate(lines):
        text = line.strip()
        if text and text != "---" and not text.startswith(_STARTS):
            return number
    return len(lines)


def _next(lines: list[str], number: int) -> range:
    """The lines of what follows line ``number``: comments and blanks are passed over, ``\\`` at an end continues."""
    start = number
    while start < len(lines) and (not lines[start].strip() or lines[start].lstrip().startswith(_STARTS)):
        start += 1
    end = start
    while end < len(lines) - 1 and lines[end].rstrip("\r").endswith("\\"):
        end += 1
    return range(start + 1, end + 2)
