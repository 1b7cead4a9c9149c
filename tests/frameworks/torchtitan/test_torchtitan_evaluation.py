"""An evaluation keeps the number of sequences that it looks at."""

from __future__ import annotations

from typing import Any

import pytest

from translator import api
from translator.ledger import Entry
from translator.reading import ReadOptions
from translator.source import Source

MEGATRON = """--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 512 --max-position-embeddings 512
--vocab-size 1024 --lr 1e-3 --train-iters 10 --bf16 --eval-interval 5 --eval-iters {iterations}
--micro-batch-size {micro} --global-batch-size {total} {more}"""
TORCHTITAN = """[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = {local}
global_batch_size = {total}
steps = 100
[validation]
enable = true
freq = 10
steps = {steps}
local_batch_size = {batch}
[parallelism]
data_parallel_shard_degree = 8
"""


def _to_torchtitan(world: int | None, version: str = "0.2.2", **values: Any) -> Any:
    text = MEGATRON.format(**{"more": "", **values})
    options = ReadOptions(world_size=world)
    return api.convert(Source("run.args", text), f"torchtitan@{version}", framework="megatron", options=options)


@pytest.mark.parametrize("version", ["0.2.2", "0.3.0"])
@pytest.mark.parametrize("more", ["", "--pipeline-model-parallel-size 2"])
def test_torchtitan_evaluates_as_many_sequences_as_megatron(version: str, more: str) -> None:
    done = _to_torchtitan(8, version, iterations=10, micro=2, total=64, more=more)
    stages = 2 if more else 1
    values = done.sink.values
    key = "validation.steps" if version == "0.2.2" else "validator.steps"
    local = values["training.local_batch_size"]
    assert values[key] * local * 8 // stages == 10 * 64
    assert not [finding for finding in done.findings if finding.code == "L290"]


def test_without_ranks_the_length_of_an_evaluation_is_asked_for() -> None:
    done = _to_torchtitan(None, iterations=10, micro=2, total=64)
    assert "validation.steps" not in done.sink.values
    line = next(line for line in done.ledger if line.option == "--eval-iters")
    assert line.entry is Entry.NEEDS_INPUT


@pytest.mark.parametrize(("steps", "batch", "iterations", "entry"), [(10, 4, 5, None), (3, 4, 2, Entry.APPROXIMATED)])
def test_megatron_evaluates_whole_global_batches(steps: int, batch: int, iterations: int, entry: Entry | None) -> None:
    text = TORCHTITAN.format(local=2, total=64, steps=steps, batch=batch)
    options = ReadOptions(world_size=8)
    done = api.convert(Source("run.toml", text), "megatron", framework="torchtitan", options=options)
    assert done.sink.values["eval_iters"] == iterations
    line = next(line for line in done.ledger if line.option == "validation.steps")
    assert entry is None or line.entry is entry


def test_a_run_of_one_micro_batch_per_rank_needs_no_ranks() -> None:
    text = TORCHTITAN.format(local=2, total=-1, steps=7, batch=2).partition("[parallelism]")[0]
    done = api.convert(Source("run.toml", text), "megatron", framework="torchtitan")
    assert done.sink.values["eval_iters"] == 7
    assert not [finding for finding in done.findings if finding.code == "L290"]


def test_a_result_that_asks_for_ranks_is_not_called_wrong() -> None:
    text = TORCHTITAN.format(local=2, total=-1, steps=7, batch=2).partition("[parallelism]")[0]
    done = api.convert(Source("run.toml", text), "megatron", framework="torchtitan")
    assert ":?" in done.rendered.files[done.rendered.main]
    assert [finding for finding in done.findings if finding.code == "R068"] == []
