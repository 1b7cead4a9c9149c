"""Simple commands, arrays and plain argument text cut into words, assignments and redirections."""

from __future__ import annotations

import re
from collections.abc import Sequence

from translator.shell.braces import expand_braces
from translator.shell.flow import LimitError
from translator.shell.lexer import PATTERN_WORD, PLACEHOLDER, WORD, Lexer, Lit, RawWord
from translator.shell.syntax import Assign, Redirect, Span, Tokens

DECLARATIONS = frozenset({"export", "declare", "typeset", "local", "readonly"})
"""Commands whose arguments may be assignments, arrays included."""

MAX_WORDS = 50_000
"""More words than any command line holds."""

_GAP = re.compile(r"(?:[ \t\r\n]|\\\n)+")
_REDIRECT = re.compile(r"(\d+|\{\w+\})?(<<<|<<-?|<>|<&|>>|>&|>\||>|<)|()(&>>?)")
_ASSIGN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[|\+?=)")
_TO_LINE_END = re.compile(r"[^\n]*")


def tokenize(lexer: Lexer, spans: Sequence[Span]) -> Tokens:
    """Cut the spans of a simple command."""
    tokens = Tokens()
    text = lexer.text
    declaring = False
    for start, end in spans:
        at = start
        while at < end:
            gap = _GAP.match(text, at, end)
            if gap is not None:
                at = gap.end()
                continue
            char = text[at]
            if char == "#":
                at = _line_end(text, at, end)
            elif char == "<" and PLACEHOLDER.match(text, at, end):
                word = lexer.word(at, end)
                tokens.words.append(word)
                at = max(word.end, at + 1)
            elif char in "<>&0123456789{" and (hit := _REDIRECT.match(text, at, end)) and not _substitutes(text, hit):
                at = _redirect(lexer, hit, end, tokens)
            elif char in ";|&()":
                tokens.trouble = at if tokens.trouble is None and char in "()" else tokens.trouble
                return tokens
            else:
                if char.isalpha() or char == "_":
                    assign = assignment(lexer, at, end) if declaring or not tokens.words else None
                    if assign is not None:
                        (tokens.words if declaring else tokens.assigns).append(assign)
                        at = assign.end
                        continue
                word = lexer.word(at, end)
                if word.end <= at:
                    return tokens
                if not tokens.words and word.bare in DECLARATIONS:
                    declaring = True
                tokens.words.extend(expand_braces(word))
                at = word.end
                if len(tokens.words) > MAX_WORDS:
                    raise LimitError(f"a command has more than {MAX_WORDS} words")
    return tokens


def _substitutes(text: str, hit: re.Match[str]) -> bool:
    """True for ``<(`` and ``>(``, which are words."""
    return hit.group(2) in {"<", ">"} and not hit.group(1) and text.startswith("(", hit.end())


def _redirect(lexer: Lexer, hit: re.Match[str], end: int, tokens: Tokens) -> int:
    at = hit.end()
    operator = hit.group(2) or hit.group(4)
    while at < end and lexer.text[at] in " \t":
        at += 1
    target = lexer.word(at, end)
    if target.end <= at and (at >= end or lexer.text[at] in "\n(<>"):
        tokens.trouble = hit.start() if tokens.trouble is None else tokens.trouble
    tokens.redirects.append(Redirect(hit.group(1) or "", operator, target))
    return max(target.end, at)


def _line_end(text: str, at: int, end: int) -> int:
    hit = _TO_LINE_END.match(text, at, end)
    return end if hit is None else max(hit.end(), at + 1)


def assignment(lexer: Lexer, at: int, end: int) -> Assign | None:
    """The assignment that starts at ``at``, if there is one."""
    text = lexer.text
    hit = _ASSIGN.match(text, at, end)
    if hit is None:
        return None
    assign = Assign(hit.group(1), at, end)
    after, operator = hit.end(), hit.group(2)
    if operator == "[":
        close = _index_end(text, after, end)
        if close < 0:
            return None
        assign.index = (after, close)
        operator = "+=" if text.startswith("+=", close + 1) else "="
        after = close + 1 + len(operator)
    assign.append = operator == "+="
    if after < end and text[after] == "(":
        assign.array, assign.end = _array(lexer, after + 1, end)
        return assign
    assign.value = lexer.word(after, end)
    assign.end = max(assign.value.end, after)
    return assign


def _index_end(text: str, at: int, end: int) -> int:
    """The offset of the ``]`` that ends a subscript and is followed by ``=`` or ``+=``; -1 if there is none."""
    depth = 1
    while at < end and text[at] != "\n":
        char = text[at]
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if depth == 0:
                return at if text.startswith(("=", "+="), at + 1) else -1
        at += 1
    return -1


def _array(lexer: Lexer, at: int, end: int) -> tuple[list[RawWord | Assign], int]:
    """The elements up to the closing parenthesis, and the offset after it."""
    text = lexer.text
    items: list[RawWord | Assign] = []
    while at < end:
        gap = _GAP.match(text, at, end)
        if gap is not None:
            at = gap.end()
            continue
        char = text[at]
        if char == ")":
            return items, at + 1
        if char == "#":
            at = _line_end(text, at, end)
            continue
        if char == "[" and (close := _index_end(text, at + 1, end)) > 0:
            element = Assign("", at, end)
            element.index = (at + 1, close)
            element.append = text[close + 1] == "+"
            after = close + (3 if element.append else 2)
            element.value = lexer.word(after, end)
            at = element.end = max(element.value.end, after)
            items.append(element)
            continue
        word = lexer.word(at, end)
        if word.end <= at:
            at += 1
            continue
        items.extend(expand_braces(word))
        at = word.end
        if len(items) > MAX_WORDS:
            raise LimitError(f"an array has more than {MAX_WORDS} words")
    return items, end


def plain_words(lexer: Lexer, start: int, end: int, *, pattern: bool = False) -> list[RawWord]:
    """The words of a span, without assignments or redirections."""
    text = lexer.text
    words: list[RawWord] = []
    at = start
    while at < end:
        gap = _GAP.match(text, at, end)
        if gap is not None:
            at = gap.end()
        elif text[at] == "#" and not pattern:
            at = _line_end(text, at, end)
        else:
            word = lexer.word(at, end, PATTERN_WORD if pattern else WORD)
            if word.end <= at:
                word = RawWord((Lit(text[at], at, at + 1, True),), at, at + 1)
            words.extend([word] if pattern else expand_braces(word))
            at = word.end
            if len(words) > MAX_WORDS:
                raise LimitError(f"there are more than {MAX_WORDS} words")
    return words
