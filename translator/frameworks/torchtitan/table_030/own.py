"""Options of 0.3.0 without a neutral meaning."""

from __future__ import annotations

from translator.ledger import Entry
from translator.mapping.rows import Row, own
from translator.spec.touches import Touches

# Addresses that shared rows name for older versions.
NOT_HERE = frozenset({"parallelism.pipeline_parallel_split_points"})


_DEALING = "infinite sources seed stopping_strategy load_dataset_kwargs sample_processor"
# Images and videos, which only models for them read.
_IMAGES = (
    "build_mrope_positions dataset_subset image_mean image_std max_images_per_batch max_patches max_patches_per_side "
    "max_pixels min_pixels packing_buffer_size patch_order patch_size resize_fn spatial_merge_size temporal_patch_size "
    "video_dir video_fps video_max_frames video_min_frames"
)
_CONVERTERS = (
    "Float8GroupedExpertsConverter.model_compile_enabled Float8LinearConverter.emulate "
    "Float8LinearConverter.filter_fqns Float8LinearConverter.model_compile_enabled Float8LinearConverter.recipe_name "
    "MXFP8GroupedExpertsConverter.model_compile_enabled MXFP8GroupedExpertsConverter.pad_multiple "
    "MXFP8GroupedExpertsConverter.recipe_name MXFP8LinearConverter.fqns MXFP8LinearConverter.model_compile_enabled "
    "NVFP4LinearConverter.fqns NVFP4LinearConverter.model_compile_enabled "
    "LoRAConverter.alpha LoRAConverter.rank LoRAConverter.target_modules"
)


def _below(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in names.split())


OWN_ROWS: tuple[Row, ...] = (
    own(
        _below("model_spec.converters", _CONVERTERS),
        Touches.NOTHING,
        "fields of a converter, which stand in the list of converters",
    ),
    own(("dump_folder", "debug.print_config", "debug.save_config_file"), Touches.NOTHING, "names and prints the run"),
    own(
        _below(
            "profiler",
            "save_traces_folder profile_freq profiler_repeat profiler_skip_first profiler_skip_first_wait "
            "profiler_active profiler_warmup enable_memory_snapshot memory_snapshot_freq save_memory_snapshot_folder "
            "memory_snapshot_max_entries trace_post_processor trace_post_processor.fn",
        ),
        Touches.OPERATION,
        "details of torchtitan's profiler",
    ),
    own(
        _below("metrics", "disable_color_printing save_for_all_ranks"),
        Touches.NOTHING,
        "how torchtitan prints",
    ),
    own(
        (
            "tokenizer",
            *_below("tokenizer", "image_token pad_token video_token vision_end_token vision_start_token"),
        ),
        Touches.OPERATION,
        "the class that reads the tokenizer",
    ),
    own(
        ("optimizer", "lr_scheduler", "metrics", "profiler", "validator", "checkpoint"),
        Touches.NOTHING,
        "the class whose fields are options of their own",
    ),
    own(("training.gc_debug",), Touches.SPEED, "debugging of garbage collection"),
    own(
        (
            *_below("dataloader", "persistent_workers pin_memory prefetch_factor"),
            *_below("validator.dataloader", "num_workers persistent_workers pin_memory prefetch_factor"),
        ),
        Touches.SPEED,
        "details of torch's data loader",
    ),
    own(
        _below("dataloader", f"{_DEALING} {_IMAGES}"),
        Touches.TRAINING,
        "how torchtitan deals out its data",
        Entry.UNSUPPORTED,
    ),
    own(
        (
            "validator.dataloader",
            *_below("validator.dataloader", f"dataset dataset_path {_DEALING} {_IMAGES}"),
        ),
        Touches.OPERATION,
        "the data of torchtitan's validation",
    ),
    own(
        _below("parallelism", "context_parallel_load_balancer context_parallel_ptrr_mask_key"),
        Touches.SPEED,
        "how a sequence is dealt out to context ranks",
    ),
    own(
        ("parallelism.spmd_backend", "parallelism.enable_fsdp_symm_mem", "model_spec.tp_gemm_backend"),
        Touches.SPEED,
        "the machinery below torchtitan's parallelism",
    ),
    own(
        ("model_spec.moe_comm_backend", "model_spec.non_blocking_capacity_factor"),
        Touches.SPEED,
        "how tokens travel to experts in torchtitan",
    ),
    own(
        (
            "model_spec.num_mtp_layers",
            "loss.mtp_scale",
            "loss.loss_fn.mtp_scale",
        ),
        Touches.TRAINING,
        "details of the model that have no neutral meaning",
        Entry.UNSUPPORTED,
    ),
    own(
        (
            *_below(
                "checkpoint",
                "initial_load_in_hf initial_load_in_hf_quantized last_save_model_only last_save_in_hf export_dtype "
                "load_step exclude_from_loading enable_first_step_checkpoint create_seed_checkpoint load_only",
            ),
        ),
        Touches.OPERATION,
        "details of torchtitan's checkpoints",
    ),
    own(
        ("activation_checkpoint.force_recompute_mm_shapes_by_fqns",),
        Touches.MEMORY,
        "matrix products that operator-wise recomputation never keeps",
    ),
    own(
        _below("activation_checkpoint", "visualize_memory_budget_pareto determinism_check debug"),
        Touches.SPEED,
        "details of torch's activation checkpointing",
    ),
    own(
        ("activation_checkpoint.preserve_rng_state",), Touches.NOTHING, "matters only with dropout, which no model has"
    ),
    own(("compile.components", "compile.backend"), Touches.SPEED, "what torch compiles, and how"),
    own(
        _below("comm", "init_timeout_seconds trace_buf_size save_traces_folder save_traces_file_prefix mode"),
        Touches.OPERATION,
        "set-up and tracing of process groups",
    ),
    own(
        ("optimizer.optimizer_factory_kwargs_by_name",),
        Touches.TRAINING,
        "arguments of optimizers beyond their groups",
        Entry.UNSUPPORTED,
    ),
    own(
        _below("debug", "deterministic_warn_only spmd_typechecking detect_anomaly enable_structured_logging"),
        Touches.SPEED,
        "checks and records for finding faults",
    ),
    own(
        ("debug.moe_force_load_balance", "debug.batch_invariant"),
        Touches.TRAINING,
        "changes the computation, for benchmarks and tests",
        Entry.UNSUPPORTED,
    ),
    own(("override.imports",), Touches.TRAINING, "replaces parts of torchtitan", Entry.UNSUPPORTED),
)
