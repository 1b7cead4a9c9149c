"""``ttx check`` tells what will not fit on the card of a project."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_support import Ttx
from example_cases import EXAMPLES

SCRIPT = (EXAMPLES / "llama3-8b-megatron" / "train.sh").read_text(encoding="utf-8")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.sh"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_nothing_is_said_of_memory_without_a_card(ttx: Ttx, script: Path) -> None:
    result = ttx("check", str(script), "--select", "M")
    assert result.code == 0
    assert " M4" not in result.out


def test_a_card_that_it_does_not_fit_on(ttx: Ttx, script: Path) -> None:
    result = ttx("check", str(script), "--select", "M", "--gpu", "rtx-4090")
    assert result.code == 1
    assert "error M400: stage 0 needs 38.3 of 23.6 GiB of NVIDIA GeForce RTX 4090 24 GB" in result.out
    assert "fix: tensor degree 4 (--tensor-model-parallel-size 4) would" in result.out


def test_a_card_that_it_barely_fits_on(ttx: Ttx, script: Path) -> None:
    result = ttx("check", str(script), "--select", "M", "--gpu", "a100-40gb")
    assert result.code == 0
    assert "warning M401" in result.out
    assert " M4" not in ttx("check", str(script), "--select", "M", "--gpu", "h200").out


def test_the_card_of_the_project(ttx: Ttx, script: Path) -> None:
    settings = script.parent / "pyproject.toml"
    settings.write_text('[tool.ttx]\ngpu = "rtx-4090"\n', encoding="utf-8")
    assert "error M400" in ttx("check", str(script)).out
    assert "M400" not in ttx("check", str(script), "--gpu", "h200").out
    assert "M400" not in ttx("check", str(script), "--ignore", "M").out
    settings.write_text('[tool.ttx]\ngpu = "abacus"\n', encoding="utf-8")
    result = ttx("check", str(script))
    assert result.code == 2
    assert "no GPU called 'abacus'" in result.err


def test_a_comment_silences_it(ttx: Ttx, script: Path) -> None:
    script.write_text(f"# ttx: ignore=M400\n{SCRIPT}", encoding="utf-8")
    assert "M400" not in ttx("check", str(script), "--gpu", "rtx-4090").out


def test_what_cannot_be_estimated_is_a_note(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "ds_config.json"
    path.write_text('{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}', encoding="utf-8")
    result = ttx("check", str(path), "--select", "M", "--gpu", "h100")
    assert result.code == 0
    assert "note M402" in result.out
    assert "--model" in result.out
