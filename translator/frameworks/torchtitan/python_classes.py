"""The Config classes of 0.3.0 that a configuration is written with, at the places where they stand.

Which class stands where by default is in the catalogue, the classes themselves in ``classes-0.3.0.json``; here is only
what neither says: the six plain dataclasses of ``Trainer.Config`` (``trainer.py:60-118``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from translator.catalogue import Catalogue

VERSION = "0.3.0"
CLASS_KIND = "class"
DATACLASSES: Mapping[str, str] = {
    "training": "TrainingConfig",
    "parallelism": "ParallelismConfig",
    "compile": "CompileConfig",
    "comm": "CommConfig",
    "debug": "DebugConfig",
    "override": "OverrideConfig",
}


class ConfigClass(NamedTuple):
    """A class to construct: ``call`` is what is written (``SelectiveAC.Config``), ``module`` where its name is from.

    ``fields`` are the defaults; a field that holds a class has the class's short name.
    """

    call: str
    module: str
    fields: Mapping[str, object]

    @property
    def imported(self) -> str:
        """The name to import."""
        return self.call.partition(".")[0]


@cache
def find(name: object) -> ConfigClass | None:
    """The class of a short name such as ``SelectiveAC`` or ``TrainingConfig``; None when there is none."""
    from translator.catalogue.classes import classes
    from translator.pyconfig.values import MISSING, Node, Symbol

    known = classes("torchtitan", VERSION)
    try:
        canonical = known.by_component(str(name))
    except KeyError:
        return None
    module, _, owner = known.imports(canonical)[0].rpartition(".")
    nested = canonical.endswith(f".{owner}.Config")
    fields: dict[str, object] = {}
    for field in known.fields(canonical):
        default = known.default(canonical, field)
        if isinstance(default, Node):
            fields[field] = known.component(default.cls)
        elif default is not MISSING and not isinstance(default, Symbol):
            fields[field] = default
    return ConfigClass(f"{owner}.Config" if nested else owner, module, fields)


@cache
def places() -> Mapping[str, str | None]:
    """The addresses that hold a class, and the short name of the one that stands there by default."""
    from translator.catalogue import load

    entries = load("torchtitan", VERSION).entries
    return {entry.address: entry.default for entry in entries if entry.kind == CLASS_KIND}


def class_at(path: str, values: Mapping[str, object]) -> ConfigClass | None:
    """The class in force at a section or a place; None where nothing stands, or nothing that is known."""
    name = DATACLASSES.get(path) or values.get(path, places().get(path))
    return None if name is None else find(name)


def defaults_at(path: str, values: Mapping[str, object], catalogue: Catalogue) -> dict[str, object]:
    """Defaults of the fields of the class in force at ``path``, by address.

    The class that stands there anyway may have been given other defaults at that place, which the catalogue has.
    """
    known = class_at(path, values)
    if known is None:
        return {}
    usual = values.get(path, places().get(path)) == places().get(path)
    found = {f"{path}.{name}": default for name, default in known.fields.items()}
    return {
        address: catalogue.default(address) if usual and address in catalogue else default
        for address, default in found.items()
    }
