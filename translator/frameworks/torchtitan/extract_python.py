"""Extracts torchtitan's Python configurations (0.3.0 on) from its source: options, classes, helper functions.

Options are the leaves below ``Trainer.Config`` (``torchtitan/trainer.py:70`` at 0.3.0), addressed by dotted paths. A
field that holds a component's own ``Config`` can be given another class; it has an entry of kind ``class`` whose
default and choices are the components' names, and what only some of them have is conditional on those. What the model
registry takes is under ``model_spec``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import libcst as cst

from translator.catalogue.annotations import ValueType, read_annotation
from translator.catalogue.document import classes_text
from translator.catalogue.evaluate import Evaluator
from translator.catalogue.model import FIELD_ACTION, Entry
from translator.catalogue.python_tree import Field, PythonTree
from translator.catalogue.source_tree import SourceTree
from translator.errors import SourceError, UsageError
from translator.pyconfig.values import MISSING, Call, ClassValue, Function, Node, Partial, Symbol, Unknown

TRAINER = "torchtitan.trainer.Trainer"
PACKAGES = (
    "torchtitan.components",
    "torchtitan.config",
    "torchtitan.distributed.activation_checkpoint",
    "torchtitan.distributed.pipeline_parallel",
    "torchtitan.hf_datasets",
    "torchtitan.models",
    "torchtitan.protocols",
    "torchtitan.tools",
    "torchtitan.trainer",
)
SKIPPED = ("tests",)
OWN_TRAINER = "torchtitan.models.flux."  # an image model with a trainer of its own, whose parts fit no other
MODEL_PARENT = "torchtitan.models"
MODEL_FIELD = "model_spec"
CONVERTER = "torchtitan.protocols.model.ModelConfigConverter"
HELPERS = ("torchtitan.components.optimizer.default_adamw",)
CONFIG = "Config"
BASES = ("Base", "ParallelAware")  # how upstream names classes that cannot be used themselves
REQUIRED = "required"
SUPPRESSED = "Suppress"  # upstream keeps such fields off the command line


def is_python_configured(tree: SourceTree) -> bool:
    """Whether a source tree is of a version that is configured in Python."""
    return (tree.root / "torchtitan" / "trainer.py").is_file() and (
        tree.root / "torchtitan/config/configs.py"
    ).is_file()


class Extractor:
    """The options and classes of one source tree."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = PythonTree(tree.root)
        self.annotations = Evaluator(tree)
        self.modules = list(self.tree.modules(PACKAGES, SKIPPED))
        self.classes: dict[str, ClassValue] = {}
        self.children: dict[str, list[ClassValue]] = {}
        for module in self.modules:
            for item in list(module.frame.names.values()):
                if isinstance(item, ClassValue) and item.module is module:
                    self._add(item)

    def _add(self, cls: ClassValue) -> None:
        inner = self.tree.nested(cls, CONFIG)
        for item in (cls, inner):
            if item is not None and self.tree.is_dataclass(item):
                self.classes[item.dotted] = item
                for base in self.tree.lineage(item)[1:]:
                    self.children.setdefault(base.dotted, []).append(item)

    def alternatives(self, field: Field) -> list[ClassValue]:
        """The component configurations that a field may hold, in order of name; empty for any other field."""
        named = self.tree.annotated_classes(field)
        if not named or not all(item.owner is not None and item.name == CONFIG for item in named):
            return []
        found: dict[str, ClassValue] = {}
        for item in named:
            for cls in (item, *self.children.get(item.dotted, ())):
                is_default = isinstance(field.default, Node) and field.default.cls == cls.dotted
                if cls.owner is not None and (is_default or self._is_usable(cls)):
                    found[component(cls)] = cls
        return [found[name] for name in sorted(found)]

    def _is_usable(self, cls: ClassValue) -> bool:
        """Whether a component can be chosen: it is no mere base of others."""
        assert cls.owner is not None
        return not (cls.owner.name.startswith(BASES) or cls.dotted.startswith(OWN_TRAINER))

    def entries(self) -> list[Entry]:
        """Every option, in order of address."""
        trainer = self.tree.named(TRAINER)
        root = self.tree.nested(trainer, CONFIG) if isinstance(trainer, ClassValue) else None
        if root is None:
            raise SourceError(f"{self.tree.root} has no Trainer.Config; torchtitan 0.3 has one")
        found = [*self._below(root, "", {}, frozenset()), *self._model_entries()]
        return sorted(found, key=lambda entry: entry.address)

    def _below(self, cls: ClassValue, prefix: str, stated: dict[str, object], path: frozenset[str]) -> Iterator[Entry]:
        """The entries of a class's fields; ``stated`` are the values that the default instance has."""
        for field in self.tree.fields(cls):
            if field.name == MODEL_FIELD and not prefix:
                continue
            known = replace(field, default=stated[field.name]) if field.name in stated else field
            yield from self._field(known, f"{prefix}{field.name}", path)

    def _field(self, field: Field, address: str, path: frozenset[str]) -> Iterator[Entry]:
        value = self._value_type(field)
        choices = self.alternatives(field)
        default = field.default
        if choices:
            yield self._class_entry(field, address, value, choices)
            for entry in self._alternative_fields(choices, default, address, path):
                yield replace(entry, flags=()) if SUPPRESSED in type_text(field.annotation) else entry
        elif isinstance(default, Node):
            cls = self.classes.get(default.cls)
            if cls is not None:
                yield from self._below(cls, f"{address}.", default.fields, path)
        else:
            yield leaf(field, address, value)

    def _value_type(self, field: Field) -> ValueType:
        module = self.annotations.tree.require(field.home.module.name)
        return read_annotation(field.annotation, module, self.annotations)

    def _class_entry(self, field: Field, address: str, value: ValueType, choices: list[ClassValue]) -> Entry:
        default = field.default
        name = component(self.classes[default.cls]) if isinstance(default, Node) else None
        return replace(
            leaf(field, address, value),
            kind="class",
            flags=(),
            default=name,
            default_known=True,
            dynamic=None,
            choices=tuple(component(item) for item in choices),
            optional=self.tree.allows_none(field),
        )

    def _alternative_fields(
        self, choices: list[ClassValue], default: object, address: str, path: frozenset[str]
    ) -> Iterator[Entry]:
        """The fields of all alternatives; the default instance's own values where it has them."""
        found: dict[str, Entry] = {}
        owners: dict[str, list[str]] = {}
        in_default = default.cls if isinstance(default, Node) else ""
        usable = [cls for cls in choices if cls.dotted not in path]
        for cls in sorted(usable, key=lambda item: item.dotted != in_default):
            stated = default.fields if isinstance(default, Node) and cls.dotted == in_default else {}
            for entry in self._below(cls, f"{address}.", stated, path | {cls.dotted}):
                found.setdefault(entry.address, entry)
                owners.setdefault(entry.address, []).append(component(cls))
        for name, entry in found.items():
            if len(owners[name]) == len(usable) and default is not None:
                yield entry
                continue
            inner = f"{entry.conditional} in " if entry.conditional else ""
            yield replace(entry, conditional=f"{inner}{'|'.join(sorted(owners[name]))}")

    def registries(self) -> dict[str, Function]:
        """The model registry function of every model family."""
        found: dict[str, Function] = {}
        for module in self.modules:
            parent, _, family = module.name.rpartition(".")
            item = module.frame.names.get("model_registry")
            if parent == MODEL_PARENT and isinstance(item, Function):
                found[family] = item
        return found

    def _model_entries(self) -> Iterator[Entry]:
        """What selects the model: the families' names, and every parameter that some registry takes."""
        families = self.registries()
        first = next(iter(families.values()))
        place = f"{first.module.file}:{first.module.source.place(first.node).line}"
        yield synthetic("name", "str", place, choices=tuple(sorted(families)), type_name="str")
        parameters: dict[str, list[tuple[str, cst.Param, Function]]] = {}
        for family, function in sorted(families.items()):
            for param in every_parameter(function):
                parameters.setdefault(param.name.value, []).append((family, param, function))
        for name, uses in parameters.items():
            yield self._parameter(name, uses, len(families))
        yield from self._converter_entries()

    def _parameter(self, name: str, uses: list[tuple[str, cst.Param, Function]], families: int) -> Entry:
        _, param, function = uses[0]
        module = self.annotations.tree.require(function.module.name)
        annotation = param.annotation.annotation if param.annotation is not None else cst.Name("object")
        value = read_annotation(annotation, module, self.annotations)
        defaults = {family: as_json(function.defaults.get(param.name.value)) for family, param, function in uses}
        agreed = len({repr(item) for item in defaults.values()}) == 1
        is_list = name == "converters"
        return synthetic(
            name,
            "list" if is_list else value.kind,
            f"{function.module.file}:{function.module.source.place(param).line}",
            type_name=type_text(annotation),
            default=next(iter(defaults.values())) if agreed else None,
            dynamic=None if agreed else "model_spec.name",
            choices=tuple(sorted(self.converters())) if is_list else value.choices,
            optional=value.optional,
            conditional=None if len(uses) == families else "|".join(family for family, _, _ in uses),
        )

    def converters(self) -> dict[str, ClassValue]:
        """The classes that change a model's configuration, by name."""
        found = self.children.get(f"{CONVERTER}.{CONFIG}", [])
        return {component(item): item for item in found if item.dotted not in self.children}

    def _converter_entries(self) -> Iterator[Entry]:
        for name, cls in sorted(self.converters().items()):
            for field in self.tree.fields(cls):
                address = f"{MODEL_FIELD}.converters.{name}.{field.name}"
                yield replace(leaf(field, address, self._value_type(field)), flags=(), conditional=name)

    def class_rows(self) -> dict[str, Any]:
        """Every configuration class: the names it can be imported by, the classes it derives from, its fields."""
        names, uses = self._public_names(), self._uses()
        rows: dict[str, Any] = {}
        for dotted, cls in sorted(self.classes.items()):
            outer = cls.owner or cls
            imports = sorted(names.get(outer.dotted, []), key=lambda name: (-uses[name], len(name), name))
            rows[dotted] = {
                "imports": imports or [outer.dotted],
                "bases": [item.dotted for item in self.tree.lineage(cls)[1:]],
                "fields": {field.name: field_row(field) for field in self.tree.fields(cls)},
            }
        return rows

    def function_rows(self) -> dict[str, Any]:
        """Parameters and defaults of the helper functions that configurations call."""
        found = {f"{MODEL_PARENT}.{family}.model_registry": item for family, item in self.registries().items()}
        for dotted in HELPERS:
            item = self.tree.named(dotted)
            if isinstance(item, Function):
                found[dotted] = item
        return {dotted: {"parameters": parameters_row(item)} for dotted, item in sorted(found.items())}

    def _public_names(self) -> dict[str, list[str]]:
        """The names by which each class can be imported: where it is defined, and where packages export it."""
        found: dict[str, list[str]] = {}
        for module in self.modules:
            for name in list(module.frame.names):
                if not name.startswith("_"):
                    item = self.tree.member(module, name)
                    exported = module.is_package or name in exported_names(module.frame.names)
                    if isinstance(item, ClassValue) and (item.module is module or exported):
                        found.setdefault(item.dotted, []).append(f"{module.name}.{name}")
        return found

    def _uses(self) -> Counter[str]:
        """How often upstream's own configurations import each name."""
        counts: Counter[str] = Counter()
        for module in self.modules:
            if module.name.endswith("config_registry"):
                text = " ".join(module.source.tree.code.split())
                counts.update(_imported(text))
        return counts


def _imported(text: str) -> Iterator[str]:
    import re

    for module, names in re.findall(
        r"from ([\w.]+) import (\([^)]*\)|[\w, ]+?)(?= from | import | def | [A-Z@_])", text
    ):
        for name in re.findall(r"\w+", names):
            yield f"{module}.{name}"


def exported_names(names: dict[str, object]) -> list[object]:
    """What a module's ``__all__`` lists."""
    found = names.get("__all__")
    return found if isinstance(found, list) else []


def component(cls: ClassValue) -> str:
    """The name of the component that a ``Config`` is of; a class's own name otherwise."""
    return cls.owner.name if cls.owner is not None and cls.name == CONFIG else cls.name


def type_text(node: cst.BaseExpression) -> str:
    """An annotation on one line."""
    return " ".join(cst.Module([]).code_for_node(node).split())


def leaf(field: Field, address: str, value: ValueType) -> Entry:
    """The entry of a field with a plain value."""
    dynamic, default = None, None
    if field.default is MISSING:
        dynamic = REQUIRED
    elif isinstance(field.default, Unknown | Call | Symbol | Function):
        dynamic = source_name(field.default)
    else:
        default = as_json(field.default)
    text = type_text(field.annotation)
    kind, arity = value.kind, value.arity
    if kind == "custom" and arity == "*":
        kind, arity = "list", None
    flags = [f"--{address}"]
    if kind == "bool" and arity is None:
        section, _, name = address.rpartition(".")
        flags.append(f"--{section}.no-{name}" if section else f"--no-{name}")
    return Entry(
        key=address,
        address=address,
        kind=kind,
        action=FIELD_ACTION,
        flags=() if SUPPRESSED in text else tuple(flags),
        default=default,
        default_known=dynamic is None,
        dynamic=dynamic,
        choices=value.choices,
        arity=arity,
        type_name=text,
        optional=value.optional,
        source=field.place,
    )


def source_name(value: Unknown | Call | Symbol | Function) -> str:
    """What a default that is no plain value comes from."""
    if isinstance(value, Unknown):
        return value.text
    return value.callee if isinstance(value, Call) else value.dotted if isinstance(value, Function) else value.name


def synthetic(name: str, kind: str, place: str, **more: Any) -> Entry:
    """An entry about the choice of the model, which the command line does not have."""
    address = f"{MODEL_FIELD}.{name}"
    dynamic = more.pop("dynamic", None)
    return Entry(
        key=address,
        address=address,
        kind=kind,
        action=FIELD_ACTION,
        dynamic=dynamic,
        default_known=dynamic is None,
        source=place,
        **more,
    )


def every_parameter(function: Function) -> list[cst.Param]:
    """The named parameters of a function, in order."""
    params: cst.Parameters = function.node.params
    return [*params.posonly_params, *params.params, *params.kwonly_params]


def parameters_row(function: Function) -> dict[str, Any]:
    """Name -> ``{"default": ...}`` or ``{"required": true}``; ``**`` stands for further keywords."""
    rows: dict[str, Any] = {}
    for param in every_parameter(function):
        name = param.name.value
        has_default = name in function.defaults
        rows[name] = {"default": as_json(function.defaults[name])} if has_default else {REQUIRED: True}
    if function.node.params.star_kwarg is not None:
        rows["**"] = {}
    return rows


def field_row(field: Field) -> dict[str, Any]:
    """Type and default of a field, as JSON."""
    row: dict[str, Any] = {"type": type_text(field.annotation)}
    if field.default is MISSING:
        row[REQUIRED] = True
    elif isinstance(field.default, Unknown | Call):
        row["dynamic"] = source_name(field.default)
    else:
        row["default"] = as_json(field.default)
    return row


def as_json(value: object) -> Any:
    """A value as JSON: instances as ``{"class", "fields"}``, tuples as ``{"tuple"}``, names as ``{"symbol"}``."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Node):
        return {"class": value.cls, "fields": {name: as_json(item) for name, item in value.fields.items()}}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [as_json(item) for item in value]}
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, Symbol):
        return {"symbol": value.name}
    if isinstance(value, Function | ClassValue):
        return {"symbol": value.dotted}
    if isinstance(value, Partial | Call):
        return {"symbol": value.callee}
    return {"unknown": type(value).__name__}


def extract(tree: SourceTree) -> list[Entry]:
    """Every option of a source tree, by address."""
    return Extractor(tree).entries()


def generate_classes(version: str, source: Path) -> str:
    """The classes and helper functions of one version, as text.

    Raises `UsageError` for a version that is configured in TOML.
    """
    tree = SourceTree(source)
    if not is_python_configured(tree):
        raise UsageError(f"torchtitan {version} has no configuration classes; 0.3 has")
    found = Extractor(tree)
    return classes_text("torchtitan", version, {"classes": found.class_rows(), "functions": found.function_rows()})
