"""The smallest changes that make a configuration fit, each estimated again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from translator.errors import SourceError
from translator.memory.estimate import Estimate, estimate
from translator.memory.sizes import Job, UnknownSizeError, job_of

Flat = dict[str, Any]
_LIMIT = 6


@dataclass(frozen=True, slots=True)
class Change:
    """A change by spec fields; ``cost`` orders changes, from what costs nothing to what slows the run down.

    ``peak_bytes`` is the expected reserved peak of the worst rank after it, outside memory included.
    """

    says: str
    fields: Mapping[str, Any]
    cost: float
    peak_bytes: float


def peak_bytes(found: Estimate) -> float:
    """What the worst rank takes of its card: reserved, and what lies outside the allocator."""
    totals = found.totals
    return float((totals.reserved.expected + totals.outside).max())


def changes(job: Job, capacity_bytes: float) -> list[Change]:
    """Single changes that make the job fit, else pairs of them, cheapest first; at most six."""
    single = list(_tried(job, {}, capacity_bytes))
    fitting = [change for change in single if change.peak_bytes <= capacity_bytes]
    if not fitting:
        helpful = sorted(single, key=lambda change: change.peak_bytes)[:6]
        fitting = [
            Change(f"{first.says}, and {second.says}", second.fields, first.cost + second.cost, second.peak_bytes)
            for first in helpful
            for second in _tried(job, first.fields, capacity_bytes)
            if second.peak_bytes <= capacity_bytes and second.says > first.says
        ]
    return sorted(fitting, key=lambda change: (change.cost, change.peak_bytes))[:_LIMIT]


def _tried(job: Job, before: Mapping[str, Any], capacity_bytes: float) -> Iterator[Change]:
    _ = capacity_bytes
    base = {**job.flat, **before}
    for says, cost, fields in _candidates(base):
        flat = {**base, **fields}
        _relay(flat)
        try:
            found = estimate(job_of(job.framework, job.version, flat, job.values))
        except (UnknownSizeError, SourceError, ZeroDivisionError):
            continue
        yield Change(says, {**before, **fields}, cost, peak_bytes(found))


def _relay(flat: Flat) -> None:
    """Let what depends on the degrees follow: data-parallel ranks, accumulation, the split of layers."""
    world = flat.get("parallel.world_size")
    ranks = 1
    for leaf in ("parallel.tensor", "parallel.context", "parallel.pipeline.degree"):
        ranks *= flat.get(leaf) or 1
    if isinstance(world, int) and world % ranks == 0:
        replicate = flat.get("parallel.data.replicate") or 1
        data = world // ranks
        flat["parallel.data.degree"] = data
        flat["parallel.data.shard"] = max(data // replicate, 1)
        total, micro = flat.get("batch.global_batch"), flat.get("batch.micro_batch") or 1
        if isinstance(total, int):
            flat["batch.accumulation"] = max(total // (micro * data), 1)
    flat["parallel.pipeline.layer_split"] = None


def _candidates(flat: Flat) -> Iterator[tuple[str, float, Flat]]:
    """Changes that the configuration leaves room for: what they say, what they cost, the fields that they set."""
    for candidate in _CANDIDATES:
        yield from candidate(flat)


def _sequence_parallel(flat: Flat) -> Iterator[tuple[str, float, Flat]]:
    if (flat.get("parallel.tensor") or 1) > 1 and flat.get("parallel.sequence_parallel") is False:
        yield "sequence parallelism", 0.0, {"parallel.sequence_parallel": True}


def _sharding(flat: Flat) -> Iterator[tuple[str, float, Flat]]:
    if (flat.get("parallel.data.sharding") or "none") == "none" and (flat.get("parallel.data.degree") or 1) > 1:
        yield "optimizer state sharded over the data-parallel ranks", 0.5, {"parallel.data.sharding": "optimizer"}


def _micro_batch(flat: Flat) -> Iterator[tuple[str, float, Flat]]:
    micro = flat.get("batch.micro_batch") or 1
    if micro > 1 and micro % 2 == 0:
        yield f"micro batch {micro // 2} instead of {micro}", 1.0, {"batch.micro_batch": micro // 2}


def _recompute(flat: Flat) -> Iterator[tuple[str, float, Flat]]:
    mode = flat.get("recompute.mode") or "none"
    if mode != "full":
        full = {"recompute.mode": "full", "recompute.method": "uniform", "recompute.layers": 1}
        yield "full recomputation (a third more compute)", 3.0, full


def _degrees(flat: Flat) -> Iterator[tuple[str, float, Flat]]:
    world = flat.get("parallel.world_size") or 1
    data = flat.get("parallel.data.degree") or 1
    cards = flat.get("launch.gpus_per_node") or 8
    tensor, pipeline = flat.get("parallel.tensor") or 1, flat.get("parallel.pipeline.degree") or 1
    heads, layers = flat.get("model.heads") or 1, flat.get("model.layers") or 1
    if data % 2 or world < 2:
        return
    if tensor * 2 <= cards and heads % (tensor * 2) == 0:
        yield f"tensor degree {tensor * 2}", 2.0, {"parallel.tensor": tensor * 2, "parallel.sequence_parallel": True}
    if layers % (pipeline * 2) == 0:
        schedule = flat.get("parallel.pipeline.schedule") or "1f1b"
        fields = {"parallel.pipeline.degree": pipeline * 2, "parallel.pipeline.schedule": schedule}
        yield f"pipeline degree {pipeline * 2}", 2.5, fields
    context = flat.get("parallel.context") or 1
    if (flat.get("batch.seq_len") or 0) >= 16384 * context:
        yield f"context degree {context * 2}", 2.2, {"parallel.context": context * 2}


def _experts(flat: Flat) -> Iterator[tuple[str, float, Flat]]:
    expert, experts = flat.get("parallel.expert") or 1, flat.get("model.moe.experts") or 0
    ranks = (flat.get("parallel.data.degree") or 1) * (flat.get("parallel.context") or 1)
    ranks *= flat.get("parallel.tensor") or 1
    if experts and experts % (expert * 2) == 0 and ranks % (expert * 2) == 0:
        yield f"expert degree {expert * 2}", 1.5, {"parallel.expert": expert * 2}


def _offload(flat: Flat) -> Iterator[tuple[str, float, Flat]]:
    if not flat.get("optimizer.offload"):
        fields = {"optimizer.offload": True, "optimizer.offload_fraction": 1.0}
        yield "optimizer state in host memory", 4.0, fields


_CANDIDATES: tuple[Callable[[Flat], Iterator[tuple[str, float, Flat]]], ...] = (
    _sequence_parallel,
    _sharding,
    _micro_batch,
    _recompute,
    _degrees,
    _experts,
    _offload,
)
