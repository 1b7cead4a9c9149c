"""Megatron-LM as a framework of ttx."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from translator.catalogue import load
from translator.frameworks.base import OPTIONS, Generator, RenderContext, Rendered
from translator.frameworks.megatron import render as writer
from translator.frameworks.megatron import syntax
from translator.frameworks.megatron.settle import settle
from translator.frameworks.megatron.table import table
from translator.knowledge import Knowledge
from translator.mapping.table import Table
from translator.mapping.views import Sink
from translator.native import Native
from translator.reading import ReadOptions
from translator.source import Source, hints

if TYPE_CHECKING:
    from translator.catalogue import Catalogue


class Megatron:
    """Launch scripts, argument text and ``model_config.yaml`` in; launch scripts out."""

    name = "megatron"
    title = "Megatron-LM"
    versions = ("0.12.0", "0.14.0", "0.15.0", "0.16.0", "0.17.0", "0.18.0", "0.19.0")
    default_version = "0.18.0"
    knowledge = Knowledge(
        codes=("translator.frameworks.megatron.codes", "translator.frameworks.megatron.codes_start"),
        checks=tuple(f"translator.frameworks.megatron.checks.{topic}" for topic in ("model", "training", "machinery")),
        memory="translator.frameworks.megatron.memory",
        communication="translator.frameworks.megatron.communication",
        concepts=tuple(
            f"translator.frameworks.megatron.concepts.{topic}" for topic in ("layout", "state", "training", "operation")
        ),
        stances=tuple(
            f"translator.frameworks.megatron.stances.{topic}"
            for topic in ("training", "optimizer", "schedule", "precision", "layout", "model", "operation")
        ),
    )

    def catalogue(self, version: str) -> Catalogue:
        """The options of the argument parser."""
        return load(self.name, version)

    def generators(self) -> Mapping[str, Mapping[str, Generator]]:
        """What generates the catalogue."""
        from translator.frameworks.megatron.extract import generate

        return {self.name: {OPTIONS: generate}}

    def sniff(self, source: Source) -> float:
        """How surely the text is Megatron-LM's, from 0 to 1."""
        return syntax.sniff(source.name, source.text)

    def guess_version(self, source: Source) -> str:
        """The version that a hint in the text names, else the default: flags alone do not tell."""
        named = (version for version in hints(source.text).get("version", ()) if version in self.versions)
        return next(named, self.default_version)

    def parse(self, source: Source, version: str, options: ReadOptions) -> Native:
        """Read and settle. Raises SourceError when the text cannot be read at all."""
        native = syntax.read_source(
            source.name,
            source.text,
            version=version,
            set_values=options.variables,
            positional=options.positional,
            launch_index=options.launch,
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
        """The first flag of the option."""
        return writer.spelling(address, version)

    def default(self, address: str, version: str) -> Any:
        """The parser's default."""
        return writer.default(address, version)

    def must_state(self, address: str, value: Any, version: str) -> bool:
        """Whether the value differs from the default, or supported versions disagree about it."""
        return writer.must_state(address, value, version)

    def keeps_unknown(self, version: str) -> bool:
        """No: the parser stops at an option that it does not know."""
        _ = version
        return False

    def render(self, sink: Sink, version: str, context: RenderContext) -> Rendered:
        """A launch script in bash."""
        return writer.render(sink, version, context, load("megatron", version), table(version).fields_of)


FRAMEWORK = Megatron()
