"""What rules look at: one configuration, by spec fields and by the framework's own options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from translator.findings import Edit, Finding, Level, Place
from translator.native import ENVIRONMENT, Given, Origin

if TYPE_CHECKING:
    from translator.reading import Reading


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule says; the rule adds its code.

    ``option`` is an address of the framework, ``field`` a leaf of the spec; either gives the place. ``edits`` would
    mend the source without changing what anything else means.
    """

    message: str
    fix: str = ""
    option: str | None = None
    field: str | None = None
    level: Level | None = None
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Subject:
    """A configuration under examination. Values that the files do not determine read as None."""

    reading: Reading

    @property
    def framework(self) -> str:
        """Name of the framework; ``spec`` for a spec file."""
        return self.reading.framework

    @property
    def title(self) -> str:
        """The framework as a person calls it."""
        from translator import frameworks

        return frameworks.get(self.framework).title if self.reading.native is not None else "the spec"

    @property
    def version(self) -> tuple[int, ...]:
        """The version in a form that compares: ``(0, 18, 0)``."""
        return tuple(int(part) for part in self.reading.version.split(".") if part.isdigit())

    def leaf(self, name: str) -> Any:
        """The value in force of a spec leaf, or None. Raises KeyError for a leaf that no spec has."""
        from translator.spec import leaves

        if name not in leaves():
            raise KeyError(name)
        return self.reading.flat.get(name)

    def size(self, name: str, default: int = 1) -> int:
        """A leaf that holds a whole number, such as a degree; ``default`` where it is not known."""
        value = self.leaf(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def stated(self, name: str) -> bool:
        """Whether the source itself states what feeds a spec leaf, or (by address) an option."""
        origin = self.reading.origins.get(name)
        if origin is not None:
            return origin.origin is Origin.EXPLICIT
        return self.given(name) is not None

    @property
    def values(self) -> Mapping[str, Any]:
        """The framework's options in force by address; empty for a spec file."""
        native = self.reading.native
        return native.values if native is not None else {}

    def value(self, address: str, default: Any = None) -> Any:
        """An option in force by address."""
        return self.values.get(address, default)

    def given(self, address: str) -> Given | None:
        """An option as the source states it, by address."""
        native = self.reading.native
        return native.given.get(address) if native is not None else None

    @property
    def environment(self) -> Mapping[str, str] | None:
        """The environment variables of the launch; None where no launch is seen (a bare configuration file)."""
        given = self.given(ENVIRONMENT)
        if given is not None and isinstance(given.value, dict):
            return given.value
        found = self.value(ENVIRONMENT)
        return found if isinstance(found, dict) else None

    def place(self, *, option: str | None = None, leaf: str | None = None) -> tuple[str | None, Place | None]:
        """How the source spells what an option or a leaf says, and where."""
        if option is not None:
            given = self.given(option)
            return (given.written, given.place) if given is not None else (option, None)
        origin = self.reading.origins.get(leaf) if leaf is not None else None
        return (origin.option, origin.place) if origin is not None else (None, None)

    def finding(self, code: str, level: Level, remark: Remark) -> Finding:
        """A remark as a finding, at its place."""
        option, place = self.place(option=remark.option, leaf=remark.field)
        return Finding(
            code, remark.level or level, remark.message, remark.fix, place, option, remark.field, remark.edits
        )
