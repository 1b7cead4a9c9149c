"""The configuration while it is settled: values by address, with the reason for every derived one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.findings import Finding, Level

if TYPE_CHECKING:
    from translator.frameworks.torchtitan.models import Family
    from translator.native import Native

Number = int | float
_OLD = "0.1.0"


class State:
    """A native configuration and what is known of its model.

    ``family`` is the family of the model, ``layers`` its number of layers; None when they are not known.
    """

    __slots__ = ("family", "layers", "native")

    def __init__(self, native: Native) -> None:
        self.native = native
        self.family: Family | None = None
        self.layers: int | None = None

    @property
    def new(self) -> bool:
        """Whether this is later than 0.1.0."""
        return self.native.version != _OLD

    def get(self, address: str) -> object:
        """The value in force, or None."""
        return self.native.values.get(address)

    def number(self, address: str, default: int = 0) -> int:
        """A whole number in force, or the default when it is absent, None or something else."""
        value = self.native.values.get(address)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def real(self, address: str) -> float | None:
        """A number in force, or None."""
        value = self.native.values.get(address)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def text(self, address: str) -> str:
        """A string in force; empty when it is absent."""
        value = self.native.values.get(address)
        return value if isinstance(value, str) else ""

    def names(self, address: str) -> list[str]:
        """A list of strings in force; empty when it is absent."""
        value = self.native.values.get(address)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    def put(self, address: str, value: object, reason: str) -> None:
        """A derived value, with the upstream line that derives it."""
        self.native.values[address] = value
        self.native.derived[address] = reason

    def drop(self, address: str) -> None:
        """A value that depends on what is not known."""
        self.native.values.pop(address, None)

    def say(self, code: str, message: str, address: str, fix: str = "", level: Level = Level.ERROR) -> None:
        """A finding about an option, at its place if it is stated."""
        given = self.native.given.get(address)
        place, option = (given.place, given.written) if given is not None else (None, address)
        self.native.findings.append(Finding(code, level, message, fix, place, option))
