"""Classes of modules that were read: fields, defaults, inheritance, constants, construction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from translator.pyconfig import builtin
from translator.pyconfig.core import Core
from translator.pyconfig.expressions import FAILURES, Expressions
from translator.pyconfig.resolver import ClassFacts
from translator.pyconfig.values import MISSING, Call, ClassValue, Frame, Function, Node, Symbol, Unknown

_MAX_BASES = 40


class Classes(Expressions):
    """What is known of classes from their own text."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.classes: dict[str, ClassValue] = {}
        self._fields: dict[int, dict[str, tuple[cst.AnnAssign, ClassValue]]] = {}
        self.entry_module: object = None
        self.statements: set[int] = set()

    def scope_of(self, owner: ClassValue) -> Frame:
        """The names of a class body: constants, methods and nested classes."""
        if owner.scope is None:
            owner.scope = Frame(owner.module, {}, owner.parent)
            with self.unconditionally():
                self.block(owner.node.body.body, owner.scope)
            for name, item in owner.scope.names.items():
                if isinstance(item, ClassValue) and item.owner is None and item.parent is owner.scope:
                    item.owner = owner
                elif isinstance(item, Function) and item.parent is owner.scope:
                    item.name = f"{owner.name}.{name}"
        return owner.scope

    def bases_of(self, owner: ClassValue) -> list[object]:
        """The base classes, as classes that were read or as symbols."""
        if owner.bases is None:
            owner.bases = []
            frame = owner.parent or owner.module.frame
            owner.bases = [self.value(item.value, frame) for item in owner.node.bases]
        return owner.bases

    def lineage(self, owner: ClassValue) -> Iterator[ClassValue | Symbol]:
        """The class and all that it derives from, nearest first."""
        waiting: list[object] = [owner]
        seen: set[int] = set()
        while waiting and len(seen) < _MAX_BASES:
            item = waiting.pop(0)
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, ClassValue):
                yield item
                waiting[:0] = self.bases_of(item)
            elif isinstance(item, Symbol):
                yield item

    def class_attribute(self, owner: ClassValue, name: str, node: Any, frame: Frame) -> object:
        """The value of a name in a class body, or in that of a base class."""
        for item in self.lineage(owner):
            if isinstance(item, ClassValue):
                found = self.scope_of(item).names.get(name, MISSING)
                if found is not MISSING:
                    return found
                if self.is_dataclass(item) and (field := self.fields_of(item).get(name)):
                    return self.default_of(*field)
            elif self.resolver.is_config(f"{item.name}.{name}"):
                return Symbol(f"{item.name}.{name}")
        if name in {"__name__", "__qualname__"}:
            return owner.name
        return self.unknown("R114", f"class {owner.name} has no {name}", node, frame)

    def is_dataclass(self, owner: ClassValue) -> bool:
        """Whether the class itself is decorated as a dataclass."""
        for decorator in owner.node.decorators:
            node = decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator
            if isinstance(node, cst.Name | cst.Attribute):
                name = node.value if isinstance(node, cst.Name) else node.attr.value
                if name == "dataclass":
                    return True
        return False

    def fields_of(self, owner: ClassValue) -> dict[str, tuple[cst.AnnAssign, ClassValue]]:
        """The dataclass fields that are stated in readable classes, inherited ones first."""
        known = self._fields.get(id(owner))
        if known is None:
            known = {}
            for item in reversed(list(self.lineage(owner))):
                if isinstance(item, ClassValue) and self.is_dataclass(item):
                    known.update((name, (node, item)) for name, node in _annotated(item.node))
            self._fields[id(owner)] = known
        return known

    def construct(
        self, owner: ClassValue, args: list[object], kwargs: dict[str, object], node: Any, frame: Frame
    ) -> object:
        """An instance of a class that was read: a node for a dataclass, else opaque."""
        lineage = list(self.lineage(owner))
        outside = [item.name for item in lineage if isinstance(item, Symbol)]
        is_config = any(map(self.resolver.is_config, outside))
        if not is_config and not any(isinstance(item, ClassValue) and self.is_dataclass(item) for item in lineage):
            return Call(owner.dotted, tuple(args), kwargs, frame.module.source.place(node))
        fields = self.fields_of(owner)
        names = [name for name in fields if name not in kwargs]
        if len(args) > len(names):
            return self.unknown("R125", f"{owner.name} takes fewer arguments", node, frame)
        stated = {**dict(zip(names, args, strict=False)), **kwargs}
        if strange := [name for name in stated if name not in fields] if not is_config else []:
            return self.unknown("R125", f"{owner.name} has no field {', '.join(strange)}", node, frame)
        self.classes[owner.dotted] = owner
        bases = tuple(item.dotted if isinstance(item, ClassValue) else item.name for item in lineage[1:])
        return Node(owner.dotted, stated, self._places(stated, node, frame), frame.module.source.place(node), bases)

    def _places(self, kwargs: dict[str, object], node: Any, frame: Frame) -> dict[str, Any]:
        return dict.fromkeys(kwargs, frame.module.source.place(node))

    def own_default(self, owner: Node, name: str) -> object:
        """The default that the class's own text states for a field."""
        cls = self.classes.get(owner.cls)
        field = self.fields_of(cls).get(name) if cls is not None else None
        return MISSING if field is None else self.default_of(*field)

    def default_of(self, node: cst.AnnAssign, home: ClassValue) -> object:
        """The default that a field's statement gives, evaluated in its class; `MISSING` for a required field."""
        value = node.value
        if value is None:
            return MISSING
        frame = self.scope_of(home)
        try:
            if isinstance(value, cst.Call) and _last_name(value.func) == "field":
                options = {item.keyword.value: item.value for item in value.args if item.keyword is not None}
                if "default" in options:
                    return self.value(options["default"], frame)
                if "default_factory" not in options:
                    return MISSING
                return self.call(self.value(options["default_factory"], frame), [], {}, value, frame)
            return self.value(value, frame)
        except FAILURES:
            return MISSING

    def method_of(self, owner: Node, name: str) -> Function | None:
        """A method of the class, bound to the object; methods of the class around a ``Config`` are not its own."""
        cls = self.classes.get(owner.cls)
        for item in self.lineage(cls) if cls is not None else ():
            if isinstance(item, ClassValue):
                found = self.scope_of(item).names.get(name)
                if isinstance(found, Function):
                    static = any(_last_name(line.decorator) == "staticmethod" for line in found.node.decorators)
                    bound = None if static else owner
                    return Function(found.name, found.module, found.node, found.parent, bound, found.defaults)
        return None

    def derives(self, node: Node, base: str) -> bool | None:
        """Whether an object is of a class, by name; ``None`` when not known."""
        names = {self.canonical(name) for name in (node.cls, *node.bases)}
        if base in names:
            return True
        if isinstance(self.resolver, ClassFacts):
            answers = [self.resolver.is_subclass(name, base) for name in names]
            if True in answers:
                return True
            if None in answers and node.cls not in self.classes:
                return None
        cls = self.classes.get(node.cls)
        if cls is not None:
            # Every base was read, or is a base that no configuration class derives from.
            open_bases = [item for item in self.lineage(cls) if isinstance(item, Symbol)]
            return None if any(self.resolver.is_config(item.name) for item in open_bases) else False
        return None


def _last_name(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def _annotated(node: cst.ClassDef) -> Iterator[tuple[str, cst.AnnAssign]]:
    """The annotated names of a class body, without class variables."""
    for line in node.body.body:
        for item in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(item, cst.AnnAssign) and isinstance(item.target, cst.Name):
                annotation = item.annotation.annotation
                head = annotation.value if isinstance(annotation, cst.Subscript) else annotation
                if _last_name(head) not in {"ClassVar", "KW_ONLY"}:
                    yield item.target.value, item


__all__ = ["Classes", "Core", "Unknown", "builtin"]
