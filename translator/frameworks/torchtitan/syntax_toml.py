"""TOML of torchtitan up to 0.2.2: text to native options, each with its place, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from translator.errors import SourceError
from translator.findings import Edit, Finding, Level, Place
from translator.frameworks.torchtitan import addresses
from translator.frameworks.torchtitan.launch_facts import hints, read_hints
from translator.frameworks.torchtitan.values import near, shown
from translator.frameworks.torchtitan.writer_toml import write_toml
from translator.native import Given, Native

if TYPE_CHECKING:
    from translator.catalogue import Catalogue
    from translator.frameworks.torchtitan.positions import Path, Positions
    from translator.frameworks.torchtitan.renames import Rename

__all__ = [
    "DEFAULT_VERSION",
    "VERSIONS",
    "guess_version",
    "hints",
    "parse",
    "paths",
    "read_source",
    "sniff",
    "write_toml",
]

VERSIONS = ("0.1.0", "0.2.2")
# Far above any real file, and low enough that the slowest takes seconds.
MAX_CHARACTERS = 256 * 1024
MAX_PARTS = 100
DEFAULT_VERSION = "0.2.2"
_SECTIONS = (
    "[job]",
    "[profiling]",
    "[metrics]",
    "[model]",
    "[optimizer]",
    "[lr_scheduler]",
    "[training]",
    "[parallelism]",
    "[checkpoint]",
    "[activation_checkpoint]",
)
CUSTOM_IMPORT = "experimental.custom_import"
CUSTOM_CONFIG = ("job.custom_config_module", "experimental.custom_args_module")


def sniff(path: str, text: str) -> float:
    """How surely a text is a torchtitan TOML, from 0 to 1, by its name and section headers."""
    headers = {line.strip() for line in text.splitlines() if line.startswith("[")}
    known = sum(section in headers for section in _SECTIONS)
    if not known:
        return 0.0
    return min(1.0, 0.22 * known + (0.2 if path.endswith(".toml") else 0.0))


def _is_deep(line: str) -> bool:
    """Whether a line names something deeper than any option; reading it takes time with the square of its depth."""
    return line.partition("=")[0].count(".") > MAX_PARTS and line.lstrip()[:1] not in ("#", '"', "'")


def parse(path: str, text: str) -> dict[str, object]:
    """The tables of a TOML text. Raises `SourceError` with line and column when it is no TOML."""
    import tomllib

    if len(text) > MAX_CHARACTERS:
        raise SourceError(f"{path} is too large for a configuration of torchtitan")
    deep = next((number for number, line in enumerate(text.splitlines(), 1) if _is_deep(line)), None)
    if deep is not None:
        raise SourceError("a name has too many parts", place=Place(path, deep, 1))
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        where = re.search(r" \(at line (\d+), column (\d+)\)$", message)
        if where:
            place = Place(path, int(where[1]), int(where[2]))
            message = message[: where.start()]
        else:
            place = Place(path, text.count("\n") + 1, 1)
        raise SourceError(f"not valid TOML: {message}", place=place) from None
    except RecursionError:
        raise SourceError(f"{path} is nested too deeply") from None
    except ValueError as error:
        raise SourceError(f"{path} is not valid TOML: {error}") from None


def paths(path: str, text: str) -> list[str]:
    """The dotted paths of all values of a TOML text, for `guess_version`. Raises `SourceError` as `parse` does."""
    from translator.frameworks.torchtitan.positions import flat_items

    return [".".join(parts) for parts, _ in flat_items(parse(path, text))]


def guess_version(given: Iterable[str], text: str = "") -> str:
    """The version that a file with these dotted paths was written for: the one that knows more of the names.

    A hint in ``text`` decides; without a difference it is the newest. Layouts from before the first release count for
    0.1.0.
    """
    said = hints(line for line in text.splitlines() if line.startswith("#")).get("version")
    if said in VERSIONS:
        return said
    from translator.catalogue import load
    from translator.frameworks.torchtitan.renames import TO_010, TO_022

    new = load("torchtitan", "0.2.2")
    votes = 0
    for name in given:
        if name in new:
            votes += name not in TO_022 and name in _only_new()
        elif name in TO_022 or name in TO_010:
            votes -= 1
    return "0.1.0" if votes < 0 else DEFAULT_VERSION


def _only_new() -> frozenset[str]:
    from translator.catalogue import load

    return frozenset(load("torchtitan", "0.2.2").addresses()) - frozenset(load("torchtitan", "0.1.0").addresses())


def read_source(
    path: str,
    text: str,
    *,
    version: str = DEFAULT_VERSION,
    world_size: int | None = None,
    read_sibling: Callable[[str], str | None] | None = None,
) -> Native:
    """Read a torchtitan TOML: every value with its place, typed by the catalogue of the version.

    ``world_size`` outweighs a hint in the file. ``read_sibling`` gives the text of a file beside it, for the module
    that ``experimental.custom_import`` names. Raises `SourceError` when the text is no TOML; whatever else is wrong is
    a finding, and options that cannot be used are kept in ``Native.unknown``.
    """
    reader = _Reader(path, text, version)
    reader.read_options()
    read_hints(reader.native, reader.positions.comments, path, world_size)
    reader.read_custom_model(read_sibling)
    return reader.native


class _Reader:
    """One reading of one text."""

    def __init__(self, path: str, text: str, version: str) -> None:
        from translator.catalogue import load
        from translator.frameworks.torchtitan.positions import locate

        self.path = path
        self.version = version
        self.native = Native("torchtitan", version)
        self.tables = parse(path, text)
        self.positions: Positions = locate(text.removeprefix("\ufeff"))
        self.catalogue: Catalogue = load("torchtitan", version)
        self.sections = _sections(self.catalogue)
        self.extended = any(self._stated(address) for address in CUSTOM_CONFIG)
        self.reported: set[Path] = set()
        self.renamed: list[tuple[Path, object]] = []
        if text.startswith("\ufeff"):
            self.say("R101", Level.ERROR, "the file begins with a byte order mark, which torchtitan refuses", ())

    def _stated(self, address: str) -> object:
        section, _, name = address.partition(".")
        table = self.tables.get(section)
        return table.get(name) if isinstance(table, Mapping) else None

    def place(self, parts: Path) -> Place | None:
        """Where the key of a value stands; that of the nearest enclosing one if it has none of its own."""
        for depth in range(len(parts), 0, -1):
            span = self.positions.keys.get(parts[:depth])
            if span is not None:
                return Place(self.path, *span)
        return None

    def say(  # noqa: PLR0917
        self, code: str, level: Level, message: str, parts: Path, fix: str = "", edits: tuple[Edit, ...] = ()
    ) -> None:
        """Add a finding about the value at a path."""
        option = ".".join(parts) or None
        self.native.findings.append(
            Finding(code, level, message, fix, self.place(parts) or Place(self.path, 1, 1), option, edits=edits)
        )

    def _renaming(self, parts: Path, address: str) -> tuple[Edit, ...]:
        """The edit that gives a key its name of today, where that is in the same table."""
        section, _, name = address.rpartition(".")
        place = self.place(parts)
        return (Edit(place, parts[-1], name),) if place is not None and section == ".".join(parts[:-1]) else ()

    def keep(self, parts: Path, value: object) -> None:
        """Keep a value that is no usable option."""
        name = ".".join(parts)
        self.native.unknown.append(Given(name, value, name, self.place(parts)))

    def read_options(self) -> None:
        """Every value of the file, as an option, a renamed one, or unknown."""
        from translator.frameworks.torchtitan.positions import flat_items

        for parts, value in flat_items(self.tables):
            name = ".".join(parts)
            if name in self.catalogue:
                self.option(name, value, parts)
            elif name in self.sections:
                if value != {}:
                    self.say("R100", Level.ERROR, f"{name} is a section, not a value", parts, f"write [{name}]")
                    self.keep(parts, value)
            elif self._inside_option(parts):
                self.keep(parts, value)
            else:
                self.unknown(name, value, parts)
        for parts, value in self.renamed:
            self.old_name(parts, value)

    def _inside_option(self, parts: Path) -> bool:
        for depth in range(1, len(parts)):
            outer = ".".join(parts[:depth])
            if outer in self.catalogue:
                if parts[:depth] not in self.reported:
                    self.reported.add(parts[:depth])
                    self.say("R100", Level.ERROR, f"{outer} is an option, not a section", parts[:depth])
                return True
        return False

    def option(self, name: str, value: object, parts: Path, written: str | None = None) -> bool:
        """A known option; false when its value cannot be used."""
        from translator.frameworks.torchtitan.values import UNUSABLE, describe, typed

        entry = self.catalogue.first(name)
        checked = typed(entry, value)
        wanted = describe(entry)
        if checked.value is UNUSABLE:
            self.say(
                "R096", Level.ERROR, f"{name} cannot be {shown(value)}: {wanted} is expected", parts, f"write {wanted}"
            )
            self.keep(parts, value)
            return False
        if not checked.known:
            self.say("R097", Level.ERROR, f"{name} cannot be {shown(checked.value)}", parts, f"write {wanted}")
            self.keep(parts, value)
            return False
        if not checked.exact:
            from translator.frameworks.torchtitan.writer_toml import inline

            # For Python, true is 1.
            same = isinstance(value, (bool, int)) and isinstance(checked.value, (bool, int, float))
            message = f"{name} is {shown(value)}, where {wanted} is expected; read as {shown(checked.value)}"
            level = Level.WARNING if same else Level.ERROR
            self.say("R095", level, message, parts, f"write {inline(checked.value)}")
        self.native.given[name] = Given(name, checked.value, written or name, self.place(parts))
        return True

    def unknown(self, name: str, value: object, parts: Path) -> None:
        """A value that the catalogue does not have under that name."""
        from translator.frameworks.torchtitan.renames import TO_010, newer

        if self.version == "0.1.0" and name in TO_010:
            self.renamed.append((parts, value))
            return
        self.keep(parts, value)
        rename = newer(name, self.version)
        if rename is not None and not (self.extended and rename.address is None):
            self._other_version(name, rename, parts)
        elif not self._later_name(name, parts):
            self._never_heard(name, parts)

    def _other_version(self, name: str, rename: Rename, parts: Path) -> None:
        address, remark = rename.address, f" ({rename.note})" if rename.note else ""
        if address is None:
            message = f"{name} is an option of an older torchtitan, and {self.version} has none in its place{remark}"
            self.say("R094", Level.ERROR, message, parts, "drop it, or read the file as the older version")
        else:
            message = f"{name} is the name of an older torchtitan; {self.version} calls it {address}{remark}"
            fix = f"write {address}, or read the file as the older version"
            same = rename.convert is None and not rename.note
            self.say("R093", Level.ERROR, message, parts, fix, self._renaming(parts, address) if same else ())

    def _later_name(self, name: str, parts: Path) -> bool:
        from translator.catalogue import load
        from translator.frameworks.torchtitan.renames import FROM_022

        later = [version for version in VERSIONS if version > self.version and name in load("torchtitan", version)]
        if not later:
            return False
        old = FROM_022.get(name)
        if old is not None:
            self.say("R093", Level.ERROR, f"{name} is the name of {later[0]}; {self.version} calls it {old}", parts)
        else:
            self.say("R094", Level.ERROR, f"{name} came with {later[0]}; {self.version} does not have it", parts)
        return True

    def _never_heard(self, name: str, parts: Path) -> None:
        section = next((parts[:n] for n in range(1, len(parts) + 1) if ".".join(parts[:n]) not in self.sections), parts)
        whole = len(section) < len(parts) or len(parts) == 1
        if whole:
            if section in self.reported:
                return
            self.reported.add(section)
        label = ".".join(section if whole else parts)
        if self.extended:
            message = f"{label} is unknown; the module named in job.custom_config_module may add it"
            self.say("R098", Level.NOTE, message, section if whole else parts)
        elif whole:
            self._refused("R091", f"section [{label}]", section, near(label, self.sections))
        else:
            self._refused("R090", f"option {label}", parts, near(name, self.catalogue.addresses()))

    def _refused(self, code: str, what: str, parts: Path, nearest: str) -> None:
        from translator.frameworks.torchtitan.models import family

        name = self._stated("model.name")
        # A model beside torchtitan's own brings options of its own, by a module that the command line may name.
        foreign = isinstance(name, str) and family(name, self.version) is None
        fix = "name the module that adds it in job.custom_config_module" if foreign else "remove it"
        level = Level.WARNING if foreign else Level.ERROR
        self.say(code, level, f"torchtitan {self.version} has no {what}", parts, nearest or fix)

    def old_name(self, parts: Path, value: object) -> None:
        """An option of the layouts before 0.1.0, read as what it became."""
        from translator.frameworks.torchtitan.renames import TO_010

        name = ".".join(parts)
        rename = TO_010[name]
        address = rename.address
        remark = f" ({rename.note})" if rename.note else ""
        if address is None:
            self.keep(parts, value)
            self.say("R094", Level.WARNING, f"{name} has no successor in 0.1.0{remark}", parts, "remove it")
            return
        new = value if rename.convert is None else rename.convert(value)
        if new is None:  # the old switch was off: nothing to say
            self.say("R092", Level.WARNING, f"{name} is called {address} since 0.1.0{remark}", parts, "remove it")
            self.keep(parts, value)
            return
        if address in self.native.given:
            self.keep(parts, value)
            self.say(
                "R092", Level.WARNING, f"{name} is ignored beside {address}, its name since 0.1.0", parts, "remove it"
            )
            return
        if self.option(address, new, parts, written=name):
            message = f"{name} is called {address} since 0.1.0; read as that{remark}"
            edits = self._renaming(parts, address) if rename.convert is None and not rename.note else ()
            self.say("R092", Level.WARNING, message, parts, f"write {address}", edits)

    def read_custom_model(self, read_sibling: Callable[[str], str | None] | None) -> None:
        """Flavors that an imported module beside the file registers, read without running it."""
        given = self.native.given.get(CUSTOM_IMPORT)
        module = given.value if given is not None else None
        if given is None or not isinstance(module, str) or not module:
            return
        from translator.frameworks.torchtitan.custom_model import read_custom_model

        text = read_sibling(f"{module.replace('.', '/')}.py") if read_sibling is not None else None
        found = {} if text is None else read_custom_model(text, self.version)
        if not found:
            reason = (
                "is not beside the file" if text is None else "registers no flavor that can be read without running it"
            )
            message = f"the module {module} {reason}; models that it registers are not known"
            self.say("R099", Level.WARNING, message, tuple(CUSTOM_IMPORT.split(".")))
            return
        named = {f"{name}/{flavor}": values for (name, flavor), values in found.items()}
        self.native.given[addresses.MODEL_ARGUMENTS] = Given(
            addresses.MODEL_ARGUMENTS, named, given.written, given.place
        )


def _sections(catalogue: Catalogue) -> set[str]:
    found: set[str] = set()
    for address in catalogue.addresses():
        parts = address.split(".")
        found.update(".".join(parts[:depth]) for depth in range(1, len(parts)))
    return found
