"""Shards, their gradients and moments, and what FSDP gathers and reduces around a block."""

from __future__ import annotations

from typing import Any

import numpy as np

from translator.frameworks.torchtitan.memory.parameters import (
    Tensor,
    around_experts,
    dense_block,
    embedding,
    fsdp_ranks,
    held,
    routed_experts,
    sharded,
)
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term


def elements(job: Job, stages: Stages, count: Any) -> Any:
    """Elements of every rank, counted by ``count(job, tensors)``; shape (layouts, stages)."""
    model = job.model
    block = count(job, dense_block(model))
    total = stages.dense * block
    if model.moe is not None:
        total = total + stages.moe * (count(job, around_experts(model)) + count(job, routed_experts(model)))
    ends = count(job, embedding(model))
    tied = model.tied & (np.asarray(job.layout.pipeline) == 1)
    total = total + stages.first * ends + stages.last * (ends * ~np.asarray(tied) + count(job, [_final_norm(job)]))
    return total * stages.present


def _final_norm(job: Job) -> Tensor:
    return Tensor("norm", job.model.hidden)


def terms(job: Job, stages: Stages) -> list[Term]:
    """Shards in the type of ``training.dtype``, gradients of the same type, two moments.

    With FSDP a gradient exists as a shard between backward pass and step only, and is set to None afterwards; at the
    peak of the second step and later ones the gradients of the blocks behind are there already.
    """
    found = elements(job, stages, sharded)
    kept = found * (0 if _offloaded(job) else 1)
    size = job.bytes_of("precision.master", "fp32")
    moments = size if job.flat.get("optimizer.name") in ("sgd", "lion", "muon") else 2 * size
    return [
        Term("parameter shards", Kind.PARAMETERS, kept * size),
        Term("gradient shards", Kind.GRADIENTS, kept * size),
        Term("moments", Kind.OPTIMIZER, kept * moments),
    ]


def _offloaded(job: Job) -> bool:
    return bool(job.flat.get("parallel.data.offload_parameters"))


def gathered(job: Job, stages: Stages) -> list[Term]:
    """Parameters in the compute type that are whole for a while, and gradients on their way.

    Two blocks are gathered at a time (the one that runs, the next one prefetched), and the gradient of one waits for
    its reduction in the reduction type. With ``reshard_after_forward`` off, as by default under a pipeline
    (``models/llama3/infra/parallelize.py:250``, 0.2.2), all blocks stay whole, and the schedule lets gradients of
    all but the last micro batch add up unsharded in the reduction type (``torch/distributed/pipelining/stage.py:844``).
    """
    model = job.model
    compute = min(job.bytes_of("precision.compute", "fp32"), 4)
    reduce = job.bytes_of("precision.grad_reduce", "fp32")
    ranks = fsdp_ranks(job)
    whole = np.where(ranks > 1, 1, 0)
    block = np.maximum(
        held(job, dense_block(model)) * (stages.dense > 0),
        (held(job, around_experts(model)) + held(job, routed_experts(model))) * (stages.moe > 0),
    )
    ends = held(job, embedding(model))
    if job.flat.get("parallel.data.reshard_after_forward") is False:
        everything = elements(job, stages, held)
        several = np.asarray(job.layout.micro_batches) > 1
        return [
            Term("gathered parameters", Kind.TRANSIENT, everything * compute * whole),
            Term("unsharded gradients", Kind.GRADIENTS, everything * reduce * whole * several),
        ]
    return [
        Term("gathered blocks", Kind.TRANSIENT, 2 * block * compute * whole * stages.present),
        Term("gathered output layer", Kind.TRANSIENT, stages.last * ends * compute * whole),
        Term("gradient on its way", Kind.TRANSIENT, block * (compute + reduce) * whole * stages.present),
    ]


def step(job: Job, stages: Stages) -> list[Term]:
    """The optimizer step: fused kernels need nothing; the others hold one temporary of each parameter's size."""
    if job.flat.get("optimizer.implementation") in ("fused", None):
        return []
    amount = elements(job, stages, sharded) * job.bytes_of("precision.master", "fp32")
    return [Term("temporaries of the step", Kind.TRANSIENT, amount)]


def host(job: Job, stages: Stages) -> list[Term]:
    """Shards, gradients and moments in host memory under ``enable_cpu_offload``."""
    if not _offloaded(job):
        return []
    return [Term("offloaded state", Kind.HOST, elements(job, stages, sharded) * 16)]
