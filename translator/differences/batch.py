"""Batch, loss and accumulation: what is averaged over what."""

from __future__ import annotations

from translator.differences.registry import Pair, difference


@difference("D300", "loss.normalization")
def loss_normalisation(pair: Pair) -> str | None:
    """What the loss is averaged over.

    Either every token of the global batch counts the same, or each micro batch is averaged first and the means are
    averaged: then tokens of micro batches with much padding or masking weigh more.

    Why: with packed pre-training data both are equal, since all micro batches have as many tokens that count; with
    padded or masked data (fine-tuning) the gradients differ.
    Example: two micro batches with 1,000 and 10 tokens that count: the ten weigh as much as the thousand.
    Fix: choose the same normalisation on both sides.
    """
    micro_batches = pair.left.leaf("batch.accumulation")
    if micro_batches == 1 and pair.left.leaf("parallel.data.degree") == 1:
        return None
    return "equal as long as every micro batch has as many tokens that count"
