"""Findings for people (text) and for continuous integration (json, github)."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from translator.checking.told import Told
from translator.cli.common import print_json
from translator.errors import SourceError
from translator.findings import Level, Place
from translator.printable import one_line
from translator.source import load

_COLOURS = {Level.ERROR: "31", Level.WARNING: "33", Level.NOTE: "36"}
_BOLD, _DIM = "1", "2"
_WIDTH = 150  # of a source line; a longer one is cut around its span
_BEFORE = 40  # characters that stay before the span
_WORDS = {"error": Level.ERROR, "warning": Level.WARNING, "notice": Level.NOTE}


class Lines:
    """Lines of the files that findings are in; each file is read once. ``texts`` are those that are no files."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._lines: dict[str, list[str]] = {name: text.split("\n") for name, text in texts.items()}

    def of(self, place: Place) -> str:
        """The line of a place, without its end; empty where it cannot be read."""
        if place.file not in self._lines:
            try:
                self._lines[place.file] = load(place.file).text.split("\n")
            except SourceError:
                self._lines[place.file] = []
        lines = self._lines[place.file]
        return lines[place.line - 1].rstrip("\r") if 0 < place.line <= len(lines) else ""


def text(findings: Sequence[Told], lines: Lines) -> Iterator[str]:
    """Each finding with its line of the source, a caret under what it is about, and the way out."""
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def styled(words: str, style: str) -> str:
        return f"\x1b[{style}m{words}\x1b[0m" if coloured and words else words

    for told in findings:
        finding, place = told.finding, told.finding.place
        head = f"{one_line(str(place or told.file))}: "
        level = styled(f"{finding.level.value} {finding.code}", _COLOURS[finding.level])
        yield f"{styled(head, _BOLD)}{level}: {one_line(finding.message)}"
        if place is not None:
            shown, caret = _underlined(lines.of(place), place, finding.option)
            if shown.strip():
                yield f"    {shown}"
                yield f"    {styled(caret, _COLOURS[finding.level])}"
        if finding.fix:
            yield f"  {styled('fix:', _DIM)} {one_line(finding.fix)}"


def _underlined(line: str, place: Place, option: str | None) -> tuple[str, str]:
    """A line as it can be shown, and the carets under a span of it."""
    start = min(place.column - 1, len(line))
    end = _end(line, place, option)
    first = max(0, start - _BEFORE) if end > _WIDTH or len(line) > _WIDTH else 0
    last = min(len(line), first + _WIDTH)
    left, right = ("..." if first else ""), ("..." if last < len(line) else "")
    shown = left + "".join(map(_shown, line[first:last])) + right
    blank = " " * (len(left) + sum(map(_columns, line[first:start])))
    return shown, blank + "^" * max(1, sum(map(_columns, line[start : min(end, last)])))


def _end(line: str, place: Place, option: str | None) -> int:
    """The column after a span; where the place does not tell, that after the option, if the line says it there."""
    if place.end_line == place.line and place.end_column is not None:
        return place.end_column - 1
    if place.end_line is not None and place.end_line > place.line:
        return len(line)
    start = place.column - 1
    return start + len(option) if option and line.startswith(option, start) else start + 1


def _shown(character: str) -> str:
    if character == "\t":
        return " "
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"


def _columns(character: str) -> int:
    """How many columns of a terminal a character takes."""
    if character.isascii():
        return 1
    if not character.isprintable():
        return 1
    return 0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")


def json(findings: Sequence[Told]) -> None:
    """One document on standard output: ``schema_version`` and ``findings``, each with its file."""
    print_json(
        {
            "schema_version": 1,
            "findings": [{**told.finding.as_dict(), "file": told.file} for told in findings],
        }
    )


def github(findings: Sequence[Told]) -> Iterator[str]:
    """Workflow commands that GitHub shows beside the lines of a change."""
    words = {level: word for word, level in _WORDS.items()}
    for told in findings:
        finding, place = told.finding, told.finding.place
        where: dict[str, object] = {"file": told.file}
        if place is not None:
            where |= {"line": place.line, "col": place.column}
        if place is not None and place.end_line is not None:
            where["endLine"] = place.end_line
            if place.end_column is not None and place.end_line == place.line:
                where["endColumn"] = place.end_column
        properties = ",".join(
            f"{key}={_property(str(value))}" for key, value in {**where, "title": finding.code}.items()
        )
        fix = f"\n{one_line(finding.fix)}" if finding.fix else ""
        yield f"::{words[finding.level]} {properties}::{_data(f'{one_line(finding.message)}{fix}')}"


def _data(value: str) -> str:
    text = value.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


def statistics(findings: Sequence[Told]) -> Iterator[str]:
    """How often each code was found, the most frequent first."""
    from translator.codes import all_codes

    titles = all_codes()
    counts = Counter((told.finding.code, told.finding.level) for told in findings)
    for (code, level), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"{count}\t{code}\t{level.value}\t{titles[code][0] if code in titles else ''}"
