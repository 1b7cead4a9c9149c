"""Statements of bash as the evaluator walks them: structure only, words are spans of the source."""

from __future__ import annotations

from collections.abc import Iterable

from translator.shell.lexer import RawWord
from translator.shell.values import Source

Span = tuple[int, int]


class Node:
    """A statement; ``start`` and ``end`` are offsets in ``source``."""

    __slots__ = ("end", "source", "start")

    def __init__(self, source: Source, start: int, end: int) -> None:
        self.source = source
        self.start = start
        self.end = end


class Heredoc:
    """The text after ``<<``; ``literal`` when the delimiter was quoted, ``strip`` for ``<<-``."""

    __slots__ = ("end", "literal", "start", "strip")

    def __init__(self, start: int, end: int, literal: bool, strip: bool) -> None:
        self.start = start
        self.end = end
        self.literal = literal
        self.strip = strip


class Redirect:
    """``2>&1``, ``< file``, ``<<< word``: operator, file descriptor as written, target."""

    __slots__ = ("descriptor", "operator", "target")

    def __init__(self, descriptor: str, operator: str, target: RawWord | None) -> None:
        self.descriptor = descriptor
        self.operator = operator
        self.target = target


class Assign:
    """``NAME=value``, ``NAME+=value``, ``NAME[i]=value`` or ``NAME=( ... )``."""

    __slots__ = ("append", "array", "end", "index", "name", "start", "value")

    def __init__(self, name: str, start: int, end: int) -> None:
        self.name = name
        self.start = start
        self.end = end
        self.append = False
        self.index: Span | None = None
        self.value: RawWord | None = None
        self.array: list[RawWord | Assign] | None = None


class Tokens:
    """A simple command cut into assignments, words and redirections."""

    __slots__ = ("assigns", "redirects", "trouble", "words")

    def __init__(self) -> None:
        self.assigns: list[Assign] = []
        self.words: list[RawWord | Assign] = []
        self.redirects: list[Redirect] = []
        self.trouble: int | None = None


class Simple(Node):
    """A simple command; its words are cut at the first run and kept."""

    __slots__ = ("dangling", "heredocs", "spans", "tokens")

    def __init__(self, source: Source, start: int, end: int, spans: list[Span]) -> None:
        super().__init__(source, start, end)
        self.spans = spans
        self.heredocs: list[Heredoc] = []
        self.tokens: Tokens | None = None
        self.dangling: int | None = None


class Conditional(Node):
    """``[[ ... ]]``."""

    __slots__ = ()


class Arithmetic(Node):
    """``(( ... ))``; the span is the inside."""

    __slots__ = ()


class Block(Node):
    """A sequence: a script, ``{ }``, a subshell or the body of something."""

    __slots__ = ("body", "subshell")

    def __init__(self, source: Source, start: int, end: int, body: Iterable[Node], subshell: bool = False) -> None:
        super().__init__(source, start, end)
        self.body = body
        self.subshell = subshell


class Redirected(Node):
    """A compound statement with redirections."""

    __slots__ = ("body", "carrier")

    def __init__(self, source: Source, start: int, end: int, body: Node, carrier: Simple) -> None:
        super().__init__(source, start, end)
        self.body = body
        self.carrier = carrier


class Pipeline(Node):
    """``a | b``."""

    __slots__ = ("stages",)

    def __init__(self, source: Source, start: int, end: int, stages: list[Node]) -> None:
        super().__init__(source, start, end)
        self.stages = stages


class AndOr(Node):
    """``a && b || c``, from left to right."""

    __slots__ = ("first", "rest")

    def __init__(self, source: Source, start: int, end: int, first: Node, rest: list[tuple[str, Node]]) -> None:
        super().__init__(source, start, end)
        self.first = first
        self.rest = rest


class Not(Node):
    """``! a``."""

    __slots__ = ("body",)

    def __init__(self, source: Source, start: int, end: int, body: Node) -> None:
        super().__init__(source, start, end)
        self.body = body


class If(Node):
    """``if``/``elif`` clauses and ``else``."""

    __slots__ = ("clauses", "otherwise")

    def __init__(
        self, source: Source, start: int, end: int, clauses: list[tuple[Block, Block]], otherwise: Block | None
    ) -> None:
        super().__init__(source, start, end)
        self.clauses = clauses
        self.otherwise = otherwise


class Case(Node):
    """``case``; each item has pattern spans, a body and its terminator."""

    __slots__ = ("items", "subject")

    def __init__(
        self, source: Source, start: int, end: int, subject: Span, items: list[tuple[list[Span], Block, str]]
    ) -> None:
        super().__init__(source, start, end)
        self.subject = subject
        self.items = items


class For(Node):
    """``for NAME in words``; without ``in`` the positional parameters."""

    __slots__ = ("body", "name", "words")

    def __init__(self, source: Source, start: int, end: int, name: str, *, words: Span | None, body: Block) -> None:
        super().__init__(source, start, end)
        self.name = name
        self.words = words
        self.body = body


class CFor(Node):
    """``for ((init; condition; step))``."""

    __slots__ = ("body", "parts")

    def __init__(self, source: Source, start: int, end: int, parts: list[Span], body: Block) -> None:
        super().__init__(source, start, end)
        self.parts = parts
        self.body = body


class While(Node):
    """``while`` and ``until``."""

    __slots__ = ("body", "condition", "until")

    def __init__(self, source: Source, start: int, end: int, condition: Block, *, body: Block, until: bool) -> None:
        super().__init__(source, start, end)
        self.condition = condition
        self.body = body
        self.until = until


class Function(Node):
    """A function definition."""

    __slots__ = ("body", "name")

    def __init__(self, source: Source, start: int, end: int, name: str, body: Node) -> None:
        super().__init__(source, start, end)
        self.name = name
        self.body = body


class Skipped(Node):
    """A construct that is not evaluated (``select``)."""

    __slots__ = ("what",)

    def __init__(self, source: Source, start: int, end: int, what: str) -> None:
        super().__init__(source, start, end)
        self.what = what
