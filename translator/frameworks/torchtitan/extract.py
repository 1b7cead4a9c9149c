"""Extracts torchtitan's TOML options and its tables of model flavors from its source.

Options are the leaves of the ``JobConfig`` dataclass (``torchtitan/config_manager.py:646`` at 0.1.0,
``torchtitan/config/job_config.py:1000`` at 0.2.2). Flavors are what the ``TrainSpec`` of each model family names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libcst as cst

from translator.catalogue.annotations import ValueType, read_annotation
from translator.catalogue.document import catalogue_text, flavors_text
from translator.catalogue.evaluate import (
    Evaluator,
    Field,
    Instance,
    NotStatic,
    keyword_arguments,
    plain,
)
from translator.catalogue.model import FIELD_ACTION, Entry
from translator.catalogue.source_tree import ClassRef, Module, SourceTree, dotted
from translator.errors import SourceError
from translator.frameworks.torchtitan import extract_python

CONFIG_MODULES = ("torchtitan.config.job_config", "torchtitan.config_manager")
FAMILY_PARENTS = ("torchtitan.models", "torchtitan.experiments")
_PRIVATE = "_"


def extract(tree: SourceTree) -> list[Entry]:
    """Every option of a source tree, by address: TOML keys, or from 0.3.0 on fields of Python classes.

    Raises `SourceError` when the tree holds no ``JobConfig`` of dataclasses.
    """
    if extract_python.is_python_configured(tree):
        return extract_python.extract(tree)
    evaluator = Evaluator(tree)
    for name in CONFIG_MODULES:
        module = tree.module(name)
        ref = tree.class_of(module, "JobConfig") if module is not None else None
        if ref is not None:
            return sorted(_leaves(ref, "", evaluator), key=lambda entry: entry.address)
    raise SourceError(f"{tree.root} has no JobConfig; torchtitan 0.1 and 0.2 have one")


def _leaves(ref: ClassRef, prefix: str, evaluator: Evaluator) -> Iterator[Entry]:
    for item in evaluator.fields(ref):
        value = read_annotation(item.annotation, item.module, evaluator)
        address = f"{prefix}{item.name}"
        if value.dataclass is not None:
            yield from _leaves(value.dataclass, f"{address}.", evaluator)
        else:
            yield _leaf(item, address, value, evaluator)


def _leaf(item: Field, address: str, value: ValueType, evaluator: Evaluator) -> Entry:
    dynamic: str | None = None
    default: Any = None
    try:
        default = plain(evaluator.default(item))
    except NotStatic as reason:
        dynamic = str(reason)
    flags = [f"--{address}"]
    if value.kind == "bool" and value.arity is None:
        section, _, name = address.rpartition(".")
        flags.append(f"--{section}.no-{name}")
    return Entry(
        key=address,
        address=address,
        kind=value.kind,
        action=FIELD_ACTION,
        flags=tuple(flags),
        default=default,
        default_known=dynamic is None,
        dynamic=dynamic,
        choices=value.choices,
        arity=value.arity,
        type_name=cst.Module([]).code_for_node(item.annotation).replace("\n", " "),
        optional=value.optional,
        source=item.module.place(item.node),
    )


def extract_flavors(tree: SourceTree) -> tuple[dict[str, Any], dict[str, str]]:
    """The flavors of every model family, and the families that reuse another's table.

    The first is ``{family: {"_defaults": {class: {...}}, flavor: {"args_class": ..., "args": {...}}}}``: ``args`` holds
    every field of the class, defaults merged in, nested dataclasses as objects. The second maps a family to the one
    whose table it shares. A family whose table is computed rather than written down is in neither.
    """
    if extract_python.is_python_configured(tree):
        from translator.frameworks.torchtitan.extract_flavors_python import extract_flavors as extract_python_flavors

        return extract_python_flavors(tree)
    evaluator = Evaluator(tree)
    homes: dict[tuple[str, str], str] = {}
    families: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    for module, call in _train_specs(tree):
        options = keyword_arguments(call)
        table = options.get("model_args") or options.get("config")
        found = tree.follow(module, dotted(table))
        flavors = _flavors(found, evaluator)
        if found is None or not flavors:
            continue
        family = _family(module, options, evaluator)
        home = (found[0].name, found[1])
        if home in homes:
            aliases[family] = homes[home]
        else:
            homes[home] = family
            families[family] = _family_table(flavors, evaluator)
    if not families:
        raise SourceError(f"{tree.root} has no table of model flavors")
    return dict(sorted(families.items())), dict(sorted(aliases.items()))


def _flavors(found: tuple[Module, str] | None, evaluator: Evaluator) -> dict[str, Instance]:
    """The flavor table that a name is bound to; empty when it is not one, or computed."""
    if found is None or found[1] not in found[0].assigns:
        return {}
    try:
        flavors = evaluator.value(found[0].assigns[found[1]], found[0])
    except NotStatic:
        return {}
    if isinstance(flavors, dict) and all(isinstance(item, Instance) for item in flavors.values()):
        return flavors
    return {}


def _family(module: Module, options: dict[str, cst.BaseExpression], evaluator: Evaluator) -> str:
    """The name that ``model.name`` selects: written in the spec (0.1), or the package's own (0.2)."""
    if "name" in options:
        return str(evaluator.value(options["name"], module))
    for parent in FAMILY_PARENTS:
        if module.package.startswith(f"{parent}."):
            return module.package.removeprefix(f"{parent}.")
    return module.package


def _family_table(flavors: dict[str, Instance], evaluator: Evaluator) -> dict[str, Any]:
    classes = {item.ref.name: item.ref for item in flavors.values()}
    defaults = {
        name: _public({item.name: _default_or_none(item, evaluator) for item in evaluator.fields(ref)})
        for name, ref in sorted(classes.items())
    }
    table: dict[str, Any] = {"_defaults": defaults}
    for flavor, item in flavors.items():
        table[flavor] = {"args_class": item.ref.name, "args": _public(item.values)}
    return table


def _default_or_none(item: Field, evaluator: Evaluator) -> Any:
    try:
        return evaluator.default(item)
    except NotStatic:
        return None


def _public(values: dict[str, Any]) -> dict[str, Any]:
    """Fields as JSON, without upstream's private ones."""
    return {name: _as_json(value) for name, value in values.items() if not name.startswith(_PRIVATE)}


def _as_json(value: Any) -> Any:
    if isinstance(value, Instance):
        return _public(value.values)
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return plain(value)


def _train_specs(tree: SourceTree) -> Iterator[tuple[Module, cst.Call]]:
    """Every ``TrainSpec(...)`` construction in a package below the models and experiments."""
    for parent in FAMILY_PARENTS:
        folder = tree.root.joinpath(*parent.split("."))
        for path in sorted(folder.rglob("__init__.py")):
            name = ".".join(path.parent.relative_to(tree.root).parts)
            module = tree.require(name)
            finder = _Finder()
            module.tree.visit(finder)
            for call in finder.calls:
                yield module, call


class _Finder(cst.CSTVisitor):
    def __init__(self) -> None:
        self.calls: list[cst.Call] = []

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802
        if dotted(node.func).endswith("TrainSpec"):
            self.calls.append(node)


def generate(version: str, source: Path) -> str:
    """The catalogue file of one version, as text. Raises `SourceError` for another tree."""
    return catalogue_text("torchtitan", version, extract(SourceTree(source)))


def generate_flavors(version: str, source: Path) -> str:
    """The flavor tables of one version, as text. Raises `SourceError` for a tree without any."""
    return flavors_text("torchtitan", version, *extract_flavors(SourceTree(source)))
