"""ttx: training configurations of Megatron-LM, DeepSpeed and torchtitan, through one neutral spec.

The public functions are `read`, `write`, `convert`, `check` and `diff`; they do what the commands of the same names do.
`differences` tells what source and target of a conversion mean differently by the same words, `estimate` what every
rank of a run holds (``ttx memory``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.version import __version__

if TYPE_CHECKING:
    from translator.api import check, convert, diff, differences, estimate, read, write

__all__ = ["__version__", "check", "convert", "diff", "differences", "estimate", "read", "write"]


def __getattr__(name: str) -> object:
    """Load the API on first use: ``import translator`` alone stays quick."""
    if name in __all__:
        from translator import api

        return getattr(api, name)
    raise AttributeError(f"module 'translator' has no attribute {name!r}")
