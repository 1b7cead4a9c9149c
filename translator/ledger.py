"""The ledger: what became of every option of the source, one entry each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from translator.findings import Place
from translator.spec.touches import Touches


class Entry(StrEnum):
    """The fate of an option, from the best to the worst for a reader who wants the same run."""

    EXACT = "exact"
    DEFAULT = "default"
    ADAPTED = "adapted"
    IRRELEVANT = "irrelevant"
    APPROXIMATED = "approximated"
    UNSUPPORTED = "unsupported"
    NEEDS_INPUT = "needs-input"

    @property
    def is_loss(self) -> bool:
        """Whether something of the option's meaning is not in the result."""
        return self in (Entry.APPROXIMATED, Entry.UNSUPPORTED, Entry.NEEDS_INPUT)


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One option of the source (or one default of it that the target does not share) and its fate.

    ``option`` is as written; ``where`` is None for a default. ``target`` is what the result says, such as
    ``parallelism.tensor_parallel_degree = 4``; empty when it says nothing.
    """

    option: str
    value: object
    where: Place | None
    entry: Entry
    touches: Touches
    target: str
    note: str
    fields: tuple[str, ...] = ()

    @property
    def alters_training(self) -> bool:
        """Whether the numbers that the model sees may differ because of this line."""
        return self.entry.is_loss and self.touches is Touches.TRAINING

    def as_dict(self) -> dict[str, object]:
        """The stable JSON form."""
        where = self.where
        return {
            "option": self.option,
            "value": self.value,
            "where": None if where is None else {"file": where.file, "line": where.line, "column": where.column},
            "entry": self.entry.value,
            "touches": self.touches.value,
            "target": self.target,
            "note": self.note,
        }


def summary(lines: list[LedgerLine]) -> dict[str, int]:
    """How many lines ended as what; the keys of the JSON form (``needs_input`` with an underscore)."""
    counts = {entry.value.replace("-", "_"): 0 for entry in Entry}
    for line in lines:
        counts[line.entry.value.replace("-", "_")] += 1
    return counts
