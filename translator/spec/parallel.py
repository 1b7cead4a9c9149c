"""Section ``parallel``: how the run is laid out over ranks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from translator.spec.base import MEMORY, OPERATION, SPEED, Section, leaf

Sharding = Literal["none", "optimizer", "optimizer_gradients", "full"]
Schedule = Literal[
    "1f1b",
    "gpipe",
    "interleaved_1f1b",
    "looped_bfs",
    "interleaved_zero_bubble",
    "zbv_zero_bubble",
    "dual_pipe_v",
    "custom",
]


class Pipeline(Section):
    """Pipeline parallelism."""

    degree: int | None = leaf("pipeline-parallel ranks", MEMORY, ge=1)
    schedule: Schedule | None = leaf("order of forward and backward passes; None at degree 1", MEMORY)
    stages_per_rank: int | None = leaf("model chunks per rank (virtual pipeline size)", MEMORY, ge=1)
    layer_split: list[int] | None = leaf("transformer layers of each stage, in model order; None at degree 1", MEMORY)
    overlap_p2p: bool | None = leaf("sends and receives run beside compute", SPEED)


class Data(Section):
    """Data parallelism and the sharding of training state."""

    replicate: int | None = leaf("replicas of the sharded group (HSDP)", MEMORY, ge=1)
    shard: int | None = leaf("data-parallel ranks that share one copy of the sharded state", MEMORY, ge=1)
    degree: int | None = leaf("data-parallel ranks: replicate times shard", ge=1)
    sharding: Sharding | None = leaf("what is sharded over the data-parallel ranks", MEMORY)
    reshard_after_forward: bool | None = leaf(
        "full sharding: parameters are freed between forward and backward", MEMORY
    )
    overlap_gradient_reduction: bool | None = leaf("gradient reduction runs beside the backward pass", SPEED)
    overlap_parameter_gather: bool | None = leaf("parameter gathering runs beside the forward pass", SPEED)
    bucket_elements: int | None = leaf("elements in one gradient bucket", SPEED, ge=1)
    average_in_collective: bool | None = leaf("gradients are averaged by the collective instead of beforehand", SPEED)
    offload_parameters: bool | None = leaf("parameters and optimizer states rest in host memory", MEMORY)


class Parallel(Section):
    """Degrees of every parallel axis, and their implementation."""

    world_size: int | None = leaf("ranks of the run", OPERATION, ge=1)
    tensor: int | None = leaf("tensor-parallel ranks", MEMORY, ge=1)
    sequence_parallel: bool | None = leaf(
        "norms and residuals are split along the sequence over the tensor ranks", MEMORY
    )
    tensor_overlap: bool | None = leaf("tensor-parallel communication runs beside the matrix products", SPEED)
    loss_parallel: bool | None = leaf("the cross entropy stays split over the vocabulary", MEMORY)
    context: int | None = leaf("context-parallel ranks", MEMORY, ge=1)
    context_method: str | None = leaf("how keys and values travel: ring, all_gather, all_to_all ...", SPEED)
    expert: int | None = leaf("expert-parallel ranks", MEMORY, ge=1)
    expert_tensor: int | None = leaf("tensor-parallel ranks inside an expert", MEMORY, ge=1)
    rank_order: str | None = leaf("parallel axes from the innermost to the outermost", SPEED)
    pipeline: Pipeline = Field(default_factory=Pipeline)
    data: Data = Field(default_factory=Data)
