"""JSON as DeepSpeed reads it, with the place of every key and value.

``deepspeed.initialize`` reads its file with hjson (``runtime/config.py:653`` at 0.19.2): comments, trailing and missing
commas, keys and values without quotes. A value without quotes runs to the end of its line, comma included. transformers
and accelerate read the same file with ``json.load``, so whatever is beyond JSON is noted as an `Oddity`.

Where a value without quotes is plainly a variable of a template (``$ZERO_STAGE``, ``CONFIG_BATCH_SIZE``), it ends at
the comma and becomes a `Placeholder`: such a file is never read before somebody filled it in.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from translator.errors import SourceError
from translator.findings import Place

MAX_DEPTH = 48
MAX_VALUES = 50_000
COMMENT, COMMA, QUOTES, BRACES, NUMBER = "comments", "commas", "quotes", "braces", "numbers"
_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?(?=[ \t]*(?:[,}\]#\r\n]|//|/\*|$))")
_TEMPLATE = re.compile(
    r"(?:\$\(\([^\n]*?\)\)|\$\([^\n()]*\)|\$\{[^\n{}]*\}|\$[A-Za-z_]\w*|\{\{[^\n{}]*\}\}|<[A-Za-z_]\w*>|[A-Z][A-Z0-9_]{2,})"
    r"(?=[ \t]*(?:[,}\]\r\n]|$))"
)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?|([A-Z][A-Z0-9_]{2,})|\{\{\s*(\w+)\s*\}\}|<(\w+)>")
_IN_STRING = re.compile(r"\$\{?([A-Za-z_]\w*)\}?|\$\(")
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERAL = re.compile(r"(true|false|null)(?=[ \t]*(?:[,}\]#\r\n]|//|/\*|$))")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A variable of a template in the place of a value; ``name`` would settle it."""

    expression: str
    name: str | None


@dataclass(frozen=True, slots=True)
class Bare:
    """A value without quotes, as hjson takes it: the rest of its line."""

    text: str


@dataclass(slots=True)
class Node:
    """A value and its span: a list of `Member` for an object, of `Node` for an array, else the value."""

    value: object
    start: int
    end: int

    @property
    def members(self) -> list[Member] | None:
        """The members of an object; None for anything else."""
        if isinstance(self.value, Members):
            return self.value.items
        return None


@dataclass(slots=True)
class Member:
    """One key of an object and its value; ``start`` and ``end`` are the key's."""

    key: str
    start: int
    end: int
    node: Node


@dataclass(slots=True)
class Members:
    """The members of an object, in order, repeated keys included."""

    items: list[Member]


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something that JSON does not have; ``surplus`` when a text without the character there means the same."""

    what: str
    at: int
    surplus: bool = False


@dataclass(slots=True)
class Document:
    """A parsed text."""

    root: Node
    oddities: list[Oddity] = field(default_factory=list)


def parse(path: str, text: str, empty: Callable[[str], Placeholder] | None = None) -> Document:
    """Parse a text by the rules of hjson. Raises `SourceError` with line and column when it breaks them.

    ``empty`` says what stands for the value of a key that has none, where a shell has left it out.
    """
    parser = _Parser(path, text)
    parser.empty = empty
    return parser.document()


def plain(node: Node) -> object:
    """A node as Python values; of a repeated key the last value counts, as for ``json.load``."""
    if node.members is not None:
        return {member.key: plain(member.node) for member in node.members}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return node.value.text if isinstance(node.value, Bare) else node.value


def scalar(text: str) -> object:
    """A word that somebody gives for a placeholder, as the value it would be in the file."""
    parser = _Parser("", text.strip())
    found: object = parser.bare() if parser.text else ""
    if isinstance(found, Bare | Placeholder):
        return text.strip().strip("\"'")
    return found


@lru_cache(maxsize=4)
def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def place_of(path: str, text: str, start: int, end: int | None = None) -> Place:
    """The place of a span of characters."""
    starts = _line_starts(text)
    line = bisect_right(starts, start)
    column = start - starts[line - 1] + 1
    if end is None:
        return Place(path, line, column)
    last = bisect_right(starts, end)
    return Place(path, line, column, last, end - starts[last - 1] + 1)


class _Parser:
    """One pass over one text."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.at = 0
        self.depth = 0
        self.count = 0
        self.oddities: list[Oddity] = []
        self.empty: Callable[[str], Placeholder] | None = None

    def fail(self, message: str, at: int | None = None) -> SourceError:
        """The error for a place."""
        return SourceError(
            f"not valid JSON, not even hjson: {message}",
            place=place_of(self.path, self.text, self.at if at is None else at),
        )

    def odd(self, what: str, at: int, *, surplus: bool = False) -> None:
        """Note something that JSON does not have."""
        self.oddities.append(Oddity(what, at, surplus))

    def document(self) -> Document:
        """The whole text."""
        self.skip()
        if self.peek() in "{[" and self.peek():
            root = self.value()
        else:
            self.odd(BRACES, self.at)
            start = self.at
            root = Node(self.members(closing=""), start, len(self.text))
        self.skip()
        if self.at < len(self.text):
            raise self.fail("there is more after the end of the configuration")
        return Document(root, self.oddities)

    def peek(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def skip(self) -> None:
        """Pass white space and comments."""
        text = self.text
        while True:
            match = _SPACE.match(text, self.at)
            self.at = match.end() if match else self.at
            if text.startswith("#", self.at) or text.startswith("//", self.at):
                self.odd(COMMENT, self.at)
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif text.startswith("/*", self.at):
                self.odd(COMMENT, self.at)
                end = text.find("*/", self.at + 2)
                if end < 0:
                    raise self.fail("a comment has no end")
                self.at = end + 2
            else:
                return

    def value(self) -> Node:
        """One value of any kind."""
        self.count += 1
        if self.count > MAX_VALUES:
            raise SourceError(
                f"{self.path} holds more than {MAX_VALUES} values; a training configuration is far smaller"
            )
        start = self.at
        sign = self.peek()
        if sign in {"{", "["} and not self.text.startswith("{{", start):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise self.fail(f"nested deeper than {MAX_DEPTH} levels")
            self.at += 1
            found: object = self.members("}") if sign == "{" else self.array()
            self.depth -= 1
            return Node(found, start, self.at)
        if sign in {'"', "'"}:
            string = self.multiline() if self.text.startswith("'''", start) else self.string()
            return Node(_in_string(string), start, self.at)
        return Node(self.bare(), start, self.at)

    def members(self, closing: str) -> Members:
        """The members of an object, up to its brace (or the end of the text)."""
        found: list[Member] = []
        comma_at = -1
        while True:
            self.skip()
            if self.at >= len(self.text):
                if closing:
                    raise self.fail("the end comes before a closing brace")
                break
            if closing and self.peek() == closing:
                if comma_at >= 0:
                    self.odd(COMMA, comma_at, surplus=True)
                self.at += 1
                break
            if found and comma_at < 0:
                self.odd(COMMA, self.at)
            found.append(self.member())
            self.skip()
            comma_at = -1
            if self.peek() == ",":
                comma_at = self.at
                self.at += 1
        return Members(found)

    def member(self) -> Member:
        """A key, a colon and a value."""
        start = self.at
        if self.peek() in {'"', "'"}:
            key = self.string()
            end = self.at
        else:
            key, end = self.bare_key()
        self.skip()
        if self.peek() != ":":
            raise self.fail(f"a colon is missing after {key!r}")
        self.at += 1
        self.skip()
        if self.at >= len(self.text) or self.peek() in ",:}]":
            if self.empty is None:
                raise self.fail(f"{key!r} has no value")
            return Member(key, start, end, Node(self.empty(key), self.at, self.at))
        return Member(key, start, end, self.value())

    def bare_key(self) -> tuple[str, int]:
        """A key without quotes."""
        match = re.compile(r"[^\s:{}\[\],]+").match(self.text, self.at)
        if match is None:
            raise self.fail(f"a key is expected, not {self.peek()!r}")
        self.odd(QUOTES, self.at)
        self.at = match.end()
        return match.group(), match.end()

    def array(self) -> list[Node]:
        """The elements of an array, up to its bracket."""
        found: list[Node] = []
        comma_at = -1
        while True:
            self.skip()
            if self.at >= len(self.text):
                raise self.fail("the end comes before a closing bracket")
            if self.peek() == "]":
                if comma_at >= 0:
                    self.odd(COMMA, comma_at, surplus=True)
                self.at += 1
                return found
            if found and comma_at < 0:
                self.odd(COMMA, self.at)
            if self.peek() in ",:}":
                raise self.fail(f"a value is expected, not {self.peek()!r}")
            found.append(self.value())
            self.skip()
            comma_at = -1
            if self.peek() == ",":
                comma_at = self.at
                self.at += 1

    def string(self) -> str:
        """A string in either kind of quotes."""
        quote, start, text = self.peek(), self.at, self.text
        if quote == "'":
            self.odd(QUOTES, start)
        parts: list[str] = []
        at = start + 1
        while True:
            sign = text[at : at + 1]
            if sign in {"", "\n", "\r"}:
                raise self.fail("a string has no closing quote", start)
            if sign == quote:
                self.at = at + 1
                return "".join(parts)
            if sign < " ":
                raise self.fail("a control character stands in a string", at)
            if sign != "\\":
                end = at + 1
                while text[end : end + 1] not in {"", quote, "\\"} and text[end] >= " ":
                    end += 1
                parts.append(text[at:end])
                at = end
                continue
            piece, at = self.escape(at)
            parts.append(piece)

    def escape(self, at: int) -> tuple[str, int]:
        """An escape sequence and the offset after it."""
        text = self.text
        sign = text[at + 1 : at + 2]
        if sign in _ESCAPES and sign:
            return _ESCAPES[sign], at + 2
        digits = text[at + 2 : at + 6]
        if sign != "u" or not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            raise self.fail("an escape sequence is unknown", at)
        code = int(digits, 16)
        low = text[at + 8 : at + 12]
        if (
            code & 0xFC00 == 0xD800
            and text[at + 6 : at + 8] == "\\u"
            and re.fullmatch(r"[dD][c-fC-F][0-9a-fA-F]{2}", low)
        ):
            return chr(0x10000 + ((code - 0xD800) << 10 | (int(low, 16) - 0xDC00))), at + 12
        return ("\ufffd" if 0xD800 <= code < 0xE000 else chr(code)), at + 6

    def multiline(self) -> str:
        """A string in three quotes."""
        self.odd(QUOTES, self.at)
        end = self.text.find("'''", self.at + 3)
        if end < 0:
            raise self.fail("a string in three quotes has no end")
        content = self.text[self.at + 3 : end]
        self.at = end + 3
        return content.strip()

    def bare(self) -> object:
        """A number, a word, a template's variable, or whatever stands on the rest of the line."""
        text, start = self.text, self.at
        word = _LITERAL.match(text, start)
        if word is not None:
            self.at = word.end()
            return _WORDS[word.group()]
        number = _NUMBER.match(text, start)
        if number is not None:
            self.at = number.end()
            return _number(number)
        template = _TEMPLATE.match(text, start)
        if template is not None:
            self.at = template.end()
            self.odd(QUOTES, start)
            name = _VARIABLE.fullmatch(template.group())
            return Placeholder(template.group(), next(filter(None, name.groups()), None) if name else None)
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        self.odd(QUOTES, start)
        self.at = end
        return Bare(text[start:end].strip())


def _number(match: re.Match[str]) -> object:
    """A number as hjson makes it: an integer where the value is whole and below 1e10 (``hjson/decoder.py:208``)."""
    if not match.group(1) and not match.group(2):
        digits = match.group()
        return int(digits) if len(digits) <= 300 else float(digits)
    value = float(match.group())
    return int(value) if abs(value) < 1e10 and value == int(value) else value


def _in_string(text: str) -> object:
    """A string, or the placeholder that it is when a shell variable stands in it."""
    match = _IN_STRING.search(text)
    if match is None:
        return text
    return Placeholder(text, match.group(1) if match.group() == text else None)
