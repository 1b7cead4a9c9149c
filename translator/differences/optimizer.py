"""Optimizer and clipping: the same numbers, applied to something else."""

from __future__ import annotations

import math

from translator.differences.registry import Pair, difference
from translator.differences.wording import number, percent
from translator.findings import Level


@difference("D307", "optimizer.decay_scope")
def decay_scope(pair: Pair) -> str | None:
    """The parameters that decay.

    Weight decay covers every parameter, or spares biases and one-dimensional ones (norms); embedding and output layer
    decay in both cases.

    Why: norm weights that decay are pulled towards 0, which the following linear has to make up for.
    Example: rate 3e-4 and decay 0.1: without a gradient a norm weight loses half of itself in 23,000 steps.
    Fix: give parameter groups on the side that can, or accept it.
    """
    rates = [side.leaf("optimizer.weight_decay") for side in (pair.left, pair.right)]
    peak = pair.left.leaf("optimizer.lr")
    if not any(rates):
        return None
    rate = next(rate for rate in rates if rate)
    if not peak:
        return "norms and biases are a tiny part of the parameters"
    return (
        f"at the peak rate a norm weight that decays loses {number(peak * rate)} of itself per step, "
        f"half in {math.log(2) / (peak * rate):,.0f} steps"
    )


@difference("D308", "optimizer.weight_decay")
def decay_course(pair: Pair) -> str | None:
    """Weight decay along the run.

    The coefficient is constant, or grows from a start to an end over the run. Either way the learning rate multiplies
    it.

    Why: early and late steps decay by another amount.
    Example: from 0.033 to 0.1 by a cosine, against 0.033 throughout: at the end a third of it.
    Fix: a constant coefficient on both sides.
    """
    ends = [side.leaf("optimizer.weight_decay_end") for side in (pair.left, pair.right)]
    if None in ends:
        return ""
    return f"the last step decays by {number(ends[0])} against {number(ends[1])}" if ends[0] != ends[1] else ""


@difference("D309", "optimizer.name")
def update_rule(pair: Pair) -> str | None:
    """Where weight decay enters Adam.

    AdamW shrinks the weights directly, by learning rate times decay; Adam adds the decay to the gradient (L2), where
    the second moment divides it away.

    Why: the same coefficient means another regularisation; under L2 parameters with large gradients hardly decay. Names
    do not tell: what is called Adam is AdamW in some places.
    Example: an optimizer of type Adam that is AdamW unless adam_w_mode is false.
    Fix: choose the same rule; 0.1 for AdamW is no sound coefficient for L2.
    """
    rates = [side.leaf("optimizer.weight_decay") for side in (pair.left, pair.right)]
    return "" if any(rates) else None


@difference("D310", "optimizer.beta2")
def adam_constants(pair: Pair) -> str | None:
    """Adam's constants.

    The two betas, epsilon, and whether the moments are corrected for their start at zero. All divide by the square root
    of the second moment plus epsilon.

    Why: the defaults differ: 0.999 remembers fifty times as long as 0.95. Without the correction the first steps
    have another size.
    Example: with betas 0.9 and 0.95 an uncorrected first step is 0.45 times as large, with 0.999 it is 3.2 times.
    Fix: state betas and epsilon on both sides; leave the correction on.
    """
    sides = ((pair.left, pair.source), (pair.right, pair.target))
    bare = [side for side, stance in sides if stance.kind.endswith("uncorrected")]
    if len(bare) != 1:
        return ""
    first, second = bare[0].leaf("optimizer.beta1"), bare[0].leaf("optimizer.beta2")
    if not first or not second or first >= 1 or second >= 1:
        return ""
    scale, steps = (1 - first) / math.sqrt(1 - second), 3 / (1 - second)
    return f"the first step is {scale:.2g} times as large without the correction, which fades over {steps:,.0f} steps"


@difference("D312", "optimizer.embedding_lr")
def embedding_rate(pair: Pair) -> str | None:
    """The learning rate of embedding and output layer.

    One rate for all parameters, or one of their own for embedding and output layer.

    Why: both hold a large part of the parameters of a small model, and train at another speed.
    Example: --decoupled-lr 5e-4 beside --lr 1.5e-4. It has nothing to do with decoupled weight decay.
    Fix: parameter groups where they exist, otherwise one rate for all.
    """
    peak = pair.left.leaf("optimizer.lr")
    rates = [side.leaf("optimizer.embedding_lr") or side.leaf("optimizer.lr") for side in (pair.left, pair.right)]
    if None in rates or not peak:
        return ""
    return f"they train at {number(rates[0])} against {number(rates[1])}" if rates[0] != rates[1] else None


@difference("D313", "optimizer.clip_grad_norm")
def clip_bound(pair: Pair) -> str | None:
    """The bound of the gradient norm, and what 0 and nothing mean.

    Gradients are scaled down where their norm is above the bound. A bound of 0 turns clipping off, or erases every
    gradient; a bound that is not stated is off, or 1.

    Why: the same 0 trains freely on one side and not at all on the other; the same absent key clips in one version and
    not in the next.
    Example: an absent gradient_clipping is off in one version and 1.0 in the next; max_norm 0 erases every gradient.
    Fix: state the bound; where 0 erases, turn clipping off by a huge one (1e9).
    """
    _ = pair
    return ""


@difference("D311", "model.rope_base", Level.NOTE)
def buffer_format(pair: Pair) -> str | None:
    """The format of rotary frequencies and other buffers.

    Buffers are cast with the parameters, or stay in fp32.

    Why: in bf16 a frequency has eight significant bits; multiplied by the position the error grows to whole turns.
    Example: at position 4,096 angles are off by up to 8 radians, so that distant positions are blurred.
    Fix: a version that casts parameters only.
    """
    length = pair.left.leaf("batch.seq_len")
    if not isinstance(length, int):
        return f"in bf16 every angle is off by up to {percent(2**-9)}"
    return f"in bf16 angles at position {length:,} are off by up to {length * 2**-9:.1f} radians"
