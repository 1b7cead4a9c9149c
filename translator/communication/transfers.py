"""Transfers: what travels in one optimizer step, and how long it takes on named links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from translator.communication.collectives import Operation, ring_steps, sent_share
from translator.communication.links import Network
from translator.communication.placement import Axis, Group
from translator.errors import UsageError

RING, TREE, FASTEST = "ring", "tree", "fastest"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One kind of communication of a step.

    ``message_bytes`` are the bytes of one call, as `Operation` counts them, and ``calls`` how often a rank of each
    pipeline stage takes part in a step: numbers, or arrays of shape (layouts, stages). ``overlapped`` says that it is
    meant to run beside computation, as configured; ``source`` is the upstream line with its version.
    """

    name: str
    axis: Axis
    operation: Operation
    message_bytes: Any
    calls: Any
    group: Group
    overlapped: bool
    source: str

    @property
    def sent_bytes(self) -> Any:
        """Bytes that a rank of each stage sends in a step, shape (layouts, stages)."""
        sent = np.asarray(self.message_bytes) * self.calls * sent_share(self.operation, self.group.ranks)
        return np.atleast_2d(np.asarray(sent, dtype=float))

    @property
    def crossing_bytes(self) -> Any:
        """Bytes of ``sent_bytes`` that leave the node, averaged over the ranks of a node, shape (layouts, stages).

        Of a ring that spans nodes one rank per node sends to the next node, and one gets from the node before.
        """
        ranks, inside = np.asarray(self.group.ranks, dtype=float), np.asarray(self.group.inside, dtype=float)
        if self.operation is Operation.ALL_TO_ALL:
            share = np.where(ranks > 1, (ranks - inside) / np.maximum(ranks - 1, 1), 0.0)
        else:
            share = np.where(self.group.crosses, 1 / inside, 0.0)
        return self.sent_bytes * share

    def seconds(self, network: Network, algorithm: str = RING) -> Any:
        """Seconds of all calls of a step one after another, shape (layouts, stages): latency plus bytes by bandwidth.

        ``algorithm`` is ``ring``, ``tree`` (all-reduces alone; others stay rings) or ``fastest``. A ring over nodes
        enters and leaves a node by as many adapters as the group has ranks there. Nothing else is taken to use the
        links, and they to give what their makers state: a lower bound. Raises UsageError for another algorithm.
        """
        if algorithm not in (RING, TREE, FASTEST):
            raise UsageError(f"no algorithm {algorithm!r}", fix=f"known: {RING}, {TREE}, {FASTEST}")
        one = self._ring(network)
        if algorithm != RING and self.operation is Operation.ALL_REDUCE:
            tree = self._tree(network)
            one = tree if algorithm == TREE else np.minimum(one, tree)
        busy = np.where(np.asarray(self.group.ranks) > 1, one, 0.0)
        return np.atleast_2d(np.asarray(busy * self.calls, dtype=float))

    def _ring(self, network: Network) -> Any:
        near, far = ring_steps(self.operation, self.group.ranks, self.group.nodes)
        latency = near * network.inside.ring_latency_seconds + far * network.between.ring_latency_seconds
        message = np.asarray(self.message_bytes, dtype=float)
        if self.operation is Operation.ALL_TO_ALL:
            return latency + message * self._slowest_path(network)
        return latency + message * sent_share(self.operation, self.group.ranks) / self._bandwidth(network)

    def _tree(self, network: Network) -> Any:
        """NCCL's double tree: up and down, each half of the message both ways (``src/graph/tuning.cc``)."""
        inside, nodes = np.asarray(self.group.inside, dtype=float), self.group.nodes
        near = network.inside.tree_latency_seconds
        far = network.between.tree_latency_seconds
        latency = 2 * ((inside - 1) * near + np.log2(np.maximum(nodes, 1)) * far)
        return latency + 2 * np.asarray(self.message_bytes, dtype=float) / self._bandwidth(network)

    def _bandwidth(self, network: Network) -> Any:
        """Bytes/s of a rank in a ring: of NVLink, or of the adapters of the group's ranks on a node."""
        near = network.inside.bandwidth_bytes_per_second
        far = network.between.bandwidth_bytes_per_second
        adapters = 1 if self.operation is Operation.SEND else np.asarray(self.group.inside, dtype=float)
        return np.where(self.group.crosses, np.minimum(near, far * adapters), near)

    def _slowest_path(self, network: Network) -> Any:
        """Seconds per byte of an all-to-all: peers on the node and beyond it are served at once."""
        ranks, inside = np.asarray(self.group.ranks, dtype=float), np.asarray(self.group.inside, dtype=float)
        near = (inside - 1) / ranks / network.inside.bandwidth_bytes_per_second
        far = (ranks - inside) / ranks / network.between.bandwidth_bytes_per_second
        return np.maximum(near, far)


def by_axis(transfers: list[Transfer]) -> dict[Axis, Any]:
    """Bytes that a rank sends in a step, by axis: arrays of shape (layouts, stages)."""
    found: dict[Axis, Any] = {}
    for transfer in transfers:
        found[transfer.axis] = found.get(transfer.axis, 0.0) + transfer.sent_bytes
    return found
