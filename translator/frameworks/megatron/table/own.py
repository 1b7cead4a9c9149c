"""Every option that has no neutral meaning: what it is, what it touches, and whether leaving it out is a loss."""

from __future__ import annotations

from translator.frameworks.megatron.table import (
    own_checkpoint,
    own_data,
    own_inference,
    own_kernels,
    own_logging,
    own_model,
    own_moe,
    own_numerics,
    own_other_models,
    own_parallel,
    own_training,
)
from translator.mapping.rows import Row

OWN_ROWS: tuple[Row, ...] = (
    *own_model.ROWS,
    *own_moe.ROWS,
    *own_numerics.ROWS,
    *own_training.ROWS,
    *own_parallel.ROWS,
    *own_kernels.ROWS,
    *own_data.ROWS,
    *own_checkpoint.ROWS,
    *own_logging.ROWS,
    *own_inference.ROWS,
    *own_other_models.ROWS,
)
