"""Communication of one optimizer step: bytes, number of collectives, the links they cross, and the time on those.

The account is each framework's own (the module that its `translator.knowledge.Knowledge` names as ``communication``),
since the same layout moves different bytes under each. Everything is vectorised over layouts as memory is: numbers, or
arrays of shape (layouts, stages).

Use::

    job, assumed = job_of_reading(reading)            # a configuration; SourceError when a size is missing
    for transfer in communication_of(job):
        transfer.axis, transfer.operation             # Axis.TENSOR, Operation.ALL_GATHER
        transfer.message_bytes, transfer.calls        # of one call; calls per step and stage
        transfer.group.ranks, transfer.group.crosses  # how many ranks; whether they stand on several nodes
        transfer.sent_bytes                           # bytes that a rank of each stage sends in a step
        transfer.seconds(network("dgx-h100"))         # one after another, on named links
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from translator.communication.collectives import Operation as Operation
from translator.communication.collectives import sent_share as sent_share
from translator.communication.links import network as network
from translator.communication.links import networks as networks
from translator.communication.placement import Axis as Axis
from translator.communication.placement import Grid as Grid
from translator.communication.placement import Group as Group
from translator.communication.transfers import Transfer as Transfer
from translator.communication.transfers import by_axis as by_axis
from translator.errors import SourceError
from translator.knowledge import knowledge_of
from translator.memory.estimate import job_of_reading as job_of_reading
from translator.memory.stages import stages_of

if TYPE_CHECKING:
    from translator.memory.sizes import Job


def communication_of(job: Job, *, gpus_per_node: int | None = None) -> list[Transfer]:
    """Everything that the ranks of a job send each other in one optimizer step, under the job's framework.

    ``gpus_per_node`` defaults to what the configuration says, else 8. Transfers within groups of one rank are left
    out. Raises SourceError where the framework has no account.
    """
    import numpy as np

    name = knowledge_of(job.framework).communication
    if not name:
        raise SourceError(f"no account of communication under {job.framework}")
    stages, grid = stages_of(job), Grid(job, gpus_per_node)
    found: list[Transfer] = []
    for part in import_module(name).PARTS:
        found += (transfer for transfer in part(job, stages, grid) if np.any(transfer.sent_bytes > 0))
    return found
