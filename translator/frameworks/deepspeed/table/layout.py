"""What a layout of the spec becomes here: degrees, ZeRO stage, and the batch triangle.

JSON has a place for AutoTP (`tensor_parallel.autotp_size`) and for the sequence degree of Ulysses
(`sequence_parallel_size`), none for pipelines. A *nearest* layout is one that DeepSpeed can run on the same ranks; it
is written when the person asks for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from translator.mapping.views import SpecView

STAGES = {"none": 0, "optimizer": 1, "optimizer_gradients": 2, "full": 3}
NO_SEQUENCE = "0.16.9"  # its batch triangle knows no sequence-parallel degree (runtime/config.py)
SHARDS_BF16 = "0.16.9"  # bf16 without ZeRO runs BF16_Optimizer there, with fp32 gradients (runtime/engine.py:1370)
AUTOTP_LIMIT = 2  # runtime/engine.py:574 (0.19.2)


@dataclass(slots=True)
class Layout:
    """Degrees in force; ``ranks`` see samples of their own. ``why`` says per leaf what was changed and what follows."""

    tensor: int
    sequence: int
    stage: int
    world: int | None
    ranks: int | None
    micro: int | None
    accumulation: int | None
    divides: bool = True
    why: dict[str, str] = field(default_factory=dict)


def plan(spec: SpecView, version: str) -> Layout:
    """The layout to write for a spec in a version."""
    tensor, sequence = spec("parallel.tensor", 1), spec("parallel.context", 1)
    pipeline, degree = spec("parallel.pipeline.degree", 1), spec("parallel.data.degree")
    world = spec("parallel.world_size") or (degree * tensor * sequence * pipeline if degree else None)
    if version == NO_SEQUENCE:
        sequence = 1
    stage = STAGES[spec("parallel.data.sharding", "none")]
    found = Layout(tensor, sequence, stage, world, None, spec("batch.micro_batch"), spec("batch.accumulation"))
    if spec.nearest:
        _nearest(spec, found, pipeline, version)
    elif stage > AUTOTP_LIMIT and tensor > 1:
        found.stage = AUTOTP_LIMIT
        why = "AutoTP goes with ZeRO up to stage 2 (engine.py:574): parameters are split over tensor ranks only"
        found.why["parallel.data.sharding"] = found.why["parallel.data.reshard_after_forward"] = why
    if world is None:
        return found
    found.ranks = world // (found.tensor * found.sequence) or 1
    _batch(spec, found)
    # Degrees that do not divide the ranks leave no whole number of groups to share a batch.
    found.divides = found.divides and world % (found.tensor * found.sequence) == 0
    return found


def _nearest(spec: SpecView, found: Layout, pipeline: int, version: str) -> None:
    """Ranks of a pipeline become data-parallel ones, whose state ZeRO-3 shards; so do tensor ranks beside stage 3."""
    before = STAGES[spec("parallel.data.sharding", "none")]
    if pipeline > 1 or (before > AUTOTP_LIMIT and found.tensor > 1):
        why = f"ZeRO-3 shards all state over the ranks, in place of {pipeline} pipeline stages"
        why += f" and {found.tensor} tensor ranks" if found.tensor > 1 else ""
        why += ": parameters are gathered layer by layer, which costs communication; each rank computes every layer"
        for leaf in ("tensor", "data.sharding", "pipeline.degree", "data.reshard_after_forward", "data.degree"):
            found.why[f"parallel.{leaf}"] = why
        found.stage, found.tensor = 3, 1
    heads = spec("model.heads")
    if found.sequence > 1 and heads and heads % found.sequence:
        found.sequence = math.gcd(heads, found.sequence)
        found.why["parallel.context"] = f"Ulysses splits heads: {found.sequence} divides {heads} of them"
    world, total = found.world, spec("batch.global_batch")
    while version != NO_SEQUENCE and world and total and total % (world // (found.tensor * found.sequence) or 1):
        # More ranks than sequences: longer groups of Ulysses share one sequence.
        wider = found.sequence * 2
        if world % (found.tensor * wider) or (heads and heads % wider) or wider > world:
            return
        found.sequence = wider
        found.why["parallel.context"] = f"{world} ranks are more than {total} sequences: {wider} of them share each"


def _batch(spec: SpecView, found: Layout) -> None:
    """Micro batch and accumulation that give the global batch; `divides` tells whether some do."""
    total, micro, ranks = spec("batch.global_batch"), found.micro, found.ranks
    if not total or not micro or not ranks:
        return
    if total % (micro * ranks) and spec.nearest and total % ranks == 0:
        share = total // ranks
        found.micro = max(size for size in range(1, min(micro, share) + 1) if share % size == 0)
        found.why["batch.micro_batch"] = (
            f"{share} sequences per rank and step are a multiple of {found.micro}, not {micro}"
        )
    steps, rest = divmod(total, found.micro * ranks)  # type: ignore[operator]
    found.divides = bool(steps) and not rest
    found.accumulation = steps or 1
