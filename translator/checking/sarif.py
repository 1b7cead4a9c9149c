"""Findings as SARIF 2.1.0, the interchange format of static analysis (OASIS standard)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from urllib.parse import quote

import sarif_pydantic as sarif
from sarif_pydantic import sarif as models

from translator.checking.told import Told
from translator.codes import all_codes
from translator.findings import Level, Place
from translator.printable import one_line
from translator.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Level.ERROR: sarif.Level.ERROR, Level.WARNING: sarif.Level.WARNING, Level.NOTE: sarif.Level.NOTE}


def document(findings: Sequence[Told]) -> str:
    """One run with the rules that found something and a result for each finding, as JSON text."""
    levels: dict[str, Level] = {}
    for told in findings:
        levels.setdefault(told.finding.code, told.finding.level)
    rules = list(_rules(levels))
    index = {rule.id: number for number, rule in enumerate(rules)}
    driver = sarif.ToolDriver(name="ttx", version=__version__, semantic_version=__version__, rules=rules)
    run = sarif.Run(
        tool=sarif.Tool(driver=driver),
        results=[_result(told, index) for told in findings],
        columnKind="unicodeCodePoints",  # the model has no field for it
    )
    log = sarif.Sarif(schema_uri=SCHEMA, version="2.1.0", runs=[run])
    return f"{log.model_dump_json(by_alias=True, exclude_none=True, indent=1)}\n"


def _rules(levels: dict[str, Level]) -> Iterable[sarif.ReportingDescriptor]:
    codes = all_codes()
    for code in sorted(levels):
        title, documentation = codes.get(code, (code, ""))
        yield sarif.ReportingDescriptor(
            id=code,
            name=code,
            short_description=sarif.Message(text=title),
            full_description=sarif.Message(text=f"{title[:1].upper()}{title[1:]}."),
            help=sarif.Message(text=documentation or title),
            default_configuration=sarif.ReportingConfiguration(level=_LEVELS[levels[code]]),
        )


def _result(told: Told, index: dict[str, int]) -> sarif.Result:
    finding = told.finding
    fix = f"\n{one_line(finding.fix)}" if finding.fix else ""
    artifact = sarif.ArtifactLocation(uri=_uri(told.file))
    location = sarif.PhysicalLocation(artifact_location=artifact, region=_region(finding.place))
    return sarif.Result(
        rule_id=finding.code,
        rule_index=index[finding.code],
        level=_LEVELS[finding.level],
        message=sarif.Message(text=f"{one_line(finding.message)}{fix}"),
        locations=[sarif.Location(physical_location=location)],
        fixes=[_fix(told)] if finding.edits else None,
    )


def _fix(told: Told) -> models.Fix:
    """The edits of a finding, by the files that they are about."""
    changes: dict[str, list[models.Replacement]] = {}
    for edit in told.finding.edits:
        content = models.ArtifactContent(text=edit.replacement)
        replacement = models.Replacement(deleted_region=_region(edit.place), inserted_content=content)
        changes.setdefault(edit.place.file, []).append(replacement)
    return models.Fix(
        description=sarif.Message(text=one_line(told.finding.fix or told.finding.message)),
        artifact_changes=[
            models.ArtifactChange(artifact_location=sarif.ArtifactLocation(uri=_uri(name)), replacements=found)
            for name, found in changes.items()
        ],
    )


def _region(place: Place | None) -> sarif.Region | None:
    if place is None:
        return None
    return sarif.Region(
        start_line=place.line, start_column=place.column, end_line=place.end_line, end_column=place.end_column
    )


def _uri(name: str) -> str:
    """A file name as a URI: relative ones stay so."""
    path = PurePath(name).as_posix()
    data = path.encode("utf-8", "surrogateescape")
    return f"file://{quote(data)}" if os.path.isabs(name) else quote(data)
