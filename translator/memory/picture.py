"""The stages of an estimate as stacked bars: ``templates/memory/bars.svg.j2`` holds the layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from translator.memory.report import KINDS

if TYPE_CHECKING:
    from translator.memory.report import MemoryReport

GIB = 2**30
# Colours that stay apart for colour-blind readers (Okabe and Ito 2008), dark enough on white and light enough on black.
COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7", "#7f7f7f")
WIDTH, LEFT, ROW = 860, 90, 30


def svg(found: MemoryReport) -> str:
    """A self-contained SVG, one bar per stage, the card as a line."""
    from translator.templating import environment

    top = max(found.gpu.memory_bytes, *(line.card for line in found.stages)) * 1.04
    scale = (WIDTH - LEFT - 110) / top
    bars: list[dict[str, Any]] = []
    for index, line in enumerate(found.stages):
        at, parts = float(LEFT), []
        for kind, colour in zip(KINDS, COLOURS, strict=True):
            width = line.of_kind(kind) * scale
            if width > 0:
                parts.append({"x": at, "width": width, "colour": colour, "kind": kind.value})
                at += width
        slack = max(line.card - sum(line.of_kind(kind) for kind in KINDS), 0.0) * scale
        parts.append({"x": at, "width": slack, "colour": "#bdbdbd", "kind": "reserved, not in use"})
        bars.append({"y": 60 + index * ROW, "label": f"stage {line.stage}", "parts": parts, "gib": line.card / GIB})
    return (
        environment()
        .get_template("memory/bars.svg.j2")
        .render(
            width=WIDTH,
            height=110 + len(bars) * ROW,
            bars=bars,
            row=ROW,
            limit=LEFT + found.gpu.memory_bytes * scale,
            gpu=found.gpu.title,
            card_gib=found.gpu.memory_bytes / GIB,
            title=f"{found.estimate.job.framework} {found.estimate.job.version}",
            legend=[{"kind": kind.value, "colour": colour} for kind, colour in zip(KINDS, COLOURS, strict=True)],
        )
    )
