"""``ttx check``: what is found where, how it is told, and what the exit code says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import SCRIPT, TOML, Ttx

# Its parser knows no such option; ttx takes it for one of the user's own program.
BROKEN = """\
#!/bin/bash
torchrun --nproc_per_node 8 pretrain_gpt.py \\
  --num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 \\
  --micro-batch-size 1 --global-batch-size 64 --train-iters 1000 --lr 3e-4 --lr-decay-style constant --bf16 \\
  --no-such-option 1 --vocab-size 50304
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.sh"
    path.write_text(BROKEN)
    return path


def codes(document: dict[str, list[dict[str, str]]]) -> list[str]:
    return [finding["code"] for finding in document["findings"]]


def test_a_sound_script_ends_with_0(ttx: Ttx) -> None:
    result = ttx("check", SCRIPT, "--select", "R,S")
    assert (result.code, result.out) == (0, "")
    assert result.err == "1 configuration checked: nothing found\n"


def test_text_shows_the_line_with_carets_and_the_way_out(ttx: Ttx, broken: Path) -> None:
    result = ttx("check", broken, "--select", "R010")
    assert result.code == 0, "an unknown option is a warning"
    head, line, caret, fix = result.out.splitlines()
    assert head.startswith(f"{broken}:5:3: warning R010: ")
    assert line == "      --no-such-option 1 --vocab-size 50304"
    assert caret == "      " + "^" * len("--no-such-option")
    assert fix.startswith("  fix: ")
    assert result.err == "1 configuration checked: 1 warning\n"


def test_json_has_the_stable_keys(ttx: Ttx, broken: Path) -> None:
    document = ttx("check", broken, "--format", "json").document
    assert set(document) == {"schema_version", "findings"}
    finding = next(finding for finding in document["findings"] if finding["code"] == "R010")
    assert list(finding) == ["code", "level", "message", "fix", "where", "option", "field", "file"]
    assert finding["file"] == finding["where"]["file"] == str(broken)
    assert (finding["where"]["line"], finding["where"]["column"]) == (5, 3)


def test_a_named_file_that_is_no_configuration_ends_with_2_and_the_others_go_on(
    ttx: Ttx, tmp_path: Path, broken: Path
) -> None:
    (tmp_path / "notes.txt").write_text("buy milk\n")
    result = ttx("check", tmp_path / "notes.txt", tmp_path / "absent.sh", broken)
    assert result.code == 2
    assert f"{tmp_path}/notes.txt: error R041: is not recognised" in result.out
    assert f"{tmp_path}/absent.sh: error R040: no such file" in result.out
    assert "R010" in result.out


def test_in_a_folder_only_configurations_are_read(ttx: Ttx, tmp_path: Path, broken: Path) -> None:
    (tmp_path / "notes.txt").write_text("buy milk\n")
    (tmp_path / "data.json").write_text('{"a": [1, 2]}')
    (tmp_path / "noise.yaml").write_bytes(b"\xff\xfe\x00\x01")
    (tmp_path / "launch").write_text(BROKEN)
    (tmp_path / "README").write_text(BROKEN.replace("#!", "# "))
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "copy.sh").write_text(BROKEN)
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").write_text("home = /usr\n")
    (tmp_path / "env" / "copy.sh").write_text(BROKEN)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "train.toml").write_text(TOML)
    (tmp_path / "large.json").write_text('{"train_batch_size": 8, "x": "' + "y" * 2_000_000 + '"}')
    result = ttx("check", tmp_path, "--format", "json")
    assert "3 configurations checked" in result.err
    assert "(3 other files passed over)" in result.err
    found = {finding["file"] for finding in result.document["findings"]}
    assert {str(broken), str(tmp_path / "launch")} <= found
    assert not any("copy.sh" in name or "notes" in name for name in found)


def test_a_part_of_a_script_is_a_note_in_a_folder_and_an_error_when_it_is_named(ttx: Ttx, tmp_path: Path) -> None:
    (tmp_path / "args.sh").write_text('ARGS="--num-layers 2 --hidden-size 8 --tensor-model-parallel-size 2"\n')
    found = ttx("check", tmp_path)
    assert found.code == 0
    assert "args.sh: note R040: starts no program" in found.out
    named = ttx("check", tmp_path / "args.sh")
    assert named.code == 2
    assert "args.sh: error R040: starts no program" in named.out
    assert ttx("check", tmp_path / "args.sh", "--skip-unknown").code == 0


def test_a_kind_that_cannot_be_read_is_no_error_in_a_folder(ttx: Ttx, tmp_path: Path) -> None:
    (tmp_path / "neox.yml").write_text("num-layers: 2\nhidden-size: 8\nnum-attention-heads: 2\ntrain-iters: 9\n")
    result = ttx("check", tmp_path)
    assert result.code == 0
    assert "note R040" in result.out


def test_what_a_script_is_given_when_it_runs_is_open_and_no_error(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    path.write_text(BROKEN.replace("--no-such-option 1", "--save $1").replace("torchrun", ": ${DATA:?}\ntorchrun"))
    result = ttx("check", path)
    assert result.code == 0
    assert "warning R061: positional parameter 1 is not set" in result.out
    assert "warning R068: DATA is required" in result.out
    assert "error" not in result.out
    path.write_text(BROKEN.replace("--no-such-option 1", "--save"))
    assert "error R017: --save expects a value" in ttx("check", path).out, "where nothing was to be given"


def test_standard_input(ttx: Ttx) -> None:
    result = ttx("check", "-", "--select", "R010", stdin=BROKEN.encode())
    assert "<stdin>:5:3: warning R010" in result.out
    assert "^" * len("--no-such-option") in result.out


def test_without_paths_the_current_folder_is_checked(ttx: Ttx, broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(broken.parent)
    assert "\nbroken.sh:5:3: " in "\n" + ttx("check").out
    assert ttx("check", ".").out == ttx("check").out


def test_select_and_ignore_take_beginnings_of_codes(ttx: Ttx, broken: Path) -> None:
    every = codes(ttx("check", broken, "--format", "json").document)
    assert "R010" in every
    assert set(codes(ttx("check", broken, "--format", "json", "--select", "R01,P").document)) == {
        code for code in every if code.startswith(("R01", "P"))
    }
    assert "R010" not in codes(ttx("check", broken, "--format", "json", "--ignore", "r").document)
    result = ttx("check", broken, "--select", "X9")
    assert (result.code, result.out) == (2, "")
    assert "--select: 'X9' is no code" in result.err


@pytest.mark.parametrize(
    ("words", "code"), [((), 0), (("--strict",), 1), (("--level", "warning"), 1), (("--level", "error"), 0)]
)
def test_what_counts(ttx: Ttx, broken: Path, words: tuple[str, ...], code: int) -> None:
    assert ttx("check", broken, "--select", "R010", *words).code == code


def test_errors_end_with_1(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    path.write_text(BROKEN.replace("--no-such-option 1", "--tensor-model-parallel-size 3"))
    result = ttx("check", path)
    assert result.code == 1
    assert "error S1" in result.out


REGISTRY = """\
from torchtitan.components.lr_scheduler import LRSchedulersContainer
from torchtitan.config import ParallelismConfig, TrainingConfig
from torchtitan.trainer import Trainer
from torchtitan.models.llama3 import model_registry


def small() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("8B"),
        training=TrainingConfig(local_batch_size=1, seq_len=2048, steps=10),
        parallelism=ParallelismConfig(tensor_parallel_degree=3),
    )


def large() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("70B"),
        training=TrainingConfig(local_batch_size=1, seq_len=2048, steps=10),
        parallelism=ParallelismConfig(tensor_parallel_degree=5),
    )
"""


def test_every_function_of_a_registry_is_checked(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "config_registry.py"
    path.write_text(REGISTRY)
    result = ttx("check", path, "--format", "json")
    assert "2 configurations checked" in result.err
    lines = {f["where"]["line"] for f in result.document["findings"] if f["code"] == "S180"}
    assert lines == {11, 19}, result.out
    assert all(finding["where"] for finding in result.document["findings"]), "what has no place is at the function"
    assert "1 configuration checked" in ttx("check", f"{path}:small").err
    assert "2 configurations checked" in ttx("check", tmp_path).err


def test_every_launch_of_a_script_is_checked(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "both.sh"
    launch = BROKEN.partition("\n")[2]
    first = launch.replace("--no-such-option 1", "--tensor-model-parallel-size 3")
    second = launch.replace("--no-such-option 1", "--pipeline-model-parallel-size 5")
    path.write_text(f"#!/bin/bash\n{first}{second}")
    result = ttx("check", path, "--format", "json")
    assert "2 configurations checked" in result.err
    errors = [finding for finding in result.document["findings"] if finding["level"] == "error"]
    assert {finding["where"]["line"] for finding in errors if finding["where"]} >= {5, 9}, result.out
    assert "R023" not in codes(result.document)


def test_targets_bring_the_differences(ttx: Ttx) -> None:
    plain = codes(ttx("check", SCRIPT, "--format", "json").document)
    assert not [code for code in plain if code[0] == "D"]
    told = codes(ttx("check", SCRIPT, "--to", "torchtitan", "--format", "json").document)
    assert "D300" in told
    assert ttx("check", SCRIPT, "--to", "torchtitn").code == 2


def test_what_the_sources_leave_open_can_be_given(ttx: Ttx, tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text(BROKEN.replace("64 --train", "$BATCH --train"))
    assert "R061" in codes(ttx("check", tmp_path, "--format", "json").document)
    assert "R061" not in codes(ttx("check", tmp_path, "--set", "BATCH=64", "--format", "json").document)
    (tmp_path / "train.sh").unlink()
    (tmp_path / "train.toml").write_text(TOML)
    wrong = ttx("check", tmp_path, "--world-size", "3")
    assert wrong.code == 1, "three ranks cannot be split in two"
    assert ttx("check", tmp_path, "--world-size", "8").code == 0
    assert "note R040" in ttx("check", tmp_path, "--from", "torchtitan@0.3.0").out


def test_statistics_count_codes(ttx: Ttx, broken: Path) -> None:
    out = ttx("check", broken, "--statistics", "--select", "R010").out
    assert out == "1\tR010\twarning\tunknown option\n"


def test_github_commands_are_escaped(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "a,b:c%d.sh"
    path.write_text(BROKEN)
    out = ttx("check", path, "--format", "github", "--select", "R010").out
    assert out.startswith(f"::warning file={tmp_path}/a%2Cb%3Ac%25d.sh,line=5,col=3,")
    assert ",title=R010::" in out
    assert len(out.splitlines()) == 1


def test_colours_only_on_a_terminal(broken: Path) -> None:
    command = [sys.executable, "-m", "translator", "check", str(broken), "--select", "R010"]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert "\x1b" not in done.stdout
    leader, follower = os.openpty()
    env = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm"}
    subprocess.run(command, stdout=follower, stderr=subprocess.DEVNULL, check=False, cwd=root, env=env)
    os.close(follower)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    assert "\x1b[33mwarning R010\x1b[0m" in shown
