"""What a side costs: memory against the card, FLOPs, and bytes that its ranks send each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.report.model import Bar, Compute, Memory, Traffic, TransferLine
from translator.report.words import text

if TYPE_CHECKING:
    from translator.communication.links import Network
    from translator.memory.report import MemoryReport, StageLine
    from translator.memory.sizes import Job

_SAME_BYTES = 2**30 // 100


def memory(found: MemoryReport) -> Memory:
    """Memory per stage, neighbours that hold the same together."""
    verdict = "fits" if found.surely else "fits narrowly" if found.fits else "does not fit"
    groups: list[list[StageLine]] = []
    for line in found.stages:
        if groups and _same(groups[-1][0], line):
            groups[-1].append(line)
        else:
            groups.append([line])
    return Memory(
        found.gpu.title,
        found.gpu.memory_bytes,
        verdict,
        [_bar(group) for group in groups],
        [text(words) for words in found.estimate.assumed],
        [text(change.says) for change in found.changes],
    )


def _same(left: StageLine, right: StageLine) -> bool:
    return left.layers == right.layers and abs(left.card - right.card) < _SAME_BYTES


def _bar(group: list[StageLine]) -> Bar:
    from translator.memory.report import KINDS

    first, last = group[0], group[-1]
    label = f"stage {first.stage}" if first is last else f"stages {first.stage}-{last.stage}"
    parts = [(kind.value, first.of_kind(kind)) for kind in KINDS]
    return Bar(label, first.layers, parts, first.allocated[1], first.reserved[1], first.outside)


def compute(found: MemoryReport) -> Compute:
    """FLOPs per token, and the least time of a step at the card's peak."""
    job, flops = found.estimate.job, found.compute
    peak = found.gpu.peak_flops(job.flat.get("precision.compute"), job.flat.get("precision.fp8"))
    ranks = int(job.flat.get("parallel.world_size") or 1)
    tokens = int((job.flat.get("batch.global_batch") or 0) * job.layout.seq_len)
    ideal = tokens * (flops.training + flops.recomputed) / (peak * ranks) if tokens else None
    return Compute(float(flops.training), float(flops.recomputed), tokens, ranks, peak, ideal)


def traffic(job: Job, links: Network) -> Traffic:
    """What a rank sends in a step. Raises SourceError where the framework has no account."""
    import numpy as np

    from translator.communication import communication_of

    lines: list[TransferLine] = []
    for transfer in communication_of(job):
        sent = np.asarray(transfer.sent_bytes, dtype=float)
        stage = int(np.argmax(sent[0]))

        def at(values: object, stage: int = stage, shape: tuple[int, ...] = sent.shape) -> float:
            return float(np.broadcast_to(np.asarray(values, dtype=float), shape)[0, stage])

        lines.append(
            TransferLine(
                text(transfer.name),
                transfer.axis.value,
                transfer.operation.value,
                int(at(transfer.group.ranks)),
                bool(at(transfer.group.crosses)),
                at(transfer.message_bytes),
                at(transfer.calls),
                float(sent[0, stage]),
                at(transfer.seconds(links)),
                transfer.overlapped,
                text(transfer.source),
            )
        )
    title = f"{links.inside.title} on a node, {links.between.title} between nodes"
    return Traffic(title, lines)
