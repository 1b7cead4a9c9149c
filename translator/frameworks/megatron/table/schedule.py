"""Rows of the learning-rate schedule and the length of training.

Source: `megatron/core/optimizer_param_scheduler.py:209` and `megatron/training/training.py:1827` (core 0.18.0). All
counters are samples there (iterations times the global batch); ratios make iterations equivalent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from translator.compare import equal
from translator.ledger import Entry
from translator.mapping.rows import Row, linked
from translator.mapping.views import NativeView, Sink, SpecView

_STYLES = {"linear": "linear", "cosine": "cosine", "inverse-square-root": "inverse_sqrt", "constant": "constant"}
_LENGTHS = (
    "warmup",
    "warmup_start_lr",
    "warmup_offset",
    "warmup_shape",
    "decay",
    "decay_start",
    "decay_length",
    "min_lr",
    "after_decay",
)
_WSD = {"linear": "linear", "cosine": "cosine", "exponential": "exponential", "minus_sqrt": "sqrt"}


def _read(native: NativeView) -> Mapping[str, Any]:
    by_samples = native("train_samples") is not None and not native("train_iters")
    suffix = "samples" if by_samples else "iters"
    total = native(f"train_{suffix}")
    style = native("lr_decay_style")
    peak = native("lr")
    flat: dict[str, Any] = {
        "schedule.unit": "samples" if by_samples else "steps",
        "schedule.total": total,
        "schedule.warmup_shape": "linear",
        "schedule.min_lr": native("min_lr"),
    }
    length = native(f"lr_decay_{suffix}")
    length = total if length is None else length
    if length is None:
        return flat
    fraction = native("lr_warmup_fraction")
    warmup = fraction * length if fraction is not None else native(f"lr_warmup_{suffix}") or 0
    flat["schedule.warmup"] = float(warmup)
    start = native("lr_warmup_init") or 0.0
    offset = 0
    if warmup and not by_samples and peak and start and equal(start * (warmup + 1), peak):
        # The same line, counted from one step earlier: rates start at peak/(warmup + 1).
        flat["schedule.warmup"], start, offset = float(warmup) + 1, 0.0, 1
    flat["schedule.warmup_start_lr"] = float(start)
    flat["schedule.warmup_offset"] = offset
    if style == "WSD":
        anneal = native(f"lr_wsd_decay_{suffix}")
        flat["schedule.decay"] = _WSD.get(native("lr_wsd_decay_style"), "exponential")
        if anneal is not None:
            flat["schedule.decay_start"], flat["schedule.decay_length"] = float(length - anneal), float(anneal)
    else:
        flat["schedule.decay"] = _STYLES.get(style)
        if style != "constant":
            flat["schedule.decay_start"], flat["schedule.decay_length"] = float(warmup), float(length - warmup)
    if style != "constant" and total is not None and length < total:
        flat["schedule.after_decay"] = "floor"
    return flat


def _write(spec: SpecView, sink: Sink) -> None:
    total, unit = spec("schedule.total"), spec("schedule.unit", "steps")
    scale = 1
    if unit == "tokens":
        scale = spec("batch.seq_len", 1)
        sink.short("schedule.unit", Entry.ADAPTED, "lengths in samples: tokens divided by the sequence length")
        for leaf in ("total", "warmup", "decay_start", "decay_length"):
            sink.short(f"schedule.{leaf}", Entry.ADAPTED, "tokens divided by the sequence length")
    suffix = "iters" if unit == "steps" else "samples"

    def whole(value: float) -> int:
        return round(value / scale)

    if total is not None:
        sink.put(f"train_{suffix}", whole(total))
    elif spec("schedule.warmup") is not None or spec("schedule.decay") is not None:
        sink.need("schedule.total", "the schedule is counted from the length of training; set schedule.total=N")
        for leaf in _LENGTHS:
            sink.short(f"schedule.{leaf}", Entry.UNSUPPORTED, "the length of training is not known")
    warmup, peak = spec("schedule.warmup", 0.0) / scale, spec("optimizer.lr")
    start = spec("schedule.warmup_start_lr", 0.0)
    decay, begin, length = spec("schedule.decay"), spec("schedule.decay_start"), spec("schedule.decay_length")
    end = whole(begin + length) if begin is not None and length is not None else None
    if spec("schedule.warmup_offset") == 1 and warmup:
        if unit == "steps" and not start and peak and warmup > 1:
            sink.put("lr_warmup_init", peak / warmup)
            warmup -= 1
        else:
            why = "the first step uses the start of the warm-up"
            sink.short("schedule.warmup_offset", Entry.APPROXIMATED, why)
    elif start:
        sink.put("lr_warmup_init", start)
    if spec("schedule.warmup_offset") == -1:
        why = "the rate rises from the first step on; the source's first two steps use the start of the warm-up"
        sink.short("schedule.warmup_offset", Entry.APPROXIMATED, why)
    if spec("schedule.warmup_shape", "linear") != "linear":
        sink.short("schedule.warmup_shape", Entry.UNSUPPORTED, "the warm-up is linear")
    if spec("schedule.after_decay") == "continue":
        sink.short("schedule.after_decay", Entry.APPROXIMATED, "after the decay the rate stays at its floor")
    if spec("schedule.min_lr") is not None:
        sink.put("min_lr", spec("schedule.min_lr"))
    _write_decay(spec, sink, suffix, warmup, _Decay(decay, begin, length, end, scale, whole))
    if warmup:
        if abs(warmup - round(warmup)) < 1e-9:
            sink.put(f"lr_warmup_{suffix}", round(warmup))
        elif end or total:
            sink.put("lr_warmup_fraction", warmup / (end or whole(total)))


@dataclass(frozen=True, slots=True)
class _Decay:
    """The decay that is wanted, in the unit of the spec.

    ``scale`` of them are one of Megatron-LM's; ``whole`` turns a length into whole ones, as ``end`` is.
    """

    shape: str | None
    begin: float | None
    length: float | None
    end: int | None
    scale: int
    whole: Callable[[float], int]


def _write_decay(spec: SpecView, sink: Sink, suffix: str, warmup: float, wanted: _Decay) -> None:
    total = spec("schedule.total")
    if wanted.shape is None:
        return
    if wanted.shape == "constant":
        sink.put("lr_decay_style", "constant")
        return
    if wanted.end is not None and (total is None or wanted.end != wanted.whole(total)):
        sink.put(f"lr_decay_{suffix}", wanted.end)
    # Both in samples or iterations: the spec may count tokens.
    from_warmup = wanted.begin is not None and abs(wanted.begin / wanted.scale - warmup) <= 1e-9
    style = {"linear": "linear", "cosine": "cosine", "inverse_sqrt": "inverse-square-root"}.get(wanted.shape)
    if style is not None and (from_warmup or wanted.shape == "inverse_sqrt"):
        sink.put("lr_decay_style", style)
        if not from_warmup:
            for leaf in ("decay_start", "decay_length"):
                sink.short(f"schedule.{leaf}", Entry.APPROXIMATED, "this decay begins where the warm-up ends")
        return
    # A peak that lasts longer than the warm-up is a warm-up, stable, decay schedule.
    words = {neutral: native for native, neutral in _WSD.items()}
    if wanted.shape not in words:
        sink.put("lr_decay_style", "cosine")
        sink.short("schedule.decay", Entry.UNSUPPORTED, f"no decay of shape {wanted.shape}; cosine is written")
        return
    if not sink.put("lr_wsd_decay_style", words[wanted.shape]):
        sink.put("lr_decay_style", style or "linear")
        for leaf in ("decay", "decay_start", "decay_length"):
            sink.short(f"schedule.{leaf}", Entry.APPROXIMATED, "this version has no such WSD schedule")
        return
    sink.put("lr_decay_style", "WSD")
    if wanted.length is not None:
        sink.put(f"lr_wsd_decay_{suffix}", wanted.whole(wanted.length))


ROWS: tuple[Row, ...] = (
    linked(
        [
            "train_iters",
            "train_samples",
            "lr_decay_iters",
            "lr_decay_samples",
            "lr_decay_style",
            "lr_warmup_fraction",
            "lr_warmup_init",
            "lr_warmup_iters",
            "lr_warmup_samples",
            "lr_wsd_decay_iters",
            "lr_wsd_decay_samples",
            "lr_wsd_decay_style",
            "min_lr",
        ],
        [
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
        ],
        read=_read,
        write=_write,
        influences={
            "train_iters": ("schedule.total", "schedule.unit", "schedule.after_decay"),
            "train_samples": ("schedule.total", "schedule.unit", "schedule.after_decay"),
            "lr_decay_iters": ("schedule.decay_start", "schedule.decay_length"),
            "lr_decay_samples": ("schedule.decay_start", "schedule.decay_length"),
            "lr_decay_style": ("schedule.decay",),
            "lr_warmup_fraction": ("schedule.warmup", "schedule.warmup_offset"),
            "lr_warmup_init": ("schedule.warmup_start_lr",),
            "lr_warmup_iters": ("schedule.warmup", "schedule.warmup_offset"),
            "lr_warmup_samples": ("schedule.warmup", "schedule.warmup_offset"),
            "lr_wsd_decay_iters": ("schedule.decay_start", "schedule.decay_length"),
            "lr_wsd_decay_samples": ("schedule.decay_start", "schedule.decay_length"),
            "lr_wsd_decay_style": ("schedule.decay",),
            "min_lr": ("schedule.min_lr",),
        },
    ),
)
