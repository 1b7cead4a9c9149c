"""Layouts that no run can have, said before anything is estimated of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from translator.errors import SourceError
from translator.memory.relay import Flat, model_ranks

# A pipeline may hold the embedding, the output layer and prediction depths in stages of their own.
_ENDS = 4


def see_possible(flat: Flat, changed: Collection[str]) -> None:
    """Raise SourceError for a layout that cannot be: more parts than there is to share.

    ``changed`` are the leaves that were not in the source; where there are none, expert ranks are the framework's to
    judge.
    """
    for wrong, message, fix in _faults(flat, changed):
        if wrong:
            raise SourceError(message, fix=fix)


def _faults(flat: Flat, changed: Collection[str]) -> list[tuple[Any, str, str]]:
    def count(leaf: str) -> int:
        value = flat.get(leaf)
        return value if isinstance(value, int) and value > 0 else 1

    layers, heads, experts = (count(f"model.{name}") for name in ("layers", "heads", "moe.experts"))
    tensor, expert = count("parallel.tensor"), count("parallel.expert")
    degree, chunks = count("parallel.pipeline.degree"), count("parallel.pipeline.stages_per_rank")
    world, ranks = flat.get("parallel.world_size"), model_ranks(flat)
    expert_ranks = expert * count("parallel.expert_tensor") * degree
    split = flat.get("parallel.pipeline.layer_split")
    context, seq_len = count("parallel.context"), flat.get("batch.seq_len")
    return [
        (
            degree * chunks > layers + (flat.get("model.mtp.layers") or 0) + _ENDS,
            f"a pipeline of {degree:,} ranks with {chunks:,} stages each is longer than the model's {layers:,} layers",
            "lower parallel.pipeline.degree or parallel.pipeline.stages_per_rank",
        ),
        (
            split and degree > 1 and (len(split) != degree * chunks or sum(split) != layers),
            f"parallel.pipeline.layer_split shares {sum(split or ())} layers over {len(split or ())} stages, not "
            f"{layers} over {degree * chunks}",
            "give one number of layers for each stage",
        ),
        (
            tensor > heads,
            f"{heads:,} attention heads cannot be split over {tensor:,} tensor ranks",
            f"a parallel.tensor that divides {heads:,}",
        ),
        (
            flat.get("model.moe.experts") and expert > experts,
            f"{experts:,} experts cannot be split over {expert:,} expert ranks",
            f"a parallel.expert that divides {experts:,}",
        ),
        (
            isinstance(world, int) and world % ranks,
            f"{world} ranks cannot be shared out in groups of {ranks:,} (tensor x pipeline x context)",
            f"a world size that {ranks:,} divides: --world-size {ranks}" if ranks < 2**31 else "lower degrees",
        ),
        (
            changed and isinstance(world, int) and flat.get("model.moe.experts") and world % expert_ranks,
            f"{world} ranks cannot be shared out in groups of {expert_ranks:,} (expert x expert tensor x pipeline)",
            f"a world size that {expert_ranks:,} divides, or a lower parallel.expert",
        ),
        (
            isinstance(seq_len, int) and context > seq_len,
            f"a sequence of {seq_len} tokens cannot be split over {context:,} context ranks",
            "lower parallel.context",
        ),
    ]
