"""``ttx memory``."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_support import Ttx
from example_cases import EXAMPLES

SCRIPT = str(EXAMPLES / "llama3-405b-megatron" / "run_405b.sh")
VOCAB = "model.vocab=128256"


def test_a_table_per_stage_with_a_verdict(ttx: Ttx) -> None:
    result = ttx("memory", SCRIPT, VOCAB, "--gpu", "a100-80gb")
    assert (result.code, result.err) == (1, "")
    lines = result.out.splitlines()
    assert lines[0] == "Megatron-LM 0.18.0 on NVIDIA A100 80 GB SXM (79.2 GiB): GiB per rank"
    assert lines[1].split()[:3] == ["stage", "layers", "parameters"]
    assert lines[2].split()[:2] == ["0", "7"]
    assert "It does not fit: the fullest stage is 1" in result.out
    assert "The smallest changes that make it fit, cheapest first:" in result.out
    assert "--tensor-model-parallel-size" in result.out or "--recompute-granularity" in result.out
    assert "FLOPs per token and training step" in result.out


def test_a_larger_card_takes_it(ttx: Ttx) -> None:
    result = ttx("memory", SCRIPT, VOCAB, "--gpu", "MI300X")
    assert result.code == 0
    assert "It fits" in result.out


def test_json(ttx: Ttx) -> None:
    result = ttx("memory", SCRIPT, VOCAB, "--format", "json", "--gpu", "h200")
    document = json.loads(result.out)
    assert list(document)[:6] == ["schema_version", "framework", "version", "gpu", "capacity_bytes", "fits"]
    assert len(document["stages"]) == 16
    for stage in document["stages"]:
        allocated = stage["allocated_bytes"]
        assert allocated["low"] <= allocated["expected"] <= allocated["high"]
        counted = sum(term["bytes"] for term in stage["terms"] if term["kind"] != "outside the allocator")
        assert counted == pytest.approx(allocated["expected"], abs=len(stage["terms"]))
        assert stage["reserved_bytes"]["expected"] >= allocated["expected"]


def test_a_picture(ttx: Ttx, tmp_path: Path) -> None:
    picture = tmp_path / "memory.svg"
    assert ttx("memory", SCRIPT, VOCAB, "-o", str(picture)).code == 1
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    assert root.tag.endswith("svg")
    assert picture.read_text(encoding="utf-8").count("stage ") >= 16
    before = picture.read_bytes()
    again = ttx("memory", SCRIPT, VOCAB, "-o", str(picture))
    assert again.code == 2
    assert picture.read_bytes() == before, "a picture that exists is kept"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((SCRIPT, "model.vocab=0"), "model.vocab"),
        ((SCRIPT, VOCAB, "--gpu", "h1000"), "no GPU called 'h1000'"),
        ((SCRIPT, VOCAB, "--gpu", "h"), "more than one GPU begins with 'h'"),
        ((SCRIPT, VOCAB, "-o", "x.png"), ".svg"),
        ((SCRIPT, VOCAB, "batch.micro_batch=two"), "batch.micro_batch"),
        ((SCRIPT, VOCAB, "parallel.pipeline.degree=1000000"), "longer than the model's 126 layers"),
        ((SCRIPT, VOCAB, "--as", "nothing"), "unknown framework 'nothing'"),
    ],
)
def test_what_is_missing_is_one_line(ttx: Ttx, words: tuple[str, ...], said: str) -> None:
    result = ttx("memory", *words)
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert said in result.err


def test_the_card_of_the_project(ttx: Ttx, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ttx]\ngpu = "mi300x"\n', encoding="utf-8")
    script = tmp_path / "run.sh"
    script.write_text(Path(SCRIPT).read_text(encoding="utf-8"), encoding="utf-8")
    assert "MI300X" in ttx("memory", str(script), VOCAB).out.splitlines()[0]
    assert "H200" in ttx("memory", str(script), VOCAB, "--gpu", "h200").out.splitlines()[0]


def test_numbers_beyond_any_card_stay_readable(ttx: Ttx) -> None:
    result = ttx("memory", SCRIPT, VOCAB, "batch.seq_len=1000000000000000")
    assert result.code == 1
    assert max(map(len, result.out.splitlines())) < 160


@pytest.mark.parametrize("target", ["megatron", "torchtitan", "torchtitan@0.3.0", "deepspeed"])
def test_a_spec_under_each_framework(ttx: Ttx, tmp_path: Path, target: str) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(ttx("parse", SCRIPT).out, encoding="utf-8")
    assert "--as FRAMEWORK" in ttx("memory", str(spec), VOCAB).err
    result = ttx("memory", str(spec), VOCAB, "--as", target)
    assert result.code in (0, 1)
    assert "What it holds then:" in result.out
