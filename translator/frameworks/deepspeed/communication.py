"""What a DeepSpeed rank sends in one optimizer step, axis by axis. Line numbers are those of 0.19.2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from translator.communication import patterns
from translator.communication.collectives import Operation
from translator.communication.placement import Axis, Grid, Group
from translator.communication.transfers import Transfer
from translator.frameworks.deepspeed.memory.state import stage
from translator.memory.sizes import Job
from translator.memory.stages import Stages

_ZERO = "zero_optimization."
_STAGE_12 = "deepspeed/runtime/zero/stage_1_and_2.py"
_STAGE_3 = "deepspeed/runtime/zero/stage3.py"
_GATHERS = "deepspeed/runtime/zero/partition_parameters.py"
_TP = "deepspeed/module_inject/layers.py"
_SINGLE = 4


def _version(source: str) -> str:
    return f"{source} (0.19.2)"


def _again(job: Job) -> float:
    """1 where every layer's forward pass runs a second time."""
    return float(job.flat.get("recompute.mode") == "full")


def tensor(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Activations between the tensor ranks of a layer.

    Bytes per layer and micro batch: 2 all-reduces forward, of 2 (n - 1) / n x tokens x hidden x bytes, and in the
    backward pass one for each column-parallel linear: query, key, value, gate and up apart (AutoTP), or 2 (a model that
    is parallel by itself).
    """
    model = job.model
    backwards = 2
    if (job.values.get("tensor_parallel.autotp_size") or 1) != 1:
        backwards = 3 + (2 if model.gated else 1)
    yield Transfer(
        "outputs of attention and feed-forward, input gradients",
        Axis.TENSOR,
        Operation.ALL_REDUCE,
        patterns.residual_bytes(job),
        patterns.passes(job, stages) * (2 * (1 + _again(job)) + backwards),
        grid.group(Axis.TENSOR),
        overlapped=False,
        source=_version(f"{_TP}:227"),
    )


def vocabulary(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Output head and loss, where the head is cut over the vocabulary (0.19.8); else both are whole on every rank.

    Bytes per micro batch: 3 all-reduces of one fp32 number per token (maximum, sum of exponentials, target's logit),
    and one of the head's input gradient, 2 (n - 1) / n x tokens x hidden x bytes.
    """
    if not job.values.get("tensor_parallel.vocab_parallel_lm_head"):
        return
    last, group = job.layout.micro_batches * stages.last, grid.group(Axis.TENSOR)
    for name, size, count, source in (
        ("cross entropy", job.layout.tokens * _SINGLE, 3, "deepspeed/sequence/cross_entropy.py:72 (0.19.8)"),
        ("input gradient of the head", patterns.residual_bytes(job), 1, f"{_TP}:1083 (0.19.8)"),
    ):
        yield Transfer(name, Axis.TENSOR, Operation.ALL_REDUCE, size, count * last, group, False, source)


def context(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Attention between a split sequence and split heads (Ulysses).

    Bytes per layer and micro batch: 2 x (n - 1) / n x local tokens x (query + key + value + output width) x bytes;
    keys and values are copied where there are fewer heads of them than ranks.
    """
    copies = np.maximum(np.asarray(job.layout.context) / job.model.kv_heads, 1) if job.model.mla is None else 1
    yield from patterns.all_to_all_heads(
        job,
        stages,
        grid,
        forwards=1 + _again(job),
        source=_version("deepspeed/sequence/layer.py:244"),
        kv_copies=copies,
    )


def experts(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Tokens to their experts and back (AutoEP).

    Bytes per MoE layer and micro batch: 4 x (n - 1) / n x tokens x top-k x hidden x bytes.
    """
    if job.model.moe is None:
        return
    yield Transfer(
        "tokens to their experts and back",
        Axis.EXPERT,
        Operation.ALL_TO_ALL,
        patterns.routed_bytes(job, job.layout.tokens),
        job.layout.micro_batches * stages.moe * (4 + 2 * _again(job)),
        grid.group(Axis.EXPERT),
        overlapped=False,
        source=_version("deepspeed/module_inject/auto_ep_layer.py:184"),
    )


def pipeline(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Activations between the stages of a ``PipelineModule``, whole on every tensor rank.

    Bytes: micro batches x 2 x tokens x hidden x bytes.
    """
    source = _version("deepspeed/runtime/pipe/engine.py:1025")
    yield from patterns.sends(job, stages, grid, split=1, overlapped=False, source=source)


def gradients(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Gradients over the data- and sequence-parallel ranks, experts over theirs.

    Bytes: stages 0 and 1, 2 (n - 1) / n x gradient bytes once a step; stage 2, the same for every micro batch, since
    buckets are all-reduced and each rank keeps its part (``use_multi_rank_bucket_allreduce``); stage 3, (n - 1) / n for
    every micro batch. MiCS adds an all-reduce of the shards over its replicas.
    """
    zero = stage(job)
    often = job.layout.micro_batches if zero >= 2 else 1
    size = job.bytes_of("precision.grad_reduce", "bf16")
    bucket = job.number(f"{_ZERO}reduce_bucket_size", 5e8)
    whole = zero == 3 or job.values.get(f"{_ZERO}use_multi_rank_bucket_allreduce") is False
    operation = Operation.REDUCE_SCATTER if whole and zero else Operation.ALL_REDUCE
    source = _version({0: "deepspeed/runtime/engine.py:2574", 3: f"{_STAGE_3}:1617"}.get(zero, f"{_STAGE_12}:1718"))
    overlapped = bool(job.values.get(f"{_ZERO}overlap_comm"))
    for name, elements, inner, outer in _state(job, stages, grid):
        calls = np.maximum(patterns.buckets(elements, bucket), 1)
        axis = Axis.EXPERT_DATA if name else Axis.SHARD
        one = elements * size / calls
        yield Transfer(f"gradients{name}", axis, operation, one, calls * often, inner, overlapped, source)
        if outer is not None:
            mics = _version("deepspeed/runtime/zero/mics.py:63")
            shard = one / inner.ranks
            reduce = Operation.ALL_REDUCE
            yield Transfer("shards of gradients", Axis.REPLICAS, reduce, shard, calls * often, outer, False, mics)


def parameters(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Parameters over the data- and sequence-parallel ranks.

    Bytes: stages 1 and 2, (n - 1) / n x parameter bytes once a step after the optimizer; stage 3, twice for every micro
    batch, before the forward and the backward pass of each module. hpZ gathers for the backward pass from a second copy
    within its group; quantized weights travel in int8.
    """
    zero = stage(job)
    if zero == 0:
        return
    size = job.bytes_of("precision.parameters", "fp32")
    micro_batches = np.asarray(job.layout.micro_batches)
    if zero < 3:
        bucket = job.number(f"{_ZERO}allgather_bucket_size", 5e8)
        for name, elements, inner, _ in _state(job, stages, grid):
            calls = np.maximum(patterns.buckets(elements, bucket), 1)
            axis = Axis.EXPERT_DATA if name else Axis.SHARD
            one, gather, source = elements * size / calls, Operation.ALL_GATHER, _version(f"{_STAGE_12}:2255")
            yield Transfer(f"parameters{name}", axis, gather, one, calls, inner, False, source)
        return
    size = 1 if job.values.get(f"{_ZERO}zero_quantized_weights") else size
    secondary = int(job.number(f"{_ZERO}zero_hpz_partition_size", 1))
    for name, elements, inner, _ in _state(job, stages, grid):
        axis = Axis.EXPERT_DATA if name else Axis.SHARD
        calls = np.maximum(stages.layers, 1)
        one, source = elements * size / calls, _version(f"{_GATHERS}:1233")
        for direction, group in (("forward", inner), ("backward", _second(grid, inner, secondary))):
            title = f"parameters{name}, {direction} pass"
            yield Transfer(title, axis, Operation.ALL_GATHER, one, calls * micro_batches, group, True, source)


def _second(grid: Grid, group: Group, ranks: int) -> Group:
    """The group of hpZ: neighbours, as many as it is told."""
    if ranks <= 1:
        return group
    return Group(np.asarray(ranks), np.minimum(ranks, np.asarray(grid.gpus_per_node)))


def _state(job: Job, stages: Stages, grid: Grid) -> Iterator[tuple[str, Any, Group, Group | None]]:
    """Name, elements of a stage, the group that shares them, and under MiCS that of its replicas.

    Matrices are split over the tensor ranks, embedding and head are not (AutoTP); routed experts are split over the
    expert ranks.
    """
    layout = job.layout
    total, routed = patterns.elements(job, stages, ends=1, experts=layout.expert * layout.tensor)
    spread = np.asarray(layout.expert) > 1
    mics = job.number(f"{_ZERO}mics_shard_size", -1) > 0
    inner = grid.group(Axis.CONTEXT, Axis.SHARD) if mics else grid.group(Axis.CONTEXT, Axis.SHARD, Axis.REPLICAS)
    yield "", total + routed * ~spread, inner, grid.group(Axis.REPLICAS) if mics else None
    if np.any(spread):
        yield " of experts", routed * spread, grid.group(Axis.EXPERT_DATA), None


PARTS = (tensor, vocabulary, context, experts, pipeline, gradients, parameters)
