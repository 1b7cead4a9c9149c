"""What a Python configuration evaluates to: plain values, instances of configuration classes, and what stays open."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from translator.findings import Place


class _Mark(Enum):
    MISSING = "missing"
    NOT_KNOWN = "not known"


MISSING = _Mark.MISSING
"""What a resolver answers for a field without a known default."""
NOT_KNOWN = _Mark.NOT_KNOWN
"""What a resolver answers for a function whose value it does not know."""


@dataclass(eq=False, slots=True)
class Node:
    """An instance of a configuration class; changes while the function that builds it is evaluated.

    ``cls`` is the dotted name that the constructor was reached by (``torchtitan.trainer.Trainer.Config``), or its
    canonical name where the resolver knows one. ``fields`` holds only what was stated, by keyword, by assignment or
    by ``replace``; ``places`` says where each value stands. ``bases`` names the classes that a class of the user's own
    derives from, nearest first; it is empty for every other class.
    """

    cls: str
    fields: dict[str, object]
    places: dict[str, Place]
    place: Place
    bases: tuple[str, ...] = ()

    def get(self, path: str) -> object:
        """The stated value at a dotted path, `MISSING` where nothing is stated or the path leaves the tree."""
        found: object = self
        for name in path.split("."):
            if not isinstance(found, Node) or name not in found.fields:
                return MISSING
            found = found.fields[name]
        return found


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that the text alone does not determine.

    ``place`` is where the first cause stands, ``text`` the source of the expression that needed it, ``code`` the
    finding. For a value from the environment ``variable`` names the variable and ``default`` is what holds without it.
    """

    reason: str
    place: Place
    text: str
    code: str = "R110"
    variable: str | None = None
    default: object = MISSING


@dataclass(frozen=True, slots=True)
class Symbol:
    """An imported name, or an attribute of one, that is not evaluated: ``torch.nn.init.ones_``."""

    name: str


@dataclass(frozen=True, slots=True)
class Partial:
    """``functools.partial``: the callee (a dotted name, or source text) and what is bound."""

    callee: str
    args: tuple[object, ...]
    kwargs: dict[str, object]
    place: Place
    target: object = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of something whose source is not at hand and that the resolver does not know."""

    callee: str
    args: tuple[object, ...]
    kwargs: dict[str, object]
    place: Place


@dataclass(eq=False, slots=True)
class Frame:
    """Names of one function call (or of a module), inside the frame that the function was defined in."""

    module: ModuleValue
    names: dict[str, object]
    parent: Frame | None = None
    pending: list[tuple[object, Unknown]] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class ModuleValue:
    """A module whose text was read."""

    name: str
    file: str
    source: Any = field(repr=False)
    frame: Frame = field(init=False, repr=False)
    is_package: bool = False
    star: bool = False

    def __post_init__(self) -> None:
        self.frame = Frame(self, {})


@dataclass(eq=False, slots=True)
class Function:
    """A function or lambda of a module that was read; ``node`` is its syntax."""

    name: str
    module: ModuleValue
    node: Any = field(repr=False)
    parent: Frame | None = field(default=None, repr=False)
    owner: Node | None = None
    defaults: dict[str, object] = field(default_factory=dict)

    @property
    def dotted(self) -> str:
        """The name with its module's."""
        return f"{self.module.name}.{self.name}" if self.module.name else self.name


@dataclass(eq=False, slots=True)
class ClassValue:
    """A class of a module that was read."""

    name: str
    module: ModuleValue
    node: Any = field(repr=False)
    parent: Frame | None = field(default=None, repr=False)
    owner: ClassValue | None = None
    scope: Frame | None = field(default=None, repr=False)
    bases: list[object] | None = field(default=None, repr=False)

    @property
    def dotted(self) -> str:
        """The name with the enclosing classes' and the module's."""
        head = self.owner.dotted if self.owner else self.module.name
        return f"{head}.{self.name}" if head else self.name


@dataclass(frozen=True, slots=True)
class ImportRef:
    """A name bound by an import that nothing has asked for yet."""

    module: str
    attribute: str | None
    file: str


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a plain value, looked up and not yet called."""

    owner: object
    name: str


def same(left: object, right: object) -> bool:
    """Equal as configuration: instances by class and stated fields, ``True`` is not ``1``, places do not matter."""
    if left is right:
        return True
    if isinstance(left, Node) and isinstance(right, Node):
        return left.cls == right.cls and same(left.fields, right.fields)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return (
            type(left) is type(right)
            and len(left) == len(right)
            and all(same(one, other) for one, other in zip(left, right, strict=True))
        )
    if isinstance(left, Partial | Call) and isinstance(right, Partial | Call):
        return (
            type(left) is type(right)
            and left.callee == right.callee
            and same(left.args, right.args)
            and same(left.kwargs, right.kwargs)
        )
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return False
    return type(left) is type(right) and bool(left == right)


def copied(value: object, memo: dict[int, object] | None = None) -> object:
    """A deep copy that keeps what is shared shared; what cannot change is not copied."""
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, Node):
        twin = Node(value.cls, {}, dict(value.places), value.place, value.bases)
        memo[id(value)] = twin
        twin.fields.update({name: copied(item, memo) for name, item in value.fields.items()})
        return twin
    if isinstance(value, list):
        items: list[object] = []
        memo[id(value)] = items
        items.extend(copied(item, memo) for item in value)
        return items
    if isinstance(value, dict):
        table: dict[object, object] = {}
        memo[id(value)] = table
        table.update({key: copied(item, memo) for key, item in value.items()})
        return table
    if isinstance(value, tuple):
        return tuple(copied(item, memo) for item in value)
    if isinstance(value, set):
        return set(value)
    return value
