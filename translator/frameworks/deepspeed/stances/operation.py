"""DeepSpeed on the model, its data, checkpoints and the environment."""

from __future__ import annotations
