"""Names of torchtitan's options over time, as data: what a name of one version is called in another.

``TO_022`` is from 0.1.0 to 0.2.2 (``config_manager.py`` of 0.1.0 against ``config/job_config.py`` of 0.2.2).
``TO_010`` is from the layouts before the first release (the ``train_configs`` of 2024) to 0.1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Rename(NamedTuple):
    """What became of an option: its new address, or None when it went without a successor.

    ``convert`` turns the old value into the new one where they differ; ``note`` says what else changed.
    """

    address: str | None
    convert: Callable[[object], object] | None = None
    note: str = ""


def _negated(value: object) -> object:
    return not value if isinstance(value, bool) else value


def _when_true(result: object) -> Callable[[object], object]:
    return lambda value: result if value is True else None


_QUANTIZED = {
    "float8": "quantize.linear.float8",
    "mx": "quantize.linear.mx",
}


def converters(value: object) -> object:
    """Names of model converters in 0.2.2 for those of 0.1.0 (``components/quantization/float8.py:254`` of 0.2.2)."""
    if not isinstance(value, list):
        return value
    return [_QUANTIZED.get(name, name) if isinstance(name, str) else name for name in value]


TO_022: Mapping[str, Rename] = {
    "job.print_args": Rename("job.print_config"),
    "job.use_for_integration_test": Rename(None),
    "lr_scheduler.lr_min": Rename("lr_scheduler.min_lr_factor"),
    "training.compile": Rename("compile.enable"),
    "training.seed": Rename("debug.seed"),
    "training.deterministic": Rename("debug.deterministic"),
    "float8.enable_fsdp_float8_all_gather": Rename("quantize.linear.float8.enable_fsdp_float8_all_gather"),
    "float8.precompute_float8_dynamic_scale_for_fsdp": Rename(
        "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp"
    ),
    "float8.recipe_name": Rename("quantize.linear.float8.recipe_name"),
    "float8.filter_fqns": Rename("quantize.linear.float8.filter_fqns"),
    "float8.emulate": Rename("quantize.linear.float8.emulate"),
    "float8.force_recompute_fp8_weight_in_bwd": Rename(None),
    "mx.use_fp8_dim1_cast_triton_kernel": Rename(
        "quantize.linear.mx.mxfp8_dim1_cast_kernel_choice",
        lambda value: "triton" if value is True else "torch" if value is False else value,
        "true is triton, false is torch",
    ),
    "mx.recipe_name": Rename(
        "quantize.linear.mx.recipe_name",
        lambda value: "mxfp8_cublas" if value == "mxfp8" else value,
        "mxfp8 is called mxfp8_cublas",
    ),
    "mx.filter_fqns": Rename("quantize.linear.mx.filter_fqns"),
    "parallelism.pipeline_parallel_split_points": Rename(
        "parallelism.module_fqns_per_model_part", note="lists of module names per stage take the place of split points"
    ),
    "parallelism.enable_compiled_autograd": Rename(None),
    "checkpoint.enable_checkpoint": Rename("checkpoint.enable"),
    "checkpoint.initial_load_model_weights_only": Rename("checkpoint.initial_load_model_only"),
    "checkpoint.last_save_model_weights_only": Rename(
        "checkpoint.last_save_model_only", note="the default became true"
    ),
    "memory_estimation.enabled": Rename("memory_estimation.enable"),
    "fault_tolerance.sync_steps": Rename(None, note="an extension module adds it"),
    "fault_tolerance.should_quantize": Rename(None, note="an extension module adds it"),
    "fault_tolerance.fragment_sync_delay": Rename(None, note="an extension module adds it"),
    "fault_tolerance.fragment_update_alpha": Rename(None, note="an extension module adds it"),
}

_PARALLEL = "parallelism."
_MOVED_FROM_TRAINING = (
    "data_parallel_replicate_degree",
    "data_parallel_shard_degree",
    "tensor_parallel_degree",
    "context_parallel_degree",
    "pipeline_parallel_degree",
    "fsdp_reshard_after_forward",
    "disable_loss_parallel",
    "enable_compiled_autograd",
)
_MOVED_FROM_EXPERIMENTAL = (
    "context_parallel_degree",
    "context_parallel_rotate_method",
    "pipeline_parallel_degree",
    "pipeline_parallel_split_points",
    "pipeline_parallel_layers_per_stage",
    "pipeline_parallel_schedule",
    "pipeline_parallel_schedule_csv",
    "pipeline_parallel_microbatch_size",
    "enable_async_tensor_parallel",
    "enable_compiled_autograd",
)

TO_010: Mapping[str, Rename] = {
    "training.batch_size": Rename("training.local_batch_size"),
    "training.warmup_steps": Rename("lr_scheduler.warmup_steps"),
    "training.data_parallel_degree": Rename("parallelism.data_parallel_shard_degree"),
    "training.data_parallel_type": Rename(None),
    "training.enable_loss_parallel": Rename(
        "parallelism.disable_loss_parallel", _negated, "the switch was turned round"
    ),
    "training.enable_float8_linear": Rename("model.converters", _when_true(["float8"])),
    "training.enable_fp8_linear": Rename("model.converters", _when_true(["float8"])),
    "float8.enable_float8_linear": Rename("model.converters", _when_true(["float8"])),
    "experimental.pipeline_parallel_microbatches": Rename(
        None, note="the number of micro batches is local_batch_size / pipeline_parallel_microbatch_size now"
    ),
    "experimental.custom_model_path": Rename(
        "experimental.custom_import", note="a module name takes the place of a path"
    ),
    "experimental.enable_loss_parallel": Rename(
        "parallelism.disable_loss_parallel", _negated, "the switch was turned round"
    ),
    "optimizer.fused": Rename(
        "optimizer.implementation", lambda value: "fused" if value is True else "for-loop" if value is False else value
    ),
    "model.norm_type": Rename(None, note="every norm is an RMSNorm now"),
    "metrics.enable_color_printing": Rename("metrics.disable_color_printing", _negated, "the switch was turned round"),
    "metrics.rank_0_only": Rename("metrics.save_for_all_ranks", _negated, "the switch was turned round"),
    "checkpoint.interval_type": Rename(None, note="the interval is in steps"),
    "checkpoint.model_weights_only": Rename("checkpoint.last_save_model_weights_only"),
    **{f"training.{name}": Rename(f"{_PARALLEL}{name}") for name in _MOVED_FROM_TRAINING},
    **{f"experimental.{name}": Rename(f"{_PARALLEL}{name}") for name in _MOVED_FROM_EXPERIMENTAL},
}

FROM_022: Mapping[str, str] = {rename.address: name for name, rename in TO_022.items() if rename.address is not None}


def newer(name: str, version: str) -> Rename | None:
    """What a name from an older layout is in ``version``; None when it is no such name."""
    older = TO_010.get(name)
    if version == "0.1.0":
        return older
    if older is None:
        return TO_022.get(name)
    if older.address is None:
        return older
    later = TO_022.get(older.address)
    return older if later is None else Rename(later.address, None, later.note or older.note)


def _moved(old: str, new: str, names: str) -> dict[str, str]:
    return {f"{old}.{name}": f"{new}.{name}" for name in names.split()}


# Options without a neutral meaning that 0.3.0 took over from 0.2.2 under other names (``trainer.py:60-118`` of 0.3.0).
TO_030: Mapping[str, str] = {
    "job.dump_folder": "dump_folder",
    **_moved("job", "debug", "print_config save_config_file"),
    **_moved(
        "profiling",
        "profiler",
        "save_traces_folder profile_freq profiler_active profiler_warmup enable_memory_snapshot "
        "save_memory_snapshot_folder",
    ),
    **_moved("validation", "validator.dataloader", "dataset dataset_path"),
    **_moved(
        "validation.dataloader", "validator.dataloader", "num_workers persistent_workers pin_memory prefetch_factor"
    ),
    **_moved("training.dataloader", "dataloader", "persistent_workers pin_memory prefetch_factor"),
    "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns": (
        "activation_checkpoint.force_recompute_mm_shapes_by_fqns"
    ),
    "parallelism.expert_parallel_comm_backend": "model_spec.moe_comm_backend",
}
