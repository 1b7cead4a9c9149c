"""``ttx explain --all`` and the page of rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_support import Ttx

from translator import frameworks
from translator.checking import pages
from translator.checks.registry import rules_of
from translator.codes import all_codes
from translator.differences.registry import differences, stances_of
from translator.native import Native
from translator.reading import read_native
from translator.subject import Subject


def test_all_as_json_holds_every_code_and_what_frameworks_do_by_default(ttx: Ttx) -> None:
    document = ttx("explain", "--all", "--format", "json").document
    assert [entry["code"] for entry in document["codes"]] == list(all_codes())
    loss = next(entry for entry in document["codes"] if entry["code"] == "D300")
    assert len(loss["by_default"]) == len(frameworks.BUILT_IN)
    assert all(re.search(r"\.py:\d+", said) for said in loss["by_default"].values()), "with the line it was read from"


def test_the_page_has_a_heading_for_every_code(ttx: Ttx) -> None:
    text = ttx("explain", "--all", "--format", "markdown").out
    assert re.findall(r"^### ([A-Z]\d{3}): ", text, re.MULTILINE) == sorted(
        all_codes(), key=lambda code: (list(pages.FAMILIES).index(code[0]), code)
    )
    assert "\n\n\n" not in text
    assert all(f"## {heading} (" in text for heading in pages.FAMILIES.values() if heading != "Memory")


def test_the_stored_page_is_current() -> None:
    stored = Path(__file__).resolve().parents[2] / "schemas" / "rules.md"
    current = stored.read_text(encoding="utf-8") == pages.page()
    assert current, "write it again: python -m translator explain --all --format markdown > schemas/rules.md"


def test_one_code_in_every_format(ttx: Ttx) -> None:
    said = [ttx("explain", "d300", "--format", name) for name in ("text", "json", "markdown")]
    assert [result.code for result in said] == [0, 0, 0]
    for framework in frameworks.BUILT_IN:
        title = frameworks.get(framework).title
        assert all(title in result.out for result in said)
    assert said[2].out.startswith("### D300: ")


@pytest.mark.parametrize("name", frameworks.BUILT_IN)
def test_rules_and_stances_take_what_states_nothing_at_every_version(name: str) -> None:
    framework = frameworks.get(name)
    for version in framework.versions:
        native = Native(name, version)
        framework.settle(native)
        subject = Subject(read_native(native, framework.table(version)))
        for stance in stances_of(name).values():
            stance(subject)
        for rule in rules_of(name):
            assert all(finding.code == rule.code for finding in rule.findings(subject))


def test_a_difference_says_what_most_frameworks_do() -> None:
    for code in differences():
        said = pages.by_default(code)
        assert said, f"no framework's default and no example shows {code}"
        assert len({text.split(" ")[0] for text in said}) == len(said), "one line for each framework"


def test_signs_of_markdown_are_text_outside_of_code() -> None:
    entry = {"code": "R000", "title": "a <b>", "documentation": "x * y, `a*b<c`\nWhy: because"}
    assert pages.section(entry) == "### R000: a \\<b>\n\nx \\* y, `a*b<c`\n\n**Why:** because\n"
