"""Codes of what stops Megatron-LM after its argument parser: code -> (title, documentation). See ``codes``."""

from __future__ import annotations

_A = "megatron/training/arguments.py"
_TC = "megatron/core/transformer/transformer_config.py"

CODES: dict[str, tuple[str, str]] = {
    "S124": (
        "attention, activation and norm options contradict each other",
        f"One activation has one kernel, and some kernels exist for one kind of attention or norm only ({_TC}:1890 and "
        "megatron/training/argument_utils.py:314 at core 0.18.0).\n"
        "Example: --swiglu --squared-relu; or --squared-relu alone, whose fused kernel is on by default and does not "
        "exist. Way out: the message names what has to go, often --no-bias-gelu-fusion.",
    ),
    "S125": (
        "interval or number out of range",
        f"An interval must be a multiple of another one, or a number lies outside of its range ({_A}:1316, {_A}:1446 "
        "at core 0.18.0).\n"
        "Example: --log-memory-interval 75 with the default --log-interval 100. Way out: change the number.",
    ),
    "S126": (
        "activations cannot be offloaded",
        "Offloading activations to the CPU leaves at least one layer on the GPU and excludes pipeline parallelism and "
        f"recomputation; the fine-grained kind takes known modules only ({_TC}:1527, {_TC}:1659 at core 0.18.0).\n"
        "Example: --cpu-offloading-num-layers 32 for a model of 32 layers. Way out: fewer layers.",
    ),
    "S127": (
        "communication groups cannot be formed",
        "The groups within the data parallel group must divide it, and some orders of ranks need equal groups for "
        "attention and experts (megatron/core/parallel_state.py:718, :803, :827 at core 0.18.0). Seen when the groups "
        "are made, not by the argument parser.\n"
        "Example: --num-distributed-optimizer-instances 3 over 8 replicas. Way out: a number that divides them.",
    ),
    "S128": (
        "matrix does not divide over its ranks",
        "Every rank of a tensor parallel group holds an equal part of the feed-forward matrices and of the vocabulary "
        "(megatron/core/utils.py:501 at core 0.18.0). Seen when the layers are built.\n"
        "Example: --ffn-hidden-size 11006 with --tensor-model-parallel-size 4. Way out: a multiple of the size.",
    ),
    "S129": (
        "overlap cannot be had",
        "Communication that hides behind computation needs the computation that it hides behind: expert parallelism "
        f"and a dispatcher that can wait, virtual stages, a pipeline ({_TC}:2399 and "
        "megatron/core/model_parallel_config.py:431 at core 0.18.0).\n"
        "Example: --overlap-moe-expert-parallel-comm with --moe-token-dispatcher-type allgather, the default. "
        "Way out: add what the message names.",
    ),
    "S130": (
        "training cannot begin",
        "A training program needs a length and a learning rate (megatron/training/training.py:1827 at core 0.18.0), "
        "and a seed of at least 1 (megatron/training/initialize.py:389).\n"
        "Example: no --train-iters. Way out: give what the message names.",
    ),
}
