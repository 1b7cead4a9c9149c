"""``ttx report``: what it writes, where, and what its exit code says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from example_cases import EXAMPLES

Ttx = Callable[..., Any]
SCRIPT = EXAMPLES / "llama3-8b-megatron" / "train.sh"
OLD = """torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 \\
  --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --train-iters 100 \\
  --lr 1e-4 --bf16 --mock-data --tokenizer-type NullTokenizer --vocab-size 50257
"""
RESULT = EXAMPLES / "llama3-8b-megatron" / "out-torchtitan-0.2.2" / "train.toml"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.sh").write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "train.toml").write_text(RESULT.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_markdown_goes_to_standard_output(ttx: Ttx, here: Path) -> None:
    result = ttx("report", "train.sh", "--to", "torchtitan@0.2.2")
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("# Megatron-LM 0.18.0 to torchtitan 0.2.2\n")
    assert sorted(path.name for path in here.iterdir()) == ["train.sh", "train.toml"]


def test_the_suffix_says_what_is_written(ttx: Ttx, here: Path) -> None:
    for name in ("a.html", "a.md"):
        assert ttx("report", "train.sh", "--to", "torchtitan", "-o", name).out == ""
    assert (here / "a.html").read_text().startswith("<!DOCTYPE html>\n")
    assert (here / "a.md").read_text().startswith("# Megatron-LM")
    ttx("report", "train.sh", "--to", "torchtitan", "-o", "folder")
    assert sorted(path.name for path in (here / "folder").iterdir()) == ["report.html", "report.md"]
    assert (here / "folder" / "report.html").read_bytes() == (here / "a.html").read_bytes()


def test_another_suffix_is_refused(ttx: Ttx, here: Path) -> None:
    result = ttx("report", "train.sh", "--to", "torchtitan", "-o", "a.pdf")
    assert result.code == 2
    assert ".html or .md" in result.err


def test_existing_files_stay_without_force(ttx: Ttx, here: Path) -> None:
    (here / "report.md").write_text("mine")
    words = ("report", "train.sh", "--to", "torchtitan", "-o", ".")
    result = ttx(*words)
    assert (result.code, (here / "report.md").read_text()) == (2, "mine")
    assert "exists" in result.err
    assert not (here / "report.html").exists()
    assert ttx(*words, "--force").code == 1
    assert (here / "report.md").read_text() != "mine"


def test_the_command_that_it_names_makes_the_result(ttx: Ttx, here: Path) -> None:
    words = ("train.sh", "batch.global_batch=256", "--to", "torchtitan@0.2.2", "--set", "SEQ_LEN=4096", "--nearest")
    document = json.loads(ttx("report", *words, "--format", "json").out)
    lines = {each["purpose"]: each["line"] for each in document["commands"]}
    assert lines["convert it"].startswith("ttx convert train.sh batch.global_batch=256 ")
    assert lines["start the result"] == "bash out/launch.sh"
    made = subprocess.run(
        [sys.executable, "-m", "translator", *lines["convert it"].split()[1:]], check=False, capture_output=True
    )
    assert made.returncode == 1
    assert sorted(path.name for path in (here / "out").iterdir()) == sorted(document["files"])
    shown = {file["name"]: [line["text"] for line in file["lines"]] for file in document["right"]["files"]}
    for name, lines_of in shown.items():
        assert (here / "out" / name).read_text().splitlines() == lines_of


def test_json_holds_the_data(ttx: Ttx, here: Path) -> None:
    document = json.loads(ttx("report", "train.sh", "--to", "torchtitan", "--format", "json", "-o", "a.html").out)
    assert document["schema_version"] == 1
    assert document["left"]["framework"] == "megatron"
    memory = document["right"]["memory"]
    assert memory["capacity_bytes"] > 80e9
    estimated = json.loads(ttx("memory", "train.sh", "--as", "torchtitan", "--format", "json").out)
    assert [bar["reserved_bytes"] for bar in memory["bars"]] == pytest.approx(
        [stage["reserved_bytes"]["expected"] for stage in estimated["stages"]], rel=1e-6
    )


def test_another_card(ttx: Ttx, here: Path) -> None:
    text = ttx("report", "train.sh", "--to", "torchtitan", "--gpu", "b200").out
    assert "on NVIDIA B200" in text
    assert "no GPU called" in ttx("report", "train.sh", "--to", "torchtitan", "--gpu", "zx81").err
    assert ttx("report", "train.sh", "--to", "torchtitan", "--network", "tin-cans").code == 2


def test_the_exit_code_is_that_of_the_conversion(ttx: Ttx, here: Path) -> None:
    """Also where a framework would refuse its side although nothing is lost."""
    for source, framework, target, text in (
        ("old.sh", "megatron@0.18.0", "megatron@0.18.0", OLD),
        ("odd.sh", "megatron@0.18.0", "megatron@0.18.0", OLD.replace("--lr 1e-4", "--lr 1e-4 --min-lr 1")),
        ("train.sh", "megatron@0.18.0", "torchtitan@0.2.2", SCRIPT.read_text(encoding="utf-8")),
    ):
        (here / source).write_text(text, encoding="utf-8")
        words = (source, "--from", framework, "--to", target)
        expected = ttx("convert", *words)
        found = ttx("report", *words)
        assert found.code == expected.code
        assert ("would refuse" in found.out.partition("## ")[0]) is ("would refuse" in expected.err)
    assert ttx("report", "old.sh", "--to", "megatron@0.18.0").code == 0
    assert ttx("report", "odd.sh", "--to", "megatron@0.18.0").code == 1


def test_two_configurations(ttx: Ttx, here: Path) -> None:
    result = ttx("report", "train.sh", "train.toml")
    assert (result.code, result.err) == (1, "")
    found = json.loads(ttx("diff", "train.sh", "train.toml", "--format", "json").out)
    assert (
        f"**{sum(each['alters_training'] for each in found['differences'])} differences alter training.**" in result.out
    )
    for each in found["differences"]:
        assert each["field"].replace("_", "\\_") in result.out
    same = ttx("report", "train.sh", "train.sh", "-o", "same.html")
    assert (same.code, same.out) == (0, "")
    assert "Both train the same." in (here / "same.html").read_text()


def test_frameworks_of_two_can_be_named(ttx: Ttx, here: Path) -> None:
    text = ttx("report", "train.sh", "train.toml", "--from", "megatron@0.16.0", "--from-b", "torchtitan@0.2.2").out
    assert text.startswith("# Megatron-LM 0.16.0 and torchtitan 0.2.2\n")


@pytest.mark.parametrize(
    "words",
    [
        ("train.sh",),
        ("train.sh", "train.toml", "more.toml"),
        ("train.sh", "batch.global_batch=2"),
        ("nothing.sh", "--to", "torchtitan"),
        ("train.sh", "--to", "spec"),
        ("train.sh", "--to", "nothing"),
        ("train.sh", "--to", "torchtitan", "--from-b", "megatron"),
        ("-", "-"),
        ("train.sh", "--to", "torchtitan", "-o", "nul\0.html"),
    ],
)
def test_wrong_calls(ttx: Ttx, here: Path, words: tuple[str, ...]) -> None:
    result = ttx("report", *words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("ttx: error: ")
    assert "Traceback" not in result.err


def test_standard_input(ttx: Ttx, here: Path) -> None:
    result = ttx("report", "-", "--to", "torchtitan", stdin=SCRIPT.read_bytes())
    assert result.code == 1
    assert "ttx convert - " in result.out


def test_names_from_the_root_are_not_told(ttx: Ttx, here: Path) -> None:
    for words in ((here / "train.sh", "--to", "torchtitan"), (here / "train.sh", here / "train.toml")):
        ttx("report", *words, "-o", "page.html", "--force")
        assert str(here) not in (here / "page.html").read_text()
        assert str(here) not in ttx("report", *words).out


def test_a_function_of_a_file(ttx: Ttx, here: Path) -> None:
    ttx("convert", "train.sh", "--to", "torchtitan@0.3.0", "-o", "registry.py")
    text = (here / "registry.py").read_text()
    name = text.partition("\ndef ")[2].partition("(")[0]
    result = ttx("report", f"registry.py:{name}", "--from", "torchtitan@0.3.0", "--to", "megatron")
    assert result.code in (0, 1)
    assert f"ttx convert registry.py:{name} " in result.out


def test_the_same_twice(ttx: Ttx, here: Path) -> None:
    pages = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "translator", "report", "train.sh", "--to", "torchtitan", "-o", f"{seed}.html"],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "HOME": str(here)},
            check=False,
        )
        assert done.returncode == 1
        pages.append((here / f"{seed}.html").read_bytes())
    assert pages[0] == pages[1]


def test_a_configuration_that_says_little(ttx: Ttx, here: Path) -> None:
    (here / "small.toml").write_text('[model]\nname = "llama3"\n')
    result = ttx("report", "small.toml", "--from", "torchtitan@0.2.2", "--to", "megatron", "-o", "small.html")
    assert result.code in (0, 1)
    assert "Not known:" in (here / "small.html").read_text()
