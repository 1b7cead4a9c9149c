"""Terms of an estimate, and their sum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from translator.memory.sizes import Array


class Kind(StrEnum):
    """What a term is."""

    PARAMETERS = "parameters"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    ACTIVATIONS = "activations"
    TRANSIENT = "transient"
    WORKSPACE = "workspace"
    OUTSIDE = "outside the allocator"
    HOST = "host memory"


@dataclass(frozen=True, slots=True)
class Term:
    """Bytes of one thing per (layout, stage).

    ``doubt`` is the share of them that may be absent (below) or come twice (above): what an implementation decides that
    the configuration does not tell.
    """

    name: str
    kind: Kind
    amount: Any
    doubt: float = 0.0


@dataclass(frozen=True, slots=True)
class Account:
    """A framework's account of a job.

    ``state`` is there all the time; of ``phases``, by name, only one is there at a time; ``outside`` is beside the
    allocator (context, communication buffers); ``host`` in the machine's memory. ``growth`` is the share by which the
    allocator reserves more than is allocated at the peak: low, expected, high.
    """

    state: list[Term]
    phases: Mapping[str, list[Term]]
    outside: list[Term] = field(default_factory=list)
    host: list[Term] = field(default_factory=list)
    growth: tuple[float, float, float] = (0.0, 0.04, 0.12)


@dataclass(frozen=True, slots=True)
class Range:
    """Low, expected and high bytes, arrays of shape (layouts, stages)."""

    low: Array
    expected: Array
    high: Array


@dataclass(frozen=True, slots=True)
class Totals:
    """The sum of an account: the phase with the peak per (layout, stage), allocated and reserved bytes.

    ``names`` are the phases; ``phase`` holds indices into them.
    """

    names: tuple[str, ...]
    phase: Any
    allocated: Range
    reserved: Range
    outside: Array


def add_up(account: Account, shape: tuple[int, int]) -> Totals:
    """The peak over the phases of a step: state plus the largest phase, not the sum of maxima."""
    names = tuple(account.phases)
    by_phase = [_sums(account.phases[name], shape) for name in names]
    expected = np.stack([sums[1] for sums in by_phase])
    phase = expected.argmax(axis=0)
    state = _sums(account.state, shape)
    low, peak, high = (
        state[at] + np.take_along_axis(np.stack([sums[at] for sums in by_phase]), phase[None], axis=0)[0]
        for at in range(3)
    )
    high = np.maximum(high, state[1] + np.stack([sums[2] for sums in by_phase]).max(axis=0))
    grown = [1 + share for share in account.growth]
    return Totals(
        names,
        phase,
        Range(low, peak, high),
        Range(low * grown[0], peak * grown[1], high * grown[2]),
        _sums(account.outside, shape)[1],
    )


def _sums(terms: Iterable[Term], shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    low, expected, high = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for term in terms:
        low = low + term.amount * (1 - term.doubt)
        expected = expected + term.amount
        high = high + term.amount * (1 + term.doubt)
    return low, expected, high
