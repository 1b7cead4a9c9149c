"""Megatron-LM on configuration, launching, checkpoints, failures and what one sees of a run."""

from __future__ import annotations

from translator.comparison.registry import how

_CORE = "megatron/core/"
_ARGUMENTS = "megatron/training/arguments.py"
_TRAINING = "megatron/training/training.py"
_SAVING = "megatron/training/checkpointing.py"
_SAVED = f"{_CORE}dist_checkpointing/"

CONCEPTS = {
    "configuration": how(
        "An argument parser with hundreds of options; a validation derives and corrects values and refuses impossible "
        "ones. A YAML file can stand for part of them, and a checkpoint can bring the architecture's.",
        f"{_ARGUMENTS}::parse_args",
        f"{_ARGUMENTS}::validate_args",
        "megatron/training/yaml_arguments.py::load_yaml",
        options=("yaml_cfg", "use_checkpoint_args"),
    ),
    "launch": how(
        "torchrun or the batch system starts one process per GPU, which runs a script such as pretrain_gpt.py; ranks "
        "are read from the environment.",
        "megatron/training/initialize.py::initialize_megatron",
        f"{_TRAINING}::pretrain",
    ),
    "checkpoint-format": how(
        "A format of sharded tensors with global shapes, written by torch's distributed checkpointing, each shard "
        "once; DTensor files under its FSDP; an older format holds one file per tensor and pipeline rank. Converters "
        "lead to and from other formats.",
        f"{_SAVING}::save_checkpoint",
        f"{_SAVING}::load_checkpoint",
        f"{_SAVED}mapping.py::ShardedTensor",
        options=("auto_detect_ckpt_format", "ckpt_convert_format"),
    ),
    "resharding": how(
        "Sharded tensors know their place in the whole, so a checkpoint loads under other tensor, pipeline and data "
        "degrees; optimizer states need a format that can be resharded in full, which is slower to save.",
        f"{_SAVED}serialization.py::load",
        f"{_CORE}optimizer/distrib_optimizer.py::DistributedOptimizer.sharded_state_dict",
        f"{_SAVED}strategies/fully_parallel.py::FullyParallelLoadStrategyWrapper",
        options=("ckpt_fully_parallel_load", "dist_ckpt_strictness", "dist_ckpt_optim_fully_reshardable"),
    ),
    "asynchronous-saving": how(
        "Tensors are copied to the host, and a forked or a lasting process writes them while training goes on; the "
        "checkpoint counts once all ranks are done.",
        f"{_SAVED}strategies/async_utils.py::AsyncCallsQueue",
        f"{_SAVED}strategies/filesystem_async.py::FileSystemWriterAsync",
        "megatron/training/async_utils.py::schedule_async_save",
        memory="A copy of the rank's shard in host memory while it is written.",
    ),
    "fault-tolerance": how(
        "A rerun machine repeats a step whose loss is not finite or jumps, to tell a fault of the hardware from one "
        "of the numbers. Hooks for NVIDIA's resiliency extension detect hangs and restart in the process; "
        "a signal saves and exits.",
        f"{_CORE}rerun_state_machine.py::RerunStateMachine",
        "megatron/training/ft_integration.py::setup",
        "megatron/training/inprocess_restart.py::inprocess_restart",
        "megatron/training/dist_signal_handler.py::DistributedSignalHandler",
        options=("rerun_mode", "enable_ft_package", "inprocess_restart", "exit_signal_handler"),
    ),
    "evaluation": how(
        "Every so many steps over so many global batches of the validation split, and over the test split at the end.",
        f"{_TRAINING}::evaluate",
        f"{_TRAINING}::evaluate_and_print_results",
    ),
    "logging": how(
        "One line per interval with time, learning rate, loss, scale and gradient norm, printed by the last rank; "
        "TensorBoard and Weights & Biases are written by it as well. Timers have levels.",
        f"{_TRAINING}::training_log",
        "megatron/training/global_vars.py::_set_tensorboard_writer",
        f"{_CORE}timers.py::Timers",
        options=("log_throughput", "timing_log_level", "log_params_norm"),
    ),
    "profiling": how(
        "Between two steps, on chosen ranks: marks for Nsight Systems, or torch's profiler with traces for "
        "TensorBoard; a history of the allocator on demand.",
        f"{_TRAINING}::train",
        options=("profile_step_start", "profile_step_end", "profile_ranks", "use_pytorch_profiler"),
    ),
    "compilation": how(
        "Small functions are compiled for fusion; the model is not. CUDA graphs capture layers, parts of layers or "
        "whole steps, by core's own machinery or TransformerEngine's.",
        f"{_CORE}jit.py::enable_jit_fuser",
        f"{_CORE}transformer/cuda_graphs.py::CudaGraphManager",
        f"{_CORE}full_cuda_graph.py::FullCudaGraphWrapper",
        memory="Captured graphs keep their inputs, outputs and workspaces in pools of their own.",
    ),
    "memory-housekeeping": how(
        "Python's collector can be run by hand at an interval, on all ranks at once; the allocator's cache can be "
        "emptied in every step.",
        f"{_TRAINING}::train",
        options=("empty_unused_memory_level",),
    ),
}
