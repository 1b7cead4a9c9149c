"""``[[ ... ]]``, ``[ ... ]`` and ``test``, with three outcomes: true, false, or what it depends on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from translator.shell.arithmetic import ArithmeticFaultError
from translator.shell.expand import UnknownArithmeticError
from translator.shell.lexer import PATTERN_WORD, WORD, Lexer, RawWord
from translator.shell.params import is_empty
from translator.shell.patterns import Pattern, regex_match
from translator.shell.state import Key, Var
from translator.shell.syntax import Conditional
from translator.shell.values import SOFT, Chunk, Unknown, Value

if TYPE_CHECKING:
    from translator.shell.interp import Interpreter

Verdict = bool | Unknown

_FILE_TESTS = frozenset("abcdefghkprstuwxGLNOS")
_NUMERIC = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}
_GAP = re.compile(r"(?:[ \t\r\n]|\\\n)+")
MAX_NESTING = 40


def negate(verdict: Verdict) -> Verdict:
    """Not."""
    return verdict if isinstance(verdict, Unknown) else not verdict


def both(left: Verdict, right: Verdict) -> Verdict:
    """And."""
    if left is False or right is False:
        return False
    return left if isinstance(left, Unknown) else right


def any_of(left: Verdict, right: Verdict) -> Verdict:
    """Or."""
    if left is True or right is True:
        return True
    return left if isinstance(left, Unknown) else right


def _cause(*values: Value) -> Unknown | None:
    return next((c.unknown for v in values for c in v.chunks if c.is_unknown), None)


def _blank(value: Value) -> Verdict:
    """Whether a string is empty."""
    if not value.text or is_empty(value):
        return True
    literal = any(c.text and not c.is_unknown for c in value.chunks)
    cause = _cause(value)
    if literal or cause is None or cause.reason.startswith("set by"):
        return False
    return cause


def compare_numbers(operator: str, left: int, right: int) -> bool:
    """``-eq`` and relatives."""
    return {
        "-eq": left == right, "-ne": left != right, "-lt": left < right, "-le": left <= right, "-gt": left > right,
    }.get(operator, left >= right)  # fmt: skip


def unary(interp: Interpreter, operator: str, value: Value) -> Verdict:
    """``-z``, ``-n``, ``-v`` and file tests."""
    if operator == "-z":
        return _blank(value)
    if operator == "-n":
        return negate(_blank(value))
    if operator == "-v":
        return interp.expander.params.lookup_element(value.text, None) is not None
    if operator == "-o":
        return interp.state.options.get(value.text, False)
    if operator == "-R":
        return False
    if not value.text:
        return False
    place = interp.here()
    return Unknown(f"{operator} {value.text}", None, "depends on the file system", place)


def equal(interp: Interpreter, left: Value, right: Value) -> Verdict:
    """String equality."""
    if (not left.text and is_empty(right)) or (not right.text and is_empty(left)):
        return True
    cause = _cause(left, right)
    if cause is None:
        return left.text == right.text
    if not left.text or not right.text:
        return _blank(right if not left.text else left)
    return True if left.text == right.text and not cause.expression.startswith("$(") else cause


class _Words:
    """The words of ``[[``: cut one by one, because operators decide how the next is read."""

    def __init__(self, interp: Interpreter, node: Conditional) -> None:
        self.interp = interp
        self.source = node.source
        self.lexer = Lexer(node.source)
        self.at = node.start + 2
        self.end = node.end - 2 if node.source.text.endswith("]]", 0, node.end) else node.end
        self.level = 0

    def peek(self) -> str:
        """The operator or plain word that comes next."""
        gap = _GAP.match(self.source.text, self.at, self.end)
        if gap is not None:
            self.at = gap.end()
        if self.at >= self.end:
            return ""
        text = self.source.text
        for operator in ("&&", "||", "(", ")", "<", ">"):
            if text.startswith(operator, self.at):
                return operator
        word = self.lexer.word(self.at, self.end)
        return word.bare or "word"

    def take(self, *, pattern: bool = False) -> RawWord:
        """The next word."""
        self.peek()
        word = self.lexer.word(self.at, self.end, PATTERN_WORD if pattern else WORD)
        self.at = max(word.end, self.at + 1)
        return word

    def skip(self, text: str) -> None:
        """Step over an operator."""
        self.at += len(text)

    # -- grammar

    def either(self) -> Verdict:
        """``a || b``."""
        result = self.all()
        while self.peek() == "||":
            self.skip("||")
            right = self.all()
            result = any_of(result, right)
        return result

    def all(self) -> Verdict:
        """``a && b``."""
        result = self.one()
        while self.peek() == "&&":
            self.skip("&&")
            right = self.one()
            result = both(result, right)
        return result

    def one(self) -> Verdict:
        """One test, negated or in parentheses."""
        self.level += 1
        if self.level > MAX_NESTING:
            self.at = self.end
            return False
        token = self.peek()
        if token == "!":
            self.skip("!")
            result = negate(self.one())
        elif token == "(":
            self.skip("(")
            result = self.either()
            if self.peek() == ")":
                self.skip(")")
        else:
            result = self.test(token)
        self.level -= 1
        return result

    def test(self, token: str) -> Verdict:
        """A unary or binary test, or a word that must not be empty."""
        interp = self.interp
        if token in {"", "&&", "||", ")"}:
            self.skip(token)
            return False
        is_unary = len(token) == 2 and token[0] == "-" and (token[1] in _FILE_TESTS or token[1] in "znvoR")
        first = self.take()
        following = self.peek()
        if is_unary and following not in {"", "&&", "||", ")", "==", "=", "!="}:
            return unary(interp, token, interp.expander.value(self.take(), self.source))
        left = interp.expander.value(first, self.source)
        if following in {"==", "=", "!="}:
            self.skip(following)
            verdict = self.matches(left)
            return verdict if following != "!=" else negate(verdict)
        if following == "=~":
            self.skip(following)
            return self.regex(left)
        if following in _NUMERIC:
            self.skip(following)
            return self.number(following, left)
        if following in {"<", ">"}:
            self.skip(following)
            right = interp.expander.value(self.take(), self.source)
            cause = _cause(left, right)
            return cause or (left.text < right.text if following == "<" else left.text > right.text)
        if following in {"-nt", "-ot", "-ef"}:
            self.skip(following)
            self.take()
            return Unknown(f"{left.text} {following}", None, "depends on the file system", interp.here())
        return negate(_blank(left))

    def matches(self, left: Value) -> Verdict:
        """``==`` with a pattern on the right."""
        chunks: list[Chunk] = []
        self.interp.expander.emit(self.take(pattern=True).parts, self.source, chunks, splitting=False)
        pattern = Pattern(chunks)
        right = Value(chunks)
        if not pattern.wild:
            return equal(self.interp, left, right)
        cause = _cause(left, right)
        if cause is not None:
            return cause
        hit = pattern.matches(left.text)
        return hit if hit is not None else Unknown(right.text, None, "too costly to match", self.interp.here())

    def regex(self, left: Value) -> Verdict:
        """``=~``; sets BASH_REMATCH."""
        chunks: list[Chunk] = []
        self.interp.expander.emit(self.take(pattern=True).parts, self.source, chunks, splitting=False)
        cause = _cause(left, Value(chunks))
        if cause is not None:
            return cause
        hit = regex_match(chunks, left.text)
        if hit is None:
            return Unknown(f"=~ {Value(chunks).text}"[:60], None, "too costly to match", self.interp.here())
        if isinstance(hit, bool):
            return hit
        groups: dict[Key, Value] = {}
        from translator.shell.state import slice_value

        for index in range(len(hit.groups()) + 1):
            low, high = hit.span(index)
            groups[index] = Value(slice_value(left, low, high) if low >= 0 else ())
        self.interp.state.vars["BASH_REMATCH"] = Var(None, groups)
        return True

    def number(self, operator: str, left: Value) -> Verdict:
        """``-gt`` and relatives: both sides are arithmetic."""
        right = self.interp.expander.value(self.take(), self.source)
        try:
            one, two = (self.interp.expander.arithmetic(value) for value in (left, right))
        except UnknownArithmeticError as error:
            return error.unknown
        except ArithmeticFaultError as error:
            self.interp.report("R066", "error", str(error), self.interp.here())
            return False
        return compare_numbers(operator, one, two)


def conditional(interp: Interpreter, node: Conditional) -> Verdict:
    """``[[ ... ]]``."""
    interp.offset = node.start
    return _Words(interp, node).either()


class _Test:
    """The arguments of ``test``."""

    def __init__(self, interp: Interpreter, values: Sequence[Value]) -> None:
        self.interp = interp
        self.values = values
        self.at = 0
        self.level = 0

    def text(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.values[index].text if index < len(self.values) else ""

    def left(self) -> int:
        return len(self.values) - self.at

    def either(self) -> Verdict:
        result = self.all()
        while self.text() == "-o" and self.left() > 1:
            self.at += 1
            right = self.all()
            result = any_of(result, right)
        return result

    def all(self) -> Verdict:
        result = self.one()
        while self.text() == "-a" and self.left() > 1:
            self.at += 1
            right = self.one()
            result = both(result, right)
        return result

    def one(self) -> Verdict:
        if self.left() <= 0:
            return False
        if self.left() >= 3 and self._is_binary(self.text(1)) and (self.text() not in {"!", "("} or self.left() == 3):
            first, operator, second = self.values[self.at : self.at + 3]
            self.at += 3
            return self.binary(first, operator.text, second)
        self.level += 1
        if self.level > MAX_NESTING:
            self.at = len(self.values)
            return False
        token = self.text()
        if token == "!" and self.left() > 1:
            self.at += 1
            return negate(self.one())
        if token == "(" and self.left() > 2:
            self.at += 1
            result = self.either()
            self.at += self.text() == ")"
            return result
        if len(token) == 2 and token[0] == "-" and self.left() >= 2 and (token[1] in _FILE_TESTS or token[1] in "znvR"):
            self.at += 2
            return unary(self.interp, token, self.values[self.at - 1])
        self.at += 1
        return negate(_blank(self.values[self.at - 1]))

    def _is_binary(self, text: str) -> bool:
        return text in _NUMERIC or text in {"=", "==", "!=", "<", ">", "-nt", "-ot", "-ef"}

    def binary(self, left: Value, operator: str, right: Value) -> Verdict:
        if operator in {"=", "==", "!="}:
            verdict = equal(self.interp, left, right)
            return verdict if operator != "!=" else negate(verdict)
        cause = _cause(left, right)
        if operator in _NUMERIC:
            if cause is not None:
                return cause
            try:
                return compare_numbers(operator, int(left.text), int(right.text))
            except ValueError:
                return False
        if operator in {"<", ">"}:
            return cause or (left.text < right.text if operator == "<" else left.text > right.text)
        return Unknown(f"{left.text} {operator} {right.text}", None, "depends on the file system", self.interp.here())


def test(interp: Interpreter, values: Sequence[Value]) -> Verdict:
    """``test`` and ``[``, without the closing bracket."""
    if any(c.flags & SOFT for v in values for c in v.chunks) and len(values) == 1:
        return negate(_blank(values[0]))
    if len(values) == 1:
        return negate(_blank(values[0]))
    checker = _Test(interp, values)
    verdict = checker.either()
    return verdict if checker.left() <= 0 else False
