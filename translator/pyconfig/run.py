"""One evaluation from beginning to end: reads the module, calls the function, lists what stayed open."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from translator.errors import UsageError
from translator.findings import Finding, Level, Place
from translator.pyconfig import Evaluation, Open
from translator.pyconfig.codes import CODES
from translator.pyconfig.core import EndlessError, RaisedError
from translator.pyconfig.limits import Limits, OverLimitError
from translator.pyconfig.resolver import Resolver
from translator.pyconfig.source import parse
from translator.pyconfig.statements import Machine
from translator.pyconfig.values import MISSING, Call, Function, ModuleValue, Node, Partial, Unknown, same

ENTRY = "__ttx_expression__"
_RECURSION = 20_000


def run(
    text: str,
    file: str,
    function: str,
    resolver: Resolver,
    *,
    limits: Limits,
    module_name: str,
    environment: Mapping[str, str],
) -> Evaluation:
    """See `translator.pyconfig.evaluate`."""
    try:
        source = parse(text, file, limits)
    except OverLimitError as error:
        return _given_up([], error.code, str(error), Place(file, 1, 1), "")
    machine = Machine(resolver, limits, environment)
    module = ModuleValue(module_name, file, source, file.endswith("__init__.py"))
    machine.modules[file] = module
    if module_name:
        machine.by_name[module_name, ""] = module
    machine.entry_module = module
    # A call in the text costs some twenty calls here, each of them bounded by the limits' own depth.
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION))
    try:
        return _run(machine, module, function)
    finally:
        sys.setrecursionlimit(before)


def _run(machine: Machine, module: ModuleValue, function: str) -> Evaluation:
    start = Place(module.file, 1, 1)
    try:
        machine.run_module(module)
        entry = machine.member(module, function)
        if not isinstance(entry, Function):
            known = [name for name, item in module.frame.names.items() if isinstance(item, Function)]
            raise UsageError(f"{module.file} has no function {function!r}", fix=f"it has: {', '.join(known) or 'none'}")
        start = module.source.place(entry.node)
        value = machine.call(entry, [], {}, entry.node, module.frame)
    except OverLimitError as error:
        return _given_up(machine.findings, error.code, str(error), start, function)
    except EndlessError as error:
        return _given_up(machine.findings, "R116", f"{error.function.name} calls itself without end", start, function)
    except RaisedError as error:
        return _given_up(machine.findings, "R119", str(error), error.place, function)
    except RecursionError:
        return _given_up(machine.findings, "R117", "evaluation nests too deeply", start, function)
    _drop_unchanged_defaults(machine)
    found = list(open_values(value))
    for item in found:
        path = f"{item.path}: " if item.path else ""
        machine.find(item.unknown.code, f"{path}{item.unknown.reason}", item.unknown.place)
    return Evaluation(value, machine.findings, found)


def _given_up(findings: list[Finding], code: str, message: str, place: Place, text: str) -> Evaluation:
    unknown = Unknown(message, place, text, code)
    fix = CODES[code][1].rpartition("Way out: ")[2]
    return Evaluation(unknown, [*findings, Finding(code, Level.ERROR, message, fix, place)], [Open("", unknown)])


def _drop_unchanged_defaults(machine: Machine) -> None:
    """Takes out of the nodes what was only looked at: a node's fields are what was stated."""
    for node, name, default in reversed(machine.materialised.values()):
        value = node.fields.get(name, MISSING)
        if isinstance(value, Node):
            for inner in list(value.fields):
                kept = machine.materialised.get((id(value), inner))
                if kept is not None and same(value.fields[inner], kept[2]):
                    value.fields.pop(inner)
                    value.places.pop(inner, None)
        if value is not MISSING and same(value, default):
            node.fields.pop(name)
            node.places.pop(name, None)


def open_values(value: object, path: str = "", seen: frozenset[int] = frozenset()) -> Iterator[Open]:
    """Every open value in a result, with its path; a call of something unknown counts as open."""
    if isinstance(value, Unknown):
        yield Open(path, value)
    elif isinstance(value, Call):
        yield Open(path, Unknown(f"{value.callee} is not known", value.place, f"{value.callee}(...)", "R112"))
    elif isinstance(value, Partial) or id(value) in seen:
        return
    elif isinstance(value, Node):
        for name, item in value.fields.items():
            yield from open_values(item, f"{path}.{name}" if path else name, seen | {id(value)})
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from open_values(item, f"{path}[{key!r}]", seen | {id(value)})
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield from open_values(item, f"{path}[{index}]", seen | {id(value)})
