"""Checking one file: every configuration in it, by the rules, and against the targets asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from translator import api, frameworks
from translator.checking.discovery import Candidate, cannot_be_read, unreadable
from translator.checking.settings import Settings
from translator.errors import SourceError, TtxError, UnsupportedError, UsageError
from translator.findings import Finding, Level, Place
from translator.frameworks.base import Framework, Several, TakesModel
from translator.ignores import Ignore, read_ignores
from translator.reading import ReadOptions
from translator.source import Source, load
from translator.spec_file import is_spec

if TYPE_CHECKING:
    from translator.reading import Reading

NO_CONFIGURATION, UNUSED_IGNORE = "R041", "R042"
# How sure a framework must be of a file that a folder holds before it is told that the file cannot be read.
_SURE = 0.5
# What says that a launch script is given something when it is run: a variable, an argument.
_ASKS = ("R061", "R068")
# What says that a script starts training more than once.
_SEVERAL = ("R023",)
MAX_LAUNCHES = 32
# What is silenced only shows where targets are named.
_NEEDS_TARGETS = ("D", "L")


@dataclass(slots=True)
class Report:
    """What there is to say about one file.

    ``name`` is the file, ``asked`` what led to it (``FILE.py:FUNCTION`` too). A finding without a place is about the
    file as a whole. ``configurations`` counts those in it: 0 where it is none, or cannot be read. ``failed`` says that
    a file that was named cannot be read, ``fault`` that ttx has one. ``text`` is kept for standard input, which cannot
    be read again.
    """

    name: str
    asked: str = ""
    findings: list[Finding] = field(default_factory=list)
    configurations: int = 0
    failed: bool = False
    fault: bool = False
    text: str | None = None


def examine(
    candidate: Candidate, settings: Settings, *, strict: bool = False, texts: Mapping[str, str] | None = None
) -> Report:
    """Check a file. With ``strict`` comments that silence nothing are told. Raises UsageError for wrong settings.

    ``texts`` are files, by name, that are to be taken for what they would say, not for what they say.
    """
    report = Report(candidate.name, candidate.name)
    try:
        source = _as_it_would_be(load(candidate.name), texts or {})
    except SourceError as error:
        # A file that nobody named is most likely no configuration when it is no text.
        if candidate.named or _denied(candidate.name):
            level = Level.ERROR if candidate.named else Level.WARNING
            report.findings.append(replace(cannot_be_read(error, candidate.name), level=level))
            report.failed = candidate.named
        return report
    report.name = source.name
    report.text = source.text if candidate.name == "-" else None
    try:
        _read_all(source, settings, report, named=candidate.named, strict=strict)
    except (RecursionError, MemoryError):
        report.findings.append(unreadable("it is nested too deeply"))
        report.failed = candidate.named
    except TtxError:
        raise
    except Exception as error:
        if os.environ.get("TTX_DEBUG"):
            raise
        # The other files are worth checking all the same.
        message = f"a fault of ttx: {type(error).__name__}: {error}"
        fix = "please report it with the source; TTX_DEBUG=1 shows where it happened"
        report.findings.append(Finding("R044", Level.ERROR, message, fix))
        report.fault = True
    report.findings = [finding for finding in _once(report.findings) if settings.tells(finding.code)]
    return report


def _as_it_would_be(source: Source, texts: Mapping[str, str]) -> Source:
    if not texts or source.folder is None:
        return source
    siblings = {os.path.relpath(name, source.folder): text for name, text in texts.items()}
    return replace(source, text=texts.get(source.name, source.text), siblings=siblings)


def _denied(name: str) -> bool:
    return not os.access(name, os.R_OK)


def _read_all(source: Source, settings: Settings, report: Report, *, named: bool, strict: bool) -> None:
    framework = _framework(source, settings)
    if isinstance(framework, SourceError):
        if named:
            finding = cannot_be_read(framework, source.name)
            report.findings.append(replace(finding, code=NO_CONFIGURATION))
            report.failed = True
        return
    parts = _parts(source, framework)
    if not parts and not named:
        return
    ignores: list[list[Ignore]] = []
    for part in parts or [source]:
        try:
            reading = api.read(part, framework=settings.framework, options=_options(settings, framework))
        except SourceError as error:
            if named or _is_sure(framework, source):
                finding = cannot_be_read(error, source.name)
                # A part of a script, or one that asks for input, may well be what its author means it to be.
                broken = named or (error.place is not None and not isinstance(error, UnsupportedError))
                finding = finding if broken else replace(finding, level=Level.NOTE)
                report.findings += _ignored(source, [_placed(finding, part)])
                report.failed = report.failed or named
            continue
        for each in _launches(reading, part, settings, framework):
            report.configurations += 1
            report.findings += _checked(each, part, settings)
            ignores.append(each.ignored.entries)
    if strict and report.configurations:
        report.findings += _unused(ignores, with_targets=bool(settings.targets))


def _framework(source: Source, settings: Settings) -> Framework | SourceError | None:
    """The framework of a source, None for a spec, or why there is none."""
    if settings.framework is not None:
        return None if settings.framework in api.SPECS else frameworks.resolve(settings.framework)[0]
    if is_spec(source):
        return None
    try:
        return frameworks.detect(source)
    except SourceError as error:
        return error


def _is_sure(framework: Framework | None, source: Source) -> bool:
    return framework is None or framework.sniff(source) >= _SURE


def _parts(source: Source, framework: Framework | None) -> list[Source]:
    """Each configuration of a file that holds several; none where such a file holds none."""
    if source.function is not None or not isinstance(framework, Several):
        return [source]
    try:
        names = framework.configurations(source)
    except SourceError:
        return [source]  # reading says what is wrong
    return [source] if names is None else [replace(source, function=name) for name in names]


def _options(settings: Settings, framework: Framework | None) -> ReadOptions:
    model = settings.model if isinstance(framework, TakesModel) else None
    return ReadOptions(settings.variables, settings.positional, world_size=settings.world_size, model=model)


def _checked(reading: Reading, source: Source, settings: Settings) -> list[Finding]:
    found = api.check(reading)
    if settings.gpu is not None:
        found += reading.ignored.keep(_memory(reading, settings.gpu))
    for target in settings.targets:
        if target.partition("@")[0] != reading.framework or "@" in target:
            found += _against(reading, target)
    found = [_placed(finding, source) for finding in _without_consequences(found, reading)]
    return _ignored_elsewhere(found, source)


def _memory(reading: Reading, card: str) -> list[Finding]:
    """Whether it fits on a card. Raises UsageError for a card that is not known."""
    from translator.memory.findings import memory_findings
    from translator.memory.hardware import gpu

    return memory_findings(reading, gpu(card))


def _launches(reading: Reading, source: Source, settings: Settings, framework: Framework | None) -> list[Reading]:
    """What each launch of a script starts, where there are several; the reading itself where there is one."""
    if all(finding.code not in _SEVERAL for finding in reading.findings):
        return [reading]
    options = _options(settings, framework)
    found: list[Reading] = []
    for number in range(1, MAX_LAUNCHES + 1):
        try:
            one = replace(options, launch=number)
            found.append(api.read(source, framework=settings.framework, options=one))
        except UsageError:  # there is no such launch
            break
        except SourceError:  # one that starts something else
            continue
    return found or [reading]


def _without_consequences(findings: list[Finding], reading: Reading) -> list[Finding]:
    """What a script asks of its surroundings is open, not wrong: a warning, and options without it are no errors."""
    if not any(map(_asks, findings)):
        return findings
    given = reading.native.given.values() if reading.native is not None else ()
    without_value = {each.written for each in given if each.missing and each.missing.expression == each.written}
    kept: list[Finding] = []
    for finding in findings:
        wrong = finding.level is Level.ERROR
        if _asks(finding):
            kept.append(replace(finding, level=Level.WARNING) if wrong else finding)
        elif not wrong or finding.code[0] != "R" or finding.option not in without_value:
            kept.append(finding)
    return kept


def _asks(finding: Finding) -> bool:
    # Arithmetic on what is not set (then there is a way out) is no mistake of the script.
    return finding.code in _ASKS or (finding.code == "R066" and bool(finding.fix))


def _against(reading: Reading, target: str) -> Iterator[Finding]:
    """What a target would refuse, and what it means differently."""
    try:
        done = api.convert(reading, target)
    except TtxError as error:
        yield Finding("R043", Level.ERROR, f"cannot be written for {target}: {error.message}", error.fix, error.place)
        return
    known = {id(finding) for finding in reading.findings}
    for finding in done.findings:
        if id(finding) not in known and not reading.ignored.silences(finding):
            where = f" ({finding.place.file}:{finding.place.line} of the result)" if finding.place else ""
            yield replace(
                finding, message=f"as {target}: {finding.message}{where}", place=_leaf(reading, finding), edits=()
            )
    yield from api.differences(done)


def _leaf(reading: Reading, finding: Finding) -> Place | None:
    """Where the source states the field that a finding about the result is about."""
    origin = reading.origins.get(finding.field) if finding.field else None
    return origin.place if origin is not None else None


def _placed(finding: Finding, source: Source) -> Finding:
    """A finding whose place names its file as it is found from here; files beside the source are named from there."""
    place = finding.place
    if place is None and source.function is not None:
        return replace(finding, place=_definition(source))
    if place is None or place.file == source.name or os.path.isabs(place.file) or source.folder is None:
        return finding
    beside = os.path.normpath(source.folder / place.file)
    if os.path.exists(beside):
        return replace(
            finding,
            place=replace(place, file=beside),
            edits=tuple(replace(edit, place=replace(edit.place, file=beside)) for edit in finding.edits),
        )
    return finding


def _definition(source: Source) -> Place | None:
    """Where a file defines the function that is its configuration."""
    found = re.search(rf"^(?:async\s+)?def\s+({re.escape(source.function or '')})\b", source.text, re.MULTILINE)
    if found is None:
        return None
    line, start = source.text.count("\n", 0, found.start(1)) + 1, source.text.rfind("\n", 0, found.start(1))
    return Place(source.name, line, found.start(1) - start, line, found.end(1) - start)


def _ignored(source: Source, findings: list[Finding]) -> list[Finding]:
    return read_ignores(source.name, source.text).keep(findings)


def _ignored_elsewhere(findings: list[Finding], source: Source) -> list[Finding]:
    """Without what comments in files beside the source silence there."""
    for name in {finding.place.file for finding in findings if finding.place} - {source.name}:
        try:
            ignores = read_ignores(name, load(name).text)
        except SourceError:
            continue
        if ignores.entries:
            findings = [f for f in findings if f.place is None or f.place.file != name or not ignores.silences(f)]
    return findings


def _unused(ignores: Sequence[list[Ignore]], *, with_targets: bool) -> Iterator[Finding]:
    """Comments that silence nothing in any of the configurations of a file."""
    for entries in zip(*ignores, strict=True):
        first = entries[0]
        if any(entry.used for entry in entries) or (first.code[0] in _NEEDS_TARGETS and not with_targets):
            continue
        where = "in this file" if first.lines is None else "here"
        message = f"# ttx: ignore={first.code} silences nothing {where}"
        yield Finding(UNUSED_IGNORE, Level.NOTE, message, "remove it", first.place, f"ignore={first.code}")


def _once(findings: list[Finding]) -> list[Finding]:
    """Each finding once: several configurations of a file share what stands in it."""
    return list({(f.code, f.level, f.message, f.place): f for f in findings}.values())
