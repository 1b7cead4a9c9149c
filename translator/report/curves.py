"""The learning-rate curves of both sides over the steps that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from translator.report.model import Curves, Series

if TYPE_CHECKING:
    from translator.schedules import Curve

_POINTS = 200
_WARMUP_POINTS = 12
_OPENING = 1.5  # of the warm-up


def curves(left: Mapping[str, Any], right: Mapping[str, Any], labels: tuple[str, str]) -> tuple[Curves | None, str]:
    """The curves that the fields of both sides describe; without them, the reason in words."""
    from translator.schedules import curve_of

    found = curve_of(left), curve_of(right)
    for curve, label in zip(found, labels, strict=True):
        if curve is None:
            return None, f"{label} leaves the learning rate, the length of the run or the batch open"
    one, other = found
    assert one is not None
    assert other is not None
    steps = min(one.total, other.total)
    whole = _over(steps, one, other, labels)
    first = int(_OPENING * max(one.warmup, other.warmup)) + 1
    if whole.largest_difference > 0 and whole.at_step < first < steps / 4:
        whole = replace(whole, opening=_over(first, one, other, labels))
    return whole, ""


def _over(steps: int, one: Curve, other: Curve, labels: tuple[str, str]) -> Curves:
    from translator.schedules import largest_difference

    difference, step = largest_difference(one, other, steps)
    grid = _grid(steps, step, one, other)
    series = [
        Series(label, list(zip(grid, curve.rates(grid), strict=True)))
        for label, curve in zip(labels, (one, other), strict=True)
    ]
    peak = max(rate for each in series for _, rate in each.points)
    return Curves(steps, peak, series, difference, difference / one.peak if one.peak else 0.0, step)


def _grid(steps: int, worst: int, *both: Curve) -> list[int]:
    """Steps that show the shape: an even grid, the corners of both curves, and where they differ most."""
    grid = {round(index * (steps - 1) / (_POINTS - 1)) for index in range(_POINTS)} | {worst}
    for curve in both:
        grid |= {int(curve.warmup * index / _WARMUP_POINTS) for index in range(_WARMUP_POINTS)}
        for corner in (curve.warmup, curve.decay_start, curve.decay_start + curve.decay_length):
            grid |= {int(corner), int(corner) + 1}
    return sorted(step for step in grid if 0 <= step < steps)
