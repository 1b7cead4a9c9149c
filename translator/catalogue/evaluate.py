"""Static evaluation of the Python expressions in which upstream states defaults and choices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import libcst as cst

from translator.catalogue.source_tree import ClassRef, Module, SourceTree, dotted


class NotStatic(Exception):  # noqa: N818 - an outcome, not an error
    """The expression depends on something that the source text does not say."""


@dataclass(frozen=True, slots=True)
class EnumMember:
    """A member of an upstream Enum."""

    enum: str
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """A value read from an environment variable; ``value`` is what holds without it."""

    variable: str
    value: Any


@dataclass(frozen=True, slots=True)
class Instance:
    """An upstream dataclass instance: the class and its field values."""

    ref: ClassRef
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One dataclass field; expressions stay unevaluated."""

    name: str
    annotation: cst.BaseExpression
    module: Module
    node: cst.AnnAssign
    default: cst.BaseExpression | None
    factory: cst.BaseExpression | None
    init: bool
    metadata: cst.BaseExpression | None


_BINARY: dict[type[cst.BaseBinaryOp], Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.Power: operator.pow,
}
_CONSTANTS: dict[str, Any] = {"True": True, "False": False, "None": None}
_CASTS: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "str": str, "bool": bool}
_MAX_EXPONENT = 4096
_MAX_DEPTH = 64


def keyword_arguments(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """The keyword arguments of a call. Raises `NotStatic` for ``**mapping``."""
    found: dict[str, cst.BaseExpression] = {}
    for argument in call.args:
        if argument.star:
            raise NotStatic("star argument")
        if argument.keyword is not None:
            found[argument.keyword.value] = argument.value
    return found


def positional_arguments(call: cst.Call) -> list[cst.BaseExpression]:
    """The positional arguments of a call, without stars."""
    return [argument.value for argument in call.args if argument.keyword is None and not argument.star]


def plain(value: Any) -> Any:
    """A static value as JSON: enum members by name, infinities as text.

    Raises `NotStatic` for a class or another value that JSON cannot hold.
    """
    if isinstance(value, EnumMember):
        return value.name
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise NotStatic(type(value).__name__)


class Evaluator:
    """Evaluates literals, arithmetic, names across modules, enums and dataclass constructors."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self._depth = 0

    def value(self, node: cst.BaseExpression, module: Module, local: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression.

        Raises `NotStatic` when the source alone does not determine it.
        """
        self._depth += 1
        try:
            if self._depth > _MAX_DEPTH:
                raise NotStatic("too deep")
            return self._value(node, module, local or {})
        except (TypeError, ValueError, ArithmeticError, KeyError) as error:
            raise NotStatic(str(error)) from error
        finally:
            self._depth -= 1

    def _value(self, node: cst.BaseExpression, module: Module, local: Mapping[str, Any]) -> Any:
        if isinstance(node, cst.SimpleString | cst.ConcatenatedString | cst.Integer | cst.Float):
            return node.evaluated_value
        if isinstance(node, cst.Name):
            return self._name(node.value, module, local)
        if isinstance(node, cst.Attribute):
            return self._attribute(node, module, local)
        if isinstance(node, cst.UnaryOperation):
            operand = self.value(node.expression, module, local)
            if isinstance(node.operator, cst.Minus):
                return -operand
            if isinstance(node.operator, cst.Not):
                return not operand
            raise NotStatic("unary operator")
        if isinstance(node, cst.BinaryOperation):
            return self._binary(node, module, local)
        if isinstance(node, cst.List | cst.Tuple | cst.Set):
            return [self.value(element.value, module, local) for element in node.elements]
        if isinstance(node, cst.Dict):
            return self._dict(node, module, local)
        if isinstance(node, cst.ListComp | cst.GeneratorExp | cst.SetComp):
            return self._comprehension(node, module, local)
        if isinstance(node, cst.Call):
            return self._call(node, module, local)
        raise NotStatic(type(node).__name__)

    def _binary(self, node: cst.BinaryOperation, module: Module, local: Mapping[str, Any]) -> Any:
        apply = _BINARY.get(type(node.operator))
        if apply is None:
            raise NotStatic("operator")
        left, right = self.value(node.left, module, local), self.value(node.right, module, local)
        if isinstance(node.operator, cst.Power) and not (isinstance(right, int | float) and right <= _MAX_EXPONENT):
            raise NotStatic("power too large")
        return apply(left, right)

    def _name(self, name: str, module: Module, local: Mapping[str, Any]) -> Any:
        if name in local:
            return local[name]
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        found = self.tree.follow(module, name)
        if found is None:
            raise NotStatic(name)
        home, original = found
        if original in home.assigns:
            return self.value(home.assigns[original], home)
        if original in home.classes:
            return ClassRef(home, home.classes[original])
        raise NotStatic(name)

    def _attribute(self, node: cst.Attribute, module: Module, local: Mapping[str, Any]) -> Any:
        if dotted(node).startswith("signal.SIG") and module.imports.get("signal") == ("signal", None):
            return EnumMember("Signals", node.attr.value, None)
        owner = self.value(node.value, module, local)
        name = node.attr.value
        if isinstance(owner, EnumMember) and name in {"name", "value"}:
            return getattr(owner, name)
        if isinstance(owner, ClassRef):
            members = self.tree.enum_members(owner)
            if members is not None and name in members:
                return self._member(owner, name, members[name])
        raise NotStatic(dotted(node))

    def _member(self, owner: ClassRef, name: str, expression: cst.BaseExpression) -> EnumMember:
        try:
            value = self.value(expression, owner.module)
        except NotStatic:
            value = None
        return EnumMember(owner.name, name, value)

    def members(self, owner: ClassRef) -> list[EnumMember] | None:
        """All members of an Enum in order of definition; ``None`` for any other class."""
        found = self.tree.enum_members(owner)
        return None if found is None else [self._member(owner, name, value) for name, value in found.items()]

    def _iterate(self, value: Any) -> list[Any]:
        if isinstance(value, ClassRef):
            members = self.members(value)
            if members is not None:
                return members
        if isinstance(value, list):
            return value
        raise NotStatic("not iterable")

    def _dict(self, node: cst.Dict, module: Module, local: Mapping[str, Any]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                result[self.value(element.key, module, local)] = self.value(element.value, module, local)
            else:
                result.update(self.value(element.value, module, local))
        return result

    def _comprehension(
        self, node: cst.ListComp | cst.GeneratorExp | cst.SetComp, module: Module, local: Mapping[str, Any]
    ) -> list[Any]:
        loop = node.for_in
        if loop.ifs or loop.inner_for_in or not isinstance(loop.target, cst.Name):
            raise NotStatic("comprehension")
        items = self._iterate(self.value(loop.iter, module, local))
        return [self.value(node.elt, module, {**local, loop.target.value: item}) for item in items]

    def _call(self, node: cst.Call, module: Module, local: Mapping[str, Any]) -> Any:
        name = dotted(node.func)
        arguments = positional_arguments(node)
        if name in {"os.getenv", "os.environ.get"}:
            fallback = self.value(arguments[1], module, local) if len(arguments) > 1 else None
            return FromEnvironment(self.value(arguments[0], module, local), fallback)
        if name in _CASTS and len(arguments) == 1:
            value = self.value(arguments[0], module, local)
            if isinstance(value, FromEnvironment):
                return FromEnvironment(value.variable, _CASTS[name](value.value))
            return _CASTS[name](value)
        if name == "range":
            return list(range(*(self.value(argument, module, local) for argument in arguments)))
        if name in {"list", "tuple", "set", "frozenset", "sorted"}:
            items = self._iterate(self.value(arguments[0], module, local)) if arguments else []
            return sorted(items) if name == "sorted" else list(items)
        if name == "dict" and not arguments:
            return {key: self.value(value, module, local) for key, value in keyword_arguments(node).items()}
        ref = self.tree.class_of(module, name)
        if ref is not None and ref.decorated_as_dataclass():
            return self._construct(ref, node, module, local)
        raise NotStatic(name or "call")

    def _construct(self, ref: ClassRef, node: cst.Call, module: Module, local: Mapping[str, Any]) -> Instance:
        fields = [field for field in self.fields(ref) if field.init]
        given = {
            field.name: self.value(argument, module, local)
            for field, argument in zip(fields, positional_arguments(node), strict=False)
        }
        given.update((key, self.value(value, module, local)) for key, value in keyword_arguments(node).items())
        unknown = set(given) - {field.name for field in fields}
        if unknown:
            raise NotStatic(f"{ref.name} has no {', '.join(sorted(unknown))}")
        values = {field.name: given[field.name] if field.name in given else self.default(field) for field in fields}
        return Instance(ref, values)

    def default(self, field: Field) -> Any:
        """The default of a dataclass field. Raises `NotStatic` when there is none or it is computed."""
        if field.default is not None:
            return self.value(field.default, field.module)
        if field.factory is None:
            raise NotStatic(f"{field.name} has no default")
        if isinstance(field.factory, cst.Lambda):
            return self.value(field.factory.body, field.module)
        name = dotted(field.factory)
        if name in {"list", "dict", "set", "tuple"}:
            return {} if name == "dict" else []
        ref = self.tree.class_of(field.module, name)
        if ref is not None and ref.decorated_as_dataclass():
            return self._construct(ref, cst.Call(func=field.factory), field.module, {})
        raise NotStatic(name)

    def fields(self, ref: ClassRef) -> list[Field]:
        """The fields of a dataclass, inherited ones first, as ``dataclasses.fields`` orders them."""
        found: dict[str, Field] = {}
        for base in reversed(list(self.tree.bases(ref))):
            found.update((field.name, field) for field in self.fields(base))
        if ref.decorated_as_dataclass():
            for line in ref.node.body.body:
                for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                    if isinstance(statement, cst.AnnAssign) and isinstance(statement.target, cst.Name):
                        field = _field(statement, statement.target.value, ref.module)
                        if field is not None:
                            found[field.name] = field
        return list(found.values())


def _field(node: cst.AnnAssign, name: str, module: Module) -> Field | None:
    annotation = node.annotation.annotation
    head = dotted(annotation.value if isinstance(annotation, cst.Subscript) else annotation).rsplit(".", 1)[-1]
    if head in {"ClassVar", "KW_ONLY"}:
        return None
    value = node.value
    if isinstance(value, cst.Call) and dotted(value.func).rsplit(".", 1)[-1] == "field":
        options = keyword_arguments(value)
        init = options.get("init")
        return Field(
            name,
            annotation,
            module,
            node,
            options.get("default"),
            options.get("default_factory"),
            not (isinstance(init, cst.Name) and init.value == "False"),
            options.get("metadata"),
        )
    return Field(name, annotation, module, node, value, None, True, None)
