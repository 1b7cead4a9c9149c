"""The model: the same architecture, built or initialised otherwise."""

from __future__ import annotations
