"""Rows of data, checkpoints, logging and launch: arguments of transformers' Trainer, and of the program it runs in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from translator.ledger import Entry
from translator.mapping.rows import Row, absent, linked, same
from translator.mapping.views import NativeView, Sink, SpecView
from translator.native import GPUS_PER_NODE, NODES, PROGRAM


def _optional(option: str, leaf: str, *, zero: Any = None) -> Row:
    """An argument that is only there beside a trainer; ``zero`` is what its None means."""

    def read(native: NativeView) -> Mapping[str, Any]:
        if not native.has(option):
            return {}
        value = native(option)
        return {leaf: zero if value is None else value}

    return replace(same(option, leaf), read=read, identical=True)


def _read_dataset(native: NativeView) -> Mapping[str, Any]:
    name = native("hf.dataset_name") or native("hf.dataset")
    path = native("hf.data_path") or native("hf.train_file")
    found = [str(item) for item in (name, path) if item]
    return {"data.dataset": found or None, "data.format": "huggingface" if found else None}


def _write_dataset(spec: SpecView, sink: Sink) -> None:
    wanted = spec("data.dataset")
    if wanted and spec("data.format", "huggingface") == "huggingface":
        sink.put("hf.dataset_name", wanted[0])
        if len(wanted) > 1:
            sink.put("hf.data_path", wanted[1])
        return
    if wanted:
        why = "programs around transformers read Hugging Face datasets; set data.dataset=[NAME] data.format=huggingface"
        sink.need("data.dataset", why)
        sink.short("data.format", Entry.UNSUPPORTED, why)


def _write_mock(spec: SpecView, sink: Sink) -> None:
    if spec("data.mock"):
        sink.short("data.mock", Entry.UNSUPPORTED, "no random data: name a dataset")


def _read_tokenizer(native: NativeView) -> Mapping[str, Any]:
    name = native("hf.tokenizer_name") or native("hf.tokenizer_name_or_path")
    return {"data.tokenizer": name, "data.tokenizer_type": "HuggingFaceTokenizer" if name else None}


def _write_tokenizer(spec: SpecView, sink: Sink) -> None:
    path, kind = spec("data.tokenizer"), spec("data.tokenizer_type")
    if path is not None and kind in (None, "HuggingFaceTokenizer"):
        sink.put("hf.tokenizer_name", path)
    elif path is not None:
        why = f"transformers reads a Hugging Face tokenizer, not {kind}; "
        sink.need("data.tokenizer", why + "set data.tokenizer=NAME data.tokenizer_type=HuggingFaceTokenizer")
    sink.short("data.tokenizer_type", Entry.UNSUPPORTED, "transformers reads Hugging Face tokenizers")


def _read_checkpoint(native: NativeView) -> Mapping[str, Any]:
    strategy = native("hf.save_strategy")
    if not native.has("hf.save_strategy"):
        return {}
    every = native("hf.save_steps")
    steps = int(every) if isinstance(every, int | float) and every >= 1 and strategy == "steps" else None
    saves = strategy not in (None, "no")
    return {
        "checkpoint.save": native("hf.output_dir") if saves else None,
        "checkpoint.interval": steps if saves else None,
        "checkpoint.keep_latest": (native("hf.save_total_limit") or 0) if saves else None,
        "checkpoint.load": native("hf.resume_from_checkpoint"),
    }


def _write_checkpoint(spec: SpecView, sink: Sink) -> None:
    save, interval, load = spec("checkpoint.save"), spec("checkpoint.interval"), spec("checkpoint.load")
    sink.put("hf.output_dir", save or "output")
    sink.put("hf.save_strategy", "steps" if save else "no")
    if not save:
        for leaf in ("interval", "keep_latest"):
            sink.short(f"checkpoint.{leaf}", Entry.IRRELEVANT, "nothing is saved")
    elif interval:
        sink.put("hf.save_steps", interval)
    elif interval == 0:
        sink.put("hf.save_strategy", "no")
        for leaf in ("save", "interval", "keep_latest"):
            sink.short(f"checkpoint.{leaf}", Entry.APPROXIMATED, "the source saves at no step")
    if save and spec("checkpoint.keep_latest"):
        sink.put("hf.save_total_limit", spec("checkpoint.keep_latest"))
    sink.short("checkpoint.interval", Entry.APPROXIMATED, "not stated; transformers saves every 500 steps")
    if load is not None:
        sink.put("hf.resume_from_checkpoint", load)


def _read_logging(native: NativeView) -> Mapping[str, Any]:
    every = native("hf.logging_steps") if native.has("hf.logging_steps") else native("steps_per_print")
    boards = native("hf.report_to")
    named = boards if isinstance(boards, list) else str(boards or "").split(",")
    return {
        "logging.interval": int(every) if isinstance(every, int | float) and 1 <= every < 2**53 else None,
        "logging.tensorboard": bool(native("tensorboard.enabled")) or "tensorboard" in named or "all" in named,
        "logging.tensorboard_dir": (native("tensorboard.output_path") or native("hf.logging_dir") or None),
        "logging.wandb": bool(native("wandb.enabled")) or "wandb" in named or "all" in named,
    }


def _write_logging(spec: SpecView, sink: Sink) -> None:
    if spec("logging.interval") is not None:
        sink.put("hf.logging_steps", spec("logging.interval"))
        sink.put("steps_per_print", spec("logging.interval"))
    boards = [name for name in ("tensorboard", "wandb") if spec(f"logging.{name}")]
    sink.put("hf.report_to", boards or "none")
    why = "transformers 5 has no argument for the folder: set TENSORBOARD_LOGGING_DIR"
    sink.short("logging.tensorboard_dir", Entry.APPROXIMATED, why)


def _read_evaluation(native: NativeView) -> Mapping[str, Any]:
    if not native.has("hf.eval_strategy"):
        return {}
    on = native("hf.eval_strategy") not in (None, "no")
    every = native("hf.eval_steps") or native("hf.logging_steps")
    counted = on and native("hf.eval_strategy") == "steps" and isinstance(every, int | float) and every >= 1
    return {
        "logging.evaluate": on,
        "logging.eval_interval": int(every) if counted else None,
        "logging.eval_steps": -1 if on else None,
    }


def _write_evaluation(spec: SpecView, sink: Sink) -> None:
    wanted, interval = spec("logging.evaluate"), spec("logging.eval_interval")
    if wanted is None:
        return
    sink.put("hf.eval_strategy", "steps" if wanted else "no")
    if wanted and interval is not None:
        sink.put("hf.eval_steps", interval)
    sink.short("logging.eval_steps", Entry.APPROXIMATED, "the whole evaluation set is used; make it as long as wanted")
    sink.short("logging.eval_interval", Entry.APPROXIMATED, "not stated; as often as is logged")


def _read_profile(native: NativeView) -> Mapping[str, Any]:
    return {"logging.profile": bool(native("flops_profiler.enabled"))}


def _write_profile(spec: SpecView, sink: Sink) -> None:
    if spec("logging.profile"):
        sink.put("flops_profiler.enabled", True)


def _write_collection(spec: SpecView, sink: Sink) -> None:
    if spec("launch.garbage_collection_interval"):
        why = "garbage is collected when Python does"
        sink.short("launch.garbage_collection_interval", Entry.UNSUPPORTED, why)


def _write_graphs(spec: SpecView, sink: Sink) -> None:
    if spec("launch.cuda_graphs") not in (None, "none"):
        sink.short("launch.cuda_graphs", Entry.UNSUPPORTED, "no CUDA graphs in training")


def _off(leaf: str, note: str) -> Row:
    """A switch that has no counterpart: that it is off needs none."""

    def write(spec: SpecView, sink: Sink) -> None:
        sink.short(leaf, Entry.UNSUPPORTED if spec(leaf) else Entry.DEFAULT, note)

    return linked((), [leaf], read=lambda _: {leaf: False}, write=write)


ROWS: tuple[Row, ...] = (
    linked(
        ["hf.dataset_name", "hf.dataset", "hf.data_path", "hf.train_file"],
        ["data.dataset", "data.format"],
        read=_read_dataset,
        write=_write_dataset,
    ),
    absent("data.split", "the program splits its dataset"),
    linked((), ["data.mock"], read=lambda _: {"data.mock": False}, write=_write_mock),
    linked(
        ["hf.tokenizer_name", "hf.tokenizer_name_or_path"],
        ["data.tokenizer", "data.tokenizer_type"],
        read=_read_tokenizer,
        write=_write_tokenizer,
    ),
    _optional("hf.seed", "data.seed"),
    _optional("hf.full_determinism", "data.deterministic"),
    _optional("hf.dataloader_num_workers", "data.workers"),
    _off("data.reset_positions", "positions count through a sequence"),
    _off("data.reset_attention", "tokens see all that come before in their sequence"),
    _off("data.mask_end_of_document", "the program decides which tokens have a loss"),
    linked(
        ["hf.output_dir", "hf.save_strategy", "hf.save_steps", "hf.save_total_limit", "hf.resume_from_checkpoint"],
        ["checkpoint.save", "checkpoint.load", "checkpoint.interval", "checkpoint.keep_latest"],
        read=_read_checkpoint,
        write=_write_checkpoint,
        influences={
            "hf.output_dir": ("checkpoint.save",),
            "hf.save_strategy": ("checkpoint.save", "checkpoint.interval", "checkpoint.keep_latest"),
            "hf.save_steps": ("checkpoint.interval",),
            "hf.save_total_limit": ("checkpoint.keep_latest",),
            "hf.resume_from_checkpoint": ("checkpoint.load",),
        },
    ),
    _off("checkpoint.asynchronous", "saving stops training"),
    absent("checkpoint.format", "DeepSpeed's own format; ds_to_universal.py converts", Entry.APPROXIMATED),
    absent("checkpoint.override_schedule", "a resumed run takes the schedule of the checkpoint"),
    _off("checkpoint.weights_only", "resume_from_checkpoint takes everything; model_name_or_path the weights alone"),
    linked(
        [
            "hf.logging_steps",
            "steps_per_print",
            "hf.report_to",
            "tensorboard.enabled",
            "tensorboard.output_path",
            "wandb.enabled",
            "hf.logging_dir",
        ],
        ["logging.interval", "logging.tensorboard", "logging.tensorboard_dir", "logging.wandb"],
        read=_read_logging,
        write=_write_logging,
        influences={
            "hf.logging_steps": ("logging.interval",),
            "steps_per_print": ("logging.interval",),
            "hf.report_to": ("logging.tensorboard", "logging.wandb"),
            "tensorboard.enabled": ("logging.tensorboard",),
            "tensorboard.output_path": ("logging.tensorboard_dir",),
            "wandb.enabled": ("logging.wandb",),
            "hf.logging_dir": ("logging.tensorboard_dir",),
        },
    ),
    linked(
        ["hf.eval_strategy", "hf.eval_steps"],
        ["logging.evaluate", "logging.eval_interval", "logging.eval_steps"],
        read=_read_evaluation,
        write=_write_evaluation,
        influences={"hf.eval_steps": ("logging.eval_interval",)},
    ),
    linked(["flops_profiler.enabled"], ["logging.profile"], read=_read_profile, write=_write_profile),
    same(NODES, "launch.nodes"),
    same(GPUS_PER_NODE, "launch.gpus_per_node"),
    linked(
        [PROGRAM],
        ["launch.program"],
        # A program is one framework's own; it stays with it.
        read=lambda _: {},
        write=lambda _, sink: sink.short("launch.program", Entry.IRRELEVANT, "another framework's program"),
    ),
    _optional("hf.torch_compile", "launch.compile"),
    linked(
        (),
        ["launch.garbage_collection_interval"],
        read=lambda _: {"launch.garbage_collection_interval": 0},
        write=_write_collection,
    ),
    _optional("hf.ddp_timeout", "launch.process_group_timeout_seconds"),
    linked((), ["launch.cuda_graphs"], read=lambda _: {"launch.cuda_graphs": "none"}, write=_write_graphs),
)
