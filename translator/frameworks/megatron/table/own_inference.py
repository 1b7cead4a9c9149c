"""Options without a neutral meaning: inference, reinforcement learning, export and distillation."""

from __future__ import annotations

from translator.frameworks.megatron.table.own_group import lost, machinery
from translator.mapping.rows import Row
from translator.spec.touches import Touches

ROWS: tuple[Row, ...] = (
    machinery(
        """
        inference_batch_times_seqlen_threshold inference_coordinator_port inference_cuda_graph_all_prefills
        inference_cuda_graph_max_tokens inference_cuda_graph_scope inference_disable_ep_consensus
        inference_disable_triton_nvls_kernels inference_fuse_tp_communication inference_grouped_gemm_backend
        inference_logging_step_interval inference_max_requests inference_max_seq_length
        inference_moe_disable_fused_quant_kernels inference_moe_token_dispatcher_type inference_rng_tracker
        inference_shards inference_text_gen_server_logging inference_use_synchronous_zmq_collectives
        inference_wandb_logging
        """,
        Touches.NOTHING,
        "concerns inference only",
    ),
    machinery(
        """
        inference_dynamic_batching inference_dynamic_batching_async_sched_mode inference_dynamic_batching_block_size
        inference_dynamic_batching_buffer_guaranteed_fraction inference_dynamic_batching_buffer_overflow_factor
        inference_dynamic_batching_buffer_size_gb inference_dynamic_batching_cuda_graph_max_tokens
        inference_dynamic_batching_cuda_graph_mixed_prefill_count
        inference_dynamic_batching_cuda_graph_sizing_distribution inference_dynamic_batching_enable_prefix_caching
        inference_dynamic_batching_logprobs_mode inference_dynamic_batching_mamba_memory_ratio
        inference_dynamic_batching_max_requests inference_dynamic_batching_max_requests_override
        inference_dynamic_batching_max_tokens inference_dynamic_batching_max_tokens_override
        inference_dynamic_batching_num_cuda_graphs inference_dynamic_batching_paused_buffer_size_gb
        inference_dynamic_batching_prefix_caching_coordinator_policy
        inference_dynamic_batching_prefix_caching_eviction_policy inference_dynamic_batching_prefix_caching_mamba_gb
        inference_dynamic_batching_prefix_caching_routing_alpha inference_dynamic_batching_sampling_backend
        inference_dynamic_batching_track_generated_token_events inference_dynamic_batching_track_paused_request_events
        inference_dynamic_batching_unified_memory_level
        """,
        Touches.NOTHING,
        "concerns batching in inference only",
    ),
    machinery(
        """
        cache_mla_latents decode_only_cuda_graphs disable_chunked_prefill enable_chunked_prefill flash_decode
        mamba_inference_conv_states_dtype mamba_inference_ssm_states_dtype max_tokens_to_oom mlp_chunks_for_prefill
        nccl_all_reduce_for_prefill num_speculative_tokens offset_sampling_seed_by_dp_rank symmetric_ar_type
        use_legacy_static_engine
        """,
        Touches.NOTHING,
        "concerns inference only",
    ),
    lost(
        "perform_rl_step",
        Touches.TRAINING,
        "trains by reinforcement learning; the result trains on text",
    ),
    lost(
        """
        grpo_clamp_eps_lower grpo_clamp_eps_upper grpo_default_temperature grpo_default_top_p grpo_entropy_term_weight
        grpo_filter_groups_with_same_reward grpo_group_size grpo_iterations grpo_kl_beta grpo_prompts_per_step
        rl_default_temperature rl_default_top_k rl_default_top_p rl_generation_lag
        rl_importance_sampling_truncation_coef rl_inference_logprobs_is_correction rl_partial_rollouts
        rl_sequence_packing_algo rl_sequence_packing_bin_size rl_sequence_packing_max_sequences_per_bin
        rl_skip_bos_token rl_use_sequence_packing rl_consumption_granularity rl_submission_granularity
        langrl_env_config
        """,
        Touches.TRAINING,
        "shapes the objective or the samples of reinforcement learning, which the result does not do",
    ),
    machinery(
        """
        langrl_external_server langrl_inference_server_conversation_template langrl_inference_server_type refit_method
        rl_calculate_intra_group_similarity rl_generation_batch_size rl_inference_expert_model_parallel_size
        rl_inference_expert_tensor_model_parallel_size rl_inference_model_unified_memory_level rl_inference_parsers
        rl_inference_pipeline_model_parallel_size rl_inference_tensor_model_parallel_size rl_kv_cache_management_mode
        rl_num_parallel_generation_batches rl_num_parallel_generations rl_offload_inference_model_weights_when_idle
        rl_offload_kv_cache_during_training rl_offload_optimizer_during_inference rl_parallel_generation_tasks
        rl_persist_cuda_graphs rl_profile rl_profile_dir rl_prompts_per_eval rl_remove_kv_cache_during_training
        rl_reset_cuda_graphs rl_training_cuda_graphs rl_verify_model_weights_swap
        """,
        Touches.OPERATION,
        "says how reinforcement learning generates its samples, which the result does not do",
    ),
    lost(
        """
        export_kd_cfg export_kd_finalize export_kd_teacher_ckpt_format export_kd_teacher_load
        export_kd_teacher_model_config qad_train_target
        """,
        Touches.TRAINING,
        "the loss also follows a teacher model; the result has the language loss only",
    ),
    lost(
        """
        export_kv_cache_quant export_quant_cfg export_real_quant_cfg export_num_eagle_layers export_num_medusa_heads
        export_offline_model export_moe_apply_probs_on_input export_qk_l2_norm
        """,
        Touches.TRAINING,
        "an optimisation package changes the model (quantisers, draft heads, variants); the result does not",
    ),
    lost(
        "finetune_hf_dataset finetune_data_split",
        Touches.OPERATION,
        "names a dataset for fine-tuning; point the result at its data by hand",
    ),
    machinery(
        """
        enable_gpt_oss export_default_te_spec export_force_local_attention export_legacy_megatron export_model_type
        export_te_mcore_model modelopt_enabled
        """,
        Touches.OPERATION,
        "says how an optimisation package builds or loads the model",
    ),
)
