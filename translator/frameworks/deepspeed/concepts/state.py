"""DeepSpeed on what a rank holds and in which format."""

from __future__ import annotations

from translator.comparison.registry import how

_ZERO = "deepspeed/runtime/zero/"
_STAGE_12 = f"{_ZERO}stage_1_and_2.py::DeepSpeedZeroOptimizer"
_STAGE_3 = f"{_ZERO}stage3.py::DeepSpeedZeroOptimizer_Stage3"
_ENGINE = "deepspeed/runtime/engine.py::DeepSpeedEngine"
_CHECKPOINTING = "deepspeed/runtime/activation_checkpointing/checkpointing.py"

CONCEPTS = {
    "parameter-storage": how(
        "The model is cast to bf16 or fp16 as it is; ZeRO flattens its groups of parameters into buffers, whose "
        "partitions have fp32 masters. At stage 3 each parameter is a partition on its own and is whole only while it "
        "is used; small ones stay whole.",
        _STAGE_12,
        _STAGE_3,
        f"{_ZERO}partition_parameters.py::Init",
        memory="2 bytes per parameter, by the ranks at stage 3, and 4 for the master, by the ranks from stage 1 on.",
        options=("zero_optimization.stage3_param_persistence_threshold",),
    ),
    "gradient-storage": how(
        "In the model's type unless another is stated: whole at stages 0 and 1, as partitions from stage 2 on. Stage 1 "
        "with bf16 and fp32 accumulation is another optimizer, with whole fp32 gradients.",
        f"{_STAGE_12}.reduce_independent_p_g_buckets_and_remove_grads",
        "deepspeed/runtime/bf16_optimizer.py::BF16_Optimizer",
        memory="2 bytes per parameter, whole or by the ranks; 4 with fp32 accumulation.",
    ),
    "optimizer-state-sharding": how(
        "From stage 1 on each rank updates its partition of the flat buffers; stages 1 and 2 then gather the new "
        "parameters in buckets. Stage 3 goes through its partitions group by group.",
        f"{_STAGE_12}.step",
        f"{_STAGE_3}.step",
        memory="12 bytes per parameter for Adam, by data times sequence ranks.",
        moves=("parameters",),
        options=("zero_optimization.sub_group_size", "zero_optimization.round_robin_gradients"),
    ),
    "data-parallel-sharding": how(
        "ZeRO stages: 0 nothing, 1 optimizer states, 2 gradients too, 3 everything. Up to stage 1 gradients are "
        "reduced once a step, from stage 2 on with every micro batch; stages 1 and 2 all-reduce buckets and keep a "
        "part.",
        f"{_ZERO}config.py::DeepSpeedZeroConfig",
        f"{_ENGINE}.allreduce_gradients",
        memory="Bytes per parameter in bf16 with Adam: 16, 4 + 12 / n, 2 + 14 / n and 16 / n for stages 0 to 3.",
        moves=("gradients", "parameters"),
        options=("zero_optimization.reduce_scatter", "zero_optimization.use_multi_rank_bucket_allreduce"),
    ),
    "replicas": how(
        "MiCS shards stage 3 within groups and all-reduces over their replicas, when the model is built under its own "
        "context. hpZ shards over all ranks and keeps a second copy of the parameters per group for the backward pass.",
        f"{_ZERO}mics.py::MiCS_Optimizer",
        f"{_ZERO}mics.py::MiCS_Init",
        memory="MiCS: 16 / group bytes per parameter. hpZ adds 2 / group.",
        moves=("gradients", "parameters"),
        options=("zero_optimization.zero_hpz_partition_size", "zero_optimization.mics_hierarchical_params_gather"),
    ),
    "gather-policy": how(
        "Stage 3 records the order of modules in the first step and fetches ahead by a number of elements. Parameters "
        "are freed after use unless they come again within a distance and as long as a limit of live elements is "
        "kept.",
        f"{_ZERO}partitioned_param_coordinator.py::PartitionedParameterCoordinator.fetch_sub_module",
        f"{_ZERO}partitioned_param_coordinator.py::PartitionedParameterCoordinator.release_sub_module",
        f"{_ZERO}parameter_offload.py::DeepSpeedZeRoOffload",
        memory="Up to so many live elements, and those that are fetched ahead, in the model's type.",
        moves=("parameters",),
        options=("zero_optimization.stage3_max_live_parameters", "zero_optimization.stage3_max_reuse_distance"),
    ),
    "communication-overlap": how(
        "Gradients are copied into buckets of so many elements and reduced when one is full, on another stream "
        "with overlap and two buckets then. Whole sums are divided by the ranks afterwards, or before with prescaling. "
        "ZeRO++ quantizes gathers to int8 and reductions to int4.",
        f"{_STAGE_12}.average_tensor",
        f"{_STAGE_3}.reduce_independent_p_g_buckets_and_remove_grads",
        "deepspeed/runtime/comm/coalesced_collectives.py::all_to_all_quant_reduce",
        memory="One bucket, or two with overlap, in the reduction type.",
        moves=("gradients",),
        options=(
            "prescale_gradients",
            "gradient_predivide_factor",
            "zero_optimization.zero_quantized_weights",
            "zero_optimization.zero_quantized_gradients",
            "zero_optimization.allgather_bucket_size",
        ),
    ),
    "offloading": how(
        "Optimizer states from stage 1 on, parameters at stage 3, to the host or to NVMe; the update runs in an "
        "Adam for CPUs. ZenFlow and SuperOffload overlap the update with the next step.",
        f"{_ZERO}offload_config.py::DeepSpeedZeroOffloadOptimizerConfig",
        "deepspeed/ops/adam/cpu_adam.py::DeepSpeedCPUAdam",
        "deepspeed/runtime/swap_tensor/partitioned_optimizer_swapper.py::PartitionedOptimizerSwapper",
        memory="12 bytes per parameter, and gradients, by the ranks, in pinned host memory; each step carries "
        "gradients down and parameters up.",
        options=(
            "zero_optimization.offload_optimizer.nvme_path",
            "zero_optimization.offload_param.nvme_path",
            "zero_optimization.offload_optimizer.super_offload",
            "aio.block_size",
        ),
    ),
    "recompute": how(
        "The model decides: in transformers every layer is checkpointed or none. The section of the JSON configures "
        "DeepSpeed's own function, for models that call it, and switches nothing on by itself.",
        f"{_CHECKPOINTING}::checkpoint",
        f"{_CHECKPOINTING}::configure",
        "transformers/modeling_utils.py::PreTrainedModel.gradient_checkpointing_enable",
        memory="2 bytes x tokens x hidden per layer in flight, and one layer's activations.",
        moves=("tensor",),
        options=("activation_checkpointing.partition_activations", "activation_checkpointing.number_checkpoints"),
    ),
    "activation-offload": how(
        "DeepSpeed's checkpointing can keep the stored inputs in host memory; tiled layers compute long "
        "sequences piece by piece.",
        f"{_CHECKPOINTING}::get_cpu_activations_for_backward",
        "deepspeed/runtime/sequence_parallel/ulysses_sp.py::TiledMLP",
        memory="Stored inputs leave the GPU: 2 bytes x tokens x hidden per layer over PCIe, twice.",
        options=("activation_checkpointing.cpu_checkpointing",),
    ),
    "mixed-precision": how(
        "bf16 or fp16 casts the whole module; torch's autocast can be used instead, with fp32 parameters. Norms of "
        "transformers compute in fp32, and the loss on fp32 logits.",
        f"{_ENGINE}._configure_distributed_model",
        "deepspeed/runtime/precision_config.py::DeepSpeedBF16Config",
        "deepspeed/runtime/torch_autocast.py::init_autocast_params",
        options=("torch_autocast.lower_precision_safe_modules",),
    ),
    "loss-scaling": how(
        "A dynamic scaler with hysteresis under fp16, or a constant; a step with an overflow on any rank is skipped. "
        "None under bf16 unless overflows are asked to be checked.",
        "deepspeed/runtime/fp16/loss_scaler.py::DynamicLossScaler.update_scale",
        "deepspeed/runtime/utils.py::CheckOverflow",
        options=("fp16.consecutive_hysteresis", "bf16.check_grad_overflow"),
    ),
    "fp8": how(
        "None of its own for training: a model brings fp8 layers, or not. Quantized weights in ZeRO++ are for "
        "communication alone.",
        f"{_ZERO}partition_parameters.py::CUDAQuantizer",
    ),
    "memory-estimation": how(
        "Functions estimate the bytes of model states per GPU and host for each way of offloading; activations are "
        "left out. The autotuner tries configurations instead.",
        f"{_ZERO}stage3.py::estimate_zero3_model_states_mem_needs_all_live",
        f"{_ZERO}stage_1_and_2.py::estimate_zero2_model_states_mem_needs_all_live",
        "deepspeed/runtime/utils.py::see_memory_usage",
        "deepspeed/autotuning/autotuner.py::Autotuner",
        options=("memory_breakdown", "autotuning.enabled"),
    ),
}
