"""The registry of rules on one configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from translator.docstrings import text_of, title_of
from translator.findings import Finding, Level
from translator.subject import Remark, Subject

Function = Callable[[Subject], Iterator[Remark]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a code, the level of what it says, and the function that looks."""

    code: str
    level: Level
    run: Function

    @property
    def title(self) -> str:
        """The first line of the docstring."""
        return title_of(self.run)

    @property
    def documentation(self) -> str:
        """The docstring after its first line."""
        return text_of(self.run)

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """What the rule says about a configuration."""
        for remark in self.run(subject):
            yield subject.finding(self.code, self.level, remark)


_MODULES: dict[str, dict[str, Rule]] = {}


def rule(code: str, level: Level = Level.WARNING) -> Callable[[Function], Function]:
    """Register a function as the rule for a code. Raises ValueError when one module claims a code twice."""

    def register(function: Function) -> Function:
        here = _MODULES.setdefault(function.__module__, {})
        if code in here:
            raise ValueError(f"{code} has two rules in {function.__module__}")
        here[code] = Rule(code, level, function)
        return function

    return register


def rules_in(module: str) -> dict[str, Rule]:
    """The rules of a module by code; the module is loaded."""
    import_module(module)
    return _MODULES.get(module, {})


@cache
def rules_of(framework: str) -> tuple[Rule, ...]:
    """The rules that look at configurations of a framework: those on the spec, and its own, by code."""
    from translator.checks import MODULES
    from translator.knowledge import knowledge_of

    found: dict[str, Rule] = {}
    for module in (*MODULES, *knowledge_of(framework).checks):
        for code, entry in rules_in(module).items():
            if code in found:
                raise ValueError(f"{code} has two rules")
            found[code] = entry
    return tuple(found[code] for code in sorted(found))
