"""DeepSpeed, with its trainer, on batch, loss and accumulation."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.subject import Subject


@stance("D300")
def loss(subject: Subject) -> Stance | None:
    """The engine averages micro batches; the trainer may hand it a loss over all tokens."""
    kind = subject.leaf("loss.normalization")
    if kind == "global_tokens":
        says = "is handed a loss over all tokens of the step by the trainer"
        return Stance("global tokens", says, "transformers/trainer.py (5.24.0)")
    if kind == "micro_batch_mean":
        says = "divides each micro batch's mean by the accumulation steps"
        return Stance("micro batch means", says, "deepspeed/runtime/engine.py (0.19.2)")
    return None
