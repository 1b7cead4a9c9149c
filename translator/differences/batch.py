"""Batch, loss and accumulation: what is averaged over what."""

from __future__ import annotations

from typing import Any

from translator.differences.registry import Pair, difference
from translator.differences.wording import number, percent
from translator.findings import Level
from translator.subject import Subject


@difference("D300", "loss.normalization")
def loss_normalisation(pair: Pair) -> str | None:
    """The normalisation of the loss.

    Either every token of the global batch counts the same, or means are averaged: those of micro batches, or those of
    the ranks. Then tokens of micro batches with much padding or masking weigh more.

    Why: with packed pre-training data all are equal, since all micro batches have as many tokens that count; with
    padded or masked data (fine-tuning) the gradients differ.
    Example: two micro batches with 1,000 and 10 tokens that count: the ten weigh as much as the thousand.
    Fix: choose the same normalisation on both sides.
    """
    if all(side.leaf("batch.accumulation") == 1 and side.leaf("parallel.data.degree") == 1 for side in _sides(pair)):
        return None
    return "equal as long as every micro batch has as many tokens that count"


@difference("D301", "batch.micro_batch", Level.NOTE)
def pipeline_passes(pair: Pair) -> str | None:
    """Micro batches and passes through the pipeline.

    What one process is handed at a time is one micro batch of the pipeline in some frameworks, and all micro batches
    of one pass through the pipeline in others. A step may then take several passes, each with a bubble of its own.

    Why: read as the same word, a local batch of 1 fills a pipeline with a single micro batch, and most of the time is
    bubble. The numbers that are trained with are the same.
    Example: 4 stages and 32 micro batches: 9 % of the time is bubble in one pass, 43 % in eight passes.
    Fix: let one pass hold all micro batches of a step: the local batch is the global batch over the data-parallel size.
    """
    shares = [_bubble(pair.left, pair.source.kind), _bubble(pair.right, pair.target.kind)]
    known = [share for share in shares if share is not None]
    if len(known) < 2:
        return "the same numbers, with other bubbles"
    return f"the same numbers, with {percent(known[0])} of the time as bubble against {percent(known[1])}"


def _bubble(side: Subject, passes: str) -> float | None:
    """The share of the time in which a stage waits: (stages - 1) / (micro batches * chunks + stages - 1)."""
    micro_batches, stages = side.leaf("batch.accumulation"), side.size("parallel.pipeline.degree")
    if not isinstance(micro_batches, int) or not passes.isdigit():
        return None
    chunks = side.size("parallel.pipeline.stages_per_rank")
    return (stages - 1) / (micro_batches / int(passes) * chunks + stages - 1)


@difference("D302", "batch.global_batch", Level.NOTE)
def counted_ranks(pair: Pair) -> str | None:
    """The ranks that the batch size counts.

    The batch is micro batch times accumulation times ranks. Ranks are those that see samples of their own, or simply
    all ranks, those of one tensor-parallel group included, which work on the same samples.

    Why: the same number in both configurations means another batch.
    Example: 8 ranks with tensor parallel 2, micro batch 4: 16 sequences are trained on, and the size reads 32.
    Fix: multiply or divide the size by the tensor-parallel degree; a conversion has done so.
    """
    values = {side.leaf("batch.global_batch") for side in _sides(pair)}
    if len(values) == 1 and None not in values:
        return f"both train on {values.pop()} sequences per step"
    return ""


@difference("D303", "batch.global_batch")
def batch_growth(pair: Pair) -> str | None:
    """The batch size along the run.

    The global batch is constant, or grows with the samples that were consumed, from a first size in steps of an
    increment, or by a table.

    Why: early steps then see fewer samples, so the run has more of them, and a schedule in samples advances more slowly
    at first.
    Example: from 32 by 32 to 512 over 1,000,000 samples: 6,913 steps in place of 1,953.
    Fix: take one batch size on both sides, or a framework and version that grows it.
    """
    for side in _sides(pair):
        steps = _ramp_steps(side.leaf("batch.ramp_up"), side.leaf("batch.global_batch"))
        if steps is not None:
            return f"the ramp-up takes {steps[0]:,} steps, in which the whole batch would need {steps[1]:,}"
    return ""


def _ramp_steps(ramp: Any, whole: Any) -> tuple[int, int] | None:
    """Steps of a ramp-up, and steps of as many samples in the whole batch."""
    if not isinstance(ramp, list) or len(ramp) != 3 or not isinstance(whole, int):
        return None
    first, increment, samples = ramp
    if not increment or whole <= first:
        return None
    sizes = range(first, whole, increment)
    each = samples / len(sizes)
    return round(sum(each / size for size in sizes)), round(samples / whole)


@difference("D304", "loss.normalization")
def gradient_scale(pair: Pair) -> str | None:
    """The scale of the gradients.

    Gradients are those of a mean over the tokens of the step, or, by an oversight, of their sum, or of the mean divided
    once more.

    Why: the norm that is reported and clipped is another one. Adam's update hardly depends on the scale, clipping does:
    with a sum every step is clipped to the bound, so that the weight of a step no longer depends on its gradient.
    Example: 512 sequences of 8,192 tokens: a norm of 0.5 reads 2,097,152, and a bound of 1 always holds.
    Fix: a version that divides, or layouts in which it does.
    """
    factors = [_factor(side, kind) for side, kind in ((pair.left, pair.source.kind), (pair.right, pair.target.kind))]
    known = [factor for factor in factors if factor is not None]
    if len(known) < 2:
        return "the norm that is clipped differs by that factor"
    ratio = known[1] / known[0]
    if ratio == 1:
        return None
    times = f"{ratio:,.0f} times as large" if ratio > 1 else f"{1 / ratio:,.0f} times smaller"
    other = pair.right.title if pair.left.framework != pair.right.framework else pair.right.reading.version
    return f"the gradients, and the norm that is clipped, are {times} in {other}"


def _factor(side: Subject, kind: str) -> float | None:
    """Gradients over those of the mean."""
    batch, length, ranks = (side.leaf(leaf) for leaf in ("batch.global_batch", "batch.seq_len", "parallel.data.degree"))
    if kind == "sum":
        return float(batch * length) if isinstance(batch, int) and isinstance(length, int) else None
    if kind == "mean divided twice":
        return 1.0 / ranks if isinstance(ranks, int) and ranks else None
    return 1.0


@difference("D306", "model.moe.z_loss_coefficient")
def router_z_loss(pair: Pair) -> str | None:
    """The z-loss of the router.

    A term of the loss that keeps the logits of the router small, or none.

    Why: without it logits grow over a long run, and rounding in bf16 then decides between experts.
    Example: --moe-z-loss-coeff 0.001, and code that has no such term.
    Fix: leave it out on both sides, or watch the logits of the router.
    """
    _ = pair
    return "more logit growth without it, the longer the run"


@difference("D314", "model.moe.aux_loss_coefficient")
def balance_weight(pair: Pair) -> str | None:
    """The weight of the balancing loss over micro batches.

    The balancing loss is a mean of each micro batch. Over the micro batches of a step these are averaged, or added up
    without being divided.

    Why: with more micro batches, or ranks, the same coefficient weighs more.
    Example: coefficient 0.01, 8 micro batches on 16 ranks: 0.01 in all, or 1.28.
    Fix: divide the coefficient by the number of micro batches of a step on all ranks.
    """
    if not all(any(side.leaf("model.moe.aux_loss_coefficient") or ()) for side in _sides(pair)):
        return None
    summing = pair.left if pair.source.kind != "mean" else pair.right
    kind = pair.source.kind if pair.source.kind != "mean" else pair.target.kind
    count = summing.size("batch.accumulation", 0)
    count *= summing.size("parallel.data.degree", 0) if kind == "sum over all ranks" else 1
    if count == 1:
        return None
    coefficient = max(summing.leaf("model.moe.aux_loss_coefficient"))
    return f"{number(coefficient)} weighs like {number(coefficient * count)} there" if count else ""


def _sides(pair: Pair) -> tuple[Subject, Subject]:
    return pair.left, pair.right
