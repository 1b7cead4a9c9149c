"""torchtitan's options without a neutral meaning."""

from __future__ import annotations

from translator.ledger import Entry
from translator.mapping.rows import Row, own
from translator.spec.touches import Touches

OWN_ROWS: tuple[Row, ...] = (
    own(
        ("job.config_file", "job.description", "job.print_config", "job.save_config_file"),
        Touches.NOTHING,
        "names and prints the job",
    ),
    own(("job.dump_folder",), Touches.OPERATION, "stands before the folders of checkpoints and TensorBoard"),
    own(("job.use_for_integration_test",), Touches.NOTHING, "marks a test"),
    own(
        ("job.custom_config_module", "experimental.custom_args_module"),
        Touches.TRAINING,
        "a module that adds options of its own; what they do is not known",
        Entry.UNSUPPORTED,
    ),
    own(
        (
            "profiling.save_traces_folder",
            "profiling.profile_freq",
            "profiling.profiler_active",
            "profiling.profiler_warmup",
            "profiling.enable_memory_snapshot",
            "profiling.save_memory_snapshot_folder",
        ),
        Touches.OPERATION,
        "details of torchtitan's profiler",
    ),
    own(
        ("metrics.disable_color_printing", "metrics.save_for_all_ranks", "model.print_after_conversion"),
        Touches.NOTHING,
        "how torchtitan prints",
    ),
    own(
        ("optimizer.early_step_in_backward",),
        Touches.MEMORY,
        "the optimizer steps inside the backward pass, which frees gradients early",
        Entry.UNSUPPORTED,
    ),
    own(("training.gc_debug",), Touches.SPEED, "debugging of garbage collection"),
    own(
        (
            "training.dataloader.persistent_workers",
            "training.dataloader.pin_memory",
            "training.dataloader.prefetch_factor",
            "validation.dataloader.num_workers",
            "validation.dataloader.persistent_workers",
            "validation.dataloader.pin_memory",
            "validation.dataloader.prefetch_factor",
        ),
        Touches.SPEED,
        "details of torch's data loader",
    ),
    own(("validation.dataset", "validation.dataset_path"), Touches.OPERATION, "the data of torchtitan's validation"),
    own(
        ("parallelism.context_parallel_load_balancer",),
        Touches.SPEED,
        "how a sequence is dealt out to context ranks",
    ),
    own(
        ("parallelism.context_parallel_rotate_method",),
        Touches.NOTHING,
        "read by validation only; without effect in training (components/validate.py:213, 0.2.2)",
    ),
    own(
        ("parallelism.expert_parallel_comm_backend", "parallelism.pipeline_parallel_expert_parallel_overlap"),
        Touches.SPEED,
        "how tokens travel to experts in torchtitan",
    ),
    own(("parallelism.enable_compiled_autograd",), Touches.SPEED, "compiles the backward pass"),
    own(
        (
            "checkpoint.enable_ft_dataloader_checkpoints",
            "checkpoint.initial_load_in_hf",
            "checkpoint.initial_load_in_hf_quantized",
            "checkpoint.last_save_model_only",
            "checkpoint.last_save_in_hf",
            "checkpoint.export_dtype",
            "checkpoint.load_step",
            "checkpoint.exclude_from_loading",
            "checkpoint.enable_first_step_checkpoint",
            "checkpoint.create_seed_checkpoint",
            "checkpoint.load_only",
        ),
        Touches.OPERATION,
        "details of torchtitan's checkpoints",
    ),
    own(
        ("activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",),
        Touches.MEMORY,
        "matrix products that operator-wise recomputation never keeps",
    ),
    own(
        (
            "activation_checkpoint.early_stop",
            "activation_checkpoint.visualize_memory_budget_pareto",
            "activation_checkpoint.determinism_check",
            "activation_checkpoint.debug",
        ),
        Touches.SPEED,
        "details of torch's activation checkpointing",
    ),
    own(
        ("activation_checkpoint.preserve_rng_state",), Touches.NOTHING, "matters only with dropout, which no model has"
    ),
    own(("compile.components", "compile.backend"), Touches.SPEED, "what torch compiles, and how"),
    own(
        (
            "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp",
            "quantize.linear.mx.mxfp8_dim1_cast_kernel_choice",
            "mx.use_fp8_dim1_cast_triton_kernel",
            "float8.force_recompute_fp8_weight_in_bwd",
        ),
        Touches.SPEED,
        "kernels of torchao's fp8",
    ),
    own(("quantize.linear.float8.emulate",), Touches.SPEED, "computes fp8 in software, for tests"),
    own(("quantize.grouped_mm.mx.recipe_name",), Touches.TRAINING, "the only recipe there is"),
    own(
        (
            "comm.init_timeout_seconds",
            "comm.trace_buf_size",
            "comm.save_traces_folder",
            "comm.save_traces_file_prefix",
            "comm.mode",
        ),
        Touches.OPERATION,
        "set-up and tracing of process groups",
    ),
    own(
        ("memory_estimation.enable", "memory_estimation.disable_fake_mode"),
        Touches.OPERATION,
        "estimates memory instead of training",
    ),
    own(
        (
            "fault_tolerance.enable",
            "fault_tolerance.process_group",
            "fault_tolerance.process_group_timeout_ms",
            "fault_tolerance.replica_id",
            "fault_tolerance.group_size",
            "fault_tolerance.min_replica_size",
            "fault_tolerance.semi_sync_method",
            "fault_tolerance.sync_steps",
            "fault_tolerance.should_quantize",
            "fault_tolerance.fragment_sync_delay",
            "fault_tolerance.fragment_update_alpha",
        ),
        Touches.TRAINING,
        "torchft: replicas that may come and go, and semi-synchronous training",
        Entry.UNSUPPORTED,
    ),
    own(
        ("debug.deterministic_warn_only",),
        Touches.SPEED,
        "warns instead of failing where no deterministic kernel exists",
    ),
    own(
        ("debug.moe_force_load_balance",),
        Touches.TRAINING,
        "sends tokens to experts in turn, for benchmarks",
        Entry.UNSUPPORTED,
    ),
)
