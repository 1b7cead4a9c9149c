"""Which ranks of a group stand on one node: from degrees, rank order and GPUs per node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from translator.memory.sizes import Job

GPUS_PER_NODE = 8
_ORDER = "tp-cp-ep-dp-pp"


class Axis(StrEnum):
    """An axis of parallelism; ``SHARD`` and ``REPLICAS`` are the two parts of data parallelism."""

    TENSOR = "tensor"
    CONTEXT = "context"
    SHARD = "data"
    REPLICAS = "replicas"
    PIPELINE = "pipeline"
    EXPERT = "expert"
    EXPERT_TENSOR = "expert tensor"
    EXPERT_DATA = "expert data"


_DENSE = {"tp": (Axis.TENSOR,), "cp": (Axis.CONTEXT,), "dp": (Axis.SHARD, Axis.REPLICAS), "pp": (Axis.PIPELINE,)}
_EXPERT = {"tp": (Axis.EXPERT_TENSOR,), "ep": (Axis.EXPERT,), "dp": (Axis.EXPERT_DATA,), "pp": (Axis.PIPELINE,)}


@dataclass(frozen=True, slots=True)
class Group:
    """A group of ranks: how many, and how many of them share a node; numbers, or arrays of shape (layouts, 1)."""

    ranks: Any
    inside: Any

    @property
    def nodes(self) -> Any:
        """Nodes that the group is spread over."""
        return np.asarray(self.ranks) / np.asarray(self.inside)

    @property
    def crosses(self) -> Any:
        """Whether it has ranks on several nodes."""
        return np.asarray(self.inside) < np.asarray(self.ranks)


class Grid:
    """The ranks of a job, with neighbours on one node.

    ``gpus_per_node`` defaults to what the configuration says, else 8. Experts have a grid of their own over the same
    ranks: expert-tensor ranks innermost, then expert ranks, then what is left over.
    """

    def __init__(self, job: Job, gpus_per_node: int | None = None) -> None:
        stated = job.flat.get("launch.gpus_per_node")
        self.gpus_per_node: int = gpus_per_node or (stated if isinstance(stated, int) and stated > 0 else GPUS_PER_NODE)
        layout = job.layout
        self._degrees: dict[Axis, Any] = {
            Axis.TENSOR: np.asarray(layout.tensor),
            Axis.CONTEXT: np.asarray(layout.context),
            Axis.SHARD: np.asarray(layout.shard),
            Axis.REPLICAS: np.asarray(layout.replicate),
            Axis.PIPELINE: np.asarray(layout.pipeline),
            Axis.EXPERT: np.asarray(layout.expert),
            Axis.EXPERT_TENSOR: np.asarray(layout.expert_tensor),
            Axis.EXPERT_DATA: np.asarray(layout.expert_data),
        }
        stated_order = job.flat.get("parallel.rank_order")
        order = (stated_order if isinstance(stated_order, str) else _ORDER).split("-")
        self._inside = {**self._placed(order, _EXPERT), **self._placed(order, _DENSE)}

    def _placed(self, order: Iterable[str], axes: Mapping[str, tuple[Axis, ...]]) -> dict[Axis, Any]:
        """Ranks of each axis on one node."""
        stride: Any = np.asarray(1)
        found: dict[Axis, Any] = {}
        for word in order:
            for axis in axes.get(word, ()):
                degree = self._degrees[axis]
                found[axis] = np.clip(self.gpus_per_node // stride, 1, degree)
                stride = stride * degree
        return found

    def degree(self, axis: Axis) -> Any:
        """Ranks along an axis."""
        return self._degrees[axis]

    def group(self, *axes: Axis) -> Group:
        """The group that spans axes of one grid."""
        ranks: Any = np.asarray(1)
        inside: Any = np.asarray(1)
        for axis in axes:
            ranks = ranks * self._degrees[axis]
            inside = inside * self._inside[axis]
        return Group(ranks, inside)
