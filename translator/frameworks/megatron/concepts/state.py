"""Megatron-LM on what a rank holds and in which format."""

from __future__ import annotations

from translator.comparison.registry import how

_CORE = "megatron/core/"
_DDP = f"{_CORE}distributed/distributed_data_parallel.py"
_BUFFERS = f"{_CORE}distributed/param_and_grad_buffer.py"
_DISTRIBUTED = f"{_CORE}optimizer/distrib_optimizer.py"
_OPTIMIZER = f"{_CORE}optimizer/optimizer.py"
_FSDP = f"{_CORE}distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py"

CONCEPTS = {
    "parameter-storage": how(
        "The model itself is bf16 or fp16; with the distributed optimizer its parameters are views of contiguous "
        "buffers, into which updated values are gathered. The optimizer keeps fp32 masters, of the rank's shard "
        "alone where states are sharded.",
        f"{_BUFFERS}::_ParamAndGradBuffer",
        f"{_OPTIMIZER}::Float16OptimizerWithFloat16Params",
        memory="2 bytes per parameter on every data-parallel rank, and 4 for the master, by the ranks that share it.",
    ),
    "gradient-storage": how(
        "One contiguous buffer per type and group holds the main gradients, fp32 unless told otherwise. Backward "
        "passes add to it, fused into the matrix product where that is possible, so that micro batches accumulate in "
        "fp32 without a bf16 gradient beside it.",
        f"{_BUFFERS}::_ParamAndGradBuffer",
        f"{_DDP}::DistributedDataParallel._make_backward_post_hook",
        memory="4 bytes per parameter on every data-parallel rank (2 with bf16), whether or not states are sharded.",
    ),
    "optimizer-state-sharding": how(
        "The distributed optimizer cuts the contiguous buffers into equal ranges, across the bounds of tensors, so "
        "that shards are even. Moments and masters can be kept in fewer bits with the precision-aware optimizer.",
        f"{_DISTRIBUTED}::DistributedOptimizer",
        f"{_DISTRIBUTED}::DistributedOptimizer._build_gbuf_range_map",
        memory="12 bytes per parameter for Adam (two moments and the master), by data times context ranks.",
        moves=("parameters",),
    ),
    "data-parallel-sharding": how(
        "Three ways: plain DDP; DDP with the distributed optimizer (as ZeRO-1, though gradients arrive as shards); and "
        "Megatron FSDP, which shards optimizer states, gradients or parameters as told. torch's FSDP2 can be used "
        "instead. What gradients accumulate into stays whole up to the second way.",
        f"{_DDP}::DistributedDataParallel",
        f"{_CORE}distributed/fsdp/mcore_fsdp_adapter.py::FullyShardedDataParallel",
        f"{_CORE}distributed/torch_fully_sharded_data_parallel.py::TorchFullyShardedDataParallel",
        memory="Bytes per parameter in bf16 with Adam: 18 plain, 6 + 12 / n with the distributed optimizer, 18 / n "
        "when everything is sharded.",
        moves=("gradients", "parameters"),
    ),
    "replicas": how(
        "The distributed optimizer can run in several instances, each of which shards over its part of the data ranks "
        "and all-reduces its shards of gradients with the others. Megatron FSDP has an outer dimension with a "
        "strategy of its own.",
        f"{_BUFFERS}::_ParamAndGradBucketGroup.start_grad_sync",
        f"{_CORE}distributed/distributed_data_parallel_config.py::DistributedDataParallelConfig",
        memory="States are shared out over fewer ranks, in return for collectives that stay within fewer nodes.",
        moves=("gradients",),
    ),
    "gather-policy": how(
        "With the distributed optimizer parameters are gathered once per step, at once or bucket by bucket before the "
        "forward pass needs them. Megatron FSDP gathers a unit before its forward and again before its backward "
        "pass, and fetches ahead.",
        f"{_BUFFERS}::_ParamAndGradBucketGroup.start_param_sync",
        f"{_FSDP}::MegatronFSDP.all_gather_and_wait_parameters_ready",
        memory="Under full sharding the gathered units in flight: those that compute, and those that are fetched "
        "ahead.",
        moves=("parameters",),
    ),
    "communication-overlap": how(
        "Gradients are reduced in buckets counted in elements, by size of the group unless stated, as soon as the last "
        "micro batch's backward pass has filled one; without overlap in a single piece at the end. Averages are "
        "taken by scaling beforehand, or in the collective.",
        f"{_BUFFERS}::_ParamAndGradBucketGroup.register_grad_ready",
        f"{_BUFFERS}::partition_buckets",
        f"{_DDP}::DistributedDataParallel",
        moves=("gradients",),
    ),
    "offloading": how(
        "The optimizer can be a hybrid that updates a share of the parameters on the CPU, with states in host "
        "memory, while the rest stays on the GPU. Parameters themselves are not offloaded in training.",
        f"{_CORE}optimizer/cpu_offloading/hybrid_optimizer.py::HybridDeviceOptimizer",
        memory="The offloaded share of 12 bytes per sharded parameter moves to the host.",
    ),
    "recompute": how(
        "Whole layers, in units of so many layers or as the first so many of a stage; or chosen modules of every "
        "layer: core attention, norms, activations, feed-forward, experts. Some modules drop their output as well and "
        "restore it in place. Inputs of whole layers can be shared out over the tensor ranks.",
        f"{_CORE}tensor_parallel/random.py::CheckpointFunction",
        f"{_CORE}tensor_parallel/random.py::CheckpointWithoutOutput",
        f"{_CORE}transformer/transformer_block.py::TransformerBlock.forward",
        memory="Full: 2 bytes x tokens x hidden per layer in flight (by tensor ranks with sequence parallelism) and "
        "one layer's activations. A recomputed layer repeats its forward communication.",
        moves=("tensor",),
    ),
    "activation-offload": how(
        "TransformerEngine can offload the activations of so many layers, and a finer machinery offloads "
        "chosen modules of each layer and brings them back in time, across pipeline chunks.",
        f"{_CORE}pipeline_parallel/fine_grained_activation_offload.py::PipelineOffloadManager",
        memory="Offloaded tensors leave the GPU between the passes; PCIe has to carry them twice per micro batch.",
        options=("cpu_offloading_num_layers", "fine_grained_activation_offloading", "offload_modules"),
    ),
    "mixed-precision": how(
        "The modules are wrapped so that parameters and inputs are bf16 or fp16, without autocast; norms and softmax "
        "compute in fp32 inside their kernels. Logits are turned into fp32 for the loss. The residual stream can be "
        "kept in fp32.",
        f"{_CORE}transformer/module.py::Float16Module",
        f"{_OPTIMIZER}::MixedPrecisionOptimizer",
    ),
    "loss-scaling": how(
        "A dynamic scaler with hysteresis under fp16, or a constant; none under bf16. Whether a gradient overflowed is "
        "agreed on by all ranks, and the step is skipped.",
        f"{_CORE}optimizer/grad_scaler.py::DynamicGradScaler.update",
        f"{_OPTIMIZER}::MixedPrecisionOptimizer.prepare_grads",
    ),
    "fp8": how(
        "TransformerEngine's modules under its autocast, with delayed, tensorwise, blockwise or MXFP8 scaling; first "
        "and last layers can stay in bf16. Parameters can be kept and gathered in fp8. fp4 has a recipe of its own.",
        f"{_CORE}fp8_utils.py::quantize_param_shard",
        f"{_CORE}fp8_utils.py::is_first_last_bf16_layer",
        f"{_CORE}extensions/transformer_engine.py::TELinear",
        memory="Weights are cached in fp8 twice, by rows and by columns, unless parameters themselves are fp8.",
    ),
    "memory-estimation": how(
        "A theoretical account of weights, optimizer states and activations of the fullest stage is printed on the "
        "way, in two forms: for sequence parallelism with selective recomputation, and for everything else. A history "
        "of the allocator can be recorded.",
        "megatron/training/theoretical_memory_usage.py::report_theoretical_memory",
        "megatron/training/theoretical_memory_usage.py::compute_activation_memory",
        options=("log_memory_interval", "record_memory_history"),
    ),
}
