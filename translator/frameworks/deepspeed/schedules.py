"""Learning rates of DeepSpeed's schedulers and of transformers', as exact functions of the optimizer step.

The engine steps the scheduler after the optimizer, and DeepSpeed's schedulers begin at iteration -1: optimizer steps 0
and 1 (from 0) both run at the minimum, and step k at iteration k-1 (``runtime/lr_schedules.py:637-885`` at 0.19.2).
transformers' schedules have no such lag: step k runs at ``lambda(k)`` (``optimization.py`` at 5.24.0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

WARMUP, WARMUP_DECAY, WARMUP_COSINE = "WarmupLR", "WarmupDecayLR", "WarmupCosineLR"
RANGE_TEST, ONE_CYCLE = "LRRangeTest", "OneCycle"
LOG, LINEAR = "log", "linear"
CLAMPED_SINCE = "0.19.8"
Rate = Callable[[int], float]


def deepspeed_rate(kind: str, params: Mapping[str, Any], base: float, *, clamped: bool = False) -> Rate | None:
    """Rate of optimizer step k (from 0) under the engine, for a scheduler and its arguments; None for another kind.

    ``base`` is the optimizer's own learning rate. ``clamped`` is whether the cosine stops at its end (0.19.8) or rises
    again.
    """
    if kind in {WARMUP, WARMUP_DECAY}:
        return _warmup(kind, params, base)
    if kind == WARMUP_COSINE:
        return _cosine(params, base, clamped)
    if kind == RANGE_TEST:
        return _range_test(params)
    return _one_cycle(params) if kind == ONE_CYCLE else None


def _share(iteration: int, length: int, shape: str) -> float:
    return iteration / length if shape == LINEAR else math.log(iteration + 1) / math.log(length)


def _warmup(kind: str, params: Mapping[str, Any], base: float) -> Rate:
    low = float(params.get("warmup_min_lr") or 0.0)
    high = params.get("warmup_max_lr")
    peak = float(high) if high is not None else base if kind == WARMUP else 1e-3
    length, shape = max(2, int(params.get("warmup_num_steps", 1000))), str(params.get("warmup_type", LOG))
    total = float(params.get("total_num_steps") or 0)

    def rate(step: int) -> float:
        iteration = step - 1
        if iteration < 0:
            return low
        if iteration < length:
            share = _share(iteration, length, shape)
        else:
            share = 1.0 if kind == WARMUP else max(0.0, (total - iteration) / max(1.0, total - length))
        return low + (peak - low) * share

    return rate


def _cosine(params: Mapping[str, Any], base: float, clamped: bool) -> Rate:
    low, floor = float(params.get("warmup_min_ratio") or 0.0), float(params.get("cos_min_ratio", 1e-4))
    length, shape = max(2, int(params.get("warmup_num_steps", 1000))), str(params.get("warmup_type", LOG))
    total = int(params.get("total_num_steps") or 0)

    def rate(step: int) -> float:
        iteration = step - 1
        if iteration < 0:
            return 0.0
        if iteration < length:
            return base * (low + (1.0 - low) * _share(iteration, length, shape))
        done, span = iteration - length + 1, total - length
        progress = min(1.0, done / max(1, span)) if clamped else done / span if span else 1.0
        return base * max(0.0, floor + (1.0 - floor) * (1.0 + math.cos(math.pi * progress)) / 2)

    return rate


def _range_test(params: Mapping[str, Any]) -> Rate:
    low = float(params.get("lr_range_test_min_lr", 1e-3))
    size, growth = float(params.get("lr_range_test_step_size", 2000)), float(params.get("lr_range_test_step_rate", 1.0))
    stairs = bool(params.get("lr_range_test_staircase", False))

    def rate(step: int) -> float:
        interval = step / size
        return low * (1 + growth * (math.floor(interval) if stairs else interval))

    return rate


def _one_cycle(params: Mapping[str, Any]) -> Rate:
    low, high = float(params.get("cycle_min_lr") or 0.0), float(params.get("cycle_max_lr") or 0.0)
    first = float(params.get("cycle_first_step_size", 2000))
    second = float(params.get("cycle_second_step_size") or first)
    decay, every = float(params.get("decay_lr_rate") or 0.0), float(params.get("decay_step_size") or 0)
    total = first + second

    def rate(step: int) -> float:
        iteration = step - 1
        if iteration < 0:
            return low
        if iteration < total:
            place = step / total - math.floor(step / total)
            ratio = first / total
            share = place / ratio if place <= ratio else (place - 1) / (ratio - 1)
            return low + (high - low) * share
        if not decay or not every:
            return low
        return low / (1 + decay * ((iteration - total + 1) / every))

    return rate


def trainer_rate(kind: str, base: float, warmup: int, total: int, options: Mapping[str, Any]) -> Rate | None:
    """Rate of optimizer step k (from 0) for a ``lr_scheduler_type``; None for one without a closed form."""
    shape = _TRAINER.get(kind)
    if shape is None:
        return None

    def rate(step: int) -> float:
        if step < warmup and kind not in {"constant", "cosine_warmup_with_min_lr"}:
            return base * step / max(1, warmup)
        return base * shape(step, warmup, total, options, base)

    return rate


Shape = Callable[[int, int, int, Mapping[str, Any], float], float]


def _progress(step: int, warmup: int, total: int) -> float:
    return (step - warmup) / max(1, total - warmup)


def _linear(step: int, warmup: int, total: int, options: Mapping[str, Any], base: float) -> float:
    _ = options, base
    return max(0.0, (total - step) / max(1, total - warmup))


def _half_cosine(step: int, warmup: int, total: int, options: Mapping[str, Any], base: float) -> float:
    floor = options.get("min_lr_rate")
    low = float(floor) if floor is not None else float(options.get("min_lr") or 0.0) / base if base else 0.0
    cycles = float(options.get("num_cycles", 0.5))
    factor = 0.5 * (1.0 + math.cos(math.pi * cycles * 2.0 * _progress(step, warmup, total)))
    return max(0.0, factor * (1 - low) + low)


def _restarts(step: int, warmup: int, total: int, options: Mapping[str, Any], base: float) -> float:
    _ = base
    progress = _progress(step, warmup, total)
    if progress >= 1.0:
        return 0.0
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * ((float(options.get("num_cycles", 1)) * progress) % 1.0))))


def _polynomial(step: int, warmup: int, total: int, options: Mapping[str, Any], base: float) -> float:
    end, power = float(options.get("lr_end", 1e-7)), float(options.get("power", 1.0))
    if step > total:
        return end / base
    left = 1 - (step - warmup) / (total - warmup) if total != warmup else 1.0
    return float(((base - end) * left**power + end) / base)


def _inverse_sqrt(step: int, warmup: int, total: int, options: Mapping[str, Any], base: float) -> float:
    _ = total, base
    scale = options.get("timescale") or warmup or 10_000
    return 1.0 / math.sqrt((step + scale - warmup) / scale)


def _one(step: int, warmup: int, total: int, options: Mapping[str, Any], base: float) -> float:
    _ = step, warmup, total, options, base
    return 1.0


_TRAINER: dict[str, Shape] = {
    "linear": _linear,
    "cosine": _half_cosine,
    "cosine_with_min_lr": _half_cosine,
    "cosine_with_restarts": _restarts,
    "polynomial": _polynomial,
    "inverse_sqrt": _inverse_sqrt,
    "constant": _one,
    "constant_with_warmup": _one,
}
