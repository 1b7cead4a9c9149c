"""Evaluates calls: functions of the text, constructors of configuration classes, known functions of libraries."""

from __future__ import annotations

from typing import Any

import libcst as cst

from translator.findings import Place
from translator.pyconfig import builtin
from translator.pyconfig.core import EndlessError
from translator.pyconfig.library import Library
from translator.pyconfig.values import (
    MISSING,
    NOT_KNOWN,
    Call,
    ClassValue,
    Frame,
    Function,
    Method,
    Node,
    Partial,
    Symbol,
    Unknown,
)

HARMLESS_DECORATORS = frozenset(
    {"functools.cache", "functools.lru_cache", "builtins.staticmethod", "typing.no_type_check", "typing.override"}
)


class Calls(Library):
    """The part of the evaluator that is about calls."""

    def call(self, callee: object, args: list[object], kwargs: dict[str, object], node: Any, frame: Frame) -> object:
        """The value of a call."""
        self.step()
        if isinstance(callee, Unknown):
            self._handed_over(callee.text, args, kwargs, node, frame)
            return self.spread(callee, node, frame)
        if isinstance(callee, Symbol):
            return self._symbol(callee.name, args, kwargs, node, frame)
        if isinstance(callee, Function):
            return self._function(callee, args, kwargs, node, frame)
        if isinstance(callee, ClassValue):
            return self.construct(callee, args, kwargs, node, frame)
        if isinstance(callee, Method):
            return self._method(callee, args, kwargs, node, frame)
        if isinstance(callee, Partial):
            target = callee.target or Symbol(callee.callee)
            return self.call(target, [*callee.args, *args], {**callee.kwargs, **kwargs}, node, frame)
        if isinstance(callee, Call):
            return self._opaque(f"{callee.callee}(...)", args, kwargs, node, frame)
        return self.unknown("R125", f"{builtin.describe(callee)} is not callable", node, frame)

    def _symbol(self, name: str, args: list[object], kwargs: dict[str, object], node: Any, frame: Frame) -> object:
        if name.startswith("builtins."):
            return self.builtin(name.removeprefix("builtins."), args, kwargs, node, frame)
        if self.resolver.is_config(name):
            return self._node(name, args, kwargs, node, frame)
        found = self.library(name, args, kwargs, node, frame)
        if found is not NOT_KNOWN:
            return found
        found = self.resolver.call(name, args, kwargs, self._place(node, frame))
        return self._opaque(name, args, kwargs, node, frame) if found is NOT_KNOWN else found

    def _place(self, node: Any, frame: Frame) -> Place:
        place: Place = frame.module.source.place(node)
        return place

    def _node(self, name: str, args: list[object], kwargs: dict[str, object], node: Any, frame: Frame) -> object:
        """A configuration object; its classes take keywords only."""
        if args:
            return self.unknown("R125", f"{name} takes keyword arguments only", node, frame)
        return Node(self.canonical(name), kwargs, self._places(kwargs, node, frame), self._place(node, frame))

    def _places(self, kwargs: dict[str, object], node: Any, frame: Frame) -> dict[str, Place]:
        """Where each keyword's value stands; what came by ``**`` stands where the call does."""
        places = dict.fromkeys(kwargs, self._place(node, frame))
        for argument in node.args if isinstance(node, cst.Call) else ():
            if argument.keyword is not None and argument.keyword.value in places:
                places[argument.keyword.value] = self._place(argument.value, frame)
        return places

    def _opaque(self, name: str, args: list[object], kwargs: dict[str, object], node: Any, frame: Frame) -> object:
        if name.partition(".")[0] in builtin.OUTSIDE_MODULES:
            return self.unknown("R111", f"{name} depends on the machine", node, frame)
        if name.startswith("logging.") or ".logger." in f".{name}.":
            return None
        self._handed_over(name, args, kwargs, node, frame)
        return Call(name, tuple(args), kwargs, self._place(node, frame))

    def _handed_over(self, name: str, args: list[object], kwargs: dict[str, object], node: Any, frame: Frame) -> None:
        """Says when an object that is being built goes to something that may change it, and its result is not used."""
        if id(node) in self.statements and any(isinstance(item, Node) for item in (*args, *kwargs.values())):
            self.find("R115", f"{name} is handed a configuration object", self._place(node, frame))

    def _method(self, callee: Method, args: list[object], kwargs: dict[str, object], node: Any, frame: Frame) -> object:
        owner: Any = callee.owner
        name = callee.name
        if builtin.changes(owner, name):
            self.changing(owner)
            if isinstance(owner, dict):
                return self._change_dict(owner, name, args, kwargs)
            if name == "extend":
                args = [self.items(args[0])]
                self.sized(len(owner) + len(args[0]))  # type: ignore[arg-type]
            if name == "sort":
                self.sort(owner, args, kwargs, node, frame)
                return None
            self.sized(len(owner))
        elif any(isinstance(item, Unknown) for item in args):
            return self.spread(next(item for item in args if isinstance(item, Unknown)), node, frame)
        if isinstance(owner, str):
            return self._text_method(owner, name, args, node, frame)
        result = getattr(owner, name)(*args, **kwargs)
        if name in {"items", "keys", "values"}:
            return list(result)
        return result

    def _change_dict(
        self, owner: dict[Any, object], name: str, args: list[object], kwargs: dict[str, object]
    ) -> object:
        if name == "update":
            for key, value in {**dict(args[0] if args else {}), **kwargs}.items():  # type: ignore[call-overload]
                self.set_entry(owner, key, value)
            return None
        if name == "setdefault":
            key, default = args[0], args[1] if len(args) > 1 else None
            if key not in owner:
                self.set_entry(owner, key, default)
            return owner[key]
        result: object = getattr(owner, name)(*args, **kwargs)
        return result

    def _text_method(self, owner: str, name: str, args: list[object], node: Any, frame: Frame) -> object:
        if name == "join":
            parts = self.items(args[0])
            for part in parts:
                if isinstance(part, Unknown):
                    return self.spread(part, node, frame)
            args = [parts]
        if name == "format":
            import re

            if re.search(r"\{[^{}]*[.\[!][^{}]*\}|\d{4}", owner) or not all(map(builtin.is_plain, args)):
                return self.unknown("R110", "a format that is not evaluated", node, frame)
        if name == "replace" and len(owner) * max(len(str(args[1])), 1) > self.limits.items:
            self.sized(self.limits.items + 1)
        return getattr(owner, name)(*args)

    def _function(
        self, callee: Function, args: list[object], kwargs: dict[str, object], node: Any, frame: Frame
    ) -> object:
        if callee.module is not self.entry_module and callee.parent is None:
            found = self.resolver.call(callee.dotted, args, kwargs, self._place(node, frame))
            if found is not NOT_KNOWN:
                return found
        inner = Frame(callee.module, {}, callee.parent)
        problem = self.bind(callee, args, kwargs, inner)
        if problem:
            return self.unknown("R125", problem, node, frame)
        if isinstance(callee.node, cst.Lambda):
            return self._bounded(callee, lambda: self.value(callee.node.body, inner), node, frame)
        if callee.node.asynchronous is not None or self.is_generator(callee):
            return self.unknown("R122", f"{callee.name} is a generator or coroutine", node, frame)
        self._decorated(callee)
        return self._bounded(callee, lambda: self.run_function(callee, inner), node, frame)

    def _bounded(self, callee: Function, run: Any, node: Any, frame: Frame) -> object:
        """Runs a function; where calls went too deep, the outermost call of the cycle is given up."""
        if len(self.stack) >= self.limits.depth:
            raise EndlessError(callee)
        self.stack.append(callee)
        try:
            result: object = run()
        except EndlessError as error:
            if any(item.node is error.function.node for item in self.stack[:-1]):
                raise
            return self.unknown("R116", f"{error.function.name} calls itself without end", node, frame)
        finally:
            self.stack.pop()
        return result

    def bind(self, callee: Function, args: list[object], kwargs: dict[str, object], frame: Frame) -> str | None:
        """Binds arguments to parameters; says what is wrong with them."""
        params: cst.Parameters = callee.node.params
        names = [param.name.value for param in (*params.posonly_params, *params.params)]
        if callee.owner is not None:
            args = [callee.owner, *args]
        bound: dict[str, object] = dict(zip(names, args, strict=False))
        if len(args) > len(names):
            if not isinstance(params.star_arg, cst.Param):
                return f"{callee.name} takes {len(names)} positional arguments, {len(args)} are given"
            bound[params.star_arg.name.value] = tuple(args[len(names) :])
        elif isinstance(params.star_arg, cst.Param):
            bound[params.star_arg.name.value] = ()
        names += [param.name.value for param in params.kwonly_params]
        rest: dict[str, object] = {}
        for name, value in kwargs.items():
            if name in bound:
                return f"{callee.name} gets {name} twice"
            if name in names:
                bound[name] = value
            elif params.star_kwarg is not None:
                rest[name] = value
            else:
                return f"{callee.name} has no parameter {name}"
        if params.star_kwarg is not None:
            bound[params.star_kwarg.name.value] = rest
        for name in names:
            if name not in bound:
                if name not in callee.defaults:
                    return f"{callee.name} needs {name}"
                bound[name] = callee.defaults[name]
        frame.names.update(bound)
        return None

    def run_function(self, callee: Function, frame: Frame) -> object:
        """Runs a function's body; merges what was returned under conditions that are not known."""
        from translator.pyconfig.journal import merged

        outcome = self.block([callee.node.body], frame)
        value = outcome.value if outcome.kind == "return" else None
        for early, unknown in reversed(frame.pending):
            value = merged(early, value, unknown)
        return value

    def is_generator(self, callee: Function) -> bool:
        """Whether the function's own body has a ``yield``."""
        known: dict[int, bool] = callee.module.source.generators
        if id(callee.node) not in known:
            finder = _Yields()
            callee.node.body.visit(finder)
            known[id(callee.node)] = finder.found
        return known[id(callee.node)]

    def _decorated(self, callee: Function) -> None:
        for decorator in callee.node.decorators:
            name = self.decorator_name(decorator, callee.module.frame)
            if name not in HARMLESS_DECORATORS:
                self.find("R121", f"decorator {name} of {callee.name}", self._place(decorator, callee.module.frame))

    def decorator_name(self, decorator: cst.Decorator, frame: Frame) -> str:
        """The dotted name of a decorator, without its arguments."""
        node = decorator.decorator
        while isinstance(node, cst.Call):
            node = node.func
        value = self.value(node, frame)
        return value.dotted if isinstance(value, Function) else builtin.describe(value)


class _Yields(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found = False

    def visit_Yield(self, node: cst.Yield) -> None:  # noqa: N802
        self.found = True

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:  # noqa: N802
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:  # noqa: N802
        return False


__all__ = ["MISSING", "Calls"]
