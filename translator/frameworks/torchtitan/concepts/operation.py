"""torchtitan on configuration, launching, checkpoints, failures and what one sees of a run."""

from __future__ import annotations

from translator.comparison.registry import how

_CHECKPOINT = "torchtitan/components/checkpoint.py"
_METRICS = "torchtitan/components/metrics.py"
_PROFILING = "torchtitan/tools/profiling.py"
_TRAIN = "torchtitan/train.py"

CONCEPTS = {
    "configuration": how(
        "A TOML file and words of the command line, merged into one dataclass; the command line wins. A module of "
        "one's own can extend the dataclass. From 0.3.0 on, configurations are Python functions.",
        "torchtitan/config/job_config.py::JobConfig",
        "torchtitan/config/manager.py::ConfigManager.parse_args",
        options=("job.config_file", "job.custom_config_module", "job.print_config"),
    ),
    "launch": how(
        "torchrun starts one process per GPU, which runs the module torchtitan.train; timeouts are long for the first "
        "step and shorter afterwards.",
        f"{_TRAIN}::main",
        "torchtitan/distributed/utils.py::init_distributed",
        "torchtitan/distributed/utils.py::set_pg_timeouts",
        options=("comm.init_timeout_seconds",),
    ),
    "checkpoint-format": how(
        "torch's distributed checkpoints of DTensors: model, optimizer, schedulers, loader and step. The last one can "
        "hold the model alone, in another type, or as Hugging Face files.",
        f"{_CHECKPOINT}::CheckpointManager.save",
        f"{_CHECKPOINT}::CheckpointManager.load",
        "torchtitan/protocols/state_dict_adapter.py::StateDictAdapter",
        options=("checkpoint.last_save_in_hf", "checkpoint.initial_load_in_hf", "checkpoint.export_dtype"),
    ),
    "resharding": how(
        "DTensors carry their placement, so loading under other degrees is the usual case, optimizer states included; "
        "only the loader's state is tied to the number of data ranks.",
        f"{_CHECKPOINT}::CheckpointManager.dcp_load",
        "torch/distributed/checkpoint/state_dict_loader.py::load",
        options=("checkpoint.exclude_from_loading",),
    ),
    "asynchronous-saving": how(
        "Off, in a thread with its own process group, or with pinned memory and a process that stages and writes. A "
        "new save waits for the one before.",
        f"{_CHECKPOINT}::AsyncMode",
        f"{_CHECKPOINT}::CheckpointManager.maybe_wait_for_staging",
        "torch/distributed/checkpoint/state_dict_saver.py::async_save",
        memory="A copy of the rank's shard in host memory, pinned in the last mode.",
    ),
    "fault-tolerance": how(
        "With torchft, replicas of the model can fail and come back while the others train on, or exchange "
        "updates only now and then. Otherwise torchrun restarts from the last checkpoint; a flight recorder keeps the "
        "last collectives.",
        "torchtitan/components/ft/manager.py::FTManager",
        "torchtitan/components/ft/manager.py::maybe_semi_sync_training",
        options=("fault_tolerance.enable", "fault_tolerance.semi_sync_method", "comm.trace_buf_size"),
    ),
    "evaluation": how(
        "Every so many steps over so many batches of a validation set of its own; it shares the model and its layout.",
        "torchtitan/components/validate.py::Validator.validate",
        options=("validation.dataset", "validation.dataset_path"),
    ),
    "logging": how(
        "One line per interval with loss, gradient norm, memory, tokens per second and MFU, by one rank; TensorBoard "
        "and Weights & Biases, from every rank on demand.",
        f"{_METRICS}::MetricsProcessor.log",
        f"{_METRICS}::TensorBoardLogger",
        options=("metrics.save_for_all_ranks",),
    ),
    "profiling": how(
        "torch's profiler writes a trace of every rank at an interval; snapshots of the allocator at "
        "the same interval, and when memory runs out.",
        f"{_PROFILING}::maybe_enable_profiling",
        f"{_PROFILING}::maybe_enable_memory_snapshot",
        options=("profiling.profile_freq", "profiling.save_traces_folder", "profiling.enable_memory_snapshot"),
    ),
    "compilation": how(
        "torch.compile of every block apart, and of the loss. CUDA graphs only in experiments.",
        "torchtitan/models/llama3/infra/parallelize.py::apply_compile",
        "torchtitan/components/loss.py::build_cross_entropy_loss",
        memory="Compiled blocks fuse pointwise work and hold fewer tensors between kernels.",
        options=("compile.components", "compile.backend"),
    ),
    "memory-housekeeping": how(
        "Python's collector is switched off and run by hand at an interval, so that all ranks pause together.",
        "torchtitan/tools/utils.py::GarbageCollection",
        options=("training.gc_debug",),
    ),
}
