"""Runs statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from translator.findings import Level, Place
from translator.pyconfig import builtin
from translator.pyconfig.calls import Calls
from translator.pyconfig.core import NEXT, Outcome, RaisedError
from translator.pyconfig.expressions import FAILURES
from translator.pyconfig.operators import AUGMENTED
from translator.pyconfig.source import dotted_name
from translator.pyconfig.values import (
    MISSING,
    ClassValue,
    Frame,
    Function,
    ImportRef,
    ModuleValue,
    Node,
    Symbol,
    Unknown,
)

SILENT = frozenset({"Pass", "TypeAlias"})


class Machine(Calls):
    """The whole evaluator."""

    def block(self, body: Sequence[Any], frame: Frame) -> Outcome:
        """Runs statements until one leaves the block."""
        for statement in body:
            self.step()
            outcome = self._statement(statement, frame)
            if outcome.kind != "next":
                return outcome
        return NEXT

    def _statement(self, node: Any, frame: Frame) -> Outcome:
        kind = type(node).__name__
        if kind in {"SimpleStatementLine", "IndentedBlock", "SimpleStatementSuite"}:
            return self.block(node.body, frame)
        if kind in SILENT:
            return NEXT
        method = getattr(self, f"_run_{kind}", None)
        if method is None:
            self.find("R110", f"the statement {kind} is not evaluated", frame.module.source.place(node))
            return NEXT
        try:
            outcome: Outcome | None = method(node, frame)
        except FAILURES as error:
            self.find("R125", f"{type(error).__name__}: {error}", frame.module.source.place(node))
            return NEXT
        return outcome or NEXT

    def _run_Expr(self, node: cst.Expr, frame: Frame) -> None:  # noqa: N802
        self.statements.add(id(node.value))
        value = self.value(node.value, frame)
        if isinstance(value, Unknown) and value.code in {"R125", "R114", "R110", "R122", "R116"}:
            self.find(value.code, value.reason, value.place)

    def _run_Assign(self, node: cst.Assign, frame: Frame) -> None:  # noqa: N802
        value = self.value(node.value, frame)
        for target in node.targets:
            self.assign(target.target, value, frame, frame.module.source.place(node.value))

    def _run_AnnAssign(self, node: cst.AnnAssign, frame: Frame) -> None:  # noqa: N802
        if node.value is not None:
            value = self.value(node.value, frame)
            self.assign(node.target, value, frame, frame.module.source.place(node.value))

    def _run_AugAssign(self, node: cst.AugAssign, frame: Frame) -> None:  # noqa: N802
        left, right = self.value(node.target, frame), self.value(node.value, frame)
        kind = AUGMENTED.get(type(node.operator))
        if kind is cst.Add and isinstance(left, list) and not isinstance(right, Unknown):
            self.changing(left)
            left.extend(self.items(right))
            self.sized(len(left))
            return
        if kind is cst.BitOr and isinstance(left, dict) and isinstance(right, dict):
            for key, item in right.items():
                self.set_entry(left, key, item)
            return
        if kind is None:
            value: object = self.unknown("R110", "operator", node.target, frame)
        else:
            value = self.operate(kind, left, right, node.target, frame)
        self.assign(node.target, value, frame, frame.module.source.place(node.value))

    def assign(self, target: cst.CSTNode, value: object, frame: Frame, place: Place) -> None:
        """Binds a name, an attribute, an item, or the parts of a tuple."""
        if isinstance(target, cst.Name):
            home = frame.module.frame if target.value in frame.globals else self._home(frame, target.value)
            self.set_entry(home.names, target.value, value)
        elif isinstance(target, cst.Attribute):
            owner = self.value(target.value, frame)
            if isinstance(owner, Node):
                self.set_field(owner, target.attr.value, value, place)
            elif isinstance(owner, ModuleValue):
                self.set_entry(owner.frame.names, target.attr.value, value)
            else:
                self._lost(owner, target, frame)
        elif isinstance(target, cst.Subscript):
            self._assign_item(target, value, frame)
        elif isinstance(target, cst.Tuple | cst.List):
            self._unpack(target.elements, value, frame, place)
        elif isinstance(target, cst.StarredElement):
            self.assign(target.value, value, frame, place)

    def _home(self, frame: Frame, name: str) -> Frame:
        """The frame that a name belongs to: ``nonlocal`` names to the function around."""
        where = frame.parent
        while f"nonlocal {name}" in frame.globals and where is not None:
            if name in where.names:
                return where
            where = where.parent
        return frame

    def _lost(self, owner: object, target: cst.CSTNode, frame: Frame) -> None:
        cause = owner.reason if isinstance(owner, Unknown) else f"{builtin.describe(owner)} is not known"
        code = owner.code if isinstance(owner, Unknown) else "R112"
        self.find(code, f"this assignment is lost: {cause}", frame.module.source.place(target))

    def _assign_item(self, target: cst.Subscript, value: object, frame: Frame) -> None:
        owner, key = self.value(target.value, frame), self.subscript(target, frame)
        if isinstance(key, Unknown):
            self._lost(key, target, frame)
        elif isinstance(owner, dict):
            self.set_entry(owner, key, value)
        elif isinstance(owner, list):
            self.changing(owner)
            owner[key] = value  # type: ignore[call-overload]
        elif not (isinstance(owner, Symbol) and owner.name == "os.environ"):
            self._lost(owner, target, frame)

    def _unpack(self, elements: Sequence[Any], value: object, frame: Frame, place: Place) -> None:
        targets = [element if isinstance(element, cst.StarredElement) else element.value for element in elements]
        if isinstance(value, Unknown) or not isinstance(value, list | tuple | str | range | dict | set):
            for target in targets:
                part = value if isinstance(value, Unknown) else self.unknown("R112", "a part", target, frame)
                self.assign(target, part, frame, place)
            return
        items = self.items(value)
        star = next((index for index, item in enumerate(targets) if isinstance(item, cst.StarredElement)), None)
        if star is not None:
            after = len(targets) - star - 1
            items = [*items[:star], items[star : len(items) - after], *items[len(items) - after :]]
        if len(items) != len(targets):
            raise ValueError(f"{len(targets)} names for {len(items)} values")
        for target, item in zip(targets, items, strict=True):
            self.assign(target, item, frame, place)

    def _run_Del(self, node: cst.Del, frame: Frame) -> None:  # noqa: N802
        targets = [item.value for item in node.target.elements] if isinstance(node.target, cst.Tuple) else [node.target]
        for target in targets:
            if isinstance(target, cst.Name):
                self.set_entry(frame.names, target.value, MISSING)
            elif isinstance(target, cst.Subscript):
                owner, key = self.value(target.value, frame), self.subscript(target, frame)
                if isinstance(owner, dict) and not isinstance(key, Unknown):
                    self.set_entry(owner, key, MISSING)
                elif isinstance(owner, list) and not isinstance(key, Unknown):
                    self.changing(owner)
                    del owner[key]  # type: ignore[arg-type]
                else:
                    self._lost(owner, target, frame)

    def _run_Return(self, node: cst.Return, frame: Frame) -> Outcome:  # noqa: N802
        return Outcome("return", None if node.value is None else self.value(node.value, frame))

    def _run_Break(self, node: cst.Break, frame: Frame) -> Outcome:  # noqa: N802
        return Outcome("break", place=frame.module.source.place(node))

    def _run_Continue(self, node: cst.Continue, frame: Frame) -> Outcome:  # noqa: N802
        return Outcome("continue", place=frame.module.source.place(node))

    def _run_Raise(self, node: cst.Raise, frame: Frame) -> Outcome:  # noqa: N802
        call = node.exc
        name = dotted_name(call.func) if isinstance(call, cst.Call) else dotted_name(call) if call else ""
        text = frame.module.source.text(call) if call is not None else "raise"
        raise RaisedError(name.rpartition(".")[2], text, frame.module.source.place(node))

    def _run_Assert(self, node: cst.Assert, frame: Frame) -> None:  # noqa: N802
        if self.truth(self.value(node.test, frame), node.test, frame) is False:
            text = f"assert {frame.module.source.text(node.test)}"
            raise RaisedError("AssertionError", text, frame.module.source.place(node))

    def _run_If(self, node: cst.If, frame: Frame) -> Outcome:  # noqa: N802
        truth = self.truth(self.value(node.test, frame), node.test, frame)
        other = [] if node.orelse is None else [node.orelse]
        if isinstance(truth, Unknown):
            if truth.code in {"R110", "R112", "R114"} or len(self.stack) <= 1:
                self.find("R124", f"{truth.text}: {truth.reason}", frame.module.source.place(node.test), Level.NOTE)
            cause = replace(truth, code="R124", reason=f"depends on {truth.text}: {truth.reason}")
            return self.both(lambda: self.block([node.body], frame), lambda: self.block(other, frame), cause, frame)
        return self.block([node.body] if truth else other, frame)

    def _run_Else(self, node: cst.Else, frame: Frame) -> Outcome:  # noqa: N802
        return self.block([node.body], frame)

    def _run_Finally(self, node: cst.Finally, frame: Frame) -> Outcome:  # noqa: N802
        return self.block([node.body], frame)

    def _maybe(self, node: Any, cause: Unknown, frame: Frame) -> Outcome:
        """A loop that runs an unknown number of times: once, or not at all."""
        self.find("R124", f"how often the loop runs: {cause.reason}", frame.module.source.place(node), Level.NOTE)
        outcome = self.both(lambda: self._once(node, frame), lambda: NEXT, replace(cause, code="R124"), frame)
        return outcome if outcome.kind == "return" else NEXT

    def _once(self, node: Any, frame: Frame) -> Outcome:
        outcome = self.block([node.body], frame)
        return NEXT if outcome.kind in {"break", "continue"} else outcome

    def _run_For(self, node: cst.For, frame: Frame) -> Outcome:  # noqa: N802
        source = self.value(node.iter, frame)
        place = frame.module.source.place(node.target)
        if not isinstance(source, str | list | tuple | set | frozenset | dict | range | Unknown):
            source = self.unknown("R112", f"{builtin.describe(source)} is not iterated over", node.iter, frame)
        if isinstance(source, Unknown):
            self.assign(node.target, source, frame, place)
            return self._maybe(node, source, frame)
        for item in self.items(source):
            self.step()
            self.assign(node.target, item, frame, place)
            outcome = self.block([node.body], frame)
            if outcome.kind == "break":
                return NEXT
            if outcome.kind == "return":
                return outcome
        return NEXT if node.orelse is None else self.block([node.orelse], frame)

    def _run_While(self, node: cst.While, frame: Frame) -> Outcome:  # noqa: N802
        while True:
            self.step()
            truth = self.truth(self.value(node.test, frame), node.test, frame)
            if isinstance(truth, Unknown):
                return self._maybe(node, truth, frame)
            if not truth:
                return NEXT if node.orelse is None else self.block([node.orelse], frame)
            outcome = self.block([node.body], frame)
            if outcome.kind == "break":
                return NEXT
            if outcome.kind == "return":
                return outcome

    def _run_Try(self, node: cst.Try, frame: Frame) -> Outcome:  # noqa: N802
        try:
            outcome = self.block([node.body], frame)
            if outcome.kind == "next" and node.orelse is not None:
                outcome = self.block([node.orelse], frame)
        except RaisedError as error:
            handler = next((item for item in node.handlers if self._catches(item, error, frame)), None)
            if handler is None:
                raise
            if handler.name is not None:
                cause = self.unknown("R110", "a caught error", handler.name, frame)
                self.assign(handler.name.name, cause, frame, frame.module.source.place(handler))
            outcome = self.block([handler.body], frame)
        if node.finalbody is not None:
            last = self.block([node.finalbody], frame)
            outcome = last if last.kind != "next" else outcome
        return outcome

    def _catches(self, handler: cst.ExceptHandler, error: RaisedError, frame: Frame) -> bool:
        if handler.type is None:
            return True
        kinds = handler.type.elements if isinstance(handler.type, cst.Tuple) else ()
        names = [dotted_name(item.value) for item in kinds] or [dotted_name(handler.type)]
        return bool({name.rpartition(".")[2] for name in names} & {error.name, "Exception", "BaseException"})

    def _run_With(self, node: cst.With, frame: Frame) -> Outcome:  # noqa: N802
        for item in node.items:
            value = self.value(item.item, frame)
            if item.asname is not None:
                opened = self.unknown("R111", f"{builtin.describe(value)} is not entered", item.item, frame)
                self.assign(item.asname.name, opened, frame, frame.module.source.place(item.item))
        return self.block([node.body], frame)

    def _run_Match(self, node: cst.Match, frame: Frame) -> Outcome:  # noqa: N802
        subject = self.value(node.subject, frame)
        if not isinstance(subject, Unknown):
            for case in node.cases:
                fits = self._fits(case.pattern, subject, frame)
                if fits and case.guard is not None:
                    truth = self.truth(self.value(case.guard, frame), case.guard, frame)
                    fits = None if isinstance(truth, Unknown) else truth
                if fits is None:
                    break
                if fits:
                    return self.block([case.body], frame)
            else:
                return NEXT
        self.find("R124", "which case holds is not known", frame.module.source.place(node.subject))
        return NEXT

    def _fits(self, pattern: Any, subject: object, frame: Frame) -> bool | None:
        """Whether a pattern of values, alternatives and names fits; ``None`` for any other kind."""
        if isinstance(pattern, cst.MatchValue | cst.MatchSingleton):
            found = self.compare(cst.Equal(), subject, self.value(pattern.value, frame), pattern.value, frame)
            return None if isinstance(found, Unknown) else found
        if isinstance(pattern, cst.MatchOr):
            answers = [self._fits(item.pattern, subject, frame) for item in pattern.patterns]
            return True if True in answers else None if None in answers else False
        if isinstance(pattern, cst.MatchAs):
            fits = True if pattern.pattern is None else self._fits(pattern.pattern, subject, frame)
            if fits and pattern.name is not None:
                self.set_entry(frame.names, pattern.name.value, subject)
            return fits
        return None

    def _run_FunctionDef(self, node: cst.FunctionDef, frame: Frame) -> None:  # noqa: N802
        parent = None if frame is frame.module.frame else frame
        found = Function(node.name.value, frame.module, node, parent, defaults=self.defaults_of(node.params, frame))
        self.set_entry(frame.names, node.name.value, found)

    def _run_ClassDef(self, node: cst.ClassDef, frame: Frame) -> None:  # noqa: N802
        parent = None if frame is frame.module.frame else frame
        self.set_entry(frame.names, node.name.value, ClassValue(node.name.value, frame.module, node, parent))

    def _run_Global(self, node: cst.Global, frame: Frame) -> None:  # noqa: N802
        names = [item.name.value for item in node.names]
        frame.globals.update(names)
        self.find("R123", f"global {', '.join(names)}", frame.module.source.place(node))

    def _run_Nonlocal(self, node: cst.Nonlocal, frame: Frame) -> None:  # noqa: N802
        frame.globals.update(f"nonlocal {item.name.value}" for item in node.names)

    def _run_Import(self, node: cst.Import, frame: Frame) -> None:  # noqa: N802
        for alias in node.names:
            name = dotted_name(alias.name)
            self.imported.add(name)
            if alias.asname is not None:
                bound, target = dotted_name(alias.asname.name), name
            else:
                bound = target = name.split(".")[0]
            self.set_entry(frame.names, bound, ImportRef(target, None, frame.module.file))

    def _run_ImportFrom(self, node: cst.ImportFrom, frame: Frame) -> None:  # noqa: N802
        module = absolute_module(node, frame.module)
        if isinstance(node.names, cst.ImportStar):
            found = self.load(module, frame.module)
            if found is None:
                frame.module.star = True
                self.find("R120", f"from {module} import *", frame.module.source.place(node))
            for name in list(found.frame.names) if found is not None else ():
                if not name.startswith("_"):
                    self.set_entry(frame.names, name, ImportRef(module, name, frame.module.file))
            return
        for alias in node.names:
            name = dotted_name(alias.name)
            bound = dotted_name(alias.asname.name) if alias.asname else name
            self.set_entry(frame.names, bound, ImportRef(module, name, frame.module.file))


def absolute_module(node: cst.ImportFrom, module: ModuleValue) -> str:
    """The module that an import names: absolute where the importing module's own name is known."""
    name = dotted_name(node.module) if node.module is not None else ""
    level = len(node.relative)
    if not level:
        return name
    parts = module.name.split(".") if module.name else []
    if not module.is_package:
        parts = parts[:-1]
    if len(parts) < level:
        return "." * level + name
    base = parts[: len(parts) - level + 1]
    return ".".join([*base, name] if name else base)
