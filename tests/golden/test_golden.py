"""The examples convert to what is stored beside them: files, ledger and findings.

``pytest tests/golden --accept`` stores the present outcome; review the difference before it is committed.
"""

from __future__ import annotations

import pytest
from example_cases import EXAMPLES, Case, cases, outcome


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_outcome(case: Case, accept: bool) -> None:
    found = outcome(case.convert())
    if accept:
        store(case, found)
    stored = {path.name: path.read_text(encoding="utf-8") for path in case.expected.iterdir()}
    assert sorted(found) == sorted(stored)
    for name, text in found.items():
        assert text == stored[name], name


def store(case: Case, found: dict[str, str]) -> None:
    case.expected.mkdir(exist_ok=True)
    for path in case.expected.iterdir():
        if path.name not in found:
            path.unlink()
    for name, text in found.items():
        (case.expected / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_nothing_is_lost_unsaid(case: Case) -> None:
    """Every option of the source has exactly one line, and every difference is admitted."""
    conversion = case.convert()
    assert not [finding for finding in conversion.findings if finding.code == "L290"]
    assert conversion.source.native is not None
    stated = [*conversion.source.stated(), *conversion.source.native.unknown]
    lines = [line for line in conversion.ledger if line.where is not None]
    assert len([given for given in stated if given.place is not None]) == len(lines)


def test_every_example_is_a_case() -> None:
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert folders == {case.folder.name for case in cases()}
    assert len(folders) >= 14


def test_stored_expectations_belong_to_cases() -> None:
    stored = set(EXAMPLES.glob("*/out-*"))
    assert stored == {case.expected for case in cases()}
