"""Bounds on sizes that nobody can mean, so that no reader unrolls them."""

from __future__ import annotations

# Layers of one model; lists of layer indices are never longer.
MOST_LAYERS = 100_000
