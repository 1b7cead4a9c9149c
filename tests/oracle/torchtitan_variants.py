"""Broken and sound variants of torchtitan configurations, the same ones on every run.

A variant changes options of a base by address; `MISSING` takes one out, a section as well.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MISSING = object()
Changes = Mapping[str, Any]
P, T = "parallelism.", "training."


@dataclass(frozen=True)
class Variant:
    """One variant: the base's name, what is changed, and the number of ranks."""

    base: str
    changes: Mapping[str, Any] = field(hash=False)
    world_size: int

    @property
    def name(self) -> str:
        """Base, ranks and changes in one line."""
        said = " ".join(
            f"{address}={'(gone)' if value is MISSING else value}" for address, value in self.changes.items()
        )
        return f"{self.base}@{self.world_size} {said}".strip()


LLAMA = """\
[model]
name = "llama3"
flavor = "debugmodel"

[optimizer]
lr = 8e-4

[lr_scheduler]
warmup_steps = 20

[training]
local_batch_size = 8
seq_len = 2048
steps = 100

[activation_checkpoint]
mode = "full"
"""


def changed(base: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """The tables of a base with some options changed."""
    tables: dict[str, Any] = json.loads(json.dumps(base))
    for address, value in changes.items():
        *above, last = address.split(".")
        table = tables
        for part in above:
            table = table.setdefault(part, {})
        if value is MISSING:
            table.pop(last, None)
        else:
            table[last] = value
    return tables


def toml_text(tables: Mapping[str, Any], above: str = "") -> str:
    """Tables as TOML: plain values of a table first, then the tables in it."""
    plain = [f"{key} = {toml_value(value)}" for key, value in tables.items() if not isinstance(value, dict)]
    text = "".join(f"{line}\n" for line in plain)
    for key, value in tables.items():
        if isinstance(value, dict):
            text += f"\n[{above}{key}]\n{toml_text(value, f'{above}{key}.')}"
    return text


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


DEGREES: dict[str, list[Any]] = {
    f"{P}tensor_parallel_degree": [0, -1, 2, 3, 4, 8, 32],
    f"{P}context_parallel_degree": [0, -2, 2, 3, 4, 8],
    f"{P}pipeline_parallel_degree": [0, -1, 2, 3, 4, 8, 16],
    f"{P}data_parallel_shard_degree": [0, -2, 1, 2, 4, 5, 8],
    f"{P}data_parallel_replicate_degree": [0, -1, 2, 4, 8, 3],
    f"{P}expert_parallel_degree": [0, 2, 3, 4, 8, 16],
}
STAGES: dict[str, list[Any]] = {
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
        "PipelineScheduleMulti",
        "",
    ],
    f"{P}pipeline_parallel_microbatch_size": [0, -1, 1, 2, 3, 8, 16],
    f"{P}pipeline_parallel_layers_per_stage": [0, -1, 1, 2, 3, 4, 8],
    f"{P}pipeline_parallel_first_stage_less_layers": [0, 2, 3, 9, -1],
    f"{P}pipeline_parallel_last_stage_less_layers": [0, 2, 3, 9, -1],
    f"{T}local_batch_size": [1, 2, 3, 4, 6, 7, 12],
}
BATCH: dict[str, list[Any]] = {
    f"{T}local_batch_size": [0, -1, 1, 3, 16],
    f"{T}global_batch_size": [0, 1, -1, -7, 7, 16, 64, 100, 128],
    f"{T}seq_len": [0, 1, 100, 1000, 2049, 4096, 131072],
}
TRAINING: dict[str, list[Any]] = {
    f"{T}steps": [0, 1, 10, "1000", 10.5],
    f"{T}max_norm": [0.0, -1.0, 1, 0.5],
    f"{T}dtype": ["bfloat16", "float32", "fp8", "float64"],
    f"{T}mixed_precision_param": ["float32", "bfloat16", "fp16", "half"],
    f"{T}mixed_precision_reduce": ["float32", "fp32"],
    f"{T}gc_freq": [0, -1, 1, 10],
    f"{T}dataset": ["c4", "c4_test", "wikitext", ""],
    f"{T}enable_cpu_offload": [True],
    "optimizer.name": ["Adam", "AdamW", "SGD", "adamw", "Muon"],
    "optimizer.lr": ["3e-4", 0.0, -1.0, 1],
    "optimizer.beta1": [0.0, 1.0, -0.1, 0.95],
    "optimizer.beta2": [1.0, 1.5, 0.999],
    "optimizer.eps": [0.0, -1e-8, 1e-6],
    "optimizer.weight_decay": [-0.1, 0.0, 0.01],
    "optimizer.implementation": ["foreach", "for-loop", "fused", "apex"],
    "optimizer.early_step_in_backward": [True],
    "lr_scheduler.warmup_steps": [0, -1, 50, 100, 10000],
    "lr_scheduler.decay_ratio": [0.0, 0.1, 0.5, 1.0, 1.5, -0.5],
    "lr_scheduler.decay_type": ["linear", "sqrt", "cosine", "exp", "Linear"],
    "lr_scheduler.min_lr_factor": [0.0, 0.1, 1.0, 1.5, -1.0],
    "lr_scheduler.total_steps": [0, 50, 100, 10000],
}
OPERATION: dict[str, list[Any]] = {
    "activation_checkpoint.mode": ["none", "full", "selective", "memory_budget", "partial", ""],
    "compile.enable": [True],
    "metrics.log_freq": [0, -1, 1],
    "metrics.enable_tensorboard": [True],
    "profiling.enable_profiling": [True],
    "debug.seed": [0, 42, -1, 2**70],
    "debug.deterministic": [True],
    "model.flavor": ["9B", "", "405b"],
    "model.name": ["llama9", ""],
}
CHECKPOINT: dict[str, list[Any]] = {
    "checkpoint.interval": [0, -1, 1, 100000],
    "checkpoint.keep_latest_k": [0, 1, 2, -1],
    "checkpoint.async_mode": ["disabled", "async", "async_with_pinned_mem", "Async", "yes"],
    "checkpoint.export_dtype": ["float16", "bfloat16", "float32", "int8"],
    "checkpoint.last_save_model_only": [False, True],
    "checkpoint.last_save_in_hf": [True],
    "checkpoint.exclude_from_loading": [["lr_scheduler"], ["foo"], ["dataloader", "optimizer"]],
    "checkpoint.load_only": [True],
    "checkpoint.enable_first_step_checkpoint": [True],
}
DETAILS: dict[str, list[Any]] = {
    "metrics.log_freq": ["10", 1.5, True],
    "checkpoint.folder": ["", 3],
    "model.hf_assets_path": ["/data/llama", 7],
    "comm.init_timeout_seconds": [0, 10, -1],
    "comm.train_timeout_seconds": [-1, 1],
    "comm.trace_buf_size": [0, 20000, -5],
    "job.print_config": [True, "yes"],
    "job.dump_folder": ["", "./runs"],
    "profiling.profile_freq": [0, 1, 3, 4, 100],
    "training.dataset_path": ["/data/c4"],
    "training.dataloader.num_workers": [0, 2, -1],
    "training.dataloader.persistent_workers": [True],
    "training.dataloader.prefetch_factor": [2],
    "training.local_batch_size": ["8", 8.0, [8]],
    "training.max_norm": ["1.0"],
    "optimizer.lr": [True, "high"],
    "optimizer.beta1": ["0.9"],
    "lr_scheduler.decay_ratio": ["0.5", ""],
    "parallelism.disable_loss_parallel": [True, 1],
    "parallelism.fsdp_reshard_after_forward": ["always", "never", "sometimes"],
    "parallelism.tensor_parallel_degree": ["2", 2.0],
    "parallelism.context_parallel_rotate_method": ["alltoall", "ring"],
    "parallelism.expert_parallel_comm_backend": ["standard", "deepep", "nccl"],
    "parallelism.context_parallel_load_balancer": ["headtail", "ptrr", "", "zigzag"],
    "parallelism.pipeline_parallel_schedule": ["ZB1", "GPipe"],
    "parallelism.enable_async_tensor_parallel": [True],
}
RECOMPUTE: dict[str, list[Any]] = {
    "activation_checkpoint.mode": ["none", "full", "selective", "memory_budget"],
    "activation_checkpoint.selective_ac_option": ["op", "2", "0", "1", "attn", "-1", "", 2, "9"],
    "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns": [
        [],
        ["moe.router.gate"],
        ["norm"],
        ["output"],
    ],
    "activation_checkpoint.memory_budget": [0.0, 0.5, 1.5, -1.0],
    "activation_checkpoint.early_stop": [True],
    "activation_checkpoint.preserve_rng_state": [False],
    "activation_checkpoint.determinism_check": ["none", "default", "loud"],
    "compile.enable": [True, False],
    "compile.components": [["model"], ["loss"], ["model", "loss"], [], ["optimizer"]],
    "compile.backend": ["eager", "inductor", "nothing"],
}
QUANTIZE: dict[str, list[Any]] = {
    "model.converters": [
        ["float8"],
        ["mx"],
        ["quantize.linear.float8"],
        ["quantize.linear.mx"],
        ["quantize.grouped_mm.float8"],
        ["quantize.grouped_mm.mx"],
        ["quantize.linear.float8", "quantize.grouped_mm.float8"],
        ["quantize.linear.float8", "quantize.grouped_mm.mx"],
        ["quantize.linear.mx", "quantize.grouped_mm.mx"],
        "quantize.linear.float8",
    ],
    "quantize.linear.float8.recipe_name": ["tensorwise", "rowwise", "rowwise_with_gw_hp", "blockwise"],
    "quantize.linear.float8.enable_fsdp_float8_all_gather": [True],
    "quantize.grouped_mm.float8.fqns": [["experts"], "experts"],
    "quantize.linear.mx.filter_fqns": [["output"], []],
    "compile.enable": [True],
    f"{P}tensor_parallel_degree": [1, 2],
    f"{P}context_parallel_degree": [1, 2],
    f"{P}pipeline_parallel_degree": [1, 2],
}
VALIDATION: dict[str, list[Any]] = {
    "validation.freq": [0, 1, 500, -1],
    "validation.steps": [0, -1, 10, -2],
    "validation.dataset": ["c4_validation", "c4_test", "pile"],
    "validation.seq_len": [100, 2048],
    "validation.local_batch_size": [1, 8],
    f"{P}pipeline_parallel_degree": [1, 2],
}
EXPERTS: dict[str, list[Any]] = {
    f"{P}expert_parallel_degree": [1, 2, 4, 8, 3],
    f"{P}expert_tensor_parallel_degree": [0, 1, 2, 4],
    f"{P}tensor_parallel_degree": [1, 2, 4],
    f"{P}context_parallel_degree": [1, 2],
    f"{P}pipeline_parallel_degree": [1, 2],
    f"{P}expert_parallel_comm_backend": ["standard", "deepep"],
    f"{P}pipeline_parallel_schedule": ["DualPipeV", "1F1B", "ZBVZeroBubble"],
    "optimizer.early_step_in_backward": [True, False],
    "compile.enable": [True, False],
    "activation_checkpoint.mode": ["none", "full", "selective"],
    "debug.moe_force_load_balance": [True],
}
FLAVORS: dict[str, list[Any]] = {
    "model.flavor": ["debugmodel", "debugmodel_flex_attn", "debugmodel_varlen_attn", "1B", "8B_flex"],
    f"{P}context_parallel_degree": [1, 2, 4],
    f"{P}context_parallel_load_balancer": ["headtail", "ptrr", "other"],
    f"{P}pipeline_parallel_degree": [1, 2],
    f"{P}tensor_parallel_degree": [1, 2, 8],
    f"{P}data_parallel_replicate_degree": [1, 2, 8],
    f"{P}data_parallel_shard_degree": [-1, 1, 2],
    f"{P}enable_async_tensor_parallel": [True, False],
    "compile.enable": [True, False],
    "activation_checkpoint.mode": ["full", "selective", "memory_budget", "none"],
    "activation_checkpoint.selective_ac_option": ["op", "2"],
}
MODULES: list[Changes] = [
    {f"{P}module_fqns_per_model_part": lists, f"{P}pipeline_parallel_degree": 2}
    for lists in (
        [
            ["tok_embeddings", "layers.0", "layers.1"],
            ["layers.2", "layers.3", "layers.4", "layers.5", "norm", "output"],
        ],
        [
            ["tok_embeddings"],
            ["layers.0", "layers.1"],
            ["layers.2", "layers.3"],
            ["layers.4", "layers.5", "norm", "output"],
        ],
        [["tok_embeddings", "layers.0"], ["layers.1", "layers.2"], ["layers.3", "layers.4", "layers.5", "norm"]],
        "layers.0",
    )
]
MISSPELT: list[Changes] = [
    {"parallelism.tensor_paralel_degree": 2},
    {"training.batch_size": 8},
    {"training.compile": True},
    {"trainin": {"steps": 3}},
    {"model.norm_type": "rmsnorm"},
    {"experimental.enable_async_tensor_parallel": True},
    {"checkpoint.enable_checkpoint": True},
    {"optimizer.learning_rate": 1e-4},
    {"lr_scheduler.lr_min": 0.1},
    {"float8": {"enable_fsdp_float8_all_gather": True}},
    {"parallelism.enable_compiled_autograd": True},
    {"parallelism.context_parallel": 2},
    {"training": 3},
    {"parallelism": MISSING},
    {"training": MISSING},
    {"model": MISSING},
    {"optimizer": MISSING},
    {"lr_scheduler": MISSING},
    {"activation_checkpoint": MISSING},
    {"optimizer.implementation": "apex", "optimizer.lrr": 1},
]


def singles(*tables: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Every value of every option alone."""
    for table in tables:
        for address, values in table.items():
            for value in values:
                yield {address: value}


def pairs(count: int, seed: int, *tables: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """So many pairs of options, chosen by a seed."""
    chosen = random.Random(seed)
    merged = {address: values for table in tables for address, values in table.items()}
    for _ in range(count):
        yield {address: chosen.choice(list(merged[address])) for address in sorted(chosen.sample(sorted(merged), 2))}


def parsed(text: str) -> dict[str, Any]:
    """The tables of a base."""
    return tomllib.loads(text)
