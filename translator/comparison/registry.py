"""What is compared, and how a framework does it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from translator.errors import InternalError
from translator.knowledge import knowledge_of

MODULES = (
    "translator.comparison.layout",
    "translator.comparison.state",
    "translator.comparison.training",
    "translator.comparison.operation",
)


@dataclass(frozen=True, slots=True)
class Concept:
    """One thing that every framework does in its way; ``fields`` are the leaves of the spec that it is about."""

    name: str
    title: str
    what: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look: a file, and a function, class or method in it."""

    file: str
    symbol: str

    @property
    def package(self) -> str:
        """The package that the file belongs to."""
        return self.file.partition("/")[0]

    def __str__(self) -> str:
        return f"{self.file}: {self.symbol}"


@dataclass(frozen=True, slots=True)
class How:
    """How a framework does it.

    ``moves`` names functions of the framework's account of communication, whose documentation has the bytes of a step
    as a formula; ``options`` are addresses that steer it and have no field in the spec.
    """

    does: str
    memory: str = ""
    moves: tuple[str, ...] = ()
    guide: tuple[Place, ...] = ()
    options: tuple[str, ...] = ()


def how(does: str, *guide: str, memory: str = "", moves: Iterable[str] = (), options: Iterable[str] = ()) -> How:
    """A way, with its places written as ``path/file.py::Class.method``. Raises InternalError for another form."""
    places = []
    for text in guide:
        file, colons, symbol = text.partition("::")
        if not colons or not symbol or not file.endswith(".py"):
            raise InternalError(f"no place in a source guide: {text!r}")
        places.append(Place(file, symbol))
    return How(does, memory, tuple(moves), tuple(places), tuple(options))


@cache
def concepts() -> Mapping[str, Concept]:
    """All concepts by name, in the order of the chapters. Raises InternalError for a name that comes twice."""
    found: dict[str, Concept] = {}
    for _, entries in chapters():
        for entry in entries:
            if entry.name in found:
                raise InternalError(f"two concepts are called {entry.name}")
            found[entry.name] = entry
    return found


def chapters() -> list[tuple[str, tuple[Concept, ...]]]:
    """The title of each chapter with its concepts."""
    modules = [import_module(name) for name in MODULES]
    return [(module.TITLE, module.CONCEPTS) for module in modules]


@cache
def ways_of(framework: str) -> Mapping[str, How]:
    """How a framework does what is compared, by concept. Raises InternalError for a name that comes twice."""
    found: dict[str, How] = {}
    for name in knowledge_of(framework).concepts:
        for concept, way in import_module(name).CONCEPTS.items():
            if concept in found:
                raise InternalError(f"{framework} says twice how it does {concept}")
            found[concept] = way
    return found


def packages_of(framework: str) -> Mapping[str, str]:
    """Versions of the packages that a framework's source guide names besides its own."""
    found: dict[str, str] = {}
    for name in knowledge_of(framework).concepts:
        found.update(getattr(import_module(name), "PACKAGES", {}))
    return found
