"""What a framework must provide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from translator.native import Native
from translator.reading import ReadOptions
from translator.source import Source

if TYPE_CHECKING:
    from translator.mapping.table import Table
    from translator.mapping.views import Sink


@dataclass(frozen=True, slots=True)
class Rendered:
    """Text of a target: ``main`` is the configuration itself, ``files`` all files by name, ``stated`` what it says.

    ``stated`` maps the addresses that are written out to their text, such as ``training.seq_len = 8192``.
    """

    main: str
    files: dict[str, str]
    stated: dict[str, str] = field(default_factory=dict)


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
