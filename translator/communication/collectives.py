"""Collectives: what a rank sends, as a share of the message.

The shares are those of bandwidth-optimal algorithms (Thakur, Rabenseifner and Gropp, "Optimization of collective
communication operations in MPICH", 2005), which are those of NCCL's rings (``src/graph/tuning.cc``: bus bandwidth).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np


class Operation(StrEnum):
    """A kind of communication.

    The message is: what is summed (all-reduce), the whole that every rank has afterwards (all-gather), the whole that
    every rank has before (reduce-scatter, all-to-all), or what one rank sends to another (send).
    """

    ALL_REDUCE = "all-reduce"
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_TO_ALL = "all-to-all"
    SEND = "send"


def sent_share(operation: Operation, ranks: Any) -> Any:
    """What each rank sends, as a share of the message; 0 within a group of one.

    All-reduce ``2 (n - 1) / n``; all-gather, reduce-scatter and all-to-all ``(n - 1) / n``; a send all of it.
    """
    count = np.asarray(ranks, dtype=float)
    if operation is Operation.SEND:
        return np.where(count > 1, 1.0, 0.0)
    return (count - 1) / count * (2 if operation is Operation.ALL_REDUCE else 1)


def ring_steps(operation: Operation, ranks: Any, nodes: Any) -> tuple[Any, Any]:
    """Steps of a ring inside nodes and between nodes, each of which waits for the one before.

    ``2 (n - 1)`` for an all-reduce and ``n - 1`` for an all-gather or reduce-scatter, of which as many as there are
    nodes less one (twice for an all-reduce) go between nodes: ``nInterSteps`` in NCCL's ``src/graph/tuning.cc`` (commit
    01afd20). An all-to-all and a send are one step, since nothing waits.
    """
    count, across = np.asarray(ranks, dtype=float), np.asarray(nodes, dtype=float)
    if operation in (Operation.SEND, Operation.ALL_TO_ALL):
        far = np.where(across > 1, 1.0, 0.0)
        return np.where(count > 1, 1.0, 0.0) - far, far
    times = 2 if operation is Operation.ALL_REDUCE else 1
    return times * (count - across), times * (across - 1)
