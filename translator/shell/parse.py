"""From text to statements, with the bash grammar of tree-sitter."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from translator.shell.lexer import PLACEHOLDER, close_paren
from translator.shell.mend import mended
from translator.shell.syntax import (
    AndOr,
    Arithmetic,
    Block,
    Case,
    CFor,
    Conditional,
    For,
    Function,
    Heredoc,
    If,
    Node,
    Not,
    Pipeline,
    Redirected,
    Simple,
    Skipped,
    Span,
    While,
)
from translator.shell.values import DerivedSource, Source

if TYPE_CHECKING:
    from tree_sitter import Node as Tree
    from tree_sitter import Parser
    from tree_sitter import Tree as Grammar

MAX_NESTING = 60
"""Statements nested deeper than this are skipped."""
MAX_ERRORS = 20
"""Syntax errors beyond this number are not listed one by one."""
SMALL_BYTES = 16_000
"""Texts up to this size are parsed in one go; larger ones under a time limit."""
PARSE_SECONDS = 2.5
"""The parser sees the end of the text after this time."""
MAX_BYTES = 8_000_000
"""Text beyond this size is not read."""

_FALSE_CONTINUATION = re.compile(r"[ \t]*(\\)[ \t](?:[ \t]*\\[ \t])*[ \t]*(?=\n|\Z)")
_NOT_ASCII = re.compile(r"[^\x01-\x7e]")
_SIMPLE = frozenset({"command", "variable_assignment", "variable_assignments", "declaration_command", "unset_command"})
_STATEMENTS = _SIMPLE | {
    "test_command", "compound_statement", "subshell", "pipeline", "list", "negated_command", "if_statement",
    "case_statement", "for_statement", "c_style_for_statement", "while_statement", "function_definition",
    "redirected_statement", "ERROR",
}  # fmt: skip


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


class Parsed:
    """Statements, and where the text is not bash: (offset, message)."""

    __slots__ = ("_lowering", "body", "errors", "truncated")

    def __init__(self, body: Block, lowering: _Lowering) -> None:
        self.body = body
        self._lowering = lowering
        self.errors: list[tuple[int, str]] = []
        self.truncated: str | None = None

    @property
    def trouble(self) -> str | None:
        """Why only a part is there; complete once the statements were walked."""
        return self.truncated or self._lowering.too_deep


def _masked(source: Source, start: int, end: int) -> bytes:
    """One byte per character, so that byte offsets are character offsets."""
    text = source.text
    if isinstance(source, DerivedSource):
        for low, high in source.unknown_spans():
            text = text[:low] + "x" * (high - low) + text[high:]
    text = text if start == 0 and end == len(text) else text[start:end]
    if "<" in text:
        text = PLACEHOLDER.sub(lambda hit: "x" * len(hit.group()), text)
    if not text.isascii() or "\x00" in text or "\x7f" in text:
        text = _NOT_ASCII.sub("\x7f", text)
    return text.encode("ascii")


def _tree(data: bytes) -> tuple[Grammar, bool]:
    """The grammar's tree, its known weaknesses mended; True when it was cut short."""
    tree, late = _parse(data)
    if not late and (text := mended(data, tree.root_node)) is not None:
        data = text
        tree, late = _parse(data)
    if not late and tree.root_node.has_error and b"$((" in data:
        again, late_again = _parse(_without_arithmetic(data.decode("ascii")))
        if not late_again and not again.root_node.has_error:
            tree = again
    return tree, late


def _parse(data: bytes) -> tuple[Grammar, bool]:
    if len(data) <= SMALL_BYTES:
        return _parser().parse(data), False
    deadline = time.monotonic() + PARSE_SECONDS
    late = False

    def read(offset: int, _point: object) -> bytes:
        nonlocal late
        late = late or time.monotonic() > deadline
        return b"" if late else data[offset : offset + 4096]

    return _parser().parse(read), late


def _without_arithmetic(text: str) -> bytes:
    """The text with the inside of ``$(( ))`` made plain: the grammar does not know every expression of bash."""
    pieces: list[str] = []
    at = 0
    while (found := text.find("$((", at)) >= 0:
        close = close_paren(text, found + 3, len(text))
        if not text.startswith("))", close):
            break
        pieces += [text[at : found + 3], "1" * (close - found - 3)]
        at = close
    return "".join([*pieces, text[at:]]).encode("ascii")


def parse(source: Source, start: int = 0, end: int | None = None, *, once: bool = False) -> Parsed:
    """The statements of a part of a source. Never raises; trouble is in ``errors`` and ``truncated``.

    With ``once`` the statements can be walked a single time, and are made as they are reached.
    """
    end = len(source.text) if end is None else end
    truncated = None
    if end - start > MAX_BYTES:
        end, truncated = start + MAX_BYTES, f"the text is longer than {MAX_BYTES} characters"
    tree, late = _tree(_masked(source, start, end))
    if late:
        truncated = f"parsing took longer than {PARSE_SECONDS:g} s"
    root = tree.root_node
    lowering = _Lowering(source, start)
    body = lowering.each(root.children)
    parsed = Parsed(Block(source, start, end, body if once else list(body)), lowering)
    parsed.truncated = truncated
    if root.has_error:
        parsed.errors = _errors(root, start)
    return parsed


def _errors(root: Tree, base: int) -> list[tuple[int, str]]:
    """Broken places outside simple commands, whose words are cut by the lexer and judged there."""
    found: list[tuple[int, str]] = []
    stack = [root]
    budget = 20_000
    while stack and len(found) < MAX_ERRORS and budget > 0:
        node = stack.pop()
        budget -= 1
        if node.is_missing:
            found.append((base + node.start_byte, f"'{node.type}' is missing"))
        elif node.type == "ERROR":
            if node.end_byte > node.start_byte and not _only_continuation(node):
                found.append((base + node.start_byte, "this is not understood as bash"))
        elif node.has_error and node.type not in _SIMPLE and node.type != "test_command":
            stack.extend(reversed(node.children))
    return found


def _only_continuation(node: Tree) -> bool:
    return (node.text or b"").strip(b" \t\n\\") == b""


class _Lowering:
    """Turns grammar nodes into statements."""

    def __init__(self, source: Source, base: int) -> None:
        self.source = source
        self.base = base
        self.depth = 0
        self.too_deep: str | None = None

    def statements(self, nodes: list[Tree]) -> list[Node]:
        """The statements among sibling nodes."""
        return list(self.each(nodes))

    def each(self, nodes: list[Tree]) -> Iterator[Node]:
        """The statements among sibling nodes, one by one."""
        for node in nodes:
            if node.type in _STATEMENTS:
                yield self.statement(node)
            elif node.type == "file_redirect":
                yield self._simple(node)

    def block(self, nodes: list[Tree]) -> Block:
        """Sibling nodes as one block."""
        start, end = (nodes[0].start_byte, nodes[-1].end_byte) if nodes else (0, 0)
        return Block(self.source, start + self.base, end + self.base, self.statements(nodes))

    def statement(self, node: Tree) -> Node:
        """One statement."""
        kind = node.type
        if kind in _SIMPLE:
            return self._simple(node)
        if self.depth >= MAX_NESTING:
            self.too_deep = f"statements are nested deeper than {MAX_NESTING}"
            return Skipped(self.source, node.start_byte + self.base, node.end_byte + self.base, "nesting")
        self.depth += 1
        try:
            return self._compound(kind, node)
        finally:
            self.depth -= 1

    def _span(self, node: Tree) -> Span:
        return node.start_byte + self.base, node.end_byte + self.base

    def _simple(self, node: Tree) -> Simple:
        start, end = self._span(node)
        simple = Simple(self.source, start, end, [(start, end)])
        text = self.source.text
        if text[end : end + 1] in {" ", "\t", "\\"} and (hit := _FALSE_CONTINUATION.match(text, end)) is not None:
            simple.dangling = hit.start(1)
            simple.spans = [(start, hit.end())]
        return simple

    def _compound(self, kind: str, node: Tree) -> Node:
        source, (start, end) = self.source, self._span(node)
        match kind:
            case "redirected_statement":
                return self._redirected(node)
            case "test_command":
                return self._test(node)
            case "if_statement":
                return self._if(node)
            case "list":
                return self._list(node)
            case "pipeline":
                return Pipeline(source, start, end, self.statements(node.children))
            case "negated_command":
                inner = self.statements(node.children)
                return Not(source, start, end, inner[0]) if inner else Skipped(source, start, end, "!")
            case "compound_statement" if node.children and node.children[0].type == "((":
                return Arithmetic(source, start + 2, end - 2)
            case "compound_statement":
                return Block(source, start, end, self.statements(node.children))
            case "subshell":
                return Block(source, start, end, self.statements(node.children), subshell=True)
            case "case_statement":
                return self._case(node)
            case "for_statement":
                return self._for(node)
            case "c_style_for_statement":
                return self._c_for(node)
            case "while_statement":
                return self._while(node)
            case "function_definition":
                return self._function(node)
        return Block(source, start, end, self.statements(node.children))

    def _test(self, node: Tree) -> Node:
        start, end = self._span(node)
        if self.source.text.startswith("[[", start):
            return Conditional(self.source, start, end)
        if self.source.text.startswith("((", start):
            return Arithmetic(self.source, start + 2, end - 2)
        return Simple(self.source, start, end, [(start, end)])

    def _redirected(self, node: Tree) -> Node:
        start, end = self._span(node)
        carrier = Simple(self.source, start, end, [])
        body: Node | None = None
        followers: list[tuple[str, list[Node]]] = []
        for child in node.children:
            if child.type == "heredoc_redirect":
                followers.extend(self._heredoc(child, carrier))
            elif child.type in {"file_redirect", "herestring_redirect"}:
                carrier.spans.append(self._span(child))
            elif child.type in _STATEMENTS:
                body = self.statement(child)
        result: Node = carrier
        if isinstance(body, Simple):
            carrier.spans = body.spans + carrier.spans
            carrier.heredocs = body.heredocs + carrier.heredocs
        elif body is not None:
            result = Redirected(self.source, start, end, body, carrier)
        for operator, nodes in followers:
            if operator == "|":
                result = Pipeline(self.source, start, end, [result, *nodes])
            elif nodes:
                result = AndOr(self.source, start, end, result, [(operator, nodes[0])])
        return result

    def _heredoc(self, node: Tree, carrier: Simple) -> list[tuple[str, list[Node]]]:
        """Adds the body to the carrier; returns what follows ``<<EOF`` on its line (``| grep``, ``&& cmd``)."""
        strip = literal = False
        followers: list[tuple[str, list[Node]]] = []
        body: Span | None = None
        operator = ""
        for child in node.children:
            kind = child.type
            if kind == "<<-":
                strip = True
            elif kind == "heredoc_start":
                literal = any(mark in (child.text or b"") for mark in (b"'", b'"', b"\\"))
            elif kind == "heredoc_body":
                body = self._span(child)
            elif kind in {"&&", "||"}:
                operator = kind
            elif kind == "pipeline":
                followers.append(("|", self.statements(child.children)))
            elif kind in {"file_redirect", "herestring_redirect"}:
                carrier.spans.append(self._span(child))
            elif kind == "heredoc_redirect":
                followers.extend(self._heredoc(child, carrier))
            elif operator and kind in _STATEMENTS:
                followers.append((operator, [self.statement(child)]))
            elif kind not in {"<<", "heredoc_end", "heredoc_content"} and child.is_named:
                carrier.spans.append(self._span(child))
        start, end = body or (node.end_byte + self.base,) * 2
        carrier.heredocs.append(Heredoc(start, end, literal, strip))
        return followers

    def _list(self, node: Tree) -> Node:
        rest: list[tuple[str, Node]] = []
        current = node
        while current.type == "list" and len(current.children) >= 3:
            children = current.children
            if children[-1].type not in _STATEMENTS:
                break
            rest.append((children[-2].type, self.statement(children[-1])))
            current = children[0]
        rest.reverse()
        first = (
            self.statement(current)
            if current.type != "list"
            else Block(self.source, *self._span(current), self.statements(current.children))
        )
        return AndOr(self.source, *self._span(node), first, rest)

    def _if(self, node: Tree) -> Node:
        clauses: list[tuple[Block, Block]] = []
        otherwise: Block | None = None
        condition, body = self._clause(node.children)
        clauses.append((condition, body))
        for child in node.children:
            if child.type == "elif_clause":
                clauses.append(self._clause(child.children))
            elif child.type == "else_clause":
                otherwise = self.block(child.children)
        return If(self.source, *self._span(node), clauses, otherwise)

    def _clause(self, children: list[Tree]) -> tuple[Block, Block]:
        before: list[Tree] = []
        after: list[Tree] = []
        bucket = before
        for child in children:
            if child.type == "then":
                bucket = after
            elif child.type in {"elif_clause", "else_clause"}:
                break
            else:
                bucket.append(child)
        return self.block(before), self.block(after)

    def _case(self, node: Tree) -> Node:
        items: list[tuple[list[Span], Block, str]] = []
        subject: Span = (node.start_byte + self.base,) * 2
        for child in node.children:
            if child.type == "case_item":
                items.append(self._case_item(child))
            elif child.is_named and not items and subject[0] == subject[1]:
                subject = self._span(child)
        return Case(self.source, *self._span(node), subject, items)

    def _case_item(self, node: Tree) -> tuple[list[Span], Block, str]:
        children = node.children
        close = next((at for at, child in enumerate(children) if child.type == ")"), len(children))
        patterns: list[Span] = []
        current: list[Tree] = []
        for child in [*children[:close], None]:
            if child is not None and child.type != "|":
                if child.type != "(" or current:
                    current.append(child)
            elif current:
                patterns.append((current[0].start_byte + self.base, current[-1].end_byte + self.base))
                current = []
        rest = children[close + 1 :]
        terminator = rest[-1].type if rest and rest[-1].type in {";;", ";&", ";;&"} else ";;"
        return patterns, self.block(rest), terminator

    def _for(self, node: Tree) -> Node:
        name, words, body, seen_in = "", None, None, False
        inside: list[Tree] = []
        for child in node.children:
            if child.type == "select":
                return Skipped(self.source, *self._span(node), "select")
            if child.type == "variable_name" and not name:
                name = self.source.text[slice(*self._span(child))]
            elif child.type == "in":
                seen_in = True
            elif child.type in {"do_group", "compound_statement"}:
                body = self.block(child.children)
            elif seen_in and child.is_named and child.type != "comment":
                inside.append(child)
        if seen_in:
            words = (
                (inside[0].start_byte + self.base, inside[-1].end_byte + self.base)
                if inside
                else (node.start_byte + self.base,) * 2
            )
        return For(self.source, *self._span(node), name, words=words, body=body or self.block([]))

    def _c_for(self, node: Tree) -> Node:
        body = self.block([])
        marks: list[int] = []
        for child in node.children:
            if child.type == "((":
                marks.append(child.end_byte)
            elif (child.type == ";" and len(marks) in {1, 2}) or child.type == "))":
                marks.append(child.start_byte)
            elif child.type in {"do_group", "compound_statement"}:
                body = self.block(child.children)
        if len(marks) != 4:
            return Skipped(self.source, *self._span(node), "for ((...))")
        shifted = [mark + self.base for mark in marks]
        parts = [(shifted[0], shifted[1]), (shifted[1] + 1, shifted[2]), (shifted[2] + 1, shifted[3])]
        return CFor(self.source, *self._span(node), parts, body)

    def _while(self, node: Tree) -> Node:
        until = bool(node.children) and node.children[0].type == "until"
        condition = [child for child in node.children if child.type != "do_group"]
        groups = [child for child in node.children if child.type == "do_group"]
        body = self.block(groups[0].children if groups else [])
        return While(self.source, *self._span(node), self.block(condition), body=body, until=until)

    def _function(self, node: Tree) -> Node:
        name_node = node.child_by_field_name("name")
        body_node = node.child_by_field_name("body")
        if name_node is None or body_node is None:
            return Skipped(self.source, *self._span(node), "function")
        name = self.source.text[slice(*self._span(name_node))]
        return Function(self.source, *self._span(node), name, self.statement(body_node))
