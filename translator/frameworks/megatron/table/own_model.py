"""Options without a neutral meaning: architectures and initialisations outside the spec."""

from __future__ import annotations

from translator.frameworks.megatron.table.own_group import folded, lost, machinery
from translator.mapping.rows import Row
from translator.spec.touches import Touches

ROWS: tuple[Row, ...] = (
    folded("encoder_num_layers", Touches.TRAINING, "another spelling of --num-layers"),
    folded("encoder_seq_length", Touches.TRAINING, "another spelling of --seq-length"),
    machinery(
        "add_position_embedding",
        Touches.NOTHING,
        "refused unless the positions are rotary, and then without effect; --position-embedding-type decides",
    ),
    machinery(
        "openai_gelu onnx_safe",
        Touches.NOTHING,
        "read by the former model code only; the core models ignore it",
    ),
    machinery(
        "use_legacy_models deprecated_use_mcore_models",
        Touches.OPERATION,
        "picks between the former model code and the core models",
    ),
    lost(
        "spec",
        Touches.TRAINING,
        "the layers come from Python code that the option names; what they compute is not known here",
    ),
    lost(
        "yaml_cfg",
        Touches.TRAINING,
        "a YAML file replaces every option of the command line; it is not read here",
    ),
    lost(
        "use_checkpoint_args",
        Touches.TRAINING,
        "model options are replaced by those stored in the checkpoint, which is not read here",
    ),
    lost(
        "heterogeneous_layers_config_path heterogeneous_layers_config_encoded_json",
        Touches.TRAINING,
        "every layer has a shape of its own; the result has equal layers",
    ),
    lost(
        """
        is_hybrid_model hybrid_layer_pattern hybrid_override_pattern hybrid_attention_ratio hybrid_mlp_ratio
        mtp_hybrid_override_pattern
        """,
        Touches.TRAINING,
        "state-space and attention layers alternate; the result has attention layers only",
    ),
    lost(
        "mamba_head_dim mamba_num_groups mamba_num_heads mamba_state_dim mamba_training_ssm_states_dtype",
        Touches.TRAINING,
        "a dimension or format of state-space layers, which the result does not have",
    ),
    machinery(
        "use_mamba_mem_eff_path disable_mamba_mem_eff_path",
        Touches.MEMORY,
        "picks the kernel of state-space layers",
    ),
    lost(
        """
        experimental_attention_variant linear_attention_freq linear_conv_kernel_dim linear_key_head_dim
        linear_num_key_heads linear_num_value_heads linear_value_head_dim
        """,
        Touches.TRAINING,
        "some layers have linear or sparse attention; the result has softmax attention everywhere",
    ),
    lost(
        """
        dsa_indexer_head_dim dsa_indexer_k_norm_epsilon dsa_indexer_k_norm_fp32 dsa_indexer_loss_coeff
        dsa_indexer_n_heads dsa_indexer_rope_interleaved dsa_indexer_rotate_activation dsa_indexer_scoring_relu
        dsa_indexer_skip_topk_offset dsa_indexer_topk dsa_indexer_topk_freq dsa_indexer_use_sparse_loss
        """,
        Touches.TRAINING,
        "sparse attention over tokens that an indexer chooses; the result attends to all tokens",
    ),
    machinery("dsa_kernel_backend", Touches.SPEED, "picks the kernel of sparse attention"),
    lost(
        "relative_attention_max_distance relative_attention_num_buckets",
        Touches.TRAINING,
        "shapes the bias of relative positions, which no leaf says",
    ),
    lost(
        "mrope_section",
        Touches.TRAINING,
        "splits rotary channels over time, height and width; the result rotates them all by position",
    ),
    lost(
        "yarn_beta_fast yarn_beta_slow yarn_correction_range_round_to_int yarn_original_max_position_embeddings",
        Touches.TRAINING,
        "shapes YaRN's frequency blend at 0.19 only; other versions take their built-in values",
    ),
    lost(
        "apply_query_key_layer_scaling",
        Touches.TRAINING,
        "attention scores are divided by the layer index before the softmax; equal in exact numbers, other rounding",
    ),
    lost(
        "qk_clip qk_clip_alpha qk_clip_threshold",
        Touches.TRAINING,
        "query and key weights are shrunk when attention logits grow too large; the result does not do so",
    ),
    lost(
        "glu_linear_offset", Touches.TRAINING, "adds a constant to the linear branch of the gate; the result does not"
    ),
    lost(
        "fp16_lm_cross_entropy",
        Touches.TRAINING,
        "cross entropy is computed in fp16; the result computes it in fp32",
    ),
    lost(
        "init_method_xavier_uniform",
        Touches.TRAINING,
        "weights start from a Xavier uniform distribution; the result uses a normal one",
    ),
    lost(
        "embedding_init_method_std",
        Touches.TRAINING,
        "the embedding has a standard deviation of its own at the start; the result uses the common one",
    ),
    lost(
        "perform_initialization",
        Touches.TRAINING,
        "weights are left uninitialised, to be loaded from a checkpoint; the result initialises them",
    ),
    lost(
        "data_parallel_random_init",
        Touches.TRAINING,
        "every data-parallel replica starts from other random weights; in the result all start equal",
    ),
    machinery(
        "use_cpu_initialization init_model_with_meta_device",
        Touches.OPERATION,
        "says where initial weights are drawn; the distribution is the same, the numbers are not",
    ),
    lost(
        """
        use_mup mup_attn_scale_power mup_base_head_dim mup_base_hidden_size mup_embedding_mult mup_output_mult
        mup_width_mult
        """,
        Touches.TRAINING,
        "maximal update parametrisation scales weights, logits and learning rates by width; the result does not",
    ),
    lost(
        "mtp_detach_heads mtp_use_repeated_layer",
        Touches.TRAINING,
        "changes which weights the multi-token prediction heads have or train",
    ),
    lost(
        "mtp_standalone",
        Touches.MEMORY,
        "multi-token prediction heads have a pipeline stage of their own; the result places them with the last layers",
    ),
    lost(
        "freeze_all_layers freeze_base_for_mtp",
        Touches.TRAINING,
        "weights are frozen; the result trains all of them",
    ),
)
