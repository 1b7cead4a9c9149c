"""Every question is answered by every built-in framework, and no configuration differs from itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from translator import api, frameworks
from translator.differences import between
from translator.differences.registry import Difference, Pair, Stance, differences, stances_of
from translator.differences.wording import Whatever, number, percent
from translator.reading import ReadOptions
from translator.spec import leaves

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples"


# Topics on which every framework has a stance, if only to say that the question does not arise.
COMPLETE = tuple(f"translator.differences.{topic}" for topic in ("batch", "optimizer", "schedule", "precision"))


@pytest.mark.parametrize("framework", frameworks.BUILT_IN)
def test_every_difference_about_training_has_a_stance(framework: str) -> None:
    asked = {code for code, entry in differences().items() if entry.judge.__module__ in COMPLETE}
    assert len(asked) == 30
    assert asked - stances_of(framework).keys() == set()
    assert stances_of(framework).keys() - differences().keys() == set()


def test_every_difference_is_between_at_least_two_frameworks() -> None:
    answered = [code for name in frameworks.BUILT_IN for code in stances_of(name)]
    assert [code for code in differences() if answered.count(code) < 2] == []


def test_differences_are_about_leaves_of_the_spec() -> None:
    unknown = {code: entry.field for code, entry in differences().items() if entry.field not in leaves()}
    assert unknown == {}


@pytest.mark.parametrize("folder", sorted(path.name for path in EXAMPLES.iterdir()))
def test_a_configuration_does_not_differ_from_itself(folder: str) -> None:
    case = yaml.safe_load((EXAMPLES / folder / "case.yaml").read_text(encoding="utf-8"))
    options = ReadOptions(
        variables=case.get("set", {}),
        positional=tuple(case.get("args", ())),
        launch=case.get("launch"),
        world_size=case.get("world_size"),
        overrides=case.get("fields", {}),
        model=case.get("model"),
    )
    name = str(EXAMPLES / folder / case["source"])
    one, other = (api.read(name, framework=case["framework"], options=options) for _ in range(2))
    assert between(one, other) == []
    done = api.convert(one, f"{one.framework}@{one.version}")
    if not done.alters_training:
        assert api.differences(done) == []


@pytest.mark.parametrize("target", ["megatron@0.18.0", "torchtitan@0.2.2", "torchtitan@0.3.0", "deepspeed@0.19.2"])
@pytest.mark.parametrize("folder", ["mixtral-8x7b-megatron", "llama3-8b-old-torchtitan", "qwen2-7b-hf-deepspeed"])
def test_differences_about_training_name_the_versions_they_were_read_from(folder: str, target: str) -> None:
    case = yaml.safe_load((EXAMPLES / folder / "case.yaml").read_text(encoding="utf-8"))
    options = ReadOptions(world_size=case.get("world_size"), model=case.get("model"))
    reading = api.read(str(EXAMPLES / folder / case["source"]), framework=case["framework"], options=options)
    found = [finding for finding in api.differences(api.convert(reading, target)) if "D300" <= finding.code < "D330"]
    same = target.partition("@")[0] == case["framework"].partition("@")[0]
    assert found or same
    assert len(found) == len({finding.code for finding in found})
    for finding in found:
        sources = re.findall(r"\(([^()]*:\d+ at [^()]*\d)\)", finding.message)
        assert len(sources) == 2, finding.message


def test_a_difference_stays_silent_where_one_side_has_no_answer() -> None:
    def judge(pair: Pair) -> str | None:
        """A question."""
        _ = pair
        return ""

    entry = Difference("D399", next(iter(differences().values())).level, "optimizer.lr", judge)
    reading = api.read(str(EXAMPLES / "llama3-8b-megatron" / "train.sh"))
    from translator.subject import Subject

    side = Subject(reading)
    ours, theirs = Stance("a", "does a", "file:1"), Stance("b", "does b", "file:2", None, {"a": "do a"})
    assert list(entry.findings(side, ours, side, None)) == []
    assert list(entry.findings(side, ours, side, ours)) == []
    found = list(entry.findings(side, ours, side, theirs))
    assert [finding.fix for finding in found] == ["do a"]
    assert "does a (file:1)" in found[0].message


def test_words_for_numbers_and_ways() -> None:
    assert [number(value) for value in (3e-5, 0.1, 1000.0, 1 / 3)] == ["3e-05", "0.1", "1000", "0.333333"]
    assert percent(0.0862) == "8.6 %"
    ways = Whatever("set it to {kind}", unless="none")
    assert ways.get("5") == "set it to 5"
    assert ways.get("none of it", "") == ""
