"""``ttx check``: what is wrong with configurations, before any machine is booked."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from translator.checking.told import Told
from translator.cli.common import Subparsers, variables
from translator.errors import UsageError
from translator.findings import Level
from translator.printable import say

if TYPE_CHECKING:
    from translator.checking.running import Report
    from translator.checking.settings import Chooser

DESCRIPTION = """\
Finds the configurations among files and folders, by their content, and says what their frameworks would refuse, what
they would take and do otherwise than meant, and what is slow. With --to also what another framework would refuse, and
what the same words mean there. Nothing is run. [tool.ttx] in pyproject.toml holds settings for a project.
"""
EPILOG = """\
exit code:
  0  no errors (warnings and notes do not count; --strict and --level change this)
  1  errors
  2  a file that was named cannot be read or is no configuration, or the call is wrong
  3  a fault of ttx

examples:
  ttx check train.sh
  ttx check configs/ --to torchtitan
  ttx check . --select S,R0 --format github
  ttx check train.sh --fix --diff
"""
_RANKS = {Level.NOTE: 0, Level.WARNING: 1, Level.ERROR: 2}


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "check",
        help="check configurations",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths", nargs="*", default=[], metavar="PATH", help="files and folders; - reads standard input (default: .)"
    )
    reading = parser.add_argument_group("reading the sources")
    reading.add_argument(
        "--skip-unknown",
        action="store_true",
        help="pass over named files that are no configuration, or excluded, like those that a folder holds",
    )
    reading.add_argument(
        "--from",
        dest="framework",
        metavar="FW[@V]",
        help="framework and version of all files (NAME or NAME@VERSION), or spec; else each text decides",
    )
    reading.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an environment variable that launch scripts are given; may be repeated",
    )
    reading.add_argument("--world-size", type=int, metavar="N", help="number of ranks, where a source does not tell")
    reading.add_argument("--model", metavar="PATH|NAME", help="the model, where a source leaves it to another file")
    group = parser.add_argument_group("what is told")
    group.add_argument(
        "--to",
        dest="targets",
        action="append",
        default=[],
        metavar="FW[@V]",
        help="compare with this framework; may be repeated",
    )
    group.add_argument(
        "--gpu", metavar="NAME", help="tell what will not fit on this card, such as h100-80gb (see ttx memory)"
    )
    group.add_argument("--select", action="append", default=[], metavar="CODES", help="only codes that begin so: R,S1")
    group.add_argument("--ignore", action="append", default=[], metavar="CODES", help="no codes that begin so")
    group.add_argument(
        "--level",
        choices=[level.value for level in Level],
        default=Level.ERROR.value,
        help="the least level that makes the exit code 1 (default: error)",
    )
    group.add_argument(
        "--strict", action="store_true", help="as --level warning, and tell of ignore comments that silence nothing"
    )
    group.add_argument("--format", choices=("text", "json", "sarif", "github"), default="text")
    group.add_argument("--statistics", action="store_true", help="print how often each code was found, instead")
    mending = parser.add_argument_group("mending")
    mending.add_argument(
        "--fix", action="store_true", help="mend in place what can be mended safely, then tell the rest"
    )
    mending.add_argument(
        "--diff", action="store_true", help="show what --fix would change, change nothing; exit code 1 if there is any"
    )


def run(parsed: argparse.Namespace) -> int:
    """Check; returns the exit code."""
    chooser = _chooser(parsed)
    paths = parsed.paths or [os.curdir]
    reports = list(_reports(paths, chooser, strict=parsed.strict, skip_unknown=parsed.skip_unknown))
    if parsed.fix or parsed.diff:
        return _mend(reports, chooser, parsed)
    findings = _sorted(reports)
    _tell(findings, reports, parsed)
    return _exit_code(findings, reports, parsed)


def _mend(reports: Sequence[Report], chooser: Chooser, parsed: argparse.Namespace) -> int:
    from translator.checking import fixing
    from translator.checking.discovery import Candidate
    from translator.checking.running import examine

    named = {report.asked for report in reports if report.failed}

    def again(asked: str, texts: Mapping[str, str]) -> Report:
        return examine(Candidate(asked, asked in named), chooser.of(asked), strict=parsed.strict, texts=texts)

    if any(report.text is not None for report in reports):
        raise UsageError("--fix and --diff need a file, not standard input")
    left, files = fixing.mend(reports, again)
    if parsed.diff:
        _print(line.removesuffix("\n") for line in fixing.differences(files))
        say(f"{_count(len(files), 'file')} would change")
        return 2 if named else int(bool(files))
    fixing.write(files)
    findings = _sorted(left)
    _tell(findings, left, parsed)
    if files:
        say(f"{_count(sum(file.count for file in files), 'finding')} mended in {_count(len(files), 'file')}")
    return _exit_code(findings, left, parsed)


def _chooser(parsed: argparse.Namespace) -> Chooser:
    from translator import frameworks
    from translator.api import SPECS
    from translator.checking.settings import Chooser, Settings, prefixes

    if parsed.world_size is not None and not 1 <= parsed.world_size < 2**31:
        raise UsageError("--world-size must be 1 or more")
    for name in (*parsed.targets, *([parsed.framework] if parsed.framework else [])):
        if name not in SPECS:
            frameworks.resolve(name)
    return Chooser(
        Settings(
            parsed.framework,
            parsed.world_size,
            parsed.model,
            variables(parsed.set),
            targets=tuple(parsed.targets),
            select=prefixes(parsed.select, "--select"),
            ignore=prefixes(parsed.ignore, "--ignore"),
            gpu=parsed.gpu,
        )
    )


def _reports(paths: Sequence[str], chooser: Chooser, *, strict: bool, skip_unknown: bool) -> Iterator[Report]:
    from translator.checking.discovery import Candidate, candidates, unreadable
    from translator.checking.running import Report, examine

    for item in candidates(paths, chooser.excluded, skip_unknown=skip_unknown):
        if isinstance(item, Candidate):
            yield examine(item, chooser.of(item.name), strict=strict)
        else:
            finding = unreadable(f"cannot look into the folder: {item.reason}", Level.WARNING)
            yield Report(item.name, item.name, [finding])


def _sorted(reports: Sequence[Report]) -> list[Told]:
    """Findings by place, each once, though several files may lead to it; the gravest first where there are several."""
    told = {
        (finding.place or report.name, finding.code, finding.message): Told(report.name, finding)
        for report in reports
        for finding in report.findings
    }
    return sorted(told.values(), key=_order)


def _order(told: Told) -> tuple[str, int, int, int, str]:
    place = told.finding.place
    where = (place.line, place.column) if place is not None else (0, 0)
    return (told.file, *where, -_RANKS[told.finding.level], told.finding.code)


def _tell(findings: Sequence[Told], reports: Sequence[Report], parsed: argparse.Namespace) -> None:
    from translator.checking import formats

    if parsed.format == "json":
        formats.json(findings)
    elif parsed.format == "sarif":
        from translator.checking.sarif import document

        sys.stdout.write(document(findings))
    elif parsed.format == "github":
        _print(formats.github(findings))
    elif parsed.statistics:
        _print(formats.statistics(findings))
    else:
        texts = {report.name: report.text for report in reports if report.text is not None}
        _print(formats.text(findings, formats.Lines(texts)))
    say(_summary(findings, reports))


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


def _summary(findings: Sequence[Told], reports: Sequence[Report]) -> str:
    checked = sum(report.configurations for report in reports)
    counts = {level: sum(told.finding.level is level for told in findings) for level in Level}
    found = ", ".join(_count(count, level.value) for level, count in counts.items() if count) or "nothing found"
    passed = sum(not report.configurations and not report.findings for report in reports)
    others = f" ({_count(passed, 'other file')} passed over)" if passed else ""
    return f"{_count(checked, 'configuration')} checked: {found}{others}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _exit_code(findings: Sequence[Told], reports: Sequence[Report], parsed: argparse.Namespace) -> int:
    if any(report.fault for report in reports):
        return 3
    if any(report.failed for report in reports):
        return 2
    level = Level(parsed.level)
    if parsed.strict and level is Level.ERROR:
        level = Level.WARNING
    return int(any(_RANKS[told.finding.level] >= _RANKS[level] for told in findings))
