"""What rows of several frameworks say in the same way."""

from __future__ import annotations

from translator.ledger import Entry
from translator.mapping.views import Sink


def no_pipeline(sink: Sink) -> None:
    """A pipeline of one stage: what a spec says beside that about its stages has no effect."""
    for leaf in ("schedule", "stages_per_rank", "layer_split", "overlap_p2p"):
        sink.short(f"parallel.pipeline.{leaf}", Entry.IRRELEVANT, "without effect at a pipeline degree of 1")
