"""What the evaluator is told about torchtitan: its classes, its helper functions, and the modules beside a file.

No module of torchtitan's own is read, except the registry's package when the file itself is one of the package's.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from translator.catalogue.classes import classes
from translator.findings import Place
from translator.frameworks.torchtitan.python_helpers import HELPERS, METHOD, METHODS, PROPERTIES, registry
from translator.pyconfig.values import MISSING, NOT_KNOWN, Node, Partial, Symbol

PACKAGE = "torchtitan."
MODELS = "torchtitan.models."
REGISTRY = "model_registry"
TRAINER = "torchtitan.trainer.Trainer.Config"
# Modules whose files cannot lie beside a configuration in earnest.
_INSTALLED = frozenset({"torch", "torchao", "torchdata", "datasets", "numpy", "tyro", "typing", "dataclasses"})


class TitanResolver:
    """Implements `translator.pyconfig.Resolver` and its class facts for one file of one version.

    ``file`` is the configuration's name as it stands in places, ``module_name`` its dotted name where it is known;
    ``read_sibling`` gives the text of a file by its path below the configuration's folder.
    """

    def __init__(
        self,
        version: str,
        file: str,
        *,
        module_name: str = "",
        read_sibling: Callable[[str], str | None] | None = None,
        inside: str = "",
    ) -> None:
        self.version = version
        self.facts = classes("torchtitan", version)
        self.package = module_name.rpartition(".")[0]
        self._read = read_sibling
        self._folder = posixpath.dirname(file.replace("\\", "/"))
        # Where each file lies below the folder, by its name in places.
        self._inside = {file: inside or posixpath.basename(file.replace("\\", "/"))}

    def module(self, dotted: str, importing_file: str) -> tuple[str, str] | None:
        """A module beside the configuration, or in a folder beside it."""
        if self._read is None:
            return None
        if dotted.startswith("."):
            return self._relative(dotted, importing_file)
        if dotted.partition(".")[0] in _INSTALLED:
            return None
        if dotted.startswith(PACKAGE) or dotted == "torchtitan":
            inner = self.package and (dotted == self.package or dotted.startswith(f"{self.package}."))
            return self._file(dotted.removeprefix(self.package).strip(".")) if inner and self._holds(dotted) else None
        return self._file(dotted) or self._below_own_folder(dotted)

    def _holds(self, dotted: str) -> bool:
        """Whether a module of the package says what the class data do not."""
        return not any(name.startswith(f"{dotted}.") for name in self.facts.rows) or dotted == self.package

    def _below_own_folder(self, dotted: str) -> tuple[str, str] | None:
        """``my_run.parts`` from within the folder ``my_run``."""
        head, _, rest = dotted.partition(".")
        return self._file(rest) if rest and head == posixpath.basename(self._folder) else None

    def _relative(self, dotted: str, importing_file: str) -> tuple[str, str] | None:
        name = dotted.lstrip(".")
        base = posixpath.dirname(self._inside.get(importing_file, ""))
        for _ in range(len(dotted) - len(name) - 1):
            if not base:
                return None
            base = posixpath.dirname(base)
        return self._file(posixpath.join(base, name.replace(".", "/")).strip("/"), dotted=False)

    def _file(self, name: str, *, dotted: bool = True) -> tuple[str, str] | None:
        assert self._read is not None
        path = name.replace(".", "/") if dotted else name
        for inside in ([f"{path}.py"] if path else []) + [posixpath.join(path, "__init__.py")]:
            text = self._read(inside)
            if text is not None:
                shown = posixpath.join(self._folder, inside)
                self._inside[shown] = inside
                return shown, text
        return None

    def default(self, cls: str, field: str) -> object:
        """The default of a field, from the class data."""
        return self.facts.default(cls, field)

    def canonical(self, dotted: str) -> str:
        """The name of a class in the class data."""
        return self.facts.canonical(dotted)

    def is_subclass(self, cls: str, base: str) -> bool | None:
        """From the class data."""
        return self.facts.is_subclass(cls, base)

    def is_config(self, dotted: str) -> bool:
        """A class of the class data, or one of torchtitan's that is named like a configuration."""
        return self.facts.is_config(dotted) or (dotted.startswith(PACKAGE) and dotted.endswith("Config"))

    def call(self, dotted: str, args: list[object], kwargs: dict[str, object], place: Place) -> object:
        """A helper function of torchtitan's, or a method of one of its configuration objects."""
        if dotted.startswith(MODELS) and dotted.endswith(f".{REGISTRY}"):
            family = dotted.removeprefix(MODELS).removesuffix(f".{REGISTRY}")
            return registry(self.facts, family, args, kwargs, place)
        found = HELPERS.get(dotted.rpartition(".")[2])
        if found is None or not dotted.startswith((PACKAGE, METHOD)):
            return NOT_KNOWN
        try:
            return found(self.facts, place, *args, **kwargs)
        except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError):
            return NOT_KNOWN

    def member(self, owner: Node, name: str, place: Place) -> object:
        """A method or property of a configuration object; `MISSING` for any that is not known."""
        if name in PROPERTIES:
            return PROPERTIES[name](owner)
        if name in METHODS:
            symbol = Symbol(f"{METHOD}{name}")
            return Partial(symbol.name, (owner,), {}, place, symbol)
        return MISSING
