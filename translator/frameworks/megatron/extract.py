"""Extracts Megatron-LM's command line options from its source.

Two ways of declaring them are followed, in upstream's order of registration: plain ``add_argument`` calls, and argument
groups that `ArgumentGroupFactory` builds from dataclasses (``megatron/training/argument_utils.py:36`` at core 0.18.0).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libcst as cst

from translator.catalogue.annotations import ValueType, read_annotation
from translator.catalogue.document import catalogue_text
from translator.catalogue.evaluate import (
    Evaluator,
    Field,
    FromEnvironment,
    NotStatic,
    keyword_arguments,
    plain,
    positional_arguments,
)
from translator.catalogue.model import NEGATING_ACTION, Entry
from translator.catalogue.source_tree import ClassRef, Module, SourceTree, dotted
from translator.errors import SourceError

ENTRY = ("megatron.training.arguments", "add_megatron_arguments")
OLD_ENTRY_CALLER = "parse_args"
MODELOPT = ("megatron.post_training.arguments", "add_modelopt_args")
FACTORY = "ArgumentGroupFactory"

_BARE = {"store_true": False, "store_false": True}
_PLAIN_KINDS = {"int", "float", "str", "bool"}


@dataclass(slots=True)
class _Walk:
    """Where the walk through upstream's functions stands."""

    tree: SourceTree
    evaluator: Evaluator
    entries: list[Entry] = field(default_factory=list)
    active: list[str] = field(default_factory=list)


def extract(tree: SourceTree) -> list[Entry]:
    """Every option of a source tree (a checkout, or an unpacked wheel that carries ``megatron/training``).

    Raises `SourceError` when the tree is not Megatron-LM or declares options in a way that is not understood.
    """
    entries = arguments_of(tree, *ENTRY)
    modelopt = tree.module(MODELOPT[0])
    if modelopt is not None and MODELOPT[1] in modelopt.functions:
        entries += arguments_of(tree, *MODELOPT, conditional="modelopt")
    return sorted(entries, key=lambda entry: entry.address)


def arguments_of(tree: SourceTree, module: str, function: str, *, conditional: str | None = None) -> list[Entry]:
    """What a function and those that it hands its parser to declare, in order; forks have other functions.

    Raises `SourceError` when the tree has no such function.
    """
    walk = _Walk(tree, Evaluator(tree))
    found = tree.require(module)
    if function not in found.functions:
        raise SourceError(f"{found.path} has no {function}")
    _walk_function(walk, found, function, conditional)
    return walk.entries


def _walk_function(walk: _Walk, module: Module, name: str, conditional: str | None) -> None:
    if name in walk.active:
        raise SourceError(f"{module.path}: {name} calls itself")
    walk.active.append(name)
    module.functions[name].body.visit(_Registrations(walk, module, conditional))
    walk.active.pop()


class _Registrations(cst.CSTVisitor):
    """Visits one function body and records what it registers, in order."""

    def __init__(self, walk: _Walk, module: Module, conditional: str | None) -> None:
        self.walk = walk
        self.module = module
        self.conditional = conditional
        self.local: dict[str, Any] = {}
        self.factories: dict[str, tuple[ClassRef, frozenset[str]]] = {}
        self.nesting: list[str | None] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:  # noqa: N802
        return False

    def visit_If(self, node: cst.If) -> None:  # noqa: N802
        self.nesting.append(self.conditional)
        name = dotted(node.test)
        if name.startswith("HAVE_"):
            self.conditional = name.removeprefix("HAVE_").lower()

    def leave_If(self, original_node: cst.If) -> None:  # noqa: N802
        self.conditional = self.nesting.pop()

    def visit_Assign(self, node: cst.Assign) -> None:  # noqa: N802
        target = node.targets[0].target
        if not isinstance(target, cst.Name):
            return
        if isinstance(node.value, cst.Call) and dotted(node.value.func) == FACTORY:
            self.factories[target.value] = self._factory(node.value)
            return
        try:
            self.local[target.value] = self.walk.evaluator.value(node.value, self.module, self.local)
        except NotStatic:
            self.local.pop(target.value, None)

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802
        if isinstance(node.func, cst.Attribute):
            if node.func.attr.value == "add_argument":
                self.walk.entries.append(self._plain(node))
            elif node.func.attr.value == "build_group":
                self._group(node.func.value)
        elif isinstance(node.func, cst.Name) and any(dotted(a) == "parser" for a in positional_arguments(node)):
            found = self.walk.tree.follow(self.module, node.func.value)
            if found is not None and found[1] in found[0].functions:
                _walk_function(self.walk, found[0], found[1], self.conditional)

    def _factory(self, call: cst.Call) -> tuple[ClassRef, frozenset[str]]:
        name = dotted(positional_arguments(call)[0])
        ref = self.walk.tree.class_of(self.module, name)
        if ref is None:
            raise SourceError(f"{self.module.place(call)}: the tree does not define {name}")
        exclude = keyword_arguments(call).get("exclude")
        try:
            skipped = self.walk.evaluator.value(exclude, self.module, self.local) if exclude is not None else []
        except NotStatic as reason:
            raise SourceError(f"{self.module.place(call)}: exclude list is not static ({reason})") from reason
        return ref, frozenset(skipped or [])

    def _group(self, owner: cst.BaseExpression) -> None:
        if isinstance(owner, cst.Call) and dotted(owner.func) == FACTORY:
            ref, skipped = self._factory(owner)
        elif dotted(owner) in self.factories:
            ref, skipped = self.factories[dotted(owner)]
        else:
            raise SourceError(f"{self.module.place(owner)}: build_group of an unknown factory")
        for item in self.walk.evaluator.fields(ref):
            if item.init and item.name not in skipped:
                self.walk.entries.append(_generated(item, self.walk.evaluator, self.conditional))

    def _plain(self, call: cst.Call) -> Entry:
        place = self.module.place(call)
        try:
            options = keyword_arguments(call)
            flags = [self.walk.evaluator.value(flag, self.module, self.local) for flag in positional_arguments(call)]
        except NotStatic as reason:
            raise SourceError(f"{place}: add_argument is not static ({reason})") from reason
        reader = _Options(self.walk.evaluator, self.module, self.local)
        return reader.entry(flags, options, place, self.conditional)


@dataclass(frozen=True, slots=True)
class _Default:
    """A default as JSON, and what it is computed from when the source does not say it."""

    value: Any
    dynamic: str | None = None


def _static_default(value: Any) -> _Default:
    if isinstance(value, FromEnvironment):
        return _Default(value.value, f"env:{value.variable}")
    return _Default(plain(value))


@dataclass(frozen=True, slots=True)
class _Options:
    """Reads the keyword arguments of ``add_argument``, in the scope that they stand in."""

    evaluator: Evaluator
    module: Module
    local: dict[str, Any]

    def entry(
        self, flags: list[str], options: dict[str, cst.BaseExpression], place: str, conditional: str | None
    ) -> Entry:
        action = self.action(options.get("action"))
        kind, type_name, choices = self.type_of(options.get("type"))
        if "choices" in options:
            choices = self.choices(options["choices"])
        default = self.default(options.get("default"), action)
        return make_entry(
            flags=flags,
            dest=self.text(options.get("dest")),
            action=action,
            kind=kind,
            type_name=type_name,
            default=default,
            choices=choices,
            nargs=self.constant(options.get("nargs")),
            const=self.constant(options.get("const")),
            place=place,
            conditional=conditional,
        )

    def constant(self, node: cst.BaseExpression | None) -> Any:
        if node is None:
            return None
        try:
            return plain(self.evaluator.value(node, self.module, self.local))
        except NotStatic as reason:
            raise SourceError(f"{self.module.place(node)}: not static ({reason})") from reason

    def text(self, node: cst.BaseExpression | None) -> str | None:
        value = self.constant(node)
        return None if value is None else str(value)

    def action(self, node: cst.BaseExpression | None) -> str:
        if node is None:
            return "store"
        name = dotted(node)
        return name.rsplit(".", 1)[-1] if name else str(self.constant(node))

    def default(self, node: cst.BaseExpression | None, action: str) -> _Default:
        if node is None:
            return _Default(_BARE.get(action))
        if dotted(node).endswith("SUPPRESS"):
            return _Default(None, "suppressed")
        try:
            return _static_default(self.evaluator.value(node, self.module, self.local))
        except NotStatic as reason:
            return _Default(None, str(reason))

    def choices(self, node: cst.BaseExpression) -> tuple[Any, ...] | None:
        try:
            return tuple(plain(choice) for choice in self.evaluator.value(node, self.module, self.local))
        except (NotStatic, TypeError):
            return None

    def type_of(self, node: cst.BaseExpression | None) -> tuple[str, str, tuple[Any, ...] | None]:
        """Kind, type name and the choices that the type itself implies."""
        if node is None:
            return "str", "str", None
        name = dotted(node)
        if name in _PLAIN_KINDS:
            return name, name, None
        if isinstance(node, cst.Lambda):
            ref, only = self.enum_in(node.body)
            if ref is None:
                return "custom", "lambda", None
            members = self.evaluator.members(ref) or []
            return ("enum" if only else "custom"), ref.name, tuple(member.name for member in members) if only else None
        return "custom", name.rsplit(".", 1)[-1], None

    def enum_in(self, node: cst.BaseExpression) -> tuple[ClassRef | None, bool]:
        """The enum that a converter looks its text up in, and whether it does nothing else."""
        if isinstance(node, cst.IfExp):
            return self.enum_in(node.body)[0], False
        if isinstance(node, cst.Subscript):
            return self.evaluator.tree.class_of(self.module, dotted(node.value)), True
        return None, False


def _generated(item: Field, evaluator: Evaluator, conditional: str | None) -> Entry:
    """The option that the factory makes of one dataclass field."""
    place = item.module.place(item.node)
    meta = _metadata(item, evaluator)
    reader = _Options(evaluator, item.module, {})
    value = read_annotation(item.annotation, item.module, evaluator)
    if not value.inferable and not meta:
        raise SourceError(f"{place}: the type of {item.name} is not one that upstream can infer")
    action, prefixes = _polarity(item, value, evaluator)
    flags = [f"--{prefix}{item.name}".replace("_", "-") for prefix in prefixes]
    names = reader.constant(meta["arg_names"]) if "arg_names" in meta else flags
    kind, type_name, choices = value.kind, value.type_name, value.choices
    nargs: Any = "+" if value.arity and value.inferable else None
    if not value.inferable:
        kind, type_name, choices = "str", "str", None
    if "type" in meta:
        kind, type_name, choices = reader.type_of(meta["type"])
    if "choices" in meta:
        choices = reader.choices(meta["choices"])
    if "nargs" in meta:
        nargs = reader.constant(meta["nargs"])
    if "action" in meta:
        action = reader.action(meta["action"])
    return make_entry(
        flags=list(names),
        dest=reader.text(meta["dest"]) if "dest" in meta else item.name,
        action=action,
        kind=kind,
        type_name=type_name,
        default=reader.default(meta["default"], action) if "default" in meta else _field_default(item, evaluator),
        choices=choices,
        nargs=nargs,
        const=reader.constant(meta.get("const")),
        place=place,
        conditional=conditional,
    )


def _field_default(item: Field, evaluator: Evaluator) -> _Default:
    try:
        return _static_default(evaluator.default(item))
    except NotStatic as reason:
        return _Default(None, str(reason))


def _polarity(item: Field, value: ValueType, evaluator: Evaluator) -> tuple[str, tuple[str, ...]]:
    """A boolean that starts true gets two negating flags; one that starts false gets its own name."""
    if value.kind != "bool" or value.arity or not value.inferable:
        return "store", ("",)
    try:
        starts_false = item.default is not None and evaluator.value(item.default, item.module) == False  # noqa: E712
    except NotStatic:
        starts_false = False
    return ("store_true", ("",)) if starts_false else ("store_false", ("no_", "disable_"))


def _metadata(item: Field, evaluator: Evaluator) -> dict[str, cst.BaseExpression]:
    """The ``argparse_meta`` of a field, key by key, unevaluated."""
    for key, value in _dict_items(item.metadata, item.module, evaluator):
        if key == "argparse_meta":
            return dict(_dict_items(value, item.module, evaluator))
    return {}


def _dict_items(
    node: cst.BaseExpression | None, module: Module, evaluator: Evaluator
) -> Iterable[tuple[str, cst.BaseExpression]]:
    if isinstance(node, cst.Dict):
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                yield str(evaluator.value(element.key, module)), element.value


def make_entry(
    *,
    flags: list[str],
    dest: str | None,
    action: str,
    kind: str,
    type_name: str,
    default: _Default,
    choices: tuple[Any, ...] | None,
    nargs: Any,
    const: Any,
    place: str,
    conditional: str | None,
) -> Entry:
    """An entry as argparse would complete it: dest from the flag, ``--no-x`` twins, text defaults converted."""
    if not flags or not all(isinstance(flag, str) and flag.startswith("-") for flag in flags):
        raise SourceError(f"{place}: an option without flags")
    if dest is None:
        long = next((flag for flag in flags if flag.startswith("--")), flags[0])
        dest = long.lstrip("-").replace("-", "_")
    arity = nargs
    if action in _BARE or action in {"store_const", "append_const", "count", NEGATING_ACTION}:
        arity = 0
        if action != "store_const":
            kind = type_name = "int" if action == "count" else "bool"
    if action == NEGATING_ACTION:
        flags = [name for flag in flags for name in ((flag, f"--no-{flag[2:]}") if flag.startswith("--") else (flag,))]
    return Entry(
        key=flags[0],
        address=dest,
        kind=kind,
        action=action,
        flags=tuple(flags),
        default=_converted(default.value, kind) if arity is None else default.value,
        default_known=default.dynamic is None,
        dynamic=default.dynamic,
        choices=choices,
        arity=arity,
        const=const,
        type_name=type_name,
        conditional=conditional,
        source=place,
    )


def _converted(default: Any, kind: str) -> Any:
    """Argparse passes a default given as text through ``type``."""
    if isinstance(default, str) and kind in {"int", "bool"}:
        return int(default) if kind == "int" else bool(default)
    return default


def generate(version: str, source: Path) -> str:
    """The catalogue file of one version, as text. Raises `SourceError` for another tree."""
    return catalogue_text("megatron", version, extract(SourceTree(source)))
