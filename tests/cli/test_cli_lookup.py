"""``ttx fields``, ``catalogue``, ``explain``, ``--help`` and ``--version``, and the ways to start the command."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cli_support import Ttx

from translator.cli import COMMANDS
from translator.codes import all_codes
from translator.spec import leaves
from translator.version import __version__


def test_version(ttx: Ttx) -> None:
    assert ttx("--version").out == f"ttx {__version__}\n"


def test_help_names_every_command(ttx: Ttx) -> None:
    result = ttx("--help")
    assert (result.code, result.err) == (0, "")
    assert all(f"  {name} " in result.out for name in COMMANDS)
    from translator import frameworks

    for name in frameworks.BUILT_IN:
        assert frameworks.get(name).title in result.out, "help names what there is"


def test_without_a_command_the_help_is_an_error(ttx: Ttx) -> None:
    result = ttx()
    assert (result.code, result.out) == (2, "")
    assert "usage: ttx" in result.err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(ttx: Ttx, command: str) -> None:
    result = ttx(command, "--help")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"usage: ttx {command}")


def test_help_of_convert_is_complete(ttx: Ttx) -> None:
    text = ttx("convert", "--help").out
    for word in ("SRC", "FIELD=VALUE", "--from", "--set", "--arg ", "--args", "--launch", "--world-size", "--to"):
        assert word in text
    for word in ("--output", "--force", "--on-loss", "--ledger", "--format", "exit code:", "examples:"):
        assert word in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("convrt",), "did you mean convert?"),
        (("xyzzy",), "see ttx --help"),
        (("--versio",), "--versio"),
        (("catalogue",), "ACTION"),
        (("catalogue", "shw", "megatron"), "'show'"),
        (("catalogue", "show", "megatron@1"), "known versions: 0.12.0"),
        (("catalogue", "show", "megatron", "tensor-modle-parallel-size"), "--tensor-model-parallel-size"),
        (("catalogue", "show", "nemo"), "known: megatron, torchtitan"),
        (("catalogue", "diff", "megatron", "0.12.0", "1"), "known versions"),
        (("fields", "parallel.tensorr"), "nearest: parallel.tensor"),
        (("fields", "--formt", "json"), "did you mean --format?"),
        (("explain",), "nothing to explain"),
        (("explain", "parallel.tensr"), "parallel.tensor"),
        (("explain", "--tensor-model-paralel-size"), "--tensor-model-parallel-size"),
        (("explain", "R999"), "R0"),
        (("explain", "\x1b[31m"), "\\x1b[31m"),
    ],
)
def test_unknown_names_are_one_line_with_the_nearest(ttx: Ttx, words: tuple[str, ...], said: str) -> None:
    result = ttx(*words)
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert said in result.err
    assert "\x1b" not in result.err


def test_fields_lists_every_leaf(ttx: Ttx) -> None:
    lines = [line.split("\t") for line in ttx("fields").out.splitlines()]
    assert [line[0] for line in lines] == list(leaves())
    assert {len(line) for line in lines} == {6}
    tensor = next(line for line in lines if line[0] == "parallel.tensor")
    assert tensor[3:5] == ["--tensor-model-parallel-size", "parallelism.tensor_parallel_degree"]


def test_fields_by_option_and_as_json(ttx: Ttx) -> None:
    result = ttx("fields", "tensor-model-parallel-size", "--format", "json")
    assert list(result.document) == ["schema_version", "fields"]
    (field,) = (row for row in result.document["fields"] if row["field"] == "parallel.tensor")
    assert list(field) == ["field", "type", "touches", "description", "options", "fixed"]


def test_fields_on_a_terminal_is_a_table(ttx: Ttx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "description" in ttx("fields", "parallel.tensor").out.splitlines()[0]


def test_explain_a_code(ttx: Ttx) -> None:
    for code, (title, _) in all_codes().items():
        result = ttx("explain", code.lower())
        assert result.code == 0
        assert result.out.startswith(f"{code}: {title}\n")
    document = ttx("explain", "R010", "--format", "json").document
    assert list(document) == ["schema_version", "subject", "documentation"]


def test_explain_all(ttx: Ttx) -> None:
    document = ttx("explain", "--all", "--format", "json").document
    assert [entry["code"] for entry in document["codes"]] == list(all_codes())
    text = ttx("explain", "--all").out
    assert all(f"{code}: " in text for code in all_codes())


def test_explain_a_field_and_an_option(ttx: Ttx) -> None:
    field = ttx("explain", "parallel.tensor").out
    assert "megatron: --tensor-model-parallel-size" in field
    for words in (("--recompute-granularity",), ("--", "--recompute-granularity")):
        option = ttx("explain", *words)
        assert option.code == 0
        assert "fields: recompute.mode" in option.out
    document = ttx("explain", "--recompute-granularity", "--format", "json").document
    assert document["choices"] == "full, selective"
    assert "training.seq_len (torchtitan 0.2.2)" in ttx("explain", "training.seq_len").out


def test_catalogue_show_as_json(ttx: Ttx) -> None:
    document = ttx("catalogue", "show", "torchtitan@0.1.0", "training.seq_len", "--format", "json").document
    assert list(document) == ["schema_version", "framework", "version", "options"]
    assert [option["address"] for option in document["options"]] == ["training.seq_len"]


def ways(tmp_path: Path) -> list[list[str]]:
    """``python -m translator``, and the console scripts as an installer writes them."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    found = [[sys.executable, "-m", "translator"]]
    for name, target in project["scripts"].items():
        module, _, function = target.partition(":")
        path = tmp_path / name
        path.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        found.append([sys.executable, str(path)])
    assert len(found) == 3
    return found


def test_every_way_to_start(script: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    for command in ways(tmp_path):
        done = subprocess.run(
            [*command, "convert", str(script), "--to", "torchtitan"],
            capture_output=True,
            text=True,
            check=False,
            env=env,
        )
        assert (done.returncode, tomllib.loads(done.stdout)["model"]["flavor"]) == (1, "8B")
        assert "Traceback" not in done.stderr


def run(*words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [sys.executable, "-m", "translator", *words], stderr=subprocess.PIPE, check=False, timeout=60, **options
    )


def test_output_that_nobody_reads(script: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = run("convert", str(script), "--to", "torchtitan", "--ledger", "none", stdout=closed)
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_output_on_a_full_disk(script: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = run("convert", str(script), "--to", "torchtitan", "--ledger", "none", stdout=full)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == b"ttx: error: No space left on device"


def test_a_terminal_that_cannot_show_everything(tmp_path: Path) -> None:
    source = tmp_path / "tränïng.sh"
    source.write_text("torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 2 --ünknown 漢\n", encoding="utf-8")
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for output in (("--format", "json"), ()):
        done = run("convert", str(source), "--to", "torchtitan", *output, stdout=subprocess.PIPE, env=env)
        assert done.returncode == 1, done.stderr
        assert b"Traceback" not in done.stderr


def test_a_closed_standard_input() -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m translator convert - --to torchtitan <&-"], capture_output=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"ttx: error: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_fault_of_ours_is_said_without_a_traceback(ttx: Ttx, monkeypatch: pytest.MonkeyPatch, script: Path) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("translator.api.read", broken)
    result = ttx("parse", script)
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("ttx: internal error: KeyError: 'surprise'\n")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--per_device_train_batch_size", ("transformers", "fields: batch.micro_batch")),
        ("--ds-sequence-parallel-size", ("read with DeepSpeed", "type: int")),
    ],
)
def test_explain_an_option_of_what_completes_a_framework(ttx: Ttx, option: str, said: tuple[str, ...]) -> None:
    result = ttx("explain", "--", option)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"{option} (")
    assert all(words in result.out for words in said)
