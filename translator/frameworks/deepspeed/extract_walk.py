"""Follows DeepSpeed's configuration parser through its source, and notes every key that it reads.

``DeepSpeedConfig`` hands one dictionary to dozens of small functions, which take keys out of it with
``get_scalar_param(d, KEY, DEFAULT)``, ``d.get(KEY, DEFAULT)`` or ``d[KEY]``, and to models by ``Model(**d[KEY])``.
`Walker` runs these functions abstractly: a value is a `Path` (this part of the user's dictionary), something static,
or unknown. Nothing is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from translator.catalogue.evaluate import Evaluator, NotStatic, keyword_arguments, positional_arguments
from translator.catalogue.source_tree import ClassRef, Module, SourceTree, dotted

Path = tuple[str, ...]
MODEL_BASE = "DeepSpeedConfigModel"
_GETTERS = {"get_scalar_param", "get_list_param", "get_dict_param"}
_INT_WRAPPER = "pp_int"
_UNKNOWN = object()
_MAX_DEPTH = 24


class StarTree(SourceTree):
    """A source tree that also looks names up through ``from x import *``."""

    def __init__(self, root: Any) -> None:
        super().__init__(root)
        self._stars: dict[str, list[str]] = {}

    def follow(self, module: Module, name: str, seen: int = 0) -> tuple[Module, str] | None:
        """Where a name is defined; see `SourceTree.follow`."""
        found = super().follow(module, name, seen)
        if found is not None or seen > 12:
            return found
        for base in self._star_bases(module):
            target = self.module(base)
            found = self.follow(target, name, seen + 1) if target is not None else None
            if found is not None:
                return found
        return None

    def _star_bases(self, module: Module) -> list[str]:
        if module.name not in self._stars:
            found: list[str] = []
            for line in module.tree.body:
                for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                    if isinstance(statement, cst.ImportFrom) and isinstance(statement.names, cst.ImportStar):
                        base = dotted(statement.module)
                        if statement.relative:
                            parts = module.package.split(".")
                            parts = parts[: len(parts) - len(statement.relative) + 1]
                            base = ".".join([*parts, base] if base else parts)
                        found.append(base)
            self._stars[module.name] = found
        return self._stars[module.name]


class ConstantEvaluator(Evaluator):
    """Evaluates DeepSpeed's constants: ``pp_int(5e8)``, ``sys.maxsize``, and the attributes of plain classes."""

    def _call(self, node: cst.Call, module: Module, local: Any) -> Any:
        if dotted(node.func) == _INT_WRAPPER:
            return int(self.value(positional_arguments(node)[0], module, local))
        return super()._call(node, module, local)

    def _attribute(self, node: cst.Attribute, module: Module, local: Any) -> Any:
        if dotted(node) == "sys.maxsize":
            return 2**63 - 1
        owner = self.tree.class_of(module, dotted(node.value)) if dotted(node.value) else None
        if owner is not None and self.tree.enum_members(owner) is None:
            for line in owner.node.body.body:
                for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                    if isinstance(statement, cst.Assign) and dotted(statement.targets[0].target) == node.attr.value:
                        return self.value(statement.value, owner.module)
        return super()._attribute(node, module, local)


@dataclass(frozen=True, slots=True)
class Read:
    """One place that reads a key: with which default, if it has one that the source states."""

    path: Path
    default: Any
    stated: bool
    place: str


@dataclass(slots=True)
class _Scope:
    """The names of one running function: paths, static values, and the class that a method belongs to."""

    module: Module
    names: dict[str, Any] = field(default_factory=dict)
    owner: ClassRef | None = None
    result: Any = _UNKNOWN


@dataclass(frozen=True, slots=True)
class At:
    """A value that is this part of the user's dictionary."""

    path: Path


class Walker:
    """Collects the keys that a function or class reads from a dictionary; see the module's description."""

    def __init__(self, tree: SourceTree, evaluator: Evaluator, same: Mapping[str, str]) -> None:
        """``same`` maps other names of sections to the one to note."""
        self.same = same
        self.tree = tree
        self.evaluator = evaluator
        self.reads: list[Read] = []
        self.models: dict[Path, ClassRef] = {}
        self.open: set[Path] = set()
        self._active: set[tuple[str, tuple[Any, ...]]] = set()

    def run_class(self, ref: ClassRef, arguments: Sequence[Any]) -> None:
        """Run a class's constructor on these arguments."""
        self._method(ref, "__init__", arguments, _Scope(ref.module))

    # Functions

    def _method(self, ref: ClassRef, name: str, arguments: Sequence[Any], caller: _Scope) -> Any:
        for statement in ref.node.body.body:
            if isinstance(statement, cst.FunctionDef) and statement.name.value == name:
                kept = {key: value for key, value in caller.names.items() if key.startswith("self.")}
                scope = _Scope(ref.module, kept if caller.owner is not None else {}, ref)
                result = self._run(statement, arguments, {}, scope, skip=1)
                if caller.owner is not None:
                    caller.names.update((k, v) for k, v in scope.names.items() if k.startswith("self."))
                return result
        return _UNKNOWN

    def _run(
        self, function: cst.FunctionDef, arguments: Sequence[Any], named: dict[str, Any], scope: _Scope, skip: int = 0
    ) -> Any:
        key = (f"{scope.module.name}:{scope.module.line(function)}", tuple(map(repr, [*arguments, *named.values()])))
        if key in self._active or len(self._active) > _MAX_DEPTH:
            return _UNKNOWN
        self._active.add(key)
        parameters = function.params.params[skip:]
        for parameter in parameters:
            if parameter.default is not None:
                scope.names[parameter.name.value] = self._static(parameter.default, scope)
        for parameter, argument in zip(parameters, arguments, strict=False):
            scope.names[parameter.name.value] = argument
        scope.names.update(named)
        self._visit(function.body, scope)
        self._active.discard(key)
        return scope.result

    # Statements and expressions

    def _visit(self, node: cst.CSTNode, scope: _Scope) -> Any:
        if isinstance(node, cst.Assign):
            return self._assign(node, scope)
        if isinstance(node, cst.Return):
            value = self._visit(node.value, scope) if node.value is not None else None
            if isinstance(value, At):
                scope.result = value
            return value
        if isinstance(node, cst.For):
            return self._loop(node, scope)
        if isinstance(node, cst.Call):
            return self._call(node, scope)
        if isinstance(node, cst.Subscript):
            return self._subscript(node, scope)
        if isinstance(node, cst.Name | cst.Attribute):
            return scope.names.get(dotted(node), _UNKNOWN)
        if isinstance(node, cst.DictComp):
            return self._comprehension(node, scope)
        if isinstance(node, cst.Annotation | cst.FunctionDef | cst.ClassDef | cst.Import | cst.ImportFrom):
            return _UNKNOWN
        found = [self._visit(child, scope) for child in node.children]
        if isinstance(node, cst.IfExp | cst.BooleanOperation):
            return next((value for value in found if isinstance(value, At)), _UNKNOWN)
        return _UNKNOWN

    def _assign(self, node: cst.Assign, scope: _Scope) -> Any:
        value = self._visit(node.value, scope)
        if value is _UNKNOWN:
            value = self._static(node.value, scope)
        for target in node.targets:
            name = dotted(target.target)
            if not name:
                self._visit(target.target, scope)
            elif isinstance(value, At) or not isinstance(scope.names.get(name), At):  # a later `= {}` is a fallback
                scope.names[name] = value
        return value

    def _loop(self, node: cst.For, scope: _Scope) -> Any:
        items: list[Any] = [_UNKNOWN]
        call = node.iter
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "items":
            over = self._visit(call.func.value, scope)
            if isinstance(over, At):  # every key the user writes is taken over, on top of a literal of defaults
                self.open.add(over.path)
                for default in [value for value in scope.names.values() if isinstance(value, dict)]:
                    for key, value in default.items():
                        self._note((*over.path, str(key)), value, True, node, scope)
            else:
                table = self._static(call.func.value, scope)
                items = list(table.items()) if isinstance(table, dict) else items
        else:
            static = self._static(node.iter, scope)
            items = static if isinstance(static, list) else items
        for item in items:
            names = [dotted(part.value) for part in node.target.elements] if isinstance(node.target, cst.Tuple) else []
            if names and isinstance(item, tuple):
                scope.names.update(zip(names, item, strict=False))
            elif not names:
                scope.names[dotted(node.target)] = item
            self._visit(node.body, scope)
        return _UNKNOWN

    def _comprehension(self, node: cst.DictComp, scope: _Scope) -> Any:
        keys = self._static(node.for_in.iter, scope)
        name = dotted(node.for_in.target)
        if not isinstance(keys, list):
            return _UNKNOWN
        found: dict[str, Any] = {}
        for key in keys:
            inner = _Scope(scope.module, {**scope.names, name: key}, scope.owner)
            found[str(key)] = self._visit(node.value, inner)
        return found

    def _subscript(self, node: cst.Subscript, scope: _Scope) -> Any:
        base = self._visit(node.value, scope)
        index = node.slice[0].slice
        if not isinstance(base, At) or not isinstance(index, cst.Index):
            return _UNKNOWN
        key = self._static(index.value, scope)
        if not isinstance(key, str):
            return _UNKNOWN
        inner = self._inner(base, key)
        default = self._static(cst.Name(f"{dotted(index.value)}_DEFAULT"), scope) if dotted(index.value) else _UNKNOWN
        stated = default is not _UNKNOWN
        self._note(inner.path, default if stated else None, stated, node, scope)
        return inner

    def _call(self, node: cst.Call, scope: _Scope) -> Any:
        name = dotted(node.func)
        if name in _GETTERS:
            arguments = positional_arguments(node)
            return self._get(self._visit(arguments[0], scope), arguments[1:], node, scope)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "get":
            return self._get(self._visit(node.func.value, scope), positional_arguments(node), node, scope)
        values = [self._visit(argument.value, scope) for argument in node.args if not argument.star]
        if name in {"copy.copy", "copy.deepcopy"} and values and isinstance(values[0], At):
            self.open.add(values[0].path)
            return values[0]
        stars = [self._visit(argument.value, scope) for argument in node.args if argument.star == "**"]
        if name.startswith("self.") and scope.owner is not None:
            return self._method(scope.owner, name.removeprefix("self."), values, scope)
        found = self.tree.follow(scope.module, name) if name else None
        if found is None:
            self._visit(node.func, scope)
            return _UNKNOWN
        home, original = found
        if original in home.functions:
            positional = [self._visit(argument, scope) for argument in positional_arguments(node)]
            positional = [
                self._static(expression, scope) if value is _UNKNOWN else value
                for value, expression in zip(positional, positional_arguments(node), strict=True)
            ]
            named = {
                key: value
                for key, expression in self._keywords(node).items()
                if isinstance(value := self._visit(expression, scope), At)
            }
            if any(isinstance(value, At) for value in [*positional, *named.values()]):
                return self._run(home.functions[original], positional, named, _Scope(home))
            return _UNKNOWN
        if original in home.classes:
            return self._construct(ClassRef(home, home.classes[original]), values, stars)
        return _UNKNOWN

    @staticmethod
    def _keywords(node: cst.Call) -> dict[str, cst.BaseExpression]:
        try:
            return keyword_arguments(node)
        except NotStatic:
            return {}

    def _construct(self, ref: ClassRef, values: Sequence[Any], stars: Sequence[Any]) -> Any:
        if self.is_model(ref):
            for star in stars:
                if isinstance(star, At):
                    self.models[star.path] = ref
                elif isinstance(star, dict):
                    self._models_of_fields(ref, star)
        elif any(isinstance(value, At) for value in values):
            self._method(ref, "__init__", values, _Scope(ref.module))
        return _UNKNOWN

    def _models_of_fields(self, ref: ClassRef, paths: dict[str, Any]) -> None:
        for line in ref.node.body.body:
            for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                if isinstance(statement, cst.AnnAssign):
                    inner = self.tree.class_of(ref.module, dotted(statement.annotation.annotation))
                    path = paths.get(dotted(statement.target))
                    if inner is not None and isinstance(path, At):
                        self.models[path.path] = inner

    def is_model(self, ref: ClassRef) -> bool:
        """Whether a class is a pydantic model of DeepSpeed's."""
        return ref.name == MODEL_BASE or any(self.is_model(base) for base in self.tree.bases(ref))

    def _get(self, base: Any, arguments: Sequence[cst.BaseExpression], node: cst.Call, scope: _Scope) -> Any:
        key = self._static(arguments[0], scope) if arguments else _UNKNOWN
        if not isinstance(base, At) or not isinstance(key, str):
            for argument in arguments:
                self._visit(argument, scope)
            return _UNKNOWN
        default = self._static(arguments[1], scope) if len(arguments) > 1 else None
        stated = default is not _UNKNOWN
        inner = self._inner(base, key)
        self._note(inner.path, default if stated else None, stated, node, scope)
        return inner

    def _static(self, node: cst.BaseExpression, scope: _Scope) -> Any:
        local = {
            key: value for key, value in scope.names.items() if value is not _UNKNOWN and not isinstance(value, At)
        }
        try:
            return self.evaluator.value(node, scope.module, local)
        except NotStatic:
            return _UNKNOWN

    def _inner(self, base: At, key: str) -> At:
        return At((*base.path, self.same.get(key, key) if not base.path else key))

    def _note(self, path: Path, default: Any, stated: bool, node: cst.CSTNode, scope: _Scope) -> None:
        self.reads.append(Read(path, default, stated, scope.module.place(node)))
