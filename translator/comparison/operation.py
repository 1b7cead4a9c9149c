"""Concepts about running: configuration, launching, checkpoints, failures, and what one sees of it."""

from __future__ import annotations

from translator.comparison.registry import Concept

TITLE = "Operation"
CONCEPTS = (
    Concept(
        "configuration",
        "Configuration system",
        "In which form a run is described, and what wins when two places say different things.",
    ),
    Concept(
        "launch",
        "Launching",
        "What starts a process per GPU, and what a process has to be told.",
        ("launch.program", "launch.environment", "launch.process_group_timeout_seconds"),
    ),
    Concept(
        "checkpoint-format",
        "Checkpoint format",
        "What is written, in which layout, and what else can read it.",
        (
            "checkpoint.save",
            "checkpoint.load",
            "checkpoint.format",
            "checkpoint.interval",
            "checkpoint.keep_latest",
            "checkpoint.weights_only",
        ),
    ),
    Concept(
        "resharding",
        "Resuming under another layout",
        "Whether a checkpoint can be loaded with other degrees, another number of ranks or another sharding.",
    ),
    Concept(
        "asynchronous-saving",
        "Asynchronous saving",
        "Whether training goes on while a checkpoint is written.",
        ("checkpoint.asynchronous",),
    ),
    Concept(
        "fault-tolerance",
        "Fault tolerance",
        "What happens when a rank fails, hangs or computes nonsense.",
        ("loss.cpu_check_nan",),
    ),
    Concept(
        "evaluation",
        "Evaluation during training",
        "When and on what the model is evaluated.",
        ("logging.evaluate", "logging.eval_interval", "logging.eval_steps"),
    ),
    Concept(
        "logging",
        "Logging and metrics",
        "What a log line holds, and where else numbers go.",
        ("logging.interval", "logging.tensorboard", "logging.wandb"),
    ),
    Concept(
        "profiling",
        "Profiling",
        "How a trace of kernels, memory or communication is recorded.",
        ("logging.profile",),
    ),
    Concept(
        "compilation",
        "Compilation and CUDA graphs",
        "What is compiled or captured, and what that excludes.",
        ("launch.compile", "launch.cuda_graphs"),
    ),
    Concept(
        "memory-housekeeping",
        "Garbage collection and allocator",
        "How pauses and fragmentation are kept small in long runs.",
        ("launch.garbage_collection_interval",),
    ),
)
