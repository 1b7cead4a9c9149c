"""The catalogue of one framework version: which options exist, with their types and defaults.

Catalogues are generated files (``schemas/<framework>/<version>.json``, one option per line). This module is on
the path of every conversion, so it holds plain slotted dataclasses and imports nothing heavy.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from translator.errors import UsageError
from translator.resources import schema_path

SCHEMA_VERSION = 1

NEGATING_ACTION = "BooleanOptionalAction"
FIELD_ACTION = "field"


@dataclass(frozen=True, slots=True)
class Entry:
    """One option of one version.

    ``address`` is where the value ends up: the argparse ``dest`` or the dotted TOML path. Several argparse actions
    may share a ``dest``; ``key`` (the first flag, or the address where there are no actions) is unique.

    ``kind`` is the kind of one value: ``bool int float str enum list dict custom``; ``custom`` is parsed by an upstream
    function, which ``type_name`` names. ``arity`` is ``None`` for one value, ``0`` for a bare flag, a count, ``?``,
    ``+`` or ``*`` for several, ``**`` for a list of lists. ``choices`` and ``default`` of an enum are member names.

    ``default`` is the value in force when the option is absent. ``dynamic`` names what upstream computes it from
    (``env:WORLD_SIZE``, ``signal``); then ``default_known`` is false and ``default`` is the value without that
    influence, or ``None``. ``conditional`` names the package without which upstream does not offer the option.
    ``source`` is ``file:line`` in the upstream tree.
    """

    key: str
    address: str
    kind: str
    action: str
    flags: tuple[str, ...] = ()
    default: Any = None
    default_known: bool = True
    dynamic: str | None = None
    choices: tuple[Any, ...] | None = None
    arity: str | int | None = None
    const: Any = None
    type_name: str = ""
    optional: bool = False
    conditional: str | None = None
    source: str = ""

    @property
    def takes_value(self) -> bool:
        """Whether a value may follow the flag; a dataclass field of kind bool has bare flags, as tyro makes them."""
        return self.arity != 0 and not (self.action == FIELD_ACTION and self.kind == "bool")

    @property
    def negative_flags(self) -> tuple[str, ...]:
        """The ``--no-x`` spellings of an option that has both polarities; empty otherwise."""
        if self.action == FIELD_ACTION:
            return self.flags[1:]
        if self.action != NEGATING_ACTION:
            return ()
        return tuple(f"--no-{flag[2:]}" for flag in self.flags if f"--no-{flag[2:]}" in self.flags)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Further spellings with the meaning of the first."""
        negative = self.negative_flags
        return tuple(flag for flag in self.flags[1:] if flag not in negative)

    def value_of_flag(self, flag: str) -> Any:
        """What a bare flag stores.

        Raises `ValueError` when the option takes a value.
        """
        if self.takes_value:
            raise ValueError(f"{flag} takes a value")
        if self.action in {NEGATING_ACTION, FIELD_ACTION}:
            return _loose(flag) not in map(_loose, self.negative_flags)
        return {"store_true": True, "store_false": False}.get(self.action, self.const)


def _loose(flag: str) -> str:
    """A flag with hyphens and underscores alike, as tyro takes them (checked with torchtitan 0.2.2)."""
    return flag.replace("-", "_")


class Catalogue:
    """All options of one framework version, indexed by address and by flag."""

    __slots__ = ("_by_address", "_by_flag", "_by_loose_flag", "entries", "framework", "version")

    def __init__(self, framework: str, version: str, entries: tuple[Entry, ...]) -> None:
        self.framework = framework
        self.version = version
        self.entries = entries
        self._by_address: dict[str, tuple[Entry, ...]] = {}
        self._by_flag: dict[str, Entry] = {}
        self._by_loose_flag: dict[str, Entry] = {}
        for entry in entries:
            self._by_address[entry.address] = (*self._by_address.get(entry.address, ()), entry)
            for flag in entry.flags:
                self._by_flag[flag] = entry
                if entry.action == FIELD_ACTION:
                    self._by_loose_flag[_loose(flag)] = entry

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, address: str) -> bool:
        return address in self._by_address

    def by_address(self, address: str) -> tuple[Entry, ...]:
        """Every entry that stores to this address, in upstream's order of registration; empty when unknown."""
        return self._by_address.get(address, ())

    def by_flag(self, flag: str) -> Entry | None:
        """The entry that a command line spelling belongs to."""
        return self._by_flag.get(flag) or self._by_loose_flag.get(_loose(flag))

    def addresses(self) -> tuple[str, ...]:
        """All addresses, sorted."""
        return tuple(self._by_address)

    def flags(self) -> tuple[str, ...]:
        """All command line spellings."""
        return tuple(self._by_flag)

    def first(self, address: str) -> Entry:
        """The entry whose default is in force: argparse takes the one registered first.

        Raises `KeyError` when the address is unknown.
        """
        return self._by_address[address][0]

    def default(self, address: str) -> Any:
        """The default in force for an address. Raises `KeyError` when the address is unknown."""
        return self._by_address[address][0].default


class History:
    """When addresses and flags of a framework came and went, over the supported versions."""

    __slots__ = ("_addresses", "_flags", "drift", "framework", "renames", "versions")

    def __init__(self, document: dict[str, Any]) -> None:
        self.framework: str = document["framework"]
        self.versions: tuple[str, ...] = tuple(document["versions"])
        self._addresses: dict[str, list[str | None]] = document["addresses"]
        self._flags: dict[str, list[str | None]] = document["flags"]
        self.renames: dict[str, list[str]] = document["renames"]
        self.drift: dict[str, dict[str, Any]] = document["drift"]

    def _always(self) -> list[str | None]:
        return [self.versions[0], None]

    def address_span(self, address: str) -> tuple[str, str | None]:
        """First version with the address, and the first one without it again (or ``None``)."""
        since, removed = self._addresses.get(address) or self._always()
        return since or self.versions[0], removed

    def flag_span(self, flag: str) -> tuple[str, str | None]:
        """First version with the flag, and the first one without it again (or ``None``)."""
        since, removed = self._flags.get(flag) or self._always()
        return since or self.versions[0], removed

    def knows_flag(self, flag: str) -> bool:
        """Whether some but not every supported version has the flag."""
        return flag in self._flags

    def knows_address(self, address: str) -> bool:
        """Whether some but not every supported version has the address."""
        return address in self._addresses

    def default_drifts(self, address: str) -> bool:
        """Whether supported versions disagree about the default."""
        return address in self.drift


def decode_entry(row: dict[str, Any]) -> Entry:
    """An entry from its JSON row: absent keys have their default, lists become tuples."""
    kind = row["kind"]
    choices = row.get("choices")
    default = row.get("default")
    if kind == "float" and isinstance(default, str):  # JSON has no infinity
        default = float(default)
    flags = tuple(row.get("flags", ()))
    address = row["address"]
    return Entry(
        flags[0] if flags and row["action"] != FIELD_ACTION else address,
        address,
        kind,
        row["action"],
        flags,
        default,
        "dynamic" not in row,
        row.get("dynamic"),
        None if choices is None else tuple(choices),
        row.get("arity"),
        row.get("const"),
        row.get("type", kind),
        row.get("optional", False),
        row.get("conditional"),
        row.get("source", ""),
    )


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _read(framework: str, name: str) -> Any:
    with schema_path(framework, name).open("rb") as stream:
        return json.loads(stream.read())


@cache
def versions(framework: str) -> tuple[str, ...]:
    """The supported versions of a framework, oldest first.

    Raises `UsageError` for a framework without catalogues.
    """
    folder = schema_path(framework)
    found = [path.stem for path in folder.glob("*.json") if path.stem[:1].isdigit()] if framework.isalnum() else []
    if not found:
        raise UsageError(f"no catalogue for a framework named {framework!r}")
    return tuple(sorted(found, key=_version_key))


@cache
def load(framework: str, version: str) -> Catalogue:
    """The catalogue of one version; read once per process.

    Raises `UsageError` for an unknown framework or version.
    """
    try:
        document = _read(framework, f"{version}.json") if framework.isalnum() and version[:1].isdigit() else None
    except OSError:
        document = None
    if document is None:
        known = ", ".join(versions(framework))
        raise UsageError(f"no catalogue of {framework} {version!r}", fix=f"known versions: {known}")
    return Catalogue(framework, version, tuple(map(decode_entry, document["options"])))


@cache
def history(framework: str) -> History:
    """When options came, went and changed their default, over all supported versions.

    Raises `UsageError` for an unknown framework.
    """
    versions(framework)
    return History(_read(framework, "history.json"))


@cache
def flavors(framework: str, version: str) -> dict[str, dict[str, Any]]:
    """The named model flavors of a version: family -> flavor -> ``{"args_class": str, "args": {field: value}}``.

    Each family also has ``_defaults``: the class's own field defaults by class name. Families that share a table share
    the object. Do not modify the result. Raises `UsageError` for a version without flavor tables.
    """
    try:
        document = (
            _read(framework, f"flavors-{version}.json") if framework.isalnum() and version[:1].isdigit() else None
        )
    except OSError:
        document = None
    if document is None:
        raise UsageError(f"no model flavors for {framework} {version!r}")
    families: dict[str, dict[str, Any]] = document["families"]
    return families | {alias: families[family] for alias, family in document["aliases"].items()}


def nearest(name: str, catalogue: Catalogue, n: int = 3) -> list[str]:
    """Up to ``n`` known spellings that look most like ``name``, best first.

    A name that starts with ``-`` is compared with flags, any other with addresses. Leading dashes do not count: all
    flags have them.
    """
    from rapidfuzz import fuzz, process

    if name.startswith("-"):
        pool = {flag: flag.lstrip("-") for flag in catalogue.flags()}
        word, cutoff = name.replace("_", "-").lstrip("-"), 65
    else:
        pool, word, cutoff = {address: address for address in catalogue.addresses()}, name, 60
    return [hit[2] for hit in process.extract(word, pool, scorer=fuzz.ratio, limit=n, score_cutoff=cutoff)]
