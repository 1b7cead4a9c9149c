"""DeepSpeed on precision."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.differences.wording import Whatever, number
from translator.frameworks.deepspeed.stances.training import ENGINE, at, each
from translator.subject import Subject

_LOW = ("bf16", "fp16")


def _types(subject: Subject) -> str:
    """Where the engine chooses its formats."""
    return each(subject, f"{ENGINE}:1033", f"{ENGINE}:1312", f"{ENGINE}:1799")


@stance("D323")
def accumulation(subject: Subject) -> Stance | None:
    """In the format of the model, unless ``grad_accum_dtype`` says otherwise."""
    kind, option = subject.leaf("precision.grad_accumulate"), "data_types.grad_accum_dtype"
    if kind is None:
        return None
    how = "" if subject.given(option) else f", the format of the model, for {option} is not stated"
    says = f"adds up the gradients of micro batches in {kind}{how}"
    return Stance(kind, says, _types(subject), option, Whatever(f"set {option} to {{kind}}"))


@stance("D324")
def reduction(subject: Subject) -> Stance | None:
    """In the format of the model, unless ``communication_data_type`` says otherwise."""
    kind, option = subject.leaf("precision.grad_reduce"), "communication_data_type"
    if kind is None:
        return None
    how = "" if subject.given(option) else f", for {option} is not stated"
    source = each(subject, f"{ENGINE}:962", f"{ENGINE}:1232", f"{ENGINE}:1719")
    return Stance(kind, f"reduces gradients in {kind}{how}", source, option, Whatever(f"set {option} to {{kind}}"))


@stance("D325")
def optimizer_formats(subject: Subject) -> Stance | None:
    """fp32, unless weights and gradients are told to stay in 16 bits."""
    master, first, second = (subject.leaf(f"precision.{leaf}") for leaf in ("master", "first_moment", "second_moment"))
    if None in (master, first, second):
        return None
    kind = f"weights {master}, moments {first} and {second}"
    source = each(subject, *(f"runtime/zero/stage_1_and_2.py:{line}" for line in (410, 494, 577)))
    ways = {"weights fp32, moments fp32 and fp32": "leave bf16_master_weights_and_grads and bf16_optimizer_states out"}
    if subject.version >= (0, 19):
        low = "set bf16.bf16_master_weights_and_grads and bf16.bf16_optimizer_states"
        ways["weights bf16, moments bf16 and bf16"] = low
    return Stance(kind, f"keeps {kind}", source, "bf16.bf16_master_weights_and_grads", ways)


@stance("D326")
def weight_gradients(subject: Subject) -> Stance | None:
    """autograd hands over gradients in the format of the model."""
    compute = subject.leaf("precision.compute")
    if compute not in _LOW:
        return None
    says = f"leaves each weight gradient in {compute}, and casts it where it is added up"
    source = each(subject, *(f"runtime/zero/stage_1_and_2.py:{line}" for line in (888, 1024, 1237)))
    if subject.value("zero_optimization.stage") == 3:
        source = each(subject, *(f"runtime/zero/stage3.py:{line}" for line in (1482, 1728, 2030)))
    return Stance(str(compute), says, source)


@stance("D327")
def loss_scaling(subject: Subject) -> Stance | None:
    """fp16 alone; dynamic where ``loss_scale`` is 0."""
    compute = subject.leaf("precision.compute")
    if compute is None:
        return None
    if compute != "fp16":
        return Stance("none", "does not scale the loss", _types(subject), "fp16.enabled")
    fixed, ways = subject.leaf("precision.loss_scale"), {"none": "train in bf16, which needs no scale"}
    if fixed is not None:
        says = f"scales the loss by {number(fixed)} throughout"
        return Stance(f"fixed {number(fixed)}", says, at("runtime/precision_config.py:133"), "fp16.loss_scale", ways)
    first, window, least, patience = (
        subject.leaf(f"precision.{leaf}")
        for leaf in ("initial_loss_scale", "loss_scale_window", "min_loss_scale", "loss_scale_hysteresis")
    )
    numbers = [number(value) if value is not None else "?" for value in (first, window, least, patience)]
    says = f"finds the loss scale from {numbers[0]} on, doubled after {numbers[1]} good steps and at least {numbers[2]}"
    kind = f"dynamic {' '.join(numbers)}"
    if subject.value("fp16.consecutive_hysteresis"):
        kind, says = f"{kind} consecutive", f"{says}; good steps refill the hysteresis"
    return Stance(kind, says, at("runtime/fp16/loss_scaler.py:214"), "fp16.initial_scale_power", ways)


@stance("D328")
def fp8_scope(subject: Subject) -> Stance | None:
    """No fp8, hence nothing to ask."""
    _ = subject
    return None


@stance("D329")
def mixed_precision(subject: Subject) -> Stance | None:
    """The model is cast; ``torch_autocast`` leaves it in fp32."""
    compute = subject.leaf("precision.compute")
    if compute is None:
        return None
    ways = {"bf16 cast": "set bf16.enabled", "fp16 cast": "set fp16.enabled"}
    if compute not in _LOW:
        return Stance("fp32", "trains in fp32", _types(subject), "bf16.enabled", ways)
    if subject.value("torch_autocast.enabled"):
        says = f"runs matrix products in {compute} by autocast, and keeps weights, norms and residuals in fp32"
        ways |= {"fp32": "leave torch_autocast out"}
        return Stance(f"{compute} autocast", says, at("runtime/torch_autocast.py:115"), "torch_autocast.enabled", ways)
    source = each(subject, f"{ENGINE}:{1254 if compute == 'bf16' else 1250}", f"{ENGINE}:1364", f"{ENGINE}:1851")
    ways = {f"{compute} autocast": "use torch_autocast in place of this section"}
    return Stance(f"{compute} cast", f"casts the whole model to {compute}", source, f"{compute}.enabled", ways)


@stance("D305")
def division(subject: Subject) -> Stance | None:
    """Before the reduction under ZeRO; afterwards without it, unless gradients are scaled beforehand."""
    if subject.leaf("precision.grad_reduce") is None:
        return None
    stage, option = subject.value("zero_optimization.stage") or 0, "prescale_gradients"
    if stage == 3:
        source = each(subject, *(f"runtime/zero/stage3.py:{line}" for line in (1340, 1582, 1878)))
        return Stance("before", "divides gradients by the ranks before it reduces them", source)
    if stage and subject.value("zero_optimization.reduce_scatter") is not False:
        source = each(subject, *(f"runtime/zero/stage_1_and_2.py:{line}" for line in (1128, 1302, 1688)))
        return Stance("before", "divides gradients by the ranks before it reduces them", source)
    if subject.value(option):
        source = each(subject, f"{ENGINE}:2566", f"{ENGINE}:3288", f"{ENGINE}:3815")
        return Stance("before", "divides gradients before it reduces them, by prescale_gradients", source, option)
    source = each(subject, f"{ENGINE}:2564", f"{ENGINE}:3286", f"{ENGINE}:3813")
    ways = {"before": "set prescale_gradients", "collective": "set prescale_gradients"}
    return Stance("after", "reduces whole gradients and divides by the ranks afterwards", source, option, ways)
