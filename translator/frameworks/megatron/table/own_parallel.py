"""Options without a neutral meaning: data parallel machinery, FSDP, process groups, offloading."""

from __future__ import annotations

from translator.frameworks.megatron.table.own_group import lost, machinery
from translator.mapping.rows import Row
from translator.spec.touches import Touches

ROWS: tuple[Row, ...] = (
    machinery(
        """
        align_grad_reduce align_param_gather ddp_num_buckets ddp_pad_buckets_for_high_nccl_busbw
        overlap_param_gather_with_optimizer_step suggested_communication_unit_size create_all_gather_group
        use_layer_wise_param_layout
        """,
        Touches.SPEED,
        "a detail of how gradients are reduced and parameters gathered",
    ),
    machinery(
        """
        fsdp_double_buffer fsdp_db_use_persist_buf_on_alloc_fail fsdp_manual_registration
        megatron_fsdp_enable_fine_grained_param_gather megatron_fsdp_max_pool_double_buffer
        disable_symmetric_registration
        """,
        Touches.MEMORY,
        "a detail of Megatron-FSDP's buffers",
    ),
    lost(
        "outer_dp_sharding_strategy enable_full_sharding_in_hsdp",
        Touches.MEMORY,
        "optimizer states are also sharded over the replicas; the result keeps one copy per replica",
    ),
    machinery(
        """
        distributed_backend distributed_timeout_seconds_after_init nccl_communicator_config_path nccl_ub
        sharp_enabled_group use_sharp high_priority_stream_groups use_gloo_process_groups lazy_mpu_init local_rank
        fake_process_group
        """,
        Touches.OPERATION,
        "sets up process groups and their communication library",
    ),
    machinery(
        "hierarchical_context_parallel_sizes",
        Touches.SPEED,
        "sizes of the levels of hierarchical context parallelism",
    ),
    lost(
        "hybrid_context_parallel max_seqlen_per_dp_cp_rank",
        Touches.MEMORY,
        "packed samples get context-parallel groups of a size that fits them; the result uses one size",
    ),
    lost(
        "microbatch_group_size_per_vp_stage",
        Touches.MEMORY,
        "how many micro batches a model chunk takes in a row; the result uses the pipeline degree",
    ),
    lost(
        "tensor_parallel_num_weight_shards expert_tensor_parallel_num_weight_shards",
        Touches.MEMORY,
        "weights are split over further ranks and gathered for each use; the result keeps them on the tensor ranks",
    ),
    lost(
        "encoder_pipeline_model_parallel_size encoder_tensor_model_parallel_size pipeline_model_parallel_split_rank",
        Touches.MEMORY,
        "an encoder has ranks of its own; the result has a decoder only",
    ),
    lost(
        "use_mp_args_from_checkpoint_args",
        Touches.MEMORY,
        "parallel degrees are taken from the checkpoint, which is not read here",
    ),
    lost(
        "cpu_offloading_num_layers",
        Touches.MEMORY,
        "activations of some layers rest in host memory; in the result they stay on the GPU",
    ),
    lost(
        """
        fine_grained_activation_offloading offload_modules activation_offload_fraction
        delta_offload_bytes_across_pp_ranks fine_grained_offloading_max_inflight_offloads min_offloaded_tensor_size
        """,
        Touches.MEMORY,
        "inputs of chosen modules rest in host memory; in the result they stay on the GPU",
    ),
    machinery(
        "cpu_offloading_retain_pinned_cpu_buffers delay_offload_until_cuda_graph",
        Touches.SPEED,
        "a detail of how activations travel to host memory",
    ),
    machinery(
        "overlap_cpu_optimizer_d2h_h2d pin_cpu_grads pin_cpu_params use_torch_optimizer_for_cpu_offload",
        Touches.SPEED,
        "a detail of the optimizer step on the host",
    ),
)
