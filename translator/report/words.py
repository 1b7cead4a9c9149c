"""Words and numbers as a report shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.printable import one_line
from translator.spec.touches import Touches

if TYPE_CHECKING:
    from translator.ledger import LedgerLine

_VALUE, _TEXT = 300, 2000
TOUCHED = {
    Touches.TRAINING: "Touches training",
    Touches.MEMORY: "Touches memory",
    Touches.SPEED: "Touches speed",
    Touches.OPERATION: "Touches operation: data, checkpoints, logging",
    Touches.NOTHING: "Touches nothing",
}
ALTERED = {
    Touches.TRAINING: "Differences that alter training",
    Touches.MEMORY: "Differences that alter memory",
    Touches.SPEED: "Differences that alter speed",
    Touches.OPERATION: "Differences that alter operation: data, checkpoints, logging",
    Touches.NOTHING: "Differences that alter nothing",
}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def shown(value: object) -> str:
    """A value in one line, not too long."""
    if isinstance(value, dict):
        value = " ".join(f"{key}={item}" for key, item in value.items())
    elif isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    return one_line("" if value is None else str(value), _VALUE)


def text(said: str) -> str:
    """A sentence in one line, not too long."""
    return one_line(said, _TEXT)


def value_of(line: LedgerLine) -> str:
    """The value of an option beside its name; a bare flag is its own value."""
    if str(line.value) == line.option or (isinstance(line.value, bool) and line.where is not None):
        return ""
    return shown(line.value)


def amount(number_bytes: float) -> str:
    """Bytes in the unit that leaves one to four digits before the point."""
    unit = 0
    while number_bytes >= 1000 and unit < len(_UNITS) - 1:
        number_bytes /= 1024
        unit += 1
    return f"{number_bytes:.3g} {_UNITS[unit]}"


def gib(number_bytes: float) -> str:
    """Bytes in GiB."""
    return f"{number_bytes / 2**30:.1f}"


def duration(seconds: float) -> str:
    """Seconds in s, ms or µs."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def count(number: float, singular: str, plural: str = "") -> str:
    """A number with its noun: 1 loss, 2,000 losses."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"
