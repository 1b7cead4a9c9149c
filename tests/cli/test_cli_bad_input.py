"""Input that is broken, foreign, huge or hostile: a finding or one line, exit code 1 or 2, soon, and no file left."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_support import EXAMPLES, SCRIPT, TOML, Result, Ttx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from translator.source import MAX_SOURCE_BYTES

SECONDS = 20.0  # far above what any of these takes, far below for ever

SHELL = SCRIPT.read_bytes()
YAML = b"""\
language_model:
  num_layers: 2
  hidden_size: 64
MODEL_ARGS:
  --num-layers: 2
  --hidden-size: 64
"""
SPEC = b"model: {layers: 4, hidden: 64}\nparallel: {tensor: 2}\nbatch: {seq_len: 128}\n"


DEEPSPEED = b"""{
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4,
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8},
  "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.95]}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}},
  "gradient_clipping": 1.0
}
"""
PYTHON = b"""from torchtitan.components.optimizer import OptimizersContainer
from torchtitan.config import ParallelismConfig, TrainingConfig
from torchtitan.models.llama3 import model_registry
from torchtitan.trainer import Trainer


def llama3_8b() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("8B"),
        training=TrainingConfig(local_batch_size=2, seq_len=4096, steps=100),
        parallelism=ParallelismConfig(tensor_parallel_degree=2),
    )
"""


@pytest.fixture
def bad(ttx: Ttx, tmp_path: Path) -> Callable[..., list[Result]]:
    """Every command that reads, on one source: nothing but findings or one line, in time, and no file left."""

    def run(source: str | Path, *words: str, stdin: bytes | None = None) -> list[Result]:
        before = sorted(tmp_path.rglob("*"))
        results = []
        for command in (
            ("convert", source, "--to", "torchtitan", "-o", tmp_path / "out", *words),
            ("convert", source, "--to", "megatron", *words),
            ("convert", source, "--to", "spec", "--format", "json", *words),
            ("parse", source, *words),
            ("render", source, "--to", "torchtitan", "-o", tmp_path / "out.toml"),
        ):
            begin = time.perf_counter()
            result = ttx(*command, stdin=stdin)
            assert time.perf_counter() - begin < SECONDS
            assert result.code in (0, 1, 2), result.err
            assert "Traceback" not in result.err
            assert not raw_controls(result.err), repr(result.err)
            if result.code == 2:
                assert result.out == ""
                assert result.err.startswith("ttx: error: ")
                assert len(result.err.splitlines()) == 1
                assert sorted(tmp_path.rglob("*")) == before
            for path in set(tmp_path.rglob("*")) - set(before):
                if path.is_file():
                    path.unlink()
            if (tmp_path / "out").is_dir() and tmp_path / "out" not in before:
                (tmp_path / "out").rmdir()
            results.append(result)
        return results

    return run


def raw_controls(text: str) -> set[str]:
    return {character for character in text if not character.isprintable()} - {"\n"}


Bad = Callable[..., list[Result]]


@pytest.mark.parametrize("suffix", [".sh", ".toml", ".yaml", ".args", ""])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n\t\n ",
        b"\xef\xbb\xbf",
        b"\x7fELF\x02\x01\x01\x00\x00\x00",
        b"#!/bin/bash\necho \x00\n",
        "MODEL=caf\xe9\n".encode("latin-1"),
        "#!/bin/bash\n".encode("utf-16"),
        b"\xff" * 100,
        bytes(range(1, 256)),
        b"MZ" + bytes(range(256)) * 8,
    ],
)
def test_no_text_at_all(bad: Bad, tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"source{suffix}"
    path.write_bytes(data)
    assert {result.code for result in bad(path)} == {2}


@pytest.mark.parametrize(
    "text", ["hello\n", "#!/bin/bash\n", "# comment\n", "[table]\nkey = 1\n", "a: b\n", "<html>\n", "{}\n"]
)
@pytest.mark.parametrize("suffix", [".sh", ".toml", ".yaml", ".json", ""])
@pytest.mark.parametrize("named", ["", "megatron", "torchtitan", "spec"])
def test_text_of_something_else(bad: Bad, tmp_path: Path, text: str, suffix: str, named: str) -> None:
    path = tmp_path / f"source{suffix}"
    path.write_text(text)
    bad(path, *(("--from", named) if named else ()))


def test_one_framework_read_as_another(bad: Bad, toml: Path, tmp_path: Path) -> None:
    for source, named in ((SCRIPT, "torchtitan"), (toml, "megatron"), (SCRIPT, "spec"), (toml, "spec")):
        assert bad(source, "--from", named)[0].code == 2
    (tmp_path / "spec.yaml").write_bytes(SPEC)
    for named in ("megatron", "torchtitan"):
        assert bad(tmp_path / "spec.yaml", "--from", named)[0].code == 2


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t.sh", SHELL),
        ("t.toml", TOML.encode()),
        ("t.yaml", YAML),
        ("s.yaml", SPEC),
        ("ds.json", DEEPSPEED),
        ("t.py", PYTHON),
    ],
)
def test_cut_anywhere(bad: Bad, tmp_path: Path, name: str, data: bytes) -> None:
    for end in range(1, len(data), max(1, len(data) // 40)):
        path = tmp_path / name
        path.write_bytes(data[:end])
        bad(path)


@pytest.mark.parametrize(
    "text",
    [
        'torchrun pretrain_gpt.py --num-layers 2 --hidden-size "64',
        "torchrun pretrain_gpt.py --num-layers 2 --hidden-size '64",
        "torchrun pretrain_gpt.py --num-layers $((2 + --hidden-size 64",
        "torchrun pretrain_gpt.py --num-layers ${L:-2 --hidden-size 64",
        "ARGS=(--num-layers 2\ntorchrun pretrain_gpt.py ${ARGS[@]}",
        "if true; then torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64",
        "cat <<EOF\ntorchrun pretrain_gpt.py --num-layers 2 --hidden-size 64",
        "while true; do torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64; done",
        "f() { f; }; f; torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64",
        'A=x; while :; do A="$A$A"; done; torchrun pretrain_gpt.py --num-layers $A',
        "source $0; torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64",
        "source ../../../../etc/passwd; torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64",
        "torchrun pretrain_gpt.py --num-layers {1..100000000}",
        "torchrun pretrain_gpt.py --num-layers $((2**62 * 2**62)) --hidden-size $((1/0))",
        "torchrun pretrain_gpt.py --num-layers 99999999999999999999999 --hidden-size 1e400 --lr nan --min-lr -inf",
        "torchrun pretrain_gpt.py --num-layers -1 --hidden-size 0 --num-attention-heads 0 --micro-batch-size 0",
        "torchrun --nproc_per_node 0 --nnodes 0 pretrain_gpt.py --num-layers 2 --hidden-size 64",
        "torchrun --nproc_per_node 99999999999 pretrain_gpt.py --num-layers 2 --hidden-size 64 --seq-length 1",
        "torchrun pretrain_gpt.py --num-layers 2 --tensor-model-parallel-size 0 --pipeline-model-parallel-size 0",
    ],
)
def test_broken_and_endless_scripts(bad: Bad, tmp_path: Path, text: str) -> None:
    path = tmp_path / "train.sh"
    path.write_text(text)
    bad(path)


@pytest.mark.parametrize(
    "text",
    [
        "[training\nsteps = 1\n[parallelism]\n",
        "[training]\nsteps = \n",
        '[training]\nsteps = "1\n',
        "[training]\nsteps = 1\nsteps = 2\n",
        "[training]\n[training]\n[model]\n",
        "[training]\nsteps = 1e400\n[optimizer]\nlr = nan\n",
        "[training]\nsteps = 99999999999999999999999999\n",
        "[training]\nsteps = -1\nseq_len = 0\nlocal_batch_size = 0\n[parallelism]\ntensor_parallel_degree = 0\n",
        '[training]\nsteps = [1, {a = 1}]\n[parallelism]\ntensor_parallel_degree = "two"\n',
        "[model]\nname = 1\nflavor = []\n[training]\n",
        "[model.name]\nx = 1\n[training.steps]\ny = 2\n",
        "[[training]]\nsteps = 1\n[[training]]\nsteps = 2\n[model]\n",
        "[training]\nsteps = 1979-05-27T07:32:00Z\n[model]\n",
        '[parallelism]\npipeline_parallel_schedule_csv = "/etc/passwd"\n[model]\n[training]\n',
        '[job]\ncustom_config_module = "os"\n[experimental]\ncustom_import = "../../evil"\n[model]\n[training]\n',
    ],
)
def test_broken_tables(bad: Bad, tmp_path: Path, text: str) -> None:
    path = tmp_path / "train.toml"
    path.write_text(text)
    bad(path)


def nested(left: str, right: str, count: int = 10_000) -> str:
    return left * count + right * count


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.sh", "torchrun pretrain_gpt.py --num-layers 2 --hidden-size " + nested("(", ")")),
        ("t.sh", "torchrun pretrain_gpt.py --num-layers 2 --hidden-size " + nested("$(", ")")),
        ("t.sh", "torchrun pretrain_gpt.py --num-layers 2 --hidden-size $((" + nested("(", ")") + "))"),
        ("t.sh", "torchrun pretrain_gpt.py --num-layers 2 --hidden-size " + nested("${A:-", "}")),
        ("t.sh", "torchrun pretrain_gpt.py --num-layers 2 --hidden-size " + nested("{a,", "}")),
        ("t.sh", nested("if true; then ", " fi;") + "\ntorchrun pretrain_gpt.py --num-layers 2"),
        ("t.sh", "torchrun pretrain_gpt.py --num-layers 2 " + "`" * 10_000),
        ("t.sh", "torchrun pretrain_gpt.py --num-layers 2 " + "\\" * 100_001),
        ("t.toml", "[training]\nsteps = " + nested("[", "]") + "\n[model]\n[parallelism]\n"),
        ("t.toml", "[training]\nsteps = " + nested("{a=", "}") + "\n[model]\n[parallelism]\n"),
        ("t.toml", "[training]\n" + ".".join("a" * 10_000) + " = 1\n[model]\n[parallelism]\n"),
        ("t.toml", "[" + ".".join("a" * 5_000) + "]\n[model]\n[training]\n[parallelism]\n"),
        ("t.yaml", "MODEL_ARGS:\n  --num-layers: " + nested("[", "]") + "\n"),
        ("t.yaml", "MODEL_ARGS:\n  --num-layers: " + nested("{a: ", "}") + "\n"),
        ("s.yaml", "model: " + nested("[", "]") + "\n"),
        ("ds.json", '{"train_batch_size": 8, "zero_optimization": ' + nested("[", "]") + "}"),
        ("ds.json", '{"train_batch_size": 8, "zero_optimization": ' + nested('{"a":', "}") + "}"),
        ("t.py", "from torchtitan.trainer import Trainer\nx = " + nested("(", ")")),
        ("t.py", "from torchtitan.trainer import Trainer\nx = " + "-" * 10_000 + "1"),
        ("t.py", "from torchtitan.trainer import Trainer\nx = " + "1+" * 10_000 + "1"),
        ("s.yaml", "\n".join(" " * n + "model:" for n in range(1000)) + "\n"),
    ],
)
def test_deep_nesting(bad: Bad, tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    bad(path)


def laughs(head: str) -> str:
    lines = [f"{head}a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{head}a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        "MODEL_ARGS:\n  --num-layers: 2\n  --hidden-size: 64\n" + laughs("  --"),
        laughs("") + "\nMODEL_ARGS:\n  --num-layers: 2\n  --hidden-size: *a11\n",
        "MODEL_ARGS: &m\n  --num-layers: 2\n  --x: *m\n",
        "MODEL_ARGS:\n  --num-layers: 2\n  <<: {--hidden-size: 64}\n",
        "MODEL_ARGS:\n  --num-layers: !!python/object/apply:os.system ['touch hacked']\n",
        "MODEL_ARGS:\n  ? [a, b]\n  : 1\n  --num-layers: 2\n",
        "MODEL_ARGS:\n  1: 2\n  null: 3\n  --num-layers: 2\n",
        "MODEL_ARGS: 5\n--num-layers: 2\n",
        "MODEL_ARGS:\n- --num-layers\n- 2\n",
        "MODEL_ARGS:\n  --num-layers: 2020-01-01\n  --hidden-size: .nan\n  --lr: .inf\n",
    ],
)
def test_yaml_of_a_hostile_kind(bad: Bad, tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model_config.yaml"
    path.write_text(text)
    bad(path)
    bad(path, "--from", "megatron")
    assert not (tmp_path / "hacked").exists()


def test_too_large(bad: Bad, tmp_path: Path) -> None:
    for name, line in (("t.sh", b"A=1\n"), ("t.toml", b"[training]\n"), ("t.yaml", b"model: 1\n")):
        (tmp_path / name).write_bytes(line * (20 * 2**20 // len(line)))
        assert {result.code for result in bad(tmp_path / name)} == {2}
        (tmp_path / name).unlink()


@pytest.mark.parametrize(
    ("name", "head", "line"),
    [
        ("t.sh", "", "A=1\n"),
        ("t.sh", "torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 \\\n", "--seed 1 \\\n"),
        ("t.sh", "torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64\n", "# a comment that fills the line\n"),
        ("t.sh", 'torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --save "', "x" * 1000 + "\n"),
        ("t.args", "--num-layers 2 --hidden-size 64 --seq-length 1\n", "--num-layers 2\n"),
        ("t.toml", "[model]\n[training]\n[parallelism]\n", "# a comment that fills the line\n"),
        ("t.toml", "[model]\n[training]\n[parallelism]\n[job]\n", "k{n} = {n}\n"),
        ("t.yaml", "MODEL_ARGS:\n  --num-layers: 2\n", "  --k{n}: {n}\n"),
        ("s.yaml", "model: {layers: 2}\nextras:\n  megatron:\n", "    k{n}: {n}\n"),
        ("ds.json", '{"train_batch_size": 8, "zero_optimization": {"stage": 2},\n', '"k{n}": {n},\n'),
        ("t.py", "from torchtitan.trainer import Trainer\n", "x{n} = Trainer.Config({n})\n"),
    ],
)
def test_as_large_as_is_read(ttx: Ttx, tmp_path: Path, name: str, head: str, line: str) -> None:
    lines, size = [head], len(head)
    while size < MAX_SOURCE_BYTES - 2000:
        lines.append(line.replace("{n}", str(len(lines))))
        size += len(lines[-1])
    (tmp_path / name).write_text("".join(lines))
    begin = time.perf_counter()
    result = ttx("convert", tmp_path / name, "--to", "torchtitan")
    assert time.perf_counter() - begin < 3 * SECONDS
    assert result.code in (0, 1, 2), result.err[:1000]


def test_ten_thousand_options(bad: Bad, tmp_path: Path) -> None:
    unknown = " ".join(f"--option-{n} {n}" for n in range(10_000))
    (tmp_path / "t.sh").write_text(f"torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 {unknown}\n")
    results = bad(tmp_path / "t.sh")
    assert results[0].code == 1
    (tmp_path / "t.toml").write_text(TOML + "[job]\n" + "\n".join(f"option_{n} = {n}" for n in range(10_000)))
    bad(tmp_path / "t.toml")


def test_places_that_are_no_files(bad: Bad, tmp_path: Path) -> None:
    (tmp_path / "folder.sh").mkdir()
    os.mkfifo(tmp_path / "pipe.sh")
    (tmp_path / "loop.sh").symlink_to(tmp_path / "loop.sh")
    (tmp_path / "gone.sh").symlink_to(tmp_path / "nowhere")
    names = ["folder.sh", "pipe.sh", "loop.sh", "gone.sh", "missing.sh", "x" * 5000, "a\x00b", "a/b/c.sh", "\ud800"]
    for name in [*(str(tmp_path / name) for name in names), "", "/dev/zero", "/dev/null", "/dev/tty", "."]:
        assert {result.code for result in bad(name)} == {2}, name


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(bad: Bad, tmp_path: Path) -> None:
    path = tmp_path / "t.sh"
    path.write_bytes(SHELL)
    path.chmod(0)
    results = bad(path)
    assert {result.code for result in results} == {2}
    assert "Permission denied" in results[0].err


def test_unreadable_by_error(ttx: Ttx, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    result = ttx("parse", script)
    assert result.code == 2
    assert "Permission denied" in result.err


def test_an_endless_standard_input(ttx: Ttx, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        class buffer:  # noqa: N801
            @staticmethod
            def read(count: int) -> bytes:
                return b"A=1\n" * (count // 4 + 1)

    monkeypatch.setattr(sys, "stdin", Endless())
    result = ttx("convert", "-", "--to", "torchtitan")
    assert (result.code, len(result.err.splitlines())) == (2, 1)
    assert "larger than" in result.err


ESC = "\x1b]0;owned\x07\x1b[2J\x1b[31m"
HOSTILE = [
    "$(touch hacked)",
    "`touch hacked`",
    "; touch hacked;",
    "a\nb\rc",
    ESC,
    "\u202eabc\u2066",
    "\x9b31m",
    "--",
    "'\"\\",
]


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_words(bad: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.chdir(tmp_path)
    quoted = "'" + word.replace("'", "'\\''") + "'"
    (tmp_path / "t.sh").write_text(
        f"export NAME={quoted}\n{quoted}\ntorchrun --nproc_per_node 2 pretrain_gpt.py --num-layers 2 --hidden-size 64 "
        f"--num-attention-heads 4 --save {quoted} --load {word} --data-path {quoted} --no-such{quoted} {quoted} "
        f"--normalization {quoted} --micro-batch-size {quoted} {quoted}\n",
        newline="",
    )
    bad(tmp_path / "t.sh", "--set", f"X={word}", "--arg", word)
    escaped = (
        word.replace("\\", "\\\\").replace('"', '\\"').translate({n: f"\\u{n:04x}" for n in [*range(32), 127, 0x9B]})
    )
    (tmp_path / "t.toml").write_text(
        f'{TOML}[job]\ndump_folder = "{escaped}"\n"{escaped}" = "{escaped}"\n["{escaped}"]\nx = 1\n[checkpoint]\n'
        f'enable = true\nfolder = "{escaped}"\n[optimizer]\nname = "{escaped}"\n',
    )
    bad(tmp_path / "t.toml")
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize(
    "text",
    [
        '{"train_batch_size": 1e400, "zero_optimization": {"stage": -1}}',
        '{"train_batch_size": NaN, "zero_optimization": {"stage": Infinity}}',
        '{"train_batch_size": 99999999999999999999999999, "zero_optimization": {"stage": 2}}',
        '{"train_batch_size": 8, "train_batch_size": 9, "zero_optimization": []}',
        '{"train_batch_size": {}, "zero_optimization": "two", "bf16": 1, "fp16": [], "optimizer": 5}',
        '{"train_batch_size": 0, "train_micro_batch_size_per_gpu": 0, "gradient_accumulation_steps": 0}',
        '{"train_batch_size": 8, "zero_optimization": {"stage": 2},}',
        '[{"train_batch_size": 8, "zero_optimization": {"stage": 2}}]',
        '{"train_batch_size": "\\u001b[31m", "zero_optimization": {"\\u001b[31m": "\\ud800"}, "\\n": 1}',
    ],
)
def test_broken_json(bad: Bad, tmp_path: Path, text: str) -> None:
    (tmp_path / "ds_config.json").write_text(text)
    bad(tmp_path / "ds_config.json")
    bad(tmp_path / "ds_config.json", "--from", "deepspeed", "--world-size", "8")
    (tmp_path / "t.toml").write_text(TOML)
    bad(tmp_path / "ds_config.json", "--from", "deepspeed", "--model", str(tmp_path / "t.toml"))


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_file_names(bad: Bad, ttx: Ttx, tmp_path: Path, word: str) -> None:
    path = tmp_path / f"{word.replace('/', '')}.sh"
    path.write_bytes(SHELL)
    bad(path)
    for target in ("torchtitan", "megatron"):
        text = ttx("convert", path, "--to", target).out
        assert not raw_controls(text)
        assert not [line for line in text.splitlines() if line.startswith(("b", "c"))]
    path.write_bytes(b"nothing")
    bad(path)


@pytest.mark.parametrize(
    "word", [*HOSTILE, "", "=", "A", "A=", "=A", "1A=1", "A B=1", "A[0]=1", "ä=1", "PATH=/x", "IFS=0"]
)
def test_odd_settings(ttx: Ttx, script: Path, word: str) -> None:
    for option in ("--set", "--arg", "--args", "--from", "--to", "--launch", "--world-size", "--format", "--ledger"):
        result = ttx("convert", script, "--to", "torchtitan", option, word)
        assert result.code in (0, 1, 2), result.err
        assert not raw_controls(result.err)
    for field in (word, f"{word}=1", f"checkpoint.save={word}", f"model.layers={word}", f"data.dataset=[{word}]"):
        result = ttx("convert", script, "--to", "torchtitan", field)
        assert result.code in (0, 1, 2), result.err
        assert not raw_controls(result.err)


def test_hostile_siblings(bad: Bad, tmp_path: Path) -> None:
    secret = tmp_path.parent / "secret.sh"
    secret.write_text("LAYERS=77\n")
    (tmp_path / "link.sh").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe.sh")
    (tmp_path / "binary.sh").write_bytes(b"\x00\x01")
    (tmp_path / "self.sh").write_text("source self.sh\n")
    for name in ("../secret.sh", str(secret), "link.sh", "pipe.sh", "binary.sh", "self.sh", "/dev/zero", "~/.bashrc"):
        path = tmp_path / "t.sh"
        path.write_text(f"source {name}\ntorchrun pretrain_gpt.py --num-layers $LAYERS --hidden-size 64 --seed 1\n")
        for result in bad(path):
            assert "77" not in result.out.replace(str(tmp_path), "")


def test_extraction_from_hostile_trees(ttx: Ttx, tmp_path: Path) -> None:
    for source in ("missing", ".", "/dev/zero"):
        for framework in ("megatron", "torchtitan"):
            result = ttx("catalogue", "extract", framework, "1.0", "--source", tmp_path / source)
            assert (result.code, len(result.err.splitlines())) == (2, 1), result.err
    folder = tmp_path / "megatron" / "training"
    folder.mkdir(parents=True)
    for data in (b"def f(:\n", b"\x00\xff", b"(" * 10_000, b""):
        (folder / "arguments.py").write_bytes(data)
        result = ttx("catalogue", "extract", "megatron", "0.18.0", "--source", tmp_path)
        assert (result.code, len(result.err.splitlines())) == (2, 1), result.err


def mutations(data: bytes) -> st.SearchStrategy[bytes]:
    """A valid example with a piece replaced, doubled, moved or dropped."""
    places = st.integers(0, len(data))
    pieces = st.one_of(
        st.binary(max_size=8),
        st.text(max_size=8).map(lambda text: text.encode("utf-8", "replace")),
        st.sampled_from(
            [
                b"$(",
                b"${",
                b"((",
                b"]]",
                b"'",
                b'"',
                b"`",
                b"<<E\n",
                b"\\\n",
                b"\r\n",
                b" -- ",
                b"=",
                b"[[",
                b"{",
                b"&x ",
            ]
        ),
        places.flatmap(lambda at: st.integers(0, 60).map(lambda size: data[at : at + size])),
    )

    def mutate(changes: list[tuple[int, int, bytes]]) -> bytes:
        result = data
        for at, size, piece in changes:
            result = result[:at] + piece + result[at + size :]
        return result

    return st.lists(st.tuples(places, st.integers(0, 40), pieces), min_size=1, max_size=4).map(mutate)


def every_example() -> Iterator[tuple[str, bytes]]:
    yield "t.sh", SHELL
    yield "t.args", b"--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 16 --lr 1e-3 --bf16\n"
    yield "t.toml", TOML.encode()
    yield "t.yaml", YAML
    yield "s.yaml", SPEC
    yield "ds.json", DEEPSPEED
    yield "t.py", PYTHON
    for name in ("deepseek-v3-megatron/train.sh", "llama3-405b-torchtitan/train.toml"):
        if (EXAMPLES / name).is_file():
            yield Path(name).name, (EXAMPLES / name).read_bytes()


@pytest.mark.parametrize(("name", "data"), list(every_example()))
def test_mutations_of_what_is_valid(ttx: Ttx, tmp_path: Path, name: str, data: bytes) -> None:
    @given(mutations(data), st.sampled_from(["megatron", "torchtitan", "spec"]))
    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    def check(changed: bytes, target: str) -> None:
        (tmp_path / name).write_bytes(changed)
        result = ttx("convert", tmp_path / name, "--to", target)
        assert result.code in (0, 1, 2), (result.err, changed)
        assert not raw_controls(result.err)
        assert result.code != 2 or len(result.err.splitlines()) == 1

    check()


@pytest.mark.parametrize("named", [(), ("--from", "megatron"), ("--from", "torchtitan"), ("--from", "spec")])
@pytest.mark.parametrize("suffix", [".sh", ".toml", ".yaml"])
def test_any_bytes(ttx: Ttx, tmp_path: Path, named: tuple[str, ...], suffix: str) -> None:
    @given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))))
    @settings(max_examples=50, suppress_health_check=list(HealthCheck))
    def check(data: bytes) -> None:
        path = tmp_path / f"t{suffix}"
        path.write_bytes(data)
        result = ttx("parse", path, *named)
        assert result.code in (0, 1, 2), (result.err, data)
        assert not raw_controls(result.err)

    check()
