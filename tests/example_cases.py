"""The example cases under ``fixtures/examples``, and what the product makes of them.

``case.yaml`` names the ``source``, its ``framework``, the ``targets``, and what a person would add on the command line
(``world_size``, ``set``, ``positional``, ``model``, ``fields``). Each target has a folder ``out-<target>`` with the
files that are written, ``ledger.json`` and ``findings.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from translator import api
from translator.conversion import Conversion
from translator.reading import ReadOptions
from translator.source import Source

EXAMPLES = Path(__file__).resolve().parents[1] / "fixtures" / "examples"
LEDGER, FINDINGS = "ledger.json", "findings.json"
LEDGER_KEYS = ("option", "entry", "touches", "target", "note")


@dataclass(frozen=True)
class Case:
    """One target of one example."""

    folder: Path
    target: str
    source: str
    framework: str
    options: ReadOptions

    @property
    def name(self) -> str:
        return f"{self.folder.name}-to-{self.target}"

    @property
    def expected(self) -> Path:
        """The folder of the stored expectation."""
        return self.folder / f"out-{self.target.replace('@', '-')}"

    def convert(self) -> Conversion:
        """Convert the case; done once for each."""
        return _converted(self.folder.name, self.target)


@cache
def _converted(folder: str, target: str) -> Conversion:
    case = next(case for case in cases() if (case.folder.name, case.target) == (folder, target))
    text = (case.folder / case.source).read_text(encoding="utf-8")
    siblings = {
        path.name: path.read_text(encoding="utf-8")
        for path in case.folder.iterdir()
        if path.is_file() and path.name not in (case.source, "case.yaml")
    }
    source = Source(case.source, text, siblings=siblings)
    return api.convert(source, case.target, framework=case.framework, options=case.options)


@cache
def cases() -> tuple[Case, ...]:
    """All cases, one for each target."""
    found = []
    for path in sorted(EXAMPLES.glob("*/case.yaml")):
        stated: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        options = ReadOptions(
            variables=stated.get("set", {}),
            positional=tuple(stated.get("positional", ())),
            world_size=stated.get("world_size"),
            overrides=stated.get("fields", {}),
            model=stated.get("model"),
        )
        found += [
            Case(path.parent, target, stated["source"], stated["framework"], options) for target in stated["targets"]
        ]
    return tuple(found)


def outcome(conversion: Conversion) -> dict[str, str]:
    """Everything that is compared: file name -> text."""
    ledger = [{key: line.as_dict()[key] for key in LEDGER_KEYS} for line in conversion.ledger]
    findings = [finding.as_dict() for finding in conversion.findings]
    return {**conversion.rendered.files, LEDGER: _lines(ledger), FINDINGS: _lines(findings)}


def _lines(entries: list[dict[str, Any]]) -> str:
    """A list with one entry a line, so that a difference shows what it is about."""
    if not entries:
        return "[]\n"
    return "[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries) + "\n]\n"
