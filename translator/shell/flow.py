"""Why evaluation leaves a statement early."""

from __future__ import annotations

from dataclasses import dataclass


class LimitError(Exception):
    """Evaluation went past a limit and stops with what was read."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Why a statement did not run to its end: ``break``, ``continue``, ``return`` or ``exit``."""

    kind: str
    levels: int = 1
