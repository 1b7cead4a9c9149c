"""torchtitan as a framework of ttx."""

from __future__ import annotations

from typing import Any

from translator.catalogue import load
from translator.frameworks.base import RenderContext, Rendered
from translator.frameworks.torchtitan import render as writer
from translator.frameworks.torchtitan import syntax_toml
from translator.frameworks.torchtitan.settle import settle
from translator.frameworks.torchtitan.table import table
from translator.mapping.table import Table
from translator.mapping.views import Sink
from translator.native import Native
from translator.reading import ReadOptions
from translator.source import Source


class Torchtitan:
    """TOML in and out."""

    name = "torchtitan"
    title = "torchtitan"
    versions = syntax_toml.VERSIONS
    default_version = syntax_toml.DEFAULT_VERSION

    def sniff(self, source: Source) -> float:
        """How surely the text is torchtitan's, from 0 to 1."""
        return syntax_toml.sniff(source.name, source.text)

    def guess_version(self, source: Source) -> str:
        """The version whose names the file uses."""
        return syntax_toml.guess_version(syntax_toml.paths(source.name, source.text), source.text)

    def parse(self, source: Source, version: str, options: ReadOptions) -> Native:
        """Read and settle. Raises SourceError when the text is no TOML."""
        native = syntax_toml.read_source(
            source.name,
            source.text,
            version=version,
            world_size=options.world_size,
            read_sibling=source.read_sibling,
        )
        self.settle(native)
        return native

    def settle(self, native: Native) -> None:
        """Fill in what is in force."""
        settle(native, load(self.name, native.version))

    def table(self, version: str) -> Table:
        """All mapping rows for the version."""
        return table(version)

    def spelling(self, address: str, version: str) -> str:
        """The dotted path, which is the address itself."""
        _ = version
        return address

    def default(self, address: str, version: str) -> Any:
        """The default in the configuration's dataclasses."""
        return load("torchtitan", version).default(address)

    def must_state(self, address: str, value: Any, version: str) -> bool:
        """Whether the value differs from the default, or supported versions disagree about it."""
        return writer.must_state(address, value, version)

    def keeps_unknown(self, version: str) -> bool:
        """In TOML; a module named in the configuration may add such options."""
        return version in syntax_toml.VERSIONS

    def render(self, sink: Sink, version: str, context: RenderContext) -> Rendered:
        """A TOML file, a launch script, and the model's module where it is no named flavor."""
        return writer.render(sink, version, context)


FRAMEWORK = Torchtitan()
