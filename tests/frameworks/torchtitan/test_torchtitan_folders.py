"""Folders keep the path that they have, whatever the dump folder is."""

from __future__ import annotations

import posixpath
from typing import Any

import pytest

from translator import api
from translator.ledger import Entry
from translator.reading import ReadOptions
from translator.source import Source

MEGATRON = """--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 512 --max-position-embeddings 512
--vocab-size 1024 --lr 1e-3 --train-iters 10 --bf16 --micro-batch-size 1 --global-batch-size 8 """
TOML = """[job]
dump_folder = "{dump}"
[model]
name = "llama3"
flavor = "8B"
[checkpoint]
enable = true
folder = "{folder}"
[metrics]
enable_tensorboard = true
save_tb_folder = "events"
"""


def _from_megatron(options: str, version: str = "0.2.2") -> Any:
    source = Source("run.args", MEGATRON + options)
    read = ReadOptions(world_size=8)
    return api.convert(source, f"torchtitan@{version}", framework="megatron", options=read)


def _from_torchtitan(to: str, dump: str, folder: str) -> Any:
    source = Source("run.toml", TOML.format(dump=dump, folder=folder))
    return api.convert(source, to, framework="torchtitan@0.2.2", options=ReadOptions(world_size=8))


def _no_fault(done: Any) -> None:
    assert [finding for finding in done.findings if finding.code == "L290"] == []


@pytest.mark.parametrize(
    ("dump", "folder", "path"),
    [
        ("./outputs", "checkpoint", "outputs/checkpoint"),
        ("/runs/7", "checkpoint", "/runs/7/checkpoint"),
        ("./outputs", "/scratch/ck", "/scratch/ck"),
        ("runs/../other", "ck", "other/ck"),
    ],
)
def test_megatron_saves_where_torchtitan_would(dump: str, folder: str, path: str) -> None:
    done = _from_torchtitan("megatron", dump, folder)
    assert done.sink.values["save"] == path
    # torchtitan continues from what it has saved.
    assert done.sink.values["load"] == path
    assert done.sink.values["tensorboard_dir"] == posixpath.normpath(posixpath.join(dump, "events"))
    _no_fault(done)


@pytest.mark.parametrize("version", ["0.1.0", "0.2.2", "0.3.0"])
@pytest.mark.parametrize("path", ["ckpt/a", "outputs/ckpt", "torchtitan/outputs/x", "/abs/ckpt", "../up", "./here"])
def test_torchtitan_saves_where_megatron_would(version: str, path: str) -> None:
    done = _from_megatron(f"--save {path} --save-interval 5 --tensorboard-dir {path}/tb", version)
    assert posixpath.normpath(done.back.flat["checkpoint.save"]) == posixpath.normpath(path)
    assert posixpath.normpath(done.back.flat["logging.tensorboard_dir"]) == posixpath.normpath(f"{path}/tb")
    _no_fault(done)


@pytest.mark.parametrize(("save", "events"), [("outputs/ck", "tb"), ("./ck/", "outputs/tb"), ("/ck", "./outputs/tb/")])
def test_one_dump_folder_serves_all_folders(save: str, events: str) -> None:
    done = _from_megatron(f"--save {save} --save-interval 5 --tensorboard-dir {events}")
    assert done.back.flat["checkpoint.save"] == posixpath.normpath(save)
    assert done.back.flat["logging.tensorboard_dir"] == posixpath.normpath(events)
    _no_fault(done)


def test_a_run_that_only_loads_does_not_save() -> None:
    done = _from_megatron("--load /pretrained")
    assert done.sink.values["checkpoint.load_only"] is True
    assert done.sink.values["checkpoint.initial_load_path"] == "/pretrained"
    assert done.back.flat["checkpoint.save"] is None
    _no_fault(done)


def test_a_folder_that_is_not_known_still_saves() -> None:
    source = Source("run.sh", f"torchrun --nproc_per_node 8 pretrain_gpt.py {MEGATRON.replace(chr(10), ' ')} --save "
                    "/ck/$(date +%s) --save-interval 7\n")  # fmt: skip
    done = api.convert(source, "torchtitan@0.2.2", framework="megatron")
    assert done.sink.values["checkpoint.enable"] is True
    assert done.sink.values["checkpoint.interval"] == 7
    entries = {line.option: line.entry for line in done.ledger}
    assert entries["--save"] is Entry.NEEDS_INPUT
    assert entries["--save-interval"] is not Entry.IRRELEVANT


@pytest.mark.parametrize("version", ["0.1.0", "0.2.2", "0.3.0"])
def test_a_version_change_moves_nothing(version: str) -> None:
    done = _from_torchtitan(f"torchtitan@{version}", "./mine", "ck")
    assert done.back.flat["checkpoint.save"] == "mine/ck"
    assert done.back.flat["logging.tensorboard_dir"] == "mine/events"
    _no_fault(done)
