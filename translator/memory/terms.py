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
    """The peak over the phases of a step: state plus the largest phase, not the sum of maxima.

    The high estimate is that of the phase whose high estimate is largest.
    """
    names = tuple(account.phases)
    base = _sum(account.state, shape)
    peak, slack = np.full(shape, -np.inf), np.zeros(shape)
    high = np.zeros(shape)
    phase = np.zeros(shape, dtype=np.int8)
    for index, name in enumerate(names):
        found = _sum(account.phases[name], shape)
        larger = found.expected > peak
        phase[larger] = index
        np.copyto(slack, found.slack, where=larger)
        np.maximum(peak, found.expected, out=peak)
        np.maximum(high, found.expected + found.slack, out=high)
    expected = base.expected + peak
    grown = [1 + share for share in account.growth]
    low, top = expected - base.slack - slack, base.expected + base.slack + high
    return Totals(
        names,
        phase,
        Range(low, expected, top),
        Range(low * grown[0], expected * grown[1], top * grown[2]),
        _sum(account.outside, shape).expected,
    )


@dataclass(frozen=True, slots=True)
class _Sum:
    """Expected bytes, and how far they may be off."""

    expected: Array
    slack: Array


def _sum(terms: Iterable[Term], shape: tuple[int, int]) -> _Sum:
    expected, slack = np.zeros(shape), np.zeros(shape)
    for term in terms:
        expected += term.amount
        if term.doubt:
            slack += term.amount * term.doubt
    return _Sum(expected, slack)
