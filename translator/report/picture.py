"""Where things stand in the pictures of a page: shares of a width, and points of a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from translator.report.model import Bar, Curves, Memory

CURVE_WIDTH, CURVE_HEIGHT = 640, 240
_MARGIN = 6


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar: what it is, its colour, and its width in percent of the track."""

    kind: str
    colour: str
    percent: float


@dataclass(frozen=True, slots=True)
class Track:
    """A bar with its pieces, and where the card ends, in percent of the track."""

    bar: Bar
    parts: list[Part]
    limit: float


SLACK, SLACK_COLOUR = "reserved, not in use", "#bdbdbd"


def tracks(memory: Memory, top_bytes: float) -> list[Track]:
    """The bars of one side; ``top_bytes`` is what a full track holds, the same for all that are compared."""
    colours = dict(legend())
    found: list[Track] = []
    for bar in memory.bars:
        amounts = [*bar.parts, (SLACK, bar.slack_bytes)]
        parts = [Part(kind, colours[kind], round(100 * size / top_bytes, 2)) for kind, size in amounts if size > 0]
        found.append(Track(bar, parts, round(100 * memory.capacity_bytes / top_bytes, 2)))
    return found


def top_bytes(memories: Sequence[Memory]) -> float:
    """What a full track holds so that every bar and every card is on it."""
    highest = [max(memory.capacity_bytes, memory.worst.card_bytes) for memory in memories]
    return 1.02 * max(highest, default=1.0)


def legend() -> list[tuple[str, str]]:
    """What the pieces of a bar are, with their colours."""
    from translator.memory.picture import COLOURS
    from translator.memory.report import KINDS

    return [*((kind.value, colour) for kind, colour in zip(KINDS, COLOURS, strict=True)), (SLACK, SLACK_COLOUR)]


def polylines(curves: Curves) -> list[str]:
    """The points of both curves in a drawing of `CURVE_WIDTH` by `CURVE_HEIGHT`."""
    return [
        " ".join(f"{_across(step, curves):.1f},{_down(rate, curves):.1f}" for step, rate in series.points)
        for series in curves.series
    ]


def worst_at(curves: Curves) -> float:
    """Where the curves differ most, across the drawing."""
    return round(_across(curves.at_step, curves), 1)


def _across(step: int, curves: Curves) -> float:
    return _MARGIN + (CURVE_WIDTH - 2 * _MARGIN) * step / max(curves.steps - 1, 1)


def _down(rate: float, curves: Curves) -> float:
    share = rate / curves.peak if curves.peak else 0.0
    return CURVE_HEIGHT - _MARGIN - (CURVE_HEIGHT - 2 * _MARGIN) * max(min(share, 1.0), 0.0)
