"""The mapping table of torchtitan 0.3.0, whose configurations are Python: every option, in exactly one row.

What the TOML versions say under the same name and with the same meaning are the very rows of `table`.
"""

from __future__ import annotations

from functools import cache

from translator.catalogue import load
from translator.frameworks.torchtitan.renames import TO_030
from translator.frameworks.torchtitan.table import model as toml_model
from translator.frameworks.torchtitan.table import operation as toml_operation
from translator.frameworks.torchtitan.table import parallel as toml_parallel
from translator.frameworks.torchtitan.table import schedule as toml_schedule
from translator.frameworks.torchtitan.table import training as toml_training
from translator.frameworks.torchtitan.table_030 import model, operation, own, parallel, quantization, training
from translator.frameworks.torchtitan.table_030.quantization import CONVERTERS
from translator.mapping.rows import Row
from translator.mapping.table import Table

MEANING_ROWS: tuple[Row, ...] = (
    *model.ROWS,
    *toml_model.SHARED,
    *parallel.ROWS,
    *toml_parallel.SHARED,
    *training.ROWS,
    *quantization.ROWS,
    *toml_training.SHARED,
    *toml_schedule.ROWS,
    *operation.ROWS,
    *toml_operation.SHARED,
)


@cache
def table(version: str) -> Table:
    """All rows for one version of the catalogue."""
    entries = load("torchtitan", version).entries
    # Converters are a list of classes with their fields, which the row builds itself.
    choices = {entry.address: entry.choices for entry in entries if entry.choices and entry.address != CONVERTERS}
    rows = (*MEANING_ROWS, *own.OWN_ROWS)
    # Fields of classes that can be swapped are options too, whichever class the catalogue shows at the place.
    known = {entry.address for entry in entries} | {option for row in rows for option in row.options}
    return Table("torchtitan", version, rows, known=known - own.NOT_HERE, names=TO_030, choices=choices)
