"""Logits and loss, workspaces, and what lies outside the allocator."""

from __future__ import annotations

from typing import Any

import numpy as np

from translator.frameworks.torchtitan.memory.layer import Widths
from translator.frameworks.torchtitan.memory.parameters import embedding, fsdp_ranks, held
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

MIB = 2**20
CONTEXT_BYTES = 520 * MIB
COMMUNICATOR_BYTES = 160 * MIB


def _logits(job: Job, stages: Stages) -> Any:
    """Elements of the logits that one rank works on at a time."""
    w = Widths(job)
    split = w.tensor if job.flat.get("parallel.loss_parallel") is not False else 1
    return stages.last * w.tokens * job.model.vocab / split / (job.flat.get("loss.chunks") or 1)


def loss(job: Job, stages: Stages) -> list[Term]:
    """Logits, their fp32 copy, its log-softmax and their gradients.

    ``components/loss.py:23`` (0.2.2) turns the logits into fp32; the plain cross entropy then holds log-softmax, its
    gradient and that of its input at once (``torch.nn.functional.cross_entropy``). Compiled, the fp32 tensors stay in
    registers.
    """
    logits = _logits(job, stages)
    w = Widths(job)
    if _compiled_loss(job):
        return [Term("logits and their gradient", Kind.TRANSIENT, logits * 2 * w.compute)]
    return [Term("log-softmax of the logits and gradients in fp32", Kind.TRANSIENT, logits * 3 * 4)]


def _compiled_loss(job: Job) -> bool:
    components = job.values.get("compile.components")
    return bool(job.flat.get("launch.compile")) and (not isinstance(components, list) or "loss" in components)


def backward(job: Job, stages: Stages) -> list[Term]:
    """The backward pass of the output layer: its weight's gradient, reduced in the reduction type."""
    w = Widths(job)
    weight = stages.last * held(job, embedding(job.model))
    reduce = job.bytes_of("precision.grad_reduce", "fp32")
    sharded = np.where(fsdp_ranks(job) > 1, w.compute + reduce, reduce)
    return [
        Term("gradient of the logits", Kind.TRANSIENT, _logits(job, stages) * w.compute),
        Term("gradient of the output weight", Kind.TRANSIENT, weight * sharded),
    ]


def buffers(job: Job, stages: Stages) -> list[Term]:
    """Tables of rotary positions and workspaces of cuBLAS."""
    model = job.model
    rotary = job.layout.seq_len * model.head_dim * 4
    return [
        Term("rotary table", Kind.WORKSPACE, stages.present * rotary),
        Term("workspaces of cuBLAS", Kind.WORKSPACE, stages.present * 64 * MIB, doubt=0.5),
    ]


def outside(job: Job, stages: Stages) -> list[Term]:
    """CUDA context and NCCL's buffers, one set per group with more than one rank."""
    layout = job.layout
    axes = (layout.tensor, layout.pipeline, layout.data, layout.context, layout.expert)
    groups = sum(np.where(np.asarray(ranks) > 1, 1, 0) for ranks in axes)
    return [
        Term("CUDA context", Kind.OUTSIDE, stages.present * CONTEXT_BYTES),
        Term("NCCL buffers", Kind.OUTSIDE, stages.present * groups * COMMUNICATOR_BYTES),
    ]
