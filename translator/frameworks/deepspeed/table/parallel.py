"""Rows of the layout over ranks (sources of DeepSpeed 0.19.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.environment import travels
from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.table.layout import NO_SEQUENCE, SHARDS_BF16, STAGES, plan
from translator.ledger import Entry
from translator.mapping.rows import Row, absent, implied, linked, same
from translator.mapping.views import NativeView, Sink, SpecView
from translator.native import ENVIRONMENT, WORLD_SIZE

_Z = "zero_optimization."
_TP = "tensor_parallel."
_EP = "expert_parallel."
MICS = f"{_Z}mics_shard_size"
HPZ = f"{_Z}zero_hpz_partition_size"
_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts")
NO_PIPELINE = (
    "JSON has no pipeline: PipelineModule(num_stages=...) in the program does; --nearest writes a layout without one"
)


def _read_degrees(native: NativeView) -> Mapping[str, Any]:
    sequence = native(at.SEQUENCE)
    return {
        "parallel.tensor": native(at.TENSOR),
        "parallel.context": sequence,
        "parallel.context_method": "all_to_all" if (sequence or 1) > 1 else None,
        "parallel.sequence_parallel": False,
    }


def _write_degrees(spec: SpecView, sink: Sink) -> None:
    layout = plan(spec, sink.version)
    for leaf in ("parallel.tensor", "parallel.context"):
        if leaf in layout.why:
            sink.short(leaf, Entry.APPROXIMATED, layout.why[leaf])
    if layout.tensor > 1:
        sink.put(f"{_TP}autotp_size", layout.tensor)
    if spec("parallel.context", 1) > 1 and sink.version == NO_SEQUENCE:
        why = "this version has no key for a sequence-parallel degree"
        sink.short("parallel.context", Entry.UNSUPPORTED, why)
        sink.short("parallel.context_method", Entry.UNSUPPORTED, why)
    elif layout.sequence > 1:
        sink.put("sequence_parallel_size", layout.sequence, "Ulysses: ranks of one group share each sequence")
    why = "Ulysses trades heads for sequence by all-to-all; other methods have no key; the same numbers"
    sink.short("parallel.context_method", Entry.UNSUPPORTED, why)
    sink.short(
        "parallel.sequence_parallel",
        Entry.UNSUPPORTED,
        "AutoTP does not split norms and residuals along the sequence; more activation memory, the same numbers",
    )


def _read_data(native: NativeView) -> Mapping[str, Any]:
    degree, sharding = native(at.DATA_PARALLEL), native(at.SHARDING)
    flat: dict[str, Any] = {"parallel.data.degree": degree, "parallel.data.sharding": sharding}
    if sharding == "full":
        flat["parallel.data.reshard_after_forward"] = True
    if degree is None:
        return flat
    group = native(MICS, -1) or -1
    shard = 1 if sharding == "none" else group if sharding == "full" and 0 < group <= degree else degree
    flat["parallel.data.shard"] = shard
    flat["parallel.data.replicate"] = max(1, degree // shard)
    return flat


def _write_data(spec: SpecView, sink: Sink) -> None:
    layout = plan(spec, sink.version)
    sink.put(f"{_Z}stage", layout.stage)
    for leaf in ("sharding", "reshard_after_forward", "degree"):
        if f"parallel.data.{leaf}" in layout.why:
            sink.short(f"parallel.data.{leaf}", Entry.APPROXIMATED, layout.why[f"parallel.data.{leaf}"])
    if spec("parallel.data.reshard_after_forward") is False:
        why = "ZeRO-3 frees parameters after each use, up to stage3_max_live_parameters and stage3_max_reuse_distance"
        sink.short("parallel.data.reshard_after_forward", Entry.APPROXIMATED, why)
    if not layout.stage and spec("precision.compute") == "bf16" and sink.version == SHARDS_BF16:
        why = "bf16 runs BF16_Optimizer in this version, which shards its states without ZeRO too: less memory"
        for leaf in ("sharding", "shard", "replicate"):
            sink.short(f"parallel.data.{leaf}", Entry.APPROXIMATED, why)
    replicate, degree = spec("parallel.data.replicate", 1), spec("parallel.data.degree")
    if replicate > 1 and degree and degree // replicate > 1 and layout.stage:
        _write_groups(sink, layout.stage, degree // replicate)
    why = "DeepSpeed shares state out over all data-parallel ranks"
    if spec("parallel.pipeline.degree", 1) > 1:
        why = "without pipeline stages their ranks are data-parallel too"
    for leaf in ("degree", "shard", "replicate"):
        sink.short(f"parallel.data.{leaf}", Entry.APPROXIMATED, why)


def _write_groups(sink: Sink, stage: int, shard: int) -> None:
    """Groups of ranks that share one copy: MiCS up to 0.19.2, the secondary copy of ZeRO++ after."""
    leaves = ("parallel.data.shard", "parallel.data.replicate")
    if stage < STAGES["full"]:
        why = "only stage 3 shards within groups (MiCS); all ranks share one copy: less memory"
    elif sink.put(
        MICS, shard, "MiCS: groups of ranks share one copy; the model is built under deepspeed.zero.MiCS_Init"
    ):
        return
    else:
        sink.put(HPZ, shard, "parameters are gathered within groups of ranks")
        why = (
            f"no MiCS in this version; hpZ keeps a second copy of the parameters within {shard} ranks, states over all"
        )
    for leaf in leaves:
        sink.short(leaf, Entry.APPROXIMATED, why)


def _read_overlap(native: NativeView) -> Mapping[str, Any]:
    stage = native(f"{_Z}stage") or 0
    return {
        "parallel.data.overlap_gradient_reduction": bool(native(f"{_Z}overlap_comm")) if stage else None,
        "parallel.data.overlap_parameter_gather": (
            bool(native(f"{_Z}stage3_prefetch_bucket_size")) if stage == STAGES["full"] else None
        ),
        "parallel.data.bucket_elements": (native(f"{_Z}reduce_bucket_size") or None) if stage else None,
    }


def _write_overlap(spec: SpecView, sink: Sink) -> None:
    stage = plan(spec, sink.version).stage
    overlap, bucket = spec("parallel.data.overlap_gradient_reduction"), spec("parallel.data.bucket_elements")
    if not stage:
        why = "0.16.9 adds bf16 gradients up in fp32 and shards the states of the optimizer without ZeRO too"
        sink.short("parallel.data.sharding", Entry.APPROXIMATED, why)
        for leaf in ("overlap_gradient_reduction", "overlap_parameter_gather", "bucket_elements"):
            sink.short(
                f"parallel.data.{leaf}", Entry.APPROXIMATED, "without ZeRO gradients are reduced after the backward"
            )
        return
    if overlap is not None:
        sink.put(f"{_Z}overlap_comm", overlap)
    if bucket is not None:
        sink.put(f"{_Z}reduce_bucket_size", bucket)
    early = spec("parallel.data.overlap_parameter_gather")
    if early is False and stage == STAGES["full"]:
        sink.put(f"{_Z}stage3_prefetch_bucket_size", 0)
    sink.short("parallel.data.overlap_parameter_gather", Entry.APPROXIMATED, "only stage 3 gathers parameters ahead")


def _offloaded(native: NativeView, what: str) -> bool:
    return native(f"{_Z}{what}.device") in ("cpu", "nvme")


def _read_offload(native: NativeView) -> Mapping[str, Any]:
    step = _offloaded(native, "offload_optimizer") and bool(native(f"{_Z}stage"))
    return {
        "parallel.data.offload_parameters": _offloaded(native, "offload_param") and native(f"{_Z}stage") == 3,
        "optimizer.offload": step,
        "optimizer.offload_fraction": native(f"{_Z}offload_optimizer.ratio") if step else None,
    }


def _write_offload(spec: SpecView, sink: Sink) -> None:
    stage = plan(spec, sink.version).stage
    everything = bool(spec("parallel.data.offload_parameters"))
    if everything and stage == STAGES["full"]:
        _put_offload(sink, "offload_param")
    elif everything:
        sink.short("parallel.data.offload_parameters", Entry.UNSUPPORTED, "only stage 3 offloads parameters")
    if (everything or spec("optimizer.offload")) and stage:
        _put_offload(sink, "offload_optimizer")
        if everything:
            sink.short("optimizer.offload", Entry.ADAPTED, "states that rest on the host are updated there")
        fraction = spec("optimizer.offload_fraction")
        if fraction is not None and fraction != 1.0 and stage == STAGES["full"]:
            sink.put(f"{_Z}offload_optimizer.ratio", fraction)
        elif fraction is not None:
            why = "only stage 3 offloads a part of the states; all of them are (runtime/zero/config.py:385)"
            sink.short("optimizer.offload_fraction", Entry.APPROXIMATED, why)
    elif spec("optimizer.offload"):
        for leaf in ("offload", "offload_fraction"):
            sink.short(f"optimizer.{leaf}", Entry.UNSUPPORTED, "the optimizer is offloaded with ZeRO only")


def _put_offload(sink: Sink, what: str) -> None:
    sink.put(f"{_Z}{what}.device", "cpu")
    # Off before 0.19.8, on since; stated, so that it is the same anywhere.
    sink.put(f"{_Z}{what}.pin_memory", True, "the default differs between versions")


def _read_experts(native: NativeView) -> Mapping[str, Any]:
    return {"parallel.expert": native(at.EXPERT), "parallel.expert_tensor": None}


def _write_experts(spec: SpecView, sink: Sink) -> None:
    layout = plan(spec, sink.version)
    expert, stage = spec("parallel.expert", 1), layout.stage
    dense = sink.get("model_config.model_type") and not any(sink.get(f"model_config.{key}") for key in _COUNTS)
    if expert > 1 and dense:
        sink.short("parallel.expert", Entry.UNSUPPORTED, "the model that is written has no experts")
    elif expert > 1 and layout.tensor > 1:
        why = "AutoEP does not go with AutoTP (module_inject/auto_ep_config.py:100)"
        sink.short("parallel.expert", Entry.UNSUPPORTED, f"{why}; every rank computes all experts")
    elif expert > 1 and stage < STAGES["full"] and sink.put(f"{_EP}autoep_size", expert):
        sink.put(f"{_EP}enabled", True)
    elif expert > 1:
        why = (
            "ZeRO-3 shards the experts like all parameters" if stage == STAGES["full"] else "no AutoEP in this version"
        )
        sink.short("parallel.expert", Entry.UNSUPPORTED, f"{why}; every rank computes all experts")
    why = "experts are split like the other parameters"
    sink.short("parallel.expert_tensor", Entry.APPROXIMATED, why)


def _write_pipeline(spec: SpecView, sink: Sink) -> None:
    if spec("parallel.pipeline.degree", 1) == 1:
        return
    why = plan(spec, sink.version).why.get("parallel.pipeline.degree", NO_PIPELINE)
    for leaf in ("degree", "schedule", "stages_per_rank", "layer_split", "overlap_p2p"):
        sink.short(f"parallel.pipeline.{leaf}", Entry.UNSUPPORTED, why)


def _write_environment(spec: SpecView, sink: Sink) -> None:
    wanted = spec("launch.environment") or {}
    foreign = ("CUDA_DEVICE_MAX_CONNECTIONS", "MEGATRON_", "NVTE_")
    kept = {
        name: value
        for name, value in wanted.items()
        if not name.startswith(foreign) and name.isidentifier() and name.isascii() and travels(name)
    }
    if kept:
        sink.put(ENVIRONMENT, kept)
    left = [name for name in wanted if name not in kept]
    note = "exported by launch.sh" + (f"; left out, for nothing here reads them: {', '.join(left)}" if left else "")
    sink.short("launch.environment", Entry.ADAPTED, note)


def _read_overlap_tensor(native: NativeView) -> Mapping[str, Any]:
    return {"parallel.tensor_overlap": bool(native(f"{_TP}tp_overlap_comm"))}


def _write_overlap_tensor(spec: SpecView, sink: Sink) -> None:
    if spec("parallel.tensor_overlap") and plan(spec, sink.version).tensor > 1:
        sink.put(f"{_TP}tp_overlap_comm", True)
    sink.short("parallel.tensor_overlap", Entry.UNSUPPORTED, "overlaps beside AutoTP only")


def _write_loss(spec: SpecView, sink: Sink) -> None:
    sink.short("parallel.loss_parallel", Entry.UNSUPPORTED, "AutoTP gathers the logits; more memory, the same numbers")


ROWS: tuple[Row, ...] = (
    same(WORLD_SIZE, "parallel.world_size"),
    linked(
        [f"{_TP}autotp_size", "sequence_parallel_size", "data_parallel_size", "hf.sequence_parallel_size"],
        ["parallel.tensor", "parallel.context", "parallel.context_method", "parallel.sequence_parallel"],
        read=_read_degrees,
        write=_write_degrees,
        influences={
            f"{_TP}autotp_size": ("parallel.tensor",),
            "sequence_parallel_size": ("parallel.context", "parallel.context_method"),
            "data_parallel_size": (),
            "hf.sequence_parallel_size": ("parallel.context", "parallel.context_method"),
        },
    ),
    linked(
        [f"{_TP}tp_overlap_comm"], ["parallel.tensor_overlap"], read=_read_overlap_tensor, write=_write_overlap_tensor
    ),
    linked((), ["parallel.loss_parallel"], read=lambda _: {}, write=_write_loss),
    linked(
        [f"{_EP}enabled", f"{_EP}autoep_size"],
        ["parallel.expert", "parallel.expert_tensor"],
        read=_read_experts,
        write=_write_experts,
        influences={f"{_EP}enabled": ("parallel.expert",), f"{_EP}autoep_size": ("parallel.expert",)},
    ),
    implied(
        "parallel.rank_order", "tp-cp-ep-dp-pp", "tensor ranks are neighbours, then sequence, then data (groups.py)"
    ),
    linked(
        (),
        [
            f"parallel.pipeline.{name}"
            for name in ("degree", "schedule", "stages_per_rank", "layer_split", "overlap_p2p")
        ],
        read=lambda native: {
            "parallel.pipeline.degree": native(at.PIPELINE, 1),
            "parallel.pipeline.stages_per_rank": 1,
        },
        write=_write_pipeline,
    ),
    linked(
        [f"{_Z}stage", MICS, HPZ, at.SHARDING],
        [f"parallel.data.{name}" for name in ("degree", "sharding", "shard", "replicate", "reshard_after_forward")],
        read=_read_data,
        write=_write_data,
        influences={
            f"{_Z}stage": ("parallel.data.sharding", "parallel.data.shard", "parallel.data.reshard_after_forward"),
            at.SHARDING: ("parallel.data.sharding",),
            MICS: ("parallel.data.shard", "parallel.data.replicate"),
            HPZ: (),
        },
    ),
    linked(
        [f"{_Z}overlap_comm", f"{_Z}reduce_bucket_size", f"{_Z}stage3_prefetch_bucket_size"],
        [
            "parallel.data.overlap_gradient_reduction",
            "parallel.data.overlap_parameter_gather",
            "parallel.data.bucket_elements",
        ],
        read=_read_overlap,
        write=_write_overlap,
        influences={
            f"{_Z}overlap_comm": ("parallel.data.overlap_gradient_reduction",),
            f"{_Z}reduce_bucket_size": ("parallel.data.bucket_elements",),
            f"{_Z}stage3_prefetch_bucket_size": ("parallel.data.overlap_parameter_gather",),
        },
    ),
    absent(
        "parallel.data.average_in_collective",
        "gradients are summed and then divided (prescale_gradients and gradient_predivide_factor change the order)",
    ),
    linked(
        [
            f"{_Z}offload_param.device",
            f"{_Z}offload_param.pin_memory",
            f"{_Z}cpu_offload_param",
            f"{_Z}offload_optimizer.device",
            f"{_Z}offload_optimizer.pin_memory",
            f"{_Z}offload_optimizer.ratio",
            f"{_Z}cpu_offload",
        ],
        ["parallel.data.offload_parameters", "optimizer.offload", "optimizer.offload_fraction"],
        read=_read_offload,
        write=_write_offload,
        influences={
            f"{_Z}offload_param.device": ("parallel.data.offload_parameters",),
            f"{_Z}cpu_offload_param": ("parallel.data.offload_parameters",),
            f"{_Z}offload_param.pin_memory": (),
            f"{_Z}offload_optimizer.device": ("optimizer.offload",),
            f"{_Z}cpu_offload": ("optimizer.offload",),
            f"{_Z}offload_optimizer.pin_memory": (),
            f"{_Z}offload_optimizer.ratio": ("optimizer.offload_fraction",),
        },
    ),
    linked(
        [ENVIRONMENT],
        ["launch.environment"],
        read=lambda native: {"launch.environment": native(ENVIRONMENT) or None},
        write=_write_environment,
    ),
)
