"""Evaluates expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import libcst as cst

from translator.pyconfig import builtin
from translator.pyconfig.core import Core, Outcome
from translator.pyconfig.operators import ORDER, UNARY, binary, wide
from translator.pyconfig.resolver import Members
from translator.pyconfig.values import (
    MISSING,
    Call,
    ClassValue,
    Frame,
    Function,
    ImportRef,
    Method,
    ModuleValue,
    Node,
    Partial,
    Symbol,
    Unknown,
    same,
)

OPEN = (Call, Symbol)
CALLABLE = (Function, ClassValue, Method, Partial, ModuleValue)
FAILURES = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)


class Expressions(Core):
    """The expression half of the evaluator."""

    def value(self, node: cst.CSTNode, frame: Frame) -> object:
        """The value of an expression; `Unknown` where the text does not determine it."""
        self.step()
        method: Callable[[Any, Frame], object] | None = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            kind = type(node).__name__
            code = "R122" if kind in {"Yield", "Await"} else "R110"
            return self.unknown(code, f"{kind} is not evaluated", node, frame)
        try:
            return method(node, frame)
        except FAILURES as error:
            reason = f"{type(error).__name__}: {error}"
            return self.unknown("R125", reason, node, frame)

    def _constant(self, node: Any, frame: Frame) -> object:
        return node.evaluated_value

    _Integer = _Float = _Imaginary = _SimpleString = _constant

    def _ConcatenatedString(self, node: cst.ConcatenatedString, frame: Frame) -> object:  # noqa: N802
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        for part in (left, right):
            if isinstance(part, Unknown):
                return self.spread(part, node, frame)
        return binary(cst.Add, left, right, self.limits.items)

    def _FormattedString(self, node: cst.FormattedString, frame: Frame) -> object:  # noqa: N802
        parts: list[str] = []
        raw = "r" in node.prefix.lower()
        for part in node.parts:
            if isinstance(part, cst.FormattedStringText):
                text = part.value.replace("{{", "{").replace("}}", "}")
                mark = node.start.lstrip("fFrR")
                parts.append(text if raw else str(cst.SimpleString(mark + text + mark).evaluated_value))
                continue
            assert isinstance(part, cst.FormattedStringExpression)
            value = self.value(part.expression, frame)
            spec = "".join(
                str(item.value) for item in part.format_spec or () if isinstance(item, cst.FormattedStringText)
            )
            if isinstance(value, Unknown):
                return self.spread(value, node, frame)
            if not builtin.is_plain(value) or wide(spec) or part.conversion not in {None, "r", "s"}:
                return self.unknown("R110", "not a value that can be formatted", node, frame)
            shown = repr(value) if part.conversion == "r" else value
            label = frame.module.source.text(part.expression) + "=" if part.equal else ""
            parts.append(label + format(shown, spec))
        self.sized(sum(map(len, parts)))
        return "".join(parts)

    def _Name(self, node: cst.Name, frame: Frame) -> object:  # noqa: N802
        found = self.look_up(node.value, frame)
        if found is not MISSING:
            return found
        if frame.module.star:
            return self.unknown("R120", "the name may come from a star import", node, frame)
        return self.unknown("R114", f"{node.value} is not defined", node, frame)

    def look_up(self, name: str, frame: Frame) -> object:
        """What a name is bound to: in the function, around it, in its module, in Python; else ``MISSING``."""
        where: Frame | None = frame
        while where is not None:
            found = where.names.get(name, MISSING)
            if isinstance(found, ImportRef):
                found = self.member(where.module, name) if where is where.module.frame else MISSING
                if found is MISSING:
                    found = self.imported_value(where.names[name], where.module)  # type: ignore[arg-type]
            if found is not MISSING:
                return found
            where = where.parent
        if name == "__name__":  # of an imported module, so never "__main__"
            return frame.module.name or frame.module.file.rpartition("/")[2].removesuffix(".py")
        found = self.member(frame.module, name)
        return builtin.NAMES.get(name, MISSING) if found is MISSING else found

    def _Attribute(self, node: cst.Attribute, frame: Frame) -> object:  # noqa: N802
        return self.attribute(self.value(node.value, frame), node.attr.value, node, frame)

    def attribute(self, owner: object, name: str, node: Any, frame: Frame) -> object:
        """The value of ``owner.name``; the default of a field that is not stated."""
        if isinstance(owner, Unknown):
            return self.spread(owner, node, frame)
        if isinstance(owner, Node):
            return self._field(owner, name, node, frame)
        if isinstance(owner, Symbol):
            dotted = f"{owner.name}.{name}"
            if dotted in self.imported and (module := self.load(dotted, frame.module)):
                return module
            return builtin.CONSTANTS.get(dotted, Symbol(dotted))
        if isinstance(owner, ModuleValue):
            found = self.member(owner, name)
            if found is MISSING and owner.name:
                found = self.load(f"{owner.name}.{name}", owner) or MISSING
            return self.unknown("R114", f"the module has no {name}", node, frame) if found is MISSING else found
        if isinstance(owner, ClassValue):
            return self.class_attribute(owner, name, node, frame)
        if isinstance(owner, Call):
            return self.unknown("R112", f"{owner.callee} is not known", node, frame)
        if builtin.has_method(owner, name):
            return Method(owner, name)
        return self.unknown("R110", f"attribute {name} is not evaluated", node, frame)

    def _field(self, owner: Node, name: str, node: Any, frame: Frame) -> object:
        if name in owner.fields:
            return owner.fields[name]
        found = self.own_default(owner, name)
        if found is MISSING:
            found = self.field_default(owner, name)
        if found is not MISSING:
            return self.materialise(owner, name, found, frame.module.source.place(node))
        method = self.method_of(owner, name)
        if method is None and isinstance(self.resolver, Members):
            found = self.resolver.member(owner, name, frame.module.source.place(node))
            if found is not MISSING:
                return found
        return method or self.unknown("R114", f"the default of {name} is not known", node, frame)

    def own_default(self, owner: Node, name: str) -> object:
        """The default of a field of a class that was read; ``MISSING`` for any other class."""
        return MISSING

    def method_of(self, owner: Node, name: str) -> Function | None:
        """A method of a class that was read."""
        return None

    def class_attribute(self, owner: ClassValue, name: str, node: Any, frame: Frame) -> object:
        """The value of a name in a class body."""
        return MISSING

    def _Call(self, node: cst.Call, frame: Frame) -> object:  # noqa: N802
        callee = self.value(node.func, frame)
        args: list[object] = []
        kwargs: dict[str, object] = {}
        for argument in node.args:
            value = self.value(argument.value, frame)
            if argument.star and isinstance(value, Unknown):
                return self.spread(value, node, frame)
            if argument.star == "*":
                args.extend(self.items(value))
            elif argument.star == "**":
                if not isinstance(value, dict):
                    raise TypeError("** needs a dictionary")
                kwargs.update({str(key): item for key, item in value.items()})
            elif argument.keyword is not None:
                kwargs[argument.keyword.value] = value
            else:
                args.append(value)
        return self.call(callee, args, kwargs, node, frame)

    def items(self, value: object) -> list[object]:
        """The items of something that is iterated over. Raises `TypeError` for what is not."""
        if isinstance(value, str | list | tuple | set | frozenset | dict | range | bytes):
            self.sized(len(value))
            return list(value)
        raise TypeError(f"{builtin.describe(value)} is not iterated over")

    def _elements(self, elements: Any, node: Any, frame: Frame) -> list[object] | Unknown:
        found: list[object] = []
        for element in elements:
            value = self.value(element.value, frame)
            if isinstance(element, cst.StarredElement):
                if isinstance(value, Unknown):
                    return self.spread(value, node, frame)
                found.extend(self.items(value))
            else:
                found.append(value)
        return found

    def _List(self, node: cst.List, frame: Frame) -> object:  # noqa: N802
        return self._elements(node.elements, node, frame)

    def _Tuple(self, node: cst.Tuple, frame: Frame) -> object:  # noqa: N802
        found = self._elements(node.elements, node, frame)
        return found if isinstance(found, Unknown) else tuple(found)

    def _Set(self, node: cst.Set, frame: Frame) -> object:  # noqa: N802
        found = self._elements(node.elements, node, frame)
        return found if isinstance(found, Unknown) else set(found)

    def _Dict(self, node: cst.Dict, frame: Frame) -> object:  # noqa: N802
        found: dict[object, object] = {}
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                key = self.value(element.key, frame)
                if isinstance(key, Unknown):
                    return self.spread(key, node, frame)
                found[key] = self.value(element.value, frame)
                continue
            inner = self.value(element.value, frame)
            if isinstance(inner, Unknown):
                return self.spread(inner, node, frame)
            if not isinstance(inner, dict):
                raise TypeError("** needs a dictionary")
            found.update(inner)
        return found

    def _BinaryOperation(self, node: cst.BinaryOperation, frame: Frame) -> object:  # noqa: N802
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        return self.operate(type(node.operator), left, right, node, frame)

    def operate(self, kind: type[Any], left: object, right: object, node: Any, frame: Frame) -> object:
        """The result of a binary operator."""
        for side in (left, right):
            if isinstance(side, Unknown):
                return self.spread(side, node, frame)
        if kind is cst.BitOr and (isinstance(left, ClassValue) or isinstance(right, ClassValue | None)):
            members = (*_members(left), *_members(right))
            if all(isinstance(item, ClassValue | Symbol | None) for item in members):
                return members
        for side in (left, right):
            if isinstance(side, Call):
                return self.unknown("R112", f"{side.callee} is not known", node, frame)
            if isinstance(side, Symbol):
                return self.unknown("R114", f"{side.name} is not known", node, frame)
        return binary(kind, left, right, self.limits.items)

    def _UnaryOperation(self, node: cst.UnaryOperation, frame: Frame) -> object:  # noqa: N802
        value = self.value(node.expression, frame)
        if isinstance(node.operator, cst.Not):
            truth = self.truth(value, node, frame)
            return truth if isinstance(truth, Unknown) else not truth
        if isinstance(value, Unknown):
            return self.spread(value, node, frame)
        return UNARY[type(node.operator)](value)

    def truth(self, value: object, node: cst.CSTNode, frame: Frame) -> bool | Unknown:
        """Whether a value counts as true."""
        if isinstance(value, Unknown):
            return self.spread(value, node, frame)
        if isinstance(value, OPEN):
            name = value.name if isinstance(value, Symbol) else value.callee
            return self.unknown("R114", f"{name} is not known", node, frame)
        return True if isinstance(value, (Node, *CALLABLE)) else bool(value)

    def _BooleanOperation(self, node: cst.BooleanOperation, frame: Frame) -> object:  # noqa: N802
        left = self.value(node.left, frame)
        truth = self.truth(left, node.left, frame)
        is_and = isinstance(node.operator, cst.And)
        if isinstance(truth, Unknown):
            right = self.truth(self.value(node.right, frame), node.right, frame)
            # What is known decides alone where only truth matters: x and False is false, x or True is true.
            return right if right is not is_and and not isinstance(right, Unknown) else self.spread(truth, node, frame)
        return self.value(node.right, frame) if truth is is_and else left

    def _Comparison(self, node: cst.Comparison, frame: Frame) -> object:  # noqa: N802
        left = self.value(node.left, frame)
        for part in node.comparisons:
            right = self.value(part.comparator, frame)
            result = self.compare(part.operator, left, right, node, frame)
            if result is not True:
                return result
            left = right
        return True

    def compare(self, sign: Any, left: object, right: object, node: Any, frame: Frame) -> bool | Unknown:
        """The result of one comparison."""
        negated = isinstance(sign, cst.NotEqual | cst.IsNot | cst.NotIn)
        if isinstance(sign, cst.In | cst.NotIn):
            found = self._contains(left, right, node, frame)
        elif type(sign) in ORDER:
            for side in (left, right):
                if isinstance(side, Unknown):
                    return self.spread(side, node, frame)
            if not (builtin.is_plain(left) and builtin.is_plain(right)):
                return self.unknown("R110", "not comparable", node, frame)
            return bool(ORDER[type(sign)](left, right))
        else:
            found = self._equal(left, right, node, frame)
        return found if isinstance(found, Unknown) else found is not negated

    def _equal(self, left: object, right: object, node: Any, frame: Frame) -> bool | Unknown:
        for side in (left, right):
            if isinstance(side, Unknown):
                return self.spread(side, node, frame)
        if left is right:
            return True
        one_is_none = left is None or right is None
        for side in (left, right):
            if isinstance(side, Call) or (isinstance(side, Symbol) and not one_is_none):
                if same(left, right):
                    return True
                return self.unknown("R112", f"{builtin.describe(side)} is not known", node, frame)
        if isinstance(left, Node) or isinstance(right, Node):
            return same(left, right)
        return bool(left == right)

    def _contains(self, left: object, right: object, node: Any, frame: Frame) -> bool | Unknown:
        for side in (left, right):
            if isinstance(side, Unknown):
                return self.spread(side, node, frame)
        if isinstance(right, str) and isinstance(left, str):
            return left in right
        doubt: Unknown | None = None
        for item in self.items(right):
            equal = self._equal(left, item, node, frame)
            if equal is True:
                return True
            doubt = equal if isinstance(equal, Unknown) else doubt
        return doubt or False

    def _IfExp(self, node: cst.IfExp, frame: Frame) -> object:  # noqa: N802
        truth = self.truth(self.value(node.test, frame), node.test, frame)
        if not isinstance(truth, Unknown):
            return self.value(node.body if truth else node.orelse, frame)
        outcome = self.both(
            lambda: Outcome("return", self.value(node.body, frame)),
            lambda: Outcome("return", self.value(node.orelse, frame)),
            self.spread(truth, node, frame),
            frame,
        )
        return outcome.value

    def _Subscript(self, node: cst.Subscript, frame: Frame) -> object:  # noqa: N802
        owner = self.value(node.value, frame)
        if isinstance(owner, Unknown):
            return self.spread(owner, node, frame)
        if isinstance(owner, Symbol) and owner.name == "os.environ":
            return self.environment_value([self.subscript(node, frame)], node, frame)
        if isinstance(owner, Symbol | ClassValue):
            return self._of_types(owner, node, frame)
        key = self.subscript(node, frame)
        if isinstance(key, Unknown):
            return self.spread(key, node, frame)
        if isinstance(owner, list | tuple | str | bytes | dict | range):
            return owner[key]  # type: ignore[call-overload, index]
        return self.unknown("R110", f"{builtin.describe(owner)} is not subscripted", node, frame)

    def _of_types(self, owner: Symbol | ClassValue, node: cst.Subscript, frame: Frame) -> object:
        """A generic class with its parameters is the class; annotations and unions are what they are of."""
        name = owner.name.removeprefix("typing.") if isinstance(owner, Symbol) else ""
        if name not in {"Annotated", "Optional", "Union"}:
            return owner
        key = self.subscript(node, frame)
        items = key if isinstance(key, tuple) else (key,)
        return items[0] if name == "Annotated" else (*items, None) if name == "Optional" else items

    def environment_value(self, args: list[object], node: Any, frame: Frame) -> object:
        """The value of an environment variable, where it was given."""
        name = args[0] if args else None
        if not isinstance(name, str):
            return self.unknown("R111", "an environment variable", node, frame)
        if name in self.environment:
            return self.environment[name]
        default = args[1] if len(args) > 1 else MISSING
        return self.unknown("R111", f"environment variable {name}", node, frame, variable=name, default=default)

    def subscript(self, node: cst.Subscript, frame: Frame) -> object:
        """The key of a subscript: an index, a slice, or a tuple of them."""
        keys: list[object] = []
        for element in node.slice:
            part: Any = element.slice
            if isinstance(part, cst.Index):
                keys.append(self.value(part.value, frame))
                continue
            bounds = [
                None if bound is None else self.value(bound, frame) for bound in (part.lower, part.upper, part.step)
            ]
            for bound in bounds:
                if isinstance(bound, Unknown):
                    return bound
            keys.append(slice(*bounds))
        return keys[0] if len(keys) == 1 else tuple(keys)

    def _Lambda(self, node: cst.Lambda, frame: Frame) -> object:  # noqa: N802
        return Function("<lambda>", frame.module, node, frame, defaults=self.defaults_of(node.params, frame))

    def defaults_of(self, params: cst.Parameters, frame: Frame) -> dict[str, object]:
        """The default values of a function, evaluated where it is defined."""
        every = (*params.posonly_params, *params.params, *params.kwonly_params)
        return {param.name.value: self.value(param.default, frame) for param in every if param.default is not None}

    def _NamedExpr(self, node: cst.NamedExpr, frame: Frame) -> object:  # noqa: N802
        value = self.value(node.value, frame)
        self.assign(node.target, value, frame, frame.module.source.place(node.value))
        return value

    def _comprehension(self, node: Any, frame: Frame) -> object:
        inner = Frame(frame.module, {}, frame)
        found: list[object] = []
        for state in self._loop(node.for_in, inner):
            if isinstance(state, Unknown):
                return self.spread(state, node, frame)
            self.sized(len(found))
            if isinstance(node, cst.DictComp):
                found.append((self.value(node.key, inner), self.value(node.value, inner)))
            else:
                found.append(self.value(node.elt, inner))
        if isinstance(node, cst.DictComp):
            return dict(found)  # type: ignore[arg-type]
        return set(found) if isinstance(node, cst.SetComp) else found

    _ListComp = _SetComp = _DictComp = _GeneratorExp = _comprehension

    def _loop(self, loop: cst.CompFor, frame: Frame) -> Iterator[Unknown | None]:
        """Goes through the loops of a comprehension; gives the cause where one cannot be gone through."""
        source = self.value(loop.iter, frame)
        if isinstance(source, Unknown):
            yield source
            return
        for item in self.items(source):
            self.step()
            self.assign(loop.target, item, frame, frame.module.source.place(loop.target))
            truths = [self.truth(self.value(test.test, frame), test.test, frame) for test in loop.ifs]
            doubt = next((truth for truth in truths if isinstance(truth, Unknown)), None)
            if doubt is not None:
                yield doubt
                return
            if all(truths):
                if loop.inner_for_in is None:
                    yield None
                else:
                    yield from self._loop(loop.inner_for_in, frame)


def _members(side: object) -> tuple[object, ...]:
    """The classes of a union of types."""
    return side if isinstance(side, tuple) else (side,)
