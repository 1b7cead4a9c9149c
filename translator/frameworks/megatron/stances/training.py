"""Megatron-LM on batch, loss and accumulation."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.subject import Subject

_SCHEDULES = "megatron/core/pipeline_parallel/schedules.py"
_PER_TOKEN = "calculate_per_token_loss"


@stance("D300")
def loss(subject: Subject) -> Stance:
    """Means of micro batches are averaged, unless every token is to count the same."""
    ways = {
        "global tokens": "add --calculate-per-token-loss",
        "micro batch means": "leave --calculate-per-token-loss out",
    }
    if subject.value(_PER_TOKEN):
        says = "divides the summed loss by the tokens of the global batch that count"
        return Stance("global tokens", says, f"{_SCHEDULES}:301 (core 0.18.0)", _PER_TOKEN, ways)
    says = "averages the means of the micro batches"
    return Stance("micro batch means", says, f"{_SCHEDULES}:270 (core 0.18.0)", _PER_TOKEN, ways)
