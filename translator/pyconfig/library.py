"""Functions of Python and its standard library that configurations use, evaluated by their documented meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from translator.pyconfig import builtin
from translator.pyconfig.classes import Classes
from translator.pyconfig.values import (
    MISSING,
    NOT_KNOWN,
    Call,
    ClassValue,
    Frame,
    Function,
    Node,
    Partial,
    Symbol,
    Unknown,
    copied,
)

Args = list[object]
Kwargs = dict[str, object]


class Library(Classes):
    """Builtins and the standard library."""

    def builtin(self, name: str, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        """The value of a call of one of Python's own functions."""
        if name in builtin.DYNAMIC:
            self.find("R113", f"{name} is not run", frame.module.source.place(node))
            return self.unknown("R113", f"{name} is not run", node, frame)
        if name in builtin.OUTSIDE:
            return self.unknown("R111", f"{name} depends on the machine", node, frame)
        if name in {"print", "setattr", "getattr", "hasattr", "isinstance", "callable", "type"}:
            return self._on_objects(name, args, kwargs, node, frame)
        doubt = next((item for item in (*args, *kwargs.values()) if isinstance(item, Unknown)), None)
        if doubt is not None:
            return self._converted(name, doubt, node, frame)
        for item in args:
            if isinstance(item, Call | Symbol) and name not in {"list", "map", "filter", "sorted"}:
                return self.unknown("R112", f"{builtin.describe(item)} is not known", node, frame)
        if name in builtin.TYPES:
            return self._made(builtin.TYPES[name], args, kwargs)
        found: Callable[..., object] | None = getattr(self, f"_do_{name}", None)
        if found is None:
            return Call(name, tuple(args), kwargs, frame.module.source.place(node))
        return found(args, kwargs, node, frame)

    def _converted(self, name: str, doubt: Unknown, node: Any, frame: Frame) -> object:
        """An open value converted: what holds without an environment variable is converted with it."""
        if doubt.variable and name in {"int", "float", "str", "bool"} and isinstance(doubt.default, str | int | float):
            default = builtin.TYPES[name](doubt.default)
            reason, variable = doubt.reason, doubt.variable
            return self.unknown(doubt.code, reason, node, frame, variable=variable, default=default)
        return self.spread(doubt, node, frame)

    def _made(self, kind: type, args: Args, kwargs: Kwargs) -> object:
        if kind in {list, tuple, set, frozenset} and args:
            return kind(self.items(args[0]))
        if kind is dict:
            return {**dict(args[0] if args else {}), **kwargs}  # type: ignore[call-overload]
        if kind is bytes or not all(map(builtin.is_plain, args)):
            raise TypeError(f"{kind.__name__}({', '.join(map(builtin.describe, args))})")
        return kind(*args, **kwargs)

    def _on_objects(self, name: str, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        if name == "print":
            return None
        if name == "isinstance":
            return self._isinstance(args[0], args[1], node, frame)
        if name == "callable":
            return isinstance(args[0], Function | ClassValue | Partial) or self.unknown("R110", "callable", node, frame)
        owner = args[0]
        if isinstance(owner, Unknown):
            return self.spread(owner, node, frame)
        attribute = args[1] if len(args) > 1 else None
        if name == "setattr" and isinstance(owner, Node) and isinstance(attribute, str):
            self.set_field(owner, attribute, args[2], frame.module.source.place(node))
            return None
        if name == "getattr" and isinstance(attribute, str):
            if len(args) > 2 and isinstance(owner, Node) and not self._has(owner, attribute):
                return args[2]
            return self.attribute(owner, attribute, node, frame)
        if name == "hasattr" and isinstance(owner, Node) and isinstance(attribute, str):
            return self._has(owner, attribute) or self.unknown("R114", f"whether it has {attribute}", node, frame)
        return self.unknown("R110", f"{name} is not evaluated here", node, frame)

    def _has(self, owner: Node, name: str) -> bool:
        return (
            name in owner.fields
            or self.own_default(owner, name) is not MISSING
            or (self.field_default(owner, name) is not MISSING)
        )

    def _isinstance(self, value: object, kind: object, node: Any, frame: Frame) -> bool | Unknown:
        if isinstance(kind, tuple):
            answers = [self._isinstance(value, item, node, frame) for item in kind]
            if True in answers:
                return True
            return next((item for item in answers if isinstance(item, Unknown)), False)
        if isinstance(value, Unknown):
            return self.spread(value, node, frame)
        name = kind.dotted if isinstance(kind, ClassValue) else kind.name if isinstance(kind, Symbol) else ""
        plain = builtin.TYPES.get(name.removeprefix("builtins.")) if name.startswith("builtins.") else None
        if plain is not None:
            if isinstance(value, Call | Symbol):
                return self.unknown("R112", f"{builtin.describe(value)} is not known", node, frame)
            return isinstance(value, plain) and not isinstance(value, Node)
        if value is None or builtin.is_plain(value):
            return False if name else self.unknown("R110", "isinstance", node, frame)
        if isinstance(value, Node) and name:
            known = self.derives(value, self.canonical(name))
            if known is not None:
                return known
        return self.unknown("R110", "whether it is of that class is not known", node, frame)

    def _do_len(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        return len(self.items(args[0]))

    def _do_range(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        found = range(*args)  # type: ignore[call-overload]
        self.sized(len(found))
        return found

    def _do_abs(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        return abs(args[0])  # type: ignore[arg-type]

    def _do_divmod(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        left, right = args
        return divmod(left, right)  # type: ignore[operator]

    def _do_round(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        return round(*args, **kwargs)  # type: ignore[call-overload]

    def _do_repr(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        return repr(args[0]) if builtin.is_plain(args[0]) else self.unknown("R110", "repr", node, frame)

    def _do_enumerate(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        start: Any = args[1] if len(args) > 1 else kwargs.get("start", 0)
        return list(enumerate(self.items(args[0]), start))

    def _do_zip(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        return list(zip(*map(self.items, args), strict=bool(kwargs.get("strict", False))))

    def _do_reversed(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        return self.items(args[0])[::-1]

    def _do_map(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        columns = zip(*map(self.items, args[1:]), strict=False)
        return [self.call(args[0], list(column), {}, node, frame) for column in columns]

    def _do_filter(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        kept: list[object] = []
        for item in self.items(args[1]):
            result = item if args[0] is None else self.call(args[0], [item], {}, node, frame)
            truth = self.truth(result, node, frame)
            if isinstance(truth, Unknown):
                return truth
            if truth:
                kept.append(item)
        return kept

    def _do_any(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        truths = [self.truth(item, node, frame) for item in self.items(args[0])]
        if True in truths:
            return True
        return next((truth for truth in truths if isinstance(truth, Unknown)), False)

    def _do_all(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        truths = [self.truth(item, node, frame) for item in self.items(args[0])]
        if False in truths:
            return False
        return next((truth for truth in truths if isinstance(truth, Unknown)), True)

    def _do_sum(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        import libcst as cst

        total: object = args[1] if len(args) > 1 else kwargs.get("start", 0)
        for item in self.items(args[0]):
            total = self.operate(cst.Add, total, item, node, frame)
        return total

    def _extreme(self, pick: Callable[..., object], args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        items = self.items(args[0]) if len(args) == 1 else args
        keys = self._keys(items, kwargs.get("key"), node, frame)
        if isinstance(keys, Unknown):
            return keys
        if not items and "default" in kwargs:
            return kwargs["default"]
        return items[pick(range(len(items)), key=keys.__getitem__)]  # type: ignore[call-overload]

    def _do_max(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        return self._extreme(max, args, kwargs, node, frame)

    def _do_min(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        return self._extreme(min, args, kwargs, node, frame)

    def _keys(self, items: list[object], key: object, node: Any, frame: Frame) -> list[Any] | Unknown:
        """What items are ordered by."""
        keys = items if key is None else [self.call(key, [item], {}, node, frame) for item in items]
        doubt = next((item for item in keys if isinstance(item, Unknown)), None)
        if doubt is not None:
            return self.spread(doubt, node, frame)
        if not all(map(builtin.is_plain, keys)):
            return self.unknown("R110", "not comparable", node, frame)
        return keys

    def _do_sorted(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        items = self.items(args[0])
        keys = self._keys(items, kwargs.get("key"), node, frame)
        if isinstance(keys, Unknown):
            return keys
        order = sorted(range(len(items)), key=keys.__getitem__, reverse=bool(kwargs.get("reverse", False)))
        return [items[index] for index in order]

    def sort(self, owner: list[object], args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> None:
        """Sorts a list in place; a list whose order is not known becomes one open item."""
        found = self._do_sorted([owner], kwargs, node, frame)
        owner[:] = found if isinstance(found, list) else [found]

    def library(self, name: str, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        """The value of a call into the standard library; ``NOT_KNOWN`` for anything else."""
        if name in builtin.MATH:
            return self._math(name, args, kwargs, node, frame)
        if name in {"os.environ.get", "os.getenv"}:
            default = [*args[:1], *(args[1:2] or [kwargs.get("default")])]
            return self.environment_value(default, node, frame)
        if name in {"dataclasses.replace", "copy.replace"}:
            return self._replace(args, kwargs, node, frame)
        if name == "copy.deepcopy":
            return self.copied_node(args[0])
        if name == "copy.copy":
            owner = args[0]
            return self._replace(args, {}, node, frame) if isinstance(owner, Node) else copied(owner)
        if name in {"typing.cast", "typing.assert_type", "typing_extensions.cast"}:
            return args[1 if name.endswith("cast") else 0]
        if name == "functools.partial":
            return self._partial(args, kwargs, node, frame)
        if name == "collections.OrderedDict":
            return self._made(dict, args, kwargs)
        if name in {"logging.getLogger", "warnings.warn"}:
            return Symbol("logging.logger")
        return NOT_KNOWN

    def _math(self, name: str, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        for item in args:
            if isinstance(item, Unknown):
                return self.spread(item, node, frame)
        if not all(map(builtin.is_plain, args)):
            return self.unknown("R112", f"{name} of something that is not known", node, frame)
        return builtin.MATH[name](*args, **kwargs)

    def _replace(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        owner = args[0]
        if isinstance(owner, Unknown):
            return self.spread(owner, node, frame)
        if not isinstance(owner, Node):
            return self.unknown("R112", f"replace of {builtin.describe(owner)}", node, frame)
        twin = Node(owner.cls, dict(owner.fields), dict(owner.places), owner.place, owner.bases)
        self._same_defaults(owner, twin)
        for name, place in self._places(kwargs, node, frame).items():
            self.set_field(twin, name, kwargs[name], place)
        return twin

    def _places(self, kwargs: Kwargs, node: Any, frame: Frame) -> dict[str, Any]:
        return dict.fromkeys(kwargs, frame.module.source.place(node))

    def _same_defaults(self, owner: Node, twin: Node) -> None:
        """A copy's defaults are as little stated as the original's."""
        for name in owner.fields:
            known = self.materialised.get((id(owner), name))
            if known is not None:
                self.materialised[id(twin), name] = (twin, name, known[2])

    def copied_node(self, value: object) -> object:
        """A deep copy, whose defaults are as little stated as the original's."""
        memo: dict[int, object] = {}
        found = copied(value, memo)
        for (owner, name), (_, _, default) in list(self.materialised.items()):
            twin = memo.get(owner)
            if isinstance(twin, Node):
                self.materialised[id(twin), name] = (twin, name, default)
        return found

    def _partial(self, args: Args, kwargs: Kwargs, node: Any, frame: Frame) -> object:
        callee, *rest = args
        if isinstance(callee, Unknown):
            return self.spread(callee, node, frame)
        name = callee.dotted if isinstance(callee, Function | ClassValue) else builtin.describe(callee)
        return Partial(name, tuple(rest), kwargs, frame.module.source.place(node), callee)
