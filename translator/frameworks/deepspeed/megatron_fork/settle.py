"""What is in force for a script of a fork: Megatron-LM's settling for its arguments, DeepSpeed's for its JSON."""

from __future__ import annotations

from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.megatron_fork import conflicts, forks
from translator.frameworks.deepspeed.megatron_fork.words import Arguments, OpenError, to_megatron
from translator.frameworks.deepspeed.settle import auto, batch, optimizer, precision, refusals, values_of
from translator.frameworks.deepspeed.settle.state import State
from translator.native import Given, Missing, Native


def settle(native: Native) -> None:
    """Fill in what is in force, with findings for what the fork, Megatron-LM or DeepSpeed refuses."""
    fork = str(native.values[forks.FORK])
    native.values = values_of(native)
    native.derived = {}
    native.values[forks.FORK] = fork
    catalogue = forks.catalogue(fork)
    for dest in catalogue.addresses():
        stated = native.given.get(forks.address(dest))
        if stated is None or stated.missing is None:
            native.values[forks.address(dest)] = catalogue.default(dest) if stated is None else stated.value
    arguments = Arguments(native)
    megatron = to_megatron(native)
    native.values[forks.MEGATRON] = megatron.values
    state = State(native, auto.DEEPSPEED)
    state.put(at.TRAINER, state.trainer, "the script hands the JSON to deepspeed.initialize")
    auto.resolve(state)
    _degrees(state, arguments, megatron)
    if _lacks_json(arguments):
        _assume(state, arguments, megatron)
    batch.settle_batch(state)
    precision.settle_zero(state)
    precision.settle_precision(state, pipelined=arguments.pipelined)
    optimizer.settle_clip(state)
    refusals.check(state)
    refusals.remarks(state)
    conflicts.check(state, arguments, megatron)
    _set_aside(native)


def _set_aside(native: Native) -> None:
    """Keys of the JSON that are not in force get addresses of their own, so that no result takes them over."""
    from translator.frameworks.deepspeed.megatron_fork.table import UNUSED, is_unused

    for key in [key for key in native.given if is_unused(key, native.version)]:
        given = native.given.pop(key)
        native.given[UNUSED + key] = Given(UNUSED + key, given.value, given.written, given.place)
        native.derived.pop(key, None)


def _lacks_json(fork: Arguments) -> bool:
    stated = fork.stated("deepspeed_config")
    return stated is not None and stated.missing is not None


def _degrees(state: State, fork: Arguments, megatron: Native) -> None:
    """The script's degrees, and the ranks that batches are computed with.

    DeepSpeed asks the fork's own groups (``deepspeed/runtime/config.py:683`` at 0.19.2), or the pipeline's grid.
    """
    for address, option in (
        (at.TENSOR, "tensor_model_parallel_size"),
        (at.SEQUENCE, "context_parallel_size"),
        (at.PIPELINE, "pipeline_model_parallel_size"),
        (at.EXPERT, "expert_model_parallel_size"),
    ):
        degree = megatron.values.get(option)
        if isinstance(degree, int):
            state.put(address, degree, "the script's arguments")
    ranks = megatron.values.get("data_parallel_size")
    if isinstance(ranks, int) and ranks > 0:
        state.put(at.DP, ranks, "the script's data parallel size")
        state.put(at.DATA_PARALLEL, ranks, "the world size over tensor, pipeline and sequence degrees")


def _assume(state: State, fork: Arguments, megatron: Native) -> None:
    """The JSON is not there: what must agree with the script does, the rest stays open."""
    stated = fork.stated("deepspeed_config")
    missing = stated.value if stated is not None else None
    assert isinstance(missing, Missing)
    reason = f"the JSON is not there ({missing.expression}), and must agree with the script"
    for address, option in ((at.TRAIN_BATCH, "global_batch_size"), (at.MICRO_BATCH, "micro_batch_size")):
        size = megatron.values.get(option)
        if isinstance(size, int):
            state.put(address, size, reason)
    for address, dest in ((at.FP16, "fp16"), (at.BF16, "bf16")):
        try:
            state.put(address, bool(fork[dest]), reason)
        except OpenError as error:
            found = error.given.value
            assert isinstance(found, Missing)
            state.lack(address, found.expression, found.reason, found.supply)
    stage = fork.get("zero_stage")
    if fork.stated("zero_stage") is not None and isinstance(stage, int):
        state.put(at.STAGE, stage, reason)
    else:
        state.lack(at.STAGE, missing.expression, missing.reason, missing.supply)
    state.lack("gradient_clipping", missing.expression, missing.reason, missing.supply)
