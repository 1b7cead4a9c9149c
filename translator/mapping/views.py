"""What rows see: native values when reading, spec values and a sink when writing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from translator.ledger import Entry
from translator.native import is_option

if TYPE_CHECKING:
    from translator.mapping.rows import Row


def is_word(value: Any) -> bool:
    """Whether a native value can be one of several choices; a section or a list cannot."""
    return not isinstance(value, dict | list)


class NativeView:
    """Effective native values by address; names of older versions are resolved."""

    __slots__ = ("_names", "_values", "version")

    def __init__(self, values: Mapping[str, Any], names: Mapping[str, str], version: str) -> None:
        self._values = values
        self._names = names
        self.version = version

    def __call__(self, address: str, default: Any = None) -> Any:
        """The value in force at ``address``, or ``default`` when unknown or absent."""
        return self._values.get(self._names.get(address, address), default)

    @property
    def mapping(self) -> Mapping[str, Any]:
        """All values in force, by this version's own addresses."""
        return self._values

    def has(self, address: str) -> bool:
        """Whether this version has the option and its value is known."""
        return self._names.get(address, address) in self._values


class SpecView:
    """Spec values by dotted leaf path."""

    __slots__ = ("_flat", "extras", "nearest", "origins")

    def __init__(
        self,
        flat: Mapping[str, Any],
        origins: Mapping[str, Any] | None = None,
        *,
        nearest: bool = False,
        extras: Mapping[str, Any] | None = None,
    ) -> None:
        self._flat = flat
        # Whether a layout that cannot be said gives way to the nearest one that can run.
        self.nearest = nearest
        self.origins = origins or {}
        # Options of the target itself that have no neutral meaning, as the source states them.
        self.extras = extras or {}

    def __call__(self, leaf: str, default: Any = None) -> Any:
        """The value of ``leaf``, or ``default`` when it is None."""
        value = self._flat.get(leaf)
        return default if value is None else value


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A leaf that the target cannot say as it stands."""

    leaf: str
    entry: Entry
    note: str


@dataclass(slots=True)
class Sink:
    """Collects what rows write: native values, shortfalls, remarks, further files.

    ``known`` are the addresses of the target version, ``choices`` what it accepts where it names the values;
    anything else is not written, and the row must say what is lost. ``filed`` are the rows that added files.
    """

    known: frozenset[str]
    names: Mapping[str, str]
    version: str
    choices: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    shortfalls: dict[str, Shortfall] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    needs: dict[str, str] = field(default_factory=dict)
    filed: list[Row] = field(default_factory=list)

    def has(self, address: str) -> bool:
        """Whether the target version has this option."""
        address = self.names.get(address, address)
        return not is_option(address) or address in self.known

    def put(self, address: str, value: Any, remark: str = "") -> bool:
        """State an option; false when the target version does not have it, or not with this value."""
        address = self.names.get(address, address)
        if is_option(address) and address not in self.known:
            return False
        accepted = self.choices.get(address)
        named = value if isinstance(value, list) else [value]
        if accepted is not None and value is not None and not all(is_word(item) and item in accepted for item in named):
            return False
        self.values[address] = value
        if remark:
            self.remarks[address] = remark
        return True

    def get(self, address: str) -> Any:
        """What has been stated for an option so far; None when nothing has."""
        return self.values.get(self.names.get(address, address))

    def short(self, leaf: str, entry: Entry, note: str) -> None:
        """Admit that ``leaf`` is not said as it stands; the first, most specific word counts."""
        self.shortfalls.setdefault(leaf, Shortfall(leaf, entry, note))

    def need(self, leaf: str, flag: str) -> None:
        """Admit that ``leaf`` cannot be known from the source; ``flag`` supplies it."""
        self.needs.setdefault(leaf, flag)

    def file(self, name: str, text: str) -> None:
        """Add a file that must stand beside the configuration."""
        self.files[name] = text
