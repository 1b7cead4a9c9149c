"""Precision: what is added up, reduced, kept and computed in which format."""

from __future__ import annotations

from translator.differences.registry import Pair, difference
from translator.findings import Level


@difference("D323", "precision.grad_accumulate")
def accumulation_format(pair: Pair) -> str | None:
    """The format in which gradients of micro batches are added up.

    fp32, or the 16 bits of the model.

    Why: bf16 has eight significant bits; a micro batch that is added to 256 others is rounded away.
    Example: --bf16 accumulates in fp32; bf16.enabled in bf16, unless data_types.grad_accum_dtype says otherwise.
    Fix: fp32 on both sides.
    """
    counts = [side.leaf("batch.accumulation") for side in (pair.left, pair.right)]
    if all(count == 1 for count in counts):
        return None
    known = max((count for count in counts if isinstance(count, int)), default=None)
    return f"{known} micro batches are added up per step" if known else ""


@difference("D324", "precision.grad_reduce")
def reduction_format(pair: Pair) -> str | None:
    """The format in which gradients are reduced over ranks.

    fp32, or the 16 bits of the model at half the traffic.

    Why: every partial sum is rounded; the error grows with the number of ranks, and an average of fp16 may overflow.
    Example: bf16.enabled reduces in bf16, mixed_precision_reduce takes nothing but float32.
    Fix: fp32 on both sides, or 16 bits knowingly.
    """
    degrees = [side.leaf("parallel.data.degree") for side in (pair.left, pair.right)]
    if all(degree == 1 for degree in degrees):
        return None
    known = max((degree for degree in degrees if isinstance(degree, int)), default=None)
    return f"sums run over {known} data-parallel ranks" if known else ""


@difference("D305", "precision.grad_reduce")
def division_by_ranks(pair: Pair) -> str | None:
    """The place where gradients are divided by the ranks.

    Before they are reduced, so that the sum is the mean already; in the collective; or after a sum of whole gradients.

    Why: fp16 ends at 65,504: a sum of whole gradients overflows earlier, quotients may vanish. bf16 and fp32 have range
    enough, so that it does not matter there.
    Example: on 64 ranks a sum in fp16 overflows where the mean is above 1,023.
    Fix: reduce in fp32, or divide in the same place.
    """
    sides = ((pair.left, pair.source), (pair.right, pair.target))
    if not any(stance.kind == "after" and side.leaf("precision.grad_reduce") == "fp16" for side, stance in sides):
        return None
    ranks = max(side.size("parallel.data.degree") for side in (pair.left, pair.right))
    return None if ranks == 1 else f"a sum over {ranks} ranks overflows where the mean is above {65504 / ranks:,.0f}"


@difference("D325", "precision.master")
def optimizer_formats(pair: Pair) -> str | None:
    """The formats of the optimizer's weights and moments.

    The optimizer updates weights of its own in fp32, or those of the model in 16 bits; Adam's moments are in fp32 or
    less.

    Why: a step of 1e-4 of a weight is less than half a bit of bf16 and is lost, unless the weights are in fp32.
    Example: with training.dtype bfloat16 there is no fp32 copy of anything.
    Fix: fp32 weights and moments on both sides.
    """
    _ = pair
    return ""


@difference("D326", "precision.grad_accumulate", Level.NOTE)
def weight_gradients(pair: Pair) -> str | None:
    """The format in which a matrix product leaves its weight gradient.

    The product adds to the fp32 sum directly, or leaves a 16-bit gradient that is added afterwards.

    Why: one rounding more for every micro batch.
    Example: gradient accumulation fused into the product, against a gradient that autograd hands over.
    Fix: nothing is needed; --no-gradient-accumulation-fusion makes the former round as well.
    """
    _ = pair
    return "one rounding to eight bits more per micro batch, below the noise of a batch"


@difference("D327", "precision.loss_scale")
def loss_scaling(pair: Pair) -> str | None:
    """The scale of the loss under fp16.

    fp16 needs a factor on the loss, fixed or found dynamically; bf16 and fp32 need none.

    Why: the first scale decides how many steps at the start are skipped; a scale that shrinks or grows at another pace
    skips other steps.
    Example: with a first scale of 2^32 in place of 2^16 sixteen steps more may be skipped at the start.
    Fix: state first scale, window and hysteresis on both sides; bf16 where the hardware has it.
    """
    _ = pair
    return ""


@difference("D328", "precision.fp8_skip")
def fp8_scope(pair: Pair) -> str | None:
    """The layers that run in fp8.

    All linears of the transformer layers, or all but those whose names are filtered; with or without experts, output
    layer, and the first and last layers.

    Why: the sensitive layers (first, last, output, router) lose precision on one side only.
    Example: --first-last-layers-bf16 keeps two layers in bf16, which other code wants as names to filter.
    Fix: filter the same modules.
    """
    _ = pair
    return ""


@difference("D329", "precision.compute")
def mixed_precision(pair: Pair) -> str | None:
    """How mixed precision is made.

    The whole model is cast to 16 bits, or autocast chooses a format for each operation (matrix products in 16 bits;
    norms, softmax and losses in fp32), or all is in fp32.

    Why: under autocast norms and residuals keep more bits, and take more memory.
    Example: the same mixed_precision_param casts under FSDP, is autocast under DDP, and is ignored under tensor or
    pipeline parallelism alone.
    Fix: a layout in which both do the same.
    """
    _ = pair
    return ""
