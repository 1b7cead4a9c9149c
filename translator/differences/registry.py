"""The registry of differences and of the frameworks' stances on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module

from translator.docstrings import text_of, title_of
from translator.findings import Finding, Level
from translator.knowledge import knowledge_of
from translator.subject import Remark, Subject


@dataclass(frozen=True, slots=True)
class Stance:
    """How one configuration answers the question of a difference.

    ``kind`` is what is compared: equal kinds mean the same. ``says`` is the rest of a sentence that begins with the
    framework's name; ``source`` is the upstream line with its version; ``option`` the address that decides, for the
    place. ``ways`` says, by the other side's kind, what to set in this framework to get that kind.
    """

    kind: str
    says: str
    source: str
    option: str | None = None
    ways: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pair:
    """Source and target, with their stances."""

    left: Subject
    right: Subject
    source: Stance
    target: Stance

    def kinds(self, *kinds: str) -> bool:
        """Whether source and target take two of these kinds."""
        return self.source.kind in kinds and self.target.kind in kinds


Stated = Callable[[Subject], Stance | None]
Judge = Callable[[Pair], str | None]


@dataclass(frozen=True, slots=True)
class Difference:
    """One question; ``judge`` says by how much it can matter here, or None where it does not."""

    code: str
    level: Level
    field: str
    judge: Judge

    @property
    def title(self) -> str:
        """The first line of the docstring."""
        return title_of(self.judge)

    @property
    def documentation(self) -> str:
        """The docstring after its first line."""
        return text_of(self.judge)

    @property
    def advice(self) -> str:
        """What the documentation advises, where no stance knows a way."""
        return " ".join(self.documentation.partition("Fix:")[2].split()).rstrip(".")

    def findings(
        self, left: Subject, source: Stance | None, right: Subject, target: Stance | None
    ) -> Iterator[Finding]:
        """The finding where two stances differ and it matters; none otherwise."""
        if source is None or target is None or source.kind == target.kind:
            return
        weight = self.judge(Pair(left, right, source, target))
        if weight is None:
            return
        message = (
            f"{self.title}: {_name(left, right)} {source.says} ({source.source}); "
            f"{_name(right, left)} {target.says} ({target.source})" + (f"; {weight}" if weight else "")
        )
        fix = target.ways.get(source.kind) or source.ways.get(target.kind) or self.advice
        yield left.finding(self.code, self.level, Remark(message, fix, source.option, self.field))


def _name(one: Subject, other: Subject) -> str:
    """The framework, with its version where both sides are of one framework."""
    return f"{one.title} {one.reading.version}" if one.framework == other.framework else one.title


_DIFFERENCES: dict[str, dict[str, Difference]] = {}
_STANCES: dict[str, dict[str, Stated]] = {}


def difference(code: str, field: str, level: Level = Level.WARNING) -> Callable[[Judge], Judge]:
    """Register a function as the difference for a code; ``field`` is the spec leaf that it is about.

    Raises ValueError when one module claims a code twice.
    """

    def register(function: Judge) -> Judge:
        here = _DIFFERENCES.setdefault(function.__module__, {})
        if code in here:
            raise ValueError(f"{code} is twice in {function.__module__}")
        here[code] = Difference(code, level, field, function)
        return function

    return register


def stance(code: str) -> Callable[[Stated], Stated]:
    """Register a function that reads a framework's stance on a difference from a configuration."""

    def register(function: Stated) -> Stated:
        here = _STANCES.setdefault(function.__module__, {})
        if code in here:
            raise ValueError(f"two stances on {code} in {function.__module__}")
        here[code] = function
        return function

    return register


@cache
def differences() -> Mapping[str, Difference]:
    """All differences by code. Raises ValueError for a code that two modules claim."""
    from translator.differences import MODULES

    found: dict[str, Difference] = {}
    for module in MODULES:
        import_module(module)
        for code, entry in _DIFFERENCES.get(module, {}).items():
            if code in found:
                raise ValueError(f"{code} is claimed twice")
            found[code] = entry
    return dict(sorted(found.items()))


@cache
def stances_of(framework: str) -> Mapping[str, Stated]:
    """A framework's stances by code of the difference. Raises ValueError for a code with two."""
    found: dict[str, Stated] = {}
    for module in knowledge_of(framework).stances:
        import_module(module)
        for code, entry in _STANCES.get(module, {}).items():
            if code in found:
                raise ValueError(f"{framework} has two stances on {code}")
            found[code] = entry
    return found
