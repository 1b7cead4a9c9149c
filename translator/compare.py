"""Differences between two specs, leaf by leaf."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def equal(left: Any, right: Any) -> bool:
    """Equality of leaf values: numbers by value with a relative tolerance of 1e-9, lists element by element."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left == right or math.isclose(left, right, rel_tol=1e-9, abs_tol=0.0)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


def tidy(value: float) -> float:
    """A computed number without the noise in its last digits: 0.01, not 0.010000000000000002."""
    short = float(f"{value:.12g}")
    return short if len(repr(short)) < 14 else value


def lost(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Leaves that ``wanted`` states and ``found`` does not say: leaf -> (wanted, found)."""
    return {
        leaf: (value, found.get(leaf))
        for leaf, value in wanted.items()
        if value is not None and not equal(value, found.get(leaf))
    }
