"""Gathers a report: of a conversion, or of two configurations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from translator.errors import SourceError
from translator.printable import one_line
from translator.report.code import Files
from translator.report.model import Check, Command, FieldGroup, FieldRow, Report, Side
from translator.report.words import ALTERED, count, shown, text

if TYPE_CHECKING:
    from translator.conversion import Conversion
    from translator.diffing import Difference
    from translator.findings import Finding, Place
    from translator.reading import LeafOrigin, Reading
    from translator.report.model import Curves
    from translator.source import Source

_LEVELS = {"error": 0, "warning": 1, "note": 2}
_MARKS = {"error": "training", "warning": "loss", "note": "kept"}


@dataclass(frozen=True, slots=True)
class Choices:
    """What a report is drawn up for: the card and the links by name, and the command lines that go with it.

    ``folder`` is where those put the result.
    """

    gpu: str | None = None
    network: str | None = None
    commands: tuple[Command, ...] = ()
    folder: str = ""


def of_conversion(source: Source, done: Conversion, choices: Choices | None = None) -> Report:
    """The report of a conversion; ``source`` is the text that was converted.

    Raises UsageError for an unknown card or network.
    """
    from translator import api
    from translator.findings import Level
    from translator.report import ledger
    from translator.report.meaning import meanings
    from translator.report.todo import of_conversion as decisions

    choices = choices or Choices()
    findings = api.check(done.source)
    result_findings = api.check(done.back)
    spoken = [*(line.where for line in done.ledger), *(finding.place for finding in findings)]
    before = Files("a", _texts(source, spoken))
    after = Files("b", _main_first(done.rendered.files, done.rendered.main))
    ledger.mark(done, before, after)
    _mark(findings, before)
    _mark(result_findings, after)
    left = _side("a", "Before", done.source, source.name)
    right = _side("b", "After", done.back, done.rendered.main)
    groups = ledger.groups(done, before, after)
    left = _costs(replace(left, checks=_checks(findings, before)), done.source, choices)
    right = _costs(replace(right, checks=_checks(result_findings, after)), done.completed(), choices)
    left, right = replace(left, files=before.files()), replace(right, files=after.files())
    curves, why = _curves(done.source, done.back, left, right)
    meant = meanings(done.source, done.back, api.differences(done), before)
    counts = [(entry, number) for entry, number in _counts(done) if number]
    lost = sum(line.alters_training for line in done.ledger)
    verdict = (
        f"{count(lost, 'loss touches', 'losses touch')} training." if lost else "Nothing that touches training is lost."
    )
    errors = sum(each.level is Level.ERROR for each in {*done.findings, *findings})
    if errors:
        verdict = f"{verdict} {count(errors, 'error')}: a framework would refuse its side."
    return Report(
        f"{left.title} to {right.title}",
        _subject(done.source),
        verdict,
        not lost,
        counts,
        left,
        right,
        decisions(done, before, (left, right), meanings=meant, checks=result_findings),
        groups,
        [],
        meant,
        curves,
        why,
        [*_told(choices.commands), *_launch(done.rendered.files, choices.folder)],
        [one_line(name, 200) for name in after.texts],
        bool(errors),
    )


def of_two(sources: tuple[Source, Source], readings: tuple[Reading, Reading], choices: Choices | None = None) -> Report:
    """The report of two configurations side by side. Raises UsageError for an unknown card or network."""
    from translator import api
    from translator.diffing import diff
    from translator.report.meaning import meanings
    from translator.report.todo import of_two as decisions

    choices = choices or Choices()
    found = diff(*readings)
    sides: list[Side] = []
    files: list[Files] = []
    for key, label, source, reading in zip("ab", "AB", sources, readings, strict=True):
        findings = api.check(reading)
        origins = _origins(found.differences, key)
        spoken = [*(origin.place for origin in origins), *(finding.place for finding in findings)]
        own = Files(key, _texts(source, spoken))
        for each, origin in zip(found.differences, origins, strict=True):
            if origin.place is not None:
                own.mark(origin.place, "training" if each.alters_training else "loss")
        _mark(findings, own)
        side = _side(key, label, reading, source.name)
        sides.append(_costs(replace(side, checks=_checks(findings, own)), reading, choices))
        files.append(own)
    for each in found.differences:
        _connect(each, *files)
    left, right = (replace(side, files=own.files()) for side, own in zip(sides, files, strict=True))
    curves, why = _curves(*readings, left, right)
    meant = meanings(*readings, found.findings, files[0])
    altering = sum(each.alters_training for each in found.differences)
    groups = _fields(found.differences)
    return Report(
        f"{left.title} and {right.title}",
        _subject(readings[0]),
        f"{count(altering, 'difference alters', 'differences alter')} training."
        if altering
        else "Both train the same.",
        not altering,
        [(group.touches, len(group.rows)) for group in groups],
        left,
        right,
        decisions(found.differences, files[0], (left, right), meant),
        [],
        groups,
        meant,
        curves,
        why,
        _told(choices.commands),
        [],
    )


def _subject(reading: Reading) -> str:
    """The model, the ranks and the length of the run, as far as they are known."""
    from translator.schedules import curve_of

    known = {leaf: value for leaf, value in reading.flat.items() if isinstance(value, int)}
    parts = [
        said.format(*(known[leaf] for leaf in needed))
        for said, *needed in _SUBJECT
        if all(leaf in known for leaf in needed)
    ]
    curve = curve_of(reading.flat)
    return ", ".join([*parts, *([count(curve.total, "step")] if curve is not None else [])]) or "not known"


_SUBJECT = (
    ("{:,} layers", "model.layers"),
    ("hidden size {:,}", "model.hidden"),
    ("{:,} experts", "model.moe.experts"),
    ("{:,} ranks", "parallel.world_size"),
    ("{:,} sequences of {:,} tokens in a step", "batch.global_batch", "batch.seq_len"),
)


def _side(key: str, label: str, reading: Reading, name: str) -> Side:
    from translator import frameworks

    title = "spec" if reading.native is None else f"{frameworks.get(reading.framework).title} {reading.version}"
    return Side(key, label, title, reading.framework, reading.version, one_line(name, 200))


def _costs(side: Side, reading: Reading, choices: Choices) -> Side:
    """The side with memory, compute, layout and communication, or with the reason why one is missing."""
    from translator.communication.links import DEFAULT as LINKS
    from translator.communication.links import network
    from translator.memory.estimate import estimate_reading, job_of_reading
    from translator.memory.hardware import DEFAULT, gpu
    from translator.memory.report import report
    from translator.report import cost
    from translator.report.layout import layout

    card, links = gpu(choices.gpu or DEFAULT), network(choices.network or LINKS)
    found: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    if reading.native is None:
        reason = "a spec says nothing of the framework that would run it"
        return replace(side, unknown=dict.fromkeys(("memory", "layout", "traffic"), reason))
    try:
        job, _ = job_of_reading(reading, "what a rank holds")
        found["layout"] = layout(job)
    except SourceError as error:
        return replace(side, unknown=dict.fromkeys(("memory", "layout", "traffic"), text(str(error))))
    try:
        estimated = report(estimate_reading(reading), card)
        found["memory"], found["compute"] = cost.memory(estimated), cost.compute(estimated)
    except SourceError as error:
        unknown["memory"] = text(str(error))
    try:
        found["traffic"] = cost.traffic(job, links)
    except SourceError as error:
        unknown["traffic"] = text(str(error))
    return replace(side, **found, unknown=unknown)


def _texts(source: Source, places: Iterable[Place | None]) -> dict[str, str]:
    """The source, and the files beside it that somebody speaks of."""
    found = {source.name: source.text}
    for place in places:
        if place is not None and place.file not in found:
            said = source.read_sibling(place.file)
            if said is not None:
                found[place.file] = said
    return found


def _main_first(files: Mapping[str, str], main: str) -> dict[str, str]:
    return {main: files[main], **files}


def _mark(findings: Iterable[Finding], files: Files) -> None:
    for finding in findings:
        if finding.place is not None:
            files.mark(finding.place, _MARKS[finding.level.value])


def _checks(findings: Sequence[Finding], files: Files) -> list[Check]:
    ordered = sorted(findings, key=lambda finding: _LEVELS[finding.level.value])
    return [
        Check(each.code, each.level.value, text(each.message), text(each.fix), files.link(each.place))
        for each in ordered
    ]


def _curves(one: Reading, other: Reading, left: Side, right: Side) -> tuple[Curves | None, str]:
    from translator.report.curves import curves

    return curves(one.flat, other.flat, (f"{left.label}: {left.title}", f"{right.label}: {right.title}"))


def _counts(done: Conversion) -> list[tuple[str, int]]:
    from translator.ledger import summary

    return [(entry.replace("_", " "), number) for entry, number in summary(done.ledger).items()]


def _told(commands: Iterable[Command]) -> list[Command]:
    return [Command(text(each.purpose), text(each.line)) for each in commands]


def _launch(files: Mapping[str, str], folder: str) -> list[Command]:
    """How the result is started: by the script among its files."""
    import shlex

    scripts = [name for name in files if name.endswith(".sh")]
    return [Command("start the result", text(f"bash {shlex.quote(f'{folder}{name}')}")) for name in scripts]


def _origins(differences: Sequence[Difference], key: str) -> list[LeafOrigin]:
    from translator.native import Origin
    from translator.reading import LeafOrigin

    nothing = LeafOrigin(Origin.DEFAULT)
    return [(each.left_origin if key == "a" else each.right_origin) or nothing for each in differences]


def _connect(each: Difference, left: Files, right: Files) -> None:
    one = each.left_origin.place if each.left_origin is not None else None
    other = each.right_origin.place if each.right_origin is not None else None
    if one is None or other is None:
        return
    ours, theirs = left.link(one), right.link(other)
    if ours is not None and theirs is not None:
        left.connect(one, theirs)
        right.connect(other, ours)


def _fields(differences: Sequence[Difference]) -> list[FieldGroup]:
    groups: dict[str, list[FieldRow]] = {}
    for each in differences:
        row = FieldRow(
            each.field, _said(each.left), _said(each.right), _where(each.left_origin), _where(each.right_origin)
        )
        groups.setdefault(each.touches.value, []).append(row)
    headings = {touches.value: heading for touches, heading in ALTERED.items()}
    return [FieldGroup(name, headings[name], rows) for name, rows in groups.items()]


def _said(value: object) -> str:
    return "not said" if value is None else shown(value)


def _where(origin: LeafOrigin | None) -> str:
    if origin is None:
        return ""
    if origin.option is None:
        return text(origin.note or origin.origin.value)
    place = f", {origin.place.file}:{origin.place.line}" if origin.place is not None else ""
    return text(f"{origin.option}{place}")
