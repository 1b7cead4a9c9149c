"""The batch triangle: ``train_batch_size = micro batch * accumulation * ranks`` (runtime/config.py:889 at 0.19.2)."""

from __future__ import annotations

import math

from translator.findings import Level
from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.settle.elastic import SECTION, settle_elastic
from translator.frameworks.deepspeed.settle.state import CONFIG, WORLD_SUPPLY, Number, State
from translator.native import WORLD_SIZE

_KEYS = (at.TRAIN_BATCH, at.MICRO_BATCH, at.ACCUMULATION)


def settle_degrees(state: State) -> None:
    """Degrees that divide the world, and the size that batches are computed with."""
    tensor = max(1, state.whole("tensor_parallel.autotp_size"))
    sequence = max(1, state.whole("sequence_parallel_size", 1))
    expert = max(1, state.whole("expert_parallel.autoep_size", 1)) if state.on("expert_parallel.enabled") else 1
    state.put(at.TENSOR, tensor, "tensor_parallel.autotp_size")
    state.put(at.SEQUENCE, sequence, "sequence_parallel_size")
    state.put(at.EXPERT, expert, "expert_parallel.autoep_size")
    state.put(at.PIPELINE, 1, "JSON has no pipeline degree; PipelineModule(num_stages=...) does")
    world = state.world
    if world is None:
        return
    _divides(state, world, tensor, sequence, expert)
    dp: Number = world
    reason = f"the world size ({CONFIG}:693)"
    mesh = state.whole("data_parallel_size") if state.given("sequence_parallel_size") else 0
    if mesh:
        dp, reason = mesh, "data_parallel_size (deepspeed/__init__.py:189)"
    elif state.given("sequence_parallel_size") and state.since("0.19.2"):
        stated = state.number("sequence_parallel_size")
        if not stated and not state.missing("sequence_parallel_size"):
            dp, reason = 1, f"ranks cannot be divided by sequence_parallel_size, and count as one ({CONFIG}:697)"
            state.put(at.DP, dp, reason)
            message = f"ranks cannot be divided by sequence_parallel_size, so batches count one rank ({CONFIG}:697)"
            state.say("S239", message, "sequence_parallel_size", "write a number from 1", Level.WARNING)
            return
        dp = world / (stated or sequence)
        reason = f"the world size over sequence_parallel_size ({CONFIG}:691)"
        if sequence > 1 and dp == int(dp):
            message = "the division leaves a fractional number, so train_batch_size prints as one (8.0)"
            state.note("S239", message, "sequence_parallel_size")
    state.put(at.DP, int(dp) if dp == int(dp) else dp, reason)
    if world % (tensor * sequence) == 0:
        state.put(at.DATA_PARALLEL, world // (tensor * sequence), "the world size over tensor and sequence degrees")
    if tensor > 1:
        message = (
            f"batch sizes are computed with all {world} ranks, although {tensor} of each work on the same samples: "
            f"the {world // tensor} groups see 1/{tensor} of train_batch_size"
        )
        state.note("S237", message, "tensor_parallel.autotp_size", "count one sample per group, not per rank")


def _divides(state: State, world: int, tensor: int, sequence: int, expert: int) -> None:
    for name, degree, address in (
        ("tensor", tensor, "tensor_parallel.autotp_size"),
        ("sequence", sequence, "sequence_parallel_size"),
        ("expert", expert, "expert_parallel.autoep_size"),
    ):
        if world % degree:
            state.say("S238", f"{world} ranks are not a multiple of the {name} parallel degree {degree}", address)


def settle_batch(state: State) -> None:
    """The three sizes, as far as they follow."""
    if state.on(f"{SECTION}.enabled") and not state.since("0.19.8"):
        settle_elastic(state)
        if all(state.number(key) for key in _KEYS) and (dp := state.number(at.DP)):
            _check(state, dp)
        return
    stated = {key: state.get(key) for key in _KEYS}
    unknown = [key for key in _KEYS if state.missing(key) is not None]
    if not _numbers(state, stated):
        return
    if unknown:
        _partly(state, stated, unknown)
        return
    train, micro, steps = (stated[key] for key in _KEYS)
    if train is None and micro is None:
        message = f"neither train_batch_size nor train_micro_batch_size_per_gpu is there ({CONFIG}:950)"
        state.say("S200", message, at.TRAIN_BATCH, "write one of them")
        return
    dp = state.number(at.DP)
    if dp is None:
        _without_world(state, train, micro, steps)
        return
    _triangle(state, dp)


def _numbers(state: State, stated: dict[str, object]) -> bool:
    """Whether all that is stated can be computed with."""
    fine = True
    for key, value in stated.items():
        whole = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value) and value == int(value))
        if value is not None and (isinstance(value, bool) or not whole):
            if value != "auto":
                message = f"{key} is {value!r}, which DeepSpeed cannot compute with"
                state.say("S203", message, key, "write a whole number")
                state.lack(key, repr(value), "DeepSpeed cannot compute with it", "write a whole number")
            fine = False
    return fine


def _partly(state: State, stated: dict[str, object], unknown: list[str]) -> None:
    """One of the sizes waits for the person; the others may follow later."""
    numbers = {key: value for key in _KEYS if key not in unknown and (value := state.number(key)) is not None}
    for key, value in numbers.items():
        if value <= 0:
            state.say("S201", f"{key} is {value}, and must be more than 0 ({CONFIG}:893)", key, "write a whole number")
            return
    train, dp = numbers.pop(at.TRAIN_BATCH, None), state.number(at.DP)
    if train is not None and dp is not None and train % (dp * math.prod(numbers.values())):
        others = "".join(f" times {key} {value}" for key, value in numbers.items())
        message = f"train_batch_size {train} is no multiple of {dp} ranks{others} ({CONFIG}:899)"
        state.say("S202", message, at.TRAIN_BATCH, "make it a multiple")
    lacking = next(missing for key in unknown if (missing := state.missing(key)))
    for key in _KEYS:
        if key in unknown or stated[key] is not None:
            continue
        if key == at.ACCUMULATION and at.TRAIN_BATCH not in state.native.given:
            state.put(key, 1, f"absent, and train_batch_size too ({CONFIG}:944)")
        else:
            state.lack(key, lacking.expression, lacking.reason, lacking.supply)


def _without_world(state: State, train: object, micro: object, steps: object) -> None:
    supply = WORLD_SUPPLY
    stated = state.native.given.get(WORLD_SIZE)
    if stated is not None and stated.missing is not None:
        supply = stated.missing.supply or supply
    reason = "it depends on the number of ranks"
    if train is None:
        if steps is None:
            state.put(at.ACCUMULATION, 1, f"absent, and train_batch_size too ({CONFIG}:944)")
        state.lack(at.TRAIN_BATCH, at.TRAIN_BATCH, reason, supply)
        return
    if micro is None:
        if steps is None:
            state.put(at.ACCUMULATION, 1, f"absent, and the micro batch too ({CONFIG}:939)")
        state.lack(at.MICRO_BATCH, at.MICRO_BATCH, reason, supply)
    elif steps is None:
        state.lack(at.ACCUMULATION, at.ACCUMULATION, reason, supply)


def _triangle(state: State, dp: Number) -> None:
    train, micro, steps = (state.number(key) for key in _KEYS)
    if train is not None and micro is not None and steps is None and micro:
        steps = train // micro // dp
        state.put(at.ACCUMULATION, _whole(steps), f"{train} over {micro} over {dp} ranks ({CONFIG}:919)")
    elif train is not None and micro is None:
        steps = 1 if steps is None else steps
        micro = train // dp // steps if steps else 0
        if state.get(at.ACCUMULATION) is None:
            state.put(at.ACCUMULATION, 1, f"absent, and the micro batch too ({CONFIG}:939)")
        state.put(at.MICRO_BATCH, _whole(micro), f"{train} over {dp} ranks over {steps} ({CONFIG}:925)")
    elif train is None and micro is not None:
        steps = 1 if steps is None else steps
        train = micro * steps * dp
        if state.get(at.ACCUMULATION) is None:
            state.put(at.ACCUMULATION, 1, f"absent, and train_batch_size too ({CONFIG}:944)")
        state.put(at.TRAIN_BATCH, _whole(train), f"{micro} times {steps} times {dp} ranks ({CONFIG}:931)")
    _check(state, dp)


def _check(state: State, dp: Number) -> None:
    train, micro, steps = (state.number(key) or 0 for key in _KEYS)
    for key, value in zip(_KEYS, (train, micro, steps), strict=True):
        if value <= 0:
            message = f"{key} is {value}, and must be more than 0 ({CONFIG}:893)"
            derived = state.native.derived.get(key)
            state.say("S201", f"{message}; it is {derived}" if derived else message, key, "make the sizes divisible")
            return
    if train != micro * steps * dp:
        message = f"train_batch_size {train} is not {micro} per GPU times {steps} steps times {dp} ranks ({CONFIG}:899)"
        fix = f"write {at.TRAIN_BATCH} {micro * steps * dp}, or leave one of the three out"
        state.say("S202", message, at.TRAIN_BATCH, fix)
        return
    real = state.number(at.DATA_PARALLEL)
    consumed = train if real is None else micro * steps * real
    state.put(at.GLOBAL_BATCH, _whole(consumed), "micro batch times accumulation times ranks with samples of their own")


def _whole(value: Number) -> Number:
    return int(value) if math.isfinite(value) and value == int(value) else value
