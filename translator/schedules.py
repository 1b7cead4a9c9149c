"""Learning-rate schedules as exact functions of the optimizer step.

One curve with the conventions as parameters covers the schedulers of the frameworks:
Megatron-LM `megatron/core/optimizer_param_scheduler.py:209` (core 0.18.0) has ``warmup_offset`` 0, holds ``min_lr``
after the decay and counts samples; torchtitan `torchtitan/components/lr_scheduler.py:83` (0.2.2) has
``warmup_offset`` 1 and, where training outlasts the decay, goes on along the decay's formula (``continues``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SHAPES: Mapping[str, Callable[[float], float]] = {
    "linear": lambda p: 1.0 - p,
    "cosine": lambda p: 0.5 * (1.0 + math.cos(math.pi * p)),
    "sqrt": lambda p: 1.0 - math.sqrt(p),
    "exponential": lambda p: 2.0 * 0.5**p - 1.0,
}


@dataclass(frozen=True, slots=True)
class Curve:
    """A schedule in optimizer steps; rates are absolute. ``decay`` None holds the peak.

    ``grain`` is the least length that an inverse square root decay takes: one sample, in steps.
    """

    peak: float
    total: int
    warmup: float
    warmup_start: float
    warmup_offset: int
    warmup_shape: str
    decay: str | None
    decay_start: float
    decay_length: float
    floor: float
    continues: bool = False
    grain: float = 1.0

    def rate(self, step: int) -> float:
        """The learning rate of optimizer step ``step`` (from 0)."""
        return self.rates((step,))[0]

    def rates(self, steps: Iterable[int]) -> list[float]:
        """The learning rates of optimizer steps; curves are compared at hundreds of them, hence one loop."""
        peak, warmup, offset, start = self.peak, self.warmup, self.warmup_offset, self.warmup_start
        floor, decay_start, length = self.floor, self.decay_start, self.decay_length
        end = math.inf if self.continues else decay_start + length
        logarithmic, inverse = self.warmup_shape == "log", self.decay == "inverse_sqrt"
        shape = None if self.decay is None or inverse else SHAPES[self.decay]
        found: list[float] = []
        for step in steps:
            done = max(0, step + offset)
            if warmup > 0 and done < warmup:
                share = done / warmup
                if logarithmic:
                    share = math.log(max(done, 1)) / math.log(warmup) if warmup > 1 else 1.0
                found.append(start + (peak - start) * share)
            elif self.decay is None or step <= decay_start:
                found.append(peak)
            elif step > end:
                found.append(floor)
            elif shape is None:
                found.append(max(floor, peak * math.sqrt(max(warmup, self.grain) / max(step, self.grain))))
            else:
                found.append(floor + (peak - floor) * shape((step - decay_start) / length))
        return found


def steps_per_unit(flat: Mapping[str, Any]) -> float | None:
    """Optimizer steps in one unit of the schedule's lengths; None when the batch is not known."""
    unit = flat.get("schedule.unit")
    if unit == "steps":
        return 1.0
    batch = flat.get("batch.global_batch")
    if unit is None or not batch:
        return None
    if unit == "samples":
        return 1.0 / float(batch)
    length = flat.get("batch.seq_len")
    return 1.0 / (float(batch) * float(length)) if length else None


def curve_of(flat: Mapping[str, Any]) -> Curve | None:
    """The curve that spec leaves describe; None when they leave it open."""
    scale = steps_per_unit(flat)
    peak, total = flat.get("optimizer.lr"), flat.get("schedule.total")
    if scale is None or peak is None or total is None:
        return None
    shape = flat.get("schedule.decay")
    known = shape in SHAPES or shape == "inverse_sqrt"
    warmup = (flat.get("schedule.warmup") or 0) * scale
    start = flat.get("schedule.decay_start")
    length = flat.get("schedule.decay_length")
    return Curve(
        peak=peak,
        total=max(1, math.floor(total * scale + 1e-9)),
        warmup=warmup,
        warmup_start=flat.get("schedule.warmup_start_lr") or 0.0,
        warmup_offset=flat.get("schedule.warmup_offset") or 0,
        warmup_shape=flat.get("schedule.warmup_shape") or "linear",
        decay=shape if known else None,
        decay_start=warmup if start is None else start * scale,
        decay_length=max((length or 0) * scale, 1e-12),
        floor=flat.get("schedule.min_lr") or 0.0,
        continues=flat.get("schedule.after_decay") == "continue",
        grain=1.0 / float(flat.get("batch.global_batch") or 1),
    )


_GRID = 256


def largest_difference(left: Curve, right: Curve, steps: int) -> tuple[float, int]:
    """The largest absolute difference of two curves over ``steps`` steps, and the step where it is.

    Up to 256 steps every one is compared; beyond, the corners of both curves and a grid, since between corners the
    curves are smooth, and then ever finer grids around the worst, down to every step.
    """
    if steps <= _GRID:
        candidates = set(range(steps))
    else:
        candidates = {round(i * (steps - 1) / (_GRID - 1)) for i in range(_GRID)}
        for curve in (left, right):
            for corner in (0, curve.warmup, curve.decay_start, curve.decay_start + curve.decay_length, steps - 1):
                candidates |= {int(corner) + shift for shift in range(-3, 4)}
    worst = _worst(left, right, [step for step in candidates if 0 <= step < steps])
    window = steps // _GRID + 1 if steps > _GRID else 0
    while window:
        stride = max(1, window // 32)
        near = range(max(0, worst - window), min(steps, worst + window + 1), stride)
        worst = _worst(left, right, [worst, *near])
        window = stride if stride > 1 else 0
    return abs(left.rate(worst) - right.rate(worst)), worst


def _worst(left: Curve, right: Curve, steps: Sequence[int]) -> int:
    """The first of ``steps`` where the curves differ most."""
    differences = [abs(one - two) for one, two in zip(left.rates(steps), right.rates(steps), strict=True)]
    return steps[differences.index(max(differences))]
