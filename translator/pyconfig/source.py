"""Reads the text of a Python module into libcst, within limits, with the place of every node."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from translator.errors import SourceError
from translator.findings import Place
from translator.pyconfig.limits import Limits, OverLimitError

_TEXT_LENGTH = 200


@dataclass(eq=False, slots=True)
class Source:
    """A parsed module: its syntax, and where each node stands."""

    file: str
    lines: list[str]
    tree: cst.Module
    positions: Mapping[cst.CSTNode, Any]
    generators: dict[int, bool] = field(default_factory=dict)

    def place(self, node: cst.CSTNode) -> Place:
        """The span of a node; lines and columns from 1."""
        span = self.positions[node]
        return Place(self.file, span.start.line, span.start.column + 1, span.end.line, span.end.column + 1)

    def text(self, node: cst.CSTNode) -> str:
        """The source of a node on one line, cut where it is long."""
        span = self.positions[node]
        lines = self.lines[span.start.line - 1 : span.end.line]
        if not lines:
            return ""
        lines[-1] = lines[-1][: span.end.column] if len(lines) > 1 else lines[0][: span.end.column]
        lines[0] = lines[0][span.start.column :]
        text = " ".join(line.strip() for line in lines)
        return text if len(text) <= _TEXT_LENGTH else text[: _TEXT_LENGTH - 3] + "..."


@lru_cache(maxsize=64)
def parse(text: str, file: str, limits: Limits) -> Source:
    """The syntax of a module.

    Raises `SourceError` (with line and column) for what is not Python, `OverLimitError` for what is too large or too
    deeply nested.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > limits.source_characters:
        raise OverLimitError("R118", f"the file has {len(text)} characters; {limits.source_characters} are the limit")
    _check(text, file, limits)
    try:
        tree = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        place = Place(file, error.raw_line, error.raw_column + 1)
        raise SourceError("not Python that can be read", place=place) from error
    wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
    return Source(file, text.splitlines(), wrapper.module, wrapper.resolve(PositionProvider))


def _check(text: str, file: str, limits: Limits) -> None:
    """Lets CPython's parser judge first: libcst ends the process where nesting exhausts its stack."""
    too_deep = OverLimitError("R118", f"the file nests deeper than {limits.nesting} levels")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename=file)
    except (MemoryError, RecursionError) as error:
        raise too_deep from error
    except SyntaxError as error:
        if "too many nested" in str(error.msg) or "too many levels" in str(error.msg):
            raise too_deep from error
        place = Place(file, max(error.lineno or 1, 1), max(error.offset or 1, 1))
        raise SourceError(f"not Python: {error.msg}", place=place) from error
    except ValueError as error:
        raise SourceError(f"not Python: {error}", place=Place(file, 1, 1)) from error
    level: Sequence[ast.AST] = [tree]
    depth = count = 0
    while level:
        depth += 1
        count += len(level)
        if depth > limits.nesting:
            raise too_deep
        if count > limits.source_nodes:
            raise OverLimitError("R118", f"the file has more than {limits.source_nodes} parts")
        level = [child for node in level for child in ast.iter_child_nodes(node)]


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """A function of a module that can be called without arguments; ``returns`` is its annotation as written."""

    name: str
    place: Place
    returns: str


def zero_argument_functions(source: Source) -> list[FunctionInfo]:
    """The functions of a module that need no argument, in the order of the text; of two with one name the last."""
    found: dict[str, FunctionInfo] = {}
    for node in source.tree.body:
        if isinstance(node, cst.FunctionDef):
            found.pop(node.name.value, None)
            if node.asynchronous is None and not _required(node.params):
                returns = source.text(node.returns.annotation) if node.returns else ""
                found[node.name.value] = FunctionInfo(node.name.value, source.place(node.name), returns)
    return list(found.values())


def _required(params: cst.Parameters) -> bool:
    named = (*params.posonly_params, *params.params, *params.kwonly_params)
    return any(param.default is None for param in named)


def dotted_name(node: cst.CSTNode | None) -> str:
    """``a.b.c`` for a name or an attribute chain; empty for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        head = dotted_name(node.value)
        return f"{head}.{node.attr.value}" if head else ""
    return ""
