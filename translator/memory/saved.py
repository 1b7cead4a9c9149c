"""What a layer's forward pass keeps for its backward pass, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Saved:
    """One tensor that a layer keeps, in bytes per micro batch on one rank.

    ``module`` is the part of the layer that keeps it, for recomputation by parts. ``doubt`` as in `Term`.
    """

    name: str
    module: str
    amount: Any
    doubt: float = 0.0


def total(saved: Iterable[Saved]) -> Any:
    """Bytes of all tensors."""
    amount: Any = 0.0
    for tensor in saved:
        amount = amount + tensor.amount
    return amount


def without(saved: Iterable[Saved], modules: Iterable[str]) -> Iterator[Saved]:
    """What is left where some modules are computed again in the backward pass."""
    dropped = frozenset(modules)
    return (tensor for tensor in saved if tensor.module not in dropped)
