"""Learning rates against the schedulers' own formulas, written a second time from what they are known to compute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest
from cases import resolve
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import schedules

from translator import api
from translator.native import Given, Native
from translator.schedules import Curve, curve_of, largest_difference
from translator.spec import Spec, nest
from translator.spec_file import reading_of

LR, BATCH = 3e-4, 8


def megatron_rate(step: int, o: Mapping[str, Any]) -> float:
    """Rate of a step (from 0); all lengths are samples (`optimizer_param_scheduler.py:209`, core 0.18.0)."""
    n, warmup, end = step * BATCH, o["warmup"] * BATCH, o["end"] * BATCH
    high, low, start = LR, o["min_lr"], o["init"]
    if warmup > 0 and n <= warmup:
        return float(start + (high - start) * n / warmup)
    if o["style"] == "constant":
        return high
    if n > end:
        return float(low)
    if o["style"] == "inverse-square-root":
        # Upstream never lets the two fall below one sample.
        return float(max(low, high * math.sqrt(max(warmup, 1)) / math.sqrt(max(n, 1))))
    ratio = (n - warmup) / (end - warmup)
    if o["style"] == "WSD":
        anneal = o["wsd"] * BATCH
        if n <= end - anneal:
            return high
        q = (n - (end - anneal)) / anneal
        share = {
            "linear": 1 - q,
            "cosine": 0.5 * (math.cos(math.pi * q) + 1),
            "exponential": 2 * 0.5**q - 1,
            "minus_sqrt": 1 - math.sqrt(q),
        }[o["wsd_style"]]
    else:
        share = {"linear": 1 - ratio, "cosine": 0.5 * (math.cos(math.pi * ratio) + 1)}[o["style"]]
    return float(low + share * (high - low))


def titan_rate(step: int, o: Mapping[str, Any]) -> float:
    """Rate of a step (from 0) (`components/lr_scheduler.py:83`, 0.2.2); after the decay its formula goes on."""
    total = o["total"] or o["steps"]
    warmup = min(o["warmup"], total)
    decay = total - warmup if o["ratio"] is None else min(round(total * o["ratio"]), total - warmup)
    stable = total + 1 - warmup - decay
    if step < warmup:
        return float(LR * (step + 1) / warmup)
    if step < warmup + stable:
        return LR
    p = (step + 1 - warmup - stable) / decay
    share = {"linear": 1 - p, "sqrt": 1 - math.sqrt(p), "cosine": (1 + math.cos(math.pi * p)) / 2}[o["type"]]
    return float(LR * (o["factor"] + (1 - o["factor"]) * share))


def flat_of(target: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The leaves that a configuration reads as."""
    framework, version = resolve(target)
    native = Native(framework.name, version)
    native.given = {address: Given(address, value, address) for address, value in values.items()}
    framework.settle(native)
    return framework.table(version).read(native.values)


def megatron_cases() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for style, iters, warmup, end, init, by_samples in product(
        ("linear", "cosine", "constant", "inverse-square-root", "WSD"), (12, 40), (0, 1, 7), (None, 30, 60),
        (0.0, 1e-5), (False, True),
    ):  # fmt: skip
        for wsd_style in ("linear", "cosine", "exponential", "minus_sqrt") if style == "WSD" else ("",):
            options = {
                "warmup": warmup, "end": end or iters, "style": style, "init": init, "min_lr": 3e-5, "wsd": 4,
                "wsd_style": wsd_style,
            }  # fmt: skip
            unit, scale = ("samples", BATCH) if by_samples else ("iters", 1)
            values = {
                "lr": LR, "min_lr": 3e-5, f"train_{unit}": iters * scale, "lr_decay_style": style,
                "lr_warmup_init": init, f"lr_warmup_{unit}": warmup * scale, "micro_batch_size": 1,
                "global_batch_size": BATCH, "@world_size": 1, "seq_length": 16,
            }  # fmt: skip
            if end:
                values[f"lr_decay_{unit}"] = end * scale
            if style == "WSD":
                values |= {"lr_wsd_decay_style": wsd_style, f"lr_wsd_decay_{unit}": 4 * scale}
            yield {**options, "steps": iters}, values


def test_megatron_step_by_step() -> None:
    count = 0
    for options, values in megatron_cases():
        curve = curve_of(flat_of("megatron@0.18.0", values))
        assert curve is not None
        assert curve.total == options["steps"]
        for step in range(options["steps"]):
            assert curve.rate(step) == pytest.approx(megatron_rate(step, options), rel=1e-9, abs=1e-18), (options, step)
            count += 1
    assert count > 5000


def test_megatron_fraction_of_the_decay() -> None:
    values = {
        "lr": LR, "min_lr": 0.0, "train_iters": 50, "lr_decay_iters": 80, "lr_decay_style": "cosine",
        "lr_warmup_fraction": 0.13, "micro_batch_size": 1, "global_batch_size": BATCH, "@world_size": 1,
    }  # fmt: skip
    curve = curve_of(flat_of("megatron@0.18.0", values))
    options = {"warmup": 0.13 * 80, "end": 80, "style": "cosine", "init": 0.0, "min_lr": 0.0}
    assert curve is not None
    for step in range(50):
        assert curve.rate(step) == pytest.approx(megatron_rate(step, options), rel=1e-9)


@pytest.mark.parametrize("version", ["0.1.0", "0.2.2"])
def test_torchtitan_step_by_step(version: str) -> None:
    old = version == "0.1.0"
    count = 0
    for steps, total, warmup, ratio, shape, factor in product(
        (1, 20, 33), (None,) if old else (None, 15, 50), (0, 1, 4, 60), (None, 0.0, 0.1, 0.8, 1.0),
        ("linear", "sqrt", "cosine"), (0.0, 0.1),
    ):  # fmt: skip
        options = {"steps": steps, "total": total, "warmup": warmup, "ratio": ratio, "type": shape, "factor": factor}
        values = {
            "optimizer.lr": LR, "training.steps": steps, "lr_scheduler.warmup_steps": warmup,
            "lr_scheduler.decay_ratio": ratio, "lr_scheduler.decay_type": shape,
            "lr_scheduler.lr_min" if old else "lr_scheduler.min_lr_factor": factor, "@world_size": 1,
        }  # fmt: skip
        if total:
            values["lr_scheduler.total_steps"] = total
        curve = curve_of(flat_of(f"torchtitan@{version}", values))
        assert curve is not None
        for step in range(steps):
            try:
                rate = titan_rate(step, options)
            except ZeroDivisionError:
                continue  # torchtitan fails there itself: nothing to decay, and still steps to go
            assert curve.rate(step) == pytest.approx(rate, rel=1e-9, abs=1e-18), (options, step)
            count += 1
    assert count > 4000


def curves(steps: int) -> st.SearchStrategy[Curve]:
    lengths = st.floats(0, steps)
    return st.builds(
        Curve, peak=st.just(1.0), total=st.just(steps), warmup=st.one_of(st.just(0.0), lengths),
        warmup_start=st.sampled_from((0.0, 0.1)), warmup_offset=st.sampled_from((0, 1)),
        warmup_shape=st.sampled_from(("linear", "log")),
        decay=st.sampled_from((None, "linear", "cosine", "sqrt", "exponential", "inverse_sqrt")),
        decay_start=lengths, decay_length=st.floats(1, steps), floor=st.sampled_from((0.0, 0.1)),
    )  # fmt: skip


@settings(max_examples=60, derandomize=True)
@given(data=st.data(), steps=st.sampled_from((1, 1536, 1537, 9000, 40_000)))
def test_the_largest_difference_is_the_largest(data: st.DataObject, steps: int) -> None:
    left, right = data.draw(curves(steps)), data.draw(curves(steps))
    every = max(abs(left.rate(step) - right.rate(step)) for step in range(steps))
    found, where = largest_difference(left, right, steps)
    assert found == abs(left.rate(where) - right.rate(where))
    assert found == pytest.approx(every, rel=1e-9, abs=1e-15)


@settings(max_examples=80, derandomize=True)
@given(flat=schedules())
def test_the_percent_in_the_ledger_is_the_largest(flat: dict[str, Any]) -> None:
    found = api.convert(reading_of(Spec.model_validate(nest(flat))), "torchtitan@0.2.2")
    wanted = curve_of(flat)
    result = curve_of({**found.back.flat, "batch.global_batch": flat["batch.global_batch"]})
    assert wanted is not None
    assert result is not None
    every = [abs(wanted.rate(step) - result.rate(step)) for step in range(wanted.total)]
    note = found.sink.shortfalls["schedule.decay"].note
    said = float(note.partition("steps: ")[2].partition(" %")[0])
    assert said == pytest.approx(100 * max(every) / flat["optimizer.lr"], rel=6e-3, abs=1e-9)
