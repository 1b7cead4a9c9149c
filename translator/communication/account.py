"""The account of a configuration: its transfers with the time that they take on a network, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from translator.communication import communication_of
from translator.communication.placement import GPUS_PER_NODE
from translator.communication.transfers import FASTEST
from translator.memory.estimate import job_of_reading
from translator.memory.stages import stages_of

if TYPE_CHECKING:
    from translator.communication.links import Network
    from translator.communication.transfers import Transfer
    from translator.memory.sizes import Job
    from translator.reading import Reading


@dataclass(frozen=True, slots=True)
class Line:
    """A transfer of a step, by pipeline stage: calls, bytes that a rank sends, those that leave its node, seconds."""

    transfer: Transfer
    calls: tuple[float, ...]
    sent_bytes: tuple[float, ...]
    crossing_bytes: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def ranks(self) -> int:
        """Ranks of the group."""
        return int(np.max(self.transfer.group.ranks))

    @property
    def nodes(self) -> int:
        """Nodes that the group is spread over."""
        return max(int(np.ceil(np.max(self.transfer.group.nodes))), 1)

    @property
    def message_bytes(self) -> float:
        """The largest message of one call over the stages."""
        return float(np.max(self.transfer.message_bytes))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: lists have one entry for each pipeline stage."""
        return {
            "name": self.transfer.name,
            "axis": self.transfer.axis.value,
            "operation": self.transfer.operation.value,
            "ranks": self.ranks,
            "nodes": self.nodes,
            "overlapped": self.transfer.overlapped,
            "message_bytes": self.message_bytes,
            "calls": list(self.calls),
            "sent_bytes": list(self.sent_bytes),
            "crossing_bytes": list(self.crossing_bytes),
            "seconds": list(self.seconds),
            "source": self.transfer.source,
        }


@dataclass(frozen=True, slots=True)
class Communication:
    """What one configuration sends in a step; ``assumed`` says what was not known, in words."""

    job: Job
    network: Network
    lines: tuple[Line, ...]
    assumed: tuple[str, ...]

    @property
    def stages(self) -> int:
        """Pipeline stages."""
        return len(self.lines[0].seconds) if self.lines else 1

    def seconds(self, *, overlapped: bool | None = None) -> float:
        """Seconds of the stage that communicates longest: of all transfers, or of those that overlap or do not."""
        chosen = [line for line in self.lines if overlapped in (None, line.transfer.overlapped)]
        return max((sum(line.seconds[stage] for line in chosen) for stage in range(self.stages)), default=0.0)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "schema_version": 1,
            "framework": self.job.framework,
            "version": self.job.version,
            "network": {"inside": self.network.inside.name, "between": self.network.between.name},
            "assumed": list(self.assumed),
            "transfers": [line.as_dict() for line in self.lines],
            "seconds": self.seconds(),
            "seconds_not_overlapped": self.seconds(overlapped=False),
        }


def communication_of_reading(
    reading: Reading, network: Network, *, gpus_per_node: int | None = None, algorithm: str = FASTEST
) -> Communication:
    """The account of a configuration on a network.

    Raises SourceError where a size is missing or the framework has no account, UsageError for an unknown algorithm.
    """
    job, assumed = job_of_reading(reading, "communication")
    if gpus_per_node is None and not job.flat.get("launch.gpus_per_node"):
        assumed = (*assumed, f"{GPUS_PER_NODE} GPUs on each node")
    shape = stages_of(job).dense.shape
    lines = tuple(
        Line(
            transfer,
            _by_stage(transfer.calls, shape),
            _by_stage(transfer.sent_bytes, shape),
            _by_stage(transfer.crossing_bytes, shape),
            _by_stage(transfer.seconds(network, algorithm), shape),
        )
        for transfer in communication_of(job, gpus_per_node=gpus_per_node)
    )
    return Communication(job, network, lines, assumed)


def _by_stage(value: Any, shape: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(np.broadcast_to(np.asarray(value, dtype=float), shape)[0].tolist())
