"""Rows of the layout over ranks (sources of core 0.18.0)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from translator.frameworks.megatron.settle.layout import layers_per_stage
from translator.ledger import Entry
from translator.mapping.rows import Row, choice, implied, linked, same, switch
from translator.mapping.shared import no_pipeline
from translator.mapping.views import NativeView, Sink, SpecView
from translator.native import ENVIRONMENT, WORLD_SIZE

_FSDP = {"no_shard": "none", "optim": "optimizer", "optim_grads": "optimizer_gradients", "optim_grads_params": "full"}
_BY_LAYERS = ("muon", "dist_muon", "lion", "soap", "other")
_CONTEXT = {"p2p": "ring", "a2a": "all_to_all", "allgather": "all_gather", "a2a+p2p": "all_to_all+ring"}


def _read_sharding(native: NativeView) -> str:
    if native("use_torch_fsdp2"):
        return "full"
    if native("optimizer") == "dist_muon":
        return "optimizer"
    if native("use_megatron_fsdp"):
        return _FSDP.get(native("data_parallel_sharding_strategy", "no_shard"), "full")
    # Optimizers besides Adam and SGD share their states out by layers (A:1559).
    sharded = native("use_distributed_optimizer") or native("use_layer_wise_distributed_optimizer")
    return "optimizer" if sharded else "none"


def _read_data(native: NativeView) -> Mapping[str, Any]:
    degree = native("data_parallel_size")
    sharding = _read_sharding(native)
    instances = native("num_distributed_optimizer_instances") or 1
    flat: dict[str, Any] = {
        "parallel.data.degree": degree,
        "parallel.data.sharding": sharding,
        "parallel.data.reshard_after_forward": None,
    }
    if sharding == "full":
        flat["parallel.data.reshard_after_forward"] = bool(
            native("torch_fsdp2_reshard_after_forward", True) if native("use_torch_fsdp2") else True
        )
    if sharding != "none":
        flat["parallel.data.replicate"] = instances
    if degree is not None:
        shard = 1 if sharding == "none" else max(1, degree // instances)
        flat["parallel.data.shard"] = shard
        flat["parallel.data.replicate"] = degree // shard
    return flat


def _write_data(spec: SpecView, sink: Sink) -> None:
    sharding = spec("parallel.data.sharding", "none")
    degree = spec("parallel.data.degree")
    replicate = spec("parallel.data.replicate", 1)
    for leaf in ("degree", "shard", "replicate"):
        sink.short(
            f"parallel.data.{leaf}", Entry.UNSUPPORTED, "the degrees of the source do not make up its world size"
        )
    if sharding == "none":
        sink.put("use_distributed_optimizer", False)
        return
    name = spec("optimizer.name", "adamw")
    sink.put("use_distributed_optimizer", not (name in ("muon", "dist_muon") and sink.version in ("0.16.0", "0.17.0")))
    if sharding != "optimizer":
        plain = name not in _BY_LAYERS
        if sink.has("use_megatron_fsdp") and spec("parallel.pipeline.degree", 1) == 1 and plain:
            words = {neutral: native for native, neutral in _FSDP.items()}
            sink.put("use_megatron_fsdp", True)
            sink.put("data_parallel_sharding_strategy", words[sharding])
            if spec("parallel.data.reshard_after_forward") is False:
                sink.short(
                    "parallel.data.reshard_after_forward",
                    Entry.UNSUPPORTED,
                    "Megatron-FSDP frees parameters after the forward pass",
                )
        else:
            why = "the distributed optimizer shards optimizer states only; parameters and gradients stay whole"
            sink.short("parallel.data.sharding", Entry.APPROXIMATED, why)
            sink.short("parallel.data.reshard_after_forward", Entry.APPROXIMATED, why)
    if replicate > 1 and degree and replicate < degree:
        sink.put("num_distributed_optimizer_instances", replicate)


def _read_context(native: NativeView) -> Mapping[str, Any]:
    kinds = native("cp_comm_type")
    kinds = [kinds] if isinstance(kinds, str) else list(kinds or [])
    if (native("context_parallel_size") or 1) == 1 or not kinds:
        return {"parallel.context_method": None}
    return {"parallel.context_method": ",".join(_CONTEXT.get(kind, kind) for kind in kinds)}


def _write_context(spec: SpecView, sink: Sink) -> None:
    method = spec("parallel.context_method")
    if method is None:
        return
    words = {neutral: native for native, neutral in _CONTEXT.items()}
    sink.put("cp_comm_type", [words.get(part, part) for part in method.split(",")])


def _read_experts(native: NativeView) -> Mapping[str, Any]:
    sparse = bool(native("num_experts"))
    return {
        "parallel.expert": native("expert_model_parallel_size") if sparse else 1,
        "parallel.expert_tensor": native("expert_tensor_parallel_size") if sparse else None,
    }


def _write_experts(spec: SpecView, sink: Sink) -> None:
    expert, inner = spec("parallel.expert"), spec("parallel.expert_tensor")
    if expert is not None:
        sink.put("expert_model_parallel_size", expert)
    if not spec("model.moe.experts"):
        sink.short("parallel.expert", Entry.UNSUPPORTED, "the model has no experts, or its files do not say how many")
    differs = inner is not None and spec("model.moe.experts") and inner != spec("parallel.tensor", 1)
    if differs and not sink.put("expert_tensor_parallel_size", inner):
        sink.short("parallel.expert_tensor", Entry.UNSUPPORTED, "this version splits experts like the dense layers")


def _write_tensor_overlap(spec: SpecView, sink: Sink) -> None:
    if spec("parallel.tensor_overlap") and not spec("parallel.sequence_parallel"):
        sink.short("parallel.tensor_overlap", Entry.UNSUPPORTED, "overlaps with sequence parallelism only")
    elif spec("parallel.tensor_overlap") is not None:
        sink.put("tp_comm_overlap", spec("parallel.tensor_overlap"))


def _write_sequence(spec: SpecView, sink: Sink) -> None:
    wanted = spec("parallel.sequence_parallel")
    if wanted is not None:
        sink.put("sequence_parallel", wanted)
    if spec("parallel.tensor") is None:
        why = "on under tensor parallelism only, whose degree is not known"
        sink.short("parallel.sequence_parallel", Entry.ADAPTED, why)


def _read_loss(native: NativeView) -> Mapping[str, Any]:
    return {"parallel.loss_parallel": True if (native("tensor_model_parallel_size") or 1) > 1 else None}


def _write_loss(spec: SpecView, sink: Sink) -> None:
    if spec("parallel.loss_parallel") is False:
        sink.short(
            "parallel.loss_parallel", Entry.UNSUPPORTED, "logits stay split over the vocabulary under tensor parallel"
        )


_PIPELINE_OPTIONS = (
    "pipeline_model_parallel_size",
    "num_layers_per_virtual_pipeline_stage",
    "num_virtual_stages_per_pipeline_rank",
    "pipeline_model_parallel_layout",
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
    "overlap_p2p_comm",
)
_SPLIT = ("parallel.pipeline.layer_split",)
_VIRTUAL = ("parallel.pipeline.stages_per_rank", "parallel.pipeline.schedule", "parallel.pipeline.layer_split")


def _read_pipeline(native: NativeView) -> Mapping[str, Any]:
    degree = native("pipeline_model_parallel_size")
    flat: dict[str, Any] = {"parallel.pipeline.degree": degree}
    if not degree or degree == 1:
        return {**flat, "parallel.pipeline.stages_per_rank": 1}
    virtual = native("virtual_pipeline_model_parallel_size") or 1
    flat["parallel.pipeline.stages_per_rank"] = virtual
    flat["parallel.pipeline.schedule"] = "interleaved_1f1b" if virtual > 1 else "1f1b"
    flat["parallel.pipeline.overlap_p2p"] = bool(native("overlap_p2p_comm")) if virtual > 1 else None
    per_rank = layers_per_stage(native.mapping)
    if per_rank:
        flat["parallel.pipeline.layer_split"] = [
            per_rank[rank][chunk] for chunk in range(virtual) for rank in range(degree)
        ]
    return flat


_NEAREST_SCHEDULE = {
    "gpipe": ("1f1b", "1F1B keeps fewer activations and gives the same gradients"),
    "looped_bfs": ("interleaved_1f1b", "interleaved 1F1B keeps fewer activations and gives the same gradients"),
    "interleaved_zero_bubble": ("interleaved_1f1b", "no zero-bubble schedule; more idle time, the same gradients"),
    "zbv_zero_bubble": ("1f1b", "no zero-bubble schedule; more idle time, the same gradients"),
    "dual_pipe_v": ("1f1b", "no DualPipeV; more idle time, the same gradients"),
}
_V_SCHEDULES = ("zbv_zero_bubble", "dual_pipe_v")


def _write_pipeline(spec: SpecView, sink: Sink) -> None:
    degree = spec("parallel.pipeline.degree", 1)
    sink.put("pipeline_model_parallel_size", degree)
    if degree == 1:
        no_pipeline(sink)
        return
    schedule, virtual = spec("parallel.pipeline.schedule", "1f1b"), spec("parallel.pipeline.stages_per_rank", 1)
    split = spec("parallel.pipeline.layer_split")
    if schedule in _NEAREST_SCHEDULE:
        schedule, why = _NEAREST_SCHEDULE[schedule]
        sink.short("parallel.pipeline.schedule", Entry.APPROXIMATED, why)
        if spec("parallel.pipeline.schedule") in _V_SCHEDULES:
            # Both halves of the V on one rank become one stage.
            why = "a V-shaped placement has no equivalent; each rank holds consecutive layers instead"
            sink.short("parallel.pipeline.stages_per_rank", Entry.APPROXIMATED, why)
            sink.short("parallel.pipeline.layer_split", Entry.APPROXIMATED, why)
            if split and len(split) == 2 * degree:
                split = [split[2 * i] + split[2 * i + 1] for i in range(degree)]
            virtual = 1
    if schedule == "custom":
        sink.short("parallel.pipeline.schedule", Entry.UNSUPPORTED, "no custom schedules; 1F1B is in force")
    if not _write_split(spec, sink, degree, virtual, split):
        return
    if virtual == 1:
        sink.short("parallel.pipeline.overlap_p2p", Entry.IRRELEVANT, "only interleaved schedules overlap")
    elif spec("parallel.pipeline.overlap_p2p") is False and degree == 2:
        why = "an interleaved schedule over two ranks overlaps (arguments.py:985, 0.18.0)"
        sink.short("parallel.pipeline.overlap_p2p", Entry.APPROXIMATED, why)
    elif spec("parallel.pipeline.overlap_p2p") is False:
        sink.put("overlap_p2p_comm", False)


def _write_split(spec: SpecView, sink: Sink, degree: int, virtual: int, split: list[int] | None) -> bool:
    """Whether the version can place the layers so; if not, the leaves are admitted."""
    even = not split or len(set(split)) == 1
    layers = spec("model.layers")
    if even:
        if virtual > 1 and layers:
            stage_layers = max(1, layers // (degree * virtual))
            if not sink.put("num_virtual_stages_per_pipeline_rank", virtual):
                sink.put("num_layers_per_virtual_pipeline_stage", stage_layers)
        return True
    assert split is not None
    middle = set(split[1:-1])
    if virtual == 1 and len(middle) <= 1 and sink.has("decoder_first_pipeline_num_layers"):
        if not middle or split[0] != next(iter(middle)):
            sink.put("decoder_first_pipeline_num_layers", split[0])
        if not middle or split[-1] != next(iter(middle)):
            sink.put("decoder_last_pipeline_num_layers", split[-1])
        return True
    stages = [f"t*{count}" if count > 1 else "t" * count for count in split]
    stages[0] = f"E{stages[0]}"
    stages[-1] = f"{stages[-1]}{'m' * (sink.get('mtp_num_layers') or 0)}L"
    placed = sink.put("pipeline_model_parallel_layout", "|".join(stages))
    if not placed:
        for leaf in ("layer_split", "stages_per_rank", "schedule", "overlap_p2p"):
            sink.short(f"parallel.pipeline.{leaf}", Entry.UNSUPPORTED, "this version cannot place layers freely")
    return placed


def _read_environment(native: NativeView) -> Mapping[str, Any]:
    return {"launch.environment": native(ENVIRONMENT) or None}


def _write_environment(spec: SpecView, sink: Sink) -> None:
    environment = dict(spec("launch.environment") or {})
    fully_sharded = bool(sink.get("use_megatron_fsdp"))
    needs_one = spec("parallel.tensor", 1) > 1 or spec("parallel.context", 1) > 1
    name = "CUDA_DEVICE_MAX_CONNECTIONS"
    if needs_one and not fully_sharded and environment.get(name) != "1":
        # A:1422: required on GPUs before Blackwell.
        environment[name] = "1"
        sink.remarks[ENVIRONMENT] = f"{name}=1: required with tensor or context parallelism before Blackwell"
        sink.short("launch.environment", Entry.ADAPTED, f"{name}=1 added, which tensor and context parallelism require")
    if fully_sharded and environment.get(name) == "1":
        del environment[name]
        sink.short("launch.environment", Entry.ADAPTED, f"{name}=1 left out, which Megatron-FSDP refuses")
    if environment:
        sink.put(ENVIRONMENT, environment)


def _overlap(option: str, leaf: str) -> Row:
    """An overlap of data-parallel communication, which the sharding of the version may force on or off."""

    def write(spec: SpecView, sink: Sink) -> None:
        wanted = spec(leaf)
        if wanted is not None:
            early = option == "overlap_param_gather" and wanted
            # A:1009: parameters are gathered early where they are sharded and gradients are reduced early.
            sharded = sink.get("use_distributed_optimizer") or sink.get("use_megatron_fsdp")
            if not early or (sharded and sink.get("overlap_grad_reduce")):
                sink.put(option, wanted)
            sink.short(leaf, Entry.APPROXIMATED, "decided by the kind of sharding in this version")

    return replace(switch(option, leaf), write=write)


ROWS: tuple[Row, ...] = (
    same(WORLD_SIZE, "parallel.world_size"),
    same("tensor_model_parallel_size", "parallel.tensor"),
    replace(switch("sequence_parallel", "parallel.sequence_parallel"), write=_write_sequence),
    replace(switch("tp_comm_overlap", "parallel.tensor_overlap"), write=_write_tensor_overlap),
    linked((), ["parallel.loss_parallel"], read=_read_loss, write=_write_loss),
    same("context_parallel_size", "parallel.context"),
    linked(["cp_comm_type"], ["parallel.context_method"], read=_read_context, write=_write_context),
    linked(
        ["expert_model_parallel_size", "expert_tensor_parallel_size"],
        ["parallel.expert", "parallel.expert_tensor"],
        read=_read_experts,
        write=_write_experts,
        influences={
            "expert_model_parallel_size": ("parallel.expert",),
            "expert_tensor_parallel_size": ("parallel.expert_tensor",),
        },
    ),
    choice("use_tp_pp_dp_mapping", "parallel.rank_order", {False: "tp-cp-ep-dp-pp", True: "tp-cp-ep-pp-dp"}),
    linked(
        [
            "use_distributed_optimizer",
            "use_megatron_fsdp",
            "use_torch_fsdp2",
            "data_parallel_sharding_strategy",
            "torch_fsdp2_reshard_after_forward",
            "num_distributed_optimizer_instances",
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
            **dict.fromkeys(
                ("use_distributed_optimizer", "use_megatron_fsdp", "use_torch_fsdp2"),
                ("parallel.data.sharding", "parallel.data.shard", "parallel.data.replicate"),
            ),
            "torch_fsdp2_reshard_after_forward": ("parallel.data.reshard_after_forward",),
            "num_distributed_optimizer_instances": ("parallel.data.shard", "parallel.data.replicate"),
            "data_parallel_sharding_strategy": ("parallel.data.sharding",),
        },
    ),
    _overlap("overlap_grad_reduce", "parallel.data.overlap_gradient_reduction"),
    _overlap("overlap_param_gather", "parallel.data.overlap_parameter_gather"),
    same("ddp_bucket_size", "parallel.data.bucket_elements"),
    switch("ddp_average_in_collective", "parallel.data.average_in_collective"),
    implied("parallel.data.offload_parameters", False, "Megatron-LM offloads optimizer states only"),
    linked(
        _PIPELINE_OPTIONS,
        [
            "parallel.pipeline.degree",
            "parallel.pipeline.schedule",
            "parallel.pipeline.stages_per_rank",
            "parallel.pipeline.layer_split",
            "parallel.pipeline.overlap_p2p",
        ],
        read=_read_pipeline,
        write=_write_pipeline,
        influences={
            "pipeline_model_parallel_size": ("parallel.pipeline.degree",),
            "num_layers_per_virtual_pipeline_stage": _VIRTUAL,
            "num_virtual_stages_per_pipeline_rank": _VIRTUAL,
            "pipeline_model_parallel_layout": _VIRTUAL,
            "decoder_first_pipeline_num_layers": _SPLIT,
            "decoder_last_pipeline_num_layers": _SPLIT,
            "account_for_embedding_in_pipeline_split": _SPLIT,
            "account_for_loss_in_pipeline_split": _SPLIT,
            "overlap_p2p_comm": ("parallel.pipeline.overlap_p2p",),
        },
    ),
    linked([ENVIRONMENT], ["launch.environment"], read=_read_environment, write=_write_environment),
)
