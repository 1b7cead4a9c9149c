"""Every code has cases: configurations that it speaks about, and configurations that it does not.

``cases/CODE.yaml`` holds a list of cases. Each has a ``name``, a ``source`` (text), ``finds`` (whether the code is
found), and where needed ``from`` (``framework@version``), ``to`` (for codes about a conversion) or ``against`` (another
configuration: ``from``, and ``source`` where it is not the same text), ``file`` (its name),
``files`` (siblings by name), ``world_size``, ``set`` (environment), ``args``, ``model``, ``line`` (where it is found),
``gpu`` (a card), ``level``, ``says`` (words of the message) and ``fix`` (words of the way out).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from translator import api
from translator.codes import all_codes
from translator.differences import between
from translator.errors import TtxError
from translator.findings import Finding
from translator.reading import ReadOptions
from translator.source import Source

CASES = Path(__file__).parent / "cases"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it was built


@cache
def cases() -> list[tuple[str, dict[str, Any]]]:
    """Code and case, of every file."""
    return [
        (path.stem, case)
        for path in sorted(CASES.glob("*.yaml"))
        for case in yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    ]


def findings_of(case: dict[str, Any]) -> list[Finding]:
    """Everything that is said about a case: reading, rules, and the conversion where there is a target."""
    options = ReadOptions(
        variables=case.get("set", {}),
        positional=tuple(case.get("args", ())),
        launch=case.get("launch"),
        world_size=case.get("world_size"),
        overrides=case.get("overrides", {}),
        model=case.get("model"),
    )
    source = Source(case.get("file", "source"), case["source"], siblings=case.get("files", {}))
    reading = api.read(source, framework=case.get("from"), options=options)
    found = api.check(reading)
    if "gpu" in case:
        from translator.memory.findings import memory_findings
        from translator.memory.hardware import gpu

        found += memory_findings(reading, gpu(case["gpu"]))
    if "to" in case:
        done = api.convert(reading, case["to"], nearest=case.get("nearest", False))
        found += [finding for finding in (*done.findings, *api.differences(done)) if finding not in found]
    if "against" in case:
        other = case["against"]
        text = Source(other.get("file", "other"), other.get("source", case["source"]), siblings=case.get("files", {}))
        found += between(reading, api.read(text, framework=other["from"], options=options))
    return found


@pytest.mark.parametrize(("code", "case"), cases(), ids=[f"{code}-{case['name']}" for code, case in cases()])
def test_case(code: str, case: dict[str, Any]) -> None:
    try:
        found = [finding for finding in findings_of(case) if finding.code == code]
    except TtxError as error:
        pytest.fail(f"the case cannot be read: {error}")
    assert bool(found) == case["finds"], [finding.as_text() for finding in found]
    if not found:
        return
    assert all(finding.message for finding in found)
    if "line" in case:
        assert case["line"] in {finding.place.line for finding in found if finding.place}
    if "level" in case:
        assert case["level"] in {finding.level.value for finding in found}
    for part in ("says", "fix"):
        for words in case.get(part, ()) if isinstance(case.get(part), list) else [case.get(part)]:
            told = [finding.message if part == "says" else finding.fix for finding in found]
            assert words is None or any(words in text for text in told), told


# Codes that a case cannot show: faults of ttx itself (L290), what is said of files that are no configuration, of
# comments and of targets (R040 to R044; tests/cli/test_cli_check*.py), and an evaluation that is given up: nothing is
# left to be read, so the code comes with an error and never with a reading (R117; tests/pyconfig/test_evaluate.py).
WITHOUT_CASES = {"L290", "R040", "R041", "R042", "R043", "R044", "R117"}


def test_every_code_has_a_case_that_finds_it_and_one_that_does_not() -> None:
    seen: dict[str, set[bool]] = {}
    for code, case in cases():
        seen.setdefault(code, set()).add(case["finds"])
    assert not seen.keys() - all_codes().keys()
    missing = [code for code in all_codes() if code not in WITHOUT_CASES and seen.get(code) != {True, False}]
    assert not [code for code in missing if code[0] in COMPLETE]


COMPLETE: tuple[str, ...] = ("R", "S", "P", "D", "M")

# What the documentation of a code has, by its letter.
_SECTIONS = {
    "P": ("Why:", "Example:", "Fix:", "Source:"),
    "M": ("Why:", "Example:", "Fix:", "Source:"),
    "D": ("Why:", "Example:", "Fix:"),
}


def test_documentation_of_rules_has_its_sections() -> None:
    for code, (title, documentation) in all_codes().items():
        assert title, code
        wanted = _SECTIONS.get(code[0], ("Way out:",))
        assert not [section for section in wanted if section not in documentation], code
