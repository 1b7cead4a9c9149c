"""The learning-rate schedule in force, and its parameters at ``@schedule.*``.

========================= ========================================================================================
``@schedule``             the scheduler's name; ``hf.<type>`` for transformers' own
``@schedule.peak``        absolute rate at the end of the warm-up
``@schedule.start``       absolute rate at the first step
``@schedule.warmup``      steps of warm-up, as the scheduler counts them (at least 2 for DeepSpeed's)
``@schedule.shape``       of the warm-up: ``log`` or ``linear``
``@schedule.decay``       ``linear cosine inverse_sqrt polynomial`` or None
``@schedule.total``       steps of the whole schedule; absent without decay
``@schedule.floor``       absolute rate at the end of the decay
``@schedule.lag``         steps that the engine is behind: 1 for DeepSpeed's own, 0 for transformers'
``@schedule.options``     further arguments (``lr_scheduler_kwargs``)
========================= ========================================================================================
"""

from __future__ import annotations

from translator.findings import Level
from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed import schedules
from translator.frameworks.deepspeed.sections import SCHEDULER, SCHEDULER_CLASSES, parameter_entry
from translator.frameworks.deepspeed.settle import auto, classes
from translator.frameworks.deepspeed.settle.state import ENGINE, State
from translator.native import Missing

_FILE = "runtime/lr_schedules.py"
_LR = f"{at.OPTIMIZER}.lr"
_TRAINER_DECAY = {
    "linear": "linear",
    "cosine": "cosine",
    "cosine_with_min_lr": "cosine",
    "cosine_with_restarts": "cosine",
    "polynomial": "polynomial",
    "inverse_sqrt": "inverse_sqrt",
}


def settle_schedule(state: State) -> None:
    """The scheduler of the JSON, else the trainer's, else none."""
    kind = state.text("scheduler.type")
    stated = state.get("scheduler.type")
    if stated is not None and not kind and not state.missing("scheduler.type"):
        message = f"scheduler.type cannot be {stated!r}: it is the name of a scheduler"
        state.say("S217", message, "scheduler.type", f"write one of {', '.join(SCHEDULER_CLASSES)}")
    if kind and not state.missing("scheduler.type"):
        _from_json(state, kind)
    elif state.trainer == auto.TRANSFORMERS and not state.section("scheduler"):
        _from_trainer(state)
    elif state.trainer == auto.DEEPSPEED and not state.section("scheduler"):
        state.put(at.SCHEDULE, None, "no scheduler section: constant, unless the program brings a scheduler")


def _from_json(state: State, kind: str) -> None:
    from translator.catalogue import load

    catalogue = load("deepspeed", state.native.version)
    state.put(at.SCHEDULE, kind, "scheduler.type")
    for name in ("lr_scheduler_type", "lr_scheduler_kwargs"):
        state.idle(f"hf.{name}", kind, "the JSON has a scheduler, which transformers takes instead")
    _needs(state, kind)
    if kind not in SCHEDULER_CLASSES:
        if kind not in classes.SCHEDULERS:
            message = f"scheduler.type {kind!r} is neither DeepSpeed's nor in torch.optim.lr_scheduler ({ENGINE}:1431)"
            state.say("S217", message, "scheduler.type", f"write one of {', '.join(SCHEDULER_CLASSES)}")
            _without_fields(state, kind)
            return
        message = f"{kind} is looked up in torch.optim.lr_scheduler; its curve is not known here"
        state.note("S217", message, "scheduler.type")
        _without_fields(state, kind)
        return
    for entry in catalogue.entries:
        if entry.key.startswith(f"{SCHEDULER}.{kind}.") and not state.given(entry.address):
            chosen = parameter_entry(catalogue, entry.address, (kind,))
            if chosen is not None and chosen.default is not None:
                state.put(entry.address, chosen.default, f"the default of {kind}")
    if kind in {schedules.WARMUP_DECAY, schedules.WARMUP_COSINE} and not state.given(f"{SCHEDULER}.total_num_steps"):
        message = f"{kind} needs total_num_steps ({_FILE}:753)"
        state.say("S217", message, "scheduler.type", "write scheduler.params.total_num_steps")
    if kind in {schedules.WARMUP, schedules.WARMUP_DECAY}:
        _warmup(state, kind)
    elif kind == schedules.WARMUP_COSINE:
        _cosine(state)
    else:
        _cycles(state, kind)


def _needs(state: State, kind: str) -> None:
    """Arguments without a default, sizes that are divided by, and what torch's schedulers ask of the optimizer."""
    if kind == "OneCycle":
        for name in ("cycle_min_lr", "cycle_max_lr"):
            if not state.given(f"{SCHEDULER}.{name}"):
                state.say("S217", f"OneCycle needs {name} ({_FILE}:442)", "scheduler.type", f"write {name}")
        first = state.get(f"{SCHEDULER}.cycle_first_step_size")
        if first == 0 and not state.get(f"{SCHEDULER}.cycle_second_step_size"):
            message = f"a cycle of no steps is divided by ({_FILE}:486)"
            state.say("S217", message, f"{SCHEDULER}.cycle_first_step_size", "write a number of steps")
    elif kind == "LRRangeTest" and state.get(f"{SCHEDULER}.lr_range_test_step_size") == 0:
        message = f"lr_range_test_step_size is divided by, and cannot be 0 ({_FILE}:344)"
        state.say("S217", message, f"{SCHEDULER}.lr_range_test_step_size", "write a number of steps")
    elif kind in classes.SCHEDULERS:
        needed, _ = classes.SCHEDULERS[kind]
        given = {item.address.rpartition(".")[2] for item in state.native.unknown if item.address.startswith(SCHEDULER)}
        given |= {address.rpartition(".")[2] for address in state.native.given if address.startswith(SCHEDULER)}
        lacking = ", ".join(sorted(needed - given))
        if lacking:
            state.say("S217", f"torch's {kind} needs {lacking}", "scheduler.type", f"write {lacking}")
        wrapper = state.text(at.ENGINE_OPTIMIZER)
        if wrapper not in {"", "none", "AMP"}:
            message = f"torch's {kind} takes torch's optimizers, and the engine wraps this one ({ENGINE}:1425)"
            fix = f"write one of {', '.join(SCHEDULER_CLASSES)}, or make the scheduler in the program"
            state.say("S217", message, "scheduler.type", fix)


def _cycles(state: State, kind: str) -> None:
    """OneCycle moves Adam's beta1 too (runtime/lr_schedules.py:512); what goes on for ever has no fields in a spec."""
    odd = kind == "LRRangeTest" or any(
        state.number(f"{SCHEDULER}.{name}")
        for name in ("decay_lr_rate", "cycle_first_stair_count", "cycle_second_stair_count")
    )
    _copy(state, f"{SCHEDULER}.cycle_max_lr", "@schedule.peak")
    if odd:
        _without_fields(state, kind)
    if kind == "OneCycle" and state.get(f"{SCHEDULER}.cycle_momentum") is not False:
        reason = f"OneCycle moves it between cycle_min_mom and cycle_max_mom ({_FILE}:512)"
        state.lack(
            f"{at.OPTIMIZER}.beta1", "cycle_momentum", reason, "set optimizer.beta1=..., or cycle_momentum to false"
        )


def _without_fields(state: State, kind: str) -> None:
    reason = f"the curve of {kind} has no fields in the spec, and no other scheduler follows it"
    state.lack(at.SCHEDULE, kind, reason, "set schedule.decay and the other fields by hand")


def _copy(state: State, source: str, target: str) -> object:
    """A parameter at its ``@schedule`` address, or the reason why it is open; returns the value."""
    missing = state.missing(source)
    if missing is not None:
        state.lack(target, missing.expression, missing.reason, missing.supply)
        return missing
    value = state.get(source)
    if value is not None:
        state.put(target, value, source)
    return value


def _warmup_length(state: State) -> None:
    length = _copy(state, f"{SCHEDULER}.warmup_num_steps", "@schedule.warmup")
    if isinstance(length, int | float):
        state.put("@schedule.warmup", max(2, int(length)), f"at least 2 ({_FILE}:676)")
        if length <= 0 and state.since("0.19.8"):
            state.say("S217", f"warmup_num_steps must be positive ({_FILE}:733)", f"{SCHEDULER}.warmup_num_steps")
    shape = state.text(f"{SCHEDULER}.warmup_type") or schedules.LOG
    if shape not in {schedules.LOG, schedules.LINEAR}:
        message = f"warmup_type {shape!r} is unknown, so the logarithmic one holds ({_FILE}:678)"
        state.say("S235", message, f"{SCHEDULER}.warmup_type", "write log or linear", Level.WARNING)
        shape = schedules.LOG
    state.put("@schedule.shape", shape, f"{SCHEDULER}.warmup_type")
    if not state.given(f"{SCHEDULER}.warmup_type"):
        message = "the warm-up is logarithmic, as warmup_type is not set: half the rate is there after few steps"
        state.note("S235", message, "scheduler.type", 'set warmup_type to "linear" if that is meant')
    state.put("@schedule.lag", 1, "the engine steps the scheduler after the optimizer, from iteration -1")


def _warmup(state: State, kind: str) -> None:
    _warmup_length(state)
    _copy(state, f"{SCHEDULER}.warmup_min_lr", "@schedule.start")
    peak = f"{SCHEDULER}.warmup_max_lr"
    if state.get(peak) is None and not state.missing(peak) and state.since("0.19.2"):
        _copy(state, _LR, "@schedule.peak")
    else:
        _copy(state, peak, "@schedule.peak")
    if not state.given(peak) and (kind == schedules.WARMUP_DECAY or not state.since("0.19.2")):
        rate = state.get(_LR)
        if rate not in (None, 0.001):
            message = f"warmup_max_lr is not set, so the peak is 0.001 and not the optimizer's {rate} ({_FILE}:757)"
            state.say("S234", message, "scheduler.type", "write warmup_max_lr", Level.WARNING)
    if kind == schedules.WARMUP_DECAY:
        state.put("@schedule.decay", "linear", kind)
        _copy(state, f"{SCHEDULER}.total_num_steps", "@schedule.total")
        _copy(state, f"{SCHEDULER}.warmup_min_lr", "@schedule.floor")
    else:
        state.put("@schedule.decay", None, f"{kind} holds its peak")


def _cosine(state: State) -> None:
    _warmup_length(state)
    rate = _copy(state, _LR, "@schedule.peak")
    state.put("@schedule.decay", "cosine", schedules.WARMUP_COSINE)
    _copy(state, f"{SCHEDULER}.total_num_steps", "@schedule.total")
    for name, target in (("warmup_min_ratio", "@schedule.start"), ("cos_min_ratio", "@schedule.floor")):
        ratio = state.number(f"{SCHEDULER}.{name}")
        if ratio is not None and isinstance(rate, int | float):
            state.put(target, ratio * rate, f"{SCHEDULER}.{name} of the peak")
    if not state.since("0.19.8"):
        state.note("S232", f"after total_num_steps the rate rises again ({_FILE}:848)", "scheduler.type")


def _from_trainer(state: State) -> None:
    """transformers' schedule: created by the Trainer and stepped by the engine (``trainer.py``, create_scheduler)."""
    kind = auto.argument(state, "lr_scheduler_type")
    if isinstance(kind, Missing):
        state.lack(at.SCHEDULE, kind.expression, kind.reason, kind.supply)
        return
    name = str(kind)
    state.put(at.SCHEDULE, f"hf.{name}", "hf.lr_scheduler_type")
    state.put("@schedule.lag", 0, "transformers' schedules begin at their step 0")
    state.put("@schedule.shape", schedules.LINEAR, "transformers warms up linearly")
    state.put("@schedule.start", 0.0, "transformers warms up from 0")
    state.put("@schedule.decay", _TRAINER_DECAY.get(name), "hf.lr_scheduler_type")
    _copy(state, _LR, "@schedule.peak")
    total = auto.total_steps(state)
    warmup = 0 if name == "constant" else auto.warmup_steps(state, total)
    for target, value in (("@schedule.total", total), ("@schedule.warmup", warmup)):
        if isinstance(value, Missing):
            state.lack(target, value.expression, value.reason, value.supply)
        else:
            state.put(target, value, "the trainer's arguments")
    options = state.get("hf.lr_scheduler_kwargs")
    settings = options if isinstance(options, dict) else {}
    if settings:
        state.put("@schedule.options", settings, "hf.lr_scheduler_kwargs")
    peak = state.number("@schedule.peak")
    ratio = settings.get("min_lr_rate")
    floor = settings.get("min_lr", ratio * peak if isinstance(ratio, int | float) and peak is not None else 0.0)
    state.put("@schedule.floor", floor, "lr_scheduler_kwargs" if settings else "transformers decays to 0")
    if isinstance(total, int) and isinstance(warmup, int | float) and not _has_fields(state):
        _without_fields(state, name)


def _has_fields(state: State) -> bool:
    """Whether the table has leaves for the curve in force."""
    from translator.frameworks.deepspeed.table.schedule import leaves_of, settings_of
    from translator.mapping.views import NativeView

    return leaves_of(settings_of(NativeView(state.native.values, {}, state.native.version))) is not None
