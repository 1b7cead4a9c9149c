"""Rows of data, checkpoints, logging and launch (sources of torchtitan 0.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from translator.frameworks.torchtitan import addresses, evaluation, folders
from translator.ledger import Entry
from translator.mapping.rows import Row, absent, implied, linked, same
from translator.mapping.views import NativeView, Sink, SpecView
from translator.native import GPUS_PER_NODE, NODES, PROGRAM, Origin


def _dataset(native: NativeView, prefix: str) -> list[str] | None:
    name, path = native(f"{prefix}.dataset"), native(f"{prefix}.dataset_path")
    if name is None:
        return None
    return [name, path] if path else [name]


def _write_dataset(spec: SpecView, sink: Sink) -> None:
    wanted = spec("data.dataset")
    if spec("data.mock"):
        sink.put("training.dataset", "c4_test")
        sink.short("data.mock", Entry.APPROXIMATED, "no random data; c4_test, a small sample of text, stands in")
        return
    if wanted and spec("data.format", "huggingface") == "huggingface":
        sink.put("training.dataset", wanted[0])
        if len(wanted) > 1:
            sink.put("training.dataset_path", wanted[1])
        return
    if wanted:
        why = (
            "torchtitan reads Hugging Face datasets (c4, or one that you register), not these files; "
            "set data.dataset=[NAME] or data.dataset=[NAME,PATH], and data.format=huggingface"
        )
        sink.need("data.dataset", why)
        sink.short("data.format", Entry.UNSUPPORTED, why)


def _write_tokenizer(spec: SpecView, sink: Sink) -> None:
    path, kind = spec("data.tokenizer"), spec("data.tokenizer_type")
    if path is None:
        return
    folder = sink.has("model.hf_assets_path") and not str(path).endswith((".model", ".json"))
    if kind in (None, "HuggingFaceTokenizer") and (folder or not sink.has("model.hf_assets_path")):
        sink.put("model.hf_assets_path", path) or sink.put("model.tokenizer_path", path)
        return
    sink.need(
        "data.tokenizer",
        f"torchtitan reads a folder of Hugging Face tokenizer files, not {'a ' + kind if folder else 'a file'}; "
        "set data.tokenizer=FOLDER data.tokenizer_type=HuggingFaceTokenizer",
    )


def _read_tokenizer(native: NativeView) -> Mapping[str, Any]:
    return {"data.tokenizer": native("model.tokenizer_path") or native("model.hf_assets_path")}


def read_checkpoint(native: NativeView) -> Mapping[str, Any]:
    """What is saved and loaded; nothing unless checkpoints are enabled."""
    enabled = bool(native("checkpoint.enable"))
    folder = folders.read(native, "checkpoint.folder") if enabled else None
    return {
        "checkpoint.save": None if native("checkpoint.load_only") else folder,
        # A run continues from its own folder by itself.
        "checkpoint.load": (native("checkpoint.initial_load_path") or folder) if enabled else None,
        "checkpoint.interval": native("checkpoint.interval") if enabled else None,
        "checkpoint.keep_latest": native("checkpoint.keep_latest_k") if enabled else None,
        "checkpoint.asynchronous": native("checkpoint.async_mode") not in (None, "disabled") if enabled else None,
        "checkpoint.weights_only": (
            bool(_load_model_only(native)) if enabled and native("checkpoint.initial_load_path") else None
        ),
    }


def _is_open(spec: SpecView, leaf: str) -> bool:
    """Whether the source states the folder, but not as text that can be read."""
    origin = spec.origins.get(f"checkpoint.{leaf}")
    return origin is not None and origin.origin is Origin.UNKNOWN


def _load_model_only(native: NativeView) -> Any:
    return native("checkpoint.initial_load_model_only")


def write_checkpoint(spec: SpecView, sink: Sink) -> None:
    """Save and load as the leaves say."""
    save, load = spec("checkpoint.save"), spec("checkpoint.load")
    saves, loads = (_is_open(spec, leaf) or value is not None for leaf, value in (("save", save), ("load", load)))
    if not saves and not loads:
        for leaf in ("interval", "keep_latest", "asynchronous", "weights_only"):
            sink.short(f"checkpoint.{leaf}", Entry.IRRELEVANT, "nothing is saved or loaded")
        return
    sink.put("checkpoint.enable", True, "" if save or not saves else "where to is not in the source")
    if save is not None:
        folders.write(spec, sink, "checkpoint.folder", "checkpoint.save")
    elif not saves and not sink.put("checkpoint.load_only", True, "the source loads and does not save"):
        sink.remarks["checkpoint.enable"] = "this version saves, too"
    if load is not None and load != save:
        sink.put("checkpoint.initial_load_path", load)
        if spec("checkpoint.weights_only") is not None:
            sink.put("checkpoint.initial_load_model_only", spec("checkpoint.weights_only"))
    sink.short("checkpoint.load", Entry.ADAPTED, "torchtitan continues from checkpoint.folder by itself")
    sink.short("checkpoint.weights_only", Entry.ADAPTED, "a run continues from its own folder with all its state")
    for leaf, address in (
        ("interval", "checkpoint.interval"),
        ("keep_latest", "checkpoint.keep_latest_k"),
    ):
        if spec(f"checkpoint.{leaf}") is not None:
            sink.put(address, spec(f"checkpoint.{leaf}"))
    if spec("checkpoint.keep_latest") == 1:
        sink.put("checkpoint.keep_latest_k", 2)
        sink.short("checkpoint.keep_latest", Entry.APPROXIMATED, "at least two are kept (components/checkpoint.py:298)")
    if spec("checkpoint.asynchronous"):
        sink.put("checkpoint.async_mode", "async")


def _read_evaluation(native: NativeView) -> Mapping[str, Any]:
    evaluates = bool(native("validation.enable"))
    return {
        "logging.evaluate": evaluates,
        "logging.eval_interval": native("validation.freq") if evaluates else None,
        evaluation.LEAF: evaluation.read(
            native("validation.steps") if evaluates else None,
            native("validation.local_batch_size"),
            native(addresses.MICRO_BATCH),
        ),
    }


def _write_evaluation(spec: SpecView, sink: Sink) -> None:
    if not spec("logging.evaluate"):
        return
    if not sink.put("validation.enable", True):
        for leaf in ("evaluate", "eval_interval", "eval_steps"):
            sink.short(f"logging.{leaf}", Entry.UNSUPPORTED, "this version does not evaluate")
        return
    if spec("logging.eval_interval") is not None:
        sink.put("validation.freq", spec("logging.eval_interval"))
    evaluation.write(spec, sink, "validation.steps")
    if spec("batch.seq_len") is not None:
        sink.put("validation.seq_len", spec("batch.seq_len"), "as in training")
    # Under a pipeline the schedule takes exactly as many micro batches as in training (torch's
    # distributed/pipelining/schedules.py, _check_inputs), so a batch of another size stops the run.
    local = sink.values.get("training.local_batch_size")
    if local is not None:
        sink.put("validation.local_batch_size", local, "as in training")


def _read_boards(native: NativeView) -> Mapping[str, Any]:
    enabled = bool(native("metrics.enable_tensorboard"))
    return {
        "logging.tensorboard": enabled,
        "logging.tensorboard_dir": folders.read(native, "metrics.save_tb_folder") if enabled else None,
    }


def _write_boards(spec: SpecView, sink: Sink) -> None:
    if spec("logging.tensorboard"):
        sink.put("metrics.enable_tensorboard", True)
        if spec("logging.tensorboard_dir"):
            folders.write(spec, sink, "metrics.save_tb_folder", "logging.tensorboard_dir")


def _write_garbage(spec: SpecView, sink: Sink) -> None:
    interval = spec("launch.garbage_collection_interval")
    if interval:
        sink.put("training.gc_freq", interval)
    elif interval == 0:
        sink.short("launch.garbage_collection_interval", Entry.UNSUPPORTED, "garbage is always collected by hand")


def checkpoint_row(write: Callable[[SpecView, Sink], None]) -> Row:
    """The row of checkpoints, for versions that differ in what they accept."""
    return linked(
        [
            "checkpoint.enable",
            "checkpoint.folder",
            "checkpoint.initial_load_path",
            "checkpoint.interval",
            "checkpoint.keep_latest_k",
            "checkpoint.async_mode",
            "checkpoint.initial_load_model_only",
        ],
        [
            "checkpoint.save",
            "checkpoint.load",
            "checkpoint.interval",
            "checkpoint.keep_latest",
            "checkpoint.asynchronous",
            "checkpoint.weights_only",
        ],
        read=read_checkpoint,
        write=write,
        influences={
            "checkpoint.enable": ("checkpoint.save",),
            "checkpoint.folder": ("checkpoint.save",),
            "checkpoint.initial_load_path": ("checkpoint.load",),
            "checkpoint.interval": ("checkpoint.interval",),
            "checkpoint.keep_latest_k": ("checkpoint.keep_latest",),
            "checkpoint.async_mode": ("checkpoint.asynchronous",),
            "checkpoint.initial_load_model_only": ("checkpoint.weights_only",),
        },
    )


# What 0.3.0 says under the same names, with the same meaning.
SHARED: tuple[Row, ...] = (
    absent("data.split", "one stream for training, another for validation"),
    implied("data.tokenizer_type", "HuggingFaceTokenizer", "tokenizers are Hugging Face's"),
    same("debug.seed", "data.seed"),
    same("debug.deterministic", "data.deterministic"),
    implied("data.reset_positions", False, "positions run through the whole sequence"),
    implied("data.reset_attention", False, "documents are separated by the model's attention mask, not by the data"),
    implied("data.mask_end_of_document", False, "every token has a loss"),
    implied("checkpoint.format", "dcp", "checkpoints are torch's distributed ones; convert with torchtitan's scripts"),
    implied("checkpoint.override_schedule", False, "a resumed run continues its schedule"),
    same("metrics.log_freq", "logging.interval"),
    linked(
        ["metrics.enable_tensorboard", "metrics.save_tb_folder"],
        ["logging.tensorboard", "logging.tensorboard_dir"],
        read=_read_boards,
        write=_write_boards,
        influences={
            "metrics.enable_tensorboard": ("logging.tensorboard",),
            "metrics.save_tb_folder": ("logging.tensorboard_dir",),
        },
    ),
    same("metrics.enable_wandb", "logging.wandb"),
    same(NODES, "launch.nodes"),
    same(GPUS_PER_NODE, "launch.gpus_per_node"),
    linked(
        [PROGRAM],
        ["launch.program"],
        read=lambda native: {"launch.program": native(PROGRAM)},
        write=lambda _, sink: sink.short("launch.program", Entry.IRRELEVANT, "torchtitan has its own program"),
    ),
    same("compile.enable", "launch.compile"),
    linked(
        ["training.gc_freq"],
        ["launch.garbage_collection_interval"],
        read=lambda native: {"launch.garbage_collection_interval": native("training.gc_freq")},
        write=_write_garbage,
    ),
    same("comm.train_timeout_seconds", "launch.process_group_timeout_seconds"),
)

# What only the TOML versions say so.
TOML: tuple[Row, ...] = (
    linked(
        ["training.dataset", "training.dataset_path"],
        ["data.dataset", "data.format", "data.mock"],
        read=lambda native: {
            "data.dataset": _dataset(native, "training"),
            "data.format": "huggingface",
            "data.mock": False,
        },
        write=_write_dataset,
        influences={"training.dataset": ("data.dataset",), "training.dataset_path": ("data.dataset",)},
    ),
    linked(
        ["model.hf_assets_path", "model.tokenizer_path"],
        ["data.tokenizer"],
        read=_read_tokenizer,
        write=_write_tokenizer,
    ),
    linked(
        ["training.dataloader.num_workers"],
        ["data.workers"],
        read=lambda native: {"data.workers": native("training.dataloader.num_workers", 0)},
        write=lambda spec, sink: (
            sink.short("data.workers", Entry.UNSUPPORTED, "this version loads data in the training process")
            if spec("data.workers") is not None
            and not sink.put("training.dataloader.num_workers", spec("data.workers"))
            else None
        ),
    ),
    checkpoint_row(write_checkpoint),
    linked(
        [
            # The last one that is stated counts as the origin of a leaf.
            "validation.seq_len",
            "validation.local_batch_size",
            "validation.enable",
            "validation.freq",
            "validation.steps",
        ],
        ["logging.evaluate", "logging.eval_interval", "logging.eval_steps"],
        read=_read_evaluation,
        write=_write_evaluation,
        influences={
            "validation.enable": ("logging.evaluate",),
            "validation.freq": ("logging.eval_interval",),
            "validation.steps": ("logging.eval_steps",),
            "validation.seq_len": ("logging.eval_steps",),
            "validation.local_batch_size": ("logging.eval_steps",),
        },
    ),
    same("profiling.enable_profiling", "logging.profile"),
    implied("launch.cuda_graphs", "none", "no CUDA graphs in this version"),
)

ROWS: tuple[Row, ...] = (*SHARED, *TOML)
