"""Megatron-LM on precision."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.differences.wording import Whatever, number
from translator.frameworks.megatron.stances.training import at
from translator.subject import Subject

_ARGUMENTS = "megatron/training/arguments.py"
_CONFIG = "megatron/core/optimizer/optimizer_config.py"
_LOW = ("bf16", "fp16")


@stance("D323")
def accumulation(subject: Subject) -> Stance | None:
    """fp32 under bf16, unless the reduction is in bf16."""
    kind = subject.leaf("precision.grad_accumulate")
    if kind is None:
        return None
    option, ways = _gradients(subject)
    line = {"fp16": 1165, "bf16": 1182}.get(kind, 1184)
    return Stance(kind, f"adds up the gradients of micro batches in {kind}", at(_ARGUMENTS, line), option, ways)


@stance("D324")
def reduction(subject: Subject) -> Stance | None:
    """In the format of the accumulation."""
    kind = subject.leaf("precision.grad_reduce")
    if kind is None:
        return None
    option, ways = _gradients(subject)
    source = at("megatron/core/distributed/param_and_grad_buffer.py", 609)
    return Stance(kind, f"reduces gradients in {kind}, divided beforehand", source, option, ways)


def _gradients(subject: Subject) -> tuple[str, dict[str, str]]:
    """The option that decides the format of gradients, and how to get others."""
    if subject.leaf("precision.compute") == "fp16":
        return "accumulate_allreduce_grads_in_fp32", {"fp32": "add --accumulate-allreduce-grads-in-fp32"}
    return "grad_reduce_in_bf16", {"fp32": "leave --grad-reduce-in-bf16 out", "bf16": "add --grad-reduce-in-bf16"}


@stance("D325")
def optimizer_formats(subject: Subject) -> Stance | None:
    """fp32 throughout, unless the precision-aware optimizer is on."""
    master, first, second = (subject.leaf(f"precision.{leaf}") for leaf in ("master", "first_moment", "second_moment"))
    if None in (master, first, second):
        return None
    kind = f"weights {master}, moments {first} and {second}"
    ways = {"weights fp32, moments fp32 and fp32": "leave --use-precision-aware-optimizer out"}
    if subject.version >= (0, 14):
        low = "add --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16"
        ways["weights fp32, moments bf16 and bf16"] = low
    return Stance(kind, f"keeps {kind}", at(_CONFIG, 468), "use_precision_aware_optimizer", ways)


@stance("D326")
def weight_gradients(subject: Subject) -> Stance | None:
    """The matrix product adds to the fp32 gradients itself, unless the fusion is off."""
    compute, option = subject.leaf("precision.compute"), "gradient_accumulation_fusion"
    if compute not in _LOW:
        return None
    source = at("megatron/core/tensor_parallel/layers.py", 574)
    if subject.value(option) and subject.leaf("precision.grad_accumulate") == "fp32":
        ways = {compute: "add --no-gradient-accumulation-fusion"}
        says = "lets the matrix products of linears add to the fp32 gradients directly"
        return Stance("fp32", says, source, option, ways)
    return Stance(str(compute), f"rounds each weight gradient to {compute} before it is added", source, option)


@stance("D327")
def loss_scaling(subject: Subject) -> Stance:
    """fp16 alone; dynamic unless a scale is given."""
    if subject.leaf("precision.compute") != "fp16":
        return Stance("none", "does not scale the loss", at(_ARGUMENTS, 1165), "loss_scale")
    fixed, ways = subject.leaf("precision.loss_scale"), {"none": "train in bf16, which needs no scale"}
    if fixed is not None:
        says = f"scales the loss by {number(fixed)} throughout"
        return Stance(f"fixed {number(fixed)}", says, at(_ARGUMENTS, 2685), "loss_scale", ways)
    first, window, least, patience = (
        subject.leaf(f"precision.{leaf}")
        for leaf in ("initial_loss_scale", "loss_scale_window", "min_loss_scale", "loss_scale_hysteresis")
    )
    numbers = [number(value) if value is not None else "?" for value in (first, window, least, patience)]
    says = f"finds the loss scale from {numbers[0]} on, doubled after {numbers[1]} good steps and at least {numbers[2]}"
    source = at("megatron/core/optimizer/grad_scaler.py", 85)
    return Stance(f"dynamic {' '.join(numbers)}", says, source, "initial_loss_scale", ways)


@stance("D328")
def fp8_scope(subject: Subject) -> Stance | None:
    """All linears of the layers, in all layers or all but the first and last."""
    if subject.leaf("precision.fp8") in (None, "none"):
        return None
    skipped = ", ".join(sorted(subject.leaf("precision.fp8_skip") or ())) or "nothing"
    says = "runs the linears of all transformer layers in fp8"
    kind = f"without {skipped}"
    if subject.leaf("precision.fp8_experts"):
        kind, says = f"{kind}, with experts", f"{says}, experts included"
    if subject.value("first_last_layers_bf16"):
        first, last = (subject.value(f"num_layers_at_{end}_in_bf16", 1) for end in ("start", "end"))
        kind += f", without {first} first and {last} last layers"
        says += f", but for {first} first and {last} last ones"
        ways = Whatever("leave --first-last-layers-bf16 out")
        return Stance(kind, says, at("megatron/core/fp8_utils.py", 526), "first_last_layers_bf16", ways)
    return Stance(kind, f"{says}; not: {skipped}", at("megatron/core/fp8_utils.py", 526), "fp8")


@stance("D329")
def mixed_precision(subject: Subject) -> Stance | None:
    """The model is cast."""
    compute = subject.leaf("precision.compute")
    if compute is None:
        return None
    ways = {"bf16 cast": "add --bf16", "fp16 cast": "add --fp16", "fp32": "leave --bf16 and --fp16 out"}
    if compute not in _LOW:
        return Stance("fp32", "trains in fp32", at(_ARGUMENTS, 1162), "bf16", ways)
    source = at("megatron/core/transformer/module.py", 440 if compute == "bf16" else 434)
    return Stance(f"{compute} cast", f"casts the whole model to {compute}", source, str(compute), ways)


@stance("D305")
def division(subject: Subject) -> Stance | None:
    """Before the reduction, unless the collective averages or tokens are counted."""
    if subject.leaf("precision.grad_reduce") is None:
        return None
    ddp = "megatron/core/distributed/distributed_data_parallel.py"
    if subject.value("calculate_per_token_loss"):
        source = at("megatron/core/distributed/finalize_model_grads.py", 562)
        return Stance("after", "reduces sums and divides by tokens afterwards", source, "calculate_per_token_loss")
    option = "ddp_average_in_collective"
    if subject.value(option):
        return Stance("collective", "averages in the collective", at(ddp, 198), option)
    return Stance("before", "divides gradients by the ranks before it reduces them", at(ddp, 203), option)
