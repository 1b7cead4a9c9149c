"""torchtitan as a framework of ttx."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from translator.catalogue import load
from translator.errors import UsageError
from translator.frameworks.base import OPTIONS, Generator, RenderContext, Rendered
from translator.frameworks.torchtitan import sources, syntax_toml
from translator.knowledge import Knowledge
from translator.mapping.table import Table
from translator.mapping.views import Sink
from translator.native import Native
from translator.reading import ReadOptions
from translator.source import Source

if TYPE_CHECKING:
    from translator.catalogue import Catalogue


class Dialect(NamedTuple):
    """What versions with one syntax have in common: how they settle, map and write."""

    settle: Callable[[Native, Catalogue], None]
    table: Callable[[str], Table]
    must_state: Callable[[str, Any, str], bool]
    render: Callable[[Sink, str, RenderContext], Rendered]


def _toml() -> Dialect:
    from translator.frameworks.torchtitan import render, settle, table

    return Dialect(settle.settle, table.table, render.must_state, render.render)


def _python() -> Dialect:
    from translator.frameworks.torchtitan import render_python, settle_python, table_030

    return Dialect(settle_python.settle, table_030.table, render_python.must_state, render_python.render)


DIALECTS: dict[str, Callable[[], Dialect]] = {"0.1.0": _toml, "0.2.2": _toml, "0.3.0": _python}


@cache
def dialect(version: str) -> Dialect:
    """The dialect of a version; its modules are loaded at the first use."""
    return DIALECTS[version]()


class Torchtitan:
    """TOML in and out, and Python from 0.3.0 on."""

    name = "torchtitan"
    title = "torchtitan"
    versions = tuple(DIALECTS)
    default_version = syntax_toml.DEFAULT_VERSION
    knowledge = Knowledge(
        codes=("translator.frameworks.torchtitan.codes",),
        checks=("translator.frameworks.torchtitan.checks",),
        memory="translator.frameworks.torchtitan.memory",
        communication="translator.frameworks.torchtitan.communication",
        concepts=tuple(
            f"translator.frameworks.torchtitan.concepts.{topic}"
            for topic in ("layout", "state", "training", "operation")
        ),
        stances=tuple(
            f"translator.frameworks.torchtitan.stances.{topic}"
            for topic in ("training", "optimizer", "schedule", "precision", "layout", "model", "operation")
        ),
    )
    output_suffixes = MappingProxyType({".py": next(version for version, made in DIALECTS.items() if made is _python)})

    def catalogue(self, version: str) -> Catalogue:
        """The leaves of the configuration."""
        return load(self.name, version)

    def generators(self) -> Mapping[str, Mapping[str, Generator]]:
        """What generates the catalogue, the named models, and for Python the classes and shipped configurations."""
        from translator.frameworks.torchtitan import extract, extract_python, shipped

        return {
            self.name: {
                OPTIONS: extract.generate,
                "flavors": extract.generate_flavors,
                "classes": extract_python.generate_classes,
                "configs": shipped.generate,
            }
        }

    def programs(self, source: Source) -> bool:
        """Whether a Python file speaks of torchtitan."""
        return source.name.lower().endswith(".py") and self.name in source.text

    def sniff(self, source: Source) -> float:
        """How surely the text is torchtitan's, from 0 to 1."""
        return sources.sniff(source)

    def configurations(self, source: Source) -> Sequence[str] | None:
        """The configuration functions of a Python file. Raises SourceError when it is no Python."""
        if sources.kind(source) != sources.PYTHON:
            return None
        from translator.frameworks.torchtitan import syntax_python

        return syntax_python.configurations(source.name, source.text, read_sibling=source.read_sibling)

    def guess_version(self, source: Source) -> str:
        """The version whose names and syntax the file uses."""
        return sources.guess_version(source)

    def parse(self, source: Source, version: str, options: ReadOptions) -> Native:
        """Read and settle. Raises SourceError when the text cannot be read at all."""
        native = sources.read(source, version, options)
        self.settle(native)
        return native

    def settle(self, native: Native) -> None:
        """Fill in what is in force."""
        dialect(native.version).settle(native, load(self.name, native.version))

    def table(self, version: str) -> Table:
        """All mapping rows for the version."""
        return dialect(version).table(version)

    def spelling(self, address: str, version: str) -> str:
        """The dotted path, which is the address itself."""
        _ = version
        return address

    def default(self, address: str, version: str) -> Any:
        """The default in the configuration's dataclasses."""
        return load("torchtitan", version).default(address)

    def must_state(self, address: str, value: Any, version: str) -> bool:
        """Whether the value differs from the default, or supported versions disagree about it."""
        return dialect(version).must_state(address, value, version)

    def keeps_unknown(self, version: str) -> bool:
        """In TOML; a module named in the configuration may add such options."""
        return version in syntax_toml.VERSIONS

    def render(self, sink: Sink, version: str, context: RenderContext) -> Rendered:
        """A TOML file or a Python module, a launch script, and the model's module where it is no named flavor."""
        return dialect(version).render(sink, version, context)

    def check_file_name(self, name: str) -> None:
        """Raises UsageError for a module that ``--module`` would never find (``config/manager.py:103`` at 0.3.0)."""
        from translator.frameworks.torchtitan.python_names import BUILT_IN

        stem = name.removesuffix(".py")
        if name.endswith(".py") and stem in BUILT_IN:
            message = f"torchtitan has a module {stem} of its own, and --module {stem} would never read {name}"
            raise UsageError(message, fix=f"-o my_{name}")

    def insert(self, existing: str, rendered: Rendered, name: str = "") -> tuple[str, str]:
        """The text of a registry with a rendered configuration added, and the name of its function there.

        Raises SourceError when the text is no Python or has that name already, UsageError for what is no function.
        """
        from translator.frameworks.torchtitan.insert_python import function_name, insert_into

        if not rendered.main.endswith(".py"):
            python = self.output_suffixes[".py"]
            raise UsageError("the result is no Python function", fix=f"--to {self.name}@{python}")
        return insert_into(existing, rendered, name), name or function_name(rendered)


FRAMEWORK = Torchtitan()
