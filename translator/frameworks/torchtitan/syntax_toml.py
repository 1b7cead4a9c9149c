"""TOML of torchtitan up to 0.2.2: text to native options, each with its place, and back.

``# ttx: key=value ...`` comments say what a configuration file cannot: ``world_size`` (also ``nodes`` and
``gpus_per_node``), the ``version`` it was written for, and variables of the environment (``env:NAME=value``,
percent-encoded).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from translator.errors import SourceError
from translator.findings import Finding, Level, Place
from translator.frameworks.torchtitan import addresses
from translator.frameworks.torchtitan.writer_toml import write_toml
from translator.native import ENVIRONMENT, GPUS_PER_NODE, NODES, WORLD_SIZE, Given, Native

if TYPE_CHECKING:
    from translator.catalogue import Catalogue
    from translator.frameworks.torchtitan.positions import Path, Positions

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
DEFAULT_VERSION = "0.2.2"
_HINT = "ttx:"
# Keys of hints that are environment variables; their values are percent-encoded.
VARIABLE = "env:"
_HINTED = {"world_size": WORLD_SIZE, "nodes": NODES, "gpus_per_node": GPUS_PER_NODE}
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


def parse(path: str, text: str) -> dict[str, object]:
    """The tables of a TOML text. Raises `SourceError` with line and column when it is no TOML."""
    import tomllib

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


def hints(comments: Iterable[str]) -> dict[str, str]:
    """What ``# ttx: key=value ...`` comments say."""
    found: dict[str, str] = {}
    for comment in comments:
        body = comment.lstrip("#").strip()
        if body.startswith(_HINT):
            pairs = (word.partition("=") for word in body.removeprefix(_HINT).split())
            found.update({key: value for key, equals, value in pairs if equals})
    return found


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
    reader.read_hints(world_size)
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

    def say(self, code: str, level: Level, message: str, parts: Path, fix: str = "") -> None:
        """Add a finding about the value at a path."""
        option = ".".join(parts) or None
        self.native.findings.append(
            Finding(code, level, message, fix, self.place(parts) or Place(self.path, 1, 1), option)
        )

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
            self.say("R096", Level.ERROR, f"{name} cannot be {_shown(value)}: {wanted} is expected", parts)
            self.keep(parts, value)
            return False
        if not checked.known:
            self.say("R097", Level.ERROR, f"{name} cannot be {_shown(checked.value)}", parts, f"write {wanted}")
            self.keep(parts, value)
            return False
        if not checked.exact:
            shown = _shown(checked.value)
            self.say(
                "R095", Level.ERROR, f"{name} is {_shown(value)}, where {wanted} is expected; read as {shown}", parts
            )
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
            self._other_version(name, rename.address, rename.note, parts)
        elif not self._later_name(name, parts):
            self._never_heard(name, parts)

    def _other_version(self, name: str, address: str | None, note: str, parts: Path) -> None:
        remark = f" ({note})" if note else ""
        if address is None:
            message = f"{name} is an option of an older torchtitan, and {self.version} has none in its place{remark}"
            self.say("R094", Level.ERROR, message, parts, "drop it, or read the file as the older version")
        else:
            message = f"{name} is the name of an older torchtitan; {self.version} calls it {address}{remark}"
            self.say("R093", Level.ERROR, message, parts, f"write {address}, or read the file as the older version")

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
        shown = ".".join(section if whole else parts)
        if self.extended:
            message = f"{shown} is unknown; the module named in job.custom_config_module may add it"
            self.say("R098", Level.NOTE, message, section if whole else parts)
        elif whole:
            near = self._near(shown, self.sections)
            self.say("R091", Level.ERROR, f"torchtitan {self.version} has no section [{shown}]", section, near)
        else:
            near = self._near(name, self.catalogue.addresses())
            self.say("R090", Level.ERROR, f"torchtitan {self.version} has no option {shown}", parts, near)

    @staticmethod
    def _near(name: str, pool: Iterable[str]) -> str:
        from rapidfuzz import fuzz, process

        hits = process.extract(name, list(pool), scorer=fuzz.ratio, limit=3, score_cutoff=70)
        return "did you mean " + " or ".join(hit[0] for hit in hits) + "?" if hits else ""

    def old_name(self, parts: Path, value: object) -> None:
        """An option of the layouts before 0.1.0, read as what it became."""
        from translator.frameworks.torchtitan.renames import TO_010

        name = ".".join(parts)
        rename = TO_010[name]
        address = rename.address
        remark = f" ({rename.note})" if rename.note else ""
        if address is None:
            self.keep(parts, value)
            self.say("R094", Level.WARNING, f"{name} has no successor in 0.1.0{remark}", parts)
            return
        new = value if rename.convert is None else rename.convert(value)
        if new is None:  # the old switch was off: nothing to say
            self.say("R092", Level.WARNING, f"{name} is called {address} since 0.1.0{remark}", parts)
            self.keep(parts, value)
            return
        if address in self.native.given:
            self.keep(parts, value)
            self.say("R092", Level.WARNING, f"{name} is ignored beside {address}, its name since 0.1.0", parts)
            return
        if self.option(address, new, parts, written=name):
            self.say("R092", Level.WARNING, f"{name} is called {address} since 0.1.0; read as that{remark}", parts)

    def read_hints(self, world_size: int | None) -> None:
        """The launch, from ``# ttx:`` comments and from the caller."""
        for comment, line in self.positions.comments:
            for key, value in hints([comment]).items():
                place = Place(self.path, line, 1)
                if key.startswith(VARIABLE):
                    self.variable(key.removeprefix(VARIABLE), value, place)
                address = _HINTED.get(key)
                if address is None:
                    continue
                if value.isascii() and value.isdecimal() and 0 < len(value) < 10 and int(value) > 0:
                    self.native.given[address] = Given(address, int(value), f"# ttx: {key}={value}", place)
                else:
                    message = f"# ttx: {key} must be a positive number, not {_shown(value)}"
                    self.native.findings.append(Finding("R103", Level.ERROR, message, "", place))
        if world_size is not None:
            self.native.given[WORLD_SIZE] = Given(WORLD_SIZE, world_size, "--world-size")

    def variable(self, name: str, value: str, place: Place) -> None:
        """An environment variable of the launch."""
        from urllib.parse import unquote

        known = self.native.given.get(ENVIRONMENT)
        values = dict(known.value) if known is not None and isinstance(known.value, dict) else {}
        values[name] = unquote(value)
        self.native.given[ENVIRONMENT] = Given(ENVIRONMENT, values, "# ttx: env:", known.place if known else place)

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


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
