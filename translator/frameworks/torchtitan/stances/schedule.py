"""torchtitan on learning-rate schedules."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.differences.wording import Whatever, number
from translator.frameworks.torchtitan.stances.training import at
from translator.subject import Subject

_S = "lr_scheduler."


def _line(subject: Subject, old: int, middle: int, new: int) -> str:
    """A line of the scheduler's file in the version in force."""
    return at(
        subject,
        f"components/lr_scheduler.py:{old}",
        f"components/lr_scheduler.py:{middle}",
        f"components/optimizer/lr_scheduler.py:{new}",
    )


@stance("D316")
def warmup_start(subject: Subject) -> Stance | None:
    """The first step is one step on, at peak / N."""
    warmup = subject.leaf("schedule.warmup")
    if warmup is None:
        return None
    source, option = _line(subject, 157, 167, 158), f"{_S}warmup_steps"
    if not warmup:
        return Stance("no warm-up", "trains at the peak from the first step", source, option)
    says = f"takes the first step one step on, at 1/{number(warmup)} of the peak"
    return Stance("1 0", says, source, option)


@stance("D317")
def warmup_shape(subject: Subject) -> Stance | None:
    """Always a line."""
    if not subject.leaf("schedule.warmup"):
        return None
    return Stance("linear", "warms up linearly", _line(subject, 161, 171, 162), f"{_S}warmup_steps")


@stance("D318")
def decay_shape(subject: Subject) -> Stance | None:
    """Linear, cosine, or one minus a square root."""
    shape = subject.leaf("schedule.decay")
    if shape is None:
        return None
    line = {"linear": (171, 181, 174), "sqrt": (173, 183, 176)}.get(shape, (175, 185, 178))
    says = "holds the peak" if shape == "constant" else f"decays by the shape {shape}"
    ways = {kind: f"set decay_type to {kind}" for kind in ("linear", "sqrt", "cosine")}
    return Stance(shape, says, _line(subject, *line), f"{_S}decay_type", ways)


@stance("D319")
def decay_span(subject: Subject) -> Stance | None:
    """The last share of the run, or all that follows the warm-up; the formula goes on behind its end."""
    begin, length = subject.leaf("schedule.decay_start"), subject.leaf("schedule.decay_length")
    if begin is None or length is None or subject.leaf("schedule.decay") in (None, "constant"):
        return None
    says = f"decays from {number(begin)} to {number(begin + length)} steps"
    goes_on = subject.leaf("schedule.after_decay") == "continue"
    if goes_on:
        says += ", and then goes on along the formula"
    ways = Whatever("set decay_ratio, the share of the schedule that decays, and total_steps")
    kind = f"steps {number(begin)} {number(length)}{' on' if goes_on else ''}"
    return Stance(kind, says, _line(subject, 125, 135, 126), f"{_S}decay_ratio", ways)


@stance("D320")
def decay_floor(subject: Subject) -> Stance | None:
    """A share of the peak."""
    floor, peak = subject.leaf("schedule.min_lr"), subject.leaf("optimizer.lr")
    if floor is None or subject.leaf("schedule.decay") in (None, "constant"):
        return None
    share = f", {number(floor / peak)} of the peak" if peak else ""
    option = f"{_S}{'lr_min' if subject.reading.version == '0.1.0' else 'min_lr_factor'}"
    ways = Whatever(f"set {option} to {{kind}} over the peak")
    return Stance(number(floor), f"decays to {number(floor)}{share}", _line(subject, 176, 188, 181), option, ways)


@stance("D321")
def unit(subject: Subject) -> Stance:
    """Optimizer steps."""
    source = at(subject, "train.py:442", "train.py:601", "trainer.py:949")
    return Stance("steps", "counts its schedule in optimizer steps", source, "training.steps")


@stance("D315")
def peak(subject: Subject) -> Stance | None:
    """One number."""
    rate = subject.leaf("optimizer.lr")
    if rate is None:
        return None
    option = "optimizer.param_groups" if subject.version >= (0, 3) else "optimizer.lr"
    ways = Whatever("set the lr of the optimizer to {kind}")
    source = at(
        subject, "components/optimizer.py:282", "components/optimizer.py:306", "components/optimizer/optimizer.py:391"
    )
    return Stance(number(rate), f"peaks at {number(rate)}, the optimizer's rate", source, option, ways)


@stance("D322")
def warmup_length(subject: Subject) -> Stance | None:
    """Steps, at most those of the schedule."""
    length = subject.leaf("schedule.warmup")
    if length is None:
        return None
    option, source = f"{_S}warmup_steps", _line(subject, 104, 114, 105)
    absent = "" if subject.given(option) else ", the default of warmup_steps"
    ways = Whatever("set warmup_steps")
    return Stance(f"steps {number(length)}", f"warms up over {number(length)} steps{absent}", source, option, ways)
