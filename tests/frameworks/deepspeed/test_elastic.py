"""The batch of elastic training; the sizes are what DeepSpeed 0.19.2 answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from translator.findings import Level
from translator.frameworks.deepspeed.settle import settle
from translator.frameworks.deepspeed.syntax import read_source
from translator.native import Native

SECTION: dict[str, Any] = {
    "enabled": True,
    "max_train_batch_size": 2000,
    "micro_batch_sizes": [2, 4, 6],
    "min_gpus": 1,
    "max_gpus": 10000,
    "version": 0.1,
}


def settled(section: dict[str, Any], world: int | None, **more: Any) -> Native:
    native = read_source("ds.json", json.dumps({"elasticity": section, **more}), world_size=world)
    settle(native)
    return native


def sizes(native: Native) -> list[object]:
    keys = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    return [native.values.get(key) for key in keys]


def errors(native: Native) -> list[tuple[str, str | None]]:
    return [(f.code, f.option) for f in native.findings if f.level is Level.ERROR]


@pytest.mark.parametrize(
    ("change", "world", "expected"),
    [
        ({}, 8, [1680, 6, 35]),
        ({}, 12, [1680, 4, 35]),
        ({"version": 0.2, "num_gpus_per_node": 8}, 16, [1920, 6, 20]),
        ({"version": 0.2, "num_gpus_per_node": 4}, 24, [1920, 4, 20]),
        ({"version": 0.2, "num_gpus_per_node": 8, "model_parallel_size": 2}, 8, [1920, 6, 40]),
    ],
)
def test_the_batch_of_a_number_of_ranks(change: dict[str, Any], world: int, expected: list[int]) -> None:
    native = settled({**SECTION, **change}, world)
    assert errors(native) == []
    assert sizes(native) == expected


@pytest.mark.parametrize("world", [None, 64])
def test_an_unknown_or_impossible_world_leaves_the_sizes_open(world: int | None) -> None:
    native = settled({**SECTION, "max_gpus": 16}, world)
    assert sizes(native) == [None, None, None]
    assert native.given["train_batch_size"].missing is not None
    assert errors(native) == ([] if world is None else [("S212", "elasticity.enabled")])


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"micro_batch_sizes": [2, 0]}, "micro_batch_sizes"),
        ({"micro_batch_sizes": 4}, "micro_batch_sizes"),
        ({"micro_batch_sizes": [4000]}, "micro_batch_sizes"),
        ({"max_train_batch_size": "many"}, "max_train_batch_size"),
        ({"min_gpus": 0}, "min_gpus"),
        ({"min_gpus": 9, "max_gpus": 8}, "min_gpus"),
        ({"version": 0.3}, "version"),
        ({"model_parallel_size": 2}, "model_parallel_size"),
    ],
)
def test_what_elasticity_refuses(change: dict[str, Any], key: str) -> None:
    assert ("S212", f"elasticity.{key}") in errors(settled({**SECTION, **change}, 8))


def test_stated_sizes_are_refused_or_overruled() -> None:
    assert ("S212", "train_batch_size") in errors(settled(SECTION, 8, train_batch_size=64))
    quiet = settled({**SECTION, "ignore_non_elastic_batch_info": True}, 8, train_batch_size=64)
    assert errors(quiet) == []
    assert quiet.values["train_batch_size"] != 64
