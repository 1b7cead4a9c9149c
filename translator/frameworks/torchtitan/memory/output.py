"""Logits and loss, workspaces, and what lies outside the allocator."""

from __future__ import annotations

from typing import Any

import numpy as np

from translator.frameworks.torchtitan.memory.layer import Widths
from translator.frameworks.torchtitan.memory.parameters import release
from translator.memory.outside import context_and_communicators
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

MIB = 2**20
SINGLE = 4


def _logits(job: Job, stages: Stages) -> Any:
    """Elements of the logits of one micro batch on one rank; loss parallelism leaves them split by vocabulary."""
    w = Widths(job)
    split = w.tensor if job.flat.get("parallel.loss_parallel") is not False else 1
    return stages.last * w.tokens * job.model.vocab / split


def _chunks(job: Job) -> int:
    return job.flat.get("loss.chunks") or 1


def loss(job: Job, stages: Stages) -> list[Term]:
    """The loss and its gradient with respect to the logits.

    ``components/loss.py:23`` (0.2.2) turns the logits into fp32, of which the plain cross entropy keeps the
    log-softmax; its backward pass holds that, its gradient and that of its input. Loss parallelism works with one more
    (``torch/distributed/tensor/parallel/loss.py:451``, torch 2.13: ``(grad_input + exp(x)) * grad_output``). Compiled,
    fp32 stays in registers: logits and their gradient remain.
    """
    logits = _logits(job, stages)
    w = Widths(job)
    chunks = _chunks(job)
    if chunks > 1 and release(job) >= (0, 3):
        return _chunked(job, stages)
    if _compiled_loss(job):
        return [Term("logits and their gradient", Kind.TRANSIENT, logits * 2 * w.compute)]
    if chunks > 1:
        # The output layer runs chunk by chunk, and every chunk keeps its log-softmax until the backward pass.
        return [
            Term("logits in chunks", Kind.TRANSIENT, logits * w.compute),
            Term("log-softmax of all chunks", Kind.TRANSIENT, logits * SINGLE),
            Term("gradients of one chunk in fp32", Kind.TRANSIENT, logits / chunks * _singles(job, w) * SINGLE),
        ]
    tensors = logits * (1 + _singles(job, w)) * SINGLE
    return [Term("log-softmax of the logits and gradients in fp32", Kind.TRANSIENT, tensors)]


def _singles(job: Job, w: Widths) -> Any:
    """Tensors of the logits' size in fp32 that the backward pass of the loss holds beside the log-softmax."""
    split = job.flat.get("parallel.loss_parallel") is not False
    return np.where((w.tensor > 1) & split, 3, 2)


def _chunked(job: Job, stages: Stages) -> list[Term]:
    """Output layer, loss and both backward passes for one chunk of the sequence after the other.

    ``components/loss.py``, ``ChunkedLossWrapper`` (0.3.0): the gradient of the hidden states grows in fp32 beside their
    chunks, that of the output weight stays whole in the reduction type until the last chunk.
    """
    w = Widths(job)
    logits = _logits(job, stages) / _chunks(job)
    hidden = stages.last * w.gathered()
    one = 2 * w.compute if _compiled_loss(job) else (1 + _singles(job, w)) * SINGLE
    return [
        Term("one chunk of the logits and gradients", Kind.TRANSIENT, logits * one),
        Term("chunks of the hidden states", Kind.TRANSIENT, hidden),
        Term("gradient of the hidden states", Kind.TRANSIENT, hidden / w.compute * SINGLE),
    ]


def hole(job: Job, stages: Stages) -> list[Term]:
    """Where the logits lay before they became fp32: too small for the fp32 tensors that follow.

    The logits are dropped before the backward pass (``train.py``: ``del pred``).
    """
    if _compiled_loss(job) or _chunks(job) > 1:
        return []
    return [Term("hole left by the logits", Kind.TRANSIENT, _logits(job, stages) * Widths(job).compute)]


def _compiled_loss(job: Job) -> bool:
    components = job.values.get("compile.components")
    return bool(job.flat.get("launch.compile")) and (not isinstance(components, list) or "loss" in components)


def backward(job: Job, stages: Stages) -> list[Term]:
    """The backward pass of the output layer: the gradients of logits and hidden states."""
    w = Widths(job)
    logits = _logits(job, stages) / (_chunks(job) if release(job) >= (0, 3) else 1)
    return [
        Term("gradient of the logits", Kind.TRANSIENT, logits * w.compute),
        Term("gradient of the output layer's input", Kind.TRANSIENT, stages.last * w.gathered()),
    ]


def outputs(job: Job, stages: Stages) -> list[Term]:
    """Logits of all micro batches of a step, which the pipeline merges at its end: until 0.2, which asks it not to.

    ``torch/distributed/pipelining/stage.py:907`` (torch 2.13); ``return_outputs=False`` in ``train.py:508`` (0.2.2).
    """
    if release(job) >= (0, 2):
        return []
    layout = job.layout
    amount = _logits(job, stages) * Widths(job).compute * layout.micro_batches * (np.asarray(layout.pipeline) > 1)
    return [Term("logits of all micro batches", Kind.ACTIVATIONS, amount)]


def buffers(job: Job, stages: Stages) -> list[Term]:
    """Tables of rotary positions, routers' counters, block masks, and workspaces of cuBLAS."""
    found = tables(job, stages)
    if job.flat.get("model.attention_kernel") == "flex":
        found.append(Term("block mask", Kind.WORKSPACE, stages.present * _block_mask(job)))
    return [
        *found,
        Term("workspaces of cuBLAS", Kind.WORKSPACE, stages.present * 64 * MIB, doubt=0.5),
    ]


def tables(job: Job, stages: Stages) -> list[Term]:
    """The buffers of the model: tables of rotary positions, and a bias and a counter per expert of a router.

    A table is there once for a stage until 0.2, and once for a block since; it holds complex numbers of half the width,
    or cosines and sines of the whole width (``models/common/rope.py``, ``models/common/moe.py:389``, 0.3.0).
    """
    model = job.model
    width = model.mla.rope if model.mla is not None else model.head_dim
    numbers = 1 if job.flat.get("model.rope.interleaved") else 2
    number = stages.layers if release(job) >= (0, 3) else stages.present
    rotary = number * job.layout.seq_len * width * numbers * SINGLE
    found = [Term("rotary tables", Kind.WORKSPACE, rotary)]
    if model.moe is not None:
        biased = 2 if job.flat.get("model.moe.router_bias") else 1
        counters = stages.moe * model.moe.experts * biased * SINGLE
        found.append(Term("biases and counters of routers", Kind.WORKSPACE, counters))
    return found


def _block_mask(job: Job) -> Any:
    """Indices of a block mask: four tables of int32 with an entry per pair of blocks of 128 positions.

    ``torch/nn/attention/flex_attention.py``, BlockMask (torch 2.13): partial and full blocks, by rows and by columns.
    """
    layout = job.layout
    blocks = layout.seq_len / 128
    return layout.micro_batch * blocks * blocks / layout.context * 4 * SINGLE


def outside(job: Job, stages: Stages) -> list[Term]:
    """CUDA context and NCCL's buffers, and under AsyncTP its symmetric memory."""
    found = context_and_communicators(job, stages)
    if job.flat.get("parallel.tensor_overlap"):
        # A shard that others read, and two parts of a product on their way (torch/distributed/_symmetric_memory,
        # _pipelined_multi_all_gather_and_consume and _pipelined_produce_and_all2all, torch 2.13).
        shards = stages.present * 2 * Widths(job).residual() * (np.asarray(job.layout.tensor) > 1)
        found.append(Term("symmetric memory of AsyncTP", Kind.OUTSIDE, shards))
    return found
