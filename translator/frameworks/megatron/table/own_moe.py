"""Options without a neutral meaning: mixture of experts."""

from __future__ import annotations

from translator.frameworks.megatron.table.own_group import lost, machinery
from translator.mapping.rows import Row
from translator.spec.touches import Touches

ROWS: tuple[Row, ...] = (
    machinery(
        """
        moe_enable_deepep moe_flex_dispatcher_backend moe_flex_dispatcher_num_sms moe_deepep_num_sms
        moe_hybridep_num_blocks_permute moe_hybridep_num_blocks_unpermute moe_hybridep_num_sms
        moe_hybridep_num_sms_preprocessing moe_hybridep_pad_uneven_dispatch_inputs moe_ncclep_static_shape
        moe_ncclep_zero_copy
        """,
        Touches.SPEED,
        "a detail of the library that carries tokens to experts",
    ),
    machinery(
        """
        moe_permute_fusion moe_permute_fusion_into_hybridep moe_router_fusion moe_use_legacy_grouped_gemm
        moe_single_grouped_weight moe_single_grouped_bias moe_shared_expert_overlap moe_router_padding_for_fp8
        moe_router_padding_for_quantization
        """,
        Touches.SPEED,
        "picks a kernel or an overlap of the expert layers; the result is the same up to rounding",
    ),
    machinery(
        "moe_mlp_glu_interleave_size moe_shared_expert_glu_interleave_size",
        Touches.OPERATION,
        "stores gate and linear weights of an expert interleaved for a fused kernel; only checkpoints differ",
    ),
    machinery(
        "moe_per_layer_logging moe_routing_trace_capture_hidden_states moe_routing_trace_capture_logits "
        "moe_routing_trace_dump_weights moe_routing_trace_max_training_iters moe_routing_trace_path",
        Touches.OPERATION,
        "records what the routers decide",
    ),
    machinery(
        "moe_pad_experts_for_cuda_graph_inference",
        Touches.NOTHING,
        "concerns inference only",
    ),
    lost(
        "moe_layer_recompute",
        Touches.MEMORY,
        "earlier way to say --recompute-granularity selective --recompute-modules moe; write that instead",
    ),
    lost(
        """
        moe_paged_stash moe_paged_stash_buffer_size_factor_cpu moe_paged_stash_buffer_size_factor_cuda
        moe_paged_stash_page_size
        """,
        Touches.MEMORY,
        "activations of experts wait in a paged buffer; without it they take more memory when load is uneven",
    ),
    lost(
        "moe_extended_tp",
        Touches.MEMORY,
        "experts are split over tensor and expert ranks together; --expert-tensor-parallel-size replaced it",
    ),
    lost(
        "moe_latent_size",
        Touches.TRAINING,
        "experts work in a narrower space than the residual stream; the result has experts of full width",
    ),
    lost(
        "moe_expert_rank_capacity_factor",
        Touches.TRAINING,
        "tokens beyond the budget of an expert rank are dropped; the result drops none",
    ),
    lost(
        "moe_router_force_load_balancing moe_router_force_biased",
        Touches.TRAINING,
        "random routing, for benchmarks; the result routes by the learned scores",
    ),
    lost(
        "moe_router_quantile_balancing_ema",
        Touches.TRAINING,
        "smooths the bias of quantile balancing, a method that no leaf says",
    ),
    lost(
        "moe_enable_routing_replay",
        Touches.TRAINING,
        "recorded routing decisions are used again; the result routes afresh",
    ),
    lost(
        "moe_use_upcycling moe_upcycling_granularity",
        Touches.TRAINING,
        "experts start as copies of a dense checkpoint's feed-forward; the result starts from random weights",
    ),
)
