"""Rows of the learning-rate schedule: `torchtitan/components/lr_scheduler.py:83` (0.2.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from translator.compare import tidy
from translator.frameworks.torchtitan import addresses
from translator.ledger import Entry
from translator.mapping.rows import Row, linked
from translator.mapping.views import NativeView, Sink, SpecView
from translator.schedules import Curve, curve_of, largest_difference, steps_per_unit

_S = "lr_scheduler."
_SHAPES = ("linear", "cosine", "sqrt")
FIELDS = (
    "schedule.unit",
    "schedule.total",
    "schedule.warmup",
    "schedule.warmup_start_lr",
    "schedule.warmup_offset",
    "schedule.warmup_shape",
    "schedule.decay",
    "schedule.decay_start",
    "schedule.decay_length",
    "schedule.min_lr",
    "schedule.after_decay",
)


def _read(native: NativeView) -> Mapping[str, Any]:
    lr, factor = native("optimizer.lr", native(addresses.PEAK_LR)), native(f"{_S}min_lr_factor") or 0.0
    warmup, decay, stable = (
        native(address) for address in (addresses.WARMUP_STEPS, addresses.DECAY_STEPS, addresses.STABLE_STEPS)
    )
    flat: dict[str, Any] = {
        "schedule.unit": "steps",
        "schedule.total": native("training.steps"),
        "schedule.warmup": None if warmup is None else float(warmup),
        "schedule.warmup_start_lr": 0.0,
        "schedule.warmup_offset": 1 if warmup else 0,
        "schedule.warmup_shape": "linear",
        "schedule.decay": native(f"{_S}decay_type"),
        "schedule.min_lr": None if lr is None else tidy(factor * lr),
    }
    if decay == 0:
        flat["schedule.decay"] = "constant"
    elif decay is not None and warmup is not None and stable is not None:
        # At step s the progress is (s + 1 - warmup - stable) / decay, which is 0 at s = warmup + stable - 1.
        flat["schedule.decay_start"], flat["schedule.decay_length"] = float(warmup + stable - 1), float(decay)
        total, steps = native(addresses.TOTAL_STEPS), native("training.steps")
        if total is not None and steps is not None and total < steps:
            flat["schedule.after_decay"] = "continue"
    return flat


class _Candidate:
    """Scheduler options, and the curve that torchtitan makes of them."""

    def __init__(
        self, total: int, warmup: int, decay: int, shape: str, wanted: Curve, *, floor: float | None = None
    ) -> None:
        self.total, self.shape = total, shape
        self.floor = wanted.floor if floor is None else floor
        self.warmup = min(warmup, total)
        self.decay = min(decay, total - self.warmup)
        stable = total + 1 - self.warmup - self.decay
        self.curve = Curve(
            peak=wanted.peak,
            total=wanted.total,
            warmup=self.warmup,
            warmup_start=0.0,
            warmup_offset=1 if self.warmup else 0,
            warmup_shape="linear",
            decay=shape if self.decay else None,
            decay_start=self.warmup + stable - 1,
            decay_length=max(self.decay, 1e-12),
            floor=self.floor,
            continues=True,
        )


def _candidates(wanted: Curve, end: float | None) -> list[_Candidate]:
    # A decay that ends within the last step ends with training.
    early = end is not None and abs(end - wanted.total) >= 1
    totals = list(dict.fromkeys((max(1, round(end)), wanted.total))) if early and end is not None else [wanted.total]
    shapes = [wanted.decay] if wanted.decay in _SHAPES else list(_SHAPES)
    if wanted.decay is None:
        return [_Candidate(wanted.total, warmup, 0, "linear", wanted) for warmup in _warmups(wanted)]
    length = round(wanted.decay_length)
    # A shape that torchtitan lacks may be met better by one that ends where it ends.
    floors = [wanted.floor] if wanted.decay in _SHAPES else [wanted.floor, max(0.0, wanted.rate(wanted.total - 1))]
    return [
        _Candidate(total, warmup, decay, shape or "linear", wanted, floor=floor)
        for floor in floors
        for total in totals
        for warmup in _warmups(wanted)
        for decay in dict.fromkeys((length, total - warmup))
        if decay >= 0
        for shape in shapes
    ]


def _warmups(wanted: Curve) -> list[int]:
    if wanted.warmup <= 0:
        return [0]
    exact = wanted.warmup + (1 - wanted.warmup_offset)
    return list(dict.fromkeys((max(1, round(wanted.warmup)), max(1, math.floor(exact)), max(1, math.ceil(exact)))))


def _decay_ratio(total: int, decay: int) -> float:
    """The shortest ratio of which torchtitan's rounding makes ``decay`` again."""
    for digits in range(1, 17):
        ratio = round(decay / total, digits)
        if round(total * ratio) == decay:
            return ratio
    return decay / total


def _write(spec: SpecView, sink: Sink) -> None:
    scale = steps_per_unit({leaf: spec(leaf) for leaf in ("schedule.unit", "batch.global_batch", "batch.seq_len")})
    wanted = curve_of({leaf: spec(leaf) for leaf in (*FIELDS, "optimizer.lr", "batch.global_batch", "batch.seq_len")})
    if wanted is None or scale is None:
        _write_open(spec, sink)
        return
    start, length = spec("schedule.decay_start"), spec("schedule.decay_length")
    end = (start + length) * scale if start is not None and length is not None else None
    sink.put("training.steps", wanted.total)
    if spec("schedule.total") == 0:
        sink.short("schedule.total", Entry.APPROXIMATED, "at least one step is trained")
    options = _candidates(wanted, end)
    if not sink.has(f"{_S}total_steps"):
        options = [option for option in options if option.total == wanted.total] or [
            _Candidate(wanted.total, option.warmup, wanted.total - option.warmup, option.shape, wanted)
            for option in options
        ]
    measured = [(largest_difference(wanted, option.curve, wanted.total), option) for option in options]
    (difference, step), best = min(measured, key=lambda pair: pair[0][0])
    if best.total != wanted.total:
        sink.put(f"{_S}total_steps", best.total)
    sink.put(f"{_S}warmup_steps", best.warmup)
    if best.decay:
        sink.put(f"{_S}decay_type", best.shape)
    if best.decay != best.total - best.warmup:
        sink.put(f"{_S}decay_ratio", _decay_ratio(best.total, best.decay))
    if spec("schedule.min_lr") is not None and wanted.peak:
        sink.put(f"{_S}min_lr_factor", tidy(best.floor / wanted.peak))
    _admit(spec, sink, wanted, difference, step)


def _admit(spec: SpecView, sink: Sink, wanted: Curve, difference: float, step: int) -> None:
    percent = 100.0 * difference / wanted.peak if wanted.peak else 0.0
    entry = Entry.ADAPTED if percent < 1e-6 else Entry.APPROXIMATED
    note = f"largest difference over {wanted.total} steps: {percent:.3g} % of the peak, at step {step + 1}"
    if step < wanted.warmup and spec("schedule.warmup_offset") == 0:
        note += "; torchtitan's warm-up is one step ahead, its first step does not use the starting rate"
    elif step > wanted.decay_start + wanted.decay_length and not wanted.continues:
        note += "; after the decay torchtitan goes on along its formula instead of holding the floor"
    elif wanted.decay_start + wanted.decay_length < wanted.total - 1 and wanted.decay and not wanted.continues:
        end = round(wanted.decay_start + wanted.decay_length)
        note += f"; the source holds the floor from step {end + 1} on, torchtitan has to decay to the end"
    elif wanted.decay is not None and wanted.decay not in _SHAPES:
        note += f"; torchtitan has no decay of shape {wanted.decay}"
    for leaf in FIELDS:
        sink.short(leaf, entry, note)


def _write_open(spec: SpecView, sink: Sink) -> None:
    """What can be said when batch, length or peak are not known."""
    if spec("schedule.unit") == "steps" and spec("schedule.total") is not None:
        sink.put("training.steps", spec("schedule.total"))
    if spec("schedule.unit") == "steps" and spec("schedule.warmup") is not None:
        sink.put(f"{_S}warmup_steps", round(spec("schedule.warmup")))
    if spec("schedule.decay") in _SHAPES:
        sink.put(f"{_S}decay_type", spec("schedule.decay"))
    for leaf in FIELDS:
        if spec(leaf) is not None:
            sink.short(leaf, Entry.APPROXIMATED, "the curve is not determined: batch, length or peak are not known")


ROWS: tuple[Row, ...] = (
    linked(
        [
            "training.steps",
            f"{_S}warmup_steps",
            f"{_S}total_steps",
            f"{_S}decay_ratio",
            f"{_S}decay_type",
            f"{_S}min_lr_factor",
        ],
        FIELDS,
        read=_read,
        write=_write,
        influences={
            "training.steps": ("schedule.total", "schedule.decay_length"),
            f"{_S}warmup_steps": ("schedule.warmup", "schedule.warmup_offset", "schedule.warmup_start_lr"),
            f"{_S}total_steps": ("schedule.decay_start", "schedule.decay_length", "schedule.after_decay"),
            f"{_S}decay_ratio": ("schedule.decay_start", "schedule.decay_length", "schedule.decay"),
            f"{_S}decay_type": ("schedule.decay",),
            f"{_S}min_lr_factor": ("schedule.min_lr",),
        },
    ),
)
