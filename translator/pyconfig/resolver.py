"""What the evaluator asks about names that the text at hand does not define."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from translator.findings import Place
from translator.pyconfig.values import MISSING, NOT_KNOWN, Node


class Resolver(Protocol):
    """Answers about modules, classes and functions outside of the text that is evaluated."""

    def module(self, dotted: str, importing_file: str) -> tuple[str, str] | None:
        """File name and text of a module, ``None`` when it cannot be read.

        ``dotted`` starts with a dot where the import is relative and the importing module's own name is not known.
        """

    def default(self, cls: str, field: str) -> object:
        """The default of an unstated field: a value or a fresh `Node`; `MISSING` where none is known."""

    def call(self, dotted: str, args: list[object], kwargs: dict[str, object], place: Place) -> object:
        """The value of a known function, `NOT_KNOWN` for any other."""

    def is_config(self, dotted: str) -> bool:
        """Whether calling this name constructs a configuration node."""


@runtime_checkable
class ClassFacts(Protocol):
    """What a resolver may also know about configuration classes."""

    def canonical(self, dotted: str) -> str:
        """The name under which a class is known, from any name that it can be imported by."""

    def is_subclass(self, cls: str, base: str) -> bool | None:
        """Whether the first class is, or derives from, the second; ``None`` when not known."""


@runtime_checkable
class Members(Protocol):
    """What a resolver may also know about methods and properties of configuration objects."""

    def member(self, owner: Node, name: str, place: Place) -> object:
        """What ``owner.name`` is, for a name that is no field; a method as a `Partial`; `MISSING` where not known."""


class NoResolver:
    """Knows nothing: every imported name stays a symbol, every class named ``Config`` is a configuration."""

    def module(self, dotted: str, importing_file: str) -> tuple[str, str] | None:
        """No module can be read."""
        return None

    def default(self, cls: str, field: str) -> object:
        """No default is known."""
        return MISSING

    def call(self, dotted: str, args: list[object], kwargs: dict[str, object], place: Place) -> object:
        """No function is known."""
        return NOT_KNOWN

    def is_config(self, dotted: str) -> bool:
        """Whether the last part of the name is ``Config`` or ends so."""
        return dotted.endswith("Config")
