"""A framework's table: all its rows for one version, checked when it is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from translator.errors import InternalError
from translator.mapping.rows import Row
from translator.mapping.views import NativeView, Shortfall, Sink, SpecView
from translator.resources import schema_path
from translator.spec import leaves
from translator.spec.index import FILE

Fit = Callable[[Mapping[str, Any], str], tuple[Mapping[str, Any], list[Shortfall]]]


class Table:
    """All rows of one framework for one version.

    ``known`` are the addresses of the version's catalogue, ``choices`` the values that it names; ``names`` maps the
    address that rows use to the one of this version where it was renamed; ``fit`` brings leaves to the nearest layout
    that the version runs, where that is asked for, and says what it changed.
    Raises InternalError unless every spec leaf is owned by exactly one row, no option by two, and every known option
    by one.
    """

    # Whether it only reads: a dialect of the framework, whose options are not those that are written.
    reads_only = False

    def __init__(
        self,
        framework: str,
        version: str,
        rows: Iterable[Row],
        *,
        known: Iterable[str],
        names: Mapping[str, str] | None = None,
        choices: Mapping[str, Iterable[Any]] | None = None,
        fit: Fit | None = None,
    ) -> None:
        self.framework = framework
        self.version = version
        self.rows = tuple(rows)
        self._fit = fit
        self.known = frozenset(known)
        self.choices = {address: frozenset(values) for address, values in (choices or {}).items()}
        self.names = {new: old for new, old in (names or {}).items() if new not in self.known and old in self.known}
        self._options_of: dict[str, tuple[str, ...]] = {}
        self._row_name = {old: new for new, old in self.names.items()}
        self.row_of_option: dict[str, Row] = {}
        self.row_of_field: dict[str, Row] = {}
        self._check()
        self.position = {option: position for position, option in enumerate(self.row_of_option)}

    def _check(self) -> None:
        problems: list[str] = []
        for row in self.rows:
            for spelled in row.options:
                option = self.names.get(spelled, spelled)
                if option in self.row_of_option:
                    problems.append(f"option {option} has two rows")
                self.row_of_option[option] = row
            for leaf in row.fields:
                if leaf in self.row_of_field:
                    problems.append(f"leaf {leaf} has two rows")
                self.row_of_field[leaf] = row
        all_leaves = leaves().keys()
        problems += [f"leaf {leaf} has no row" for leaf in all_leaves if leaf not in self.row_of_field]
        problems += [
            f"row for leaf {leaf}, which {schema_path(FILE)} lacks"
            for leaf in self.row_of_field
            if leaf not in all_leaves
        ]
        problems += [f"option {option} has no row" for option in sorted(self.known) if option not in self.row_of_option]
        if problems:
            shown = "; ".join(problems[:12])
            raise InternalError(f"table of {self.framework} {self.version}: {shown} ({len(problems)} in all)")

    def row_name(self, address: str) -> str:
        """The name by which rows call the option at ``address``."""
        return self._row_name.get(address, address)

    def fields_of(self, address: str) -> tuple[str, ...]:
        """The leaves that the option at ``address`` feeds; empty for an option without a neutral meaning."""
        row = self.row_of_option.get(address)
        return row.fields_of(self._row_name.get(address, address)) if row else ()

    def options_of(self, leaf: str) -> tuple[str, ...]:
        """The addresses of this version that feed ``leaf``."""
        known = self._options_of.get(leaf)
        if known is None:
            row = self.row_of_field[leaf]
            known = tuple(self.names.get(option, option) for option in row.options if leaf in row.fields_of(option))
            self._options_of[leaf] = known
        return known

    def read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Effective native values to spec leaves; leaves that are not stated are None."""
        view = NativeView(values, self.names, self.version)
        flat: dict[str, Any] = dict.fromkeys(leaves())
        for row in self.rows:
            if row.fields:
                flat.update(row.read(view))
        return flat

    def write(
        self,
        flat: Mapping[str, Any],
        origins: Mapping[str, Any] | None = None,
        *,
        nearest: bool = False,
        extras: Mapping[str, Any] | None = None,
    ) -> Sink:
        """Spec leaves to native values, with everything that could not be said."""
        flat, changed = self._fit(flat, self.version) if nearest and self._fit else (flat, [])
        view = SpecView(flat, origins, nearest=nearest, extras=extras)
        sink = Sink(self.known, self.names, self.version, self.choices)
        for shortfall in changed:
            sink.short(shortfall.leaf, shortfall.entry, shortfall.note)
        for row in self.rows:
            if row.fields:
                files = len(sink.files)
                row.write(view, sink)
                if len(sink.files) > files:
                    sink.filed.append(row)
        return sink
