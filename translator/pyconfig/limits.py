"""How much work an evaluation may do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one evaluation; past any of them it is given up with a finding."""

    source_characters: int = 1_000_000
    source_nodes: int = 40_000
    nesting: int = 200
    steps: int = 400_000
    seconds: float = 8.0
    depth: int = 48
    items: int = 100_000
    modules: int = 64


class OverLimitError(Exception):
    """A bound was passed; ``code`` is that of the finding."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
