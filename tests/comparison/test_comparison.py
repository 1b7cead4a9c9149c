"""Every framework says how it does every concept, and nothing in it is typed twice."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from translator import frameworks
from translator.cli import main
from translator.comparison import page
from translator.comparison.registry import chapters, concepts, how, ways_of
from translator.errors import InternalError
from translator.knowledge import knowledge_of
from translator.spec import leaves

STORED = Path(__file__).resolve().parents[2] / "schemas" / page.PAGE
EVERY = [(name, concept) for name in frameworks.BUILT_IN for concept in concepts()]


def test_there_are_enough_concepts() -> None:
    assert len(concepts()) == 55
    assert all(entries for _, entries in chapters())


def test_concepts_are_about_fields_of_the_spec() -> None:
    assert not [(one.name, leaf) for one in concepts().values() for leaf in one.fields if leaf not in leaves()]
    named = [leaf for one in concepts().values() for leaf in one.fields]
    assert len(named) == len(set(named))


@pytest.mark.parametrize("framework", frameworks.BUILT_IN)
def test_a_framework_knows_every_concept_and_no_other(framework: str) -> None:
    assert ways_of(framework).keys() == concepts().keys()


@pytest.mark.parametrize(("framework", "concept"), EVERY)
def test_a_way_is_complete(framework: str, concept: str) -> None:
    way = ways_of(framework)[concept]
    assert way.does.endswith(".")
    assert not way.memory or way.memory.endswith(".")
    assert 1 <= len(re.findall(r"\.(?: |$)", way.does)) <= 4
    assert way.guide
    assert len(set(way.guide)) == len(way.guide)


@pytest.mark.parametrize(("framework", "concept"), EVERY)
def test_options_come_from_the_tables(framework: str, concept: str) -> None:
    one, way = frameworks.get(framework), ways_of(framework)[concept]
    table = one.table(one.default_version)
    for address in way.options:
        assert address in table.known, address
        # One that has a field of this concept is derived, and need not be named.
        assert not set(table.fields_of(address)) & set(concepts()[concept].fields), address
    assert "--" not in way.does + way.memory, "options stand in the tables, not in words"


def test_options_are_those_of_the_fields_as_users_write_them() -> None:
    found = page.entry(concepts()["tensor-parallelism"], "")["frameworks"]
    assert isinstance(found, dict)
    options = {name: way["options"] for name, way in found.items()}
    assert options["megatron"] == ["--tensor-model-parallel-size", "--tp-comm-overlap"]
    assert options["torchtitan"] == [
        "parallelism.tensor_parallel_degree",
        "parallelism.enable_async_tensor_parallel",
    ]
    assert options["deepspeed"][:2] == ["tensor_parallel.autotp_size", "tensor_parallel.tp_overlap_comm"]


@pytest.mark.parametrize("framework", frameworks.BUILT_IN)
def test_every_part_of_the_communication_has_a_formula_and_a_concept(framework: str) -> None:
    parts = {part.__name__ for part in import_module(knowledge_of(framework).communication).PARTS}
    named = {name for way in ways_of(framework).values() for name in way.moves}
    assert named == parts
    for name in parts:
        found = page.bytes_of(framework, name)
        assert re.search(r"\d|all-", found["bytes"]), found
        assert not found["what"].endswith(".")


def test_a_part_without_a_formula_is_refused() -> None:
    with pytest.raises(InternalError, match="no part nothing"):
        page.bytes_of("megatron", "nothing")


def test_differences_are_found_by_field() -> None:
    codes = page.codes_of(concepts()["loss-normalisation"])
    assert {"D300", "D304"} <= codes.keys()
    assert page.codes_of(concepts()["activation-offload"]) == {}


@pytest.mark.parametrize("text", ["a.py", "a.py::", "a.txt::f", "f"])
def test_a_place_names_a_file_and_a_symbol(text: str) -> None:
    with pytest.raises(InternalError, match="no place"):
        how("It does.", text)


def test_the_page_is_current() -> None:
    current = STORED.read_text(encoding="utf-8") == page.page()
    assert current, "write it again: python -m translator compare --format markdown > schemas/comparison.md"


def test_the_page_links_to_its_sections() -> None:
    text = page.page()
    targets = re.findall(r"\]\(#([a-z0-9-]+)\)", text)
    assert targets == list(concepts())
    assert all(text.count(f'<a id="{name}">') == 1 for name in targets)
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_the_command_lists_the_concepts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in concepts())


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("gather-policy", ["gather-policy"]),
        ("Gather policy", ["gather-policy"]),
        ("parallel.context_method", ["context-parallelism"]),
        ("parallelism", None),
        ("clipping", ["gradient-clipping"]),
    ],
)
def test_the_command_finds_a_concept(
    capsys: pytest.CaptureFixture[str], wanted: str, expected: list[str] | None
) -> None:
    assert main(["compare", wanted, "--format", "json"]) == 0
    found = [one["concept"] for one in json.loads(capsys.readouterr().out)["concepts"]]
    assert found == expected if expected else len(found) > 4


def test_the_command_names_what_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "gradient-storage"]) == 0
    out = capsys.readouterr().out
    for framework in frameworks.every():
        assert f"{framework.title} {framework.default_version}" in out
        for place in ways_of(framework.name)["gradient-storage"].guide:
            assert f"  {place.file}: {place.symbol} (" in out
    assert "D323" in out


def test_one_concept_as_markdown_is_a_section_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "recompute", "--format", "markdown"]) == 0
    assert capsys.readouterr().out in page.page()


def test_all_concepts_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == 1
    assert [one["concept"] for one in document["concepts"]] == list(concepts())


@pytest.mark.parametrize(("wanted", "near"), [("gather-polcy", "gather-policy"), ("x" * 5000, "lists"), ("", "lists")])
def test_an_unknown_concept_is_named(capsys: pytest.CaptureFixture[str], wanted: str, near: str) -> None:
    assert main(["compare", wanted]) == 2
    assert near in capsys.readouterr().err
