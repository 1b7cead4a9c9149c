"""Concepts about what a rank holds and in which format: parameters, gradients, optimizer states, activations."""

from __future__ import annotations

from translator.comparison.registry import Concept

TITLE = "State, memory and precision"
CONCEPTS = (
    Concept(
        "parameter-storage",
        "Parameter storage",
        "In which format parameters rest, which copy the optimizer updates, and how tensors lie in memory.",
        ("precision.parameters", "precision.master"),
    ),
    Concept(
        "gradient-storage",
        "Gradient storage and accumulation",
        "Where the gradients of micro batches add up, in which format, and how much of them a rank keeps.",
        ("precision.grad_accumulate",),
    ),
    Concept(
        "optimizer-state-sharding",
        "Optimizer state",
        "In which format moments and masters are kept, and over which ranks they are shared out.",
        ("precision.first_moment", "precision.second_moment"),
    ),
    Concept(
        "data-parallel-sharding",
        "Data parallelism and its sharding",
        "What the data-parallel ranks share out between them: nothing, optimizer states, gradients, parameters.",
        ("parallel.data.degree", "parallel.data.sharding", "parallel.data.shard"),
    ),
    Concept(
        "replicas",
        "Sharded groups and their replicas",
        "Sharding within groups of ranks, whose copies only exchange reduced gradients.",
        ("parallel.data.replicate",),
    ),
    Concept(
        "gather-policy",
        "When parameters are gathered and freed",
        "Under full sharding: how long a layer's parameters stay whole, and how far ahead they are fetched.",
        ("parallel.data.reshard_after_forward", "parallel.data.overlap_parameter_gather"),
    ),
    Concept(
        "communication-overlap",
        "Gradient reduction and overlap",
        "Which communication runs beside computation, and in which portions.",
        (
            "parallel.data.overlap_gradient_reduction",
            "parallel.data.bucket_elements",
            "parallel.data.average_in_collective",
            "precision.grad_reduce",
        ),
    ),
    Concept(
        "offloading",
        "Offloading of state",
        "What rests in the memory of the host, or on disks, and where the update runs.",
        ("optimizer.offload", "optimizer.offload_fraction", "parallel.data.offload_parameters"),
    ),
    Concept(
        "recompute",
        "Recomputation of activations",
        "Which activations are dropped after the forward pass and computed again in the backward pass.",
        (
            "recompute.mode",
            "recompute.method",
            "recompute.layers",
            "recompute.modules",
            "recompute.distribute",
            "recompute.memory_budget",
        ),
    ),
    Concept(
        "activation-offload",
        "Offloading of activations",
        "Activations that wait in the memory of the host between forward and backward pass.",
    ),
    Concept(
        "mixed-precision",
        "Mixed precision",
        "How low-precision matrix products and high-precision updates are combined.",
        ("precision.compute", "model.residual_fp32"),
    ),
    Concept(
        "loss-scaling",
        "Loss scaling",
        "How fp16 gradients are kept from vanishing, and what an overflow does.",
        (
            "precision.loss_scale",
            "precision.initial_loss_scale",
            "precision.min_loss_scale",
            "precision.loss_scale_window",
            "precision.loss_scale_hysteresis",
        ),
    ),
    Concept(
        "fp8",
        "fp8 and fp4",
        "Which matrix products run in 8 or 4 bits, how scales are found, and what stays out.",
        (
            "precision.fp8",
            "precision.fp8_recipe",
            "precision.fp8_parameters",
            "precision.fp8_skip",
            "precision.fp8_experts",
            "precision.fp4",
        ),
    ),
    Concept(
        "memory-estimation",
        "Memory estimation",
        "What the framework itself can say about memory before or while it trains.",
    ),
)
