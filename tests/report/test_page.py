"""What every page keeps to: it stands alone, its links lead somewhere, and it can be read without seeing it."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from itertools import pairwise

import pytest
from page_support import Element, parsed
from report_support import Migration, migrations, source_of

from translator import api
from translator.report import html
from translator.report.build import of_conversion, of_two
from translator.report.model import Report
from translator.source import load


@cache
def report_of(name: str) -> Report:
    migration = next(migration for migration in migrations() if migration.case.name == name)
    return of_conversion(source_of(migration.case), migration.case.convert())


@cache
def page_of(name: str) -> str:
    if name != "two":
        return html.page(report_of(name))
    case = migrations()[0].case
    done = case.convert()
    result = load(str(case.expected / done.rendered.main))
    return html.page(of_two((source_of(case), result), (done.source, api.read(result))))


NAMES = [*(migration.case.name for migration in migrations()), "two"]


@pytest.fixture(params=NAMES)
def page(request: pytest.FixtureRequest) -> str:
    return page_of(request.param)


@pytest.fixture
def tree(page: str) -> Element:
    return parsed(page)


def test_it_stands_alone(page: str, tree: Element) -> None:
    assert not [each for each in tree.all() if {"src", "srcset", "action", "data"} & each.attributes.keys()]
    assert {each.tag for each in tree.all()}.isdisjoint({"link", "iframe", "img", "object", "embed", "base"})
    assert all((each.attributes.get("href") or "#").startswith("#") for each in tree.all())
    style = tree.all("style")[0].text
    assert "url(" not in style
    assert "@import" not in style
    assert "@font-face" not in style


def test_its_policy_lets_its_own_script_run_alone(page: str, tree: Element) -> None:
    metas = [each.attributes for each in tree.all("meta")]
    policy = next(each["content"] for each in metas if each.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    scripts = tree.all("script")
    assert len(scripts) <= 1
    for script in scripts:
        expected = b64encode(sha256(script.text.encode()).digest()).decode()
        assert f"script-src 'sha256-{expected}'" in policy
    assert not [name for each in tree.all() for name in each.attributes if name.startswith("on")]


def test_links_lead_somewhere_and_identifiers_are_unique(tree: Element) -> None:
    identifiers = [each.attributes["id"] for each in tree.all() if "id" in each.attributes]
    assert len(identifiers) == len(set(identifiers))
    wanted = {str(each.attributes["href"])[1:] for each in tree.all("a")}
    wanted |= {str(each.attributes["aria-labelledby"]) for each in tree.all() if "aria-labelledby" in each.attributes}
    assert wanted <= set(identifiers)
    assert any(re.fullmatch(r"b\d+-\d+", each) for each in wanted)
    assert any(re.fullmatch(r"a\d+-\d+", each) for each in wanted)


def test_headings_are_in_order(tree: Element) -> None:
    levels = [int(each.tag[1]) for each in tree.all() if re.fullmatch("h[1-6]", each.tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_landmarks_and_names(tree: Element) -> None:
    assert [len(tree.all(tag)) for tag in ("header", "nav", "main")] == [1, 1, 1]
    assert tree.all("html")[0].attributes["lang"] == "en"
    for region in tree.all():
        if region.attributes.get("role") == "region":
            assert region.attributes.get("aria-labelledby")
            assert region.attributes["tabindex"] == "0", "what scrolls can be reached by keyboard"
    for control in [*tree.all("input"), *tree.all("select")]:
        assert control.parent is not None
        assert control.parent.tag == "label"


def test_tables_say_what_they_hold(tree: Element) -> None:
    tables = tree.all("table")
    assert len(tables) >= 8
    for table in tables:
        assert table.children[0].tag == "caption"
        assert table.children[0].text.strip()
        assert all("scope" in each.attributes for each in table.all("th"))
        width = len(table.all("thead")[0].all("th"))
        for row in table.all("tbody")[0].children:
            cells = [each for each in row.children if each.tag in ("th", "td")]
            assert sum(int(each.attributes.get("colspan") or 1) for each in cells) == width


def test_every_option_of_the_ledger_is_on_the_page() -> None:
    migration = migrations()[0]
    tree = parsed(page_of(migration.case.name))
    rows = [each for each in tree.all("tr") if each.attributes.get("class") == "entry"]
    ledger = migration.case.convert().ledger
    assert len(rows) == len(ledger)
    assert sum(each.attributes["data-loss"] == "yes" for each in rows) == sum(line.entry.is_loss for line in ledger)
    assert {each.attributes["data-entry"] for each in rows} == {line.entry.value for line in ledger}


@pytest.mark.parametrize("migration", migrations(), ids=lambda migration: migration.case.name)
def test_the_result_is_shown_whole_and_linked(migration: Migration) -> None:
    report = report_of(migration.case.name)
    done = migration.case.convert()
    shown = {file.name: "\n".join(line.text for line in file.lines) for file in report.right.files}
    assert shown.keys() == done.rendered.files.keys()
    for name, text in done.rendered.files.items():
        assert shown[name].split() == text.split()
    linked = [row for group in report.ledger for row in group.rows if row.target_links]
    assert len(linked) >= 10


def test_what_differs_in_meaning_is_taken_apart() -> None:
    for migration in migrations():
        report = report_of(migration.case.name)
        findings = api.differences(migration.case.convert())
        assert [each.code for each in report.meanings] != []
        assert sorted(each.code for each in report.meanings) == sorted(each.code for each in findings)
        said = {each.code: each.message for each in findings}
        for each in report.meanings:
            for part in (each.left, each.left_source, each.right, each.right_source, each.weight):
                assert part in said[each.code]


def test_open_ends_are_to_be_decided() -> None:
    for migration in migrations():
        done, report = migration.case.convert(), report_of(migration.case.name)
        wanted = [line for line in done.ledger if line.alters_training or line.entry.value == "needs-input"]
        warned = [each for each in api.differences(done) if each.level.value == "warning"]
        kinds = [each.kind for each in report.decisions]
        assert len([kind for kind in kinds if kind in ("answer", "accept", "accept or replace")]) == len(wanted)
        assert kinds.count("align or accept") == len(warned)
        assert report.same_training is not done.alters_training
