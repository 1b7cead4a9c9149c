"""Results as files: all or none, and nothing else of the person's is touched."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from cli_support import Ttx

from translator.cli.files import write_files
from translator.errors import UsageError

CUSTOM = (
    "--num-layers 3 --hidden-size 96 --num-attention-heads 4 --swiglu --normalization RMSNorm --disable-bias-linear "
    "--position-embedding-type rope --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1\n"
)


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def custom(tmp_path: Path) -> Path:
    """A model that is no named flavor, so that a result has several files."""
    path = tmp_path / "source" / "custom.args"
    path.parent.mkdir()
    path.write_text(CUSTOM)
    return path


def test_a_file(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "llama.toml"
    result = ttx("convert", script, "--to", "torchtitan", "-o", target)
    assert (result.code, result.out) == (1, "")
    assert target.read_text() == ttx("convert", script, "--to", "torchtitan").out
    assert tree(tmp_path).keys() == {"new/folder/llama.toml"}


def test_a_folder_gets_all_files(ttx: Ttx, custom: Path, tmp_path: Path) -> None:
    files = ttx("convert", custom, "--to", "torchtitan", "--format", "json").document["files"]
    assert len(files) >= 2
    ttx("convert", custom, "--to", "torchtitan", "-o", tmp_path / "out")
    assert tree(tmp_path / "out") == files


def test_modules_stand_beside_a_file(ttx: Ttx, custom: Path, tmp_path: Path) -> None:
    assert "write a folder with -o DIR" in ttx("convert", custom, "--to", "torchtitan").err
    result = ttx("convert", custom, "--to", "torchtitan", "-o", tmp_path / "out" / "my.toml")
    assert "write a folder" not in result.err
    names = tree(tmp_path / "out").keys()
    assert "my.toml" in names
    assert any(name.endswith(".py") for name in names)


def test_files_that_hold_a_part_of_the_result_are_named(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    said = "needs training_args.yaml, config.json, launch.sh beside it: write a folder with -o DIR"
    assert said in ttx("convert", script, "--to", "deepspeed").err
    assert said in ttx("convert", script, "--to", "deepspeed", "-o", tmp_path / "out" / "my.json").err
    assert tree(tmp_path / "out").keys() == {"my.json"}
    result = ttx("convert", script, "--to", "deepspeed", "-o", tmp_path / "all")
    assert "write a folder" not in result.err
    assert {"training_args.yaml", "config.json", "launch.sh"} < tree(tmp_path / "all").keys()
    assert "write a folder" not in ttx("convert", script, "--to", "deepspeed", "--on-loss", "error").err


def test_a_trailing_slash_is_a_folder(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    for name in ("llama3.toml/", "llama3.1"):  # as a name with a number for a suffix is
        ttx("convert", script, "--to", "torchtitan", "-o", f"{tmp_path}/{name}")
        assert (tmp_path / name / "train.toml").is_file()


def test_scripts_may_be_run(ttx: Ttx, toml: Path, tmp_path: Path) -> None:
    ttx("convert", toml, "--to", "megatron", "-o", tmp_path / "train.sh")
    assert (tmp_path / "train.sh").stat().st_mode & stat.S_IXUSR
    ttx("convert", toml, "--to", "torchtitan", "-o", tmp_path / "copy.toml")
    assert not (tmp_path / "copy.toml").stat().st_mode & stat.S_IXUSR


def test_an_existing_file_is_only_overwritten_with_force(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.toml"
    target.write_text("precious")
    result = ttx("convert", script, "--to", "torchtitan", "-o", target)
    assert (result.code, target.read_text()) == (2, "precious")
    assert "--force" in result.err
    assert ttx("convert", script, "--to", "torchtitan", "-o", target, "--force").code == 1
    assert target.read_text().startswith("# torchtitan 0.2.2")
    assert tree(tmp_path).keys() == {"out.toml"}


@pytest.mark.parametrize("command", ["convert", "parse"])
def test_parse_and_render_write_the_same_way(ttx: Ttx, script: Path, tmp_path: Path, command: str) -> None:
    target = tmp_path / "s.yaml"
    words = ("--to", "spec") if command == "convert" else ()
    assert ttx(command, script, *words, "-o", target).code == 0
    assert ttx(command, script, *words, "-o", target).code == 2
    assert ttx(command, script, *words, "-o", target, "--force").code == 0
    rendered = ttx("render", target, "--to", "torchtitan", "-o", tmp_path / "out.toml")
    assert rendered.code == 1
    assert (tmp_path / "out.toml").is_file()


def test_one_existing_file_of_several_stops_all(ttx: Ttx, custom: Path, tmp_path: Path) -> None:
    names = list(ttx("convert", custom, "--to", "torchtitan", "--format", "json").document["files"])
    out = tmp_path / "out"
    out.mkdir()
    (out / names[-1]).write_text("precious")
    result = ttx("convert", custom, "--to", "torchtitan", "-o", out)
    assert result.code == 2
    assert tree(out) == {names[-1]: "precious"}


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failing_move_takes_the_others_back(
    ttx: Ttx, custom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    names = list(ttx("convert", custom, "--to", "torchtitan", "--format", "json").document["files"])
    (out / names[0]).write_text("precious")
    real, calls = os.replace, []

    def replace(source: Any, target: Any) -> None:
        calls.append(target)
        if len(calls) == failing:
            raise OSError(28, "No space left on device", source, None, target)
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    result = ttx("convert", custom, "--to", "torchtitan", "-o", out, "--force")
    assert (result.code, result.out) == (2, "")
    assert "No space left on device" in result.err
    assert len(result.err.splitlines()) == 1
    assert len(calls) == failing
    assert tree(out) == {names[0]: "precious"}
    assert ttx("convert", custom, "--to", "torchtitan", "-o", out, "--force").code == 1  # the disk has room again
    assert tree(out).keys() >= set(names)
    assert not [name for name in tree(out) if name.startswith(".")]


def test_a_full_disk_leaves_nothing(ttx: Ttx, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fdopen(descriptor: int, *_: Any, **__: Any) -> Any:
        os.close(descriptor)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", fdopen)
    result = ttx("convert", script, "--to", "torchtitan", "-o", tmp_path / "new" / "out.toml")
    assert result.code == 2
    assert "No space left" in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        result = ttx("convert", script, "--to", "torchtitan", "-o", tmp_path / "out.toml")
    finally:
        tmp_path.chmod(0o700)
    assert result.code == 2
    assert "Permission denied" in result.err
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    for target in (tmp_path / "file" / "out.toml", tmp_path / ("x" * 300 + ".toml"), "a\x00b.toml"):
        result = ttx("convert", script, "--to", "torchtitan", "-o", target)
        assert (result.code, len(result.err.splitlines())) == (2, 1), result.err
    assert ttx("parse", script, "-o", tmp_path).code == 2
    assert tree(tmp_path) == {"file": "precious"}


def test_a_link_is_followed_not_replaced(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "link.toml"
    real.write_text("old")
    link.symlink_to(real)
    assert ttx("convert", script, "--to", "torchtitan", "-o", link).code == 2
    assert ttx("convert", script, "--to", "torchtitan", "-o", link, "--force").code == 1
    assert link.is_symlink()
    assert real.read_text().startswith("# torchtitan")


def test_a_device_is_written_to_not_replaced(ttx: Ttx, script: Path) -> None:
    assert ttx("convert", script, "--to", "torchtitan", "-o", os.devnull, "--force").code == 1
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_pipe_is_written_to(script: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    subprocess.run(
        [sys.executable, "-m", "translator", "convert", script, "--to", "torchtitan", "-o", pipe],
        check=False,
        capture_output=True,
        timeout=60,
    )
    reader.join(10)
    assert got
    assert got[0].startswith("# torchtitan")


def test_names_that_a_result_would_give_twice_or_outside(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_files({tmp_path: "text"}, force=True)


REGISTRY = """\
# keep me
from torchtitan.models.qwen3 import model_registry
from torchtitan.trainer import Trainer


def other() -> Trainer.Config:
\treturn Trainer.Config(model_spec = model_registry('0.6B'))
"""


def test_a_configuration_is_added_to_a_registry(ttx: Ttx, toml: Path, tmp_path: Path) -> None:
    registry = tmp_path / "config_registry.py"
    registry.write_text(REGISTRY)
    done = ttx("convert", toml, "--to", "torchtitan", "--into", f"{registry}:mine", "--world-size", 8)
    assert done.code in {0, 1}, done.err
    assert f"added mine to {registry}" in done.err
    assert not done.out
    text = registry.read_text()
    assert text.startswith(REGISTRY.splitlines()[0])
    assert all(line in text for line in REGISTRY.splitlines())
    assert ttx("parse", f"{registry}:mine", "--world-size", 8).code == 0
    assert {path.name for path in tmp_path.iterdir() if path.suffix in {".py", ".sh"}} <= {registry.name, "train.sh"}
    again = ttx("convert", toml, "--to", "torchtitan", "--into", f"{registry}:mine", "--world-size", 8)
    assert again.code == 2
    assert "there is a mine already" in again.err
    assert f"--into {registry}:NAME" in again.err
    assert registry.read_text() == text


@pytest.mark.parametrize(
    ("target", "into", "said"),
    [
        ("megatron", "reg.py", "has no file that holds several configurations"),
        ("spec", "reg.py", "has no file that holds several configurations"),
        ("torchtitan@0.2.2", "reg.py", "is no Python function"),
        ("torchtitan", "reg.py:1x", "is no name of a function"),
        ("torchtitan", "reg.py:class", "is no name of a function"),
        ("torchtitan", "gone.py", "cannot read"),
        ("torchtitan", "bad.py", "bad.py: "),
        ("torchtitan", "latin.py", "not UTF-8"),
    ],
)
def test_what_cannot_be_added_is_said_and_nothing_is_written(
    ttx: Ttx, toml: Path, tmp_path: Path, target: str, into: str, said: str
) -> None:
    (tmp_path / "reg.py").write_text(REGISTRY)
    (tmp_path / "bad.py").write_text("def f(:\n")
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    done = ttx("convert", toml, "--to", target, "--into", str(tmp_path / into), "--world-size", 8)
    assert (done.code, said in done.err) == (2, True), done.err
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    both = ttx("convert", toml, "--to", "torchtitan", "--into", tmp_path / "reg.py", "-o", tmp_path / "x.py")
    assert (both.code, "exclude each other" in both.err) == (2, True)


def test_a_module_that_torchtitan_would_not_find_is_not_written(ttx: Ttx, toml: Path, tmp_path: Path) -> None:
    done = ttx("convert", toml, "--to", "torchtitan", "-o", tmp_path / "llama3.py", "--world-size", 8)
    assert (done.code, "-o my_llama3.py" in done.err) == (2, True), done.err
    assert not (tmp_path / "llama3.py").exists()
    assert ttx("convert", toml, "--to", "torchtitan", "-o", tmp_path / "my_llama3.py", "--world-size", 8).code < 2
