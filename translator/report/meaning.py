"""Semantic differences, taken apart: what each side does, where that was read, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.report.model import Meaning
from translator.report.words import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from translator.differences.registry import Stance
    from translator.findings import Finding
    from translator.reading import Reading
    from translator.report.code import Files
    from translator.subject import Subject


def meanings(left: Reading, right: Reading, findings: Sequence[Finding], files: Files) -> list[Meaning]:
    """The findings of `differences.between` with the stances behind them, the gravest first."""
    from translator.differences.registry import Pair, differences, stances_of
    from translator.findings import Level
    from translator.subject import Subject

    ours, theirs = Subject(left), Subject(right)
    stances = stances_of(ours.framework), stances_of(theirs.framework)
    found: list[Meaning] = []
    for finding in sorted(findings, key=lambda finding: finding.level is Level.NOTE):
        entry = differences()[finding.code]
        one, other = stances[0][finding.code](ours), stances[1][finding.code](theirs)
        if one is None or other is None:
            continue
        found.append(
            Meaning(
                finding.code,
                finding.level.value,
                text(entry.title),
                text(one.says),
                text(one.source),
                text(other.says),
                text(other.source),
                text(entry.judge(Pair(ours, theirs, one, other)) or ""),
                text(_way(finding.fix, (ours, one), (theirs, other))),
                files.link(finding.place),
            )
        )
    return found


def _way(fix: str, left: tuple[Subject, Stance], right: tuple[Subject, Stance]) -> str:
    """What to do, with the framework in which to do it where that is known; the result is named before the source."""
    for (subject, stance), (_, other) in ((right, left), (left, right)):
        if fix and stance.ways.get(other.kind) == fix:
            return f"in {subject.title} {subject.reading.version}: {fix}"
    return fix
