"""How DeepSpeed, with transformers around it, does what `translator.comparison` compares.

Places are those of DeepSpeed 0.19.2 and transformers 5.24.0.
"""

from __future__ import annotations
