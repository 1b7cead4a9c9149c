"""How torchtitan does what `translator.comparison` compares; places are those of 0.2.2 and of torch 2.13."""

from __future__ import annotations
