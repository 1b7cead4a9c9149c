"""Learning-rate schedules that do not do what their author means."""

from __future__ import annotations

from collections.abc import Iterator

from translator.checks.registry import rule
from translator.subject import Remark, Subject


@rule("P510")
def warmup_never_ends(subject: Subject) -> Iterator[Remark]:
    """The run ends before its warm-up does.

    Why: the peak is never reached, so the learning rate in the configuration is not the one that is used.
    Example: 2,000 steps of warm-up in a run of 1,000 steps.
    Fix: a shorter warm-up or a longer run.
    Source: megatron/core/optimizer_param_scheduler.py:230 (core 0.18.0): linear up to the end of the warm-up.
    """
    total, warmup = subject.leaf("schedule.total"), subject.leaf("schedule.warmup")
    if isinstance(total, int) and isinstance(warmup, int | float) and 0 < total <= warmup:
        unit = subject.leaf("schedule.unit") or "steps"
        message = f"a warm-up of {warmup:g} {unit} in a run of {total} {unit} never reaches the peak"
        yield Remark(message, "shorten the warm-up, or train longer", field="schedule.warmup")


# How far the length of a decay may lie from that of the run before it is worth a word.
_FAR = 2.0


@rule("P511")
def decay_and_run_differ(subject: Subject) -> Iterator[Remark]:
    """A decay that is much longer or shorter than the run.

    Why: the learning rate stays near its peak to the end, or sits at its floor for most of the run. Often the length
    was left behind by another configuration.
    Example: a decay over 320,000 steps in a run of 50.
    Fix: leave the length of the decay out, where the framework then takes the run's; or state that of the run.
    Source: megatron/training/training.py:1833 (core 0.18.0) takes the run's length only where none is stated.
    """
    total, length = subject.leaf("schedule.total"), subject.leaf("schedule.decay_length")
    warmup = subject.leaf("schedule.warmup") or 0
    if subject.leaf("schedule.decay") in (None, "constant") or not isinstance(total, int) or total < 1:
        return
    if not isinstance(length, int | float) or length <= 0 or not isinstance(warmup, int | float):
        return
    unit = subject.leaf("schedule.unit") or "steps"
    end = (subject.leaf("schedule.decay_start") or warmup) + length
    if end > total * _FAR:
        message = f"the decay ends after {end:g} {unit}, but the run has {total}: the floor is never near"
        yield Remark(message, "a decay as long as the run", field="schedule.decay_length")
    elif end * _FAR < total:
        message = f"the decay ends after {end:g} of {total} {unit}; the rest trains at the floor"
        yield Remark(message, "a decay as long as the run, unless it is meant", field="schedule.decay_length")


@rule("P512")
def floor_is_the_peak(subject: Subject) -> Iterator[Remark]:
    """A floor as high as the peak.

    Why: a decay between two equal rates decays nothing.
    Example: learning rate and minimum both 1e-5 with a cosine decay.
    Fix: a lower floor (a tenth of the peak is usual), or a constant schedule.
    Source: megatron/core/optimizer_param_scheduler.py:241 (core 0.18.0): the rate ends at the floor.
    """
    peak, floor = subject.leaf("optimizer.lr"), subject.leaf("schedule.min_lr")
    if subject.leaf("schedule.decay") in (None, "constant") or not all(
        isinstance(x, float | int) for x in (peak, floor)
    ):
        return
    if peak > 0 and floor == peak:
        message = f"the floor of the decay is the peak, {peak:g}: the learning rate does not decay"
        yield Remark(message, "a lower floor, or a constant schedule", field="schedule.min_lr")


# Peaks beyond which Adam-like optimizers are known to diverge on transformers of any size in use.
_HIGH_LR = 0.02


@rule("P513")
def learning_rate_out_of_the_ordinary(subject: Subject) -> Iterator[Remark]:
    """A learning rate that trains nothing, or nothing good.

    Why: a slip in the exponent is quickly made and costs the run.
    Example: `--lr 3` for 3e-4, or a learning rate of 0.
    Fix: published runs of Adam lie between 1e-5 and 6e-3.
    Source: Brown et al. 2020 (arXiv:2005.14165), table 2.1: 6e-5 to 6e-4 for 175B to 125M parameters.
    """
    peak, name = subject.leaf("optimizer.lr"), subject.leaf("optimizer.name")
    if not isinstance(peak, float | int) or isinstance(peak, bool) or name not in ("adam", "adamw", "lion", None):
        return
    if not subject.stated("optimizer.lr"):
        return
    if peak == 0:
        yield Remark("a learning rate of 0 trains nothing", "state the peak", field="optimizer.lr")
    elif peak > _HIGH_LR:
        message = f"a learning rate of {peak:g} for {name or 'the optimizer'}; published runs stay under 6e-3"
        yield Remark(message, "check the exponent", field="optimizer.lr")


@rule("P514")
def half_precision_without_scaling(subject: Subject) -> Iterator[Remark]:
    """fp16 with a fixed loss scale of 1.

    Why: gradients below 6e-8 become zero in fp16; without a scale most do.
    Example: `--fp16 --loss-scale 1`, or `"loss_scale": 1` in the fp16 section.
    Fix: leave the loss scale out (0 under DeepSpeed), which makes it dynamic; or use bf16.
    Source: Micikevicius et al. 2018 (arXiv:1710.03740), section 3.2.
    """
    scale = subject.leaf("precision.loss_scale")
    if subject.leaf("precision.compute") == "fp16" and isinstance(scale, float | int) and 0 < scale <= 1:
        yield Remark(
            f"fp16 with a fixed loss scale of {scale:g}", "a dynamic loss scale, or bf16", field="precision.loss_scale"
        )
