"""Rows of data, checkpoints, logging and launch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from translator.frameworks.megatron.settle.batch import ONE_MICRO_BATCH
from translator.ledger import Entry
from translator.mapping.rows import Row, implied, linked, same, switch, text
from translator.mapping.views import NativeView, Sink, SpecView
from translator.native import GPUS_PER_NODE, NODES, PROGRAM
from translator.spec.derive import accumulation


def _read_evaluation(native: NativeView) -> Mapping[str, Any]:
    interval, iterations = native("eval_interval"), native("eval_iters")
    evaluates = bool(interval) and bool(iterations)
    passes = _passes(native)
    return {
        "logging.evaluate": evaluates,
        "logging.eval_interval": interval if evaluates else None,
        "logging.eval_steps": iterations * passes if evaluates and passes else None,
    }


def _passes(native: NativeView) -> int | None:
    """Micro batches of a replica in one iteration of the evaluation (``training/training.py:3854`` at 0.18.0)."""
    total = native("eval_global_batch_size") or native("global_batch_size")
    if total is None and native(ONE_MICRO_BATCH):
        return 1
    return accumulation(total, native("micro_batch_size"), native("data_parallel_size"))


def _write_evaluation(spec: SpecView, sink: Sink) -> None:
    evaluates = spec("logging.evaluate")
    if evaluates:
        if spec("logging.eval_interval") is not None:
            sink.put("eval_interval", spec("logging.eval_interval"))
        steps = spec("logging.eval_steps")
        if steps is not None and steps < 0:
            sink.short("logging.eval_steps", Entry.APPROXIMATED, "a whole pass has no flag; 100 batches are evaluated")
        elif steps is not None:
            _write_iterations(spec, sink, steps)
    elif evaluates is False:
        sink.put("eval_iters", 0)


def _write_iterations(spec: SpecView, sink: Sink, passes: int) -> None:
    """An iteration evaluates a global batch."""
    own = spec.extras.get("eval_global_batch_size")
    each = spec("batch.accumulation")
    if own is not None:
        each = accumulation(own, spec("batch.micro_batch"), spec("parallel.data.degree"))
    if each is None and spec("batch.global_batch") is not None and spec("parallel.data.degree") is None:
        sink.need("logging.eval_steps", "a global batch is evaluated at a time, on how many ranks? give --world-size N")
        return
    whole, rest = divmod(passes, each or 1)
    sink.put("eval_iters", whole + bool(rest))
    if rest:
        why = f"a global batch is evaluated at a time: {whole + 1} times {each} micro batches"
        sink.short("logging.eval_steps", Entry.APPROXIMATED, why)


def _read_boards(native: NativeView) -> Mapping[str, Any]:
    folder = native("tensorboard_dir")
    return {
        "logging.tensorboard": bool(folder),
        "logging.tensorboard_dir": folder or None,
        "logging.wandb": bool(native("wandb_project")),
    }


def _write_boards(spec: SpecView, sink: Sink) -> None:
    if spec("logging.tensorboard"):
        sink.put("tensorboard_dir", spec("logging.tensorboard_dir", "tensorboard"))
    if spec("logging.tensorboard_dir") == "":
        sink.short("logging.tensorboard_dir", Entry.DEFAULT, "an empty name is none")
    if spec("logging.wandb"):
        sink.need("logging.wandb", "Megatron-LM asks for names: add --wandb-project and --wandb-exp-name")


def _read_garbage(native: NativeView) -> Mapping[str, Any]:
    return {"launch.garbage_collection_interval": (native("manual_gc_interval") or 0) if native("manual_gc") else 0}


def _write_garbage(spec: SpecView, sink: Sink) -> None:
    interval = spec("launch.garbage_collection_interval")
    if interval:
        sink.put("manual_gc", True)
        sink.put("manual_gc_interval", interval)


def _read_graphs(native: NativeView) -> Mapping[str, Any]:
    kind = native("cuda_graph_impl") or "none"
    modules = native("cuda_graph_modules") or []
    names = ",".join(str(module) for module in modules) if isinstance(modules, (list, tuple)) else str(modules)
    return {"launch.cuda_graphs": f"{kind}:{names}" if names and kind != "none" else kind}


def _write_graphs(spec: SpecView, sink: Sink) -> None:
    graphs = spec("launch.cuda_graphs")
    if graphs in (None, "none"):
        return
    kind, _, names = graphs.partition(":")
    if kind not in ("local", "transformer_engine", "full_iteration") or not sink.put("cuda_graph_impl", kind):
        sink.short("launch.cuda_graphs", Entry.UNSUPPORTED, "no CUDA graphs of this kind")
        return
    if names and not sink.put("cuda_graph_modules", names.split(",")):
        sink.short("launch.cuda_graphs", Entry.APPROXIMATED, "this version does not choose modules")


def _write_dataset(spec: SpecView, sink: Sink) -> None:
    if spec("data.format") == "huggingface":
        sink.need(
            "data.dataset", "Megatron-LM reads its own indexed files; set data.dataset=[PREFIX] data.format=indexed"
        )
        sink.short(
            "data.format", Entry.UNSUPPORTED, "Megatron-LM reads its own indexed files (tools/preprocess_data.py)"
        )
    elif spec("data.dataset") is not None:
        sink.put("data_path", spec("data.dataset"))


def _write_format(spec: SpecView, sink: Sink) -> None:
    if sink.get("use_megatron_fsdp"):
        # arguments.py:1137 (0.18.0): Megatron-FSDP refuses every other format.
        sink.put("ckpt_format", "fsdp_dtensor")
        sink.short("checkpoint.format", Entry.ADAPTED, "Megatron-FSDP saves in the format fsdp_dtensor only")
        return
    wanted = spec("checkpoint.format")
    if wanted is not None and not sink.put("ckpt_format", wanted):
        sink.short(
            "checkpoint.format", Entry.APPROXIMATED, f"no format {wanted}; torch_dist is in force, convert checkpoints"
        )


def _write_asynchronous(spec: SpecView, sink: Sink) -> None:
    if spec("checkpoint.asynchronous"):
        sink.put("async_save", True)
        # arguments.py:1627 (0.18.0): saving in the background is off without the persistent worker.
        sink.put("use_persistent_ckpt_worker", True, "asynchronous saving needs it")


def _write_timeout(spec: SpecView, sink: Sink) -> None:
    seconds = spec("launch.process_group_timeout_seconds")
    if seconds is not None:
        sink.put("distributed_timeout_minutes", math.ceil(seconds / 60))
        sink.short("launch.process_group_timeout_seconds", Entry.ADAPTED, "rounded up to whole minutes")


ROWS: tuple[Row, ...] = (
    linked(
        ["data_path"],
        ["data.dataset", "data.format"],
        read=lambda native: {
            "data.dataset": native("data_path") or None,
            "data.format": "indexed" if native("data_path") else None,
        },
        write=_write_dataset,
    ),
    same("split", "data.split"),
    switch("mock_data", "data.mock"),
    text("tokenizer_model", "data.tokenizer"),
    same("tokenizer_type", "data.tokenizer_type"),
    same("seed", "data.seed"),
    switch("deterministic_mode", "data.deterministic"),
    same("num_workers", "data.workers"),
    switch("reset_position_ids", "data.reset_positions"),
    switch("reset_attention_mask", "data.reset_attention"),
    switch("eod_mask_loss", "data.mask_end_of_document"),
    text("save", "checkpoint.save"),
    text("load", "checkpoint.load"),
    same("save_interval", "checkpoint.interval"),
    implied("checkpoint.keep_latest", 0, "Megatron-LM keeps every checkpoint"),
    replace(switch("async_save", "checkpoint.asynchronous"), write=_write_asynchronous),
    linked(
        ["ckpt_format"],
        ["checkpoint.format"],
        read=lambda native: {"checkpoint.format": native("ckpt_format")},
        write=_write_format,
    ),
    switch("finetune", "checkpoint.weights_only"),
    switch("override_opt_param_scheduler", "checkpoint.override_schedule"),
    same("log_interval", "logging.interval"),
    linked(
        ["tensorboard_dir", "wandb_project"],
        ["logging.tensorboard", "logging.tensorboard_dir", "logging.wandb"],
        read=_read_boards,
        write=_write_boards,
        influences={
            "tensorboard_dir": ("logging.tensorboard", "logging.tensorboard_dir"),
            "wandb_project": ("logging.wandb",),
        },
    ),
    linked(
        ["eval_interval", "eval_iters"],
        ["logging.evaluate", "logging.eval_interval", "logging.eval_steps"],
        read=_read_evaluation,
        write=_write_evaluation,
        influences={
            "eval_interval": ("logging.evaluate", "logging.eval_interval"),
            "eval_iters": ("logging.eval_steps", "logging.evaluate"),
        },
    ),
    switch("profile", "logging.profile"),
    same(NODES, "launch.nodes"),
    same(GPUS_PER_NODE, "launch.gpus_per_node"),
    same(PROGRAM, "launch.program"),
    implied("launch.compile", False, "Megatron-LM is not compiled as a whole"),
    linked(
        ["manual_gc", "manual_gc_interval"],
        ["launch.garbage_collection_interval"],
        read=_read_garbage,
        write=_write_garbage,
    ),
    linked(
        ["distributed_timeout_minutes"],
        ["launch.process_group_timeout_seconds"],
        read=lambda native: {
            "launch.process_group_timeout_seconds": 60 * (native("distributed_timeout_minutes") or 10)
        },
        write=_write_timeout,
    ),
    linked(["cuda_graph_impl", "cuda_graph_modules"], ["launch.cuda_graphs"], read=_read_graphs, write=_write_graphs),
)
