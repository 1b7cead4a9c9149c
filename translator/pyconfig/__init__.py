"""Static evaluation of Python configuration modules: what a function returns, without running anything.

This package knows Python, not any framework. Names that the text does not define are asked of a `Resolver`. libcst is
imported by the functions here when they are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from translator.findings import Finding, Place
from translator.pyconfig.limits import Limits
from translator.pyconfig.resolver import ClassFacts, NoResolver, Resolver
from translator.pyconfig.values import (
    MISSING,
    NOT_KNOWN,
    Call,
    ClassValue,
    Function,
    Node,
    Partial,
    Symbol,
    Unknown,
    copied,
    same,
)

if TYPE_CHECKING:
    from translator.pyconfig.source import FunctionInfo

__all__ = [
    "MISSING",
    "NOT_KNOWN",
    "Call",
    "ClassFacts",
    "ClassValue",
    "Evaluation",
    "Function",
    "Limits",
    "NoResolver",
    "Node",
    "Open",
    "Partial",
    "Place",
    "Resolver",
    "Symbol",
    "Unknown",
    "copied",
    "evaluate",
    "expression",
    "functions",
    "same",
]


@dataclass(frozen=True, slots=True)
class Open:
    """A place in the result whose value is not known: its dotted path (list items as ``[0]``), and why."""

    path: str
    unknown: Unknown


@dataclass(slots=True)
class Evaluation:
    """What a function returns. ``unevaluated`` lists every open value in it, each of which has a finding."""

    value: object
    findings: list[Finding] = field(default_factory=list)
    unevaluated: list[Open] = field(default_factory=list)


def functions(text: str, file: str, *, limits: Limits | None = None) -> list[FunctionInfo]:
    """The top-level functions that need no argument: name, place, return annotation as written.

    Raises `SourceError` for what is not Python, or larger or deeper than the limits.
    """
    from translator.errors import SourceError
    from translator.pyconfig.limits import OverLimitError
    from translator.pyconfig.source import parse, zero_argument_functions

    try:
        return zero_argument_functions(parse(text, file, limits or Limits()))
    except OverLimitError as error:
        raise SourceError(str(error), place=Place(file, 1, 1)) from error


def evaluate(
    text: str,
    file: str,
    function: str,
    resolver: Resolver,
    *,
    limits: Limits | None = None,
    module_name: str = "",
    environment: Mapping[str, str] | None = None,
) -> Evaluation:
    """What a function of a module returns when it is called without arguments; never raises for what is in the text.

    ``module_name`` is the module's own dotted name, where it is known; relative imports then get absolute names.
    ``environment`` holds the environment variables whose values were given; every other one is open.
    Raises `SourceError` (with line and column) for a syntax error, `UsageError` when there is no such function.
    """
    from translator.pyconfig.run import run

    return run(
        text,
        file,
        function,
        resolver,
        limits=limits or Limits(),
        module_name=module_name,
        environment=environment or {},
    )


def expression(text: str, file: str, source: str, resolver: Resolver, *, limits: Limits | None = None) -> Evaluation:
    """The value of an expression (``source``) as if it stood at the end of a module (``text``).

    Raises `SourceError` for a syntax error in either.
    """
    from translator.pyconfig.run import ENTRY, run

    whole = f"{text}\n\n\ndef {ENTRY}():\n    return ({source.strip()}\n    )\n"
    return run(whole, file, ENTRY, resolver, limits=limits or Limits(), module_name="", environment={})
