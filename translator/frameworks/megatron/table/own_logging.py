"""Options without a neutral meaning: logging, profiling, resilience."""

from __future__ import annotations

from translator.frameworks.megatron.table.own_group import machinery
from translator.mapping.rows import Row
from translator.spec.touches import Touches

ROWS: tuple[Row, ...] = (
    machinery(
        """
        log_device_memory_used log_energy log_loss_scale_to_tensorboard log_max_attention_logit log_memory_interval
        log_memory_to_tensorboard log_num_zeros_in_grad log_params_norm log_progress log_throughput
        log_timers_to_tensorboard log_validation_ppl_to_tensorboard log_world_size_to_tensorboard logging_level
        config_logger_dir barrier_with_L1_time timing_log_level timing_log_option tensorboard_log_interval
        tensorboard_queue_size wandb_entity wandb_exp_name wandb_save_dir
        """,
        Touches.OPERATION,
        "says what is logged, and where",
    ),
    machinery(
        """
        save_activations_interval save_dgrads_interval save_params_interval save_tokens_per_expert_interval
        save_wgrads_interval
        """,
        Touches.OPERATION,
        "dumps tensors for study",
    ),
    machinery(
        """
        profile_ranks profile_step_end profile_step_start pytorch_profiler_collect_callstack
        pytorch_profiler_collect_chakra pytorch_profiler_collect_shapes use_pytorch_profiler nvtx_ranges record_shapes
        record_memory_history memory_snapshot_path
        """,
        Touches.OPERATION,
        "says what a profile records, and when",
    ),
    machinery(
        """
        enable_one_logger one_logger_async one_logger_project one_logger_run_name app_tag_run_name app_tag_run_version
        """,
        Touches.OPERATION,
        "reports to a logging service of NVIDIA's",
    ),
    machinery(
        """
        check_for_large_grads check_for_spiky_loss check_weight_hash_across_dp_replicas_interval
        gpu_sniff_test_interval rerun_mode result_rejected_tracker_filename
        """,
        Touches.OPERATION,
        "watches for faulty results and stops or repeats the step",
    ),
    machinery(
        """
        error_injection_rate error_injection_type fault_injector_delay_start_iteration fault_injector_fault_delay
        fault_injector_fault_probabilities fault_injector_fault_types fault_injector_mtti_seconds
        fault_injector_num_ranks fault_injector_offset_seconds fault_injector_ranks fault_injector_seed
        """,
        Touches.OPERATION,
        "injects faults to test the recovery from them",
    ),
    machinery(
        "disable_straggler_on_startup log_straggler straggler_ctrlr_port straggler_minmax_count",
        Touches.OPERATION,
        "finds slow ranks",
    ),
    machinery(
        """
        flight_recorder_dump_on_timeout flight_recorder_dump_path flight_recorder_extra_dump_on_exec
        flight_recorder_include_only_active flight_recorder_include_stack_trace flight_recorder_trace_buffer_size
        """,
        Touches.OPERATION,
        "records collectives for the study of hangs",
    ),
    machinery(
        """
        inprocess_active_world_size inprocess_barrier_timeout inprocess_completion_timeout inprocess_empty_cuda_cache
        inprocess_granularity inprocess_hard_timeout inprocess_heartbeat_interval inprocess_heartbeat_timeout
        inprocess_last_call_wait inprocess_max_iterations inprocess_monitor_process_interval
        inprocess_monitor_thread_interval inprocess_progress_watchdog_interval inprocess_restart
        inprocess_soft_timeout inprocess_termination_grace_time
        """,
        Touches.OPERATION,
        "restarts a failed run inside its process",
    ),
    machinery(
        """
        adlr_autoresume adlr_autoresume_interval calc_ft_timeouts enable_ft_package ft_num_warmup_iters
        run_workload_inspector_server exit_signal exit_signal_handler exit_signal_handler_for_dataloader
        exit_signal_handler_for_training
        """,
        Touches.OPERATION,
        "lets a cluster watch, stop and resume the run",
    ),
)
