"""Parameters, gradients and optimizer state of a rank.

Gradients live in one contiguous buffer of their own type (``megatron/core/distributed/param_and_grad_buffer.py:1290``,
core 0.18.0), which backward passes add to. With mixed precision the optimizer keeps fp32 masters and two moments; the
distributed optimizer splits those over the data- and context-parallel ranks, experts over the ranks that share them
(``megatron/core/optimizer/distrib_optimizer.py:201``).
"""

from __future__ import annotations

from typing import Any

from translator.frameworks.megatron.memory.parameters import per_rank
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

_FULL = "full"


def terms(job: Job, stages: Stages) -> list[Term]:
    """Parameters, gradients, masters and moments, dense ones and experts apart."""
    dense, experts = per_rank(job, stages)
    layout = job.layout
    found: list[Term] = []
    for name, elements, ranks in (
        ("", dense, layout.data * layout.context),
        (" of experts", experts, layout.expert_data),
    ):
        if elements.any():
            found += _of_group(job, name, elements, ranks)
    return found


def _of_group(job: Job, name: str, elements: Any, ranks: Any) -> list[Term]:
    sharding = job.flat.get("parallel.data.sharding") or "none"
    kept = elements / (ranks if sharding == _FULL else 1)
    summed = elements / (ranks if sharding in (_FULL, "optimizer_gradients") else 1)
    optimized = elements / (ranks if sharding != "none" else 1)
    optimized = optimized * (1 - _offloaded(job))
    found = [
        Term(f"parameters{name}", Kind.PARAMETERS, kept * _parameter_bytes(job)),
        Term(f"gradients{name}", Kind.GRADIENTS, summed * job.bytes_of("precision.grad_accumulate", "fp32")),
        Term(f"moments{name}", Kind.OPTIMIZER, optimized * _moment_bytes(job)),
    ]
    if job.bytes_of("precision.parameters", "fp32") < 4 or sharding == _FULL:
        found.insert(2, Term(f"masters{name}", Kind.OPTIMIZER, optimized * job.bytes_of("precision.master", "fp32")))
    return found


def _parameter_bytes(job: Job) -> float:
    """Of one parameter: an fp8 one is kept along rows and along columns (TransformerEngine's Float8Tensor)."""
    if job.flat.get("precision.fp8_parameters"):
        return 2.0
    cached = 2.0 if job.flat.get("precision.fp8") not in (None, "none") else 0.0
    return job.bytes_of("precision.parameters", "fp32") + cached


def _moment_bytes(job: Job) -> float:
    """Of the moments of one parameter."""
    first = job.bytes_of("precision.first_moment", "fp32")
    if job.flat.get("optimizer.name") in ("sgd", "muon", "dist_muon", "lion"):
        return first
    return first + job.bytes_of("precision.second_moment", "fp32")


def _offloaded(job: Job) -> float:
    """The share of the optimizer state that rests in host memory."""
    if not job.flat.get("optimizer.offload"):
        return 0.0
    share = job.flat.get("optimizer.offload_fraction")
    return float(share) if isinstance(share, float | int) else 1.0


def step(job: Job, stages: Stages) -> list[Term]:
    """The optimizer step: fused kernels update in place, so there is only the norm's handful of numbers.

    Where zeros are counted (``--log-num-zeros-in-grad``) or a parameter norm is logged, each buffer is looked at piece
    by piece, in fp32.
    """
    _ = job
    return [Term("norms", Kind.TRANSIENT, stages.present * 2.0**20)]


def host(job: Job, stages: Stages) -> list[Term]:
    """What ``--optimizer-cpu-offload`` keeps in host memory."""
    share = _offloaded(job)
    if not share:
        return []
    dense, experts = per_rank(job, stages)
    layout = job.layout
    sharded = job.flat.get("parallel.data.sharding") not in (None, "none")
    elements = dense / (layout.data * layout.context if sharded else 1) + experts / (
        layout.expert_data if sharded else 1
    )
    return [Term("optimizer state", Kind.HOST, elements * share * (_moment_bytes(job) + 4))]
