"""Options without a neutral meaning: details of fp8, fp4 and of accumulation."""

from __future__ import annotations

from translator.frameworks.megatron.table.own_group import lost, machinery
from translator.mapping.rows import Row
from translator.spec.touches import Touches

ROWS: tuple[Row, ...] = (
    lost(
        "fp8_margin fp8_interval fp8_amax_history_len fp8_amax_compute_algo",
        Touches.TRAINING,
        "says how delayed fp8 scales follow the largest values; the result uses its own way",
    ),
    lost(
        "fp8_wgrad fp8_output_proj",
        Touches.TRAINING,
        "says whether a further matrix product runs in fp8; the result decides that itself",
    ),
    lost(
        "first_last_layers_bf16 num_layers_at_start_in_bf16 num_layers_at_end_in_bf16",
        Touches.TRAINING,
        "some first and last layers stay in bf16 under fp8; the result runs all layers alike",
    ),
    lost(
        """
        fp8_quantizer_factory fp4_quantizer_factory te_precision_config_file kitchen_config_file kitchen_recipe_number
        """,
        Touches.TRAINING,
        "quantisation comes from code or a file that the option names, which is not read here",
    ),
    lost(
        "fp4_recipe",
        Touches.TRAINING,
        "says how fp4 scales are found, which no leaf says",
    ),
    lost(
        "fp4_param_gather",
        Touches.MEMORY,
        "parameters are kept and gathered in fp4; the result keeps them in the compute format",
    ),
    lost(
        "use_kitchen_attention kitchen_attention_backend",
        Touches.TRAINING,
        "attention is quantised by an extension package, which the result does not use",
    ),
    lost(
        "disable_bf16_reduced_precision_matmul",
        Touches.TRAINING,
        "bf16 matrix products add up in full precision; the result leaves PyTorch's setting alone",
    ),
    lost(
        "ddp_reduce_scatter_with_fp32_accumulation",
        Touches.TRAINING,
        "gradients travel in low precision and are added in fp32; the result adds them in the format they travel in",
    ),
    lost(
        "ddp_param_name_patterns_for_fp32_local_accumulation",
        Touches.TRAINING,
        "gradients of chosen parameters add up in fp32; the result treats all parameters alike",
    ),
    lost(
        "megatron_fsdp_grad_comm_dtype megatron_fsdp_main_grads_dtype megatron_fsdp_main_params_dtype",
        Touches.TRAINING,
        "a number format of Megatron-FSDP that overrides the common ones; no leaf says it",
    ),
    machinery(
        "reuse_grad_buf_for_mxfp8_param_ag keep_fp8_transpose_cache",
        Touches.MEMORY,
        "a buffer of fp8 parameters is shared or kept",
    ),
)
