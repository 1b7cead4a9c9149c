"""The spec as one pydantic model, and its list of leaves as a file.

``python -m translator.spec.whole [-o FILE]`` writes ``schemas/spec.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import Field
from pydantic.fields import FieldInfo

from translator.spec import operation, training
from translator.spec.base import Section
from translator.spec.model import Model
from translator.spec.parallel import Parallel


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


def _collect(section: type[Section], prefix: str, found: list[dict[str, Any]]) -> None:
    for name, info in section.model_fields.items():
        path = f"{prefix}{name}"
        kind: Any = info.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            _collect(kind, f"{path}.", found)
        elif path != "extras":
            extra = info.json_schema_extra
            touches = extra["touches"] if isinstance(extra, dict) else "training"
            found.append(
                {"path": path, **_type(kind), **_bounds(info), "touches": touches, "doc": info.description or ""}
            )


def _type(kind: Any) -> dict[str, Any]:
    (inner,) = (item for item in get_args(kind) if item is not type(None))  # every leaf may be None
    shown = str(inner).replace("typing.", "").replace("<class '", "").replace("'>", "")
    choices = {"choices": list(get_args(inner))} if get_origin(inner) is Literal else {}
    return {"type": shown, **choices}


def _bounds(info: FieldInfo) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    for mark in info.metadata:
        if isinstance(mark, Ge):
            bounds["ge"] = mark.ge
        elif isinstance(mark, Le):
            bounds["le"] = mark.le
        else:
            raise TypeError(f"a leaf has a constraint that spec.json does not carry: {mark!r}")
    return bounds


def document() -> str:
    """The text of ``schemas/spec.json``: one leaf per line."""
    found: list[dict[str, Any]] = []
    _collect(Spec, "", found)
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in found)
    return f'{{\n"schema_version": 1,\n"leaves": [\n{rows}\n]\n}}\n'


if __name__ == "__main__":
    if sys.argv[1:2] == ["-o"]:
        Path(sys.argv[2]).write_text(document(), encoding="utf-8")
    else:
        sys.stdout.write(document())
