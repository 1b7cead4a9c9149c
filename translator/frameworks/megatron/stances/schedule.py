"""Megatron-LM on learning-rate schedules; all its counters are samples."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.differences.wording import Whatever, number
from translator.frameworks.megatron.stances.training import at
from translator.subject import Subject

_SCHEDULER = "megatron/core/optimizer_param_scheduler.py"
_TRAINING = "megatron/training/training.py"
_STYLES = {"linear": "linear", "cosine": "cosine", "inverse_sqrt": "inverse-square-root", "constant": "constant"}


@stance("D316")
def warmup_start(subject: Subject) -> Stance | None:
    """The first step is taken at the start of the warm-up."""
    warmup = subject.leaf("schedule.warmup")
    if warmup is None or subject.leaf("schedule.decay") is None:
        return None
    if not warmup:
        return Stance("no warm-up", "trains at the peak from the first step", at(_SCHEDULER, 230), "lr_warmup_iters")
    start, offset = subject.leaf("schedule.warmup_start_lr") or 0.0, subject.leaf("schedule.warmup_offset")
    way = "for a first step that is one step on, set --lr-warmup-init to lr / N and --lr-warmup-iters to N - 1"
    ways = {"1 0": way}
    if offset == 1:
        says = "begins its warm-up at peak / N by --lr-warmup-init, one step on"
        return Stance(f"1 {number(start)}", says, at(_SCHEDULER, 231), "lr_warmup_init", ways)
    says = f"takes the first step at the start of the warm-up, {number(start)}"
    return Stance(f"0 {number(start)}", says, at(_SCHEDULER, 231), "lr_warmup_init", ways)


@stance("D317")
def warmup_shape(subject: Subject) -> Stance | None:
    """Always a line."""
    if not subject.leaf("schedule.warmup"):
        return None
    return Stance("linear", "warms up linearly", at(_SCHEDULER, 231), "lr_warmup_iters")


@stance("D318")
def decay_shape(subject: Subject) -> Stance | None:
    """Six shapes, three of which may begin late."""
    shape = subject.leaf("schedule.decay")
    if shape is None:
        return None
    style = subject.value("lr_decay_style")
    says = "holds the peak" if shape == "constant" else f"decays by the shape {shape} (--lr-decay-style {style})"
    line = {"constant": 237, "inverse_sqrt": 247, "linear": 259, "cosine": 261}.get(shape, 270)
    ways = {kind: f"set --lr-decay-style to {word}" for kind, word in _STYLES.items()}
    late = {"exponential": "exponential"} | ({"sqrt": "minus_sqrt"} if subject.version >= (0, 14) else {})
    ways |= {kind: f"set --lr-decay-style WSD and --lr-wsd-decay-style {word}" for kind, word in late.items()}
    return Stance(shape, says, at(_SCHEDULER, 263 if style == "WSD" else line), "lr_decay_style", ways)


@stance("D319")
def decay_span(subject: Subject) -> Stance | None:
    """From the end of the warm-up to the end of the decay, which counts from the first step; then the floor."""
    begin, length = subject.leaf("schedule.decay_start"), subject.leaf("schedule.decay_length")
    if begin is None or length is None or subject.leaf("schedule.decay") in (None, "constant", "inverse_sqrt"):
        return None
    unit = subject.leaf("schedule.unit") or "steps"
    says = f"decays from {number(begin)} to {number(begin + length)} {unit}, warm-up included, and then holds its floor"
    ways = Whatever("set --lr-decay-iters, which counts from the start of the run; for a late decay use WSD")
    return Stance(f"{unit} {number(begin)} {number(length)}", says, at(_SCHEDULER, 240), "lr_decay_iters", ways)


@stance("D320")
def decay_floor(subject: Subject) -> Stance | None:
    """An absolute rate."""
    floor = subject.leaf("schedule.min_lr")
    if floor is None or subject.leaf("schedule.decay") in (None, "constant"):
        return None
    ways = Whatever("set --min-lr, an absolute rate, to {kind}")
    return Stance(number(floor), f"decays to {number(floor)}, an absolute rate", at(_SCHEDULER, 282), "min_lr", ways)


@stance("D321")
def unit(subject: Subject) -> Stance | None:
    """Samples; training by iterations multiplies them by the whole batch."""
    kind = subject.leaf("schedule.unit")
    if kind is None:
        return None
    if kind == "samples":
        says = "counts its schedule in samples that were consumed"
        return Stance("samples", says, at(_TRAINING, 1852), "train_samples", {"steps": "train by --train-iters"})
    if subject.leaf("batch.steps"):
        says = "counts its schedule in samples, each iteration taken as one global batch"
        return Stance("samples", says, at(_TRAINING, 1835), "train_iters")
    return Stance("steps", "counts its schedule in iterations", at(_TRAINING, 1835), "train_iters")


@stance("D315")
def peak(subject: Subject) -> Stance | None:
    """One number."""
    rate = subject.leaf("optimizer.lr")
    if rate is None:
        return None
    ways = Whatever("set --lr to {kind}")
    return Stance(number(rate), f"peaks at {number(rate)}, by --lr", at(_SCHEDULER, 226), "lr", ways)


@stance("D322")
def warmup_length(subject: Subject) -> Stance | None:
    """Iterations, samples, or a share of the decay, not of the run."""
    length, unit = subject.leaf("schedule.warmup"), subject.leaf("schedule.unit") or "steps"
    if length is None:
        return None
    fraction = subject.value("lr_warmup_fraction")
    ways = Whatever("set --lr-warmup-iters")
    if fraction is not None:
        says = f"warms up over {number(length)} {unit}, {number(fraction)} of the decay"
        return Stance(f"{unit} {number(length)}", says, at(_TRAINING, 1841), "lr_warmup_fraction", ways)
    says = f"warms up over {number(length)} {unit}"
    return Stance(f"{unit} {number(length)}", says, at(_TRAINING, 1843), "lr_warmup_iters", ways)
