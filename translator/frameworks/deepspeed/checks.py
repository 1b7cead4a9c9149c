"""What DeepSpeed accepts and should not."""

from __future__ import annotations
