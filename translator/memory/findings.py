"""What an estimate means for a card, as findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.errors import SourceError, TtxError
from translator.findings import Finding, Level
from translator.memory.changes import Change, changes, peak_bytes
from translator.memory.estimate import estimate_reading
from translator.memory.hardware import Gpu

if TYPE_CHECKING:
    from translator.reading import Reading

_GIB = 2**30


def memory_findings(reading: Reading, card: Gpu) -> list[Finding]:
    """Whether a configuration fits on a card: at most one finding. Never raises for what the configuration lacks."""
    if reading.native is None:
        return []
    try:
        found = estimate_reading(reading)
    except (TtxError, ZeroDivisionError) as error:
        message = error.message if isinstance(error, SourceError) else str(error)
        fix = f"with ttx memory: {error.fix}" if isinstance(error, SourceError) and error.fix else ""
        return [Finding("M402", Level.NOTE, message, fix)]
    totals = found.totals
    expected = totals.reserved.expected + totals.outside
    high = totals.reserved.high + totals.outside
    stage = int(expected[0].argmax())
    told = f"{expected[0, stage] / _GIB:.1f} of {card.memory_bytes / _GIB:.1f} GiB of {card.title}"
    if peak_bytes(found) > card.memory_bytes:
        ways = changes(found.job, float(card.memory_bytes))
        fix = f"{_way(ways[0])} would; ttx memory shows more" if ways else "ttx memory shows what dominates"
        return [Finding("M400", Level.ERROR, f"stage {stage} needs {told}", fix)]
    if float(high.max()) > card.memory_bytes:
        message = f"stage {stage} needs {told}, and up to {float(high.max()) / _GIB:.1f} at worst"
        return [Finding("M401", Level.WARNING, message, "leave some room; ttx memory shows what dominates")]
    return []


def _way(change: Change) -> str:
    return f"{change.says} ({change.written})" if change.written else change.says
