"""Prints what the real torchtitan 0.3.0 says of itself, as one JSON object.

``classes``: every dataclass of the modules named on the command line by its own name, each field with its type as
written and its default; ``trainer``: the fields below a bare ``Trainer.Config()``, nested ones by dotted path.
``names``: what each dotted name after ``--`` gives when it is imported: its own ``Config`` or itself, by its own name.
A default that is another dataclass is ``{"class", "fields"}`` with all its fields.
"""

# ruff: noqa: E402 (what is imported depends on what was put in place before)
from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import json
import sys
from typing import Any

import titan

titan.leave_out_triton()

from torchtitan.trainer import Trainer

PLAIN = (str, int, float, bool, type(None))


def shown(value: Any) -> Any:
    """A value as JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"class": name_of(type(value)), "fields": {f.name: shown(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [shown(item) for item in value]}
    if isinstance(value, dict):
        return {str(key): shown(item) for key, item in value.items()}
    return {"symbol": f"{value.__module__}.{value.__qualname__}"}


def fields(owner: Any) -> list[dataclasses.Field[Any]]:
    """The fields of a dataclass."""
    return list(dataclasses.fields(owner))


def name_of(cls: type) -> str:
    """The name of a class with its module's."""
    return f"{cls.__module__}.{cls.__qualname__}"


def default_of(field: dataclasses.Field[Any]) -> dict[str, Any]:
    """The default of a field, or that there is none."""
    if field.default is not dataclasses.MISSING:
        return {"default": shown(field.default)}
    if field.default_factory is not dataclasses.MISSING:
        return {"default": shown(field.default_factory())}
    return {"required": True}


def row(cls: type) -> dict[str, Any]:
    """The facts of a class."""
    inits = {f.name: default_of(f) for f in fields(cls)}
    bases = [name_of(base) for base in cls.__mro__[1:] if dataclasses.is_dataclass(base)]
    return {"bases": bases, "fields": inits}


def dataclasses_of(module: Any) -> dict[str, Any]:
    """The dataclasses that a module defines, and the ``Config`` of every class in it."""
    found: dict[str, Any] = {}
    for outer in list(vars(module).values()):
        if not inspect.isclass(outer) or outer.__module__ != module.__name__:
            continue
        for cls in (outer, outer.__dict__.get("Config")):
            if inspect.isclass(cls) and dataclasses.is_dataclass(cls) and cls.__module__ == module.__name__:
                found[name_of(cls)] = row(cls)
    return found


def leaves(owner: Any, prefix: str = "") -> dict[str, Any]:
    """The values below an object, by dotted path; what holds a component's Config is also there by its class."""
    found: dict[str, Any] = {}
    for field in fields(owner):
        value = getattr(owner, field.name)
        path = f"{prefix}{field.name}"
        if dataclasses.is_dataclass(value):
            if type(value).__qualname__.endswith(".Config"):
                found[path] = type(value).__qualname__.removesuffix(".Config")
            found.update(leaves(value, f"{path}."))
        else:
            found[path] = shown(value)
    return found


def imported(dotted: str) -> str | None:
    """The class that a name gives, or nothing where it cannot be imported."""
    module, _, name = dotted.rpartition(".")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found = getattr(importlib.import_module(module), name)
    except ImportError:
        return None
    if not inspect.isclass(found):  # upstream's None for what is not installed
        return None
    inner = vars(found).get("Config")
    return name_of(inner if dataclasses.is_dataclass(inner) else found)


def main(words: list[str]) -> None:
    """Prints the answer on the last line."""
    names, asked = words[: words.index("--")], words[words.index("--") + 1 :]
    classes: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name in names:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                module = importlib.import_module(name)
        except ImportError as error:
            failed[name] = str(error)
            continue
        classes.update(dataclasses_of(module))
    found = {name: item for name in asked if (item := imported(name)) is not None}
    print(json.dumps({"classes": classes, "failed": failed, "trainer": leaves(Trainer.Config()), "names": found}))


if __name__ == "__main__":
    main(sys.argv[1:])
