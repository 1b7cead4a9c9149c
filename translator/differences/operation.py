"""Data, seeds, checkpoints, evaluation and the environment."""

from __future__ import annotations
