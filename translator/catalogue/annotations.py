"""Reads type annotations: the kind of one value, how many, which ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import libcst as cst

from translator.catalogue.evaluate import Evaluator, NotStatic
from translator.catalogue.source_tree import ClassRef, Module, dotted

_PLAIN = {"int", "float", "str", "bool", "dict", "list"}


@dataclass(frozen=True, slots=True)
class ValueType:
    """What an annotation says about a value; see `translator.catalogue.model.Entry` for the words.

    ``inferable`` is false where upstream's own argparse inference gives up (unions, several list types).
    """

    kind: str
    type_name: str
    arity: str | None = None
    choices: tuple[Any, ...] | None = None
    optional: bool = False
    inferable: bool = True
    dataclass: ClassRef | None = None


def read_annotation(node: cst.BaseExpression, module: Module, evaluator: Evaluator) -> ValueType:
    """What a field's annotation says about its values."""
    if isinstance(node, cst.SimpleString):
        return read_annotation(cst.parse_expression(str(node.evaluated_value)), module, evaluator)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return _union(_union_members(node), module, evaluator)
    if isinstance(node, cst.Subscript):
        return _subscript(node, module, evaluator)
    name = dotted(node)
    if name in _PLAIN:
        return ValueType(name, name)
    if name == "signal.Signals":
        return ValueType("enum", "Signals")
    ref = evaluator.tree.class_of(module, name)
    if ref is not None:
        members = evaluator.members(ref)
        if members is not None:
            return ValueType("enum", ref.name, choices=tuple(member.name for member in members))
        if ref.decorated_as_dataclass():
            return ValueType("custom", ref.name, dataclass=ref)
    else:
        found = evaluator.tree.follow(module, name)
        if found is not None and found[1] in found[0].assigns:  # an alias of a type
            return read_annotation(found[0].assigns[found[1]], found[0], evaluator)
    return ValueType("custom", name.rsplit(".", 1)[-1] or "object")


def _union_members(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return [*_union_members(node.left), *_union_members(node.right)]
    return [node]


def _items(node: cst.Subscript) -> list[cst.BaseExpression]:
    return [element.slice.value for element in node.slice if isinstance(element.slice, cst.Index)]


def _union(members: list[cst.BaseExpression], module: Module, evaluator: Evaluator) -> ValueType:
    real = [member for member in members if dotted(member) != "None"]
    optional = len(real) < len(members)
    types = [read_annotation(member, module, evaluator) for member in real]
    if len(types) == 1:
        return replace(types[0], optional=True)
    first = types[0]
    names = " | ".join(_spell(member) for member in types)
    several = next((member.arity for member in types if member.arity), None)
    kinds = {member.kind for member in types}
    kind = kinds.pop() if len(kinds) == 1 else "float" if kinds == {"int", "float"} else "custom"
    return ValueType(kind, names, several, None, optional or first.optional, inferable=False)


def _spell(value: ValueType) -> str:
    return {"*": f"list[{value.type_name}]", "**": f"list[list[{value.type_name}]]"}.get(
        value.arity or "", value.type_name
    )


def _subscript(node: cst.Subscript, module: Module, evaluator: Evaluator) -> ValueType:
    head = dotted(node.value).rsplit(".", 1)[-1]
    items = _items(node)
    if head == "Optional":
        return replace(read_annotation(items[0], module, evaluator), optional=True)
    if head == "Union":
        return _union(items, module, evaluator)
    if head == "Annotated":
        return read_annotation(items[0], module, evaluator)
    if head == "Literal":
        return _literal(items, module, evaluator)
    if head in {"list", "List", "Sequence", "tuple", "Tuple", "set"}:
        inner = read_annotation(items[0], module, evaluator)
        plain_list = head in {"list", "List"} and len(items) == 1
        return replace(
            inner,
            arity="**" if inner.arity else "*",
            optional=False,
            inferable=inner.inferable and plain_list,
        )
    if head in {"dict", "Dict", "Mapping"}:
        return ValueType("dict", "dict", inferable=False)
    return ValueType("custom", head or "object", inferable=False)


def _literal(items: list[cst.BaseExpression], module: Module, evaluator: Evaluator) -> ValueType:
    try:
        choices = tuple(evaluator.value(item, module) for item in items)
    except NotStatic:
        return ValueType("custom", "Literal", inferable=False)
    real = tuple(choice for choice in choices if choice is not None)
    kind = type(real[0]).__name__ if real else "str"
    return ValueType(kind, kind, choices=real, optional=len(real) < len(choices))
