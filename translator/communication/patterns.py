"""What several frameworks move in the same way; each names its own upstream line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from translator.communication.collectives import Operation
from translator.communication.placement import Axis, Grid, Group
from translator.communication.transfers import Transfer
from translator.memory.parameters import dense_layer, embedding, feed_forward, moe_layer, norm
from translator.memory.sizes import Job
from translator.memory.stages import Stages

_V_SCHEDULES = ("zbv_zero_bubble", "dual_pipe_v")


def residual_bytes(job: Job) -> Any:
    """Bytes of the residual stream of one micro batch on one context rank, whole along the tensor ranks."""
    return job.layout.tokens * job.model.hidden * compute_bytes(job)


def compute_bytes(job: Job) -> float:
    """Bytes of one activation."""
    return max(job.bytes_of("precision.compute", "fp32"), 2)


def passes(job: Job, stages: Stages) -> Any:
    """Forward passes of one layer times layers on each stage, per step; shape (layouts, stages)."""
    return job.layout.micro_batches * stages.layers


def sends(job: Job, stages: Stages, grid: Grid, *, split: Any, overlapped: bool, source: str) -> Iterator[Transfer]:
    """Activations to the next stage and their gradients to the one before, once per micro batch and stage boundary.

    Bytes: sends x tokens x hidden x bytes / ``split``; between the ends a rank sends 2 x chunks times per micro batch.
    In a V (two chunks, the second in reverse) the last rank hands over to itself.
    """
    layout = job.layout
    chunks, degrees = np.asarray(layout.chunks), np.atleast_1d(np.asarray(layout.pipeline)).reshape(-1, 1)
    index = np.arange(stages.count)
    ends = (index == 0) * 1 + (index == degrees - 1) * 1
    # Of a loop the first stage has nobody to send a gradient to, and the last none to send activations to; of a V both
    # ends of the model are on the first rank, and the last rank keeps two sends to itself.
    count = 2 * chunks - ends * (2 if layout.schedule in _V_SCHEDULES else 1)
    yield Transfer(
        "activations and their gradients between stages",
        Axis.PIPELINE,
        Operation.SEND,
        residual_bytes(job) / split,
        layout.micro_batches * count * stages.present,
        grid.group(Axis.PIPELINE),
        overlapped,
        source,
    )


def key_value_bytes(job: Job) -> Any:
    """Bytes of keys and values of one micro batch on one rank: those of latent attention are per query head."""
    model = job.model
    keys = model.query_width if model.mla is not None else model.kv_heads * model.head_dim
    values = model.value_width if model.mla is not None else model.kv_heads * model.head_dim
    return job.layout.tokens * (keys + values) / job.layout.tensor * compute_bytes(job)


def all_to_all_heads(
    job: Job, stages: Stages, grid: Grid, *, forwards: Any, source: str, kv_copies: Any = 1
) -> Iterator[Transfer]:
    """Queries, keys, values and outputs change between a split sequence and split heads (Ulysses).

    Bytes: (n - 1) / n x tokens x (query + key + value + output width) x bytes for each forward or backward pass of a
    layer. Source of the scheme: "DeepSpeed Ulysses", arXiv 2309.14509, section 3.
    """
    width = (job.model.query_width + job.model.value_width) / job.layout.tensor
    message = job.layout.tokens * width * compute_bytes(job) + key_value_bytes(job) * kv_copies
    yield Transfer(
        "queries, keys, values and outputs of attention",
        Axis.CONTEXT,
        Operation.ALL_TO_ALL,
        message / 4,
        4 * (forwards + 1) * passes(job, stages),
        grid.group(Axis.CONTEXT),
        overlapped=False,
        source=source,
    )


def routed_bytes(job: Job, tokens: Any) -> Any:
    """Bytes of tokens sent to their experts: a copy per chosen expert, spread evenly."""
    moe = job.model.moe
    top_k = moe.top_k if moe is not None else 0
    return tokens * top_k * job.model.hidden * compute_bytes(job)


def buckets(elements: Any, bucket_elements: float) -> Any:
    """How many buckets the elements of a rank fill."""
    return np.ceil(np.asarray(elements) / max(bucket_elements, 1))


def spread(
    name: str,
    axis: Axis,
    operation: Operation,
    *,
    once: Any,
    units: Any,
    times: Any,
    group: Group,
    overlapped: bool,
    source: str,
) -> Transfer:
    """A transfer of ``once`` bytes in all, in ``units`` calls of equal size, that many ``times`` a step."""
    count = np.maximum(units, 1)
    return Transfer(name, axis, operation, once / count, count * times, group, overlapped, source)


def elements(job: Job, stages: Stages, *, ends: Any, experts: Any) -> tuple[Any, Any]:
    """Elements of each stage on one rank, without its routed experts and of those; shape (layouts, stages).

    Matrices of layers are split over the tensor ranks; embedding and output layer over ``ends`` ranks, the routed
    experts of a layer over ``experts``.
    """
    model, tensor = job.model, job.layout.tensor
    dense, moe = dense_layer(model), moe_layer(model)
    total = stages.dense * (dense.matrices / tensor + dense.whole)
    routed: Any = np.zeros(stages.dense.shape)
    if model.moe is not None:
        one = feed_forward(model, model.moe.ffn)
        matrices, whole = model.moe.experts * one.matrices, model.moe.experts * one.whole
        total = total + stages.moe * ((moe.matrices - matrices) / tensor + moe.whole - whole)
        routed = stages.moe * (matrices + whole) / experts * stages.present
    total = total + stages.first * embedding(model) / ends + stages.last * output_layer(job, ends)
    return total * stages.present, routed


def output_layer(job: Job, ends: Any = None) -> Any:
    """Elements of the last norm and the output layer on one rank, which is split over ``ends`` (the tensor ranks)."""
    apart = np.asarray(job.layout.pipeline) > 1
    split = job.layout.tensor if ends is None else ends
    return norm(job.model) + embedding(job.model) / split * ((not job.model.tied) | apart)


def layer_matrices(job: Job, stages: Stages) -> Any:
    """Elements of the matrices of each stage's layers on one rank, routed experts left out; shape (layouts, stages)."""
    model = job.model
    total = stages.dense * dense_layer(model).matrices
    if model.moe is not None:
        routed = model.moe.experts * feed_forward(model, model.moe.ffn).matrices
        total = total + stages.moe * (moe_layer(model).matrices - routed)
    return total / job.layout.tensor * stages.present
