"""Broken and sound variants of DeepSpeed configurations: what is changed, by key."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Changes = dict[str, Any]
Config = dict[str, Any]
Z = "zero_optimization."
DROP = "(no key)"


@dataclass(frozen=True)
class Variant:
    """A base with some keys changed."""

    base: str
    changes: Changes

    @property
    def name(self) -> str:
        """How it is told."""
        return f"{self.base}: " + (", ".join(f"{key}={value!r}" for key, value in self.changes.items()) or "as it is")


def changed(base: Config, changes: Mapping[str, Any]) -> Config:
    """A base with keys set by their path; sections appear where there are none."""
    found = copy.deepcopy(base)
    for path, value in changes.items():
        *sections, name = path.split(".")
        inner = found
        for section in sections:
            below = inner.get(section)
            if not isinstance(below, dict):
                below = inner[section] = {}
            inner = below
        if value == DROP:
            inner.pop(name, None)
        else:
            inner[name] = copy.deepcopy(value)
    return found


def singles(*topics: Mapping[str, Iterable[Any]]) -> Iterator[Changes]:
    """One key at a time."""
    for topic in topics:
        for key, values in topic.items():
            for value in values:
                yield {key: value}


def pairs(count: int, seed: int, *topics: Mapping[str, Iterable[Any]]) -> Iterator[Changes]:
    """Some pairs of changes of different keys, drawn with a seed."""
    found = list(singles(*topics))
    every = [left | right for left, right in itertools.combinations(found, 2) if left.keys() != right.keys()]
    yield from random.Random(seed).sample(every, min(count, len(every)))


ADAM = {"lr": 3e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}
OWN: Config = {
    "train_batch_size": 64,
    "train_micro_batch_size_per_gpu": 2,
    "gradient_clipping": 1.0,
    "steps_per_print": 100,
    "bf16": {"enabled": True},
    "zero_optimization": {
        "stage": 2,
        "overlap_comm": True,
        "contiguous_gradients": True,
        "reduce_bucket_size": 500000000,
        "allgather_bucket_size": 500000000,
    },
    "optimizer": {"type": "AdamW", "params": ADAM},
    "scheduler": {
        "type": "WarmupDecayLR",
        "params": {"warmup_num_steps": 100, "warmup_max_lr": 3e-4, "total_num_steps": 10000},
    },
}
FP16 = changed(OWN, {"bf16": DROP, "fp16.enabled": True, "zero_optimization": DROP, "scheduler": DROP})
STAGE3 = changed(OWN, {f"{Z}stage": 3, "scheduler": DROP})
OFFLOAD = changed(
    STAGE3, {f"{Z}offload_optimizer": {"device": "cpu", "pin_memory": True}, f"{Z}offload_param": {"device": "cpu"}}
)
BARE: Config = {"train_batch_size": 8}
TRAINER: Config = {
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "bf16": {"enabled": "auto"},
    "zero_optimization": {
        "stage": 3,
        "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto",
        "stage3_param_persistence_threshold": "auto",
    },
    "optimizer": {
        "type": "AdamW",
        "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"},
    },
    "scheduler": {
        "type": "WarmupDecayLR",
        "params": {
            "warmup_min_lr": "auto",
            "warmup_max_lr": "auto",
            "warmup_num_steps": "auto",
            "total_num_steps": "auto",
        },
    },
}
BASES = {"own": OWN, "fp16": FP16, "stage 3": STAGE3, "offload": OFFLOAD, "bare": BARE, "trainer": TRAINER}

BATCH: dict[str, list[Any]] = {
    "train_batch_size": [DROP, 0, -8, 1, 8, 12, 16, 30, 62, 128, "64", "sixty", None, True, 64.0, 64.5, [64], 1000000],
    "train_micro_batch_size_per_gpu": [DROP, 0, -1, 1, 3, 4, 8, 16, "2", None, 2.0, 1.5, {"size": 2}],
    "gradient_accumulation_steps": [0, -1, 1, 2, 3, 4, 8, "4", None, 4.0, 2.5],
}
ZERO: dict[str, list[Any]] = {
    f"{Z}stage": [DROP, 0, 1, 2, 3, 4, -1, "2", "two", 2.0, 2.5, True, None],
    f"{Z}overlap_comm": [False, None, "true", "yes please", 1, 2],
    f"{Z}contiguous_gradients": [False, "off", None, "maybe"],
    f"{Z}reduce_scatter": [False, None, 3],
    f"{Z}reduce_bucket_size": [0, -1, 1000, 5e8, "5e8", "500000000", 1.5, None, "auto"],
    f"{Z}allgather_bucket_size": [0, -5, 2e8, "big"],
    f"{Z}allgather_partitions": [False, "no", []],
    f"{Z}round_robin_gradients": [True, "never"],
    f"{Z}ignore_unused_parameters": [False],
    f"{Z}elastic_checkpoint": [True],
    f"{Z}legacy_stage1": [True],
    f"{Z}stage3_max_live_parameters": [1e9, 0, -1, "1e9"],
    f"{Z}stage3_max_reuse_distance": [1e9, 0, None],
    f"{Z}stage3_prefetch_bucket_size": [0, 5e7, -1, 1e-3],
    f"{Z}stage3_param_persistence_threshold": [0, 1e5, -1],
    f"{Z}stage3_gather_16bit_weights_on_model_save": [True, "true"],
    f"{Z}stage3_gather_fp16_weights_on_model_save": [True],
    f"{Z}sub_group_size": [1e9, 0, -1, 1e12],
    f"{Z}memory_efficient_linear": [False],
    f"{Z}zero_hpz_partition_size": [1, 2, 4, 8, 0, -1],
    f"{Z}zero_quantized_weights": [True],
    f"{Z}zero_quantized_gradients": [True],
    f"{Z}mics_shard_size": [-1, 0],
    f"{Z}offload_optimizer": [
        {"device": "cpu"},
        {"device": "none"},
        {"device": "nvme", "nvme_path": "/local_nvme"},
        {"device": "gpu"},
        {"device": "cpu", "pin_memory": "true"},
        {"device": "cpu", "pin_memori": True},
        {"device": "cpu", "ratio": 0.5},
        {"device": "cpu", "ratio": 1.5},
        {"device": "cpu", "buffer_count": 4, "fast_init": False},
        {"device": "cpu", "buffer_count": -1},
        {},
        None,
        "cpu",
        True,
    ],
    f"{Z}offload_param": [
        {"device": "cpu"},
        {"device": "disk"},
        {"device": "cpu", "buffer_size": 1e8, "max_in_cpu": 1e9},
        {"device": "cpu", "buffer_size": 0.5},
        None,
        [],
    ],
    f"{Z}cpu_offload": [True, False, "true"],
    f"{Z}cpu_offload_params": [True],
    f"{Z}cpu_offload_use_pin_memory": [True],
    "zero_optimization": [DROP, {}, True, False, 2, None, "stage2", []],
    "zero_allow_untested_optimizer": [True, "true"],
    "zero_force_ds_cpu_optimizer": [False, True],
}
PRECISION: dict[str, list[Any]] = {
    "bf16.enabled": [False, "true", "on", None, 1, 2, "auto"],
    "bf16": [DROP, {}, None, True, "enabled", {"enable": True}, {"enabled": True, "loss_scale": 0}],
    "bf16.immediate_grad_update": [True, False],
    "bf16.check_grad_overflow": [True],
    "bf16.bf16_master_weights_and_grads": [True],
    "bf16.bf16_optimizer_states": [True],
    "fp16": [{"enabled": True}, {}, {"enabled": False}, True, None, {"enabled": "false"}],
    "fp16.enabled": ["true", 0, "maybe"],
    "fp16.loss_scale": [0, 1024, -1, "dynamic", None, 0.5],
    "fp16.initial_scale_power": [16, 0, 32, 200, 5000, -1, "16", 16.5],
    "fp16.loss_scale_window": [1000, 0, -1, "1000"],
    "fp16.hysteresis": [2, 0, -1, 1.5],
    "fp16.min_loss_scale": [1, 0, 1e-10, "one"],
    "fp16.consecutive_hysteresis": [True, "x"],
    "fp16.auto_cast": [True],
    "fp16.fp16_master_weights_and_grads": [True],
    "fp16.fp16_opt_level": ["O2"],
    "data_types": [{}, None, {"grad_accum_dtype": "fp32"}, "fp32"],
    "data_types.grad_accum_dtype": ["fp16", "bf16", "float32", "bfloat16", "int8", "fp64", None, 32],
    "data_types.param_dtype": ["bf16", "fp16", "fp32", "half", None],
    "data_types.buffer_dtype": ["bf16", "fp32", "int7", None],
    "communication_data_type": ["fp32", "bf16", "FP16", "float32", None, 16],
    "seq_parallel_communication_data_type": ["fp32", "double"],
    "torch_autocast": [
        {"enabled": False},
        {"enabled": True, "dtype": "bfloat16"},
        {"enabled": True, "dtype": "tf32"},
        {"enabled": True, "dtype": "float16", "lower_precision_safe_modules": ["torch.nn.Linear"]},
        {"enabled": True, "dtype": "bfloat16", "lower_precision_safe_modules": [1]},
        {},
        None,
    ],
    "amp": [{"enabled": False}, {"enabled": True}, {"enabled": True, "opt_level": "O1"}, {"opt_level": "O1"}, {}, True],
}
OPTIMIZER: dict[str, list[Any]] = {
    "optimizer": [DROP, {}, None, "AdamW", {"params": ADAM}, {"type": "AdamW"}, {"type": "AdamW", "params": None}, []],
    "optimizer.type": [
        *("Adam", "adam", "ADAMW", "Adamw", "SGD", "sgd", "Lamb", "Lion", "Adagrad", "Muon", "RMSprop", "NAdam"),
        *("RAdam", "AdamX", "FusedAdam", "CPUAdam", "DeepSpeedCPUAdam", "Adafactor", "", None, 1, "torch.optim.AdamW"),
    ],
    "optimizer.params.lr": [DROP, 0, 1e-4, -1e-4, "3e-4", "auto", None, [1e-4], 3],
    "optimizer.params.betas": [DROP, [0.9], [0.9, 0.95, 0.99], [0.9, 1.0], [1.5, 0.9], 0.9, "0.9 0.95", None, {}],
    "optimizer.params.eps": [DROP, 0, -1e-8, "1e-8", None],
    "optimizer.params.weight_decay": [DROP, 0, -0.1, "0.1", None, True],
    "optimizer.params.adam_w_mode": [True, False],
    "optimizer.params.torch_adam": [True, False],
    "optimizer.params.bias_correction": [True, False],
    "optimizer.params.amsgrad": [True, False],
    "optimizer.params.fused": [True, False],
    "optimizer.params.foreach": [False],
    "optimizer.params.max_grad_norm": [0.0, 1.0],
    "optimizer.params.wieght_decay": [0.1],
    "optimizer.params.beta1": [0.9],
    "optimizer.params.learning_rate": [3e-4],
    "optimizer.params.momentum": [0.9],
    "optimizer.params.set_grad_none": [True],
    "optimizer.params.fp32_optimizer_states": [True],
    "optimizer.legacy_fusion": [True],
}
SCHEDULER: dict[str, list[Any]] = {
    "scheduler": [DROP, {}, None, "WarmupLR", {"type": "WarmupLR"}, {"type": "WarmupLR", "params": {}}, {"params": {}}],
    "scheduler.type": [
        *("WarmupLR", "WarmupCosineLR", "OneCycle", "LRRangeTest", "CosineAnnealingLR", "LambdaLR", "warmuplr"),
        *("WarmupDecay", "cosine", "linear", "", None, 7),
    ],
    "scheduler.params.total_num_steps": [DROP, 0, -1, 50, "10000", None, 1e4, 100.5],
    "scheduler.params.warmup_num_steps": [DROP, 0, -5, 1, "100", None, 10.5, 20000],
    "scheduler.params.warmup_max_lr": [DROP, 0, -1, "3e-4", None, [3e-4], [1e-4, 2e-4]],
    "scheduler.params.warmup_min_lr": [0, 1e-3, "0", None],
    "scheduler.params.warmup_type": ["linear", "log", "cosine", None, 1],
    "scheduler.params.warmup_ratio": [0.1],
    "scheduler.params.last_batch_iteration": [-1, 100, "x"],
    "scheduler.params.total_steps": [1000],
    "scheduler.params.T_max": [1000],
}
CYCLES: list[Changes] = [
    {"scheduler": {"type": kind, "params": params}}
    for kind, params in (
        ("OneCycle", {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-3}),
        ("OneCycle", {"cycle_min_lr": 1e-5}),
        ("OneCycle", {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-3, "cycle_first_step_size": 100}),
        ("OneCycle", {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-3, "cycle_first_step_size": 0}),
        ("OneCycle", {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-3, "cycle_momentum": True, "cycle_min_mom": 0.8}),
        ("OneCycle", {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-3, "decay_step_size": 10}),
        ("OneCycle", {"cycle_min_lr": "a", "cycle_max_lr": 1e-3}),
        ("OneCycle", {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-3, "steps": 3}),
        ("LRRangeTest", {}),
        ("LRRangeTest", {"lr_range_test_min_lr": 1e-4, "lr_range_test_step_size": 200}),
        ("LRRangeTest", {"lr_range_test_step_size": 0}),
        ("LRRangeTest", {"lr_range_test_min_lr": "x"}),
        ("LRRangeTest", {"lr_range_test_staircase": True}),
        ("WarmupCosineLR", {"total_num_steps": 1000}),
        ("WarmupCosineLR", {}),
        ("WarmupCosineLR", {"total_num_steps": 1000, "warmup_num_steps": 10, "cos_min_ratio": 0.1}),
        ("WarmupCosineLR", {"total_num_steps": 1000, "cos_min_ratio": "low"}),
        ("WarmupCosineLR", {"total_num_steps": 1000, "warmup_max_lr": 1e-3}),
        ("WarmupCosineLR", {"total_num_steps": 1000, "warmup_min_ratio": 0.0, "warmup_type": "linear"}),
        ("WarmupLR", {"warmup_min_lr": 0, "warmup_max_lr": 1e-3, "warmup_num_steps": 10}),
        ("WarmupLR", {"warmup_num_steps": 10, "total_num_steps": 100}),
        ("WarmupLR", {"warmup_min_lr": [0, 0], "warmup_max_lr": [1e-3, 1e-3]}),
        ("StepLR", {"step_size": 10}),
        ("StepLR", {}),
        ("StepLR", {"step_size": 10, "gama": 0.1}),
        ("CosineAnnealingLR", {"T_max": 100}),
        ("ExponentialLR", {"gamma": 0.9}),
        ("ConstantLR", {}),
    )
]
TOP: dict[str, list[Any]] = {
    "gradient_clipping": [DROP, 0, 0.0, -1.0, "1.0", None, True, 1e9, "auto", [1.0]],
    "steps_per_print": [0, 1, "100", None, 1.5, "inf", 9999999999],
    "wall_clock_breakdown": [True, "false", None, 2, "x"],
    "memory_breakdown": [True, None],
    "dump_state": [True, None],
    "prescale_gradients": [True, "false", None],
    "gradient_predivide_factor": [1.0, 2.0, 0, "1.0", None],
    "sparse_gradients": [True, False, None],
    "disable_allgather": [True],
    "dataloader_drop_last": [True, None],
    "graph_harvesting": [False, None],
    "use_data_before_expert_parallelism": [True],
    "vocabulary_size": [50257, 50304, "50304"],
    "gradient_cliping": [1.0],
    "train_micro_batch_size": [2],
    "micro_batch_size": [2],
    "zero_optimisation": [{"stage": 2}],
    "seed": [42],
    "_comment": ["for 8 GPUs"],
    "activation_checkpoint": [{"partition_activations": True}],
    "fp32_allreduce": [True],
    "allreduce_always_fp32": [True],
    "disable_compression": [True],
    "zero_optimization.stages": [2],
    "zero_optimization.overlap_com": [True],
    "zero_optimization.reduce_bucket": [5e8],
    "zero_optimization.offload": [{"device": "cpu"}],
    "zero_optimization.load_from_fp32_weights": [True],
    "zero_optimization.grad_hooks": [True],
    "zero_optimization.stage3_model_persistence_threshold": [1e9, 0],
    "zero_optimization.log_trace_cache_warnings": [True],
    "zero_optimization.use_multi_rank_bucket_allreduce": [False],
    "zero_optimization.pipeline_loading_checkpoint": [True],
    "zero_optimization.override_module_apply": [False],
    "zero_optimization.module_granularity_threshold": [0, 5],
    "zero_optimization.leaf_module": [{"classes": ["Block"]}, {"classes": "Block"}, {"names": ["layers.0"]}, "Block"],
    "fp16.initial_scale": [65536],
    "fp16.scale_window": [1000],
    "bf16.enable": [True],
}
SECTIONS: dict[str, list[Any]] = {
    "activation_checkpointing": [
        {},
        {"partition_activations": True, "cpu_checkpointing": True, "number_checkpoints": 4},
        {"partition_activation": True},
        {"number_checkpoints": "four"},
        {"profile": "yes"},
        None,
        True,
    ],
    "flops_profiler": [
        {"enabled": True, "profile_step": 1},
        {"enabled": False},
        {"enabled": "true"},
        {"enable": True},
        {},
        None,
        True,
    ],
    "aio": [
        {"block_size": 1048576, "queue_depth": 8, "thread_count": 1, "single_submit": False, "overlap_events": True},
        {"block_size": "1MB"},
        {"blocksize": 1},
        {},
        None,
    ],
    "comms_logger": [{"enabled": True, "verbose": False}, {"enabled": "x"}, {"enable": True}, {}, None],
    "tensorboard": [
        {"enabled": False},
        {"enabled": False, "output_path": "out", "job_name": "run"},
        {"enabled": "nope"},
        {"enabled": False, "output": "x"},
        {},
        None,
        True,
    ],
    "wandb": [
        {"enabled": False, "project": "x"},
        {"enabled": False, "entity": "me"},
        {"enabled": False, "name": "r"},
        {"team": 1},
    ],
    "csv_monitor": [{"enabled": False, "output_path": "logs"}, {"enabled": 3}, {"enabled": False, "path": 1}],
    "comet": [{"enabled": False}, {"enabled": False, "samples_log_interval": "x"}],
    "elasticity": [
        {"enabled": False},
        {"enabled": True, "max_train_batch_size": 2000, "micro_batch_sizes": [2, 4, 6]},
        {
            "enabled": True,
            "max_train_batch_size": 2000,
            "micro_batch_sizes": [2, 4, 6],
            "ignore_non_elastic_batch_info": True,
        },
        {"enabled": True, "micro_batch_sizes": [2, 4]},
        {"enabled": True, "max_train_batch_size": 2000},
        {"enabled": True},
        {},
        {"enabled": "yes"},
        {"enabled": False, "version": 5},
    ],
    "tensor_parallel": [
        {},
        {"autotp_size": 0},
        {"autotp_size": 1},
        {"autotp_size": 2},
        {"autotp_size": 4},
        {"autotp_size": 3},
        {"autotp_size": 16},
        {"autotp_size": "2"},
        {"autotp_size": -1},
        {"autotp": 2},
        {"tp_size": 2},
        None,
        2,
    ],
    "sequence_parallel_size": [1, 2, 4, 8, 3, 16, 0, -2, "2", None],
    "data_parallel_size": [8, 4],
    "curriculum_learning": [
        {"enabled": False},
        {
            "enabled": True,
            "curriculum_type": "seqlen",
            "min_difficulty": 8,
            "max_difficulty": 1024,
            "schedule_type": "fixed_linear",
            "schedule_config": {"total_curriculum_step": 1000, "difficulty_step": 8},
        },
        {
            "enabled": True,
            "curriculum_type": "seqlen",
            "min_difficulty": 8,
            "max_difficulty": 1024,
            "schedule_type": "fixed_linear",
            "schedule_config": {"total_curriculum_step": 1000},
        },
        {
            "enabled": True,
            "curriculum_type": "seqlen",
            "min_difficulty": 8,
            "max_difficulty": 1024,
            "schedule_type": "fixed_sqrt",
            "schedule_config": {"total_curriculum_step": 1000, "difficulty_step": 8},
        },
        {
            "enabled": True,
            "curriculum_type": "seqlen",
            "min_difficulty": 8,
            "max_difficulty": 1024,
            "schedule_type": "fixed_discrete",
            "schedule_config": {"difficulty": [8, 16], "max_step": [100]},
        },
        {"enabled": True, "curriculum_type": "seqlen", "max_difficulty": 1024, "schedule_type": "fixed_linear"},
        {"enabled": True},
        {"curriculum_type": "seqlen"},
        {},
    ],
    "data_efficiency": [
        {"enabled": False},
        {"enabled": True, "seed": 1234},
        {"enabled": True, "data_sampling": {"enabled": True}},
        {"enabled": True, "data_sampling": {"enabled": True, "num_epochs": 10, "num_workers": 2}},
        {"enabled": True, "data_sampling": {"enabled": True, "curriculum_learning": {"enabled": True}}},
        {"enabled": True, "data_routing": {"enabled": True}},
        {"enabled": True, "data_routing": {"enabled": True, "random_ltd": {"enabled": False}}},
        {"enabled": True, "data_routing": {"enabled": True, "random_ltd": {"enabled": True}}},
        {},
        None,
        True,
    ],
    "compression_training": [
        {},
        {"weight_quantization": {"shared_parameters": {"enabled": False}, "different_groups": {}}},
        {"weight_quantization": {"shared_parameters": {"enabled": True}}},
        {
            "weight_quantization": {
                "shared_parameters": {"enabled": True, "schedule_offset": 0},
                "different_groups": {"wq1": {"params": {"start_bits": 8, "target_bits": 8}, "modules": ["up_proj"]}},
            }
        },
        {
            "weight_quantization": {
                "shared_parameters": {"enabled": True},
                "different_groups": {"wq1": {"params": {"start_bits": 8}}},
            }
        },
        {"layer_reduction": {"enabled": False}},
        {"layer_reduction": {"enabled": True}},
        {"sparse_pruning": {"shared_parameters": {"enabled": True, "method": "l3"}, "different_groups": {}}},
        {"activation_quantization": {"shared_parameters": {"enabled": True}}},
        None,
    ],
    "pipeline": [
        {},
        {"stages": 4, "partition": "best"},
        {"activation_checkpoint_interval": 1},
        {"stage": 4},
        {"pipe_partitioned": False, "grad_partitioned": False},
        None,
        4,
    ],
    "checkpoint": [
        {},
        {"tag_validation": "Warn"},
        {"tag_validation": "fail"},
        {"tag_validation": "off"},
        {"tag_validation": False},
        {"load_universal": True},
        {"use_node_local_storage": True},
        {"parallel_write": {"pipeline_stage": True}},
        {"parallel_write": {"pipeline_stage": "yes"}},
        {"parallel_write": True},
        {"async_save": True},
        {"writer": {"type": "FAST"}},
        {"writer": {"type": "FAST", "data_parallel": "replica"}},
        {"writer": {"type": "python", "data_parallel": "machine"}},
        {"writer": {"decoupled": False}},
        {"writer": {}},
        {"writer": {"type": "slow"}},
        None,
    ],
    "progressive_layer_drop": [
        {"enabled": True, "theta": 0.5, "gamma": 0.001},
        {"enabled": False},
        {"theta": 0.5},
        {"enabled": True, "theta": 0.5, "alpha": 1},
        {"enabled": True},
        {},
    ],
    "sparse_attention": [{"mode": "fixed"}, {"mode": "bigbird"}, {"mode": "diagonal"}, {}, None],
    "quantize_training": [{"enabled": False}, {}, {"enabled": True}],
    "eigenvalue": [{"enabled": True}, {"enabled": False, "verbose": True}, {}],
    "autotuning": [{"enabled": False}, {"enabled": True, "fast": True}, {"fats": True}, {}, None],
    "hybrid_engine": [{"enabled": False}, {"enabled": False, "max_out_tokens": 512}, {"enable": True}, {}, None],
    "compile": [
        {"deepcompile": False},
        {"deepcompile": True},
        {"enabled": True, "backend": "inductor"},
        {"deep_compile": True},
        {},
        None,
    ],
    "nebula": [{"enabled": False}, {"enabled": False, "persistent_time_interval": 100}, {}, None],
    "weight_quantization": [{}, {"enabled": False}, {"post_init_quant": {}}, {"quantized_initialization": {}}],
    "timers": [
        {"throughput": {"enabled": True, "synchronized": False}},
        {"throughput": {"enabled": "x"}},
        {"throughput": {"enable": True}},
        {"other": {}},
        {},
        None,
    ],
    "expert_parallel": [
        {"enabled": False},
        {"enabled": False, "autoep_size": 2},
        {"enabled": True, "autoep_size": 2},
        {"autoep": 2},
        {"enabled": False, "load_balance_coeff": 0.01},
        {},
        None,
    ],
    "datastates_ckpt": [{}, {"enabled": False}],
}


def text_of(config: Config) -> str:
    """The configuration as a file."""
    return json.dumps(config, indent=2)


def variants(corpus: Mapping[str, Config]) -> Iterator[tuple[Variant, Config]]:
    """Every variant of our bases and of a corpus, with what it says."""
    made: list[Variant] = []

    def add(base: str, changes: Iterable[Changes]) -> None:
        made.extend(Variant(base, found) for found in changes)

    bases = {**BASES, **corpus}
    add("own", [{}])
    add("own", singles(BATCH, ZERO, PRECISION, OPTIMIZER, SCHEDULER, TOP, SECTIONS))
    add("own", CYCLES)
    add("own", pairs(25, 1, BATCH))
    add("own", pairs(15, 2, ZERO))
    add("own", pairs(20, 3, PRECISION, {f"{Z}stage": [0, 1, 3]}))
    add("own", pairs(15, 4, OPTIMIZER))
    add("own", pairs(15, 5, SCHEDULER))
    add("own", pairs(25, 6, BATCH, ZERO, PRECISION, OPTIMIZER, SCHEDULER, TOP, SECTIONS))
    types = {key: OPTIMIZER[key] for key in ("optimizer.type", "optimizer")}
    add("fp16", [{}])
    add(
        "fp16",
        singles({key: values for key, values in PRECISION.items() if key.startswith(("fp16.", "data_t", "torch"))}),
    )
    add("fp16", singles(types))
    add("fp16", pairs(15, 7, PRECISION, OPTIMIZER))
    add("stage 3", [{}])
    add("stage 3", pairs(70, 8, ZERO, PRECISION))
    add("offload", [{}])
    add("offload", singles(types, {f"{Z}stage": ZERO[f"{Z}stage"]}))
    add("offload", pairs(40, 9, ZERO, OPTIMIZER, PRECISION))
    add("bare", [{}])
    add("bare", singles(BATCH))
    add("bare", pairs(40, 11, PRECISION, SECTIONS))
    add("trainer", [{}])
    add("trainer", singles(BATCH))
    add("trainer", pairs(20, 10, BATCH, ZERO))
    for number, base in enumerate(corpus):
        add(base, [{}])
        if number % 2:
            add(base, pairs(1, 20 + number, BATCH, ZERO, PRECISION, OPTIMIZER, SCHEDULER, TOP, SECTIONS))
    seen: set[str] = set()
    for variant in made:
        config = changed(bases[variant.base], variant.changes)
        text = text_of(config)
        if text not in seen:
            seen.add(text)
            yield variant, config
