"""The catalogues of the two forks, and hostile scripts of theirs.

``TTX_MEGATRON_DEEPSPEED`` names a folder with checkouts ``2025.7`` and ``2023.12``; without it none is extracted again.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from test_megatron_fork import CONFIG, MODEL, merged, read, said, script

from translator import api
from translator.catalogue import load
from translator.catalogue.source_tree import SourceTree
from translator.errors import SourceError, UsageError
from translator.frameworks.catalogues import generate
from translator.frameworks.deepspeed.megatron_fork import forks
from translator.frameworks.deepspeed.megatron_fork.extract import extract
from translator.native import GPUS_PER_NODE, NODES, WORLD_SIZE
from translator.reading import ReadOptions
from translator.resources import schema_path
from translator.source import Source

SIZES = {forks.DEEPSPEEDAI: 318, forks.BIGSCIENCE: 188}


@pytest.mark.parametrize("fork", SIZES)
def test_sizes(fork: str) -> None:
    assert len(load(forks.CATALOGUE, fork)) == SIZES[fork]
    assert {"deepspeed", "deepspeed_config", "zero_stage"} <= set(forks.catalogue(fork).addresses())


def test_defaults_that_differ_from_megatron_lms() -> None:
    fork, megatron = forks.catalogue(forks.DEEPSPEEDAI), load("megatron", "0.12.0")
    for name in ("num_experts", "normalization", "recompute_num_layers"):
        assert fork.default(name) != megatron.default(name)
    assert fork.default("zero_stage") == 1.0


@pytest.mark.parametrize(
    ("flags", "fork"),
    [
        (["--num-layers", "--deepspeed"], forks.DEEPSPEEDAI),
        (["--num-layers", "--embed-layernorm"], forks.BIGSCIENCE),
        (["--num-experts", "--embed-layernorm", "--topk"], forks.DEEPSPEEDAI),
        ([], forks.DEEPSPEEDAI),
    ],
)
def test_the_fork_that_knows_more(flags: list[str], fork: str) -> None:
    assert forks.choose(flags) == fork


@pytest.mark.parametrize("fork", SIZES)
def test_extracted_again_it_is_the_same(fork: str) -> None:
    root = os.environ.get("TTX_MEGATRON_DEEPSPEED")
    if not root or not (Path(root) / fork).is_dir():
        pytest.skip("TTX_MEGATRON_DEEPSPEED names no folder with this fork's source")
    text = generate(forks.CATALOGUE, fork, Path(root) / fork)
    assert text == schema_path(forks.CATALOGUE, f"{fork}.json").read_text(encoding="utf-8")


def test_extraction_follows_the_parsers_groups(tmp_path: Path) -> None:
    package = tmp_path / "megatron"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "arguments.py").write_text(
        "def parse_args():\n    parser = argparse.ArgumentParser()\n    parser = _add_one(parser)\n"
        "    parser = deepspeed.add_config_arguments(parser)\n    return parser.parse_args()\n\n"
        "def _add_one(parser):\n    group = parser.add_argument_group('one')\n"
        "    group.add_argument('--some-size', type=int, nargs='+', default=[1])\n    return parser\n"
    )
    entries = {entry.address: entry for entry in extract(SourceTree(tmp_path))}
    assert set(entries) == {"some_size", "deepspeed", "deepspeed_config", "deepscale", "deepscale_config"}
    assert (entries["some_size"].default, entries["some_size"].arity) == ([1], "+")
    with pytest.raises(SourceError):
        extract(SourceTree(tmp_path / "megatron"))


HOSTILE = [
    "--rampup-batch-size 1 2 x",
    "--rampup-batch-size 1",
    "--num-layers 999999999 --pipeline-model-parallel-size 3",
    "--num-layers 999999999 --num-experts 8",
    "--num-layers 0 --pipeline-model-parallel-size 2",
    "--expert-interval 0 --num-experts 8",
    "--num-experts --topk",
    "--tensor-model-parallel-size 0",
    "--ds-sequence-parallel-size -1 --no-pipeline-parallel",
    "--lr nan --min-lr 1e999",
    "--train-tokens 0 --lr-warmup-tokens -5 --lr-decay-tokens 0",
    "--loss-scale 1e999 --fp16",
    "--zero-stage x --clip-grad x",
    "--deepspeed_config",
    "--pp-partition-method type:( --pipeline-model-parallel-size 3",
    "-- --num-layers",
    "--checkpoint-num-layers 0 --checkpoint-activations",
]


@pytest.mark.parametrize("more", HOSTILE)
@pytest.mark.parametrize("target", ["megatron", "torchtitan", "deepspeed", "spec"])
def test_hostile_values_end_in_a_line(more: str, target: str) -> None:
    with suppress(SourceError):
        done = api.convert(Source("train.sh", script(more)), target)
        assert done.ledger


@pytest.mark.parametrize(
    "config",
    [
        {},
        merged(zero_optimization=3),
        merged(zero_optimization={"stage": "three"}),
        merged(gradient_clipping="much"),
        merged(train_micro_batch_size_per_gpu=0),
        merged(fp16={"enabled": True, "initial_scale_power": 100000}),
        merged(bf16=True),
        merged(optimizer=[], scheduler=None),
        merged(train_batch_size="auto", gradient_accumulation_steps="auto"),
    ],
)
def test_hostile_configurations_end_in_a_line(config: dict[str, object]) -> None:
    done = api.convert(Source("train.sh", script("--initial-loss-scale 3", config=config)), "megatron")
    assert done.ledger


def test_a_json_that_is_none_is_refused_at_its_place() -> None:
    text = f"deepspeed --num_gpus 8 pretrain_gpt.py {MODEL} --deepspeed --deepspeed_config ds.json\n"
    with pytest.raises(SourceError) as caught:
        read(text, siblings={"ds.json": '{"train_batch_size": [}'})
    assert caught.value.place is not None
    assert caught.value.place.file == "ds.json"


def test_a_ramp_up_takes_three_integers() -> None:
    model = MODEL.replace("--train-iters 1000", "--train-samples 100000").replace("--lr-warmup-iters 100", "")
    assert "three integers" in said(read(script("--rampup-batch-size 8 8", model=model)), "S228").message
    reading = read(script("--rampup-batch-size 16 16 1000", model=model))
    assert reading.flat["batch.ramp_up"] == [16, 16, 1000]


@pytest.mark.parametrize(("world", "nodes", "gpus"), [(64, 8, 8), (8, 1, 8), (12, 1, 12), (7, 1, 7)])
def test_nodes_follow_a_world_size_given_by_hand(world: int, nodes: int, gpus: int) -> None:
    native = read(script(), world=world).native
    assert native is not None
    assert [native.values.get(address) for address in (WORLD_SIZE, NODES, GPUS_PER_NODE)] == [world, nodes, gpus]


def test_one_of_several_launches_is_read() -> None:
    first, second = (
        f"deepspeed --num_nodes 1 --num_gpus {gpus} pretrain_gpt.py {MODEL} --deepspeed --deepspeed_config ds.json\n"
        for gpus in (4, 8)
    )
    siblings = {"ds.json": json.dumps(CONFIG)}
    assert read(first + second, siblings=siblings, launch=2).flat["parallel.world_size"] == 8
    with pytest.raises(UsageError, match="launch"):
        read(first + second, siblings=siblings, launch=3)


def test_options_reach_the_script() -> None:
    text = script().replace("--num-layers 16", "--num-layers $1")
    source = Source("train.sh", text)
    assert api.read(source, options=ReadOptions(positional=("24",))).flat["model.layers"] == 24
