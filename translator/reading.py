"""The result of reading a source: the spec, where each leaf comes from, and what there is to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

from translator.errors import SourceError
from translator.findings import Finding, Place
from translator.ignores import Ignores
from translator.native import Given, Native, Origin, is_option

if TYPE_CHECKING:
    from translator.mapping.table import Table
    from translator.spec import Spec


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user adds to the files.

    ``variables`` and ``positional`` feed a shell script; ``launch`` picks one of several (from 1); ``world_size``
    is the number of ranks when the files do not tell; ``overrides`` are spec leaves set by hand (``key=value``);
    ``model`` names the architecture where the source leaves it to another file.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    positional: tuple[str, ...] = ()
    launch: int | None = None
    world_size: int | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None


@dataclass(frozen=True, slots=True)
class LeafOrigin:
    """Where the value of one leaf comes from; ``option`` is the spelling in the source when it is stated."""

    origin: Origin
    option: str | None = None
    place: Place | None = None
    note: str = ""

    def as_dict(self) -> dict[str, object]:
        """The stable JSON form."""
        where = self.place
        return {
            "origin": self.origin.value,
            "option": self.option,
            "where": None if where is None else {"file": where.file, "line": where.line, "column": where.column},
            "note": self.note,
        }


@dataclass
class Reading:
    """A source as the spec; ``native`` and ``table`` are None when the source is a spec itself.

    ``ignored`` is what comments in the source silence; ``by_hand`` are the leaves that the user set beside it.
    """

    framework: str
    version: str
    flat: dict[str, Any]
    origins: dict[str, LeafOrigin]
    native: Native | None = None
    table: Table | None = None
    findings: list[Finding] = field(default_factory=list)
    extras: dict[str, dict[str, Any]] = field(default_factory=dict)
    ignored: Ignores = field(default_factory=Ignores)
    by_hand: frozenset[str] = frozenset()

    @cached_property
    def spec(self) -> Spec:
        """The validated spec. Raises SourceError when a value is impossible for its leaf."""
        return validated(self.flat, self.extras, self.origins)

    def stated(self) -> list[Given]:
        """The options of the source that its catalogue has, each once.

        What a reader notes beside the options and no row owns is where an option that is stated leads to, and no option
        more; where it leads nowhere known, that is worth a word of its own.
        """
        if self.native is None or self.table is None:
            return []
        owned = self.table.row_of_option
        found = self.native.given.values()
        return [given for given in found if given.address in owned or is_option(given.address) or given.missing]

    def check(self) -> None:
        """See that every value is possible for its leaf, as `spec` does; raises the same SourceError.

        The models are only loaded when a value is not plainly sound (start-up time).
        """
        from translator.spec import leaves

        known = leaves()
        doubtful = [
            leaf
            for leaf, value in self.flat.items()
            if value is not None and not (leaf in known and known[leaf].surely_takes(value))
        ]
        if not doubtful:
            return
        spec = self.spec
        for leaf in doubtful:
            # The models take a number in quotes for the number; whoever computes with the leaf does not.
            value = self.flat[leaf]
            if isinstance(value, str) and not isinstance(reduce(getattr, leaf.split("."), spec), str):
                raise _impossible(leaf, value, "a number is expected, without quotes", self.origins)


def validated(flat: dict[str, Any], extras: Mapping[str, Any], origins: Mapping[str, LeafOrigin]) -> Spec:
    """Validate leaves as a spec; the error names the leaf, and the option and place it came from."""
    from pydantic import ValidationError

    from translator.spec import Spec, nest

    try:
        return Spec.model_validate({**nest(flat), "extras": dict(extras)})
    except ValidationError as error:
        first = error.errors()[0]
        leaf = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
        raise _impossible(leaf, first["input"], first["msg"], origins) from None


def _impossible(leaf: str, value: object, why: str, origins: Mapping[str, LeafOrigin]) -> SourceError:
    origin = origins.get(leaf)
    option = f" ({origin.option})" if origin and origin.option else ""
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return SourceError(f"{leaf}{option} cannot be {shown}: {why}", place=origin.place if origin else None)


def read_native(native: Native, table: Table) -> Reading:
    """Map a settled native configuration to the spec, leaf by leaf with its origin."""
    flat = table.read(native.values)
    origins = dict.fromkeys(table.row_of_field, LeafOrigin(Origin.DEFAULT))
    for option, leaf, given in _stated(native, table):
        known = origins[leaf]
        if known.origin is Origin.UNKNOWN or (known.origin is Origin.EXPLICIT and given is None):
            continue
        if given is not None:
            missing = given.missing
            kind = Origin.UNKNOWN if missing else Origin.EXPLICIT
            note = f"{missing.expression}: {missing.note}" if missing else ""
            origins[leaf] = LeafOrigin(kind, given.written, given.place, note)
        elif known.origin is Origin.DEFAULT:
            origins[leaf] = LeafOrigin(Origin.DERIVED, note=native.derived[option])
    reading = Reading(native.framework, native.version, flat, origins, native, table, list(native.findings))
    reading.extras = _extras(native, table)
    return reading


def _stated(native: Native, table: Table) -> Iterator[tuple[str, str, Given | None]]:
    """Stated and derived options in the order of the table, with each leaf that they feed."""
    concerned = {*native.given, *native.derived} & table.row_of_option.keys()
    for address in sorted(concerned, key=table.position.__getitem__):
        for leaf in table.fields_of(address):
            yield address, leaf, native.given.get(address)


def _extras(native: Native, table: Table) -> dict[str, dict[str, Any]]:
    kept: dict[str, Any] = {}
    for address, given in native.given.items():
        row = table.row_of_option.get(address)
        if row is not None and not row.fields and given.missing is None and is_option(address):
            kept[address] = native.values.get(address, given.value)
    for given in native.unknown:
        kept[given.address] = given.value if given.missing is None else given.missing.expression
    return {native.framework: kept} if kept else {}
