"""Adds a generated configuration to an existing registry file; everything that is there stays byte for byte."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from translator.errors import SourceError
from translator.frameworks.torchtitan.python_names import import_lines

if TYPE_CHECKING:
    import libcst as cst

    from translator.frameworks.base import Rendered


@dataclass
class _Outline:
    """What a module binds at its top, and on which line (from 1) its imports end; 0 when there are none."""

    imports: dict[str, str] = field(default_factory=dict)
    definitions: set[str] = field(default_factory=set)
    functions: list[tuple[str, int, int]] = field(default_factory=list)
    imports_end: int = 0
    head_end: int = 0


def insert_into(existing_text: str, rendered: Rendered, name: str = "") -> str:
    """The text of a registry with the rendered function, its helpers and the imports that it lacks.

    The function is called ``name``, or as rendered. A name that the file uses for something else is imported under
    another one, and helpers are renamed where theirs is taken. Raises SourceError when the file is no Python, or has a
    function of that name already.
    """
    own = function_name(rendered)
    new = rendered.files[rendered.main]
    if name and name != own:
        new = _renamed(new, {own: name})
    name = name or own
    here, there = _outline(existing_text, "the file"), _outline(new, "the configuration")
    taken = here.definitions | set(here.imports)
    if name in taken:
        raise SourceError(f"there is a {name} already")
    renamed: dict[str, str] = {}
    lacking: dict[str, set[str]] = {}
    for bound, origin in there.imports.items():
        if here.imports.get(bound) == origin:
            continue
        module, _, imported = origin.rpartition(".")
        if bound in taken:
            renamed[bound] = _free(f"{_tail(module)}_{bound}", taken)
            imported = f"{imported} as {renamed[bound]}"
        lacking.setdefault(module, set()).add(imported)
    for helper, _, _ in there.functions:
        if helper != name and helper in taken:
            renamed[helper] = _free(f"{helper}_{name}", taken)
    body = "\n\n\n".join(_renamed(text, renamed) for text in _functions(new, there))
    return _joined(existing_text, here, import_lines(lacking), body)


def function_name(rendered: Rendered) -> str:
    """The name of the configuration function, which is that of its module."""
    return rendered.main.removesuffix(".py").rpartition("/")[2]


def _tail(module: str) -> str:
    return module.rpartition(".")[2]


def _free(wanted: str, taken: set[str]) -> str:
    found, number = wanted, 2
    while found in taken:
        found, number = f"{wanted}_{number}", number + 1
    taken.add(found)
    return found


def _outline(text: str, what: str) -> _Outline:
    import libcst as cst

    from translator.pyconfig.limits import Limits, OverLimitError
    from translator.pyconfig.source import parse

    try:
        source = parse(text, what, Limits())
    except OverLimitError as error:
        raise SourceError(f"{what}: {error}") from None
    found = _Outline()
    for index, statement in enumerate(source.tree.body):
        place = source.positions[statement]
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            found.definitions.add(statement.name.value)
            if isinstance(statement, cst.FunctionDef):
                found.functions.append((statement.name.value, place.start.line, place.end.line))
        elif isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                if isinstance(small, (cst.Import, cst.ImportFrom)):
                    found.imports.update(_bindings(small))
                    found.imports_end = place.end.line
                elif index == 0 and isinstance(small, cst.Expr):
                    found.head_end = place.end.line
                elif isinstance(small, (cst.Assign, cst.AnnAssign)):
                    found.definitions.update(_targets(small))
    return found


def _bindings(statement: cst.Import | cst.ImportFrom) -> Iterator[tuple[str, str]]:
    """(name bound, what it is) for each name of an import; relative ones are what they say, dots included."""
    import libcst as cst
    from libcst.helpers import get_full_name_for_node

    if isinstance(statement.names, cst.ImportStar):
        return
    module = ""
    if isinstance(statement, cst.ImportFrom):
        stem = get_full_name_for_node(statement.module) if statement.module is not None else ""
        module = "." * len(statement.relative) + (stem or "") + "."
    for alias in statement.names:
        name = get_full_name_for_node(alias.name) or ""
        bound = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else ""
        if not bound and not module:
            yield name.partition(".")[0], name.partition(".")[0]
        else:
            yield bound or name, f"{module}{name}"


def _targets(statement: cst.Assign | cst.AnnAssign) -> Iterator[str]:
    import libcst as cst

    targets = [item.target for item in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
    for target in targets:
        if isinstance(target, cst.Name):
            yield target.value


def _functions(text: str, outline: _Outline) -> Iterator[str]:
    lines = text.splitlines()
    for _, start, end in outline.functions:
        yield "\n".join(lines[start - 1 : end])


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with names replaced, in code only: strings and comments keep theirs."""
    if not names:
        return text
    lines = text.splitlines(keepends=True)
    found = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME and token.string in names
    ]
    for token in reversed(found):
        row, column = token.start
        line = lines[row - 1]
        if not line[:column].endswith("."):
            lines[row - 1] = f"{line[:column]}{names[token.string]}{line[token.end[1] :]}"
    return "".join(lines)


def _joined(text: str, here: _Outline, imports: list[str], body: str) -> str:
    """The old lines, with the new ones between and after them in the file's own line ends."""
    ending = "\r\n" if "\r\n" in text else "\n"
    cut = 0
    for _ in range(here.imports_end or here.head_end):
        cut = text.find("\n", cut) + 1 or len(text)
    head, rest = text[:cut], text[cut:]
    # Import statements need no grouping here, only lines of their own.
    wanted = ending.join(line for line in imports if line)
    if wanted:
        lead = "" if not head or head.endswith("\n") else ending
        head = f"{head}{lead}{wanted}{ending}"
    whole = head + rest
    if whole and not whole.endswith("\n"):
        whole += ending
    return f"{whole}{ending}{ending}{body.replace(chr(10), ending)}{ending}"
