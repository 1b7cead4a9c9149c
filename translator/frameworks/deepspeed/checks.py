"""What DeepSpeed accepts and should not: rules on a settled configuration. Files are those of DeepSpeed 0.19.2."""

from __future__ import annotations

from collections.abc import Iterator

from translator.checks.registry import rule
from translator.findings import Level
from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.megatron_fork import forks
from translator.frameworks.deepspeed.settle import auto
from translator.subject import Remark, Subject

_Z = "zero_optimization."
_DEVICES = frozenset({"cpu", "nvme"})
_STAGE_3 = 3
_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
_GIB = 2**30
# Buckets of fewer elements send less than a megabyte at once, far from what links need to be busy; buckets of more
# take the memory of a small model.
_SMALL_BUCKET, _LARGE_BUCKET = 100_000, 4_000_000_000
_SMALL_THRESHOLD = 1000
_HIGH_POWER = 24
_MANY_STEPS = 16
_SHORT_RUN_STEPS = 100
_FAR = 1.1
_RUN = "hf.max_steps"
# Keys of stage 3 alone (runtime/zero/config.py:215-284).
_OF_STAGE_3 = (
    *("stage3_prefetch_bucket_size", "stage3_param_persistence_threshold", "stage3_model_persistence_threshold"),
    *("stage3_max_live_parameters", "stage3_max_reuse_distance", "stage3_gather_16bit_weights_on_model_save"),
    *("sub_group_size", "zero_quantized_weights", "zero_hpz_partition_size"),
)


def _number(subject: Subject, address: str) -> float | None:
    value = subject.value(address)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _stage(subject: Subject) -> int | None:
    """The ZeRO stage, where it is known."""
    value = subject.value(at.STAGE)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _offloads(subject: Subject, what: str) -> bool:
    return subject.value(f"{_Z}offload_{what}.device") in _DEVICES


def _has_fork(subject: Subject) -> bool:
    return subject.reading.native is not None and forks.reads(subject.reading.native)


@rule("P580")
def buckets_count_elements(subject: Subject) -> Iterator[Remark]:
    """A bucket size that reads like bytes.

    `reduce_bucket_size` and `allgather_bucket_size` count elements. A bucket is a buffer of its own: one that is too
    large takes the memory that ZeRO saves, and one that is too small sends many messages.

    Why: Megatron-LM and PyTorch have buckets in megabytes, DeepSpeed in elements; numbers that are carried over are off
    by orders of magnitude.
    Example: `"reduce_bucket_size": 25` for 25 MB, or 8e9 for 8 GB, which are 16 GB in bf16.
    Fix: 5e7 to 5e8 elements.
    Source: runtime/zero/config.py:113 (number of elements), runtime/zero/stage_1_and_2.py:2361 (the buffer).
    """
    stage = _stage(subject)
    for name in ("reduce_bucket_size", "allgather_bucket_size"):
        size, option = _number(subject, f"{_Z}{name}"), f"{_Z}{name}"
        if size is None or not stage or subject.given(option) is None or (stage == _STAGE_3 and name[0] == "a"):
            continue
        if 0 <= size < _SMALL_BUCKET:
            message = f"{name} is {size:g} elements, a message of {size * 2 / 1000:g} kB in 16 bits"
            yield Remark(message, "it counts elements, not megabytes: 5e7 to 5e8 are usual", option=option)
        elif size > _LARGE_BUCKET:
            message = f"{name} is {size:g} elements, a buffer of {size * 2 / _GIB:.0f} GiB in 16 bits"
            yield Remark(message, "it counts elements, not bytes: 5e7 to 5e8 are usual", option=option)


@rule("P581", Level.NOTE)
def overlap_doubles_the_bucket(subject: Subject) -> Iterator[Remark]:
    """Overlapped reduction with a large bucket.

    Why: with `overlap_comm` stages 1 and 2 hold two buckets of gradients instead of one, each of `reduce_bucket_size`
    elements.
    Example: `"overlap_comm": true` with the default bucket of 5e8 elements costs 2 GB in bf16 instead of 1.
    Fix: half the `reduce_bucket_size`, where memory is short.
    Source: runtime/zero/stage_1_and_2.py:2368.
    """
    size = _number(subject, f"{_Z}reduce_bucket_size")
    if _stage(subject) not in {1, 2} or not subject.value(f"{_Z}overlap_comm") or size is None:
        return
    if subject.value(f"{_Z}contiguous_gradients") is False and not _offloads(subject, "optimizer"):
        return
    each = _BYTES.get(str(subject.value(at.COMPUTE_DTYPE)), 2)
    if size * each >= _GIB / 2:
        message = f"overlap_comm holds two buckets of {size:g} elements: {2 * size * each / _GIB:.1f} GiB"
        yield Remark(message, "half the reduce_bucket_size, where memory is short", option=f"{_Z}overlap_comm")


@rule("P582")
def gradients_are_scattered(subject: Subject) -> Iterator[Remark]:
    """Gradients that are not copied into a contiguous buffer.

    Why: each gradient is allocated by itself and freed after its reduction, which fragments the memory of the card; a
    run then fails with memory that is free but in pieces.
    Example: `"contiguous_gradients": false` at stage 2.
    Fix: leave the key out: it is true by default, and always with an offloaded optimizer.
    Source: runtime/zero/config.py:102, runtime/zero/stage_1_and_2.py:249.
    """
    option = f"{_Z}contiguous_gradients"
    if subject.value(option) is False and _stage(subject) in {2, 3} and not _offloads(subject, "optimizer"):
        yield Remark("contiguous_gradients is off, which fragments memory", "leave the key out", option=option)


@rule("P583")
def smallest_parameters_are_gathered(subject: Subject) -> Iterator[Remark]:
    """Stage 3 that shards even norms and biases.

    Why: parameters below `stage3_param_persistence_threshold` stay whole on every rank. With a threshold near 0 each
    norm and bias is gathered by itself in every layer, forward and backward, to save kilobytes.
    Example: `"stage3_param_persistence_threshold": 0`.
    Fix: leave the key out (100,000 elements), or ten times the hidden size, as transformers' "auto" has it.
    Source: runtime/zero/config.py:221, transformers/integrations/deepspeed.py (5.24.0).
    """
    option = f"{_Z}stage3_param_persistence_threshold"
    threshold = _number(subject, option)
    if _stage(subject) == _STAGE_3 and threshold is not None and threshold < _SMALL_THRESHOLD:
        message = f"parameters of {threshold:g} elements and more are sharded, so nearly every norm is gathered alone"
        yield Remark(message, "leave the key out, or ten times the hidden size", option=option)


@rule("P584")
def first_steps_are_skipped(subject: Subject) -> Iterator[Remark]:
    """A first loss scale that is certain to overflow.

    Why: fp16 ends at 65,504. The scale is halved after each overflow, and each overflow is a step that trains nothing;
    the learning rate's warm-up does not wait for all of them.
    Example: `"initial_scale_power": 32`, a first scale of 4.3e9, loses a dozen steps or more at the start.
    Fix: the default, 16.
    Source: runtime/precision_config.py:168, runtime/fp16/loss_scaler.py:265.
    """
    power = _number(subject, "fp16.initial_scale_power")
    if not subject.value(at.FP16) or subject.value("fp16.loss_scale") or power is None or power < _HIGH_POWER:
        return
    message = f"the first loss scale is 2 to the {power:g}, which overflows fp16 until it has been halved often enough"
    yield Remark(message, "the default, 16", option="fp16.initial_scale_power")


@rule("P585")
def timers_wait_for_the_card(subject: Subject) -> Iterator[Remark]:
    """Timers that are left on.

    Why: `wall_clock_breakdown` times forward, backward and step of each micro batch, and waits for the card at each of
    these points, so that nothing overlaps. `flops_profiler.enabled` switches it on too.
    Example: `"wall_clock_breakdown": true` in the configuration of a long run.
    Fix: false, except while something is measured.
    Source: runtime/engine.py:413, runtime/config.py:821, utils/timer.py:40.
    """
    for option in ("wall_clock_breakdown", "memory_breakdown"):
        given = subject.given(option)
        if given is not None and subject.value(option) is True:
            yield Remark(f"{option} slows every step", "false, except while something is measured", option=option)
    option = "flops_profiler.enabled"
    if subject.value(option) is True and subject.given("wall_clock_breakdown") is None:
        message = "flops_profiler.enabled switches wall_clock_breakdown on, which slows every step"
        yield Remark(message, "false, except while something is measured", option=option)


@rule("P586")
def trains_in_fp32(subject: Subject) -> Iterator[Remark]:
    """Training in fp32.

    Why: without `bf16` or `fp16` DeepSpeed leaves the model in fp32: twice the memory, and a fraction of the speed.
    Nothing says so.
    Example: a configuration with `zero_optimization` and neither precision section, or `"bf16": {"enable": true}`.
    Fix: `"bf16": {"enabled": true}`.
    Source: runtime/engine.py:1312.
    """
    if _has_fork(subject) or subject.value(at.TRAINER) != auto.DEEPSPEED:
        return
    wide = subject.value(at.COMPUTE_DTYPE) == "fp32" and subject.value(at.PARAM_DTYPE) == "fp32"
    if wide and _stage(subject) and not subject.value("amp.enabled"):
        message = "neither bf16 nor fp16 is on, so the model is trained in fp32"
        yield Remark(message, '"bf16": {"enabled": true}', option=at.BF16)


@rule("P587")
def schedule_and_run_differ(subject: Subject) -> Iterator[Remark]:
    """A schedule of another length than the run.

    Why: DeepSpeed's schedulers follow `total_num_steps` and know nothing of the trainer's number of steps. A schedule
    that is shorter leaves the rest of the run at its floor (WarmupCosineLR even rises again); one that is longer never
    gets there.
    Example: `"total_num_steps": 10000` with `--max_steps 20000`.
    Fix: the same number in both, or "auto" with transformers.
    Source: runtime/lr_schedules.py:786 and :848.
    """
    option = "scheduler.params.total_num_steps"
    steps, run = _number(subject, option), _number(subject, _RUN)
    if subject.given(option) is None or steps is None or run is None or steps <= 0 or run <= 0:
        return
    if max(steps / run, run / steps) > _FAR:
        message = f"the schedule is {steps:g} steps long, and the run {run:g}"
        yield Remark(message, "the same number in both", option=option)


@rule("P588")
def gradients_travel_with_each_micro_batch(subject: Subject) -> Iterator[Remark]:
    """Many accumulation steps at stage 2 or 3.

    Why: these stages hold gradients sharded, so they are reduced after each micro batch and not once per step. Stage 1
    reduces once.
    Example: `"gradient_accumulation_steps": 64` at stage 2 sends the gradients 64 times per step.
    Fix: a larger micro batch, or stage 1 where the gradients fit.
    Source: runtime/zero/stage_1_and_2.py:1628.
    """
    stage, steps = _stage(subject), _number(subject, at.ACCUMULATION)
    ranks = _number(subject, at.DATA_PARALLEL)
    if stage in {2, _STAGE_3} and steps is not None and steps >= _MANY_STEPS and ranks != 1:
        message = f"stage {stage} reduces the gradients {steps:g} times per step, once for each micro batch"
        yield Remark(message, "a larger micro batch, or stage 1 where the gradients fit", option=at.ACCUMULATION)


@rule("P589")
def offload_without_pinned_memory(subject: Subject) -> Iterator[Remark]:
    """Offloading through memory that is not pinned.

    Why: copies between card and host are then slower by half and more, and cannot overlap with work.
    Example: `"offload_optimizer": {"device": "cpu"}`; `pin_memory` is false by default.
    Fix: `"pin_memory": true`, where the host has the memory.
    Source: runtime/zero/offload_config.py:45 and :72.
    """
    for what in ("optimizer", "param"):
        device = f"{_Z}offload_{what}.device"
        useful = _stage(subject) if what == "optimizer" else _stage(subject) == _STAGE_3
        if useful and _offloads(subject, what) and subject.value(f"{_Z}offload_{what}.pin_memory") is False:
            message = f"offload_{what} goes through memory that is not pinned"
            yield Remark(message, '"pin_memory": true', option=device)


@rule("P590")
def offload_without_zero(subject: Subject) -> Iterator[Remark]:
    """An offloaded optimizer without ZeRO.

    Why: at stage 0 nothing is offloaded, but the engine still makes DeepSpeed's optimizer for the CPU. It refuses
    parameters on a card at the first step.
    Example: `"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}`.
    Fix: stage 1, 2 or 3, or no `offload_optimizer`.
    Source: runtime/engine.py:1073 and :1795, ops/adam/cpu_adam.py:138.
    """
    if _stage(subject) == 0 and _offloads(subject, "optimizer"):
        message = "offload_optimizer is on at stage 0, where nothing is offloaded and the optimizer is the CPU's"
        yield Remark(message, "stage 1, 2 or 3, or no offload_optimizer", option=f"{_Z}offload_optimizer.device")


@rule("P591", Level.NOTE)
def keys_of_stage_3(subject: Subject) -> Iterator[Remark]:
    """Keys of stage 3 at another stage.

    Why: they are read by stage 3 alone and do nothing below, so what they promise does not happen.
    Example: `"stage3_max_live_parameters": 1e9` at stage 2.
    Fix: drop them, or stage 3.
    Source: runtime/zero/config.py:215-284, runtime/engine.py:2152.
    """
    stage = _stage(subject)
    if stage is None or stage == _STAGE_3:
        return
    idle = [name for name in _OF_STAGE_3 if subject.given(f"{_Z}{name}") is not None and subject.value(f"{_Z}{name}")]
    if idle:
        message = f"{', '.join(idle)} {'do' if len(idle) > 1 else 'does'} nothing at stage {stage}"
        yield Remark(message, "drop them, or stage 3", option=f"{_Z}{idle[0]}")


@rule("P592")
def saved_model_has_no_weights(subject: Subject) -> Iterator[Remark]:
    """Stage 3 that does not save the model's weights.

    Why: at stage 3 no rank has the weights, and unless they are gathered `save_16bit_model`, which trainers call, saves
    nothing. What there is are the shards of a checkpoint, for zero_to_fp32.py.
    Example: stage 3 under transformers' Trainer without the key.
    Fix: `"stage3_gather_16bit_weights_on_model_save": true`.
    Source: runtime/engine.py:4773.
    """
    option = f"{_Z}stage3_gather_16bit_weights_on_model_save"
    if _stage(subject) == _STAGE_3 and subject.value(option) is False and not _has_fork(subject):
        yield Remark(
            "at stage 3 the model's weights are not gathered to be saved", f'"{option[18:]}": true', option=option
        )


@rule("P593", Level.NOTE)
def norms_decay(subject: Subject) -> Iterator[Remark]:
    """Weight decay on norms and biases.

    Why: an optimizer of the JSON gives all parameters the same decay, and decay pulls the scales of norms to 0. Recipes
    for transformers spare norms and biases; so do Megatron-LM, and transformers with its own optimizer.
    Example: `"weight_decay": 0.1` in `optimizer.params`.
    Fix: parameter groups by the program, or no `optimizer` section under transformers.
    Source: runtime/engine.py:1772: what the program passes as model_parameters is taken as it is.
    """
    decay = _number(subject, "@optimizer.weight_decay")
    option = "optimizer.params.weight_decay"
    if subject.value(at.DECAY_ALL) is True and decay is not None and decay > 0 and subject.given(option) is not None:
        message = f"weight decay {decay:g} covers norms and biases too, unless the program makes parameter groups"
        yield Remark(message, "parameter groups by the program", option=option)


@rule("P594")
def secondary_groups_leave_the_node(subject: Subject) -> Iterator[Remark]:
    """Secondary shards of ZeRO++ that span nodes.

    Why: `zero_hpz_partition_size` keeps a second copy of the weights within a group, so that the backward pass gathers
    them over the links inside a node. A group that is larger than a node pays the memory and gains nothing.
    Example: `"zero_hpz_partition_size": 16` on nodes of 8 cards.
    Fix: the number of cards in a node.
    Source: utils/groups.py:772, runtime/engine.py:2125.
    """
    option = f"{_Z}zero_hpz_partition_size"
    size, cards = _number(subject, option), subject.leaf("launch.gpus_per_node")
    if _stage(subject) == _STAGE_3 and size is not None and isinstance(cards, int) and size > cards > 0:
        message = f"zero_hpz_partition_size {size:g} on nodes of {cards} cards: the secondary shards span nodes"
        yield Remark(message, f"{cards}, the cards of a node", option=option)


@rule("P595", Level.NOTE)
def prints_each_step(subject: Subject) -> Iterator[Remark]:
    """A line in the log for every step.

    Why: with `steps_per_print` 1 the engine reads rate and momentum of every group and writes them at each step.
    Example: `"steps_per_print": 1`, copied from a tutorial.
    Fix: 100 or more, or no key: nothing is printed then.
    Source: runtime/engine.py:3018.
    """
    steps, run = _number(subject, "steps_per_print"), _number(subject, _RUN)
    if steps == 1 and (run is None or run > _SHORT_RUN_STEPS):
        yield Remark("steps_per_print 1 writes a report at every step", "100 or more", option="steps_per_print")
