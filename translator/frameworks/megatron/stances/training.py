"""Megatron-LM on batch, loss and accumulation."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.differences.wording import Whatever, number
from translator.subject import Subject

_SCHEDULES = "megatron/core/pipeline_parallel/schedules.py"
_CALCULATOR = "megatron/core/num_microbatches_calculator.py"
_DDP = "megatron/core/distributed/distributed_data_parallel.py"
_PER_TOKEN = "calculate_per_token_loss"


def at(file: str, line: int, version: str = "0.18.0") -> str:
    """An upstream line with its version."""
    return f"{file}:{line} at core {version}"


@stance("D300")
def loss(subject: Subject) -> Stance:
    """Means of micro batches are averaged, unless every token is to count the same."""
    ways = {
        "global tokens": "add --calculate-per-token-loss",
        "micro batch means": "leave --calculate-per-token-loss out",
        "rank means": "add --calculate-per-token-loss and convert again, so that both sides count tokens",
    }
    if subject.value(_PER_TOKEN):
        says = "divides the summed loss by the tokens of the global batch that count"
        source = at("megatron/core/distributed/finalize_model_grads.py", 560)
        return Stance("global tokens", says, source, _PER_TOKEN, ways)
    says = "averages the means of the micro batches"
    return Stance("micro batch means", says, at(_SCHEDULES, 273), _PER_TOKEN, ways)


@stance("D301")
def passes(subject: Subject) -> Stance | None:
    """All micro batches of a step go through the pipeline in one pass."""
    if subject.size("parallel.pipeline.degree") == 1:
        return None
    says = "takes --micro-batch-size as one micro batch of the pipeline, and all of a step in one pass"
    return Stance("1", says, at(_CALCULATOR, 388), "micro_batch_size")


@stance("D302")
def ranks(subject: Subject) -> Stance:
    """Data-parallel ranks."""
    _ = subject
    says = "counts data-parallel ranks alone: all ranks over tensor, pipeline and context parallel sizes"
    return Stance("data-parallel ranks", says, at("megatron/training/arguments.py", 436), "global_batch_size")


@stance("D303")
def growth(subject: Subject) -> Stance:
    """A ramp-up before 0.18, a table since; 0.18 parses the ramp-up and drops it."""
    ramp, table = subject.leaf("batch.ramp_up"), subject.leaf("batch.steps")
    if ramp:
        first, increment, samples = ramp
        says = f"grows the batch from {first} by {increment} over {samples:,} samples"
        source = at(_CALCULATOR, 360, "0.17.0")
        ways = {"constant": "leave --rampup-batch-size out"}
        return Stance(f"ramp {first} {increment} {samples}", says, source, "rampup_batch_size", ways)
    if table:
        says = f"takes the batch from the table {table!r}, by the tokens that were trained on"
        ways = {"constant": "give --global-batch-size in place of --step-batch-size-schedule"}
        return Stance(f"table {table}", says, at(_CALCULATOR, 402), "step_batch_size_schedule", ways)
    if subject.value("rampup_batch_size"):
        says = "parses --rampup-batch-size and drops it, so that the batch is whole from the first step on"
        return Stance("constant", says, at("megatron/training/global_vars.py", 127), "rampup_batch_size")
    return Stance("constant", "trains with one batch size throughout", at(_CALCULATOR, 340), "global_batch_size")


@stance("D304")
def scale(subject: Subject) -> Stance:
    """The mean: over micro batches and ranks, or over tokens."""
    if subject.value(_PER_TOKEN):
        source = at("megatron/core/distributed/finalize_model_grads.py", 562)
        return Stance("mean", "divides the summed gradients by the tokens of the step", source, _PER_TOKEN)
    says = "divides by the micro batches and by the data-parallel size"
    return Stance("mean", says, at(_DDP, 203), _PER_TOKEN)


@stance("D314")
def balance(subject: Subject) -> Stance | None:
    """The mean over micro batches and ranks."""
    if not subject.leaf("model.moe.experts"):
        return None
    ways = Whatever("divide --moe-aux-loss-coeff by the micro batches, or choose the coefficient anew")
    return Stance("mean", "averages it over micro batches and ranks", at(_SCHEDULES, 305), None, ways)


@stance("D306")
def z_loss(subject: Subject) -> Stance | None:
    """Where its coefficient is given."""
    if not subject.leaf("model.moe.experts"):
        return None
    weight, source = subject.leaf("model.moe.z_loss_coefficient"), at("megatron/core/transformer/moe/router.py", 509)
    ways = {"none": "leave --moe-z-loss-coeff out"}
    if not weight:
        return Stance("none", "has no z-loss, for --moe-z-loss-coeff is not given", source, "moe_z_loss_coeff")
    says = f"adds a z-loss of weight {number(weight)} in each layer"
    return Stance(number(weight), says, source, "moe_z_loss_coeff", ways)
