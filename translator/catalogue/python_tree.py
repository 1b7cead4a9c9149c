"""A source tree of Python packages, read with the static evaluator: classes, their fields and defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst

from translator.errors import SourceError
from translator.findings import Place
from translator.pyconfig.limits import Limits
from translator.pyconfig.statements import Machine
from translator.pyconfig.values import (
    MISSING,
    NOT_KNOWN,
    ClassValue,
    Function,
    ImportRef,
    ModuleValue,
    Node,
    Symbol,
)

LIMITS = Limits(steps=100_000_000, seconds=900.0, modules=2_000)


@dataclass(frozen=True, slots=True)
class Field:
    """A dataclass field: its annotation as written, the class that states it, and the value it has by default.

    ``default`` is `MISSING` for a required field.
    """

    name: str
    annotation: cst.BaseExpression
    home: ClassValue
    default: object
    place: str


class PythonTree:
    """Answers about the modules below a root folder; the evaluator's resolver for them. Nothing is imported."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.machine = Machine(self, LIMITS, {})

    def module(self, dotted: str, importing_file: str) -> tuple[str, str] | None:
        """File (relative to the root) and text of a module of the tree."""
        base = self.root.joinpath(*dotted.split(".")) if dotted.strip(".") else None
        for path in () if base is None else (base / "__init__.py", base.with_name(base.name + ".py")):
            if path.is_file():
                try:
                    return path.relative_to(self.root).as_posix(), path.read_text(encoding="utf-8")
                except (OSError, UnicodeError) as error:
                    raise SourceError(f"{path} cannot be read") from error
        return None

    def default(self, cls: str, field: str) -> object:
        """Defaults are in the text of the classes."""
        return MISSING

    def call(self, dotted: str, args: list[object], kwargs: dict[str, object], place: Place) -> object:
        """Functions are in the text."""
        return NOT_KNOWN

    def is_config(self, dotted: str) -> bool:
        """Every configuration class is in the text."""
        return False

    def load(self, dotted: str) -> ModuleValue:
        """A module of the tree. Raises `SourceError` where there is none."""
        found = self.machine.load(dotted, ModuleValue("", "", None))
        if found is None:
            raise SourceError(f"{self.root} has no {dotted.replace('.', '/')}", fix="give the root of the source tree")
        return found

    def modules(self, packages: Sequence[str], skipped: Sequence[str] = ()) -> Iterator[ModuleValue]:
        """Every module below some packages, in order of name; parts named in ``skipped`` are left out."""
        for package in packages:
            base = self.root.joinpath(*package.split("."))
            paths = sorted(base.rglob("*.py")) if base.is_dir() else [base.with_suffix(".py")]
            for path in paths:
                parts = list(path.relative_to(self.root).with_suffix("").parts)
                if parts[-1] == "__init__":
                    parts.pop()
                if path.is_file() and not set(parts) & set(skipped):
                    yield self.load(".".join(parts))

    def member(self, module: ModuleValue, name: str) -> object:
        """What a global name of a module means, through imports; `MISSING` when it has none."""
        found = self.machine.member(module, name)
        return self.machine.imported_value(found, module) if isinstance(found, ImportRef) else found

    def named(self, dotted: str) -> object:
        """A class or function by the name it can be imported by. Raises `SourceError` where there is none."""
        module, _, name = dotted.rpartition(".")
        found = self.member(self.load(module), name)
        if found is MISSING:
            raise SourceError(f"{self.root}: {module} has no {name}")
        return found

    def nested(self, outer: ClassValue, name: str) -> ClassValue | None:
        """A class in the body of another, its own only."""
        found = self.machine.scope_of(outer).names.get(name)
        return found if isinstance(found, ClassValue) else None

    def lineage(self, cls: ClassValue) -> list[ClassValue]:
        """The class and the classes of the tree that it derives from."""
        return [item for item in self.machine.lineage(cls) if isinstance(item, ClassValue)]

    def is_dataclass(self, cls: ClassValue) -> bool:
        """Whether the class, or one that it derives from, is a dataclass."""
        return any(map(self.machine.is_dataclass, self.lineage(cls)))

    def fields(self, cls: ClassValue) -> list[Field]:
        """The fields of a dataclass, inherited ones first."""
        found: list[Field] = []
        for name, (node, home) in self.machine.fields_of(cls).items():
            source = home.module.source
            place = f"{home.module.file}:{source.place(node).line}"
            default = self.machine.default_of(node, home)
            found.append(Field(name, node.annotation.annotation, home, default, place))
        return found

    def annotated_classes(self, field: Field) -> list[ClassValue]:
        """The classes that an annotation names, through aliases and unions."""
        return list(self._named_in(field.annotation, field.home))

    def allows_none(self, field: Field) -> bool:
        """Whether an annotation allows ``None``, through aliases."""
        if "None" in cst.Module([]).code_for_node(field.annotation):
            return True
        found = self.machine.value(field.annotation, self.machine.scope_of(field.home))
        return isinstance(found, tuple) and None in found

    def _named_in(self, node: Any, home: ClassValue) -> Iterator[ClassValue]:
        if isinstance(node, cst.Subscript):
            inner = node.slice[0].slice
            if isinstance(node.value, cst.Name) and node.value.value == "Annotated" and isinstance(inner, cst.Index):
                yield from self._named_in(inner.value, home)
            return
        if isinstance(node, cst.BinaryOperation):
            yield from self._named_in(node.left, home)
            yield from self._named_in(node.right, home)
            return
        found = self.machine.value(node, self.machine.scope_of(home))
        for item in found if isinstance(found, tuple) else (found,):
            if isinstance(item, ClassValue):
                yield item

    def call_function(self, dotted: str, *args: object, **kwargs: object) -> object:
        """What a function of the tree returns."""
        function = self.named(dotted)
        if not isinstance(function, Function):
            raise SourceError(f"{self.root}: {dotted} is no function")
        return self.machine.call(function, list(args), kwargs, function.node, function.module.frame)

    def read(self, node: Node, name: str) -> object:
        """A field of a node: what was stated, else its default."""
        if name in node.fields:
            return node.fields[name]
        return self.machine.own_default(node, name)

    def class_name(self, node: Node) -> str:
        """The short name of a node's class: of the component that a ``Config`` is of, else its own."""
        cls = self.machine.classes.get(node.cls)
        if cls is None:
            return node.cls
        return cls.owner.name if cls.owner is not None and cls.name == "Config" else cls.name

    def is_a(self, node: Node, *names: str) -> bool:
        """Whether a node's class, or one that it derives from, has one of these names (``RMSNorm.Config``)."""
        return any(cls.endswith(f".{name}") for cls in (node.cls, *node.bases) for name in names)


__all__ = ["Field", "PythonTree", "Symbol"]
