"""Options without a neutral meaning: kernels, fusions, CUDA graphs, overlap of communication with compute."""

from __future__ import annotations

from translator.frameworks.megatron.table.own_group import folded, lost, machinery
from translator.mapping.rows import Row
from translator.spec.touches import Touches

ROWS: tuple[Row, ...] = (
    machinery(
        """
        apply_rope_fusion bias_dropout_fusion bias_gelu_fusion bias_swiglu_fusion cross_entropy_fusion_impl
        disable_jit_fuser fused_residual_rmsnorm masked_softmax_fusion mla_down_proj_fusion no_persist_layer_norm
        use_fused_weighted_squared_relu use_grouped_gemm_for_dense_mlp use_grouped_gemm_for_shared_expert
        use_te_activation_func use_transformer_engine_op_fuser
        """,
        Touches.SPEED,
        "picks a fused kernel; the result is the same up to rounding",
    ),
    machinery(
        "gradient_accumulation_fusion gradient_reduce_div_fusion delay_wgrad_compute defer_embedding_wgrad_compute "
        "wgrad_deferral_limit",
        Touches.SPEED,
        "says how and when weight gradients are computed and scaled; the gradients are the same",
    ),
    machinery(
        "transformer_impl",
        Touches.SPEED,
        "picks the layer implementation (Transformer Engine or Megatron-LM's own); the architecture is the same",
    ),
    machinery(
        "use_flash_attn flash_attention_version",
        Touches.SPEED,
        "picks a version of the attention kernel; --attention-backend decides which kind is used",
    ),
    machinery(
        "batch_invariant_mode",
        Touches.SPEED,
        "picks kernels whose result does not depend on the batch size",
    ),
    machinery("enable_experimental", Touches.NOTHING, "only unlocks other options"),
    machinery("clone_scatter_output_in_embedding", Touches.MEMORY, "frees the embedding's input earlier"),
    machinery("empty_unused_memory_level", Touches.SPEED, "empties PyTorch's allocator cache at every step"),
    lost(
        "mlp_chunks_for_training",
        Touches.MEMORY,
        "the feed-forward runs in pieces along the sequence; without it the peak of activation memory is higher",
    ),
    machinery(
        "tp_comm_bootstrap_backend tp_comm_bulk_dgrad tp_comm_bulk_wgrad tp_comm_overlap_ag tp_comm_overlap_cfg "
        "tp_comm_overlap_rs tp_comm_overlap_rs_dgrad tp_comm_split_ag tp_comm_split_rs "
        "async_tensor_model_parallel_allreduce",
        Touches.SPEED,
        "a detail of the overlap of tensor-parallel communication",
    ),
    machinery(
        "overlap_p2p_comm_warmup_flush use_ring_exchange_p2p scatter_gather_tensors_in_pipeline "
        "pipeline_model_parallel_comm_backend",
        Touches.SPEED,
        "a detail of pipeline communication",
    ),
    machinery(
        "overlap_moe_expert_parallel_comm overlap_dispatch_backward_with_experts_wgrad "
        "ep_overlap_early_attn_memory_release high_priority_a2a_comm_stream",
        Touches.SPEED,
        "a detail of the overlap of expert-parallel communication",
    ),
    machinery(
        "cuda_graph_scope cuda_graph_warmup_steps optimizer_cuda_graph te_rng_tracker",
        Touches.SPEED,
        "a detail of CUDA graph capture",
    ),
    folded(
        "cuda_graph_scope_deprecated",
        Touches.SPEED,
        "earlier name of --cuda-graph-modules",
    ),
    folded(
        "enable_cuda_graph external_cuda_graph",
        Touches.SPEED,
        "earlier way to say --cuda-graph-impl",
    ),
    machinery("manual_gc_eval", Touches.SPEED, "also collects garbage around evaluation"),
    machinery("train_sync_interval", Touches.SPEED, "makes the host wait for the GPU every so many steps"),
)
