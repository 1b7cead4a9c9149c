"""What a change of a value changes in a run."""

from __future__ import annotations

from enum import StrEnum


class Touches(StrEnum):
    """Ordered from the gravest to the least."""

    TRAINING = "training"
    MEMORY = "memory"
    SPEED = "speed"
    OPERATION = "operation"
    NOTHING = "nothing"

    @property
    def weight(self) -> int:
        """Larger is graver."""
        return _WEIGHT[self]


_WEIGHT = {kind: len(Touches) - position for position, kind in enumerate(Touches)}
