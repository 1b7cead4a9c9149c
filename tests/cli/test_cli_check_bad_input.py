"""``ttx check`` on files that are broken, foreign or hostile: findings or one line, and never a traceback."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from cli_support import Ttx

SOUND = '{"train_batch_size": 8, "bf16": {"enabled": true}}\n'
BOMB = "train_batch_size: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
)
BROKEN = {
    "empty.json": b"",
    "blank.toml": b" \n\n",
    "binary.json": b'{"train_batch_size": \x00\x01}',
    "latin.sh": b"torchrun pretrain_gpt.py --num-layers 2 # \xe9\n",
    "deep.json": b'{"train_batch_size": ' + b"[" * 100_000,
    "deep.yaml": b"deepspeed: " + b"[" * 10_000,
    "bomb.yaml": f"deepspeed: x\noutput_dir: y\nlearning_rate: 1\n{BOMB}".encode(),
    "open.toml": b"[model\nname = 1\n[training]\n[parallelism]\n[optimizer]\n",
    "half.json": b'{"train_batch_size": 8, "zero_optimization": {"stage": ',
    "half.py": b"from torchtitan.trainer import Trainer\ndef a() -> Trainer.Config:\n    return Trainer.Config(",
    "loop.sh": b"while true; do :; done\ntorchrun pretrain_gpt.py --num-layers 2\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_that_is_named(ttx: Ttx, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(BROKEN[name])
    begin = time.monotonic()
    result = ttx("check", path, "--format", "json")
    assert time.monotonic() - begin < 10
    assert result.code in {1, 2}, result.err
    assert "Traceback" not in result.err
    assert all(finding["code"] != "R044" for finding in result.document["findings"])
    assert any(finding["level"] == "error" for finding in result.document["findings"])


def test_broken_files_in_a_folder_do_not_stop_the_others(ttx: Ttx, tmp_path: Path) -> None:
    for name, data in BROKEN.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "sound.json").write_text(SOUND.replace("}}", '}, "no_such": 1}'))
    result = ttx("check", tmp_path, "--format", "json")
    assert result.code == 1, result.err
    found = {(Path(finding["file"]).name, finding["code"]) for finding in result.document["findings"]}
    assert ("sound.json", "R131") in found
    assert {("half.json", "R040"), ("open.toml", "R040"), ("half.py", "R040")} <= found, "what looks like one is told"
    assert not {name for name, _ in found} & {"empty.json", "blank.toml", "binary.json"}


def test_links_in_circles_and_to_nowhere(ttx: Ttx, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(SOUND)
    (tmp_path / "here").symlink_to(tmp_path)
    (tmp_path / "self.json").symlink_to("self.json")
    (tmp_path / "gone.json").symlink_to("nothing.json")
    result = ttx("check", tmp_path)
    assert result.code == 0
    assert "1 configuration checked" in result.err
    named = ttx("check", tmp_path / "self.json", tmp_path / "gone.json")
    assert named.code == 2
    assert named.out.count("error R040") == 2


def test_a_pipe_is_not_waited_for(ttx: Ttx, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    assert ttx("check", tmp_path).code == 0
    assert ttx("check", tmp_path / "pipe.json").code == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_told_and_passed_over(ttx: Ttx, tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o000)
    (tmp_path / "shut.json").write_text(SOUND)
    (tmp_path / "shut.json").chmod(0o000)
    (tmp_path / "open.json").write_text(SOUND)
    result = ttx("check", tmp_path)
    (tmp_path / "shut").chmod(0o700)
    assert result.code == 0
    assert result.out.count("warning R040") == 2
    assert "1 configuration checked" in result.err
    assert ttx("check", tmp_path / "shut.json").code == 2


@pytest.mark.parametrize("how", ["text", "json", "github", "sarif"])
def test_names_and_lines_do_not_steer_the_terminal(ttx: Ttx, tmp_path: Path, how: str) -> None:
    name = "a\x1b[31m\nb\u202e.sh"
    (tmp_path / name).write_text(
        "torchrun pretrain_gpt.py --num-layers 2 \t--no-such\x1b]0;x\x07 1 # \x1b[2J\u202e\n::error::x\n"
    )
    result = ttx("check", tmp_path, "--format", how)
    assert "R010" in result.out or "R011" in result.out
    if how != "github":  # which wants the name as it is
        assert "\x1b" not in result.out
        assert "\u202e" not in result.out or how != "text"
    assert not [line for line in result.out.splitlines() if line.startswith("::error::")]


@pytest.mark.parametrize("how", ["text", "json", "github", "sarif"])
def test_a_name_that_is_no_text(ttx: Ttx, tmp_path: Path, how: str) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    Path(name).write_text('{"train_batch_size": 8, "no_such": 1}')
    result = ttx("check", tmp_path, f"{name}x", "--format", how)
    assert result.code == 2
    assert "R131" in result.out
    assert "R040" in result.out


def test_ten_thousand_findings(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "many.json"
    keys = ", ".join(f'"zzz_{number}": 1' for number in range(10_000))
    path.write_text(f'{{"train_batch_size": 8, {keys}}}')
    begin = time.monotonic()
    result = ttx("check", path)
    assert time.monotonic() - begin < 30
    assert result.out.count(" warning R131: ") == 10_000
    assert max(map(len, result.out.splitlines())) < 400, "a long line is cut around what it is about"
    assert "10000 warnings" in result.err


def test_a_long_line_is_cut_around_the_place(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "long.sh"
    path.write_text(f"torchrun pretrain_gpt.py {'--num-layers 2 ' * 500} --no-such 1 {'--lr 1 ' * 500}\n")
    lines = ttx("check", path, "--select", "R010").out.splitlines()
    assert lines[1].index("--no-such") == lines[2].index("^")
    assert len(lines[1]) < 200


def test_wide_characters_and_tabs_keep_the_carets_below(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "wide.json"
    path.write_text('{"train_batch_size": 8,\n\t"名": 1, "no_such": 1}\n')
    out = ttx("check", path, "--select", "R131").out.splitlines()
    carets = [line for line in out if set(line.strip()) == {"^"}]
    assert carets == ["     " + "^" * 4, "     " + " " * 9 + "^" * 9]


def test_wrong_calls(ttx: Ttx, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(SOUND)
    for words in (
        ("--from", "nemo"),
        ("--to", "megatron@9"),
        ("--world-size", "0"),
        ("--set", "A"),
        ("--select", "?"),
        ("--format", "xml"),
        ("--fixx",),
        ("--level", "fatal"),
    ):
        result = ttx("check", tmp_path, *words)
        assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1), words


def test_a_name_that_is_named_twice_is_checked_once(ttx: Ttx, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(SOUND)
    assert "1 configuration checked" in ttx("check", tmp_path / "a.json", tmp_path, tmp_path / "." / "a.json").err
