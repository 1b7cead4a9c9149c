"""What each pipeline rank holds, and how many micro batches are in flight on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from translator.memory.sizes import Array, Job

V_SHAPED = ("zbv_zero_bubble", "dual_pipe_v")


@dataclass(frozen=True, slots=True)
class Stages:
    """Layers per pipeline rank, as arrays of shape (layouts, stages); a rank that a layout lacks is not ``present``.

    ``dense`` and ``moe`` count layers over all chunks of a rank; ``chunk_dense`` and ``chunk_moe`` those of its fullest
    chunk. ``first`` holds the embedding, ``last`` the output layer.
    """

    present: Any
    dense: Array
    moe: Array
    first: Any
    last: Any

    @property
    def layers(self) -> Array:
        """Transformer layers on a rank."""
        return self.dense + self.moe

    @property
    def count(self) -> int:
        """The largest number of stages."""
        return int(self.dense.shape[1])


def stages_of(job: Job) -> Stages:
    """The stages of a job: by its stated split, else evenly, the first stages holding what is left over."""
    degrees = np.atleast_1d(np.asarray(job.layout.pipeline)).reshape(-1, 1)
    chunks = np.broadcast_to(np.atleast_1d(np.asarray(job.layout.chunks)).reshape(-1, 1), degrees.shape)
    kinds: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    width = int(degrees.max())
    dense, moe = np.zeros((len(degrees), width)), np.zeros((len(degrees), width))
    for row, key in enumerate(zip(degrees[:, 0].tolist(), chunks[:, 0].tolist(), strict=True)):
        if key not in kinds:
            kinds[key] = _layers_by_rank(job, *key)
        dense[row, : key[0]], moe[row, : key[0]] = kinds[key]
    index = np.arange(width)
    # The last stage of a V is on the first rank.
    turned = (chunks == 2) & (degrees > 1) & (job.layout.schedule in V_SHAPED)
    last = np.where(turned, index == 0, index == degrees - 1)
    return Stages(index < degrees, dense, moe, (index == 0) & (degrees > 0), last)


def _layers_by_rank(job: Job, degree: int, chunks: int) -> tuple[list[int], list[int]]:
    """Dense and MoE layers of each rank."""
    total = degree * chunks
    split = job.layout.split
    if split is None or len(split) != total or sum(split) != job.model.layers:
        share, rest = divmod(job.model.layers, total)
        split = tuple(share + (stage < rest) for stage in range(total))
    dense, moe = [0] * degree, [0] * degree
    first = 0
    for stage, count in enumerate(split):
        for layer in range(first, first + count):
            (dense if layer in job.model.dense else moe)[_rank(job.layout.schedule, stage, degree)] += 1
        first += count
    return dense, moe


def _rank(schedule: str | None, stage: int, degree: int) -> int:
    """The rank of a stage: in a loop, or in a V (two chunks, the second in reverse).

    Source: ``torch/distributed/pipelining/schedules.py`` (torch 2.13), ``get_schedule_class`` and V schedules.
    """
    if schedule in V_SHAPED and stage >= degree:
        return 2 * degree - 1 - stage
    return stage % degree
