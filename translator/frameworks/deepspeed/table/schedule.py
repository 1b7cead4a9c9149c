"""Rows of the learning rate and the length of training.

A schedule is DeepSpeed's own (in the JSON) or transformers' (in its arguments); `Settings` are what either amounts to,
as settling derives them at ``@schedule.*``, and `leaves_of` the one place that says what they mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from translator.compare import tidy
from translator.frameworks.deepspeed import addresses as at
from translator.ledger import Entry
from translator.mapping.rows import Row, linked
from translator.mapping.views import NativeView, Sink, SpecView
from translator.schedules import Curve, curve_of, largest_difference

_P = "scheduler.params."
_LR = f"{at.OPTIMIZER}.lr"
_HF = "hf."
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
WARMUP, WARMUP_DECAY, WARMUP_COSINE, ONE_CYCLE = "WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "OneCycle"
_CLAMPED = "0.19.8"  # the cosine stops at its end since
_WSD_SHAPES = {"linear": "linear", "cosine": "cosine", "1-sqrt": "sqrt"}


@dataclass(frozen=True, slots=True)
class Settings:
    """A scheduler and its arguments; rates are absolute, lengths in steps. ``options`` are transformers' further ones.

    ``total`` is the length of the schedule.
    """

    name: str | None
    peak: float | None
    warmup: int = 0
    shape: str = "linear"
    start: float = 0.0
    floor: float = 0.0
    total: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    clamped: bool = True


def leaves_of(settings: Settings) -> dict[str, Any] | None:
    """What a schedule is as leaves, without unit and total; None for one whose curve has no leaves.

    DeepSpeed's begin one step late: at step ``s`` they are at iteration ``s - 1`` (`runtime/lr_schedules.py:637` at
    0.19.2); transformers' are at ``s`` (`optimization.py` at 5.24.0).
    """
    name, total, warmup = settings.name, settings.total, settings.warmup
    flat: dict[str, Any] = {
        "schedule.warmup": float(warmup),
        "schedule.warmup_start_lr": float(settings.start),
        "schedule.warmup_offset": 0,
        "schedule.warmup_shape": "linear",
        "schedule.decay": "constant",
    }
    if name in (WARMUP, WARMUP_DECAY, WARMUP_COSINE):
        # log(i + 1) at i = s - 1 is log(s), so that the logarithm hides the lag.
        log = settings.shape == "log"
        flat |= {"schedule.warmup_shape": settings.shape, "schedule.warmup_offset": 0 if log else -1}
    if name in (None, WARMUP, "hf.constant", "hf.constant_with_warmup"):
        return flat
    decay = _decay(settings)
    if decay is None or (total is None and decay[0] != "inverse_sqrt"):
        return None
    shape, begin, length, floor = decay
    flat |= {"schedule.decay": shape, "schedule.decay_start": float(begin), "schedule.min_lr": floor}
    if length is not None:
        flat["schedule.decay_length"] = float(length)
    if name == "hf.warmup_stable_decay":
        flat["schedule.warmup_start_lr"] = floor
    if name == "hf.cosine_warmup_with_min_lr":
        flat["schedule.warmup_offset"] = 1
    return flat


def _decay(settings: Settings) -> tuple[str, float, float | None, float] | None:
    """Shape, start, length and floor of the decay."""
    name, warmup, options = settings.name, settings.warmup, settings.options
    total = settings.total or 0
    length = max(1, total - warmup)
    if name == WARMUP_DECAY:
        return "linear", warmup + 1, length, settings.start
    if name == WARMUP_COSINE:
        return "cosine", warmup, length, settings.floor
    if name == ONE_CYCLE:
        return "linear", warmup, length, settings.floor
    if name == "hf.linear":
        return "linear", warmup, length, 0.0
    if name in ("hf.cosine", "hf.cosine_with_min_lr") and options.get("num_cycles", 0.5) == 0.5:
        return "cosine", warmup, length, settings.floor
    if name == "hf.cosine_warmup_with_min_lr" and options.get("num_cycles", 0.5) == 0.5:
        # (s - warmup + 1) / length: one step ahead of the plain cosine.
        return ("cosine", warmup - 1, length, settings.floor) if not options.get("warmup_lr_rate") else None
    if name == "hf.polynomial" and options.get("power", 1.0) == 1.0:
        return "linear", warmup, length, float(options.get("lr_end", 1e-7))
    if name == "hf.inverse_sqrt" and options.get("timescale") in (None, warmup) and warmup:
        return "inverse_sqrt", warmup, max(1, total - warmup) if total else None, 0.0
    if name == "hf.warmup_stable_decay":
        return _stable(settings)
    return None


def _stable(settings: Settings) -> tuple[str, float, float | None, float] | None:
    options, peak = settings.options, settings.peak
    decay, kind = options.get("num_decay_steps"), _WSD_SHAPES.get(str(options.get("decay_type", "cosine")))
    if not isinstance(decay, int) or kind is None or options.get("warmup_type", "linear") != "linear" or peak is None:
        return None
    stable = options.get("num_stable_steps")
    if not isinstance(stable, int):
        stable = (settings.total or 0) - settings.warmup - decay
    return kind, settings.warmup + stable, max(1, decay), tidy(float(options.get("min_lr_ratio", 0.0)) * peak)


def settings_of(native: NativeView) -> Settings:
    """The scheduler in force, from what settling derived."""
    name = native(at.SCHEDULE)
    total, warmup = native("@schedule.total"), native("@schedule.warmup")
    if name == ONE_CYCLE:
        return _one_cycle(native)
    return Settings(
        name=name,
        peak=_number(native("@schedule.peak", native(_LR))),
        warmup=int(warmup) if isinstance(warmup, int | float) else 0,
        shape=native("@schedule.shape") or "linear",
        start=_number(native("@schedule.start")) or 0.0,
        floor=tidy(_number(native("@schedule.floor")) or 0.0),
        total=int(total) if isinstance(total, int | float) and total > 0 else None,
        options=native("@schedule.options") or {},
        clamped=native.version == _CLAMPED,
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _one_cycle(native: NativeView) -> Settings:
    """Up, down, and at the minimum from there on (`runtime/lr_schedules.py:532`), unless the minimum decays further."""
    low, high = _number(native(f"{_P}cycle_min_lr")), _number(native(f"{_P}cycle_max_lr"))
    first = native(f"{_P}cycle_first_step_size")
    second = native(f"{_P}cycle_second_step_size") or first
    stairs = native(f"{_P}cycle_first_stair_count") or native(f"{_P}cycle_second_stair_count")
    if low is None or high is None or not first or stairs or native(f"{_P}decay_lr_rate"):
        return Settings("unknown", high)
    return Settings(ONE_CYCLE, high, int(first), "linear", low, low, int(first + second))


def _read(native: NativeView) -> Mapping[str, Any]:
    settings = settings_of(native)
    known = native(at.TOTAL_STEPS) or native("hf.max_steps")
    training = known if isinstance(known, int) and known > 0 else None
    flat: dict[str, Any] = {"optimizer.lr": settings.peak}
    if native(at.SCHEDULE) is None:  # the program may bring a scheduler
        return flat | ({"schedule.unit": "steps", "schedule.total": training} if training else {})
    length = training or (settings.total if settings.name not in (ONE_CYCLE,) else None)
    flat |= {"schedule.unit": "steps", "schedule.total": length}
    found = leaves_of(settings)
    if found is None or not _complete(native, settings):
        return flat
    flat |= found
    end = (found.get("schedule.decay_start") or 0) + (found.get("schedule.decay_length") or 0)
    if found["schedule.decay"] not in ("constant", "inverse_sqrt") and length and end < length:
        goes_on = settings.name == WARMUP_COSINE and not settings.clamped
        flat["schedule.after_decay"] = "continue" if goes_on else "floor"
    return flat


def _complete(native: NativeView, settings: Settings) -> bool:
    """Whether the length of the warm-up is known, where there is one."""
    constant = settings.name in (None, "hf.constant", ONE_CYCLE)
    return constant or isinstance(native("@schedule.warmup"), int | float)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A schedule that could be written, and its curve."""

    settings: Settings
    curve: Curve


def _candidates(wanted: Curve, version: str) -> Iterator[_Candidate]:
    """Schedules in the order of preference: DeepSpeed's own, then transformers', the nearest shapes first."""
    total, peak, floor = wanted.total, wanted.peak, wanted.floor
    for warmup in _warmups(wanted):
        for settings in (*_own(wanted, warmup), *_trainers(wanted, warmup)):
            flat = leaves_of(settings)
            if flat is None:
                continue
            flat |= {"schedule.unit": "steps", "schedule.total": total, "optimizer.lr": peak}
            if settings.name == WARMUP_COSINE and version != _CLAMPED:
                flat["schedule.after_decay"] = "continue"
            curve = curve_of(flat)
            if curve is not None:
                yield _Candidate(settings, curve)
    _ = floor


def _own(wanted: Curve, warmup: int) -> Iterator[Settings]:
    shapes = ("log", "linear") if wanted.warmup_shape == "log" else ("linear",)
    total, peak, start = wanted.total, wanted.peak, wanted.warmup_start
    if warmup < 2 and (wanted.warmup or wanted.decay is None):
        warmup = 2
    if warmup < 2:
        return
    for shape in shapes:
        if wanted.decay is None:
            yield Settings(WARMUP, peak, warmup, shape, start)
        elif wanted.decay != "cosine":
            for low in dict.fromkeys((wanted.floor, start)):
                yield Settings(WARMUP_DECAY, peak, warmup, shape, low, low, total)
        if wanted.decay is not None:
            yield Settings(WARMUP_COSINE, peak, warmup, shape, start, wanted.floor, total)


def _trainers(wanted: Curve, warmup: int) -> Iterator[Settings]:
    total, peak, floor = wanted.total, wanted.peak, wanted.floor
    if wanted.decay is None:
        name = "constant_with_warmup" if warmup else "constant"
        yield Settings(f"hf.{name}", peak, warmup, total=total)
        return
    ratio = tidy(floor / peak) if peak else 0.0
    whole = not round(total - warmup - wanted.decay_length)
    if wanted.decay == "inverse_sqrt" and warmup:
        yield Settings("hf.inverse_sqrt", peak, warmup, total=total)
    if wanted.decay == "linear":
        yield Settings("hf.linear", peak, warmup, total=total)
        if 0 < floor < peak:
            yield Settings("hf.polynomial", peak, warmup, total=total, options={"lr_end": floor, "power": 1.0})
    if wanted.decay == "cosine":
        if floor:
            for name in ("cosine_with_min_lr", "cosine_warmup_with_min_lr"):
                yield Settings(f"hf.{name}", peak, warmup, floor=floor, total=total, options={"min_lr_rate": ratio})
        else:
            yield Settings("hf.cosine", peak, warmup, total=total)
            yield Settings("hf.cosine_warmup_with_min_lr", peak, warmup, total=total, options={"min_lr_rate": 0.0})
    if wanted.decay not in ("linear", "cosine") or not whole:
        yield from _stables(wanted, warmup)


def _stables(wanted: Curve, warmup: int) -> Iterator[Settings]:
    """Warm-up, stable, decay; a shape that is not among them is met by whichever comes nearest, to its own end."""
    total, peak = wanted.total, wanted.peak
    begin = min(total, max(warmup, round(wanted.decay_start)))
    decay = max(1, round(wanted.decay_length))
    shapes = {neutral: native for native, neutral in _WSD_SHAPES.items()}
    named = [shapes[wanted.decay]] if wanted.decay in shapes else list(_WSD_SHAPES)
    floors = [wanted.floor] if wanted.decay in shapes else [wanted.floor, max(0.0, wanted.rate(total - 1))]
    for kind in named:
        for floor in dict.fromkeys(floors):
            for stable in dict.fromkeys((begin - warmup, max(0, begin - warmup - 1), begin - warmup + 1)):
                options = {
                    "num_decay_steps": decay,
                    "num_stable_steps": stable,
                    "warmup_type": "linear",
                    "decay_type": kind,
                    "min_lr_ratio": tidy(floor / peak) if peak else 0.0,
                }
                yield Settings("hf.warmup_stable_decay", peak, warmup, floor=floor, total=total, options=options)


def _warmups(wanted: Curve) -> list[int]:
    """Whole lengths of warm-up that may come nearest."""
    if wanted.warmup <= 0:
        return [0]
    base = math.floor(wanted.warmup)
    near = (base, math.ceil(wanted.warmup), base - 1, base + 1)
    return list(dict.fromkeys(max(1, length) for length in near))


def _write(spec: SpecView, sink: Sink) -> None:
    leaves = (*FIELDS, "optimizer.lr", "batch.global_batch", "batch.seq_len")
    flat = {leaf: spec(leaf) for leaf in leaves}
    peak = flat["optimizer.lr"]
    if peak is not None:
        sink.put("optimizer.params.lr", peak)
        sink.put("hf.learning_rate", peak)
    wanted = curve_of(flat)
    if wanted is None:
        _write_open(spec, sink)
        return
    sink.put("hf.max_steps", wanted.total)
    best, difference, step = _best(wanted, sink.version)
    _put(best.settings, sink)
    percent = 100.0 * difference / wanted.peak if wanted.peak else 0.0
    note = f"largest difference over {wanted.total} steps: {percent:.3g} % of the peak, at step {step + 1}"
    name = best.settings.name or "constant"
    note += f", with {name.removeprefix('hf.')}{' of transformers' if name.startswith('hf.') else ''}"
    for leaf in FIELDS:
        sink.short(leaf, Entry.ADAPTED if percent < 1e-6 else Entry.APPROXIMATED, note)


def _best(wanted: Curve, version: str) -> tuple[_Candidate, float, int]:
    found: tuple[_Candidate, float, int] | None = None
    for candidate in _candidates(wanted, version):
        difference, step = largest_difference(wanted, candidate.curve, wanted.total)
        if found is None or difference < found[1] - 1e-15:
            found = (candidate, difference, step)
        if difference <= 1e-12 * wanted.peak:
            break
    if found is None:
        settings = Settings("hf.constant", wanted.peak, total=wanted.total)
        flat = leaves_of(settings) or {}
        curve = curve_of(flat | {"schedule.unit": "steps", "schedule.total": wanted.total, "optimizer.lr": wanted.peak})
        assert curve is not None
        return _Candidate(settings, curve), *largest_difference(wanted, curve, wanted.total)
    return found


def _put(settings: Settings, sink: Sink) -> None:
    """State a schedule: in the JSON where it is DeepSpeed's, among the trainer's arguments where it is theirs."""
    name = settings.name or "hf.constant"
    sink.put("hf.warmup_steps", settings.warmup)
    if name.startswith(_HF):
        sink.put("hf.lr_scheduler_type", name.removeprefix(_HF))
        if settings.options:
            sink.put("hf.lr_scheduler_kwargs", dict(settings.options))
        return
    sink.put("scheduler.type", name)
    sink.put(f"{_P}warmup_num_steps", settings.warmup)
    sink.put(f"{_P}warmup_type", settings.shape)
    if name == WARMUP_COSINE:
        peak = settings.peak or 1.0
        sink.put(f"{_P}warmup_min_ratio", tidy(settings.start / peak))
        sink.put(f"{_P}cos_min_ratio", tidy(settings.floor / peak))
    else:
        sink.put(f"{_P}warmup_min_lr", settings.start)
        # Otherwise 0.001 for one of them, whatever the optimizer says.
        sink.put(f"{_P}warmup_max_lr", settings.peak)
    if name != WARMUP:
        sink.put(f"{_P}total_num_steps", settings.total)


def _write_open(spec: SpecView, sink: Sink) -> None:
    """What can be said when batch, length or peak are not known."""
    if spec("schedule.unit") == "steps" and spec("schedule.total"):
        sink.put("hf.max_steps", spec("schedule.total"))
    warmup = spec("schedule.warmup")
    shape, peak = spec("schedule.decay"), spec("optimizer.lr")
    if spec("schedule.unit", "steps") == "steps" and shape in (None, "constant") and warmup and peak is not None:
        log = spec("schedule.warmup_shape") == "log"
        late = log or spec("schedule.warmup_offset") == -1
        start = spec("schedule.warmup_start_lr", 0.0)
        name = WARMUP if late or start else "hf.constant_with_warmup"
        _put(Settings(name, peak, max(1, round(warmup)), "log" if log else "linear", start), sink)
    elif shape == "constant" and not warmup:
        sink.put("hf.lr_scheduler_type", "constant")
    elif shape in ("linear", "cosine", "inverse_sqrt") and spec("schedule.unit", "steps") == "steps":
        sink.put("hf.lr_scheduler_type", shape)
        if warmup is not None:
            sink.put("hf.warmup_steps", round(warmup))
    for leaf in FIELDS:
        sink.short(leaf, Entry.APPROXIMATED, "the curve is not determined: batch, length or peak are not known")


_DS_PARAMS = {
    f"{_P}warmup_num_steps": ("schedule.warmup", "schedule.decay_start", "schedule.decay_length"),
    f"{_P}warmup_min_lr": ("schedule.warmup_start_lr", "schedule.min_lr"),
    f"{_P}warmup_max_lr": ("optimizer.lr",),
    f"{_P}warmup_type": ("schedule.warmup_shape", "schedule.warmup_offset"),
    f"{_P}warmup_min_ratio": ("schedule.warmup_start_lr",),
    f"{_P}cos_min_ratio": ("schedule.min_lr",),
    f"{_P}total_num_steps": ("schedule.total", "schedule.decay_length"),
    f"{_P}cycle_min_lr": ("schedule.warmup_start_lr", "schedule.min_lr"),
    f"{_P}cycle_max_lr": ("optimizer.lr",),
    f"{_P}cycle_first_step_size": ("schedule.warmup", "schedule.decay_start"),
    f"{_P}cycle_second_step_size": ("schedule.decay_length",),
    f"{_P}cycle_first_stair_count": ("schedule.warmup",),
    f"{_P}cycle_second_stair_count": ("schedule.decay",),
    f"{_P}decay_lr_rate": ("schedule.decay",),
}
_INFLUENCES: dict[str, tuple[str, ...]] = {
    "optimizer.params.lr": ("optimizer.lr",),
    "hf.learning_rate": ("optimizer.lr",),
    "scheduler.type": (
        "schedule.decay",
        "schedule.warmup_offset",
        "schedule.warmup_shape",
        "schedule.decay_start",
        "schedule.unit",
    ),
    **_DS_PARAMS,
    "hf.max_steps": ("schedule.total", "schedule.decay_length", "schedule.unit"),
    "hf.num_train_epochs": (),
    "hf.lr_scheduler_type": ("schedule.decay", "schedule.warmup_offset", "schedule.warmup_shape", "schedule.min_lr"),
    "hf.lr_scheduler_kwargs": ("schedule.min_lr", "schedule.decay_start", "schedule.decay_length"),
    "hf.warmup_steps": ("schedule.warmup", "schedule.decay_start", "schedule.decay_length"),
    "hf.warmup_ratio": ("schedule.warmup", "schedule.decay_start", "schedule.decay_length"),
    at.SCHEDULE: ("schedule.decay",),
    _LR: ("optimizer.lr",),
    "@schedule.peak": ("optimizer.lr",),
    "@schedule.warmup": ("schedule.warmup", "schedule.decay_start"),
    "@schedule.total": ("schedule.total", "schedule.decay_length"),
    "@schedule.start": ("schedule.warmup_start_lr",),
    "@schedule.floor": ("schedule.min_lr",),
}

ROWS: tuple[Row, ...] = (
    linked(
        list(_INFLUENCES),
        ["optimizer.lr", *FIELDS],
        read=_read,
        write=_write,
        influences=_INFLUENCES,
    ),
)
