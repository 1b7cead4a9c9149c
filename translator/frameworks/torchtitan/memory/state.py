"""Shards, gradients and moments of a rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from translator.frameworks.torchtitan.memory.gathers import REDUCE, Groups
from translator.frameworks.torchtitan.memory.parameters import elements, fsdp_ranks, release, sharded
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

# Optimizers that keep one moment per parameter instead of two.
ONE_MOMENT = frozenset({"lion", "muon", "dist_muon"})


def terms(job: Job, stages: Stages) -> list[Term]:
    """Shards in the type of ``training.dtype``, and the optimizer's moments of them."""
    kept = elements(job, stages, sharded) * (0 if offloaded(job) else 1)
    size = job.bytes_of("precision.master", "fp32")
    found = [
        Term("parameter shards", Kind.PARAMETERS, kept * size),
        Term("moments", Kind.OPTIMIZER, kept * moment_bytes(job)),
    ]
    buckets = kept * size * replicated(job)
    if np.any(buckets):
        found.append(Term("buckets of DDP", Kind.GRADIENTS, buckets))
    return found


def moment_bytes(job: Job) -> float:
    """Bytes of optimizer state per parameter: one moment or two, of the shards' type unless asked for in bf16."""
    name = job.flat.get("optimizer.name")
    first = job.bytes_of("precision.first_moment", "fp32")
    if name == "sgd":
        return first if job.flat.get("optimizer.momentum") else 0
    return first if name in ONE_MOMENT else first + job.bytes_of("precision.second_moment", "fp32")


def replicated(job: Job) -> Any:
    """1 where the data-parallel ranks hold whole copies under DDP, which ended with 0.3.

    ``replicate(..., bucket_cap_mb=100)`` in ``models/llama3/infra/parallelize.py:372`` (0.2.2) leaves
    ``gradient_as_bucket_view`` off, so buckets are copies of the gradients.
    """
    alone = (fsdp_ranks(job) == 1) & (np.asarray(job.layout.replicate) > 1)
    return np.where(alone, 1, 0) * (0 if release(job) >= (0, 3) else 1)


def gradients(job: Job, stages: Stages) -> list[Term]:
    """Gradients as shards: there from a block's backward pass to the step, then set to None.

    Under FSDP they are views of what the reduction put out, so they lie in its stream's pool
    (``torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py``, ``foreach_reduce``, torch 2.13).
    """
    found = elements(job, stages, sharded)
    if job.values.get("optimizer.early_step_in_backward"):
        # A group's step is taken in the backward pass, and its gradient freed.
        found = found / np.maximum(stages.layers + stages.first + stages.last, 1)
    kept = found * (0 if offloaded(job) else 1) * job.bytes_of("precision.master", "fp32")
    applied = (fsdp_ranks(job) > 1) | (release(job) >= (0, 3))
    return [
        Term("gradient shards", Kind.GRADIENTS, kept * np.where(applied, 1, 0), pool=REDUCE),
        Term("gradients", Kind.GRADIENTS, kept * np.where(applied, 0, 1)),
    ]


def added(job: Job, groups: Groups) -> list[Term]:
    """What a reduction puts out before it is added to gradients that are there: the largest group's share."""
    share = np.maximum(groups.block, groups.output) / groups.ranks * groups.reduce * groups.applied
    there = kept_between(job)
    return [Term("reduced gradient to be added", Kind.TRANSIENT, share * there, pool=REDUCE)] if np.any(there) else []


def earlier(job: Job, found: list[Term]) -> list[Term]:
    """Gradients that are there before a backward pass adds to them.

    Those of earlier micro batches, but for FSDP under a pipeline (`gathers`); those of every step under CUDA graphs,
    which need them to stay in their place (``zero_grad(set_to_none=...)`` in ``trainer.py:874``, 0.3.0).
    """
    there = kept_between(job)
    return [replace(term, amount=term.amount * there) for term in found] if np.any(there) else []


def kept_between(job: Job) -> Any:
    """Where gradients are there before a backward pass."""
    layout = job.layout
    applied = (fsdp_ranks(job) > 1) | (release(job) >= (0, 3))
    summed = (np.asarray(layout.micro_batches) > 1) & ((np.asarray(layout.pipeline) == 1) | ~applied)
    return summed | (job.flat.get("launch.cuda_graphs") == "full")


def casts(job: Job, stages: Stages) -> list[Term]:
    """Weights that autocast turned into the compute type, kept for the backward pass, where FSDP does not do it.

    ``distributed/utils.py``, ``maybe_enable_amp`` (0.2.2).
    """
    compute = job.bytes_of("precision.compute", "fp32")
    if release(job) >= (0, 3) or compute >= job.bytes_of("precision.master", "fp32"):
        return []
    amount = elements(job, stages, sharded) * compute * np.where(fsdp_ranks(job) > 1, 0, 1)
    return [Term("weights cast by autocast", Kind.TRANSIENT, amount)] if np.any(amount) else []


def offloaded(job: Job) -> bool:
    """Whether shards, gradients and moments are in host memory (``training.enable_cpu_offload``)."""
    return bool(job.flat.get("parallel.data.offload_parameters"))


def step(job: Job, stages: Stages) -> list[Term]:
    """The optimizer step: fused kernels and loops need next to nothing; foreach holds a list of temporaries.

    ``torch/optim/adam.py``, ``_multi_tensor_adam``: the square roots of all second moments (torch 2.13).
    """
    if offloaded(job) or job.flat.get("optimizer.implementation") != "foreach":
        return []
    amount = elements(job, stages, sharded) * job.bytes_of("precision.master", "fp32")
    return [Term("temporaries of the step", Kind.TRANSIENT, amount)]


def host(job: Job, stages: Stages) -> list[Term]:
    """Shards, gradients and moments in host memory under ``enable_cpu_offload``."""
    if not offloaded(job):
        return []
    size = job.bytes_of("precision.master", "fp32")
    return [Term("offloaded state", Kind.HOST, elements(job, stages, sharded) * (2 * size + moment_bytes(job)))]
