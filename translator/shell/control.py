"""``case`` and loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from translator.shell.arithmetic import ArithmeticFaultError
from translator.shell.expand import UnknownArithmeticError
from translator.shell.flow import Flow, LimitError
from translator.shell.lexer import Lexer
from translator.shell.patterns import Pattern
from translator.shell.syntax import Block, Case, CFor, For, Node, Span, While
from translator.shell.tokens import plain_words
from translator.shell.values import Chunk, Unknown, Value

if TYPE_CHECKING:
    from translator.shell.interp import Interpreter

MAX_ROUNDS = 10_000
"""A loop that runs longer stops the reading."""


def run_case(interp: Interpreter, node: Case) -> Flow | None:
    """``case``."""
    lexer = Lexer(node.source)
    words = plain_words(lexer, *node.subject)
    subject = interp.expander.value(words[0] if words else None, node.source)
    interp.state.status = 0
    return _case_from(interp, node, lexer, subject, 0, fall=False)


def _case_from(interp: Interpreter, node: Case, lexer: Lexer, subject: Value, at: int, *, fall: bool) -> Flow | None:
    while at < len(node.items):
        patterns, body, terminator = node.items[at]
        at += 1
        verdict: bool | Unknown = True if fall else _case_matches(interp, patterns, lexer, subject, node)
        fall = False
        if isinstance(verdict, Unknown):
            return interp.either(
                verdict,
                [partial(interp.block, body), partial(_case_from, interp, node, lexer, subject, at, fall=False)],
            )
        if not verdict:
            continue
        flow = interp.block(body)
        if flow is not None or terminator == ";;":
            return flow
        fall = terminator == ";&"
    return None


def _case_matches(
    interp: Interpreter, patterns: list[Span], lexer: Lexer, subject: Value, node: Case
) -> bool | Unknown:
    outcome: bool | Unknown = False
    for start, end in patterns:
        words = plain_words(lexer, start, end, pattern=True)
        chunks: list[Chunk] = []
        for word in words[:1]:
            interp.expander.emit(word.parts, node.source, chunks, splitting=False)
        pattern = Pattern(chunks)
        if pattern.regex == ".*":
            return True
        unknown = next((c.unknown for c in (*subject.chunks, *chunks) if c.is_unknown), None)
        if unknown is not None:
            outcome = unknown
            continue
        hit = pattern.matches(subject.text)
        if hit:
            return True
        if hit is None:
            outcome = Unknown(pattern.literal, None, "the pattern is too costly", node.source.place(start))
    return outcome


def run_for(interp: Interpreter, node: For) -> Flow | None:
    """``for NAME in words``."""
    if node.words is None:
        values = list(interp.state.positional)
    else:
        values = interp.expander.fields(plain_words(Lexer(node.source), *node.words), node.source)
    interp.state.status = 0
    mark = len(interp.pending)
    flow: Flow | None = None
    for value in values:
        interp.assign(node.name, None, value)
        flow = interp.block(node.body)
        if flow is not None:
            flow, go_on = _after_round(flow)
            if not go_on:
                break
    interp.settle_pending(mark, frozenset({"break", "continue"}))
    return flow


def run_c_for(interp: Interpreter, node: CFor) -> Flow | None:
    """``for ((;;))``."""
    init, test, step = node.parts
    number(interp, init, node)
    return _rounds(
        interp,
        node.body,
        lambda: (None, True if not node.source.text[slice(*test)].strip() else number(interp, test, node)),
        lambda: number(interp, step, node),
    )


def number(interp: Interpreter, span: Span, node: Node) -> bool | Unknown:
    """An arithmetic command; True when the value is not zero."""
    try:
        return interp.expander.arithmetic(interp.expander.span(*span, node.source)) != 0
    except UnknownArithmeticError as error:
        return error.unknown
    except ArithmeticFaultError as error:
        text = node.source.text[slice(*span)].strip()
        interp.report("R066", "error", f"(({text[:60]})): {error}", node.source.place(span[0]))
        return False


def run_while(interp: Interpreter, node: While) -> Flow | None:
    """``while`` and ``until``."""

    def test() -> tuple[Flow | None, bool | Unknown]:
        flow, verdict = interp.condition(node.condition)
        return flow, verdict if isinstance(verdict, Unknown) else verdict != node.until

    return _rounds(interp, node.body, test, None)


def _rounds(
    interp: Interpreter,
    body: Block,
    test: Callable[[], tuple[Flow | None, bool | Unknown]],
    step: Callable[[], object] | None,
) -> Flow | None:
    mark = len(interp.pending)
    flow: Flow | None = None
    for rounds in range(MAX_ROUNDS + 1):
        if rounds == MAX_ROUNDS:
            raise LimitError(f"a loop runs more than {MAX_ROUNDS} rounds")
        flow, verdict = test()
        if flow is not None or verdict is False:
            break
        if isinstance(verdict, Unknown):
            flow = interp.either(verdict, [lambda: _loop_end(interp.block(body)), lambda: None])
            break
        flow = interp.block(body)
        if flow is not None:
            flow, go_on = _after_round(flow)
            if not go_on:
                break
        if step is not None:
            step()
    interp.settle_pending(mark, frozenset({"break", "continue"}))
    if flow is None:
        interp.state.status = 0
    return flow


def _loop_end(flow: Flow | None) -> Flow | None:
    return None if flow is not None and flow.kind in {"break", "continue"} and flow.levels == 1 else flow


def _after_round(flow: Flow) -> tuple[Flow | None, bool]:
    """What a flow means for the loop whose body ended with it: the flow to pass on, and whether to go on."""
    if flow.kind not in {"break", "continue"}:
        return flow, False
    if flow.levels > 1:
        return Flow(flow.kind, flow.levels - 1), False
    return None, flow.kind == "continue"
