"""What a Megatron-LM rank sends in one optimizer step, axis by axis.

Line numbers are those of core 0.18.0. Linear layers of TransformerEngine, the default, communicate as the module in
``tensor_parallel/layers.py`` does; in fp8 what they gather is half as large, which is not counted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from translator.communication import patterns
from translator.communication.collectives import Operation
from translator.communication.placement import Axis, Grid, Group
from translator.communication.transfers import Transfer
from translator.frameworks.megatron.memory.parameters import norm, per_rank
from translator.memory.sizes import Job
from translator.memory.stages import Stages

_CORE = "megatron/core/"
_LAYERS = f"{_CORE}tensor_parallel/layers.py"
_FSDP = f"{_CORE}distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py"
_BUFFERS = f"{_CORE}distributed/param_and_grad_buffer.py"
_DISPATCH = f"{_CORE}transformer/moe/token_dispatcher.py"
SINGLE = 4


def _version(source: str) -> str:
    return f"{source} (core 0.18.0)"


def _layers(job: Job, stages: Stages) -> tuple[Any, Any]:
    """Dense and MoE layers of each stage, the extra prediction depths included."""
    extra = stages.last * job.model.mtp_layers
    moe = job.model.moe is not None and job.model.layers - 1 not in job.model.dense
    return stages.dense + (0 if moe else extra), stages.moe + (extra if moe else 0)


def _again(job: Job, stages: Stages, *modules: str) -> Any:
    """The share of the layers whose forward pass runs a second time, as far as it contains ``modules``."""
    if job.flat.get("recompute.mode") == "full":
        if job.flat.get("recompute.method") != "block":
            return 1.0
        covered = (job.flat.get("recompute.layers") or 0) * np.asarray(job.layout.chunks)
        return np.minimum(covered / np.maximum(stages.layers, 1), 1.0)
    stated = job.flat.get("recompute.modules") or ()
    return float(job.flat.get("recompute.mode") == "selective" and any(module in stated for module in modules))


def tensor(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Activations between the tensor ranks of a layer: attention and feed-forward, or shared experts.

    Bytes, with sequence parallelism: 2 sublayers x ((2 + 1) all-gathers + 2 reduce-scatters) of (n - 1) / n x tokens x
    hidden x bytes per layer and micro batch; the third all-gather fetches the input again for the weight gradient.
    Without: 2 sublayers x 2 all-reduces of 2 (n - 1) / n. A recomputed sublayer adds its forward part.
    """
    dense, moe = _layers(job, stages)
    shared = job.model.moe is not None and job.model.moe.shared_ffn > 0
    attention = (dense + moe, _again(job, stages))
    forward = (dense, _again(job, stages, "mlp"))
    experts = (moe * float(shared), _again(job, stages, "moe", "shared_experts"))
    overlapped = bool(job.flat.get("parallel.tensor_overlap"))
    group, message = grid.group(Axis.TENSOR), patterns.residual_bytes(job)
    split = np.asarray(job.layout.sequence_parallel, dtype=bool)
    micro_batches = job.layout.micro_batches
    parts = (attention, forward, experts)

    def calls(forwards: float, backwards: float) -> Any:
        return micro_batches * sum(layers * (forwards * (1 + again) + backwards) for layers, again in parts)

    def one(name: str, operation: Operation, count: Any, line: int) -> Transfer:
        source = _version(f"{_LAYERS}:{line}")
        return Transfer(name, Axis.TENSOR, operation, message, count, group, overlapped, source)

    yield one("inputs of column-parallel layers", Operation.ALL_GATHER, calls(1, 2) * split, 496)
    yield one("outputs of row-parallel layers", Operation.REDUCE_SCATTER, calls(1, 1) * split, 568)
    yield one("outputs of row-parallel layers, input gradients", Operation.ALL_REDUCE, calls(1, 1) * ~split, 557)


def vocabulary(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Embedding, output layer and cross entropy, all split over the vocabulary.

    Bytes: tokens x hidden x bytes for each end and direction, as between layers; 3 all-reduces of one fp32 number per
    token for the loss (maximum, target's logit, sum of exponentials).
    """
    group, message = grid.group(Axis.TENSOR), patterns.residual_bytes(job)
    micro_batches, heads = job.layout.micro_batches, 1 + job.model.mtp_layers
    split = np.asarray(job.layout.sequence_parallel, dtype=bool)
    ends = micro_batches * (stages.first + stages.last * heads)
    last = micro_batches * stages.last * heads

    def one(name: str, operation: Operation, size: Any, calls: Any, source: str) -> Transfer:
        return Transfer(name, Axis.TENSOR, operation, size, calls, group, False, _version(source))

    gathers = (ends + last) * split  # embedding backward; output layer forward and, for its weight, backward
    yield one("ends of the model", Operation.ALL_GATHER, message, gathers, f"{_LAYERS}:535")
    yield one("ends of the model", Operation.REDUCE_SCATTER, message, ends * split, f"{_LAYERS}:568")
    yield one("ends of the model", Operation.ALL_REDUCE, message, ends * ~split, f"{_LAYERS}:557")
    loss = f"{_CORE}tensor_parallel/cross_entropy.py:130"
    yield one("cross entropy", Operation.ALL_REDUCE, job.layout.tokens * SINGLE, 3 * last, loss)


def norm_gradients(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Gradients of norms under sequence parallelism, once a step.

    Bytes: 2 (n - 1) / n x norms of the stage x 4.
    """
    dense, moe = _layers(job, stages)
    elements = norm(job.model) * (2 * (dense + moe) + stages.last)
    yield Transfer(
        "gradients of norms",
        Axis.TENSOR,
        Operation.ALL_REDUCE,
        elements * SINGLE,
        stages.present * np.asarray(job.layout.sequence_parallel, dtype=bool),
        grid.group(Axis.TENSOR),
        overlapped=False,
        source=_version(f"{_CORE}distributed/finalize_model_grads.py:425"),
    )


def context(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Keys and values between the ranks of one sequence, by ``--cp-comm-type``.

    Bytes per layer and micro batch, of local keys and values: ring, (n - 1) forward and 2 (n - 1) backward (with their
    gradients); all-gather, (n - 1) / n of the whole, forward and twice backward; all-to-all, (n - 1) / n of queries,
    keys, values and outputs, forward and backward. Several levels (a2a+p2p) are counted as one ring.
    """
    method = str(job.flat.get("parallel.context_method") or "ring").partition(",")[0]
    again = _again(job, stages, "core_attn")
    source = _version(f"{_CORE}transformer/transformer_config.py:888")
    if method == "all_to_all":
        yield from patterns.all_to_all_heads(job, stages, grid, forwards=1 + again, source=source)
        return
    group = grid.group(Axis.CONTEXT)
    local, runs = patterns.key_value_bytes(job), patterns.passes(job, stages)

    def one(name: str, operation: Operation, size: Any, calls: Any, *, overlapped: bool) -> Transfer:
        return Transfer(name, Axis.CONTEXT, operation, size, calls, group, overlapped, source)

    if method == "all_gather":
        whole = local * job.layout.context
        yield one("keys and values", Operation.ALL_GATHER, whole, runs * (2 + again), overlapped=False)
        yield one("gradients of keys and values", Operation.REDUCE_SCATTER, whole, runs, overlapped=False)
        return
    calls = runs * (3 + again) * (np.asarray(job.layout.context) - 1)
    yield one("keys, values and their gradients around the ring", Operation.SEND, local, calls, overlapped=True)


def experts(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Tokens to their experts and back.

    Bytes per MoE layer and micro batch: all-to-all, 4 x (n - 1) / n x tokens x top-k x hidden x bytes, and with expert
    tensor parallelism as many all-gathers and reduce-scatters of what arrived; all-gather dispatcher, 4 x (n - 1) / n x
    tokens of all expert ranks x hidden x bytes; flex, a token once to each rank that holds one of its experts.
    """
    model = job.model
    if model.moe is None:
        return
    _, moe = _layers(job, stages)
    layout = job.layout
    own = layout.tokens / layout.sequence_ranks
    ways = job.layout.micro_batches * moe * (2 + _again(job, stages, "moe"))
    dispatcher = job.flat.get("model.moe.dispatcher")
    if dispatcher == "allgather":
        group = grid.group(Axis.EXPERT_TENSOR, Axis.EXPERT)
        whole = own * group.ranks * model.hidden * patterns.compute_bytes(job)
        for operation, line in ((Operation.ALL_GATHER, 278), (Operation.REDUCE_SCATTER, 344)):
            source = _version(f"{_DISPATCH}:{line}")
            yield Transfer("tokens of all experts", Axis.EXPERT, operation, whole, ways, group, False, source)
        return
    message = patterns.routed_bytes(job, own)
    name, line = "tokens to their experts and back", 678
    if dispatcher == "flex":
        # Of top-k draws over n ranks, so many ranks are hit.
        ranks = np.asarray(layout.expert, dtype=float)
        message = message / model.moe.top_k * ranks * (1 - (1 - 1 / ranks) ** model.moe.top_k)
        name, line = "tokens to the ranks of their experts and back", 1501
    source = _version(f"{_DISPATCH}:{line}")
    group = grid.group(Axis.EXPERT)
    yield Transfer(name, Axis.EXPERT, Operation.ALL_TO_ALL, message, 2 * ways, group, False, source)
    if dispatcher != "flex":
        inner = grid.group(Axis.EXPERT_TENSOR)
        whole = message * np.asarray(layout.expert_tensor)
        for operation, at in ((Operation.ALL_GATHER, 719), (Operation.REDUCE_SCATTER, 802)):
            source = _version(f"{_DISPATCH}:{at}")
            yield Transfer("tokens within an expert", Axis.EXPERT_TENSOR, operation, whole, ways, inner, False, source)


def pipeline(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Activations between stages; a tensor rank sends its part of the sequence under sequence parallelism.

    Bytes: micro batches x 2 x chunks x tokens x hidden x bytes / tensor ranks (with sequence parallelism).
    """
    yield from patterns.sends(
        job,
        stages,
        grid,
        split=job.layout.sequence_ranks,
        overlapped=bool(job.flat.get("parallel.pipeline.overlap_p2p")),
        source=_version(f"{_CORE}pipeline_parallel/schedules.py:2048"),
    )


def tied_gradients(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Gradients of a tied embedding between the first and the last stage, once a step.

    Bytes: 2 x 1 / 2 x vocabulary x hidden / tensor ranks x bytes of a gradient.
    """
    if not job.model.tied:
        return
    apart = np.asarray(job.layout.pipeline) > 1
    whole = grid.group(Axis.PIPELINE)
    group = Group(np.where(apart, 2, 1), np.where(apart & whole.crosses, 1, np.where(apart, 2, 1)))
    size = job.model.vocab * job.model.hidden / job.layout.tensor * _gradient_bytes(job)
    yield Transfer(
        "gradient of the tied embedding",
        Axis.PIPELINE,
        Operation.ALL_REDUCE,
        size,
        (np.asarray(stages.first) | np.asarray(stages.last)) * apart,
        group,
        overlapped=False,
        source=_version(f"{_CORE}distributed/finalize_model_grads.py:258"),
    )


def gradients(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Gradients over the data-parallel ranks, experts over theirs.

    Bytes: without sharding, 2 (n - 1) / n x gradient bytes once a step; with the distributed optimizer (n - 1) / n of
    them; with sharded gradients (Megatron FSDP) that for every micro batch. Replicas of a shard add an all-reduce of
    it, once.
    """
    sharding = job.flat.get("parallel.data.sharding") or "none"
    overlapped = bool(job.flat.get("parallel.data.overlap_gradient_reduction"))
    each = sharding in ("optimizer_gradients", "full")
    operation = Operation.ALL_REDUCE if sharding == "none" else Operation.REDUCE_SCATTER
    line = f"{_BUFFERS}:672" if sharding == "none" else f"{_FSDP}:716" if each else f"{_BUFFERS}:660"
    for name, elements, inner, outer in _state(job, stages, grid, replicated=sharding == "none"):
        size, units = elements * _gradient_bytes(job), _buckets(job, elements, overlapped)
        yield patterns.spread(
            f"gradients{name}",
            Axis.EXPERT_DATA if name else Axis.SHARD,
            operation,
            once=size,
            units=units,
            times=job.layout.micro_batches if each else 1,
            group=inner,
            overlapped=overlapped,
            source=_version(line),
        )
        if outer is not None:
            yield patterns.spread(
                "shards of gradients",
                Axis.REPLICAS,
                Operation.ALL_REDUCE,
                once=size / inner.ranks,
                units=units,
                times=1,
                group=outer,
                overlapped=overlapped,
                source=_version(f"{_BUFFERS}:698"),
            )


def parameters(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Parameters over the data-parallel ranks.

    Bytes: (n - 1) / n x parameter bytes once a step after the optimizer; with sharded parameters (Megatron FSDP) twice
    for every micro batch, before the forward and the backward pass of each layer.
    """
    sharding = job.flat.get("parallel.data.sharding") or "none"
    if sharding == "none":
        return
    full = sharding == "full"
    times: Any = 1
    if full:
        times = job.layout.micro_batches * (1 if job.flat.get("parallel.data.reshard_after_forward") is False else 2)
    size = 1 if job.flat.get("precision.fp8_parameters") else job.bytes_of("precision.parameters", "fp32")
    bucketed = bool(job.flat.get("parallel.data.overlap_gradient_reduction"))
    for name, elements, inner, _ in _state(job, stages, grid, replicated=False):
        yield patterns.spread(
            f"parameters{name}",
            Axis.EXPERT_DATA if name else Axis.SHARD,
            Operation.ALL_GATHER,
            once=elements * (min(size, patterns.compute_bytes(job)) if full else size),
            units=_buckets(job, elements, bucketed),
            times=times,
            group=inner,
            overlapped=full or bool(job.flat.get("parallel.data.overlap_parameter_gather")),
            source=_version(f"{_FSDP}:763" if full else f"{_BUFFERS}:477"),
        )


def _state(job: Job, stages: Stages, grid: Grid, *, replicated: bool) -> Iterator[tuple[str, Any, Group, Group | None]]:
    """Dense and expert elements with the group that shares them and, for sharded dense ones, that of the replicas."""
    dense, routed = per_rank(job, stages)
    axes = (Axis.CONTEXT, Axis.SHARD, Axis.REPLICAS) if replicated else (Axis.CONTEXT, Axis.SHARD)
    yield "", dense, grid.group(*axes), None if replicated else grid.group(Axis.REPLICAS)
    if routed.any():
        yield " of experts", routed, grid.group(Axis.EXPERT_DATA), None


def _gradient_bytes(job: Job) -> float:
    return job.bytes_of("precision.grad_reduce", "fp32")


def _buckets(job: Job, elements: Any, overlapped: bool) -> Any:
    """Buckets of a rank: one where nothing overlaps, layers under its FSDP, else of so many elements.

    ``megatron/core/distributed/distributed_data_parallel.py:69`` (core 0.18.0).
    """
    if job.flat.get("parallel.data.sharding") in ("optimizer_gradients", "full"):
        return np.full(np.shape(elements), float(job.model.layers)) / job.layout.pipeline
    if not overlapped:
        return np.ones(np.shape(elements))
    ranks = job.layout.data * job.layout.context
    stated = job.flat.get("parallel.data.bucket_elements")
    bucket: Any = stated or np.maximum(40_000_000, 1_000_000 * ranks)
    return np.ceil(elements / bucket)


PARTS = (
    tensor,
    vocabulary,
    norm_gradients,
    context,
    experts,
    pipeline,
    tied_gradients,
    gradients,
    parameters,
)
