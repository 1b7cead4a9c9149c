"""What a framework must provide, and what it may.

Every framework has all of `Framework`. The other protocols are capabilities: a framework has one by having its methods
and attributes, and what needs one asks with ``isinstance``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from translator.native import Native
from translator.reading import ReadOptions
from translator.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from translator.catalogue import Catalogue
    from translator.mapping.table import Table
    from translator.mapping.views import Sink
    from translator.shell.launchers import Launcher

OPTIONS = "options"
"""The kind of generated file that every framework with `Generated` has: its catalogue of options."""
Generator = Callable[[str, "Path"], str]
"""Version and root of the upstream source to the text of a generated file; raises SourceError for another tree."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Text of a target: ``main`` is the configuration itself, ``files`` all files by name, ``stated`` what it says.

    ``stated`` maps the addresses that are written out to their text, such as ``training.seq_len = 8192``. ``needed``
    are the further files in which some of that stands; those of the sink, which ``main`` itself loads, go without
    saying.
    """

    main: str
    files: dict[str, str]
    stated: dict[str, str] = field(default_factory=dict)
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderContext:
    """What a renderer may tell the reader of its output: where each value came from.

    ``native`` is the source in its own words, where it is one of the same framework.
    """

    origin_of: Mapping[str, str]
    source_name: str
    source_title: str
    flat: Mapping[str, Any]
    native: Native | None = None


class Framework(Protocol):
    """One framework: its syntax, its settling, its table, its rendering."""

    name: str
    title: str
    versions: tuple[str, ...]
    default_version: str

    def sniff(self, source: Source) -> float:
        """How surely the text is this framework's, from 0 to 1; cheap."""
        ...

    def guess_version(self, source: Source) -> str:
        """The version that the text was written for, as far as it shows; else the default."""
        ...

    def parse(self, source: Source, version: str, options: ReadOptions) -> Native:
        """Read and settle. Raises SourceError when the text cannot be read at all."""
        ...

    def settle(self, native: Native) -> None:
        """Fill in what is in force: defaults, and what the framework derives or changes."""
        ...

    def table(self, version: str) -> Table:
        """All mapping rows for the version."""
        ...

    def spelling(self, address: str, version: str) -> str:
        """The option as a user of the framework would name it."""
        ...

    def default(self, address: str, version: str) -> Any:
        """The default of an option, as the catalogue has it."""
        ...

    def must_state(self, address: str, value: Any, version: str) -> bool:
        """Whether a value is written: it differs from the default, or supported versions disagree about the default."""
        ...

    def keeps_unknown(self, version: str) -> bool:
        """Whether options that the catalogue does not have can be written as they were read."""
        ...

    def render(self, sink: Sink, version: str, context: RenderContext) -> Rendered:
        """Write the values of the sink as files."""
        ...


@runtime_checkable
class Catalogued(Protocol):
    """A framework with a catalogue of its own; without it the table, the spellings and the defaults make one."""

    def catalogue(self, version: str) -> Catalogue:
        """The options of a version."""
        ...


@runtime_checkable
class Generated(Protocol):
    """A framework whose catalogues, or others that complete them, are generated from upstream source."""

    def generators(self) -> Mapping[str, Mapping[str, Generator]]:
        """Name of a catalogue -> kind of file (``options`` and others) -> what generates it."""
        ...


@runtime_checkable
class Launching(Protocol):
    """A framework that brings a launcher of its own: any framework's script may start training with it."""

    def launchers(self) -> Mapping[str, Launcher]:
        """Name of the program, or module for ``python -m`` -> what is known of it."""
        ...


@runtime_checkable
class Programmed(Protocol):
    """A framework that is configured by a program; no other is asked whether it reads one."""

    def programs(self, source: Source) -> bool:
        """Whether a program may be one that configures the framework; cheap."""
        ...


@runtime_checkable
class TakesModel(Protocol):
    """A framework whose configuration leaves the model to another file, which ``--model`` names."""

    takes_model: bool


@runtime_checkable
class Suffixed(Protocol):
    """A framework some of whose versions write files of a kind: suffix -> the version that ``-o NAME.SUFFIX`` means."""

    output_suffixes: Mapping[str, str]


@runtime_checkable
class NamesFiles(Protocol):
    """A framework that minds what a file is called."""

    def check_file_name(self, name: str) -> None:
        """Raises UsageError for a name under which the framework would not find the file."""
        ...


@runtime_checkable
class Inserting(Protocol):
    """A framework with files that hold several configurations."""

    def insert(self, existing: str, rendered: Rendered, name: str = "") -> tuple[str, str]:
        """The text of such a file with a rendered configuration added, and the name that it has there.

        Raises SourceError when the text cannot take it, UsageError for a result that is none of the kind.
        """
        ...


@runtime_checkable
class Several(Protocol):
    """A framework one file of which may hold several configurations."""

    def configurations(self, source: Source) -> Sequence[str] | None:
        """The names of the configurations in such a file, or None for a file that is a configuration itself.

        Raises SourceError for a file that cannot be read.
        """
        ...


@runtime_checkable
class Dialects(Protocol):
    """A framework with sources that other rows read than those that write its configurations."""

    def table_of(self, native: Native) -> Table:
        """The rows that read a configuration."""
        ...
