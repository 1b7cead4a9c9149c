"""``ttx catalogue`` in process."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from translator.cli import catalogue as command
from translator.errors import SourceError, TtxError, UsageError
from translator.resources import schema_path


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers(dest="command"))
    return command.run(parser.parse_args(["catalogue", *arguments]))


def titan_tree(root: Path) -> Path:
    path = root / "torchtitan" / "config_manager.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "from dataclasses import dataclass, field\n\n"
        "@dataclass\nclass Train:\n    steps: int = 3\n\n"
        "@dataclass\nclass JobConfig:\n    train: Train = field(default_factory=Train)\n"
    )
    return root


def test_extract_writes_a_catalogue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = titan_tree(tmp_path), tmp_path / "made.json"
    assert run("extract", "torchtitan", "0.0.1", "--source", str(source), "-o", str(output)) == 0
    assert capsys.readouterr().out == ""
    document = json.loads(output.read_text())
    assert [row["address"] for row in document["options"]] == ["train.steps"]
    assert run("extract", "torchtitan", "0.0.1", "--source", str(source)) == 0
    assert capsys.readouterr().out == output.read_text()


def test_show_text_is_one_option_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "megatron@0.18.0", "--", "--tensor-model-parallel-size") == 0
    (line,) = (row for row in capsys.readouterr().out.splitlines() if row.startswith("--tensor-model-parallel-size\t"))
    assert line.split("\t") == ["--tensor-model-parallel-size", "int", "1", "", "tensor_model_parallel_size"]


def test_show_takes_a_glob(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "torchtitan@0.2.2", "training.mixed_precision_*", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["framework"], document["version"]) == ("torchtitan", "0.2.2")
    addresses = [row["address"] for row in document["options"]]
    assert addresses == ["training.mixed_precision_param", "training.mixed_precision_reduce"]


def test_show_on_a_terminal_is_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    assert run("show", "torchtitan@0.2.2", "training.steps") == 0
    printed = capsys.readouterr().out
    assert "option" in printed
    assert "training.steps" in printed
    assert "\t" not in printed


def test_show_names_what_is_near() -> None:
    with pytest.raises(UsageError, match=r"nearest: .*--num-layers"):
        run("show", "megatron@0.18.0", "num-layerz")


def test_diff(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("diff", "megatron", "0.17.0", "0.18.0", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert "step_batch_size_schedule" in found["added"]
    assert "use_legacy_models" in found["removed"]
    assert found["renamed"]["tokenizer_metadata"] == "metadata_path"
    assert not {"metadata_path", "tokenizer_metadata"} & {*found["added"], *found["removed"]}
    changes = {(change["address"], change["what"]): change for change in found["changed"]}
    sharding = changes["data_parallel_sharding_strategy", "default"]
    assert (sharding["old"], sharding["new"]) == ("no_shard", "optim_grads_params")
    assert changes["enable_msc", "flags"]["new"] == ["--enable-msc"]
    assert changes["enable_msc", "action"]["new"] == "store_true"
    assert "yarn" in changes["position_embedding_type", "choices"]["new"]


def test_diff_of_a_version_with_itself_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("diff", "megatron", "0.18.0", "0.18.0") == 0
    assert capsys.readouterr().out == ""


def test_diff_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("diff", "torchtitan", "0.1.0", "0.2.2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "removed\ttraining.compile\t\t" in lines
    assert "added\tcompile.enable\t\t" in lines
    assert 'default\tjob.dump_folder\t"./torchtitan/outputs"\t"./outputs"' in lines


def test_history_is_regenerated(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("history", "megatron") == 0
    assert capsys.readouterr().out == schema_path("megatron", "history.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("extract", "megatron", "1", "--source", "/nonexistent"), SourceError),
        (("extract", "unheard-of", "1", "--source", "."), UsageError),
        (("extract", "megatron", "1", "--source", ".", "--flavors"), UsageError),
        (("show", "megatron@1.2.3"), UsageError),
        (("show", "unheard-of@1.2.3"), UsageError),
        (("diff", "megatron", "0.18.0", "nonsense"), UsageError),
        (("history", "unheard-of"), UsageError),
        (("history", "megatron", "-o", "/dev/null/file"), UsageError),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], kind: type[TtxError]) -> None:
    with pytest.raises(kind) as caught:
        run(*arguments)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
