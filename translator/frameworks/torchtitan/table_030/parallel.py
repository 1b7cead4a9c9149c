"""Rows of the layout over ranks that 0.3.0 says otherwise than the TOML versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.torchtitan import addresses
from translator.ledger import Entry
from translator.mapping.rows import Row, linked
from translator.mapping.views import NativeView, Sink, SpecView

_P = "parallelism."
SEQUENCE = f"{_P}enable_sequence_parallel"
ASYNC = "compile.enable_async_tensor_parallel"
GRAPHS = "training.disable_cuda_graphs"
COMM = "model_spec.moe_comm_backend"


def _read_sequence(native: NativeView) -> Mapping[str, Any]:
    tensor = native(f"{_P}tensor_parallel_degree") or 1
    return {"parallel.sequence_parallel": bool(native(SEQUENCE)) and tensor > 1}


def _write_sequence(spec: SpecView, sink: Sink) -> None:
    if spec("parallel.sequence_parallel") is False and spec("parallel.tensor", 1) > 1:
        sink.put(SEQUENCE, False)
    sink.short("parallel.sequence_parallel", Entry.ADAPTED, "without effect at tensor degree 1")


def _write_overlap(spec: SpecView, sink: Sink) -> None:
    if not spec("parallel.tensor_overlap"):
        return
    if spec("launch.compile"):
        sink.put(ASYNC, True)
    else:
        why = f"needs compile: set compile.enable and {ASYNC} (config/configs.py:304)"
        sink.short("parallel.tensor_overlap", Entry.UNSUPPORTED, why)


def _read_loss(native: NativeView) -> Mapping[str, Any]:
    tensor = native(f"{_P}tensor_parallel_degree") or 1
    return {"parallel.loss_parallel": True if tensor > 1 else None}


def _write_loss(spec: SpecView, sink: Sink) -> None:
    if spec("parallel.loss_parallel") is False:
        why = "the loss always stays split over the vocabulary; the same numbers, less memory"
        sink.short("parallel.loss_parallel", Entry.APPROXIMATED, why)
    sink.short("parallel.loss_parallel", Entry.ADAPTED, "split wherever there is tensor parallelism")


def _read_experts(native: NativeView) -> Mapping[str, Any]:
    sparse = bool(native(f"{addresses.MODEL}moe.experts"))
    expert, tensor = native(f"{_P}expert_parallel_degree") or 1, native(f"{_P}tensor_parallel_degree") or 1
    # Expert ranks are taken from the tensor ranks as well, so nothing of an expert is split any more.
    return {
        "parallel.expert": expert if sparse else 1,
        "parallel.expert_tensor": (1 if expert > 1 else tensor) if sparse else None,
    }


def _write_experts(spec: SpecView, sink: Sink) -> None:
    expert, inner, tensor = spec("parallel.expert", 1), spec("parallel.expert_tensor"), spec("parallel.tensor", 1)
    if not spec("model.moe.experts"):
        sink.short("parallel.expert", Entry.UNSUPPORTED, "the model has no experts, or its files do not say how many")
    elif any(spec(f"model.{size}") is None for size in ("hidden", "layers", "heads")):
        sink.short("parallel.expert", Entry.UNSUPPORTED, "the size of the model is not known, so none is written")
    sink.put(f"{_P}expert_parallel_degree", expert)
    if inner is not None and inner != (1 if expert > 1 else tensor):
        why = "experts are whole on a rank with expert parallelism, and split over the tensor ranks without"
        sink.short("parallel.expert_tensor", Entry.APPROXIMATED, f"{why} (distributed/parallel_dims.py:291)")
    sink.short("parallel.expert_tensor", Entry.ADAPTED, "follows from the expert and tensor degrees")


def _read_data(native: NativeView) -> Mapping[str, Any]:
    shard = native(f"{_P}data_parallel_shard_degree")
    known = isinstance(shard, int) and shard > 0
    return {
        "parallel.data.degree": native(addresses.DP_DEGREE),
        "parallel.data.replicate": native(f"{_P}data_parallel_replicate_degree"),
        "parallel.data.shard": shard if known else None,
        "parallel.data.sharding": "none" if known and _alone(shard, native) else "full",
        "parallel.data.reshard_after_forward": (
            None if known and _alone(shard, native) else native(addresses.RESHARD_AFTER_FORWARD)
        ),
    }


def _alone(shard: int, native: NativeView) -> bool:
    """Whether a single rank holds the state of its data-parallel group."""
    return shard == 1 and (native(f"{_P}context_parallel_degree") or 1) == 1


def _write_data(spec: SpecView, sink: Sink) -> None:
    sharding = spec("parallel.data.sharding", "full")
    degree, replicate = spec("parallel.data.degree"), spec("parallel.data.replicate", 1)
    if degree is None:
        for leaf in ("degree", "replicate", "shard"):
            sink.short(f"parallel.data.{leaf}", Entry.ADAPTED, "what the other degrees leave of the world size")
        if sharding == "none":
            why = "how many replicas there are is not known, so all ranks share the state; give --world-size N"
            sink.short("parallel.data.sharding", Entry.APPROXIMATED, why)
            sink.short("parallel.data.reshard_after_forward", Entry.APPROXIMATED, why)
    pipelined = spec("parallel.pipeline.degree", 1) > 1
    contextual = spec("parallel.context", 1) > 1
    if sharding == "none" and degree is not None:
        replicate = degree
        if contextual:
            why = "context ranks always share the state (distributed/parallel_dims.py)"
            sink.short("parallel.data.sharding", Entry.APPROXIMATED, why)
            sink.short("parallel.data.reshard_after_forward", Entry.APPROXIMATED, why)
    sink.put(f"{_P}data_parallel_replicate_degree", replicate)
    if degree is not None:
        sink.put(f"{_P}data_parallel_shard_degree", max(1, degree // replicate))
    wants_reshard = spec("parallel.data.reshard_after_forward")
    if sharding in ("optimizer", "optimizer_gradients"):
        if not pipelined:
            sink.put(f"{_P}fsdp_reshard_after_forward", "never")
        kept = "parameters and gradients" if sharding == "optimizer" else "parameters"
        stage = 1 if sharding == "optimizer" else 2
        why = f"FSDP shards {kept} too; gathered from forward to backward it is nearest to ZeRO-{stage}"
        for leaf in ("sharding", "shard", "replicate", "reshard_after_forward"):
            sink.short(f"parallel.data.{leaf}", Entry.APPROXIMATED, why)
    elif sharding == "full" and wants_reshard is not None and wants_reshard == pipelined:
        sink.put(f"{_P}fsdp_reshard_after_forward", "always" if wants_reshard else "never")
    if degree is not None and degree // replicate == 1 and not contextual:
        why = "a single rank shares its state with nobody"
        for leaf in ("sharding", "reshard_after_forward"):
            sink.short(f"parallel.data.{leaf}", Entry.ADAPTED, why)


def _read_graphs(native: NativeView) -> Mapping[str, Any]:
    return {"launch.cuda_graphs": "none" if native(GRAPHS) else "full"}


def _write_graphs(spec: SpecView, sink: Sink) -> None:
    wanted = spec("launch.cuda_graphs", "none")
    if spec("parallel.pipeline.degree", 1) > 1:
        refused = "CUDA graphs do not run pipelined (trainer.py:183)"
    elif spec("parallel.expert", 1) > 1 and spec("model.moe.experts"):
        refused = "CUDA graphs do not run with the standard expert parallelism (trainer.py:203)"
    else:
        refused = ""
    if wanted == "none" or refused:
        sink.put(GRAPHS, True, refused if wanted != "none" else "graphs are on by default in 0.3.0")
    if wanted != "none":
        why = refused or "forward and backward are captured as one graph each"
        sink.short("launch.cuda_graphs", Entry.APPROXIMATED, why)


ROWS: tuple[Row, ...] = (
    linked([SEQUENCE], ["parallel.sequence_parallel"], read=_read_sequence, write=_write_sequence),
    linked(
        [ASYNC],
        ["parallel.tensor_overlap"],
        read=lambda native: {"parallel.tensor_overlap": bool(native(ASYNC))},
        write=_write_overlap,
    ),
    linked((), ["parallel.loss_parallel"], read=_read_loss, write=_write_loss),
    linked(
        [f"{_P}expert_parallel_degree"],
        ["parallel.expert", "parallel.expert_tensor"],
        read=_read_experts,
        write=_write_experts,
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
    linked([GRAPHS], ["launch.cuda_graphs"], read=_read_graphs, write=_write_graphs),
)
