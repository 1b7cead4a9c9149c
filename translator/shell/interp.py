"""The evaluator: walks statements, keeps variables, collects launches. It never starts anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from translator.shell import control
from translator.shell.commands import Commands
from translator.shell.conditions import conditional
from translator.shell.core import MAX_DEPTH, MAX_STEPS
from translator.shell.flow import Flow, LimitError
from translator.shell.lexer import Cmd
from translator.shell.parse import parse
from translator.shell.state import State, merge
from translator.shell.syntax import (
    AndOr,
    Arithmetic,
    Block,
    Case,
    CFor,
    Conditional,
    For,
    Function,
    If,
    Node,
    Not,
    Pipeline,
    Redirected,
    Simple,
    Skipped,
    While,
)
from translator.shell.values import Chunk, Source, Unknown, Value


class Interpreter(Commands):
    """Evaluates one script: the statements; `Commands`, `Assigning` and `Core` hold the rest."""

    # -- entry

    def run(self) -> None:
        """Evaluate the script."""
        try:
            flow = self.run_text(self.source)
            if flow is not None and flow.kind == "exit" and not self.launches:
                self.report(
                    "R067", "warning", "the script ends here, before it starts anything", self.here(),
                    "pass what it asks for with --set NAME=value or --args",
                )  # fmt: skip
        except LimitError as error:
            self.report("R065", "error", f"reading stopped: {error}", self.here())
        except RecursionError:
            self.report("R065", "error", "reading stopped: the script is nested too deep", self.here())

    def run_text(self, source: Source, start: int = 0, end: int | None = None) -> Flow | None:
        """Parse and evaluate a text."""
        outer = self.source
        self.source = source
        parsed = parse(source, start, end, once=True)
        for offset, message in parsed.errors:
            self.report("R060", "error", message, source.place(offset))
        try:
            return self.block(parsed.body)
        finally:
            self.source = outer
            if parsed.trouble:
                self.report("R065", "error", f"only a part was read: {parsed.trouble}", source.place(0))

    # -- statements

    def block(self, block: Block) -> Flow | None:
        """Statements in order."""
        for node in block.body:
            flow = self.execute(node)
            if flow is not None:
                return flow
            if self.state.status and not self.tested and self.state.options.get("errexit"):
                flow = self._failed(node)
                if flow is not None:
                    return flow
        return None

    def _failed(self, node: Node) -> Flow | None:
        """``set -e``: a plain command that is known to fail ends the script."""
        return Flow("exit") if isinstance(node, Simple | Conditional | Arithmetic | Pipeline) else None

    def execute(self, node: Node) -> Flow | None:
        """One statement."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise LimitError(f"more than {MAX_STEPS} steps")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise LimitError("statements and calls are nested too deep")
        outer = self.source
        self.source = node.source
        try:
            if type(node) is Simple:
                self.offset = node.start
                return self.simple(node)
            return _RUNNERS[type(node)](self, node)
        finally:
            self.depth -= 1
            self.source = outer

    def _skipped(self, node: Skipped) -> None:
        self.report("R069", "warning", f"{node.what} is not evaluated", node.source.place(node.start))

    def _block(self, node: Block) -> Flow | None:
        if not node.subshell:
            return self.block(node)
        self.subshell(lambda: self.block(node))
        return None

    def subshell(self, action: Callable[[], Flow | None]) -> None:
        """Run with a copy of the state; only the exit status comes back."""
        outer, frames = self.state, self.locals
        self.spend(len(outer.vars) // 32)
        self.state, self.locals = outer.copy(), []
        try:
            action()
            outer.status = self.state.status
        finally:
            self.state, self.locals = outer, frames

    def _redirected(self, node: Redirected) -> Flow | None:
        return self.with_redirects(node.carrier, lambda: self.execute(node.body))

    def _pipeline(self, node: Pipeline) -> Flow | None:
        outer_out, outer_in = self.out, self.stdin
        flow: Flow | None = None
        try:
            for at, stage in enumerate(node.stages):
                last = at == len(node.stages) - 1
                was_opaque = self.opaque
                self.opaque = False
                self.out = outer_out if last else []
                if last and len(node.stages) == 1:
                    flow = self.execute(stage)
                else:
                    self.subshell(lambda stage=stage: self.execute(stage))  # type: ignore[misc]
                if not last:
                    assert self.out is not None
                    self.stdin = self._opaque_text(node) if self.opaque else Value(self.out)
                    self.opaque = was_opaque
                else:
                    self.opaque = self.opaque or was_opaque
        finally:
            self.out, self.stdin = outer_out, outer_in
        return flow

    def _opaque_text(self, node: Node) -> Value:
        text = node.source.text[node.start : node.end]
        place = node.source.place(node.start)
        return Value((Chunk(text, node.source, node.start, Unknown(text, None, "another program's output", place)),))

    def _not(self, node: Not) -> Flow | None:
        self.tested += 1
        flow = self.execute(node.body)
        self.tested -= 1
        if self.state.status is not None:
            self.state.status = int(self.state.status == 0)
        self.assumable = False
        return flow

    def _and_or(self, node: AndOr) -> Flow | None:
        self.tested += 1
        flow = self.execute(node.first)
        self.tested -= 1
        return flow or self._and_or_rest(node, 0)

    def _and_or_rest(self, node: AndOr, at: int) -> Flow | None:
        while at < len(node.rest):
            operator, right = node.rest[at]
            at += 1
            status = self.state.status
            if status is None and not self.assumable:
                cause = self.unknown_cause(node)

                def taken(right: Node = right, at: int = at) -> Flow | None:
                    return self.execute(right) or self._and_or_rest(node, at)

                def skipped(operator: str = operator, at: int = at) -> Flow | None:
                    self.state.status = 1 if operator == "&&" else 0
                    return self._and_or_rest(node, at)

                return self.either(cause, [taken, skipped])
            succeeded = status is None or status == 0
            if succeeded == (operator == "&&"):
                last = at == len(node.rest)
                self.tested += not last
                try:
                    flow = self.execute(right)
                finally:
                    self.tested -= not last
                if flow is not None:
                    return flow
                if last and self.state.status and not self.tested and self.state.options.get("errexit"):
                    return self._failed(right)
        return None

    def unknown_cause(self, node: Node) -> Unknown:
        """What a condition depends on, when its outcome is not known."""
        if self.cause is not None:
            return self.cause
        text = " ".join(node.source.text[node.start : node.end].split())
        return Unknown(text[:60], None, "another program's exit status", node.source.place(node.start))

    def condition(self, block: Block) -> tuple[Flow | None, bool | Unknown]:
        """Run a condition; the verdict is True, False, or what it depends on."""
        self.tested += 1
        try:
            flow = self.block(block)
        finally:
            self.tested -= 1
        if self.state.status is None:
            return flow, self.unknown_cause(block)
        return flow, self.state.status == 0

    def either(self, cause: Unknown, actions: Sequence[Callable[[], Flow | None]]) -> Flow | None:
        """Run alternatives from the same state, then go on with what they have in common."""
        base, launches = self.state, len(self.launches)
        self.spend(len(base.vars) // 8)
        going: list[State] = []
        ended: list[tuple[Flow, State]] = []
        for action in actions:
            self.state = base.copy()
            flow = action()
            if flow is None:
                going.append(self.state)
            else:
                ended.append((flow, self.state))
        flow = None
        if not going:
            flow = next((f for f, _ in ended if f.kind != "exit"), ended[0][0])
            going = [state for f, state in ended if f == flow]
            ended = [(f, state) for f, state in ended if f != flow]
        self.pending.extend((f, state, cause) for f, state in ended if f.kind != "exit")
        base.take(going[0])
        self.state = base
        for other in going[1:]:
            self._merge(other, cause)
        if len(self.launches) > launches:
            self.report(
                "R063", "warning", f"it is not known whether this runs: it depends on {cause.said}",
                self.launches[launches].place, _supply(cause),
            )  # fmt: skip
        return flow

    def _merge(self, other: State, cause: Unknown) -> None:
        merged, names = merge(self.state, other, cause, self.source)
        self.state.take(merged)
        if names:
            shown = ", ".join(names[:5]) + (" and more" if len(names) > 5 else "")
            self.report("R063", "note", f"{shown}: depends on {cause.said}", cause.place, _supply(cause))

    def settle_pending(self, mark: int, kinds: frozenset[str]) -> None:
        """Merge the states that left a function or loop early where it was not known whether they would."""
        kept = self.pending[:mark]
        for flow, state, cause in self.pending[mark:]:
            if flow.kind in kinds:
                self._merge(state, cause)
            else:
                kept.append((flow, state, cause))
        self.pending = kept

    def _if(self, node: If) -> Flow | None:
        return self._if_from(node, 0)

    def _if_from(self, node: If, at: int) -> Flow | None:
        while at < len(node.clauses):
            condition, body = node.clauses[at]
            at += 1
            flow, verdict = self.condition(condition)
            if flow is not None:
                return flow
            if isinstance(verdict, Unknown):
                return self.either(verdict, [partial(self.block, body), partial(self._if_from, node, at)])
            if verdict:
                return self.block(body)
        self.state.status = 0
        return self.block(node.otherwise) if node.otherwise is not None else None

    # -- other statements

    def _conditional(self, node: Conditional) -> None:
        self.set_verdict(conditional(self, node))

    def _arithmetic(self, node: Arithmetic) -> None:
        self.offset = node.start
        self.set_verdict(control.number(self, (node.start, node.end), node))

    def set_verdict(self, verdict: bool | Unknown) -> None:
        """The exit status that a test leaves."""
        self.assumable = False
        if isinstance(verdict, Unknown):
            self.state.status, self.cause = None, verdict
        else:
            self.state.status, self.cause = int(not verdict), None

    def _function(self, node: Function) -> None:
        self.state.functions[node.name] = node
        self.state.status = 0

    def substitute(self, part: Cmd, source: Source) -> Value:
        """``$(...)``: text that our own evaluation can produce, or one unknown."""
        expression = source.text[part.start : part.end]
        key = (id(source), part.start)
        cached = self._bodies.get(key)
        if cached is None:
            inner, start, end = source, part.body_start, part.body_end
            body = source.text[start:end]
            if part.backtick and "\\" in body:
                inner, start = Source(_unescape_backticks(body), source.file), 0
                end = len(inner.text)
            parsed = parse(inner, start, end)
            cached = self._bodies[key] = (source, parsed.body)
        value, opaque = self.capture(lambda: self.block(cached[1]))
        if not opaque and value.known:
            return value
        if not opaque:
            return value
        name = next((u.name for u in value.unknowns if u.name), None)
        unknown = Unknown(expression, name, "another program's output", source.place(part.start))
        return Value((Chunk(expression, source, part.start, unknown),))

    def capture(self, action: Callable[[], Flow | None]) -> tuple[Value, bool]:
        """The standard output of an action in a subshell, and whether other programs write to it."""
        outer_out, outer_opaque, outer_in = self.out, self.opaque, self.stdin
        out: list[Chunk] = []
        self.out, self.opaque, self.stdin = out, False, None
        self.quiet += 1
        self.depth += 4
        self.substituted = True
        try:
            self.subshell(action)
            opaque = self.opaque
        finally:
            self.out, self.opaque, self.stdin = outer_out, outer_opaque, outer_in
            self.quiet -= 1
            self.depth -= 4
        while out and out[-1].unknown is None:
            kept = out[-1].text.rstrip("\n")
            if kept:
                out[-1] = out[-1].cut(0, len(kept))
                break
            out.pop()
        return self.bounded(Value(out)), opaque


def _supply(cause: Unknown) -> str:
    return f"pass --set {cause.name}=value" if cause.name else ""


def _unescape_backticks(text: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 2] in {"\\", "`", "$"}:
            at += 1
        out.append(text[at : at + 1])
        at += 1
    return "".join(out)


_RUNNERS: dict[type[Node], Callable[..., Flow | None]] = {
    Block: Interpreter._block,
    Redirected: Interpreter._redirected,
    Pipeline: Interpreter._pipeline,
    AndOr: Interpreter._and_or,
    Not: Interpreter._not,
    If: Interpreter._if,
    Case: control.run_case,
    For: control.run_for,
    CFor: control.run_c_for,
    While: control.run_while,
    Conditional: Interpreter._conditional,
    Arithmetic: Interpreter._arithmetic,
    Function: Interpreter._function,
    Skipped: Interpreter._skipped,
}
