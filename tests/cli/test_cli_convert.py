"""``ttx convert``: what goes where, and with which exit code."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from cli_support import Ttx

LOSSLESS = "# nothing that touches training is stated\n[metrics]\nlog_freq = 5\n"


def loads(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def test_the_result_is_alone_on_standard_output(ttx: Ttx, script: Path) -> None:
    result = ttx("convert", script, "--to", "torchtitan")
    assert result.code == 1
    document = loads(result.out)
    assert document["model"] == {"name": "llama3", "flavor": "8B", "hf_assets_path": "/models/llama3-8b"}
    assert document["training"]["seq_len"] == 8192
    assert "megatron 0.18.0 -> torchtitan 0.2.2:" in result.err
    assert "touching training" in result.err
    assert "--lr-warmup-iters 500" in result.err
    assert f"{script}:61" in result.err
    assert "\x1b" not in result.err


def test_losses_are_grouped_from_the_gravest_to_the_least(ttx: Ttx, script: Path) -> None:
    heads = [
        line.split(" (")[0]
        for line in ttx("convert", script, "--to", "torchtitan").err.splitlines()
        if line.startswith("touching")
    ]
    assert heads == ["touching training", "touching memory", "touching speed", "touching operation"]


def test_colour_only_on_a_terminal(ttx: Ttx, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[33mapproximated" in ttx("convert", script, "--to", "torchtitan").err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in ttx("convert", script, "--to", "torchtitan").err


@pytest.mark.parametrize(("ledger", "exact"), [("all", True), ("losses", False), ("none", False)])
def test_which_ledger_lines_are_printed(ttx: Ttx, script: Path, ledger: str, exact: bool) -> None:
    err = ttx("convert", script, "--to", "torchtitan", "--ledger", ledger).err
    assert ("--seq-length 8192" in err) == exact
    assert ("--lr-warmup-iters 500" in err) == (ledger != "none")


@pytest.mark.parametrize(("on_loss", "code", "written"), [("ignore", 0, True), ("warn", 1, True), ("error", 1, False)])
def test_on_loss(ttx: Ttx, script: Path, tmp_path: Path, on_loss: str, code: int, written: bool) -> None:
    target = tmp_path / "out.toml"
    result = ttx("convert", script, "--to", "torchtitan", "--on-loss", on_loss, "-o", target)
    assert (result.code, target.exists(), result.out) == (code, written, "")
    assert ("Nothing was written" in result.err) == (not written)
    assert bool(ttx("convert", script, "--to", "torchtitan", "--on-loss", on_loss).out) == written


def test_without_a_loss_that_touches_training_the_exit_code_is_0(ttx: Ttx, tmp_path: Path) -> None:
    source = tmp_path / "train.toml"
    source.write_text(LOSSLESS)
    for on_loss in ("warn", "error", "ignore"):
        result = ttx("convert", source, "--from", "torchtitan", "--to", "torchtitan", "--on-loss", on_loss)
        assert result.code == 0, result.err
        assert "Nothing that touches training was lost." in result.err
        assert loads(result.out)["metrics"]["log_freq"] == 5


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [("[activation_checkpoint]", 0, ""), ("[no_such_section]\na = {}", 1, "1 error: a framework would refuse")],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_source_that_its_framework_would_refuse_ends_with_1(
    ttx: Ttx, tmp_path: Path, line: str, code: int, said: str, form: str
) -> None:
    source = tmp_path / "train.toml"
    source.write_text(f"{LOSSLESS}\n{line}\n")
    result = ttx(
        "convert", source, "--from", "torchtitan", "--to", "torchtitan", "--format", form, "--on-loss", "ignore"
    )
    assert result.code == code, result.err
    assert form == "json" or said in result.err


def test_json_is_one_document_with_stable_keys(ttx: Ttx, script: Path) -> None:
    result = ttx("convert", script, "--to", "torchtitan@0.1.0", "--format", "json")
    document = result.document
    assert (result.code, result.err) == (1, "")
    assert list(document) == ["schema_version", "source", "target", "files", "ledger", "findings", "summary"]
    assert document["schema_version"] == 1
    assert document["source"] == {"framework": "megatron", "version": "0.18.0"}
    assert document["target"] == {"framework": "torchtitan", "version": "0.1.0"}
    assert "train.toml" in document["files"]
    for line in document["ledger"]:
        assert list(line) == ["option", "value", "where", "entry", "touches", "target", "note"]
        assert line["where"] is None or list(line["where"]) == ["file", "line", "column"]
    assert list(document["summary"]) == [
        "exact",
        "default",
        "adapted",
        "irrelevant",
        "approximated",
        "unsupported",
        "needs_input",
    ]
    assert sum(document["summary"].values()) == len(document["ledger"])
    for finding in document["findings"]:
        assert list(finding) == ["code", "level", "message", "fix", "where", "option", "field"]


def test_every_option_is_in_the_ledger_once(ttx: Ttx, script: Path) -> None:
    ledger = ttx("convert", script, "--to", "torchtitan", "--format", "json").document["ledger"]
    stated = [line["option"] for line in ledger if line["where"] and line["option"].startswith("--")]
    assert len(stated) == len(set(stated))
    flags = {
        word
        for line in script.read_text().splitlines()
        if not line.strip().startswith("#")
        for word in line.split()
        if word.startswith("--")
    }
    torchrun = {"--nproc_per_node", "--nnodes", "--node_rank", "--master_addr", "--master_port"}
    assert flags - torchrun <= set(stated)


def test_json_refused_holds_no_files(ttx: Ttx, script: Path) -> None:
    result = ttx("convert", script, "--to", "torchtitan", "--format", "json", "--on-loss", "error")
    assert (result.code, result.document["files"]) == (1, {})


def test_json_beside_written_files(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    result = ttx("convert", script, "--to", "torchtitan", "--format", "json", "-o", tmp_path / "out")
    for name, text in result.document["files"].items():
        assert (tmp_path / "out" / name).read_text() == text


def test_what_the_script_is_given(ttx: Ttx, tmp_path: Path) -> None:
    source = tmp_path / "train.sh"
    source.write_text(
        "torchrun --nproc_per_node 8 --nnodes ${SLURM_NNODES} pretrain_gpt.py --num-layers ${LAYERS:-2} "
        '--hidden-size "$1" --num-attention-heads 4 --seq-length $2 --max-position-embeddings 128 '
        '--micro-batch-size 1 "${@:3}"\n'
    )

    def values(*words: str) -> dict[str, object]:
        ledger = ttx("convert", source, "--to", "megatron", "--format", "json", *words).document["ledger"]
        return {line["option"]: line["value"] for line in ledger}

    words = ("--set", "SLURM_NNODES=2", "--set", "LAYERS=6", "--args", "64 128", "--arg", "--lr", "--arg", "1e-3")
    found = values(*words)
    assert (found["--num-layers"], found["--hidden-size"], found["--seq-length"]) == (6, 64, 128)
    assert found["--lr"] == 1e-3
    assert "environment" not in found, "what the reading was given is no part of the configuration"
    unknown = ttx("convert", source, "--to", "torchtitan", "--args", "64 128", "--format", "json").document["ledger"]
    needs = [line for line in unknown if line["entry"] == "needs-input" and "SLURM_NNODES" in line["note"]]
    assert needs, "an unresolved variable needs input"


def test_a_value_that_looks_like_an_option(ttx: Ttx, tmp_path: Path) -> None:
    source = tmp_path / "train.sh"
    source.write_text("torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 2 --hidden-size 64 $1 $2\n")
    result = ttx("convert", source, "--to", "megatron", "--format", "json", "--args", "--swiglu", "--arg", "--bf16")
    assert {"--swiglu", "--bf16"} <= {line["option"] for line in result.document["ledger"]}


def test_one_of_several_launches(ttx: Ttx, tmp_path: Path) -> None:
    source = tmp_path / "train.sh"
    common = "--hidden-size 64 --num-attention-heads 4 --seq-length 128 --micro-batch-size 1"
    source.write_text(
        "".join(f"torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers {n} {common}\n" for n in (2, 4))
    )

    def layers(*words: str) -> object:
        ledger = ttx("convert", source, "--to", "megatron", "--format", "json", *words).document["ledger"]
        return next(line["value"] for line in ledger if line["option"] == "--num-layers")

    assert (layers("--launch", "1"), layers("--launch", "2")) == (2, 4)
    result = ttx("convert", source, "--to", "megatron", "--launch", "3")
    assert result.code == 2
    assert "there is no launch 3 (launches: 1 pretrain_gpt.py" in result.err


def test_world_size(ttx: Ttx, toml: Path) -> None:
    spec = ttx("parse", toml, "--world-size", "16", "--format", "json").document["spec"]
    assert spec["parallel"]["world_size"] == 16
    for wrong in ("0", "-1", "x", str(10**30)):
        result = ttx("parse", toml, "--world-size", wrong)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("ttx: error:")


@pytest.mark.parametrize("place", ["first", "last"])
def test_overrides_stand_anywhere_after_the_source(ttx: Ttx, script: Path, place: str) -> None:
    values, options = ("batch.global_batch=1024", "optimizer.lr=1e-3"), ("--to", "torchtitan")
    words = (*values, *options) if place == "first" else (*options, *values)
    document = loads(ttx("convert", script, *words).out)
    assert document["training"]["global_batch_size"] == 1024
    assert document["optimizer"]["lr"] == 1e-3


def test_overrides_are_named_as_the_origin(ttx: Ttx, script: Path) -> None:
    origins = ttx("parse", script, "optimizer.lr=2e-4", "--format", "json").document["origins"]
    assert origins["optimizer.lr"]["option"] == "optimizer.lr=0.0002"


def test_a_source_on_standard_input(ttx: Ttx, script: Path) -> None:
    result = ttx("convert", "-", "--to", "torchtitan", stdin=script.read_bytes())
    assert result.code == 1
    assert loads(result.out)["model"]["flavor"] == "8B"
    assert "<stdin>:61" in result.err


def test_the_spec_is_a_target(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    result = ttx("convert", script, "--to", "spec")
    assert result.code == 0
    assert result.out == ttx("parse", script).out
    assert ttx("convert", script, "--to", "spec.yaml", "-o", tmp_path / "s.yaml").code == 0
    assert (tmp_path / "s.yaml").read_text() == result.out
    document = ttx("convert", script, "--to", "spec", "--format", "json").document
    assert document["target"] == {"framework": "spec", "version": "1"}
    assert {line["entry"] for line in document["ledger"]} <= {"exact", "adapted", "irrelevant"}


def test_hints_in_comments(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    hinted = tmp_path / "train.sh"
    hinted.write_text(
        "# ttx: version=0.16.0 ignore=R010\n" + script.read_text().replace("--bf16", "--bf16 --no-such 1")
    )
    document = ttx("convert", hinted, "--to", "torchtitan", "--format", "json").document
    assert document["source"]["version"] == "0.16.0"
    assert not [finding for finding in document["findings"] if finding["code"] == "R010"]
    assert [line["entry"] for line in document["ledger"] if line["option"] == "--no-such"] == ["unsupported"]
    hinted.write_text(hinted.read_text().replace(" ignore=R010", ""))
    findings = ttx("convert", hinted, "--to", "torchtitan", "--format", "json").document["findings"]
    assert [finding["code"] for finding in findings if finding["option"] == "--no-such"] == ["R010"]
    hinted.write_text("# ttx: version=\n" + script.read_text())
    source = ttx("convert", hinted, "--to", "torchtitan", "--format", "json").document["source"]
    assert source["version"] == "0.18.0"


def test_between_versions_of_one_framework(ttx: Ttx, toml: Path) -> None:
    result = ttx("convert", toml, "--to", "torchtitan@0.1.0", "--world-size", "8")
    assert loads(result.out)["training"]["seq_len"] == 4096
    assert result.code == 1
    assert "approximated  loss.normalization global_tokens" in result.err  # 0.1.0 averages micro batches


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the following arguments are required"),
        (("--to", "torchtitan"), "the following arguments are required: SRC"),
        (("SRC", "--to", "torchtitn"), "torchtitan"),
        (("SRC", "--to", "torchtitan@7"), "known versions: 0.1.0, 0.2.2"),
        (("SRC", "--from", "megatron@0.1", "--to", "torchtitan"), "known versions: 0.12.0"),
        (("SRC", "--from", "nemo", "--to", "torchtitan"), "known: megatron, torchtitan"),
        (("SRC", "--too", "torchtitan"), "--to"),
        (("SRC", "--to", "torchtitan", "--ledgr", "all"), "did you mean --ledger?"),
        (("SRC", "--to", "torchtitan", "--on-loss", "shrug"), "'ignore', 'warn', 'error'"),
        (("SRC", "--to", "torchtitan", "batch.micro_bach=2"), "nearest: batch.micro_batch"),
        (("SRC", "--to", "torchtitan", "batch.micro_batch=0"), "batch.micro_batch"),
        (("SRC", "--to", "torchtitan", "batch.micro_batch=two"), "batch.micro_batch"),
        (("SRC", "--to", "torchtitan", "other.sh"), "FIELD=VALUE"),
        (("SRC", "--to", "torchtitan", "--set", "NAME"), "--set takes NAME=VALUE"),
        (("SRC", "--to", "torchtitan", "--set", "A B=1"), "no name of a shell variable"),
        (("SRC", "--to", "torchtitan", "--args", "'open"), "--args"),
        (("SRC", "--to", "torchtitan", "--launch", "0"), "--launch must be 1 or more"),
    ],
)
def test_wrong_calls_end_with_2_and_one_line(ttx: Ttx, script: Path, words: tuple[str, ...], said: str) -> None:
    result = ttx("convert", *(str(script) if word == "SRC" else word for word in words))
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith("ttx: error: ")
    assert said in result.err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("config.json", '{"architectures": ["LlamaForCausalLM"], "hidden_size": 4096}', "Hugging Face"),
        ("other.json", "{}", "not recognised"),
    ],
)
def test_what_is_no_configuration_is_said_in_one_line(
    ttx: Ttx, tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    result = ttx("convert", tmp_path / name, "--to", "torchtitan")
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert len(result.err.splitlines()) == 1


def test_a_python_result_is_written_once(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "mine.py"
    ttx("convert", script, "--to", "torchtitan@0.3.0", "-o", target)
    assert [path.name for path in target.parent.iterdir()] == ["mine.py"]
