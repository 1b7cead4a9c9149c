"""Mending sources: the edits that findings bring, and nothing else of a text.

Texts are changed in memory and checked again until nothing is left to mend; a file is written when the result is better
than what was there: whatever an edit breaks takes it back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from translator.checking.running import Report
from translator.errors import SourceError, UsageError
from translator.findings import Edit, Finding, Level, Place
from translator.source import decode

MAX_ROUNDS = 10
_BOM = b"\xef\xbb\xbf"
Examine = Callable[[str, Mapping[str, str]], Report]
"""What led to a file, and changed texts by file, to the report on the file as it would be."""


@dataclass(slots=True)
class Mended:
    """One file: its text before and after, and how many findings that took care of."""

    name: str
    before: str
    after: str
    data: bytes = field(repr=False)
    count: int = 0


def mend(reports: Sequence[Report], examine: Examine) -> tuple[list[Report], list[Mended]]:
    """Apply the edits of the findings to the texts of the files that were checked, until none is left.

    Returns the reports on the mended texts, and the files that change; nothing is written.
    """
    current = {report.asked: report for report in reports}
    files: dict[str, Mended] = {}
    given_up: set[str] = set()
    for _ in range(MAX_ROUNDS):
        changed = False
        for name, findings in _with_edits(current.values()).items():
            asked = [key for key, report in current.items() if report.name == name]
            file = None if name in given_up or not asked else files.get(name) or _load(name)
            text, count = apply(file.after, findings) if file is not None else ("", 0)
            if file is None or not count:
                given_up.add(name)
                continue
            texts = {other.name: other.after for other in files.values()} | {name: text}
            after = {key: examine(key, texts) for key in asked}
            if any(_is_worse(report, current[key]) for key, report in after.items()):
                given_up.add(name)
                continue
            changed = True
            current |= after
            files[name] = file
            file.after, file.count = text, file.count + count
        if not changed:
            break
    mended = [file for file in files.values() if file.after != file.before]
    texts = {file.name: file.after for file in mended}
    return [_renewed(report, texts, examine) for report in current.values()], mended


def _renewed(report: Report, texts: Mapping[str, str], examine: Examine) -> Report:
    """A report as it is now that files beside its own have changed."""
    concerned = {finding.place.file for finding in report.findings if finding.place} & texts.keys()
    return examine(report.asked, texts) if concerned - {report.name} else report


def write(files: Sequence[Mended]) -> None:
    """Write all files, or none. Raises UsageError when one cannot be written, or is no longer what was read."""
    from translator.cli.files import write_files

    for file in files:
        if Path(file.name).read_bytes() != file.data:
            raise UsageError(f"{file.name} was changed meanwhile", fix="run it again")
    marks = {file.name: "\ufeff" if file.data.startswith(_BOM) else "" for file in files}
    write_files({Path(file.name): marks[file.name] + file.after for file in files}, force=True, keep_mode=True)


def differences(files: Sequence[Mended]) -> Iterator[str]:
    """What changes, as unified differences."""
    from difflib import unified_diff

    for file in files:
        before, after = (_lines(text) for text in (file.before, file.after))
        for line in unified_diff(before, after, f"a/{file.name}", f"b/{file.name}"):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    return lines if lines[-1] else lines[:-1]


def _with_edits(reports: Iterable[Report]) -> dict[str, list[Finding]]:
    """Findings that can be mended, by the one file that their edits are about; each once."""
    found: dict[str, dict[Finding, None]] = {}
    for report in reports:
        for finding in report.findings:
            names = {edit.place.file for edit in finding.edits}
            if len(names) == 1:
                found.setdefault(names.pop(), {})[finding] = None
    return {name: list(findings) for name, findings in found.items()}


def _load(name: str) -> Mended | None:
    """A file to be mended, or None where that cannot be done."""
    try:
        data = Path(name).read_bytes()
        text = decode(data, name)
    except (OSError, ValueError, SourceError):
        return None
    return Mended(name, text, text, data) if os.access(name, os.W_OK) else None


def _is_worse(after: Report, before: Report) -> bool:
    """Whether a mended text is read less well than the text before.

    An option that is understood now may well bring refusals that nobody saw before.
    """
    known = {(finding.code, finding.message) for finding in before.findings}
    errors = [finding for finding in after.findings if finding.level is Level.ERROR and finding.code.startswith("R")]
    return after.configurations < before.configurations or any((f.code, f.message) not in known for f in errors)


def apply(text: str, findings: Sequence[Finding]) -> tuple[str, int]:
    """The text with the edits of the findings, and the number of findings that this mends.

    A finding whose edits do not find the text that they expect, or overlap those of an earlier one, is left alone.
    """
    starts = _line_starts(text)
    chosen: list[tuple[int, int, str]] = []
    count = 0
    for finding in findings:
        spans = [_span(edit, starts, text) for edit in finding.edits]
        if any(span is None for span in spans):
            continue
        wanted = [span for span in spans if span is not None]
        if any(_overlap(span, other) for span in wanted for other in chosen):
            continue
        chosen += wanted
        count += 1
    for start, end, replacement in sorted(chosen, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text, count


def _overlap(one: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    return (one[0] < other[1] and other[0] < one[1]) or one[:2] == other[:2]


def _span(edit: Edit, starts: Sequence[int], text: str) -> tuple[int, int, str] | None:
    """From and to which character an edit reaches; None where the text there is not the expected one."""
    place = edit.place
    start = _offset(place.line, place.column, starts)
    if start is None or not _ends_there(place, edit.expected):
        return None
    end = start + len(edit.expected)
    return (start, end, edit.replacement) if text[start:end] == edit.expected else None


def _ends_there(place: Place, expected: str) -> bool:
    """Whether a place spans as much as the expected text."""
    if place.end_line is None or place.end_column is None:
        return False
    breaks = expected.count("\n")
    last = len(expected) - expected.rfind("\n") - 1
    column = place.column + len(expected) if not breaks else last + 1
    return (place.end_line, place.end_column) == (place.line + breaks, column)


def _offset(line: int, column: int, starts: Sequence[int]) -> int | None:
    return starts[line - 1] + column - 1 if 0 < line <= len(starts) and column > 0 else None


def _line_starts(text: str) -> list[int]:
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts
