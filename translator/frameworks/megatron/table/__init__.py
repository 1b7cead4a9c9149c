"""The mapping table of Megatron-LM: every option of every supported version, in exactly one row."""

from __future__ import annotations

from functools import cache

from translator.catalogue import load
from translator.frameworks.megatron.table import model, moe, operation, parallel, schedule, training
from translator.frameworks.megatron.table.own import OWN_ROWS
from translator.frameworks.megatron.table.renames import RENAMED
from translator.mapping.rows import Row
from translator.mapping.table import Table

MEANING_ROWS: tuple[Row, ...] = (
    *model.ROWS,
    *moe.ROWS,
    *parallel.ROWS,
    *training.ROWS,
    *schedule.ROWS,
    *operation.ROWS,
)


@cache
def table(version: str) -> Table:
    """All rows for one version of the catalogue."""
    entries = load("megatron", version).entries
    choices = {entry.address: entry.choices for entry in entries if entry.choices}
    known = {entry.address for entry in entries}
    return Table("megatron", version, (*MEANING_ROWS, *OWN_ROWS), known=known, names=RENAMED, choices=choices)
