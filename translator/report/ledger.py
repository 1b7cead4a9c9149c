"""The ledger by what its lines touch, each line linked to its source and to what the result says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.report.model import LedgerGroup, LedgerRow, Link
from translator.report.words import TOUCHED, shown, text, value_of
from translator.spec.touches import Touches

if TYPE_CHECKING:
    from translator.conversion import Conversion
    from translator.findings import Place
    from translator.ledger import LedgerLine
    from translator.report.code import Files

_MAX_PLACES = 3


def mark(done: Conversion, source: Files, result: Files) -> None:
    """Mark the lines that the ledger speaks of; done before any link is made."""
    for line in done.ledger:
        said = "training" if line.alters_training else "loss" if line.entry.is_loss else "kept"
        if line.where is not None:
            source.mark(line.where, said)
        for place in _places(line, done):
            result.mark(place, said if said != "kept" else "")


def groups(done: Conversion, source: Files, result: Files) -> list[LedgerGroup]:
    """The lines in groups, the gravest first, and in each the losses first."""
    found: list[LedgerGroup] = []
    for touches in Touches:
        lines = [line for line in done.ledger if line.touches is touches]
        if lines:
            ordered = sorted(lines, key=lambda line: -int(line.entry.is_loss))
            rows = [_row(line, done, source, result) for line in ordered]
            found.append(LedgerGroup(touches.value, TOUCHED[touches], rows))
    return found


def _row(line: LedgerLine, done: Conversion, source: Files, result: Files) -> LedgerRow:
    where = source.link(line.where)
    links: list[Link] = []
    for place in _places(line, done):
        link = result.link(place)
        if link is not None and link.anchor and link not in links:
            links.append(link)
            if where is not None and line.where is not None:
                source.connect(line.where, link)
                result.connect(place, where)
    return LedgerRow(
        shown(line.option),
        value_of(line),
        where,
        line.entry.value,
        line.entry.is_loss,
        text(line.target),
        links,
        text(line.note),
    )


def _places(line: LedgerLine, done: Conversion) -> list[Place]:
    """Where the result says what the line is about."""
    if not line.target:
        return []
    found: list[Place] = []
    for leaf in line.fields:
        origin = done.back.origins.get(leaf)
        if origin is not None and origin.place is not None and origin.place not in found:
            found.append(origin.place)
    return found[:_MAX_PLACES]
