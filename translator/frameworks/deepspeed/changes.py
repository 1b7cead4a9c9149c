"""What became of keys that a version no longer has, as far as the source says so.

Presence of one of `REFUSED` stops DeepSpeed 0.19.8 (``runtime/config.py:81`` there); any other key that a version does
not know is ignored at the top level.
"""

from __future__ import annotations

REFUSED_SINCE = "0.19.8"
REFUSED: dict[str, str] = {
    "nebula": "checkpoints go through torch.save; drop the section",
    "compression_training": "the compression library is gone; drop the section",
    "amp": "use fp16, bf16 or torch_autocast",
    "quantize_training": "drop the section",
    "sparse_gradients": "embeddings made with sparse=True are reduced sparsely without a key; drop it",
    "eigenvalue": "drop the section",
    "sparse_attention": "drop the section",
    "elasticity": "set the batch sizes themselves",
    "graph_harvesting": "drop the key",
    "curriculum_learning": "use data_efficiency.data_sampling.curriculum_learning",
    "progressive_layer_drop": "drop the section",
    "zero_optimization.mics_shard_size": "drop the key; zero_hpz_partition_size is the nearest thing",
    "zero_optimization.mics_hierarchical_params_gather": "drop the key",
    "zero_optimization.zeropp_loco_param": "drop the key; zero_quantized_gradients stays",
}
# Spellings that people write and no version ever parsed, with what they mean.
NEVER: dict[str, str] = {
    "activation_checkpointing.partitioned_activations": "partition_activations",
    "activation_checkpointing.number_checkpoint": "number_checkpoints",
    "fp16.initial_scale": "initial_scale_power",
}
