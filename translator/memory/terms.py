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
    the configuration does not tell. ``pool`` names the stream whose pool of the caching allocator they lie in; "" is
    that of the computation.
    """

    name: str
    kind: Kind
    amount: Any
    doubt: float = 0.0
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """A framework's account of a job.

    ``state`` is there all the time; of ``phases``, by name, only one is there at a time; ``outside`` is beside the
    allocator (context, communication buffers); ``host`` in the machine's memory. ``growth`` is the share by which the
    allocator reserves more than is allocated at the peak: low, expected, high. ``fragments``, by phase, are free blocks
    of the allocator that nothing asked for in the phase fits into: reserved, but not allocated.
    """

    state: list[Term]
    phases: Mapping[str, list[Term]]
    outside: list[Term] = field(default_factory=list)
    host: list[Term] = field(default_factory=list)
    growth: tuple[float, float, float] = (0.0, 0.04, 0.12)
    fragments: Mapping[str, list[Term]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Range:
    """Low, expected and high bytes, arrays of shape (layouts, stages)."""

    low: Array
    expected: Array
    high: Array

    def plus(self, other: Range) -> Range:
        """The sum of both."""
        return Range(self.low + other.low, self.expected + other.expected, self.high + other.high)


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

    The high estimate is that of the phase whose high estimate is largest. Reserved bytes are the sum of the pools, each
    at its own peak: a stream's pool is not lent to another stream, and what it holds is not given back. At the least
    they are what is allocated.
    """
    names = tuple(account.phases)
    phase, allocated = _peak(account.state, [account.phases[name] for name in names], shape)
    terms = [*account.state, *(term for found in account.phases.values() for term in found)]
    pools = {term.pool for term in terms}
    held = allocated
    if len(pools) > 1 or account.fragments:
        phases = {name: [*account.phases[name], *account.fragments.get(name, ())] for name in names}
        held = Range(np.zeros(shape), np.zeros(shape), np.zeros(shape))
        for pool in sorted(pools | {""}):
            state = [term for term in account.state if term.pool == pool]
            found = [[term for term in phases[name] if term.pool == pool] for name in names]
            held = held.plus(_peak(state, found, shape)[1])
    grown = [1 + share for share in account.growth]
    return Totals(
        names,
        phase,
        allocated,
        Range(allocated.low * grown[0], held.expected * grown[1], held.high * grown[2]),
        _sum(account.outside, shape).expected,
    )


def _peak(state: list[Term], phases: list[list[Term]], shape: tuple[int, int]) -> tuple[Any, Range]:
    """The index of the largest phase, and the sum of the state and of that phase."""
    base = _sum(state, shape)
    peak, slack, high = np.full(shape, -np.inf), np.zeros(shape), np.zeros(shape)
    phase = np.zeros(shape, dtype=np.int8)
    for index, terms in enumerate(phases):
        found = _sum(terms, shape)
        larger = found.expected > peak
        phase[larger] = index
        np.copyto(slack, found.slack, where=larger)
        np.maximum(peak, found.expected, out=peak)
        np.maximum(high, found.expected + found.slack, out=high)
    expected = base.expected + peak
    return phase, Range(expected - base.slack - slack, expected, base.expected + base.slack + high)


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
