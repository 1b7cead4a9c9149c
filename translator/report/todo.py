"""What a person must still decide before the result is run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from translator.ledger import Entry
from translator.report.model import Decision, Meaning, Side
from translator.report.words import count, gib, shown, text, value_of

if TYPE_CHECKING:
    from translator.conversion import Conversion
    from translator.diffing import Difference
    from translator.findings import Finding
    from translator.ledger import LedgerLine
    from translator.report.code import Files

_WAYS = {
    Entry.NEEDS_INPUT: ("answer", "state it in the result, or convert again with what it asks for"),
    Entry.UNSUPPORTED: ("accept or replace", "do without it, or add it to the target's code"),
    Entry.APPROXIMATED: ("accept", "compare the two values, and accept the nearest one or change it"),
}


def of_conversion(
    done: Conversion,
    files: Files,
    sides: tuple[Side, Side],
    *,
    meanings: Sequence[Meaning],
    checks: Sequence[Finding],
) -> list[Decision]:
    """The open ends of a conversion, the gravest first; ``checks`` are those of the result."""
    left, right = sides
    order = (Entry.NEEDS_INPUT, Entry.UNSUPPORTED, Entry.APPROXIMATED)
    open_lines = [line for line in done.ledger if line.entry is Entry.NEEDS_INPUT or line.alters_training]
    found = [_of_line(line, files) for line in sorted(open_lines, key=lambda line: order.index(line.entry))]
    found += _refused(checks, right)
    found += _meant(meanings)
    found += _fitting(left, right)
    if done.rendered.needed:
        names = ", ".join(done.rendered.needed)
        found.append(Decision("keep together", names, f"the result needs {names} beside it", "write a folder: -o DIR"))
    return found


def of_two(
    differences: Sequence[Difference], files: Files, sides: tuple[Side, Side], meanings: Sequence[Meaning]
) -> list[Decision]:
    """What two configurations leave to decide: every difference that alters training, meant or not.

    ``files`` are those of the left side.
    """
    left, right = sides
    found = [
        Decision(
            "meant or not",
            each.field,
            f"{left.label} says {_said(each.left)}, {right.label} says {_said(each.right)}",
            "make both say the same, or note why they differ",
            files.link(each.left_origin.place) if each.left_origin is not None else None,
        )
        for each in differences
        if each.alters_training
    ]
    return [*found, *_meant(meanings), *_fitting(left, right)]


def _said(value: object) -> str:
    return "nothing" if value is None else shown(value)


def _of_line(line: LedgerLine, files: Files) -> Decision:
    kind, way = _WAYS[line.entry]
    subject = f"{shown(line.option)} {value_of(line)}".strip()
    told = line.note or f"{line.entry.value} in the result"
    said = f"{told}; the result says {line.target}" if line.target else told
    return Decision(kind, subject, text(said), way, files.link(line.where))


def _refused(findings: Iterable[Finding], side: Side) -> list[Decision]:
    return [
        Decision("mend", f"{each.code} {shown(each.option)}".strip(), text(each.message), text(each.fix))
        for each in findings
        if each.level.value == "error"
    ]


def _meant(meanings: Iterable[Meaning]) -> list[Decision]:
    return [
        Decision("align or accept", each.code, each.title, each.fix, each.where)
        for each in meanings
        if each.level == "warning"
    ]


def _fitting(left: Side, right: Side) -> list[Decision]:
    """A side that does not fit on the card, or just so; of what the other side does as well, the result's is told."""
    memory = right.memory
    if memory is None or memory.verdict == "fits":
        return []
    worst = memory.worst
    said = (
        f"{worst.label} takes {gib(worst.card_bytes)} of {gib(memory.capacity_bytes)} GiB on {memory.gpu}: "
        f"{right.title} {memory.verdict}"
    )
    if left.memory is not None and left.memory.verdict != "fits":
        said = f"{said}, and so does {left.title} ({left.memory.verdict})" if _same(left, right) else said
    way = memory.changes[0] if memory.changes else "another card, or a layout that splits more"
    more = len(memory.changes) - 1
    return [Decision("make it fit", memory.gpu, said, f"{way} ({count(more, 'other way')})" if more > 0 else way)]


def _same(left: Side, right: Side) -> bool:
    return left.memory is not None and right.memory is not None and left.memory.verdict == right.memory.verdict
