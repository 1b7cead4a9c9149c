"""The state of an evaluation, and what its parts need of each other."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst

from translator.errors import SourceError
from translator.findings import Finding, Level, Place
from translator.pyconfig.builtin import CONSTANTS
from translator.pyconfig.codes import CODES
from translator.pyconfig.journal import Container, Journal, State, apply, merged, merged_state, note_in
from translator.pyconfig.limits import Limits, OverLimitError
from translator.pyconfig.resolver import ClassFacts, Resolver
from translator.pyconfig.source import Source, parse
from translator.pyconfig.values import MISSING, Frame, Function, ImportRef, ModuleValue, Node, Symbol, Unknown, copied


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a block ended: ``next``, ``return``, ``break``, ``continue``, or ``raise``."""

    kind: str = "next"
    value: object = None
    place: Place | None = None


NEXT = Outcome()


class RaisedError(Exception):
    """The configuration itself raises here."""

    def __init__(self, name: str, message: str, place: Place) -> None:
        super().__init__(message)
        self.name = name
        self.place = place


class EndlessError(Exception):
    """Calls went too deep; carries the function whose call was refused."""

    def __init__(self, function: Function) -> None:
        super().__init__(function.name)
        self.function = function


class Core(ABC):
    """State, names, changes and findings; the evaluation itself is in the classes derived from it."""

    def __init__(self, resolver: Resolver, limits: Limits, environment: Mapping[str, str]) -> None:
        self.resolver = resolver
        self.limits = limits
        self.environment = environment
        self.findings: list[Finding] = []
        self.journal: Journal | None = None
        self.stack: list[Function] = []
        self.modules: dict[str, ModuleValue] = {}
        self.by_name: dict[tuple[str, str], ModuleValue | None] = {}
        self.imported: set[str] = set()
        self.materialised: dict[tuple[int, str], tuple[Node, str, object]] = {}
        self._found: set[tuple[str, Place | None]] = set()
        self._steps = 0
        self._ends = time.monotonic() + limits.seconds

    @abstractmethod
    def value(self, node: cst.CSTNode, frame: Frame) -> object:
        """The value of an expression."""

    @abstractmethod
    def call(self, callee: object, args: list[object], kwargs: dict[str, object], node: Any, frame: Frame) -> object:
        """The value of a call."""

    @abstractmethod
    def block(self, body: Sequence[Any], frame: Frame) -> Outcome:
        """Runs statements."""

    @abstractmethod
    def assign(self, target: cst.CSTNode, value: object, frame: Frame, place: Place) -> None:
        """Binds a target of any form."""

    @abstractmethod
    def attribute(self, owner: object, name: str, node: Any, frame: Frame) -> object:
        """The value of ``owner.name``."""

    def step(self) -> None:
        """Counts a unit of work. Raises `OverLimitError` past the bound."""
        self._steps += 1
        if self._steps > self.limits.steps:
            raise OverLimitError("R117", f"evaluation took more than {self.limits.steps} steps")
        if self._steps % 1024 == 0 and time.monotonic() > self._ends:
            raise OverLimitError("R117", f"evaluation took more than {self.limits.seconds:g} seconds")

    def sized(self, count: float) -> None:
        """Refuses to make a value of that many parts. Raises `OverLimitError`."""
        if count > self.limits.items:
            raise OverLimitError("R117", f"a value has more than {self.limits.items} parts")

    def find(self, code: str, message: str, place: Place | None, level: Level = Level.WARNING) -> None:
        """Adds a finding, once for one place."""
        if (code, place) not in self._found:
            self._found.add((code, place))
            fix = CODES[code][1].rpartition("Way out: ")[2]
            self.findings.append(Finding(code, level, message, fix, place))

    def unknown(self, code: str, reason: str, node: cst.CSTNode, frame: Frame, **more: Any) -> Unknown:
        """An open value whose cause is the expression itself."""
        source: Source = frame.module.source
        return Unknown(reason, source.place(node), source.text(node), code, **more)

    def spread(self, cause: Unknown, node: cst.CSTNode, frame: Frame) -> Unknown:
        """An open value whose cause is a part of the expression."""
        return replace(cause, text=frame.module.source.text(node), variable=None, default=MISSING)

    def set_entry(self, box: dict[Any, Any], key: object, value: object) -> None:
        """Changes a dictionary entry so that it can be taken back; ``MISSING`` removes it."""
        note_in(self.journal)(box, key)
        if value is MISSING:
            box.pop(key, None)
        else:
            box[key] = value

    def changing(self, box: Container) -> None:
        """To be called before a container changes in any way."""
        if self.journal is not None:
            self.journal.whole(box)

    def set_field(self, node: Node, name: str, value: object, place: Place) -> None:
        """States a field."""
        self.set_entry(node.fields, name, value)
        self.set_entry(node.places, name, place)
        self.materialised.pop((id(node), name), None)

    def field_default(self, node: Node, name: str) -> object:
        """The default of a field, from the nearest class that knows it."""
        for cls in (node.cls, *node.bases):
            found = self.resolver.default(cls, name)
            if found is not MISSING:
                return found
        return MISSING

    def materialise(self, node: Node, name: str, value: object, place: Place) -> object:
        """Keeps a changeable default in the node, so that changes to it are seen; unchanged ones go at the end."""
        if isinstance(value, Node | list | dict | set):
            self.set_entry(node.fields, name, value)
            self.set_entry(node.places, name, place)
            self.materialised[id(node), name] = (node, name, copied(value))
        return value

    def canonical(self, name: str) -> str:
        """The name a class is known under."""
        return self.resolver.canonical(name) if isinstance(self.resolver, ClassFacts) else name

    def both(
        self, first: Callable[[], Outcome], second: Callable[[], Outcome], unknown: Unknown, frame: Frame
    ) -> Outcome:
        """Runs both branches of an unknown condition and keeps what they agree on.

        A branch that raises is taken for the one that is not meant. When one branch returns and the other goes on,
        what it returned is kept and merged with what the function returns in the end.
        """
        outer = self.journal
        runs: list[tuple[Outcome, State, State]] = []
        for branch in (first, second):
            self.journal = Journal()
            try:
                outcome = branch()
            except RaisedError as error:
                outcome = Outcome("raise", str(error), error.place)
            finally:
                inner, self.journal = self.journal, outer
            runs.append((outcome, inner.now(), inner.before()))
            inner.undo()
        (one, after_one, before_one), (other, after_other, before_other) = runs
        note = note_in(outer)
        if one.kind == "raise" or other.kind == "raise":
            if one.kind == other.kind:
                raise RaisedError("", str(one.value), one.place or unknown.place)
            outcome, state = (other, after_other) if one.kind == "raise" else (one, after_one)
            apply(state, note)
            return outcome
        apply(merged_state(after_one, after_other, {**before_other, **before_one}, unknown), note)
        return self._joined(one, other, unknown, frame)

    def _joined(self, one: Outcome, other: Outcome, unknown: Unknown, frame: Frame) -> Outcome:
        if one.kind == other.kind:
            return Outcome(one.kind, merged(one.value, other.value, unknown), one.place)
        for ended, goes_on in ((one, other), (other, one)):
            if ended.kind == "return":
                frame.pending.append((ended.value, unknown))
                return goes_on
        return NEXT

    @contextmanager
    def unconditionally(self) -> Iterator[None]:
        """What modules and classes define holds whatever the branch in which they are first asked for."""
        outer, self.journal = self.journal, None
        try:
            yield
        finally:
            self.journal = outer

    def load(self, dotted: str, importing: ModuleValue) -> ModuleValue | None:
        """A module by name, its top level evaluated; ``None`` when it cannot be read."""
        key = (dotted, importing.file if dotted.startswith(".") else "")
        if key in self.by_name:
            return self.by_name[key]
        found = self.resolver.module(dotted, importing.file)
        if found is None:
            self.by_name[key] = None
            return None
        file, text = found
        if file not in self.modules:
            if len(self.modules) >= self.limits.modules:
                raise OverLimitError("R117", f"more than {self.limits.modules} modules")
            try:
                source = parse(text, file, self.limits)
            except SourceError as error:
                self.find("R112", f"module {dotted} cannot be read: {error.message}", error.place)
                self.by_name[key] = None
                return None
            except OverLimitError as error:
                self.find(error.code, f"module {dotted} is not read: {error}", Place(file, 1, 1))
                self.by_name[key] = None
                return None
            name = "" if dotted.startswith(".") else dotted
            self.modules[file] = module = ModuleValue(name, file, source, file.endswith("__init__.py"))
            self.by_name[key] = module
            self.run_module(module)
        self.by_name[key] = self.modules[file]
        return self.modules[file]

    def run_module(self, module: ModuleValue) -> None:
        """Evaluates the top level of a module."""
        with self.unconditionally():
            try:
                self.block(module.source.tree.body, module.frame)
            except RaisedError as error:
                self.find("R119", f"the module raises an error when it is imported: {error}", error.place)

    def imported_value(self, ref: ImportRef, importing: ModuleValue) -> object:
        """What an import gives: from a module that can be read its value, else a symbol."""
        module = self.load(ref.module, importing)
        if ref.attribute is None:
            return module or Symbol(ref.module)
        if module is not None and (found := self.member(module, ref.attribute)) is not MISSING:
            return found
        joint = "" if ref.module.endswith(".") else "."
        name = f"{ref.module}{joint}{ref.attribute}"
        return self.load(name, importing) or CONSTANTS.get(name, Symbol(name))

    def member(self, module: ModuleValue, name: str) -> object:
        """A global name of a module, ``MISSING`` when it has none."""
        found = module.frame.names.get(name, MISSING)
        if isinstance(found, ImportRef):
            if found.file == "resolving":
                return MISSING
            module.frame.names[name] = replace(found, file="resolving")
            try:
                found = self.imported_value(found, module)
            finally:
                module.frame.names[name] = found
        return found
