"""The mapping table of DeepSpeed with transformers' arguments and model: every option, in exactly one row."""

from __future__ import annotations

from functools import cache

from translator.catalogue import load
from translator.frameworks.deepspeed import arguments, hf_models
from translator.frameworks.deepspeed.addresses import ACCELERATE, ACCELERATE_KEYS
from translator.frameworks.deepspeed.sections import MOMENTUM
from translator.frameworks.deepspeed.table import model, operation, own, parallel, schedule, training
from translator.mapping.rows import Row
from translator.mapping.table import Table

MEANING_ROWS: tuple[Row, ...] = (
    *model.ROWS,
    *parallel.ROWS,
    *training.ROWS,
    *schedule.ROWS,
    *operation.ROWS,
)
# Values that the catalogue names and a row may put; where a parameter belongs to several classes there is no one list.
_CHOOSING = ("zero_optimization.",)


@cache
def known(version: str) -> frozenset[str]:
    """Every address of a version: the JSON's keys, the trainer's arguments, and the entries of a ``config.json``."""
    return frozenset(
        (
            *load("deepspeed", version).addresses(),
            MOMENTUM,
            *(f"{arguments.PREFIX}{name}" for name in arguments.names()),
            *(f"{model.CONFIG}{key}" for key in hf_models.entries()),
        )
    )


@cache
def table(version: str) -> Table:
    """All rows for one version of the catalogue."""
    addresses = known(version)
    owned = {option for row in MEANING_ROWS for option in row.options}
    choices = {
        entry.address: entry.choices
        for entry in load("deepspeed", version).entries
        if entry.choices and entry.address.startswith(_CHOOSING)
    }
    accelerate = {f"{ACCELERATE}{key}" for key in ACCELERATE_KEYS}
    rows = (*MEANING_ROWS, *own.rows((addresses - owned) | accelerate))
    return Table("deepspeed", version, rows, known=addresses, choices=choices)
