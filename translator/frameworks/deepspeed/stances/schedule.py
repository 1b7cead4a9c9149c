"""DeepSpeed, with its trainer, on learning-rate schedules."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.differences.wording import Whatever, number
from translator.frameworks.deepspeed import addresses
from translator.frameworks.deepspeed.stances.training import ENGINE, at, each, trainer
from translator.subject import Subject

_FILE = "runtime/lr_schedules.py"
_TRAINER = "transformers/optimization.py"
_P = "scheduler.params."
_TYPES = {"linear": "linear", "cosine": "cosine", "inverse_sqrt": "inverse_sqrt", "sqrt": "warmup_stable_decay"}


def _known(subject: Subject) -> bool:
    """Whether JSON or trainer names the schedule; a program may bring its own."""
    return isinstance(subject.value(addresses.SCHEDULE), str)


def _own(subject: Subject) -> bool:
    """Whether the schedule is DeepSpeed's own."""
    name = subject.value(addresses.SCHEDULE)
    return isinstance(name, str) and not name.startswith("hf.")


def _name(subject: Subject) -> str:
    """The schedule as its owner calls it."""
    name = str(subject.value(addresses.SCHEDULE))
    return f"{name.removeprefix('hf.')} of transformers" if name.startswith("hf.") else name


def _option(subject: Subject, own: str, trainers: str) -> str:
    return own if _own(subject) else trainers


@stance("D316")
def warmup_start(subject: Subject) -> Stance | None:
    """DeepSpeed's own lag one step more: two steps at the start."""
    warmup, offset = subject.leaf("schedule.warmup"), subject.leaf("schedule.warmup_offset")
    if warmup is None or subject.leaf("schedule.decay") is None or not _known(subject):
        return None
    option = _option(subject, f"{_P}warmup_num_steps", "hf.warmup_steps")
    source = at(f"{_FILE}:691") if _own(subject) else trainer(_TRAINER, 138)
    if not warmup:
        return Stance("no warm-up", f"trains at the peak from the first step ({_name(subject)})", source, option)
    start = subject.leaf("schedule.warmup_start_lr") or 0.0
    if _own(subject) and subject.leaf("schedule.warmup_shape") == "log":
        offset = -1  # the logarithm of 1 is 0, so that the leaf says the same without the lag
    says = {
        -1: f"takes the first two steps at the start of the warm-up, {number(start)}: "
        f"the engine steps {_name(subject)} after the optimizer",
        1: f"takes the first step one step on ({_name(subject)})",
    }.get(offset, f"takes the first step at the start of the warm-up, {number(start)} ({_name(subject)})")
    ways = {"1 0": "use cosine_warmup_with_min_lr of transformers, the one schedule that begins one step on"}
    if _own(subject):
        ways["0 0"] = "use a schedule of transformers, which takes only one step at the start"
    return Stance(f"{offset or 0} {number(start)}", says, source, option, ways)


@stance("D317")
def warmup_shape(subject: Subject) -> Stance | None:
    """Logarithmic unless told otherwise; transformers' are lines."""
    shape = subject.leaf("schedule.warmup_shape")
    if not subject.leaf("schedule.warmup") or shape is None or not _known(subject):
        return None
    option = f"{_P}warmup_type"
    if shape == "log":
        absent = "" if subject.given(option) else ", the default of warmup_type"
        source = each(subject, f"{_FILE}:709", f"{_FILE}:716", f"{_FILE}:785")
        ways = {"linear": 'set warmup_type to "linear"'}
        return Stance("log", f"warms up by the logarithm of the step{absent}", source, option, ways)
    source = at(f"{_FILE}:718") if _own(subject) else trainer(_TRAINER, 138)
    return Stance(shape, "warms up linearly", source, option, {"log": 'set warmup_type to "log"'})


@stance("D318")
def decay_shape(subject: Subject) -> Stance | None:
    """The name of the scheduler says it."""
    shape = subject.leaf("schedule.decay")
    if shape is None or not _known(subject):
        return None
    says = (
        f"holds the peak ({_name(subject)})"
        if shape == "constant"
        else f"decays by the shape {shape} ({_name(subject)})"
    )
    line = {"WarmupDecayLR": 775, "WarmupCosineLR": 850}.get(str(subject.value(addresses.SCHEDULE)), 719)
    source = at(f"{_FILE}:{line}") if _own(subject) else trainer(_TRAINER, 960)
    ways = {kind: f"set lr_scheduler_type of transformers to {word}" for kind, word in _TYPES.items()}
    return Stance(shape, says, source, _option(subject, "scheduler.type", "hf.lr_scheduler_type"), ways)


@stance("D319")
def decay_span(subject: Subject) -> Stance | None:
    """From the warm-up to ``total_num_steps``, or the end of training under transformers."""
    begin, length = subject.leaf("schedule.decay_start"), subject.leaf("schedule.decay_length")
    if (
        not _known(subject)
        or begin is None
        or length is None
        or subject.leaf("schedule.decay") in (None, "constant", "inverse_sqrt")
    ):
        return None
    says = f"decays from {number(begin)} to {number(begin + length)} steps ({_name(subject)})"
    goes_on = subject.leaf("schedule.after_decay") == "continue"
    if goes_on:
        says += ", and rises again after that"
    source = each(subject, f"{_FILE}:840", f"{_FILE}:847", f"{_FILE}:918") if _own(subject) else trainer(_TRAINER, 139)
    kind = f"steps {number(begin)} {number(length)}{' on' if goes_on else ''}"
    ways = Whatever("set total_num_steps, warm-up included")
    return Stance(kind, says, source, _option(subject, f"{_P}total_num_steps", "hf.max_steps"), ways)


@stance("D320")
def decay_floor(subject: Subject) -> Stance | None:
    """The start of the warm-up, a share of the rate, or 0."""
    floor = subject.leaf("schedule.min_lr")
    if not _known(subject) or floor is None or subject.leaf("schedule.decay") in (None, "constant"):
        return None
    scheduler = str(subject.value(addresses.SCHEDULE))
    what = {"WarmupDecayLR": ", its warmup_min_lr", "WarmupCosineLR": ", by cos_min_ratio"}.get(scheduler, "")
    option = {"WarmupDecayLR": f"{_P}warmup_min_lr", "WarmupCosineLR": f"{_P}cos_min_ratio"}.get(scheduler)
    source = at(f"{_FILE}:{851 if scheduler == 'WarmupCosineLR' else 693}") if _own(subject) else trainer(_TRAINER, 140)
    ways = Whatever("use WarmupCosineLR with cos_min_ratio, or cosine_with_min_lr of transformers: {kind}")
    says = f"decays to {number(floor)}{what} ({_name(subject)})"
    return Stance(number(floor), says, source, option or "hf.lr_scheduler_kwargs", ways)


@stance("D321")
def unit(subject: Subject) -> Stance:
    """Optimizer steps that were not skipped."""
    source = each(subject, f"{ENGINE}:2322", f"{ENGINE}:3011", f"{ENGINE}:3545")
    return Stance("steps", "counts its schedule in optimizer steps", source, f"{_P}total_num_steps")


@stance("D315")
def peak(subject: Subject) -> Stance | None:
    """WarmupLR and WarmupDecayLR bring a peak of their own; other schedules take the optimizer's."""
    rate, scheduler = subject.leaf("optimizer.lr"), subject.value(addresses.SCHEDULE)
    if rate is None:
        return None
    if scheduler in ("WarmupLR", "WarmupDecayLR"):
        option = f"{_P}warmup_max_lr"
        absent = "" if subject.given(option) else f", for {option} is not stated"
        source = at(f"{_FILE}:{757 if scheduler == 'WarmupDecayLR' else 669}")
        ways = Whatever("set warmup_max_lr to {kind}")
        return Stance(number(rate), f"peaks at {number(rate)}{absent}", source, option, ways)
    says = f"peaks at {number(rate)}, the optimizer's rate"
    ways = Whatever("set the lr of the optimizer to {kind}")
    return Stance(number(rate), says, each(subject, f"{ENGINE}:1428", f"{ENGINE}:1772", f"{ENGINE}:2476"), None, ways)


@stance("D322")
def warmup_length(subject: Subject) -> Stance | None:
    """Steps, two at least; or a share of the run under transformers."""
    length = subject.leaf("schedule.warmup")
    if length is None or not _known(subject):
        return None
    says = f"warms up over {number(length)} steps ({_name(subject)})"
    if _own(subject):
        option = f"{_P}warmup_num_steps"
        says += "" if subject.given(option) else f", for {option} is not stated"
        source = at(f"{_FILE}:675")
        ways = Whatever("set warmup_num_steps")
        return Stance(f"steps {number(length)}", says, source, option, ways)
    source = trainer("transformers/training_args.py", 2159)
    return Stance(f"steps {number(length)}", says, source, "hf.warmup_steps", Whatever("set warmup_steps"))
