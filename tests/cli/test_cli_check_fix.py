"""``ttx check --fix``: only the characters of a fault change, and what the configuration means stays."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cli_support import Ttx

from translator import api
from translator.checking.discovery import Candidate
from translator.checking.fixing import apply, mend
from translator.checking.running import examine
from translator.checking.settings import Settings
from translator.findings import Edit, Finding, Level, Place
from translator.source import load

SCRIPT = """\
#!/bin/bash
ARGS="--split '969,30,1' --bf16 --lr 3e-4 --bf16"
torchrun --nproc_per_node 8 pretrain_gpt.py --use-distributed-optimizer=true \\
  --num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 \\
  --micro-batch-size 1 --global-batch-size 64 --train-iters 1000 --lr-decay-style constant \\
  --vocab-size 50304 --weight-decay 0.1 --weight-decay 0.1 $ARGS
"""
MENDED = (
    SCRIPT.replace("'969,30,1'", "969,30,1")
    .replace(' --bf16"', ' "')
    .replace("=true", "")
    .replace("--weight-decay 0.1 --weight-decay 0.1", "--weight-decay 0.1 ")
)
JSON = """\
{
  "train_batch_size": 64,
  "zero_optimization": {"stage": 2, "cpu_offload": true, "stage3_gather_fp16_weights_on_model_save": true,},
  "bf16": {"enabled": true},
}
"""
TOML = """\
# ttx: version=0.2.2
[model]
name = "llama3"
flavor = "8B"

[lr_scheduler]
lr_min = 0.1  # a tenth

[training]
local_batch_size = 2
seq_len = 4096
steps = 100
"""


def flat(path: Path) -> dict[str, object]:
    return api.read(str(path)).flat


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("train.sh", SCRIPT, MENDED),
        (
            "ds.json",
            JSON,
            JSON.replace('"cpu_offload": true', '"offload_optimizer": {"device": "cpu"}')
            .replace("stage3_gather_fp16_weights_on_model_save", "gather_16bit_weights_on_model_save")
            .replace(",}", "}")
            .replace("},\n}", "}\n}"),
        ),
        ("train.toml", TOML, TOML.replace("lr_min", "min_lr_factor")),
        (
            "old.sh",
            SCRIPT.replace("--use-distributed-optimizer=true", "--use-custom-fsdp"),
            MENDED.replace("--use-distributed-optimizer", "--use-megatron-fsdp"),
        ),
    ],
)
def test_faults_with_one_way_out_are_mended(ttx: Ttx, tmp_path: Path, name: str, before: str, after: str) -> None:
    path = tmp_path / name
    path.write_text(before)
    shown = ttx("check", path, "--diff")
    assert shown.code == 1
    assert path.read_text() == before, "--diff changes nothing"
    assert shown.out.startswith(f"--- a/{path}\n+++ b/{path}\n")
    result = ttx("check", path, "--fix")
    assert path.read_text() == after, result.out
    assert "mended in 1 file" in result.err
    again = ttx("check", path, "--diff")
    assert (again.code, again.out) == (0, "")


def test_what_the_configuration_means_stays(tmp_path: Path, ttx: Ttx) -> None:
    for name, text in (("train.sh", SCRIPT), ("ds.json", JSON)):
        path = tmp_path / name
        # A bare flag with a value is refused, so that it says nothing before.
        path.write_text(text.replace("=true", ""))
        before = flat(path)
        assert "mended" in ttx("check", path, "--fix").err
        after = flat(path)
        # The quotes are what the finding is about; everything else is what it was.
        assert (before.pop("data.split"), after.pop("data.split")) in (("'969,30,1'", "969,30,1"), (None, None))
        assert after == before


def test_line_endings_byte_order_mark_and_permissions_stay(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_bytes(b"\xef\xbb\xbf" + JSON.replace("\n", "\r\n").encode())
    path.chmod(0o640)
    assert "mended" in ttx("check", path, "--fix").err
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf{\r\n")
    assert data.count(b"\r\n") == data.count(b"\n") == JSON.count("\n")
    assert b"offload_optimizer" in data
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["train.json"], "no temporary file is left"


def test_what_is_silenced_or_not_selected_is_not_mended(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    path.write_text(SCRIPT)
    ttx("check", path, "--fix", "--select", "R018")
    assert path.read_text() == SCRIPT.replace("=true", "")
    path.write_text(SCRIPT.replace("#!/bin/bash\n", "#!/bin/bash\n# ttx: ignore=R018,R039,R062\n"))
    before = path.read_text()
    ttx("check", path, "--fix")
    assert path.read_text() == before


def test_a_value_that_is_shared_with_what_is_known_elsewhere_is_left(ttx: Ttx, tmp_path: Path) -> None:
    """A flag that stands once in a branch and once behind it is not the same twice."""
    path = tmp_path / "train.sh"
    text = SCRIPT.replace('ARGS="', 'A=1; if [ "$A" = 1 ]; then X="--bf16"; fi\nARGS="$X ').replace(' --bf16"', '"')
    text = text.replace("--weight-decay 0.1 --weight-decay 0.1", "--weight-decay 0.1")
    path.write_text(text.replace(" --bf16 --lr", " --lr").replace("$ARGS", "$ARGS --bf16"))
    before = path.read_text()
    assert "R039" in ttx("check", path).out
    ttx("check", path, "--fix", "--select", "R039")
    assert path.read_text() == before


def test_a_file_beside_a_source_is_mended_where_it_is_checked_itself(ttx: Ttx, tmp_path: Path) -> None:
    launch = "#!/bin/bash\ndeepspeed --num_gpus 8 run.py --deepspeed ds.json --learning_rate 1e-4 --output_dir out\n"
    text = '{\n "train_micro_batch_size_per_gpu": 2,\n "zero_optimization": {"stage": 2, "cpu_offload": true}\n}\n'
    (tmp_path / "launch.sh").write_text(launch)
    (tmp_path / "ds.json").write_text(text)
    alone = ttx("check", tmp_path / "launch.sh", "--fix")
    assert "warning R137" in alone.out
    assert (tmp_path / "ds.json").read_text() == text
    both = ttx("check", tmp_path, "--fix")
    assert "R137" not in both.out
    assert "1 finding mended in 1 file" in both.err
    assert '"offload_optimizer": {"device": "cpu"}' in (tmp_path / "ds.json").read_text()


REGISTRY = """\
from torchtitan.config import ParallelismConfig
from torchtitan.models.llama3 import model_registry
from torchtitan.trainer import Trainer


def one() -> Trainer.Config:
    return Trainer.Config(model_spec=model_registry("8B"), parallelism=ParallelismConfig(tensor_parallel_degree=3))


def two() -> Trainer.Config:
    return Trainer.Config(model_spec=model_registry("8B"), parallelism=ParallelismConfig(tensor_parallel_degree=5))
"""


def test_functions_of_one_file_are_told_apart(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "configs.py"
    path.write_text(REGISTRY)
    (tmp_path / "t.toml").write_text(TOML)
    result = ttx("check", f"{path}:one", f"{path}:two", tmp_path / "t.toml", "--fix", "--select", "S180,R093")
    assert "3 tensor ranks" in result.out
    assert "5 tensor ranks" in result.out
    assert "1 finding mended in 1 file" in result.err


def test_a_switch_is_not_turned_into_its_opposite(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    text = MENDED.replace("--use-distributed-optimizer", "--disable-chunked-prefill")
    path.write_text(text)
    result = ttx("check", path, "--fix")
    assert path.read_text() == text
    assert "R012: --disable-chunked-prefill was removed in 0.17.0" in result.out


def test_standard_input_cannot_be_mended(ttx: Ttx) -> None:
    result = ttx("check", "-", "--fix", stdin=SCRIPT.encode())
    assert (result.code, result.out) == (2, "")


@pytest.mark.corpus
def test_real_configurations_mean_the_same_when_they_are_mended(corpus: Path) -> None:
    mended = 0
    for path in sorted(path for path in corpus.rglob("*") if path.is_file()):
        name = str(path)
        report = examine(Candidate(name, False), Settings())
        assert not report.fault, report.findings
        _, files = mend([report], lambda name, texts: examine(Candidate(name, False), Settings(), texts=texts))
        for file in files:
            after = replace(load(name), text=file.after)
            assert api.read(after).flat == flat(path), name
            mended += 1
    assert mended >= 10


def finding(*edits: tuple[int, int, str, str]) -> Finding:
    """A finding with edits on line 1: from and to which column, the expected text, the new one."""
    return Finding(
        "R000",
        Level.ERROR,
        "",
        edits=tuple(Edit(Place("f", 1, start, 1, end), expected, new) for start, end, expected, new in edits),
    )


@pytest.mark.parametrize(
    ("findings", "result", "count"),
    [
        ([finding((1, 4, "abc", "x"))], "x def", 1),
        ([finding((1, 4, "abd", "x"))], "abc def", 0),
        ([finding((1, 5, "abc", "x"))], "abc def", 0),
        ([finding((9, 12, "abc", "x"))], "abc def", 0),
        ([finding((1, 4, "abc", "x")), finding((3, 6, "c d", "y"))], "x def", 1),
        ([finding((1, 4, "abc", "")), finding((5, 8, "def", "y"))], " y", 2),
        ([finding((1, 4, "abc", "x"), (5, 8, "dex", "y"))], "abc def", 0),
        ([finding()], "abc def", 1),
    ],
)
def test_edits_are_applied_where_they_fit_and_the_first_wins(findings: list[Finding], result: str, count: int) -> None:
    assert apply("abc def", findings) == (result, count)
