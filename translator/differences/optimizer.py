"""Optimizer, clipping, precision and schedules: the same numbers, applied to something else."""

from __future__ import annotations
