"""Addresses that are no option of torchtitan: what its code derives from options, and the model behind a flavor.

``MODEL`` is the prefix of the neutral leaves of the model in force: ``@model.hidden``, ``@model.moe.experts`` and so
on.
"""

from __future__ import annotations

MODEL = "@model."
MODEL_ARGUMENTS = "@model_arguments"

DP_DEGREE = "@dp_degree"
ACCUMULATION = "@accumulation"
PIPELINE_MICRO_BATCHES = "@pipeline_micro_batches"
MICRO_BATCH = "@micro_batch"
SEQ_LEN_DIVISOR = "@seq_len_divisor"
FSDP = "@fsdp"
COMPUTE_DTYPE = "@compute_dtype"
RESHARD_AFTER_FORWARD = "@reshard_after_forward"
STAGES = "@stages"
STAGES_PER_RANK = "@stages_per_rank"
LAYER_SPLIT = "@layer_split"
WARMUP_STEPS = "@warmup_steps"
DECAY_STEPS = "@decay_steps"
STABLE_STEPS = "@stable_steps"
TOTAL_STEPS = "@total_steps"

# Where 0.3.0 keeps the learning rate inside parameter groups: that of the weights.
PEAK_LR = "@optimizer.lr"
