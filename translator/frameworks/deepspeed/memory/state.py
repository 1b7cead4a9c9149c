"""Parameters, gradients and optimizer state by ZeRO stage, and the buckets that gather and reduce them.

Source: ``deepspeed/runtime/zero/stage_1_and_2.py``, ``stage3.py`` and ``deepspeed/runtime/bf16_optimizer.py`` (0.19.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from translator.memory.parameters import dense_layer, embedding, moe_layer, norm
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

_ZERO = "zero_optimization."


def stage(job: Job) -> int:
    """The ZeRO stage in force."""
    value = job.values.get(f"{_ZERO}stage")
    return value if isinstance(value, int) and 0 <= value <= 3 else 0


def elements(job: Job, stages: Stages) -> Any:
    """Parameters of every rank before ZeRO: matrices are split over the tensor ranks."""
    model, tensor = job.model, job.layout.tensor
    total: Any = 0.0
    for layers, part in ((stages.dense, dense_layer(model)), (stages.moe, moe_layer(model))):
        total = total + layers * (part.matrices / tensor + part.whole)
    ends = embedding(model)
    apart = np.asarray(job.layout.pipeline) > 1
    # AutoTP splits the linears of the layers and leaves the embedding whole on every rank.
    total = total + stages.first * ends + stages.last * (norm(model) + ends * ((not model.tied) | apart))
    return total * stages.present


def ranks(job: Job) -> Any:
    """Ranks that share the partitions: data- and sequence-parallel ones."""
    return np.asarray(job.layout.data) * np.asarray(job.layout.context)


def _compute(job: Job) -> float:
    return job.bytes_of("precision.parameters", "fp32")


def terms(job: Job, stages: Stages) -> list[Term]:
    """What is there between steps.

    Gradients accumulate in ``data_types.grad_accum_dtype``, by default the model's; stages 0 and 1 keep them whole,
    stages 2 and 3 the rank's partition. Stage 1 with bf16 and fp32 accumulation is another optimizer, with whole fp32
    gradients beside the bf16 ones (``engine.py:1560``, 0.19.2).
    """
    found, share, zero = elements(job, stages), ranks(job), stage(job)
    compute, accumulate = _compute(job), job.bytes_of("precision.grad_accumulate", "bf16")
    kept = found / (share if zero == 3 else 1)
    summed = found / (share if zero >= 2 else 1)
    optimized = found / (share if zero >= 1 else 1) * (1 - _offloaded(job))
    terms = [
        Term("parameters", Kind.PARAMETERS, kept * compute * (0 if _parameters_offloaded(job) else 1)),
        Term("gradients", Kind.GRADIENTS, summed * accumulate * (1 - _offloaded(job) * (zero >= 2))),
        Term("moments", Kind.OPTIMIZER, optimized * _moment_bytes(job)),
    ]
    # ZeRO clones its partition whatever the types are (``stage_1_and_2.py:477``, 0.19.2).
    if zero >= 1 or (compute < 4 and job.flat.get("precision.master") != job.flat.get("precision.parameters")):
        terms.append(Term("masters", Kind.OPTIMIZER, optimized * job.bytes_of("precision.master", "fp32")))
    if _sums_in_fp32(job):
        terms.append(Term("gradients before they are added up", Kind.GRADIENTS, found * compute))
    secondary = job.number(f"{_ZERO}zero_hpz_partition_size", 1)
    if zero == 3 and secondary > 1:
        terms.append(Term("second copy of the parameters (hpZ)", Kind.PARAMETERS, found / secondary * compute))
    return terms


def _moment_bytes(job: Job) -> float:
    first = job.bytes_of("precision.first_moment", "fp32")
    if job.flat.get("optimizer.name") in ("sgd", "lion", "muon"):
        return first
    return first + job.bytes_of("precision.second_moment", "fp32")


def _offloaded(job: Job) -> float:
    """The share of the optimizer state in host memory."""
    if job.values.get(f"{_ZERO}offload_optimizer.device") not in ("cpu", "nvme"):
        return float(bool(job.flat.get("optimizer.offload")) and stage(job) > 0)
    return job.number(f"{_ZERO}offload_optimizer.ratio", 1.0) if stage(job) == 3 else 1.0


def _parameters_offloaded(job: Job) -> bool:
    return stage(job) == 3 and job.values.get(f"{_ZERO}offload_param.device") in ("cpu", "nvme")


def _sums_in_fp32(job: Job) -> bool:
    """Stage 1 with 16-bit parameters and fp32 accumulation, which has an optimizer of its own (``engine.py:1560``)."""
    return stage(job) == 1 and _compute(job) < 4 and job.bytes_of("precision.grad_accumulate", "bf16") == 4


def bucket(job: Job, stages: Stages) -> list[Term]:
    """The buffer that gradients are collected in, in the model's type.

    ``reduce_bucket_size`` counts elements. With ``contiguous_gradients``, the default, it is one buffer of that size
    however small the model is: two with ``overlap_comm`` under stages 1 and 2 (``stage_1_and_2.py:2359``, 0.19.2), one
    that stays under stage 3 (``stage3.py:628``).
    """
    zero, size = stage(job), job.number(f"{_ZERO}reduce_bucket_size", 5e8)
    if zero == 0 or _sums_in_fp32(job):
        return []
    apart = job.values.get(f"{_ZERO}contiguous_gradients") is False
    held = np.minimum(size, elements(job, stages)) if apart else size * stages.present
    copies = 2 if zero < 3 and job.values.get(f"{_ZERO}overlap_comm") else 1
    kind = Kind.WORKSPACE if zero == 3 else Kind.TRANSIENT
    return [Term("buckets of gradients", kind, held * _compute(job) * copies, doubt=0.3)]


def on_the_way(job: Job, stages: Stages) -> list[Term]:
    """Buckets of gradients, and under stage 3 the parameters that are whole for a while.

    What is reduced is flattened into a copy first. Under stage 3 parameters stay whole until ``max_live_parameters``
    elements are, as long as they are used again within ``max_reuse_distance``
    (``partitioned_param_coordinator.py:470``, 0.19.2).
    """
    found, compute, zero = elements(job, stages), _compute(job), stage(job)
    if zero == 0:
        return []
    filled = np.minimum(job.number(f"{_ZERO}reduce_bucket_size", 5e8), found)
    several = np.where(ranks(job) > 1, 1, 0)
    reduce = max(job.bytes_of("precision.grad_reduce", "bf16"), compute if compute < 4 else 0)
    terms = [] if zero == 3 else bucket(job, stages)
    copy = filled * reduce * several
    terms.append(Term("flat copy of the bucket that is reduced", Kind.TRANSIENT, copy, doubt=0.5))
    if zero == 3:
        layer = np.maximum(
            dense_layer(job.model).elements * (stages.dense > 0), moe_layer(job.model).elements * (stages.moe > 0)
        )
        most = np.minimum(found, job.number(f"{_ZERO}stage3_max_live_parameters", 1e9))
        live = np.maximum(most, layer / np.asarray(job.layout.tensor))
        ahead = np.minimum(job.number(f"{_ZERO}stage3_prefetch_bucket_size", 5e7), found)
        terms.append(Term("gathered parameters", Kind.TRANSIENT, (live + ahead) * compute * several, doubt=0.4))
    return terms


def step(job: Job, stages: Stages) -> list[Term]:
    """The optimizer step: fp32 gradients of the rank's partition, and the bucket that gathers new parameters.

    Stage 3 goes through its partition in pieces of ``sub_group_size`` elements (``stage3.py:2290``, 0.19.2).
    """
    found, zero = elements(job, stages), stage(job)
    share = found / (ranks(job) if zero >= 1 else 1) * (1 - _offloaded(job))
    piece = np.minimum(share, job.number(f"{_ZERO}sub_group_size", 1e9)) if zero == 3 else share
    terms = []
    if _compute(job) < 4:
        terms.append(Term("fp32 gradients of the partition", Kind.TRANSIENT, piece * 4))
    if zero in (1, 2):
        bucket = np.minimum(job.number(f"{_ZERO}allgather_bucket_size", 5e8), found)
        terms.append(Term("bucket of new parameters", Kind.TRANSIENT, bucket * _compute(job)))
    return terms


def host(job: Job, stages: Stages) -> list[Term]:
    """What is offloaded to host memory, pinned buffers included: half as much again, as DeepSpeed's estimators say."""
    found, share = elements(job, stages), ranks(job)
    terms = []
    if _offloaded(job):
        amount = found / share * _offloaded(job) * (_moment_bytes(job) + 8)
        terms.append(Term("optimizer state and its gradients", Kind.HOST, amount * 1.5))
    if _parameters_offloaded(job):
        terms.append(Term("parameters", Kind.HOST, found / share * _compute(job) * 1.5))
    return terms
