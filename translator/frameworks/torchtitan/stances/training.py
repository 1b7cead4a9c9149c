"""torchtitan on batch, loss and accumulation."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.subject import Subject


@stance("D300")
def loss(subject: Subject) -> Stance:
    """Since 0.2.2 every token of the global batch counts the same."""
    if subject.leaf("loss.normalization") == "global_tokens":
        says = "divides the summed loss by the tokens of the global batch that count"
        return Stance("global tokens", says, "train.py:538 (torchtitan 0.2.2)")
    return Stance(
        "micro batch means", "averages the means of the micro batches", "components/loss.py:24 (torchtitan 0.1.0)"
    )
