"""The mapping table of torchtitan's TOML versions: every option, in exactly one row.

Rows use the names of 0.2.2; `NAMES` leads to those of 0.1.0.
"""

from __future__ import annotations

from functools import cache

from translator.catalogue import load
from translator.frameworks.torchtitan import nearest
from translator.frameworks.torchtitan.renames import TO_022
from translator.frameworks.torchtitan.table import model, operation, parallel, schedule, training
from translator.frameworks.torchtitan.table.own import OWN_ROWS
from translator.mapping.rows import Row
from translator.mapping.table import Table

MEANING_ROWS: tuple[Row, ...] = (
    *model.ROWS,
    *parallel.ROWS,
    *training.ROWS,
    *schedule.ROWS,
    *operation.ROWS,
)
# Options that one version says by another option altogether are rows of their own, not renames.
NAMES = {
    rename.address: old
    for old, rename in TO_022.items()
    if rename.address is not None
    and old not in ("parallelism.pipeline_parallel_split_points", "mx.use_fp8_dim1_cast_triton_kernel")
}


@cache
def table(version: str) -> Table:
    """All rows for one version of the catalogue."""
    entries = load("torchtitan", version).entries
    choices = {entry.address: entry.choices for entry in entries if entry.choices}
    known = {entry.address for entry in entries}
    rows = (*MEANING_ROWS, *OWN_ROWS)
    return Table("torchtitan", version, rows, known=known, names=NAMES, choices=choices, fit=nearest.fit)
