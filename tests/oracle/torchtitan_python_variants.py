"""Broken and sound variants of Python configurations of torchtitan 0.3.0: one small module each.

Addresses are those of `torchtitan_variants`; a part that is chosen by class is one `Expression`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torchtitan_variants import MISSING, Changes, P, T, Variant, pairs, singles


class Expression(str):
    """Python as it is written."""

    __slots__ = ()


CLASSES = {
    "training": "TrainingConfig",
    "parallelism": "ParallelismConfig",
    "compile": "CompileConfig",
    "debug": "DebugConfig",
    "comm": "CommConfig",
    "checkpoint": "CheckpointManager.Config",
    "lr_scheduler": "LRSchedulersContainer.Config",
    "metrics": "MetricsProcessor.Config",
    "profiler": "Profiler.Config",
    "validator": "Validator.Config",
    "dataloader": "HuggingFaceTextDataLoader.Config",
}
HEAD = """\
from torchtitan.components.checkpointer import CheckpointManager
from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.components.optimizer import (
    LRSchedulersContainer,
    OptimizersContainer,
    ParamGroupConfig,
    default_adamw,
)
from torchtitan.components.validate import Validator
from torchtitan.config import CommConfig, CompileConfig, DebugConfig, ParallelismConfig, TrainingConfig
from torchtitan.distributed.activation_checkpoint import FullAC, MemoryBudgetAC, SelectiveAC
from torchtitan.hf_datasets.text_datasets import HuggingFaceTextDataLoader
from torchtitan.models.FAMILY import model_registry
from torchtitan.tools.profiler import Profiler
from torchtitan.trainer import Trainer


def run() -> Trainer.Config:
    return Trainer.Config(
"""
ADAMW = Expression("default_adamw(lr=8e-4)")
BASE: dict[str, Any] = {
    "model_spec": Expression('model_registry("debugmodel")'),
    "loss": Expression("CrossEntropyLoss.Config(global_vocab_size=2048)"),
    "optimizer": ADAMW,
    "training": {"local_batch_size": 8, "seq_len": 2048, "steps": 100},
    "lr_scheduler": {"warmup_steps": 20},
    "dataloader": {"dataset": "c4_test"},
    "activation_checkpoint": Expression("FullAC.Config()"),
}
PIPED: Changes = {f"{P}pipeline_parallel_degree": 2, f"{T}disable_cuda_graphs": True}


def python_changed(base: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """The sections of a base with some options changed."""
    found = {key: dict(value) if isinstance(value, dict) else value for key, value in base.items()}
    for address, value in changes.items():
        section, _, name = address.partition(".")
        if not name:
            found[section] = value
            if value is MISSING:
                del found[section]
        elif not isinstance(found.setdefault(section, {}), dict):
            continue
        else:
            found[section][name] = value
    return found


def python_text(family: str, tables: Mapping[str, Any]) -> str:
    """A module with the configuration."""
    lines = HEAD.replace("FAMILY", family)
    for section, value in tables.items():
        lines += f"        {section}={python_value(section, value)},\n"
    return f"{lines}    )\n"


def python_value(section: str, value: Any) -> str:
    """A section as the call of its class, or a value."""
    if isinstance(value, dict) and section in CLASSES:
        arguments = ", ".join(f"{name}={python_value('', inner)}" for name, inner in value.items())
        return f"{CLASSES[section]}({arguments})"
    return str(value) if isinstance(value, Expression) else repr(value)


def group(pattern: str, name: str, arguments: str) -> str:
    """A parameter group."""
    return f"ParamGroupConfig(pattern={pattern!r}, optimizer_name={name!r}, optimizer_kwargs={arguments})"


def optimizer(*groups: str, implementation: str = "fused") -> Expression:
    """An optimizer of these groups."""
    return Expression(
        f"OptimizersContainer.Config(implementation={implementation!r}, param_groups=[{', '.join(groups)}])"
    )


DEGREES: dict[str, list[Any]] = {
    f"{P}tensor_parallel_degree": [0, -1, 2, 3, 4, 8, 32],
    f"{P}context_parallel_degree": [0, -2, 2, 3, 4, 8],
    f"{P}data_parallel_shard_degree": [0, -2, 1, 2, 4, 5, 8],
    f"{P}data_parallel_replicate_degree": [0, -1, 2, 4, 8, 3],
    f"{P}expert_parallel_degree": [0, 2, 3, 4, 8, 16],
    f"{P}enable_sequence_parallel": [False],
    f"{T}disable_cuda_graphs": [True],
}
PIPELINE: dict[str, list[Any]] = {
    f"{P}pipeline_parallel_degree": [0, -1, 2, 3, 4, 8, 16],
    f"{P}pipeline_parallel_schedule": [
        "1F1B",
        "GPipe",
        "gpipe",
        "Interleaved1F1B",
        "LoopedBFS",
        "InterleavedZeroBubble",
        "ZBVZeroBubble",
        "DualPipeV",
        "ZB1",
        "",
    ],
    f"{P}pipeline_parallel_microbatch_size": [0, -1, 1, 2, 3, 8, 16],
    f"{P}pipeline_parallel_layers_per_stage": [0, -1, 1, 2, 3, 4, 8],
    f"{P}pipeline_parallel_first_stage_less_layers": [0, 2, 3, 9, -1],
    f"{P}pipeline_parallel_last_stage_less_layers": [0, 2, 3, 9, -1],
    f"{T}local_batch_size": [1, 2, 3, 4, 6, 7, 12],
    f"{T}disable_cuda_graphs": [True, False],
}
BATCH: dict[str, list[Any]] = {
    f"{T}local_batch_size": [0, -1, 1, 3, 16],
    f"{T}global_batch_size": [0, 1, -1, -7, 7, 16, 64, 100, 128],
    f"{T}seq_len": [0, 1, 100, 1000, 2049, 4096, 131072, 262144],
}
TRAINING: dict[str, list[Any]] = {
    f"{T}steps": [0, 1, 10, 10.5],
    f"{T}max_norm": [0.0, -1.0, 1, 0.5],
    f"{T}dtype": ["bfloat16", "float32", "fp8"],
    f"{T}mixed_precision_param": ["float32", "bfloat16", "fp16"],
    f"{T}mixed_precision_reduce": ["float32", "fp32"],
    f"{T}gc_freq": [0, -1, 1, 10],
    f"{T}enable_cpu_offload": [True],
    "dataloader.dataset": ["c4", "c4_test", "wikitext", ""],
    "dataloader.num_workers": [0, 2, -1],
    "dataloader.persistent_workers": [True],
    "dataloader.prefetch_factor": [2],
    "optimizer": [
        ADAMW,
        Expression("default_adamw(lr=-1.0)"),
        Expression("default_adamw(lr=0.0)"),
        Expression("default_adamw(lr=1e-3, weight_decay=-0.1)"),
        Expression("default_adamw(lr=1e-3, beta1=1.0)"),
        Expression("default_adamw(lr=1e-3, eps=-1e-8)"),
        Expression("default_adamw()"),
        Expression("default_adamw(learning_rate=1e-3)"),
        Expression("OptimizersContainer.Config()"),
        optimizer(group(".*", "AdamW", "{'lr': 1e-3}")),
        optimizer(group(".*", "Adam", "{'lr': 1e-3, 'betas': (0.9, 0.95)}")),
        optimizer(group(".*", "SGD", "{'lr': 1e-3}")),
        optimizer(group(".*", "AdamW", "{'lr': 1e-3, 'betas': (0.9, 1.0)}")),
        optimizer(group(".*", "AdamW", "{'lr': 1e-3, 'momentum': 0.9}")),
        optimizer(group("layers", "AdamW", "{'lr': 1e-3}")),
        optimizer(group("tok_embeddings", "AdamW", "{'lr': 1e-2}"), group(".*", "AdamW", "{'lr': 1e-3}")),
        optimizer(group("norm|bias", "AdamW", "{'weight_decay': 0.0}"), group(".*", "AdamW", "{'lr': 1e-3}")),
        optimizer(group("output", "AdamW", "{'lr': 1e-2}"), group(".*", "AdamW", "{'lr': 1e-3}")),
        optimizer(group("lm_head", "AdamW", "{'lr': 1e-2}"), group(".*", "AdamW", "{'lr': 1e-3}")),
        optimizer(group(".*", "AdamW", "{'lr': 1e-3}"), group("norm", "AdamW", "{'lr': 1e-3}")),
        optimizer(group(".*", "AdamW", "{'lr': 1e-3}"), implementation="foreach"),
        optimizer(group(".*", "AdamW", "{'lr': 1e-3}"), implementation="for-loop"),
        optimizer(group(".*", "AdamW", "{'lr': 1e-3}"), implementation="apex"),
        MISSING,
    ],
    "lr_scheduler.warmup_steps": [0, -1, 50, 100, 10000],
    "lr_scheduler.decay_ratio": [0.0, 0.1, 0.5, 1.0, 1.5, -0.5, None],
    "lr_scheduler.decay_type": ["linear", "sqrt", "cosine", "exp", "Linear"],
    "lr_scheduler.min_lr_factor": [0.0, 0.1, 1.0, 1.5, -1.0],
    "lr_scheduler.total_steps": [0, 50, 100, 10000],
}
OPERATION: dict[str, list[Any]] = {
    "activation_checkpoint": [
        None,
        Expression("FullAC.Config()"),
        Expression("SelectiveAC.Config()"),
        Expression("MemoryBudgetAC.Config(memory_budget=0.5)"),
        Expression("FullAC.Config(memory_budget=0.5)"),
    ],
    "compile.enable": [True],
    "compile.components": [["model"], ["loss"], []],
    "compile.enable_async_tensor_parallel": [True],
    "loss": [
        Expression("ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config(global_vocab_size=2048))"),
        Expression("ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config(global_vocab_size=2048), num_chunks=4)"),
        Expression("CrossEntropyLoss.Config(global_vocab_size=2048)"),
        MISSING,
    ],
    "metrics.log_freq": [0, -1, 1, 10],
    "metrics.enable_tensorboard": [True],
    "debug.seed": [0, 42, -1, 2**70],
    "debug.deterministic": [True],
    "debug.batch_invariant": [True],
    "debug.spmd_typechecking": [True],
    "comm.init_timeout_seconds": [10, 300],
    "model_spec": [
        Expression('model_registry("8B")'),
        Expression('model_registry("9B")'),
        Expression('model_registry("debugmodel", attn_backend="varlen")'),
        Expression('model_registry("debugmodel", attn_backend="flex")'),
        Expression('model_registry("debugmodel", attn_backend="sdpa")'),
        Expression('model_registry("debugmodel", attention="flex")'),
        MISSING,
    ],
    f"{P}fsdp_reshard_after_forward": ["default", "always", "never", "sometimes"],
    f"{P}spmd_backend": ["spmd_types", "none"],
    f"{P}context_parallel_load_balancer": ["headtail", "ptrr", "", None],
}
CHECKPOINT: dict[str, list[Any]] = {
    "checkpoint.enable": [True, False],
    "checkpoint.folder": ["", "ckpt"],
    "checkpoint.interval": [0, -1, 1, 100000],
    "checkpoint.keep_latest_k": [0, 1, 2, -1],
    "checkpoint.async_mode": ["disabled", "async", "async_with_pinned_mem", "Async", "yes"],
    "checkpoint.export_dtype": ["float16", "bfloat16", "float32", "int8"],
    "checkpoint.last_save_model_only": [False, True],
    "checkpoint.last_save_in_hf": [True],
    "checkpoint.initial_load_path": ["/data/seed", "./seed", "gs://bucket/seed"],
    "checkpoint.initial_load_in_hf": [True],
    "checkpoint.initial_load_in_hf_quantized": [True],
    "checkpoint.initial_load_model_only": [False],
    "checkpoint.exclude_from_loading": [["lr_scheduler"], ["foo"], ["model"], ["dataloader", "optimizer"]],
    "checkpoint.load_only": [True],
    "checkpoint.enable_first_step_checkpoint": [True],
}
VALIDATION: dict[str, list[Any]] = {
    "validator.freq": [0, 1, 500, -1],
    "validator.steps": [0, -1, 10, -2],
    "validator.dataloader": [
        Expression("HuggingFaceTextDataLoader.Config(dataset='c4_validation')"),
        Expression("HuggingFaceTextDataLoader.Config(dataset='pile')"),
    ],
}
MISSPELT: list[Changes] = [
    {f"{P}tensor_paralel_degree": 2},
    {f"{P}expert_tensor_parallel_degree": 1},
    {f"{P}disable_loss_parallel": True},
    {f"{P}enable_async_tensor_parallel": True},
    {f"{T}batch_size": 8},
    {f"{T}dataset": "c4"},
    {f"{T}compile": True},
    {"trainin": {"steps": 3}},
    {"profiling": Expression("Profiler.Config()")},
    {"validation": Expression("Validator.Config()")},
    {"quantize": Expression("None")},
    {"optimizer": Expression("AdamW(lr=1e-3)")},
    {"checkpoint": Expression("CheckpointManager(interval=10)")},
    {"training": MISSING},
    {"parallelism": MISSING},
    {"lr_scheduler": MISSING},
    {"dataloader": MISSING},
    {"activation_checkpoint": MISSING},
    {"activation_checkpoint": "full"},
    {f"{T}local_batch_size": "8"},
    {f"{T}seq_len": "2048"},
    {f"{P}tensor_parallel_degree": "2"},
]
EXPERTS: dict[str, list[Any]] = {
    f"{P}expert_parallel_degree": [1, 2, 4, 8, 3],
    f"{P}tensor_parallel_degree": [1, 2, 4],
    f"{P}context_parallel_degree": [1, 2],
    f"{P}data_parallel_replicate_degree": [1, 2],
    f"{T}disable_cuda_graphs": [True, False],
    f"{P}pipeline_parallel_degree": [1, 2],
    f"{P}pipeline_parallel_schedule": ["1F1B", "ZBVZeroBubble"],
    "activation_checkpoint": [None, Expression("SelectiveAC.Config()")],
    "debug.moe_force_load_balance": [True],
}
# Words behind ``--module M --config F`` (tyro's command line).
WORDS = (
    "--training.steps 7",
    "--training.steps=7",
    "--training.steps seven",
    "--training.steps 7.5",
    "--training.stepz 7",
    "--training.local_batch_size",
    "--training.seq_len 4096",
    "--training.seq_len 2047",
    "--training.seq_len 262144",
    "--training.global_batch_size 100",
    "--training.global_batch_size 128",
    "--training.dtype bf16",
    "--training.dtype bfloat16",
    "--training.max_norm 0",
    "--training.gc_freq 0",
    "--parallelism.tensor_parallel_degree 2",
    "--parallelism.tensor-parallel-degree 2",
    "--parallelism.tensor_parallel_degree 3",
    "--parallelism.context_parallel_degree 2",
    "--parallelism.pipeline_parallel_degree 2",
    "--parallelism.pipeline_parallel_degree 2 --training.disable_cuda_graphs",
    "--parallelism.pipeline_parallel_degree 2 --training.disable_cuda_graphs "
    "--parallelism.pipeline_parallel_schedule 1F1B",
    "--parallelism.pipeline_parallel_degree 2 --training.disable_cuda_graphs "
    "--parallelism.pipeline_parallel_schedule ZB1",
    "--parallelism.expert_parallel_degree 2 --training.disable_cuda_graphs",
    "--parallelism.expert_parallel_degree 3 --training.disable_cuda_graphs",
    "--parallelism.spmd_backend none",
    "--parallelism.fsdp_reshard_after_forward never",
    "--compile.enable",
    "--compile.enable True",
    "--compile.no-enable",
    "--compile.enable --compile.components model",
    "--lr_scheduler.decay_type exp",
    "--lr_scheduler.decay_type cosine",
    "--lr_scheduler.decay_ratio None",
    "--checkpoint.enable",
    "--checkpoint.enable --checkpoint.interval 0",
    "--checkpoint.keep_latest_k 1",
    "--checkpoint.initial_load_path seed",
    "--dataloader.dataset wikitext",
    "--dataloader.dataset c4",
    "--optimizer.implementation foreach",
    "--optimizer.lr 1e-3",
    "--metrics.log_freq 0",
    "--metrics.log_freq 5",
    "--debug.seed 42",
    "--debug.batch_invariant",
    "--validator.enable",
    "--validator.enable --validator.steps 0",
    "--profiler.enable_profiling --profiler.profile_freq 3",
    "--hf_assets_path /data/assets",
    "--model_spec.flavor 8B",
    "--loss.num_chunks 7",
    "activation-checkpoint:full",
    "activation-checkpoint:none",
    "activation-checkpoint:partial",
    "--training.steps 3 activation-checkpoint:full",
    "activation-checkpoint:full --training.steps 3",
    "steps 7",
)
FUNCTIONS = {"llama3": "llama3_debugmodel", "qwen3": "qwen3_moe_debug", "deepseek_v3": "deepseek_v3_debugmodel"}
FAMILIES = {"llama3": "debugmodel", "qwen3": "debugmodel", "deepseek_v3": "debugmodel", "gpt_oss": "debugmodel"}


def bases() -> dict[str, tuple[str, dict[str, Any]]]:
    """Name of a base -> its family and sections."""
    found = {
        name: (name, {**BASE, "model_spec": Expression(f'model_registry("{FAMILIES[name]}")')}) for name in FAMILIES
    }
    found["qwen3 MoE"] = ("qwen3", {**BASE, "model_spec": Expression('model_registry("debugmodel_moe")')})
    return found


def python_variants() -> Iterator[tuple[Variant, str]]:
    """Variants of the bases and their text."""
    known, made = bases(), list[Variant]()

    def add(base: str, changes: Any, world: int = 8) -> None:
        made.extend(Variant(base, found, world) for found in changes)

    for base in known:
        add(base, [{}])
        add(base, singles(DEGREES))
    add("llama3", singles(BATCH, TRAINING, OPERATION, PIPELINE))
    add("llama3", MISSPELT)
    add("llama3", ({**PIPED, **found} for found in singles(PIPELINE)))
    looped = {**PIPED, f"{P}pipeline_parallel_schedule": "Interleaved1F1B"}
    add("llama3", ({**looped, **found} for found in singles(PIPELINE)))
    add("llama3", ({"checkpoint.enable": True, **found} for found in singles(CHECKPOINT)))
    add("llama3", ({"validator.enable": True, **found} for found in singles(VALIDATION)))
    profile = {"profiler.enable_profiling": True}
    add("llama3", ({**profile, **found} for found in singles({"profiler.profile_freq": [0, 3, 4]})))
    add("llama3", pairs(25, 21, DEGREES, BATCH))
    add("llama3", ({**PIPED, **found} for found in pairs(20, 22, PIPELINE)))
    add("llama3", pairs(30, 23, TRAINING, OPERATION))
    add("llama3", ({"checkpoint.enable": True, **found} for found in pairs(12, 24, CHECKPOINT)))
    add("llama3", pairs(12, 25, DEGREES, OPERATION))
    for number, base in enumerate(("deepseek_v3", "qwen3 MoE", "gpt_oss")):
        add(base, pairs(15, 30 + number, EXPERTS))
        add(base, [{f"{P}expert_parallel_degree": 6, f"{T}disable_cuda_graphs": True}], 6)
        add(base, [{f"{P}tensor_parallel_degree": 16}], 16)
    add("qwen3", pairs(12, 40, DEGREES, PIPELINE))
    for variant in made:
        family, sections = known[variant.base]
        yield variant, python_text(family, python_changed(sections, variant.changes))


__all__: Sequence[str] = ("python_variants",)
