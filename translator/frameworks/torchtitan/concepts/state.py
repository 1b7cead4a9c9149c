"""torchtitan on what a rank holds and in which format."""

from __future__ import annotations

from translator.comparison.registry import how

_DENSE = "torchtitan/models/llama3/infra/parallelize.py"
_FSDP = "torch/distributed/fsdp/_fully_shard/"
_CHECKPOINTING = "torchtitan/distributed/activation_checkpoint.py"

CONCEPTS = {
    "parameter-storage": how(
        "Parameters are DTensors, fp32 by default, cut row by row; the shard is the master itself. FSDP casts it to "
        "the compute type as it gathers, one block at a time.",
        f"{_DENSE}::apply_fsdp",
        f"{_FSDP}_fsdp_param.py::FSDPParam",
        f"{_FSDP}_fsdp_api.py::MixedPrecisionPolicy",
        memory="4 bytes per parameter / shards, and 2 bytes for the parameters of the blocks that are gathered.",
    ),
    "gradient-storage": how(
        "A gradient leaves the backward pass in the compute type, is reduced in the reduction type and added to the "
        "sharded gradient in the type of the parameter. Micro batches add up in the shard, or unsharded in the "
        "reduction type under a pipeline.",
        f"{_FSDP}_fsdp_collectives.py::foreach_reduce",
        f"{_FSDP}_fsdp_param_group.py::FSDPParamGroup.post_backward",
        memory="4 bytes per parameter / shards; whole under a pipeline with several micro batches.",
    ),
    "optimizer-state-sharding": how(
        "States are DTensors with the placement of their parameter, in its type: nothing is shared out apart from the "
        "parameters themselves.",
        "torchtitan/components/optimizer.py::OptimizersContainer",
        memory="8 bytes per parameter / shards for Adam.",
    ),
    "data-parallel-sharding": how(
        "FSDP2 over shard and context ranks, whole blocks as units; with a replicate degree as well, HSDP; with that "
        "alone and no other parallelism, DDP. There is nothing between full sharding and none.",
        f"{_DENSE}::apply_fsdp",
        f"{_DENSE}::apply_ddp",
        f"{_FSDP}_fully_shard.py::fully_shard",
        memory="Bytes per parameter with Adam: 16 / shards, and what is gathered; 16 under DDP.",
        moves=("gradients", "parameters"),
    ),
    "replicas": how(
        "The mesh has a replicate dimension outside the shard dimension: shards are reduced within a replica, then "
        "all-reduced over the replicas, in the same backward pass.",
        "torchtitan/distributed/parallel_dims.py::ParallelDims",
        f"{_FSDP}_fsdp_collectives.py::foreach_reduce",
        memory="State is shared out over the ranks of one replica.",
        moves=("gradients",),
    ),
    "gather-policy": how(
        "default frees a block after its forward pass unless there is a pipeline; always and never say it outright. "
        "The output layer stays gathered unless it is always. The next block is fetched while one computes.",
        f"{_DENSE}::apply_fsdp",
        f"{_FSDP}_fsdp_param_group.py::FSDPParamGroup.unshard",
        f"{_FSDP}_fsdp_param_group.py::FSDPParamGroup.post_forward",
        memory="2 bytes per parameter of two blocks, or of all blocks of a rank.",
        moves=("parameters",),
    ),
    "communication-overlap": how(
        "Gathers and reductions run on streams of their own, block by block, without an option. The division by ranks "
        "is switched off, since the loss is divided by the tokens of all ranks beforehand.",
        f"{_DENSE}::disable_fsdp_gradient_division",
        f"{_FSDP}_fsdp_param_group.py::FSDPCommContext",
        moves=("gradients", "parameters"),
    ),
    "offloading": how(
        "One switch moves parameters, gradients and optimizer states to the host together; the update runs there.",
        f"{_FSDP}_fsdp_api.py::CPUOffloadPolicy",
        f"{_DENSE}::apply_fsdp",
        memory="16 bytes per parameter / shards move to the host; each gather begins with a copy to the GPU.",
    ),
    "recompute": how(
        "Every block is wrapped: whole; every n-th one whole; or by operator, where attention, scatters and "
        "every second matrix product are kept. With compilation a memory budget can be given instead.",
        f"{_CHECKPOINTING}::apply_ac",
        f"{_CHECKPOINTING}::_apply_op_sac",
        f"{_CHECKPOINTING}::_apply_layer_sac",
        memory="Full: 2 bytes x tokens x hidden / tensor ranks per block in flight. Recomputation repeats all-gathers; "
        "saved scatters are not repeated.",
        moves=("tensor",),
        options=("activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",),
    ),
    "activation-offload": how(
        "None in this version: activations are kept or computed again.",
        f"{_CHECKPOINTING}::apply_ac",
    ),
    "mixed-precision": how(
        "FSDP's policy: parameters are gathered in bf16 and gradients reduced in fp32, by two options. Without FSDP, "
        "autocast. Norms compute in fp32 inside; the logits are turned into fp32 for the loss.",
        f"{_FSDP}_fsdp_api.py::MixedPrecisionPolicy",
        "torchtitan/distributed/utils.py::maybe_enable_amp",
    ),
    "loss-scaling": how(
        "None: there is bf16 and fp32, and no fp16.",
        "torchtitan/train.py::Trainer.forward_backward_step",
    ),
    "fp8": how(
        "torchao converts linear layers to float8 (tensorwise or rowwise) or MXFP8, and experts' grouped products too; "
        "names leave layers out. Tensorwise float8 can be gathered by FSDP and between tensor ranks in 8 bits.",
        "torchtitan/components/quantization/float8.py::Float8LinearConverter",
        "torchtitan/components/quantization/mx.py::MXLinearConverter",
        "torchtitan/components/quantization/utils.py::module_filter_fn",
        memory="Gathers in 8 bits halve the bytes of parameters; masters stay fp32.",
        moves=("parameters",),
        options=("quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp",),
    ),
    "memory-estimation": how(
        "The configuration has a section for an estimate with fake tensors, whose script is not in the wheel. Log "
        "lines hold the peak of reserved memory, and a snapshot of the allocator can be recorded.",
        "torchtitan/config/job_config.py::MemoryEstimation",
        "torchtitan/components/metrics.py::DeviceMemoryMonitor",
        "torchtitan/tools/profiling.py::maybe_enable_memory_snapshot",
        options=("memory_estimation.enable", "profiling.enable_memory_snapshot"),
    ),
}
