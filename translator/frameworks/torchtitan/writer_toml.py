"""Writes torchtitan TOML: tables in the order of the framework's own files, comments that line up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tomlkit.items import Item

# The order of tables in the files that torchtitan ships; the rest by name.
TABLE_ORDER = (
    "job",
    "profiling",
    "metrics",
    "model",
    "optimizer",
    "lr_scheduler",
    "training",
    "training.dataloader",
    "parallelism",
    "checkpoint",
    "activation_checkpoint",
    "compile",
    "quantize.linear.float8",
    "quantize.linear.mx",
    "quantize.grouped_mm.float8",
    "quantize.grouped_mm.mx",
    "float8",
    "mx",
    "comm",
    "memory_estimation",
    "fault_tolerance",
    "validation",
    "validation.dataloader",
    "debug",
    "experimental",
)
COMMENT_COLUMN = 44
LONGEST_LINE = 100


def write_toml(values: Sequence[tuple[str, object, str | None]], header: Sequence[str]) -> str:
    """TOML text for (address, value, comment) triples, in the order given within each table.

    ``header`` are the lines of the comment on top, without ``#``. Strings are escaped, lists of lists have a line per
    inner list, and what is None is left out, for TOML has no null.
    """
    tables: dict[str, list[tuple[str, object, str | None]]] = {}
    for address, value, comment in values:
        if value is not None:
            section, _, name = address.rpartition(".")
            tables.setdefault(section, []).append((name, value, comment))
    lines = [f"# {_one_line(line)}".rstrip() for line in header]
    for section in sorted(tables, key=_rank):
        if lines:
            lines.append("")
        if section:
            lines.append(f"[{'.'.join(map(_key, section.split('.')))}]")
        lines.extend(_lines(tables[section]))
    return "\n".join(lines) + "\n"


def _rank(section: str) -> tuple[int, str]:
    if not section:
        return -1, ""
    return (TABLE_ORDER.index(section) if section in TABLE_ORDER else len(TABLE_ORDER)), section


def _lines(rows: Sequence[tuple[str, object, str | None]]) -> list[str]:
    texts = [(f"{_key(name)} = {_value(value)}", comment) for name, value, comment in rows]
    widths = [len(text) for text, comment in texts if comment and "\n" not in text]
    column = max([COMMENT_COLUMN, *(width for width in widths if width < LONGEST_LINE)])
    lines: list[str] = []
    for text, comment in texts:
        if not comment:
            lines.append(text)
        elif "\n" in text or len(text) > LONGEST_LINE:
            lines.extend([f"# {_one_line(comment)}", text])
        else:
            lines.append(f"{text.ljust(column)}  # {_one_line(comment)}")
    return lines


def _one_line(text: str) -> str:
    """A comment may not hold control characters."""
    return "".join(char if char.isprintable() else " " for char in text)


def _key(name: str) -> str:
    from tomlkit import key

    return key(name).as_string()


def _value(value: object) -> str:
    """A value on its line; lists of lists have a line per inner list, tables are inline ones."""
    if isinstance(value, (list, tuple)) and any(isinstance(item, (list, tuple)) for item in value):
        inner = ",\n".join(f"    {inline(item)}" for item in value)
        return f"[\n{inner},\n]"
    return inline(value)


def inline(value: object) -> str:
    """A value as TOML has it, on one line."""
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(name)} = {inline(item)}" for name, item in value.items() if item is not None)
        return f"{{{inner}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(inline, value))}]"
    return _item(value).as_string()


def _item(value: Any) -> Item:
    from tomlkit import item

    made: Item = item(value)
    return made
