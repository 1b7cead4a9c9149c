"""Options without a neutral meaning: checkpoints."""

from __future__ import annotations

from translator.frameworks.megatron.table.own_group import lost, machinery
from translator.mapping.rows import Row
from translator.spec.touches import Touches

ROWS: tuple[Row, ...] = (
    lost(
        "pretrained_checkpoint ckpt_step",
        Touches.TRAINING,
        "says which weights training starts from; the result loads from the one folder that it names",
    ),
    lost(
        "no_load_optim no_load_rng",
        Touches.TRAINING,
        "a part of the checkpoint is not loaded; the result loads all of it, or the weights alone",
    ),
    lost(
        "load_main_params_from_ckpt override_ckpt_iteration",
        Touches.TRAINING,
        "a part of the state to resume from is set otherwise than stored; no leaf says it",
    ),
    lost(
        "no_save_optim no_save_rng",
        Touches.OPERATION,
        "a part of the state is not saved; the result saves all of it",
    ),
    lost(
        "save_retain_interval",
        Touches.OPERATION,
        "checkpoints between these steps are deleted; set how many the result keeps by hand",
    ),
    machinery(
        """
        async_ckpt_cpu_priority async_ckpt_io_priority async_ckpt_use_cpu_shm async_strategy
        ckpt_assume_constant_structure ckpt_fully_parallel_load ckpt_fully_parallel_load_exchange_algo
        ckpt_fully_parallel_load_process_group ckpt_fully_parallel_save ckpt_fully_parallel_save_process_group
        ckpt_load_validate_sharding_integrity dist_ckpt_optim_fully_reshardable dist_ckpt_save_pre_mcore_014
        dist_ckpt_strictness dist_ckpt_workers distrib_optim_fully_reshardable_mem_efficient replication
        replication_factor replication_jump stream_ckpt_dequant strict_fsdp_dtensor_load use_persistent_ckpt_worker
        verify_integrity
        """,
        Touches.OPERATION,
        "says how checkpoints are written and read; what they hold is the same",
    ),
    machinery(
        "auto_detect_ckpt_format exit_on_missing_checkpoint load_model_opt_format",
        Touches.OPERATION,
        "says how a checkpoint is found and recognised",
    ),
    machinery(
        "ckpt_convert_format ckpt_convert_save ckpt_convert_update_legacy_dist_opt_format",
        Touches.OPERATION,
        "converts a checkpoint and ends",
    ),
    machinery(
        """
        non_persistent_ckpt_type non_persistent_global_ckpt_dir non_persistent_local_ckpt_algo
        non_persistent_local_ckpt_dir non_persistent_save_interval
        """,
        Touches.OPERATION,
        "keeps short-lived checkpoints for a quick restart",
    ),
    machinery(
        "ckpt_fully_parallel_save_deprecated dist_ckpt_format_deprecated use_dist_ckpt_deprecated",
        Touches.NOTHING,
        "has no effect any more; --ckpt-format decides",
    ),
)
