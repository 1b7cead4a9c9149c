"""What a torchtitan rank sends in one optimizer step, axis by axis.

Lines of torchtitan are those of 0.2.2, lines of torch those of 2.13. torch.compile may fuse or move collectives; how
many bytes travel stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from translator.communication import patterns
from translator.communication.collectives import Operation
from translator.communication.placement import Axis, Grid, Group
from translator.communication.transfers import Transfer
from translator.memory.sizes import Job
from translator.memory.stages import Stages

_DENSE = "models/llama3/infra/parallelize.py"
_MOE = "models/llama4/infra/parallelize.py"
_ATTENTION = "torch/distributed/tensor/experimental/_context_parallel/_attention.py"
_LOSS = "torch/distributed/tensor/parallel/loss.py:209 (torch 2.13)"
_SINGLE = 4
_DDP_BUCKET_BYTES = 100e6


def _version(source: str) -> str:
    return f"{source} (torchtitan 0.2.2)"


def _again(job: Job) -> float:
    """The share of the layers whose whole forward pass runs a second time."""
    if job.flat.get("recompute.mode") == "full":
        return 1.0
    if job.flat.get("recompute.method") == "every_nth":
        return 1.0 / (job.flat.get("recompute.layers") or 1)
    return 0.0


def _by_operator(job: Job) -> float:
    """1 where checkpointing by operator repeats what its list of saved operators lacks: all-gathers, above all."""
    return float(job.flat.get("recompute.mode") == "selective" and job.flat.get("recompute.method") == "operators")


def tensor(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Activations between the tensor ranks of a block: attention and feed-forward, or the whole of a MoE.

    Bytes, with sequence parallelism: 2 sublayers x (2 all-gathers + 2 reduce-scatters) of (n - 1) / n x tokens x hidden
    x bytes per block and micro batch, since the gathered input is kept for the weight gradient; without (0.3.0 only):
    2 sublayers x 2 all-reduces of 2 (n - 1) / n. Full checkpointing repeats the forward part, checkpointing by operator
    its all-gathers.
    """
    group, message = grid.group(Axis.TENSOR), patterns.residual_bytes(job)
    split = np.asarray(job.layout.sequence_parallel, dtype=bool)
    runs, again = patterns.passes(job, stages), _again(job)
    overlapped = bool(job.flat.get("parallel.tensor_overlap"))

    def one(name: str, operation: Operation, calls: Any, line: int) -> Transfer:
        source = _version(f"{_DENSE}:{line}")
        return Transfer(name, Axis.TENSOR, operation, message, calls, group, overlapped, source)

    gathers = 2 * runs * (2 + again + _by_operator(job)) * split
    yield one("inputs of attention and feed-forward", Operation.ALL_GATHER, gathers, 225)
    yield one("outputs of attention and feed-forward", Operation.REDUCE_SCATTER, 2 * runs * (2 + again) * split, 232)
    reduces = 2 * runs * (2 + again) * ~split
    yield one("outputs of attention and feed-forward, input gradients", Operation.ALL_REDUCE, reduces, 232)


def vocabulary(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Embedding, output layer and cross entropy over the tensor ranks.

    Bytes: an all-gather and a reduce-scatter of (n - 1) / n x tokens x hidden x bytes at each end; 3 all-reduces of one
    fp32 number per token for the loss, or, with loss parallelism off, an all-gather of the logits.
    """
    group, message = grid.group(Axis.TENSOR), patterns.residual_bytes(job)
    micro_batches = job.layout.micro_batches
    ends = micro_batches * (stages.first * 1 + stages.last * 1)
    last = micro_batches * stages.last

    def one(name: str, operation: Operation, size: Any, calls: Any, source: str) -> Transfer:
        return Transfer(name, Axis.TENSOR, operation, size, calls, group, False, source)

    plan = _version(f"{_DENSE}:176")
    yield one("ends of the model", Operation.ALL_GATHER, message, ends, plan)
    yield one("ends of the model", Operation.REDUCE_SCATTER, message, ends, plan)
    if job.flat.get("parallel.loss_parallel") is False:
        logits = job.layout.tokens * job.model.vocab * patterns.compute_bytes(job)
        yield one("logits", Operation.ALL_GATHER, logits, last, _version(f"{_DENSE}:184"))
    else:
        yield one("cross entropy", Operation.ALL_REDUCE, job.layout.tokens * _SINGLE, 3 * last, _LOSS)


def norm_gradients(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Gradients of norms under sequence parallelism, as often as FSDP reduces gradients.

    Bytes: 2 (n - 1) / n x norms of the stage x hidden x bytes of the compute type, each norm apart.
    """
    if not _sharded(job):
        return
    yield Transfer(
        "gradients of norms",
        Axis.TENSOR,
        Operation.ALL_REDUCE,
        job.model.hidden * patterns.compute_bytes(job),
        (2 * stages.layers + stages.last) * _reductions(job) * np.asarray(job.layout.sequence_parallel),
        grid.group(Axis.TENSOR),
        overlapped=False,
        source="torch/distributed/fsdp/_fully_shard/_fsdp_param.py:965 (torch 2.13)",
    )


def context(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Keys and values between the ranks of one sequence, and their gradients back.

    Bytes per layer and micro batch, of local keys and values: an all-gather forward and another backward, (n - 1) of
    them each, and their fp32 gradients n times around the ring. With flex attention one all-gather forward and one
    reduce-scatter backward.
    """
    group = grid.group(Axis.CONTEXT)
    runs, local = patterns.passes(job, stages), patterns.key_value_bytes(job)
    whole = local * job.layout.context

    def one(name: str, operation: Operation, size: Any, calls: Any, line: int) -> Transfer:
        source = f"{_ATTENTION}:{line} (torch 2.13)"
        return Transfer(name, Axis.CONTEXT, operation, size, calls, group, False, source)

    if job.flat.get("model.attention_kernel") == "flex":
        yield one("keys and values", Operation.ALL_GATHER, whole, runs * (1 + _again(job)), 1369)
        yield one("gradients of keys and values", Operation.REDUCE_SCATTER, whole, runs, 1369)
        return
    yield one("keys and values", Operation.ALL_GATHER, whole, runs * (2 + _again(job)), 289)
    single = local / patterns.compute_bytes(job) * _SINGLE
    turns = runs * job.layout.context
    yield one("gradients of keys and values around the ring", Operation.SEND, single, turns, 627)


def experts(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Tokens to their experts and back.

    Bytes per MoE block and micro batch: 4 x (n - 1) / n x tokens x top-k x hidden x bytes (two ways, forward and
    backward); tokens are split over the tensor ranks where expert parallelism takes those as well. Checkpointing by
    operator keeps what arrived.
    """
    if job.model.moe is None:
        return
    layout = job.layout
    own = layout.tokens / np.where(np.asarray(layout.expert_tensor) == 1, layout.tensor, 1)
    calls = layout.micro_batches * stages.moe * (4 + 2 * _again(job))
    yield Transfer(
        "tokens to their experts and back",
        Axis.EXPERT,
        Operation.ALL_TO_ALL,
        patterns.routed_bytes(job, own),
        calls,
        grid.group(Axis.EXPERT),
        overlapped=False,
        source=_version("distributed/expert_parallel.py:138"),
    )


def pipeline(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Activations between stages; a tensor rank sends its part of the sequence.

    Bytes: micro batches x 2 x chunks x tokens x hidden x bytes / tensor ranks (with sequence parallelism).
    """
    yield from patterns.sends(
        job,
        stages,
        grid,
        split=job.layout.sequence_ranks,
        overlapped=True,
        source="torch/distributed/pipelining/stage.py:483 (torch 2.13)",
    )


def gradients(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Gradients over the data-parallel ranks, experts over theirs.

    Bytes: (n - 1) / n x gradient bytes for every micro batch, or once for each pass of a pipeline's schedule; replicas
    of a shard add an all-reduce of it as often. Under plain replication 2 (n - 1) / n, as often.
    """
    times, sharded = _reductions(job), _sharded(job)
    size = job.bytes_of("precision.grad_reduce" if sharded else "precision.master", "fp32")
    for name, elements, units, inner, outer in _state(job, stages, grid):
        whole = grid.group(Axis.CONTEXT, Axis.SHARD, Axis.REPLICAS)
        yield patterns.spread(
            f"gradients{name}",
            Axis.EXPERT_DATA if name else Axis.SHARD,
            Operation.REDUCE_SCATTER if sharded else Operation.ALL_REDUCE,
            once=elements * size,
            units=units if sharded else np.ceil(elements * size / _DDP_BUCKET_BYTES),
            times=times,
            group=inner if sharded else whole,
            overlapped=True,
            source=_version(f"{_DENSE}:335" if sharded else f"{_DENSE}:372"),
        )
        if sharded:
            yield patterns.spread(
                f"shards of gradients{name}",
                Axis.REPLICAS,
                Operation.ALL_REDUCE,
                once=elements * size / inner.ranks,
                units=units,
                times=times,
                group=outer,
                overlapped=True,
                source=_version(f"{_DENSE}:335"),
            )


def parameters(job: Job, stages: Stages, grid: Grid) -> Iterator[Transfer]:
    """Parameters over the data-parallel ranks, block by block.

    Bytes: (n - 1) / n x parameter bytes in the compute type, for the forward and again for the backward pass of every
    micro batch (the output layer, which is needed again at once, only where resharding is told always); where blocks
    are not resharded after the forward pass (a pipeline's default) once per micro batch, or once per pass of the
    schedule. Linear layers that are gathered in float8 count 1 byte per element.
    """
    if not _sharded(job):
        return
    kept = job.flat.get("parallel.data.reshard_after_forward") is False
    always = job.values.get("parallelism.fsdp_reshard_after_forward") == "always"
    size = min(patterns.compute_bytes(job), job.bytes_of("precision.master", "fp32"))
    spared = patterns.layer_matrices(job, stages) * (size - 1 if job.flat.get("precision.fp8_parameters") else 0)
    head = stages.last * patterns.output_layer(job)
    for name, elements, units, inner, _ in _state(job, stages, grid):
        once = elements * size - (0 if name else spared)
        last = np.where(always or bool(name), 0, stages.last)
        yield patterns.spread(
            f"parameters{name}",
            Axis.EXPERT_DATA if name else Axis.SHARD,
            Operation.ALL_GATHER,
            once=once if kept else 2 * once - last * head * size,
            units=units if kept else 2 * units - last,
            times=_reductions(job) if kept else np.asarray(job.layout.micro_batches),
            group=inner,
            overlapped=True,
            source=_version(f"{_DENSE}:342"),
        )


def _sharded(job: Job) -> bool:
    """Whether FSDP is in force: context parallelism brings it too (``distributed/parallel_dims.py:136``, 0.2.2)."""
    return job.flat.get("parallel.data.sharding") == "full" or bool(np.any(np.asarray(job.layout.context) > 1))


def _reductions(job: Job) -> Any:
    """How often gradients are reduced: each micro batch, or with the last one of a pipeline's schedule.

    ``torch/distributed/pipelining/stage.py:846`` (torch 2.13); a schedule runs over ``training.local_batch_size``
    sequences.
    """
    layout = job.layout
    local = job.values.get("training.local_batch_size")
    share = local if isinstance(local, int) and local > 0 else layout.micro_batch * layout.micro_batches
    schedules = np.maximum(np.asarray(layout.micro_batches) * layout.micro_batch / share, 1)
    return np.where(np.asarray(layout.pipeline) > 1, schedules, layout.micro_batches)


def _state(job: Job, stages: Stages, grid: Grid) -> Iterator[tuple[str, Any, Any, Group, Group]]:
    """Name, elements of a stage, FSDP units, the group that shares them and that of the replicas.

    Experts have a group of their own where there is expert parallelism, and count with their block where not
    (``models/llama4/infra/parallelize.py:404``, 0.2.2).
    """
    layout = job.layout
    inner, outer = grid.group(Axis.CONTEXT, Axis.SHARD), grid.group(Axis.REPLICAS)
    spread = np.asarray(layout.expert) > 1
    split = np.where(spread, layout.expert * np.asarray(layout.expert_tensor), layout.tensor)
    dense, routed = patterns.elements(job, stages, ends=layout.tensor, experts=split)
    units = stages.layers + stages.first * 1 + stages.last * 1
    yield "", dense + routed * ~spread, units, inner, outer
    if job.model.moe is not None and np.any(spread):
        # The replicas of a shard are outermost, so what is left of expert data is within one.
        ranks = np.maximum(np.asarray(grid.degree(Axis.EXPERT_DATA)) // grid.degree(Axis.REPLICAS), 1)
        group = Group(ranks, np.minimum(grid.group(Axis.EXPERT_DATA).inside, ranks))
        yield " of experts", routed * spread, stages.moe, group, outer


PARTS = (tensor, vocabulary, norm_gradients, context, experts, pipeline, gradients, parameters)
