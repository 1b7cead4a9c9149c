"""How Megatron-LM does what `translator.comparison` compares; places are those of core 0.18.0."""

from __future__ import annotations
