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
    Source: megatron/core/optimizer_param_scheduler.py:232 (core 0.18.0): linear up to the end of the warm-up.
    """
    total, warmup = subject.leaf("schedule.total"), subject.leaf("schedule.warmup")
    if isinstance(total, int) and isinstance(warmup, int | float) and 0 < total <= warmup:
        unit = subject.leaf("schedule.unit") or "steps"
        message = f"a warm-up of {warmup:g} {unit} in a run of {total} {unit} never reaches the peak"
        yield Remark(message, "shorten the warm-up, or train longer", field="schedule.warmup")
