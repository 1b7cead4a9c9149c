"""``ttx diff``, and that a conversion differs from its source by what its ledger admits and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import Ttx
from example_cases import EXAMPLES, Case, cases

from translator.diffing import diff
from translator.ledger import Entry
from translator.spec import leaves
from translator.spec.touches import Touches

SCRIPT = EXAMPLES / "llama3-8b-megatron" / "train.sh"
BASE = """torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 \\
  --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size {batch} --train-iters 100 \\
  --lr {lr} --mock-data --bf16 --vocab-size 50257 --log-interval {interval} --distributed-timeout-minutes {minutes}
"""


def script(path: Path, *, batch: int = 8, lr: str = "1e-4", interval: int = 10, minutes: int = 10) -> str:
    path.write_text(BASE.format(batch=batch, lr=lr, interval=interval, minutes=minutes), encoding="utf-8")
    return str(path)


def test_the_same_configuration(ttx: Ttx) -> None:
    result = ttx("diff", str(SCRIPT), str(SCRIPT))
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith("Both train the same.\n")


def test_spelling_is_no_difference(ttx: Ttx, tmp_path: Path) -> None:
    left, right = script(tmp_path / "a.sh", lr="1e-4"), script(tmp_path / "b.sh", lr="0.0001")
    assert ttx("diff", left, right).code == 0


def test_what_alters_training_is_told_with_its_origin(ttx: Ttx, tmp_path: Path) -> None:
    left, right = script(tmp_path / "a.sh"), script(tmp_path / "b.sh", batch=16, lr="3e-4")
    result = ttx("diff", left, right)
    assert result.code == 1
    assert "alters training" in result.out
    assert "  optimizer.lr: 0.0001 -> 0.0003" in result.out
    assert f"B: --lr, {right}:3" in result.out
    assert "learning rates differ by at most" in result.out


def test_what_does_not_alter_training_ends_well(ttx: Ttx, tmp_path: Path) -> None:
    left, right = script(tmp_path / "a.sh"), script(tmp_path / "b.sh", interval=50, minutes=30)
    result = ttx("diff", left, right)
    assert result.code == 0
    assert "logging.interval: 10 -> 50" in result.out
    assert "Both train the same; 2 other differences." in result.out


def test_json(ttx: Ttx, tmp_path: Path) -> None:
    left, right = script(tmp_path / "a.sh"), script(tmp_path / "b.sh", lr="3e-4")
    document = json.loads(ttx("diff", left, right, "--format", "json").out)
    assert document["same_training"] is False
    found = {entry["field"]: entry for entry in document["differences"]}
    assert (found["optimizer.lr"]["left"], found["optimizer.lr"]["right"]) == (1e-4, 3e-4)
    assert found["optimizer.lr"]["alters_training"] is True
    assert document["learning_rate"]["largest_difference"] == pytest.approx(2.0)


def test_markdown_shows_hostile_names_as_they_are(ttx: Ttx, tmp_path: Path) -> None:
    left = script(tmp_path / "a|b_*.sh")
    right = script(tmp_path / "b.sh", lr="3e-4")
    result = ttx("diff", left, right, "--format", "markdown")
    assert result.code == 1
    assert "a\\|b\\_\\*.sh" in result.out
    rows = [line for line in result.out.splitlines() if line.startswith("| optimizer.lr ")]
    assert len(rows) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-", "-"), "only one"),
        ((str(SCRIPT), "missing.toml"), "no such file"),
        ((str(SCRIPT), str(SCRIPT), "--from", "nemo"), "unknown framework"),
        ((str(SCRIPT), str(SCRIPT), "--world-size", "0"), "--world-size"),
    ],
)
def test_wrong_calls_are_one_line(ttx: Ttx, words: tuple[str, ...], said: str) -> None:
    result = ttx("diff", *words)
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert said in result.err


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_conversion_differs_by_its_ledger(case: Case) -> None:
    done = case.convert()
    found = {difference.field for difference in diff(done.source, done.back).differences}
    lossy = [line for line in done.ledger if line.entry.is_loss]
    admitted = {leaf for line in lossy for leaf in line.fields}
    assert not found - admitted, "a difference that the ledger does not admit"
    known = leaves()
    for line in lossy:
        concerned = [leaf for leaf in line.fields if known[leaf].touches is not Touches.NOTHING]
        if line.entry in (Entry.APPROXIMATED, Entry.UNSUPPORTED) and concerned:
            assert found & set(concerned), f"{line.option} is a loss in the ledger and no difference"


def test_the_public_functions(tmp_path: Path) -> None:
    import translator

    left, right = script(tmp_path / "a.sh"), script(tmp_path / "b.sh", lr="3e-4")
    assert {each.field for each in translator.diff(left, right).differences} >= {"optimizer.lr"}
    assert translator.estimate(left).totals.allocated.expected.min() > 0
    assert set(translator.__all__) <= {*dir(translator), *translator.__all__}
    assert all(getattr(translator, name) is not None for name in translator.__all__)
