"""torchtitan on precision."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.frameworks.torchtitan import addresses
from translator.frameworks.torchtitan.stances.training import at
from translator.subject import Subject

_LOW = ("bf16", "fp16")


def _policy(subject: Subject) -> str:
    """Where FSDP is told its formats."""
    return at(
        subject,
        "models/llama3/infra/parallelize.py:339",
        "models/llama3/infra/parallelize.py:313",
        "distributed/fsdp.py:165",
    )


@stance("D323")
def accumulation(subject: Subject) -> Stance | None:
    """In the format of the stored parameters."""
    kind = subject.leaf("precision.grad_accumulate")
    if kind is None:
        return None
    says = f"adds up the gradients of micro batches in {kind}, the format of the stored parameters"
    return Stance(kind, says, _policy(subject), "training.dtype", {"fp32": "leave training.dtype at float32"})


@stance("D324")
def reduction(subject: Subject) -> Stance | None:
    """fp32 is the only choice."""
    kind = subject.leaf("precision.grad_reduce")
    if kind is None:
        return None
    says = f"reduces gradients in {kind}, the only format that mixed_precision_reduce takes"
    return Stance(kind, says, _policy(subject), "training.mixed_precision_reduce")


@stance("D325")
def optimizer_formats(subject: Subject) -> Stance | None:
    """Both in the format of the stored parameters."""
    master, first, second = (subject.leaf(f"precision.{leaf}") for leaf in ("master", "first_moment", "second_moment"))
    if None in (master, first, second):
        return None
    kind = f"weights {master}, moments {first} and {second}"
    source = at(subject, "train.py:149", "train.py:149", "trainer.py:365")
    return Stance(kind, f"keeps {kind}", source, "training.dtype")


@stance("D326")
def weight_gradients(subject: Subject) -> Stance | None:
    """autograd hands over gradients in the format of the product; the reduction casts them."""
    compute = subject.leaf("precision.compute")
    if compute not in _LOW:
        return None
    says = f"leaves each weight gradient in {compute}, and casts it for the reduction"
    return Stance(str(compute), says, _policy(subject), "training.mixed_precision_param")


@stance("D327")
def loss_scaling(subject: Subject) -> Stance:
    """No fp16, no scale."""
    says = "has no fp16, and does not scale the loss"
    return Stance("none", says, _policy(subject), "training.mixed_precision_param")


@stance("D328")
def fp8_scope(subject: Subject) -> Stance | None:
    """All linears but those whose names are filtered."""
    if subject.leaf("precision.fp8") in (None, "none"):
        return None
    skipped = ", ".join(sorted(subject.leaf("precision.fp8_skip") or ())) or "nothing"
    kind, says = f"without {skipped}", f"runs all linears in fp8, chosen by their names, except {skipped}"
    if subject.leaf("precision.fp8_experts"):
        kind, says = f"{kind}, with experts", f"{says}; experts included"
    elif subject.leaf("model.moe.experts"):
        says += "; experts stay as they are"
    new = "mx.py:83" if subject.leaf("precision.fp8_recipe") == "mxfp8" else "float8.py:61"
    folder = "components/quantization"
    source = at(subject, f"{folder}/utils.py:25", f"{folder}/utils.py:25", f"{folder}/{new}")
    return Stance(kind, says, source, "model.converters")


@stance("D329")
def mixed_precision(subject: Subject) -> Stance | None:
    """FSDP casts; without it 0.2.2 uses autocast, or nothing under tensor or pipeline parallelism."""
    compute = subject.leaf("precision.compute")
    if compute is None:
        return None
    option = "training.mixed_precision_param"
    if compute not in _LOW:
        source = at(subject, "distributed/utils.py:215", "distributed/utils.py:251", "distributed/fsdp.py:165")
        ways = {"bf16 cast": "give FSDP more than one rank (data_parallel_shard_degree)"}
        asked = subject.value(option) not in ("float32", None) and subject.value(addresses.FSDP) is False
        why = ", for tensor or pipeline parallelism without FSDP turns mixed precision off" if asked else ""
        return Stance("fp32", f"trains in fp32{why}", source, option, ways)
    if subject.version >= (0, 3) or subject.value(addresses.FSDP) is not False:
        return Stance(
            f"{compute} cast", f"casts all parameters to {compute} as FSDP gathers them", _policy(subject), option
        )
    source = at(subject, "distributed/utils.py:224", "distributed/utils.py:260", "")
    ways = {f"{compute} cast": "give FSDP more than one rank (data_parallel_shard_degree)"}
    says = f"runs matrix products in {compute} by autocast, and norms and residuals in fp32"
    return Stance(f"{compute} autocast", says, source, option, ways)


@stance("D305")
def division(subject: Subject) -> Stance | None:
    """In the collective at 0.1.0; since then the loss is divided before the backward pass."""
    if subject.leaf("precision.grad_reduce") is None:
        return None
    if subject.reading.version == "0.1.0":
        return Stance("collective", "averages in the collective of FSDP", _policy(subject))
    source = at(subject, "", "models/llama3/infra/parallelize.py:284", "distributed/fsdp.py:41")
    return Stance("before", "divides the loss before the backward pass, and reduces by sums", source)
