"""Semantic differences, taken apart: what each side does, where that was read, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.report.model import Meaning
from translator.report.words import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from translator.findings import Finding
    from translator.reading import Reading
    from translator.report.code import Files


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
                text(finding.fix),
                files.link(finding.place),
            )
        )
    return found
