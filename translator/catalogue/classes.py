"""The configuration classes of a framework version that is configured in Python: names, fields, defaults, imports."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from translator.errors import UsageError
from translator.findings import Place
from translator.pyconfig.values import MISSING, Node, Symbol
from translator.resources import schema_path

CONFIG = ".Config"
DEFAULTS = "defaults"


class Classes:
    """Looks up classes by any name that they can be imported by.

    A class is known under its canonical name, that of the module that defines it
    (``torchtitan.components.loss.CrossEntropyLoss.Config``). Implements ``default``, ``is_config``, ``canonical`` and
    ``is_subclass`` of `translator.pyconfig.Resolver`.
    """

    def __init__(self, framework: str, version: str, document: dict[str, Any]) -> None:
        self.framework = framework
        self.version = version
        self.rows: dict[str, dict[str, Any]] = document["classes"]
        self.functions: dict[str, dict[str, Any]] = document["functions"]
        self._names: dict[str, str] = {}
        for canonical, row in self.rows.items():
            tail = CONFIG if canonical.endswith(CONFIG) else ""
            self._names[canonical] = canonical
            for name in row["imports"]:
                self._names.setdefault(f"{name}{tail}", canonical)

    def canonical(self, dotted: str) -> str:
        """The canonical name; the name itself where no class is known by it."""
        return self._names.get(dotted, dotted)

    def is_config(self, dotted: str) -> bool:
        """Whether the name is that of a known configuration class."""
        return dotted in self._names

    def component(self, dotted: str) -> str:
        """The short name of a class as the catalogue's choices have it: ``SelectiveAC``, ``TrainingConfig``."""
        return self.canonical(dotted).removesuffix(CONFIG).rpartition(".")[2]

    def by_component(self, name: str) -> str:
        """The canonical name of the class with a short name. Raises `KeyError` when there is none."""
        for canonical in self.rows:
            if canonical.removesuffix(CONFIG).rpartition(".")[2] == name:
                return canonical
        raise KeyError(name)

    def imports(self, dotted: str) -> tuple[str, ...]:
        """The names by which a class (for a ``Config``, the one around it) can be imported, the usual one first.

        Raises `KeyError` for an unknown class.
        """
        return tuple(self.rows[self.canonical(dotted)]["imports"])

    def bases(self, dotted: str) -> tuple[str, ...]:
        """Canonical names of the classes that a class derives from, nearest first; empty for an unknown one."""
        row = self.rows.get(self.canonical(dotted))
        return tuple(row["bases"]) if row else ()

    def is_subclass(self, cls: str, base: str) -> bool | None:
        """Whether the first class is, or derives from, the second; ``None`` for an unknown class."""
        name, wanted = self.canonical(cls), self.canonical(base)
        if name == wanted:
            return True
        return wanted in self.bases(name) if name in self.rows else None

    def fields(self, dotted: str) -> tuple[str, ...]:
        """The names of a class's fields; empty for an unknown class."""
        row = self.rows.get(self.canonical(dotted))
        return tuple(row["fields"]) if row else ()

    def default(self, cls: str, field: str) -> object:
        """The default of a field: a fresh value at each call, `MISSING` for a required or unknown one."""
        row = self.rows.get(self.canonical(cls), {}).get("fields", {}).get(field, {})
        if "dynamic" in row:
            return Symbol(row["dynamic"])
        return decode(row["default"]) if "default" in row else MISSING

    def node(self, cls: str, place: Place | None = None) -> Node:
        """A fresh instance that states nothing."""
        return Node(self.canonical(cls), {}, {}, place or Place(DEFAULTS, 1, 1))

    def parameters(self, function: str) -> dict[str, object]:
        """Parameters of a known helper function and their defaults (`MISSING` where required).

        ``**`` is among them when it takes further keywords. Raises `KeyError` for an unknown function.
        """
        rows = self.functions[function]["parameters"]
        return {name: decode(row["default"]) if "default" in row else MISSING for name, row in rows.items()}


def decode(row: Any) -> object:
    """A value from its JSON form: instances, tuples and names are marked."""
    if isinstance(row, list):
        return [decode(item) for item in row]
    if not isinstance(row, dict):
        return row
    if row.keys() == {"class", "fields"}:
        fields = {name: decode(item) for name, item in row["fields"].items()}
        place = Place(DEFAULTS, 1, 1)
        return Node(row["class"], fields, dict.fromkeys(fields, place), place)
    if row.keys() == {"tuple"}:
        return tuple(decode(item) for item in row["tuple"])
    if row.keys() == {"symbol"}:
        return Symbol(row["symbol"])
    return {name: decode(item) for name, item in row.items()}


@cache
def classes(framework: str, version: str) -> Classes:
    """The classes of one version; read once per process.

    Raises `UsageError` for a version that is not configured in Python.
    """
    try:
        name = f"classes-{version}.json"
        text = schema_path(framework, name).read_bytes() if framework.isalnum() and version[:1].isdigit() else b""
    except OSError:
        text = b""
    if not text:
        raise UsageError(f"no configuration classes of {framework} {version!r}")
    return Classes(framework, version, json.loads(text))
