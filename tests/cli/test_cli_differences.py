"""What ``ttx convert`` says of words that mean something else in the target, and of what is slow in the source."""

from __future__ import annotations

from pathlib import Path

from cli_support import SCRIPT, Ttx


def test_what_words_mean_elsewhere_is_told_in_one_line_each(ttx: Ttx) -> None:
    result = ttx("convert", SCRIPT, "--to", "torchtitan")
    block = result.err[result.err.index("same words, other meaning (") :].split("\n\n")[0].splitlines()
    told = [line for line in block if line.startswith("  D3")]
    assert block[0] == f"same words, other meaning ({len(told)})"
    assert any(line.startswith("  D300  ") for line in told)
    assert not any(".py:" in line for line in told), "where it was read is for those who ask"
    assert block[-1].startswith("  ttx explain D3")


def test_the_document_holds_them_and_the_notes(ttx: Ttx) -> None:
    document = ttx("convert", SCRIPT, "--to", "torchtitan", "--format", "json").document
    levels = {finding["level"] for finding in document["findings"] if finding["code"].startswith("D")}
    assert levels == {"warning", "note"}


def test_the_same_framework_and_version_has_none(ttx: Ttx) -> None:
    assert "same words" not in ttx("convert", SCRIPT, "--to", "megatron").err
    assert "same words" not in ttx("convert", SCRIPT, "--to", "spec").err


def test_a_comment_silences_one(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    path.write_text("# ttx: ignore=D300\n" + SCRIPT.read_text())
    assert "D300" not in ttx("convert", path, "--to", "torchtitan").err


def test_what_is_slow_is_told_of_the_source(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    flags = "--pipeline-model-parallel-size 8 --global-batch-size 16 --micro-batch-size 1"
    path.write_text(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 "
        f"--seq-length 512 --max-position-embeddings 512 {flags} --train-iters 999 --lr 1e-4 --vocab-size 999 --bf16\n"
    )
    assert "warning P500" in ttx("convert", path, "--to", "torchtitan").err
