"""Learning-rate schedules: first step, shapes, end, units, and what a resumed run takes."""

from __future__ import annotations

from dataclasses import replace

from translator.differences.registry import Pair, difference
from translator.differences.wording import number, percent
from translator.findings import Level
from translator.schedules import Curve, curve_of, largest_difference
from translator.subject import Subject

# Rates that differ by less than this share of the peak are equal; curves that differ by less are not worth a word.
_EQUAL, _APART = 1e-6, 2e-3


@difference("D315", "optimizer.lr")
def peak(pair: Pair) -> str | None:
    """The peak of the schedule.

    The rate of the optimizer, or one that the scheduler brings along and that overrules the optimizer's.

    Why: with two places for one number the one that is read last counts, and a default may be that.
    Example: an optimizer with lr 3e-4 under a WarmupDecayLR without warmup_max_lr trains at 0.001.
    Fix: state the peak in both places.
    """
    rates = [side.leaf("optimizer.lr") for side in (pair.left, pair.right)]
    if None in rates or not rates[1]:
        return ""
    return f"every step trains at {number(rates[0] / rates[1])} times the rate of the other side"


@difference("D316", "schedule.warmup_offset", Level.NOTE)
def warmup_start(pair: Pair) -> str | None:
    """The learning rate of the first steps.

    The first step is taken at the start of the warm-up (a rate of 0 as a rule), or already one step on; or the first
    two steps are both taken at the start. Counted in optimizer steps, the whole warm-up shifts by one.

    Why: a first step at rate 0 trains nothing, yet consumes a batch; curves of two frameworks are off by one.
    Example: a warm-up of 2,000 steps to 3e-4 has step 1 at 0, or at 1.5e-7, or steps 1 and 2 at 0.
    Fix: start the warm-up at peak / steps where the start can be set.
    """
    curves = curves_of(pair)
    if curves is None:
        return ""
    left, right = (curve.rates((0, 1)) for curve in curves)
    peak = max(curves[0].peak, curves[1].peak)
    if all(abs(one - two) <= _EQUAL * peak for one, two in zip(left, right, strict=True)):
        return None
    shown = [" and ".join(number(rate) for rate in rates) for rates in (left, right)]
    return f"steps 1 and 2 train at {shown[0]} against {shown[1]}, of a peak of {number(peak)}"


@difference("D317", "schedule.warmup_shape")
def warmup_shape(pair: Pair) -> str | None:
    """The shape of the warm-up.

    The rate rises linearly, or with the logarithm of the step.

    Why: a logarithmic warm-up reaches half of the peak after the square root of its length: it hardly warms up.
    Example: WarmupLR without warmup_type is logarithmic: with 1,000 steps half of the peak is there at about step 32.
    Fix: set warmup_type to linear.
    """
    return apart(pair, warmup=True, decay=False)


@difference("D322", "schedule.warmup")
def warmup_length(pair: Pair) -> str | None:
    """The length of the warm-up.

    Steps, samples, a share of the decay, or a share of the run; capped by the length of the schedule in some places,
    and at least two steps in others.

    Why: a share follows another length than one thinks: with a decay of 320,000 steps one percent is 3,200 steps, in a
    run of 50 as well.
    Example: --lr-warmup-fraction 0.01 is a share of --lr-decay-iters, a warmup_ratio one of max_steps.
    Fix: state the length in steps.
    """
    curves = curves_of(pair)
    if curves is None:
        return ""
    left, right = (curve.warmup - curve.warmup_offset if curve.warmup else 0.0 for curve in curves)
    if abs(left - right) <= max(1.5, 0.005 * max(left, right)):
        return None
    return f"the peak is reached after {left:,.0f} steps against {right:,.0f}"


@difference("D318", "schedule.decay")
def decay_shape(pair: Pair) -> str | None:
    """The shape of the decay.

    Constant, linear, cosine, inverse square root, or a late decay (WSD) that is linear, cosine, exponential or one
    minus a square root. Not every framework has each, and some schedules say their shape by their name alone.

    Why: the rate in the middle of the run differs.
    Example: exponential WSD (2 * 0.5^q - 1) written as a linear decay: 8.6 % of the peak apart halfway.
    Fix: choose a shape that both have.
    """
    return apart(pair, warmup=False)


@difference("D319", "schedule.decay_length")
def decay_span(pair: Pair) -> str | None:
    """The steps between which the rate decays, and what follows.

    A decay begins at the end of the warm-up or later. Its length counts from the start of the run with the warm-up
    inside, or is a share of the run. It ends with the run, before it, or after it; then the floor is held, or the
    formula goes on, so that a cosine rises again.

    Why: a decay that is longer than the run never reaches its floor; one step more or less shifts the curve.
    Example: --lr-decay-iters 320000 in a run of 50 steps trains at the peak throughout.
    Fix: state the length of the decay on both sides; keep it within the run.
    """
    shapes = {side.leaf("schedule.decay") for side in (pair.left, pair.right)}
    return apart(pair, warmup=False) if len(shapes) == 1 else ""


@difference("D320", "schedule.min_lr")
def decay_floor(pair: Pair) -> str | None:
    """The floor of the decay.

    An absolute rate, a share of the peak, the start of the warm-up, or always 0.

    Why: the end of training runs at another rate; a floor as a share moves with the peak, an absolute one does not.
    Example: min_lr_factor 0.1 is 3e-5 at a peak of 3e-4; WarmupDecayLR ends at warmup_min_lr.
    Fix: state the floor in the unit of the other side, and convert again when the peak changes.
    """
    curves = curves_of(pair)
    if curves is None:
        return ""
    left, right = (curve.rate(curve.total - 1) for curve in curves)
    if abs(left - right) <= _APART * max(curves[0].peak, curves[1].peak):
        return None
    return f"the last step trains at {number(left)} against {number(right)}"


@difference("D321", "schedule.unit")
def schedule_unit(pair: Pair) -> str | None:
    """What the schedule counts.

    Optimizer steps, or samples (tokens). With a constant batch both are the same.

    Why: with a batch that grows, early steps hold fewer samples, so a schedule in samples advances more slowly.
    Example: a warm-up of 500,000 samples under a ramp-up from 32 to 512 takes thousands of steps, not 977.
    Fix: convert lengths by the steps that the samples really take, or train with a constant batch.
    """
    if not any(side.leaf(leaf) for side in (pair.left, pair.right) for leaf in ("batch.ramp_up", "batch.steps")):
        return None
    return "the batch grows, so that a sample is not the same share of a step throughout"


def curves_of(pair: Pair) -> tuple[Curve, Curve] | None:
    """Both schedules in optimizer steps; None where one is not known."""
    left, right = (_curve(side) for side in (pair.left, pair.right))
    return (left, right) if left is not None and right is not None else None


def _curve(side: Subject) -> Curve | None:
    return curve_of(side.reading.flat) if side.leaf("schedule.decay") is not None else None


def apart(pair: Pair, *, warmup: bool = True, decay: bool = True) -> str | None:
    """How far two schedules are apart; None where they are all but equal, empty where one is not known.

    Without ``warmup`` the steps before the end of either warm-up are left out, without ``decay`` those after it.
    """
    curves = curves_of(pair)
    if curves is None:
        return ""
    if not warmup:
        end = max(curve.warmup for curve in curves)
        curves = _without_warmup(curves[0], end), _without_warmup(curves[1], end)
    if not decay:
        curves = replace(curves[0], decay=None), replace(curves[1], decay=None)
    difference_, step = largest_difference(*curves, min(curve.total for curve in curves))
    peak = max(curve.peak for curve in curves)
    if difference_ <= _APART * peak:
        return None
    return f"the schedules are up to {percent(difference_ / peak)} of the peak apart, at step {step + 1:,}"


def _without_warmup(curve: Curve, end: float) -> Curve:
    """The curve with a straight line from 0 up to ``end``, the same whatever its own warm-up is."""
    return replace(curve, warmup=end, warmup_start=0.0, warmup_offset=0, warmup_shape="linear")
