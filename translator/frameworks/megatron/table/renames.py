"""Options that changed only their name between core 0.12.0 and 0.19.0."""

from __future__ import annotations

# Newest dest to older dest. A pair stands here only when the meaning, the polarity and the kind of value stayed; where
# one of them changed (`--cuda-graph-scope`, `--disable-msc`, `--enable-chunked-prefill`), both stand alone.
RENAMED: dict[str, str] = {
    "export_kd_teacher_model_config": "teacher_model_config",
    "fp4_param_gather": "fp4_param",
    "inference_dynamic_batching_block_size": "inference_dynamic_batching_chunk_size",
    "inference_max_requests": "inference_max_batch_size",
    "keep_fp8_transpose_cache": "keep_fp8_transpose_cache_when_using_custom_fsdp",
    "layernorm_epsilon": "norm_epsilon",
    "layernorm_zero_centered_gamma": "apply_layernorm_1p",
    "metadata_path": "tokenizer_metadata",
    "muon_nesterov": "muon_use_nesterov",
    "object_storage_cache_path": "s3_cache_path",
    "special_tokens": "tokenizer_special_tokens",
    "use_gloo_process_groups": "enable_gloo_process_groups",
    "use_megatron_fsdp": "use_custom_fsdp",
}
