"""Layouts that run and waste: bubbles, slow links, padding."""

from __future__ import annotations

from collections.abc import Iterator

from translator.checks.registry import rule
from translator.findings import Level
from translator.subject import Remark, Subject

_PIPELINE = "parallel.pipeline.degree"
# Share of a step that a pipeline may idle before it is worth a word; a quarter is what 1F1B loses at 3 * (stages - 1)
# micro batches.
_IDLE = 0.25


@rule("P500")
def pipeline_idles(subject: Subject) -> Iterator[Remark]:
    """Few micro batches for a deep pipeline.

    Under 1F1B with v model chunks per rank each rank idles (p - 1) / v of the m micro batches' time: the share
    (p - 1) / (v * m + p - 1) of the step (Narayanan et al. 2021, section 2.2, arXiv:2104.04473).

    Why: the cards of a pipeline that is filled with too few micro batches wait for one another.
    Example: pipeline degree 8 and 8 micro batches per step idle 47 % of the time.
    Fix: a smaller micro batch or a larger global batch, more chunks per rank (interleaving), or fewer stages.
    Source: megatron/core/pipeline_parallel/schedules.py:1995 (core 0.18.0) warms up with p - rank - 1 micro batches.
    """
    degree = subject.size(_PIPELINE)
    micro_batches = subject.leaf("batch.accumulation")
    if degree < 2 or not isinstance(micro_batches, int) or micro_batches < 1:
        return
    chunks = max(subject.size("parallel.pipeline.stages_per_rank"), 1)
    idle = (degree - 1) / (chunks * micro_batches + degree - 1)
    schedule = subject.leaf("parallel.pipeline.schedule")
    if idle < _IDLE or (isinstance(schedule, str) and schedule.startswith(("zero", "zb", "dual"))):
        return
    message = (
        f"{micro_batches} micro batches per step in {degree} pipeline stages: each rank idles {idle:.0%} of the time"
    )
    yield Remark(
        message, "smaller micro batches, a larger global batch, interleaving, or fewer stages", field=_PIPELINE
    )


@rule("P501", Level.NOTE)
def no_sequence_parallel(subject: Subject) -> Iterator[Remark]:
    """Tensor parallelism without sequence parallelism.

    Norms, dropouts and residuals are then held in full on every rank of the tensor group. Splitting them along the
    sequence costs no extra communication (Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2).

    Why: memory for activations that the ranks hold more than once.
    Example: tensor degree 8 without sequence parallelism.
    Fix: switch sequence parallelism on.
    Source: megatron/core/tensor_parallel/layers.py:461 (core 0.18.0) gathers and scatters instead of all-reducing.
    """
    if subject.size("parallel.tensor") > 1 and subject.leaf("parallel.sequence_parallel") is False:
        message = f"tensor degree {subject.size('parallel.tensor')} without sequence parallelism"
        yield Remark(message, "switch sequence parallelism on; it costs no communication", field="parallel.tensor")
