"""DeepSpeed on configuration, launching, checkpoints, failures and what one sees of a run."""

from __future__ import annotations

from translator.comparison.registry import how

_ENGINE = "deepspeed/runtime/engine.py::DeepSpeedEngine"
_TRAINER = "transformers/trainer.py::Trainer"
_SAVING = "deepspeed/runtime/checkpoint_engine/"
_UNIVERSAL = "deepspeed/checkpoint/ds_to_universal.py"

CONCEPTS = {
    "configuration": how(
        "A JSON file or dictionary, and the program's own arguments. In the Trainer's, auto takes the value of the "
        "argument, and values that contradict each other are refused.",
        "deepspeed/runtime/config.py::DeepSpeedConfig",
        "transformers/integrations/deepspeed.py::HfTrainerDeepSpeedConfig.trainer_config_process",
        "transformers/training_args.py::TrainingArguments",
        options=("hf.deepspeed", "dump_state"),
    ),
    "launch": how(
        "The deepspeed launcher reads a hostfile and starts a process per GPU over ssh, MPI or Slurm; accelerate and "
        "torchrun do as well.",
        "deepspeed/launcher/runner.py::main",
        "deepspeed/launcher/launch.py::main",
        "deepspeed/comm/comm.py::init_distributed",
    ),
    "checkpoint-format": how(
        "A folder per step with a file of model states and one file of optimizer partitions per rank. Whole 16-bit "
        "weights can be gathered into Hugging Face files; a script makes fp32 weights out of the partitions.",
        f"{_ENGINE}.save_checkpoint",
        f"{_ENGINE}.load_checkpoint",
        "deepspeed/utils/zero_to_fp32.py::convert_zero_checkpoint_to_fp32_state_dict",
        options=(
            "zero_optimization.stage3_gather_16bit_weights_on_model_save",
            "checkpoint.tag_validation",
            "checkpoint.parallel_write.pipeline_stage",
        ),
    ),
    "resharding": how(
        "Optimizer partitions load into the same number of ranks alone. A script turns a checkpoint into a universal "
        "one, with a file per parameter, that loads under other degrees and stages.",
        f"{_UNIVERSAL}::main",
        "deepspeed/checkpoint/universal_checkpoint.py::load_hp_checkpoint_state",
        options=("checkpoint.load_universal", "zero_optimization.elastic_checkpoint"),
    ),
    "asynchronous-saving": how(
        "Engines in place of the plain one: a decoupled process that writes while training goes on, DataStates or "
        "Nebula.",
        f"{_SAVING}decoupled_checkpoint_engine.py::DecoupledCheckpointEngine",
        f"{_SAVING}utils.py::create_checkpoint_engine",
        memory="A copy of what is written in host memory.",
        options=("checkpoint.writer.decoupled", "checkpoint.writer.type", "nebula.enabled", "datastates_ckpt"),
    ),
    "fault-tolerance": how(
        "An agent for elastic training restarts with the ranks that are left, at a batch that they divide. A loss "
        "that is not finite is not noticed under bf16; the Trainer can save when it is told to stop.",
        "deepspeed/elasticity/elastic_agent.py::DSElasticAgent",
        "transformers/trainer_jit_checkpoint.py::JITCheckpointCallback",
        options=("elasticity.enabled", "hf.enable_jit_checkpoint"),
    ),
    "evaluation": how(
        "The Trainer's: by steps or epochs, over the whole evaluation set; the loss is gathered from all ranks.",
        f"{_TRAINER}.evaluate",
        f"{_TRAINER}.evaluation_loop",
        options=("hf.per_device_eval_batch_size", "hf.eval_on_start", "hf.eval_delay"),
    ),
    "logging": how(
        "The engine prints step, rate and throughput at an interval; monitors write TensorBoard, Weights & Biases, "
        "Comet or CSV. The Trainer logs the mean loss on its own.",
        "deepspeed/monitor/monitor.py::MonitorMaster",
        f"{_ENGINE}._write_monitor",
        f"{_TRAINER}.log",
        options=("wall_clock_breakdown", "csv_monitor.enabled", "comet.enabled", "hf.logging_strategy"),
    ),
    "profiling": how(
        "A profiler counts FLOPs module by module in one step; another log has every collective with its size and "
        "bandwidth. Traces are left to torch.",
        "deepspeed/profiling/flops_profiler/profiler.py::FlopsProfiler",
        "deepspeed/utils/comms_logging.py::CommsLogger",
        options=(
            "flops_profiler.profile_step",
            "flops_profiler.detailed",
            "comms_logger.enabled",
            "comms_logger.verbose",
        ),
    ),
    "compilation": how(
        "torch.compile of the module on demand, by the program or the Trainer. DeepCompile schedules ZeRO's gathers, "
        "prefetching and offloading within the compiled graph.",
        f"{_ENGINE}.compile",
        "deepspeed/compile/backend.py::make_backend",
        "deepspeed/compile/init_z3.py::init_z3",
        options=("compile.deepcompile", "compile.offload_activation", "hf.torch_compile_backend"),
    ),
    "memory-housekeeping": how(
        "The allocator's cache can be emptied at an interval of the Trainer or by the engine's function; Python's "
        "collector is left alone.",
        f"{_ENGINE}.empty_partition_cache",
        "deepspeed/runtime/utils.py::empty_cache",
        options=("hf.torch_empty_cache_steps",),
    ),
}
