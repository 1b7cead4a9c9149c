"""A Python module that registers a flavor of one's own with torchtitan, written and read back without running it.

torchtitan imports the module named in ``experimental.custom_import`` before it looks up the model (``train.py:83`` of
0.2.2, ``:72`` of 0.1.0), and a family's ``get_train_spec`` hands out the family's table of flavors itself
(``models/llama3/__init__.py:95``): a flavor put into that table is found under its name, with everything else of the
family unchanged.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence

from translator.frameworks.torchtitan.flavors import default_arguments
from translator.frameworks.torchtitan.models import Family, families

Flavors = dict[tuple[str, str], dict[str, object]]
TEMPLATE = "torchtitan/custom_flavor.py.j2"


def render_custom_model(
    name: str, flavor: str, arguments: Mapping[str, object], version: str, *, module: str, notes: Sequence[str] = ()
) -> str:
    """The text of a module ``module`` that registers ``flavor`` in the family ``name``.

    ``arguments`` are those of the family's class, nested where that is; ``notes`` are lines of comment. Raises
    `KeyError` for an unknown family.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from translator.resources import template_dir

    known = families(version)[name]
    nested = {key: known.nested[key] for key, value in arguments.items() if isinstance(value, Mapping)}
    imports: dict[str, set[str]] = {known.module: {known.arguments_class, known.table}}
    for class_name, origin in nested.values():
        imports.setdefault(origin, set()).add(class_name)
    environment = Environment(
        loader=FileSystemLoader(template_dir()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template(TEMPLATE).render(
        family=name,
        flavor=repr(flavor),
        module=module,
        version=version,
        notes=["".join(char if char.isprintable() else " " for char in note) for note in notes],
        imports=[(origin, sorted(names)) for origin, names in sorted(imports.items())],
        table=known.table,
        arguments_class=known.arguments_class,
        arguments=list(_lines(arguments, nested)),
    )


def _lines(
    arguments: Mapping[str, object], nested: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Each argument as (name, text, inner arguments), where the text of a nested one is its class."""
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            yield name, nested[name][0], [(inner, repr(item)) for inner, item in value.items()]
        else:
            yield name, repr(value), []


def read_custom_model(text: str, version: str = "0.2.2") -> Flavors:
    """The flavors that a module registers: (family, flavor) -> arguments as written.

    Only assignments of literal arguments at the top of the module count; nothing is executed. A flavor whose
    arguments are computed is left out. A text that is no Python gives no flavors.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    reader = _Module(version)
    found: Flavors = {}
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            reader.imported(statement)
            continue
        for table, flavor, value in reader.registrations(statement):
            known = reader.tables.get(table)
            arguments = reader.arguments(known, value) if known is not None else None
            if known is not None and arguments is not None:
                found[known.name, flavor] = arguments
    return found


class _Module:
    """Names of a module as far as they lead to torchtitan's tables and classes."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.names: dict[str, str] = {}
        self.tables: dict[str, Family] = {}
        for family in families(version).values():
            self.tables[f"{family.module}.{family.table}"] = family

    def imported(self, statement: ast.Import | ast.ImportFrom) -> None:
        """Remember what an import binds."""
        for alias in statement.names:
            if isinstance(statement, ast.ImportFrom):
                self.names[alias.asname or alias.name] = f"{statement.module}.{alias.name}"
            elif alias.asname:
                self.names[alias.asname] = alias.name

    def dotted(self, node: ast.expr) -> str:
        """The full name that an expression refers to; empty when it is something else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.names.get(node.id, node.id), *reversed(parts)])

    def registrations(self, statement: ast.stmt) -> Iterator[tuple[str, str, ast.expr]]:
        """(table, flavor, value) for ``table["flavor"] = value`` and ``table.update({"flavor": value})``."""
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Subscript):
                    yield from self._named(self.dotted(target.value), target.slice, statement.value)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            if isinstance(call.func, ast.Attribute) and call.func.attr == "update" and len(call.args) == 1:
                argument = call.args[0]
                if isinstance(argument, ast.Dict):
                    for key, value in zip(argument.keys, argument.values, strict=True):
                        yield from self._named(self.dotted(call.func.value), key, value)

    @staticmethod
    def _named(table: str, key: ast.expr | None, value: ast.expr) -> Iterator[tuple[str, str, ast.expr]]:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield table, key.value, value

    def arguments(self, family: Family, value: ast.expr) -> dict[str, object] | None:
        """The literal arguments of a call of the family's class; None for anything else."""
        return self._call(value, {family.arguments_class}, family, list(default_arguments(family.name, self.version)))

    def _call(
        self, node: ast.expr, classes: set[str], family: Family, positional: Sequence[str]
    ) -> dict[str, object] | None:
        if not isinstance(node, ast.Call) or self.dotted(node.func).rpartition(".")[2] not in classes:
            return None
        if len(node.args) > len(positional):
            return None
        pairs = [*zip(positional, node.args, strict=False), *((word.arg, word.value) for word in node.keywords)]
        found: dict[str, object] = {}
        for name, inner in pairs:
            if name is None:
                return None
            try:
                found[name] = ast.literal_eval(inner)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                nested = {family.nested[name][0]} if name in family.nested else set[str]()
                call = self._call(inner, nested, family, ())
                if call is None:
                    return None
                found[name] = call
        return found
