"""Rows of the layout over ranks (sources of torchtitan 0.2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.torchtitan import addresses, stages
from translator.ledger import Entry
from translator.mapping.rows import Row, absent, implied, linked, same
from translator.mapping.shared import no_pipeline
from translator.mapping.views import NativeView, Sink, SpecView
from translator.native import ENVIRONMENT, WORLD_SIZE

_P = "parallelism."
_SCHEDULES = {
    "1f1b": "1F1B",
    "gpipe": "GPipe",
    "interleaved_1f1b": "Interleaved1F1B",
    "looped_bfs": "LoopedBFS",
    "interleaved_zero_bubble": "InterleavedZeroBubble",
    "zbv_zero_bubble": "ZBVZeroBubble",
    "dual_pipe_v": "DualPipeV",
}
_NEUTRAL = {native.lower(): neutral for neutral, native in _SCHEDULES.items()}


def _read_data(native: NativeView) -> Mapping[str, Any]:
    replicate = native(f"{_P}data_parallel_replicate_degree")
    shard = native(f"{_P}data_parallel_shard_degree")
    known = isinstance(shard, int) and shard > 0
    sharded = native(addresses.FSDP)
    flat: dict[str, Any] = {
        "parallel.data.degree": native(addresses.DP_DEGREE),
        "parallel.data.replicate": replicate,
        "parallel.data.shard": shard if known else None,
    }
    if sharded is not None or known:
        full = bool(sharded) if sharded is not None else shard > 1
        flat["parallel.data.sharding"] = "full" if full else "none"
        flat["parallel.data.reshard_after_forward"] = native(addresses.RESHARD_AFTER_FORWARD) if full else None
    else:
        # Without a world size FSDP is taken to have ranks to shard over.
        pipelined = (native(f"{_P}pipeline_parallel_degree") or 1) > 1
        policy = native(f"{_P}fsdp_reshard_after_forward")
        flat["parallel.data.sharding"] = "full"
        flat["parallel.data.reshard_after_forward"] = policy == "always" or (policy == "default" and not pipelined)
    return flat


def _expert_tensor(spec: SpecView) -> int:
    """The tensor degree inside experts: all tensor ranks or none, what the experts' mesh leaves room for."""
    tensor, inner = spec("parallel.tensor", 1), spec("parallel.expert_tensor", 1)
    ranks = spec("parallel.data.degree", 1) * spec("parallel.context", 1) * tensor
    return tensor if inner != 1 and ranks % (spec("parallel.expert", 1) * tensor) == 0 else 1


def _fits_experts(spec: SpecView, shard: int) -> bool:
    """Whether the experts' degrees divide the ranks that share parameters (``parallel_dims.py:138``)."""
    expert = spec("parallel.expert", 1)
    ranks = shard * spec("parallel.context", 1) * spec("parallel.tensor", 1)
    return bool(expert == 1 or ranks % (expert * _expert_tensor(spec)) == 0)


def _write_data(spec: SpecView, sink: Sink) -> None:
    sharding = spec("parallel.data.sharding", "full")
    degree, replicate = spec("parallel.data.degree"), spec("parallel.data.replicate", 1)
    for leaf in ("degree", "replicate", "shard"):
        if degree is None:
            sink.short(f"parallel.data.{leaf}", Entry.ADAPTED, "what the other degrees leave of the world size")
    # DDP runs beside no other axis, and experts are spread over the ranks that share parameters.
    axes = ("parallel.tensor", "parallel.context", "parallel.pipeline.degree", "parallel.expert")
    other_axes = any(spec(leaf, 1) > 1 for leaf in axes)
    pipelined = spec("parallel.pipeline.degree", 1) > 1
    if sharding == "none" and not other_axes and degree is not None and degree > 1:
        sink.put(f"{_P}data_parallel_replicate_degree", degree)
        sink.put(f"{_P}data_parallel_shard_degree", 1)
        return
    if sharding == "none":
        replicate = 1
    elif degree is not None and replicate > 1 and degree // replicate <= 1:
        # Nothing is shared by a single rank; replicas alone are DDP, which runs beside no other axis.
        replicate = 1 if other_axes else degree
        why = "DDP runs beside no other axis; all replicas shard" if other_axes else "sharding over one rank is none"
        for leaf in ("sharding", "shard", "replicate", "reshard_after_forward"):
            sink.short(f"parallel.data.{leaf}", Entry.APPROXIMATED, why)
    if degree is not None and replicate > 1 and not _fits_experts(spec, degree // replicate):
        replicate = 1
        for leaf in ("shard", "replicate"):
            why = "experts are spread over ranks that share parameters, so all replicas shard (parallel_dims.py:138)"
            sink.short(f"parallel.data.{leaf}", Entry.APPROXIMATED, why)
    sink.put(f"{_P}data_parallel_replicate_degree", replicate)
    if degree is not None:
        sink.put(f"{_P}data_parallel_shard_degree", max(1, degree // replicate))
    sharded = degree is None or degree > replicate or spec("parallel.context", 1) > 1
    wants_reshard = spec("parallel.data.reshard_after_forward")
    if sharding != "full":
        if not pipelined:
            sink.put(f"{_P}fsdp_reshard_after_forward", "never")
        kept = "parameters and gradients" if sharding == "optimizer" else "parameters"
        what = {
            "none": "no data parallelism without sharding beside other axes (parallelize.py:149)",
            "optimizer": f"FSDP shards {kept} too; gathered from forward to backward it is nearest to ZeRO-1",
            "optimizer_gradients": f"FSDP shards {kept} too; gathered from forward to backward it is nearest to ZeRO-2",
        }[sharding]
        for leaf in ("sharding", "shard", "replicate"):
            sink.short(f"parallel.data.{leaf}", Entry.APPROXIMATED, what)
    elif wants_reshard is not None and wants_reshard == pipelined and sharded:
        sink.put(f"{_P}fsdp_reshard_after_forward", "always" if wants_reshard else "never")
    if degree == 1 and spec("parallel.context", 1) == 1:
        for leaf in ("sharding", "reshard_after_forward"):
            sink.short(f"parallel.data.{leaf}", Entry.APPROXIMATED, "FSDP is not applied at data-parallel degree 1")


def _read_sequence(native: NativeView) -> Mapping[str, Any]:
    tensor = native(f"{_P}tensor_parallel_degree") or 1
    return {"parallel.sequence_parallel": tensor > 1}


def _write_sequence(spec: SpecView, sink: Sink) -> None:
    if spec("parallel.sequence_parallel") is False and spec("parallel.tensor", 1) > 1:
        sink.short(
            "parallel.sequence_parallel",
            Entry.APPROXIMATED,
            "always on with tensor parallelism; less memory, the same numbers",
        )
    elif spec("parallel.tensor") is None:
        why = "on exactly under tensor parallelism, whose degree is not known"
        sink.short("parallel.sequence_parallel", Entry.APPROXIMATED, why)
    sink.short("parallel.sequence_parallel", Entry.ADAPTED, "on exactly where there is tensor parallelism")


def _read_loss(native: NativeView) -> Mapping[str, Any]:
    tensor = native(f"{_P}tensor_parallel_degree") or 1
    return {"parallel.loss_parallel": not native(f"{_P}disable_loss_parallel") if tensor > 1 else None}


def _write_loss(spec: SpecView, sink: Sink) -> None:
    if spec("parallel.loss_parallel") is False:
        sink.put(f"{_P}disable_loss_parallel", True)


def _write_overlap(spec: SpecView, sink: Sink) -> None:
    if not spec("parallel.tensor_overlap"):
        return
    if spec("launch.compile"):
        sink.put(f"{_P}enable_async_tensor_parallel", True)
    else:
        why = "needs compile: set compile.enable and parallelism.enable_async_tensor_parallel"
        sink.short("parallel.tensor_overlap", Entry.UNSUPPORTED, why)


def _read_context(native: NativeView) -> Mapping[str, Any]:
    degree = native(f"{_P}context_parallel_degree") or 1
    # The rotate method of the configuration has no effect in training (0.2.2); torch's default gathers.
    return {"parallel.context_method": "all_gather" if degree > 1 else None}


def _write_context(spec: SpecView, sink: Sink) -> None:
    if spec("parallel.context_method") not in (None, "all_gather"):
        sink.short(
            "parallel.context_method",
            Entry.APPROXIMATED,
            "keys and values are gathered over the context ranks; the same numbers",
        )


def _read_experts(native: NativeView) -> Mapping[str, Any]:
    sparse = bool(native(f"{addresses.MODEL}moe.experts"))
    expert, tensor = native(f"{_P}expert_parallel_degree") or 1, native(f"{_P}tensor_parallel_degree") or 1
    inner = native(f"{_P}expert_tensor_parallel_degree") or 1
    return {
        "parallel.expert": expert if sparse else 1,
        "parallel.expert_tensor": (inner if expert > 1 else tensor) if sparse else None,
    }


def _write_experts(spec: SpecView, sink: Sink) -> None:
    expert, inner, tensor = spec("parallel.expert", 1), spec("parallel.expert_tensor"), spec("parallel.tensor", 1)
    if not spec("model.moe.experts"):
        sink.short("parallel.expert", Entry.UNSUPPORTED, "the model has no experts, or its files do not say how many")
    elif any(spec(f"model.{size}") is None for size in ("hidden", "layers", "heads")):
        for leaf in ("parallel.expert", "parallel.expert_tensor"):
            sink.short(leaf, Entry.UNSUPPORTED, "the size of the model is not known, so none is written")
    if not sink.put(f"{_P}expert_parallel_degree", expert):
        if expert > 1:
            sink.short("parallel.expert", Entry.UNSUPPORTED, "this version has no expert parallelism")
            sink.short("parallel.expert_tensor", Entry.UNSUPPORTED, "this version has no expert parallelism")
        elif inner not in (None, tensor):
            sink.short("parallel.expert_tensor", Entry.UNSUPPORTED, "experts are split like the dense layers")
        return
    if inner is None:
        return
    within = _expert_tensor(spec) if expert > 1 else tensor
    if expert > 1:
        sink.put(f"{_P}expert_tensor_parallel_degree", within)
    if inner != within:
        why = "experts are split over all tensor ranks or none (parallel_dims.py:58)"
        if within == 1 < tensor:
            why += "; over all of them, with this expert degree, the ranks do not suffice"
        sink.short("parallel.expert_tensor", Entry.APPROXIMATED, why)


_PIPELINE_OPTIONS = (
    f"{_P}pipeline_parallel_degree",
    f"{_P}pipeline_parallel_schedule",
    f"{_P}pipeline_parallel_schedule_csv",
    stages.FIRST_LESS,
    stages.LAST_LESS,
    stages.LAYERS_PER_STAGE,
    stages.MODULE_NAMES,
    stages.SPLIT_POINTS,
)


def _read_pipeline(native: NativeView) -> Mapping[str, Any]:
    degree = native(f"{_P}pipeline_parallel_degree") or 1
    flat: dict[str, Any] = {"parallel.pipeline.degree": degree}
    if degree == 1:
        return {**flat, "parallel.pipeline.stages_per_rank": 1}
    schedule = str(native(f"{_P}pipeline_parallel_schedule"))
    flat["parallel.pipeline.schedule"] = _NEUTRAL.get(schedule.lower(), "custom")
    if native(f"{_P}pipeline_parallel_schedule_csv"):
        flat["parallel.pipeline.schedule"] = "custom"
    flat["parallel.pipeline.stages_per_rank"] = native(addresses.STAGES_PER_RANK)
    flat["parallel.pipeline.layer_split"] = native(addresses.LAYER_SPLIT)
    return flat


def _write_pipeline(spec: SpecView, sink: Sink) -> None:
    degree = spec("parallel.pipeline.degree", 1)
    sink.put(f"{_P}pipeline_parallel_degree", degree)
    if degree == 1:
        no_pipeline(sink)
        return
    wanted = spec("parallel.pipeline.schedule", "1f1b")
    name = _SCHEDULES.get(wanted)
    if name is None:
        name = "1F1B"
        sink.short("parallel.pipeline.schedule", Entry.UNSUPPORTED, "the custom schedule is not known; 1F1B is written")
    sink.put(f"{_P}pipeline_parallel_schedule", name)
    if wanted == "dual_pipe_v" and spec("parallel.expert", 1) > 1 and spec("recompute.mode", "none") != "none":
        why = "overlapped expert parallelism does not go with recomputation"
        sink.put(f"{_P}pipeline_parallel_expert_parallel_overlap", False, why)
    schedule = stages.find_schedule(name)
    split = spec("parallel.pipeline.layer_split") or _even(spec, degree)
    if schedule is None or split is None:
        return
    try:
        if sink.has(stages.SPLIT_POINTS):
            options = stages.reproduce_points(split, schedule, degree)
        else:
            options = stages.reproduce(split, schedule, degree, stages.head(sink.version))
    except stages.SplitError as refusal:
        for leaf in ("layer_split", "stages_per_rank", "schedule"):
            sink.short(f"parallel.pipeline.{leaf}", Entry.UNSUPPORTED, f"{refusal} ({refusal.source})")
        return
    for address, value in options.items():
        sink.put(address, value)
    why = "torchtitan cannot place the layers so"
    sink.short("parallel.pipeline.layer_split", Entry.APPROXIMATED, why)
    sink.short("parallel.pipeline.stages_per_rank", Entry.APPROXIMATED, why)


def _even(spec: SpecView, degree: int) -> list[int] | None:
    layers, virtual = spec("model.layers"), spec("parallel.pipeline.stages_per_rank", 1)
    if not layers or layers % (degree * virtual):
        return None
    return [layers // (degree * virtual)] * (degree * virtual)


# Variables that only Megatron-LM and Transformer Engine read; the first one costs FSDP its overlap.
_FOREIGN_VARIABLES = ("CUDA_DEVICE_MAX_CONNECTIONS",)
_FOREIGN_PREFIXES = ("NVTE_", "MEGATRON_")


def _write_environment(spec: SpecView, sink: Sink) -> None:
    environment = dict(spec("launch.environment") or {})
    foreign = [name for name in environment if name in _FOREIGN_VARIABLES or name.startswith(_FOREIGN_PREFIXES)]
    for name in foreign:
        del environment[name]
    for name in [name for name in environment if not (name.isidentifier() and name.isascii())]:
        del environment[name]
        sink.short("launch.environment", Entry.UNSUPPORTED, f"no shell exports {name!r}")
    if foreign:
        sink.short(
            "launch.environment", Entry.ADAPTED, f"left out, for torchtitan does not read them: {', '.join(foreign)}"
        )
    if environment:
        sink.put(ENVIRONMENT, environment)
        sink.short("launch.environment", Entry.ADAPTED, "exported by launch.sh, for a TOML file has no place for it")


# What 0.3.0 says under the same names, with the same meaning.
SHARED: tuple[Row, ...] = (
    same(WORLD_SIZE, "parallel.world_size"),
    same(f"{_P}tensor_parallel_degree", "parallel.tensor"),
    same(f"{_P}context_parallel_degree", "parallel.context"),
    linked((), ["parallel.context_method"], read=_read_context, write=_write_context),
    implied("parallel.rank_order", "tp-cp-ep-dp-pp", "the order of the axes is fixed (parallel_dims.py)"),
    implied("parallel.data.overlap_gradient_reduction", True, "FSDP always reduces gradients beside the backward pass"),
    implied("parallel.data.overlap_parameter_gather", True, "FSDP always gathers parameters ahead"),
    absent("parallel.data.bucket_elements", "FSDP reduces block by block; there are no buckets"),
    absent(
        "parallel.data.average_in_collective", "FSDP does not average: the loss is divided by the global token count"
    ),
    same("training.enable_cpu_offload", "parallel.data.offload_parameters"),
    linked(
        _PIPELINE_OPTIONS,
        [
            "parallel.pipeline.degree",
            "parallel.pipeline.schedule",
            "parallel.pipeline.stages_per_rank",
            "parallel.pipeline.layer_split",
        ],
        read=_read_pipeline,
        write=_write_pipeline,
        influences={
            f"{_P}pipeline_parallel_degree": ("parallel.pipeline.degree",),
            f"{_P}pipeline_parallel_schedule": ("parallel.pipeline.schedule", "parallel.pipeline.stages_per_rank"),
            f"{_P}pipeline_parallel_schedule_csv": ("parallel.pipeline.schedule",),
            stages.FIRST_LESS: ("parallel.pipeline.layer_split",),
            stages.LAST_LESS: ("parallel.pipeline.layer_split",),
            stages.LAYERS_PER_STAGE: ("parallel.pipeline.stages_per_rank", "parallel.pipeline.layer_split"),
            stages.MODULE_NAMES: ("parallel.pipeline.stages_per_rank", "parallel.pipeline.layer_split"),
            stages.SPLIT_POINTS: ("parallel.pipeline.stages_per_rank", "parallel.pipeline.layer_split"),
        },
    ),
    absent("parallel.pipeline.overlap_p2p", "sends and receives are scheduled by torch"),
    linked(
        [ENVIRONMENT],
        ["launch.environment"],
        read=lambda native: {"launch.environment": native(ENVIRONMENT) or None},
        write=_write_environment,
    ),
)

# What only the TOML versions say so.
TOML: tuple[Row, ...] = (
    linked((), ["parallel.sequence_parallel"], read=_read_sequence, write=_write_sequence),
    linked(
        [f"{_P}enable_async_tensor_parallel"],
        ["parallel.tensor_overlap"],
        read=lambda native: {"parallel.tensor_overlap": native(f"{_P}enable_async_tensor_parallel")},
        write=_write_overlap,
    ),
    linked([f"{_P}disable_loss_parallel"], ["parallel.loss_parallel"], read=_read_loss, write=_write_loss),
    linked(
        [f"{_P}expert_parallel_degree", f"{_P}expert_tensor_parallel_degree"],
        ["parallel.expert", "parallel.expert_tensor"],
        read=_read_experts,
        write=_write_experts,
        influences={
            f"{_P}expert_parallel_degree": ("parallel.expert",),
            f"{_P}expert_tensor_parallel_degree": ("parallel.expert_tensor",),
        },
    ),
    linked(
        [
            f"{_P}data_parallel_replicate_degree",
            f"{_P}data_parallel_shard_degree",
            f"{_P}fsdp_reshard_after_forward",
        ],
        [
            "parallel.data.degree",
            "parallel.data.sharding",
            "parallel.data.shard",
            "parallel.data.replicate",
            "parallel.data.reshard_after_forward",
        ],
        read=_read_data,
        write=_write_data,
        influences={
            f"{_P}data_parallel_replicate_degree": ("parallel.data.replicate", "parallel.data.degree"),
            f"{_P}data_parallel_shard_degree": (
                "parallel.data.shard",
                "parallel.data.degree",
                "parallel.data.sharding",
            ),
            f"{_P}fsdp_reshard_after_forward": ("parallel.data.reshard_after_forward",),
        },
    ),
)

ROWS: tuple[Row, ...] = (*SHARED, *TOML)
