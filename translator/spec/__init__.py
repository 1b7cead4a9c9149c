"""The neutral spec: plain nouns of the field, no framework's words, units in the names."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import Field

from translator.spec import operation, training
from translator.spec.base import Section
from translator.spec.model import Model
from translator.spec.parallel import Parallel
from translator.spec.touches import Touches

__all__ = ["LeafInfo", "Section", "Spec", "Touches", "flatten", "leaves", "nest"]


class Spec(Section):
    """A whole training configuration."""

    model: Model = Field(default_factory=Model)
    parallel: Parallel = Field(default_factory=Parallel)
    batch: training.Batch = Field(default_factory=training.Batch)
    precision: training.Precision = Field(default_factory=training.Precision)
    optimizer: training.Optimizer = Field(default_factory=training.Optimizer)
    schedule: training.Schedule = Field(default_factory=training.Schedule)
    recompute: training.Recompute = Field(default_factory=training.Recompute)
    loss: training.Loss = Field(default_factory=training.Loss)
    data: operation.Data = Field(default_factory=operation.Data)
    checkpoint: operation.Checkpoint = Field(default_factory=operation.Checkpoint)
    logging: operation.Logging = Field(default_factory=operation.Logging)
    launch: operation.Launch = Field(default_factory=operation.Launch)
    extras: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="native options without a neutral meaning, verbatim, by framework"
    )


class LeafInfo:
    """What is known of one leaf without a value: path, documentation, what it touches."""

    __slots__ = ("doc", "path", "touches", "type_name")

    def __init__(self, path: str, doc: str, touches: Touches, type_name: str) -> None:
        self.path = path
        self.doc = doc
        self.touches = touches
        self.type_name = type_name


def _collect(section: type[Section], prefix: str, found: dict[str, LeafInfo]) -> None:
    for name, info in section.model_fields.items():
        path = f"{prefix}{name}"
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            _collect(kind, f"{path}.", found)
        elif path != "extras":
            extra = info.json_schema_extra
            touches = Touches(str(extra["touches"])) if isinstance(extra, dict) else Touches.TRAINING
            name_of_type = (
                str(kind).replace("typing.", "").replace(" | None", "").replace("<class '", "").replace("'>", "")
            )
            found[path] = LeafInfo(path, info.description or "", touches, name_of_type)


@cache
def leaves() -> dict[str, LeafInfo]:
    """Every leaf of the spec by dotted path, in the order of the sections (``extras`` is no leaf)."""
    found: dict[str, LeafInfo] = {}
    _collect(Spec, "", found)
    return found


def flatten(spec: Spec) -> dict[str, Any]:
    """The values of all leaves by dotted path."""
    flat: dict[str, Any] = {}

    def walk(section: Section, prefix: str) -> None:
        for name in type(section).model_fields:
            value = getattr(section, name)
            if isinstance(value, Section):
                walk(value, f"{prefix}{name}.")
            elif name != "extras" or prefix:
                flat[f"{prefix}{name}"] = value

    walk(spec, "")
    return flat


def nest(flat: dict[str, Any]) -> dict[str, Any]:
    """Dotted paths to nested dictionaries, the form that `Spec.model_validate` takes."""
    root: dict[str, Any] = {}
    for path, value in flat.items():
        if value is None:
            continue
        node = root
        *parents, last = path.split(".")
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = value
    return root
