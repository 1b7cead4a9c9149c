"""What rows of several frameworks say in the same way."""

from __future__ import annotations

from translator.ledger import Entry
from translator.mapping.views import Sink, SpecView
from translator.spec import leaves

_PIPELINE = "parallel.pipeline."


def no_pipeline(sink: Sink) -> None:
    """A pipeline of one stage: what a spec says beside that about its stages has no effect."""
    for leaf in leaves():
        if leaf.startswith(_PIPELINE) and leaf != f"{_PIPELINE}degree":
            sink.short(leaf, Entry.IRRELEVANT, "without effect at a pipeline degree of 1")


def accumulation_follows(spec: SpecView, sink: Sink) -> None:
    """Admit what can become of the accumulation where a framework derives it from batch and ranks."""
    if spec("parallel.data.degree") is None and spec("batch.accumulation") is not None:
        sink.need("batch.accumulation", "it follows from the number of ranks, which is not known; give --world-size N")
    else:
        why = "the global batch does not divide into micro batches and ranks"
        sink.short("batch.accumulation", Entry.APPROXIMATED, why)
