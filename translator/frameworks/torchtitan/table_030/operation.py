"""Rows of data, checkpoints and validation that 0.3.0 says otherwise than the TOML versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.torchtitan import addresses, evaluation
from translator.frameworks.torchtitan.table.operation import checkpoint_row, write_checkpoint
from translator.ledger import Entry
from translator.mapping.rows import Row, linked, same
from translator.mapping.views import NativeView, Sink, SpecView

LOADER = "HuggingFaceTextDataLoader"
ASSETS = "hf_assets_path"


def _read_data(native: NativeView) -> Mapping[str, Any]:
    known = native("dataloader") == LOADER
    name, path = native("dataloader.dataset"), native("dataloader.dataset_path")
    dataset = None if not known or name is None else [name, path] if path else [name]
    return {
        "data.dataset": dataset,
        "data.format": "huggingface",
        "data.mock": False,
        "data.workers": native("dataloader.num_workers") if known else None,
    }


def _write_data(spec: SpecView, sink: Sink) -> None:
    sink.put("dataloader", LOADER)
    if spec("data.workers") is not None:
        sink.put("dataloader.num_workers", spec("data.workers"))
    wanted = spec("data.dataset")
    if spec("data.mock"):
        sink.put("dataloader.dataset", "c4_test")
        sink.short("data.mock", Entry.APPROXIMATED, "no random data; c4_test, a small sample of text, stands in")
    elif wanted and spec("data.format", "huggingface") == "huggingface":
        sink.put("dataloader.dataset", wanted[0])
        if len(wanted) > 1:
            sink.put("dataloader.dataset_path", wanted[1])
    elif wanted:
        sink.need(
            "data.dataset",
            "torchtitan reads Hugging Face datasets (c4, or one that you register), not these files; "
            "set data.dataset=[NAME] or data.dataset=[NAME,PATH], and data.format=huggingface",
        )
        sink.short("data.format", Entry.UNSUPPORTED, "torchtitan reads Hugging Face datasets")


def _write_tokenizer(spec: SpecView, sink: Sink) -> None:
    path, kind = spec("data.tokenizer"), spec("data.tokenizer_type")
    if path is None:
        return
    folder = not str(path).endswith((".model", ".json"))
    if kind in (None, "HuggingFaceTokenizer") and folder:
        sink.put(ASSETS, path)
        return
    sink.need(
        "data.tokenizer",
        f"torchtitan reads a folder of Hugging Face tokenizer files, not {'a ' + str(kind) if folder else 'a file'}; "
        "set data.tokenizer=FOLDER data.tokenizer_type=HuggingFaceTokenizer",
    )


def _write_checkpoint(spec: SpecView, sink: Sink) -> None:
    write_checkpoint(spec, sink)
    path = sink.values.get("checkpoint.initial_load_path")
    # A relative path is refused when the configuration is built (components/checkpointer/base.py:295).
    if isinstance(path, str) and not path.strip().startswith("/") and "://" not in path:
        del sink.values["checkpoint.initial_load_path"]
        sink.values.pop("checkpoint.initial_load_model_only", None)
        sink.need("checkpoint.load", f"{path!r} must be absolute; set checkpoint.load=/PATH")
    if spec("checkpoint.interval") == 0:
        sink.values.pop("checkpoint.interval", None)
        why = "a checkpoint is saved every so many steps; 0 is refused"
        sink.short("checkpoint.interval", Entry.APPROXIMATED, why)


def _read_evaluation(native: NativeView) -> Mapping[str, Any]:
    evaluates = bool(native("validator.enable"))
    return {
        "logging.evaluate": evaluates,
        "logging.eval_interval": native("validator.freq") if evaluates else None,
        evaluation.LEAF: evaluation.read(
            native("validator.steps") if evaluates else None,
            native("training.local_batch_size"),
            native(addresses.MICRO_BATCH),
        ),
    }


def _write_evaluation(spec: SpecView, sink: Sink) -> None:
    if not spec("logging.evaluate"):
        return
    sink.put("validator.enable", True)
    if spec("logging.eval_interval") is not None:
        sink.put("validator.freq", spec("logging.eval_interval"))
    evaluation.write(spec, sink, "validator.steps")


ROWS: tuple[Row, ...] = (
    linked(
        ["dataloader", "dataloader.dataset", "dataloader.dataset_path", "dataloader.num_workers"],
        ["data.dataset", "data.format", "data.mock", "data.workers"],
        read=_read_data,
        write=_write_data,
        influences={
            "dataloader": ("data.format",),
            "dataloader.dataset": ("data.dataset",),
            "dataloader.dataset_path": ("data.dataset",),
            "dataloader.num_workers": ("data.workers",),
        },
    ),
    linked(
        [ASSETS],
        ["data.tokenizer"],
        read=lambda native: {"data.tokenizer": native(ASSETS)},
        write=_write_tokenizer,
    ),
    checkpoint_row(_write_checkpoint),
    linked(
        ["validator.enable", "validator.freq", "validator.steps"],
        ["logging.evaluate", "logging.eval_interval", "logging.eval_steps"],
        read=_read_evaluation,
        write=_write_evaluation,
        influences={
            "validator.enable": ("logging.evaluate",),
            "validator.freq": ("logging.eval_interval",),
            "validator.steps": ("logging.eval_steps",),
        },
    ),
    same("profiler.enable_profiling", "logging.profile"),
)
