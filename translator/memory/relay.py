"""A layout after one of its degrees changed: what follows from the degrees follows again."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

Flat = dict[str, Any]

_MODEL_RANKS = ("parallel.tensor", "parallel.context", "parallel.pipeline.degree")
_OF_RANKS = frozenset({*_MODEL_RANKS, "parallel.world_size", "parallel.data.replicate"})
_OF_BATCH = frozenset({"batch.micro_batch", "batch.global_batch"})
_OF_SPLIT = frozenset({"parallel.pipeline.degree", "parallel.pipeline.stages_per_rank", "model.layers"})


def relay(flat: Flat, changed: Collection[str]) -> None:
    """Let what depends on the ``changed`` leaves follow them, unless it is among them itself.

    Data-parallel ranks are those that are left of the world, accumulation keeps the global batch, and a stated split of
    the layers no longer holds under another number of stages. Fields that are not known stay as they are.
    """
    ranks = _OF_RANKS.intersection(changed)
    if ranks:
        _ranks(flat, frozenset(changed))
    if ranks or _OF_BATCH.intersection(changed):
        _accumulation(flat, frozenset(changed))
    if _OF_SPLIT.intersection(changed):
        _set(flat, changed, "parallel.pipeline.layer_split", None)
    if "parallel.tensor" in changed and flat["parallel.tensor"] == 1:
        _set(flat, changed, "parallel.sequence_parallel", False)
    if "parallel.pipeline.degree" in changed and flat["parallel.pipeline.degree"] == 1:
        _set(flat, changed, "parallel.pipeline.stages_per_rank", 1)


def model_ranks(flat: Flat) -> int:
    """Ranks that hold one copy of the model: tensor, context and pipeline ones."""
    product = 1
    for leaf in _MODEL_RANKS:
        product *= flat.get(leaf) or 1
    return product


def _ranks(flat: Flat, changed: frozenset[str]) -> None:
    world, ranks = flat.get("parallel.world_size"), model_ranks(flat)
    if not isinstance(world, int) or world % ranks:
        return
    data = world // ranks
    _set(flat, changed, "parallel.data.degree", data)
    replicate = flat.get("parallel.data.replicate") or 1
    if data % replicate:
        replicate = 1
        _set(flat, changed, "parallel.data.replicate", 1)
    if flat.get("parallel.data.shard") is not None:
        _set(flat, changed, "parallel.data.shard", data // replicate)


def _accumulation(flat: Flat, changed: frozenset[str]) -> None:
    total, data, micro = flat.get("batch.global_batch"), flat.get("parallel.data.degree"), flat.get("batch.micro_batch")
    if isinstance(total, int) and data and micro:
        _set(flat, changed, "batch.accumulation", max(total // (micro * data), 1))


def _set(flat: Flat, changed: Collection[str], leaf: str, value: Any) -> None:
    if leaf not in changed:
        flat[leaf] = value
