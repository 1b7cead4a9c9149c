"""Words of bash: quotes, escapes and expansions, from characters to parts. Nothing is looked up here."""

from __future__ import annotations

import re

from translator.shell.values import DerivedSource, Source

MAX_PARTS = 100_000
"""A word of more parts than this is taken as plain characters from there on."""
MAX_DEPTH = 60
"""Quotes and expansions nested deeper than this are taken as plain characters."""


class Part:
    """One part of a word; ``start`` and ``end`` are offsets in the source."""

    __slots__ = ("end", "quoted", "start")

    def __init__(self, start: int, end: int, quoted: bool) -> None:
        self.start = start
        self.end = end
        self.quoted = quoted


class Lit(Part):
    """Characters that stand for themselves, one to one with the source from ``start`` on."""

    __slots__ = ("text",)

    def __init__(self, text: str, start: int, end: int, quoted: bool) -> None:
        super().__init__(start, end, quoted)
        self.text = text


class Param(Part):
    """``$name`` or ``${...}``. ``prefix`` is ``!`` or ``#``; ``index`` the subscript; ``arg`` what follows ``op``."""

    __slots__ = ("arg", "arg2", "index", "name", "op", "prefix")

    def __init__(self, name: str, start: int, end: int, quoted: bool) -> None:
        super().__init__(start, end, quoted)
        self.name = name
        self.prefix = ""
        self.index: tuple[Part, ...] | None = None
        self.op = ""
        self.arg: tuple[Part, ...] = ()
        self.arg2: tuple[Part, ...] | None = None


class Cmd(Part):
    """``$(...)`` or backticks; ``body`` is the script inside, from ``body_start`` on."""

    __slots__ = ("backtick", "body_end", "body_start")

    def __init__(self, start: int, end: int, quoted: bool, body: tuple[int, int], *, backtick: bool) -> None:
        super().__init__(start, end, quoted)
        self.body_start, self.body_end = body
        self.backtick = backtick


class Arith(Part):
    """``$((...))``; ``parts`` is the expression before its own expansions."""

    __slots__ = ("parts",)

    def __init__(self, start: int, end: int, quoted: bool, parts: tuple[Part, ...]) -> None:
        super().__init__(start, end, quoted)
        self.parts = parts


class Opaque(Part):
    """Something that is not evaluated: process substitution, a malformed expansion, a placeholder."""

    __slots__ = ("reason",)

    def __init__(self, start: int, end: int, quoted: bool, reason: str) -> None:
        super().__init__(start, end, quoted)
        self.reason = reason


class RawWord:
    """A word before expansion."""

    __slots__ = ("end", "parts", "start")

    def __init__(self, parts: tuple[Part, ...], start: int, end: int) -> None:
        self.parts = parts
        self.start = start
        self.end = end

    @property
    def bare(self) -> str | None:
        """The text when the word is one run of unquoted literal characters."""
        parts = self.parts
        if len(parts) == 1:
            part = parts[0]
            if type(part) is Lit and not part.quoted:
                return part.text
        return None


class Mode:
    """Where a run of parts ends and which characters are special in it."""

    __slots__ = ("double", "plain", "single", "stop")

    def __init__(self, special: str, stop: str, *, single: bool, double: bool) -> None:
        self.plain = re.compile(f"[^{re.escape(special + stop)}]+")
        self.stop = frozenset(stop)
        self.single = single
        self.double = double


WORD = Mode("\\'\"$`", " \t\n;&|<>()", single=True, double=True)
PATTERN_WORD = Mode("\\'\"$`(", " \t\n", single=True, double=True)
DOUBLE = Mode('\\$`"', '"', single=False, double=False)
TEXT = Mode("\\$`", "", single=False, double=False)
INDEX = Mode("\\'\"$`", "", single=True, double=True)
BRACED = Mode("\\'\"$`", "}", single=True, double=True)
BRACED_QUOTED = Mode('\\"$`', "}", single=False, double=True)
BRACED_TO_SLASH = Mode("\\'\"$`", "/}", single=True, double=True)
BRACED_TO_COLON = Mode("\\'\"$`(", ":}", single=True, double=True)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACE_NAME = re.compile(r"([!#]?)([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])")
_OPERATOR = re.compile(r":?[-=?+]|##?|%%?|//|/#|/%|/|\^\^?|,,?|:|@[A-Za-z]")
_SPECIAL = frozenset("@*#?$!-0123456789")
_ANSI = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_SIMPLE_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_INSIDE = r"<[A-Za-z](?:[^<>|&;()\n\"'$`\\]*[^<>|&;()\n\"'$`\\\s])?>"
PLACEHOLDER = re.compile(rf"(?:(?<==){_INSIDE}(?=[ \t]*(?:\\?[\n#/]|$))|(?<=[ \t]){_INSIDE}(?=[ \t]*(?:\\?\n|$)))")
"""``<path to data>`` where a value belongs; bash would take it as redirections and fail."""


class Lexer:
    """Cuts one source into words and parts."""

    __slots__ = ("_depth", "_unknown", "source", "text")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self._unknown = source.unknown_spans() if isinstance(source, DerivedSource) else ()
        self._depth = 0

    def word(self, at: int, end: int, mode: Mode = WORD) -> RawWord:
        """The word that starts at ``at``."""
        parts: list[Part] = []
        stop = self.parts(at, end, mode, parts, quoted=False)
        return RawWord(tuple(parts), at, stop)

    def span(self, start: int, end: int, mode: Mode = TEXT, *, quoted: bool = True) -> tuple[Part, ...]:
        """All parts of a span (a heredoc body, an arithmetic expression)."""
        parts: list[Part] = []
        at = self.parts(start, end, mode, parts, quoted=quoted)
        if at < end:
            parts.append(Lit(self.text[at:end], at, end, quoted))
        return tuple(parts)

    def parts(self, at: int, end: int, mode: Mode, out: list[Part], *, quoted: bool) -> int:
        """Append the parts from ``at`` on; returns where the run ends (at a stop character, or ``end``)."""
        text, plain, stop = self.text, mode.plain, mode.stop
        if self._unknown:
            return self._parts_around_unknown(at, end, mode, out, quoted=quoted)
        while at < end:
            run = plain.match(text, at, end)
            if run is not None:
                out.append(Lit(run.group(), at, run.end(), quoted))
                at = run.end()
                if at >= end:
                    break
            char = text[at]
            if char in stop:
                if char in "<>" and mode is WORD and at + 1 < end and text[at + 1] == "(":
                    close = self.close_paren(at + 2, end)
                    out.append(Opaque(at, close + 1, quoted, "process substitution"))
                    at = min(close + 1, end)
                    continue
                if char == "<" and mode is WORD and (hit := PLACEHOLDER.match(text, at, end)) is not None:
                    out.append(Opaque(at, hit.end(), True, "placeholder"))
                    at = hit.end()
                    continue
                return at
            if len(out) > MAX_PARTS:
                out.append(Lit(text[at:end], at, end, quoted))
                return end
            at = self._special(at, end, mode, out, quoted)
        return min(at, end)

    def _parts_around_unknown(self, at: int, end: int, mode: Mode, out: list[Part], *, quoted: bool) -> int:
        """`parts` in text that holds unknown parts, each taken as a whole."""
        spans, self._unknown = self._unknown, ()
        try:
            for low, high in spans:
                if high <= at or low >= end:
                    continue
                if low > at:
                    stop = self.parts(at, low, mode, out, quoted=quoted)
                    if stop < low:
                        return stop
                out.append(Opaque(low, high, quoted, "unknown"))
                at = high
            return self.parts(at, end, mode, out, quoted=quoted) if at < end else min(at, end)
        finally:
            self._unknown = spans

    def _special(self, at: int, end: int, mode: Mode, out: list[Part], quoted: bool) -> int:
        char = self.text[at]
        if char == "\\":
            return self._backslash(at, end, mode, out, quoted)
        if char == "$":
            return self._dollar(at, end, out, quoted, mode)
        if char == "`":
            return self._backtick(at, end, out, quoted)
        if char == '"' and mode.double:
            self._depth += 1
            before = len(out)
            if self._depth > MAX_DEPTH:
                stop = end
                out.append(Lit(self.text[at:end], at, end, True))
            else:
                stop = self.parts(at + 1, end, DOUBLE, out, quoted=True)
            self._depth -= 1
            if len(out) == before:
                out.append(Lit("", at + 1, at + 1, True))
            return min(stop + 1, end)
        if char == "'" and mode.single:
            stop = self.text.find("'", at + 1, end)
            stop = end if stop < 0 else stop
            out.append(Lit(self.text[at + 1 : stop], at + 1, stop, True))
            return min(stop + 1, end)
        if char == "(":
            close = min(self.close_paren(at + 1, end) + 1, end)
            out.append(Lit(self.text[at:close], at, close, quoted))
            return close
        out.append(Lit(char, at, at + 1, quoted))
        return at + 1

    def _backslash(self, at: int, end: int, mode: Mode, out: list[Part], quoted: bool) -> int:
        if at + 1 >= end:
            out.append(Lit("\\", at, at + 1, True))
            return end
        following = self.text[at + 1]
        if following == "\n":
            return at + 2
        in_text = mode is DOUBLE or mode is TEXT or mode is BRACED_QUOTED
        if in_text and not (
            following in "$`\\"
            or (following == '"' and mode is not TEXT)
            or (following == "}" and mode is BRACED_QUOTED)
        ):
            out.append(Lit("\\", at, at + 1, quoted))
            return at + 1
        out.append(Lit(following, at + 1, at + 2, True))
        return at + 2

    def _dollar(self, at: int, end: int, out: list[Part], quoted: bool, mode: Mode) -> int:
        text = self.text
        following = text[at + 1] if at + 1 < end else ""
        if following == "(":
            return self._parenthesis(at, end, out, quoted)
        if following == "{":
            return self._braced(at, end, out, quoted)
        if following == "[" and (close := self._close_bracket(at + 2, end)) < end:
            out.append(Arith(at, close + 1, quoted, self._deeper(at + 2, close)))
            return close + 1
        name = _NAME.match(text, at + 1, end)
        if name is not None:
            out.append(Param(name.group(), at, name.end(), quoted))
            return name.end()
        if following and following in _SPECIAL:
            out.append(Param(following, at, at + 2, quoted))
            return at + 2
        if following == "'" and mode.single:
            return self._ansi(at, end, out)
        if following == '"' and mode.double:
            return at + 1
        out.append(Lit("$", at, at + 1, quoted))
        return at + 1

    def _ansi(self, at: int, end: int, out: list[Part]) -> int:
        stop = at + 2
        while stop < end and self.text[stop] != "'":
            stop += 2 if self.text[stop] == "\\" else 1
        stop = min(stop, end)
        out.append(Lit(ansi_unescape(self.text[at + 2 : stop]), at + 2, stop, True))
        return min(stop + 1, end)

    def _backtick(self, at: int, end: int, out: list[Part], quoted: bool) -> int:
        stop = at + 1
        while stop < end and self.text[stop] != "`":
            stop += 2 if self.text[stop] == "\\" else 1
        stop = min(stop, end)
        out.append(Cmd(at, min(stop + 1, end), quoted, (at + 1, stop), backtick=True))
        return min(stop + 1, end)

    def _parenthesis(self, at: int, end: int, out: list[Part], quoted: bool) -> int:
        text = self.text
        if text.startswith("((", at + 1):
            close = self.close_paren(at + 3, end)
            if close + 1 < end and text[close + 1] == ")":
                out.append(Arith(at, close + 2, quoted, self._deeper(at + 3, close)))
                return close + 2
        close = self.close_paren(at + 2, end)
        out.append(Cmd(at, min(close + 1, end), quoted, (at + 2, close), backtick=False))
        return min(close + 1, end)

    def _deeper(self, start: int, end: int, mode: Mode = TEXT) -> tuple[Part, ...]:
        if self._depth > MAX_DEPTH:
            return (Opaque(start, end, True, "nested too deep"),)
        self._depth += 1
        parts = self.span(start, end, mode)
        self._depth -= 1
        return parts

    def _braced(self, at: int, end: int, out: list[Part], quoted: bool) -> int:
        self._depth += 1
        part, stop = (None, end) if self._depth > MAX_DEPTH else self._parameter(at, end, quoted)
        self._depth -= 1
        if part is None:
            close = self.text.find("}", at, end)
            stop = end if close < 0 else close + 1
            out.append(Opaque(at, stop, quoted, "bad substitution"))
        else:
            out.append(part)
        return stop

    def _parameter(self, at: int, end: int, quoted: bool) -> tuple[Param | None, int]:
        text = self.text
        if text.startswith("${#}", at):
            return Param("#", at, at + 4, quoted), at + 4
        head = _BRACE_NAME.match(text, at + 2, end)
        if head is None:
            return None, end
        param = Param(head.group(2), at, end, quoted)
        param.prefix = head.group(1)
        spot = head.end()
        if spot < end and text[spot] == "[":
            close = self._close_bracket(spot + 1, end)
            if close >= end:
                return None, end
            param.index = self._deeper(spot + 1, close, INDEX)
            spot = close + 1
        if spot < end and text[spot] in "*@" and param.prefix == "!" and text.startswith("}", spot + 1):
            param.op = "prefix"
            spot += 1
        elif spot < end and text[spot] != "}":
            operator = _OPERATOR.match(text, spot, end)
            if operator is None:
                return None, end
            param.op = operator.group()
            spot = self._argument(param, operator.end(), end, quoted)
        if spot >= end or text[spot] != "}":
            return None, end
        param.end = spot + 1
        return param, spot + 1

    def _argument(self, param: Param, at: int, end: int, quoted: bool) -> int:
        first: list[Part] = []
        op = param.op
        if op[0] == "/":
            at = self.parts(at, end, BRACED_TO_SLASH, first, quoted=False)
            if at < end and self.text[at] == "/":
                second: list[Part] = []
                at = self.parts(at + 1, end, BRACED_QUOTED if quoted else BRACED, second, quoted=quoted)
                param.arg2 = tuple(second)
        elif op == ":":
            at = self.parts(at, end, BRACED_TO_COLON, first, quoted=False)
            if at < end and self.text[at] == ":":
                second = []
                at = self.parts(at + 1, end, BRACED, second, quoted=False)
                param.arg2 = tuple(second)
        elif op[0] in "#%^,@":
            at = self.parts(at, end, BRACED, first, quoted=False)
        else:
            at = self.parts(at, end, BRACED_QUOTED if quoted else BRACED, first, quoted=quoted)
        param.arg = tuple(first)
        return at

    def _close_bracket(self, at: int, end: int) -> int:
        depth = 1
        while at < end:
            char = self.text[at]
            if char == "[":
                depth += 1
            elif char == "]":
                depth -= 1
                if depth == 0:
                    return at
            elif char == "\\":
                at += 1
            elif char == "\n":
                return end
            at += 1
        return end

    def close_paren(self, at: int, end: int) -> int:
        """The offset of the parenthesis that closes the one before ``at``, or ``end``."""
        return close_paren(self.text, at, end)


_CLOSING = re.compile(
    r"""\\.|'[^']*'|\$'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\$`]|\$(?!\())*"|["()]|`(?:\\.|[^`\\])*`"""
    r"""|(?<![\w$}])\#[^\n]*|<<<|<<-?[ \t]*\\?(['"]?)(\w+)\1|(?<![\w-])(?:case|esac)(?![\w-])""",
    re.DOTALL,
)


def close_paren(text: str, at: int, end: int, depth_left: int = MAX_DEPTH) -> int:
    """The offset of the unquoted ``)`` that closes a parenthesis opened before ``at``; ``end`` if there is none."""
    depth, cases = 1, 0
    while at < end:
        hit = _CLOSING.search(text, at, end)
        if hit is None:
            return end
        token = hit.group()
        at = hit.end()
        if token == "(":
            depth += 1
        elif token == ")":
            if cases and depth == 1:
                continue
            depth -= 1
            if depth == 0:
                return at - 1
        elif token == '"':
            at = _close_quote(text, at, end, depth_left - 1)
        elif token == "case":
            cases += depth == 1
        elif token == "esac":
            cases -= bool(cases) and depth == 1
        elif token.startswith("<<") and hit.group(2):
            at = _after_heredoc(text, at, end, hit.group(2))
    return end


def _close_quote(text: str, at: int, end: int, depth_left: int) -> int:
    while at < end:
        char = text[at]
        if char == '"':
            return at + 1
        if char == "\\":
            at += 2
        elif char == "$" and text.startswith("(", at + 1):
            if depth_left <= 0:
                return end
            at = close_paren(text, at + 2, end, depth_left) + 1
        else:
            at += 1
    return end


def _after_heredoc(text: str, at: int, end: int, delimiter: str) -> int:
    close = re.compile(rf"\n[\t ]*{re.escape(delimiter)}[ \t]*(?=\n|\Z|\))").search(text, at, end)
    return at if close is None else close.end()


def ansi_unescape(text: str) -> str:
    """The characters that ``$'text'`` stands for."""
    if "\\" not in text:
        return text

    def replace(hit: re.Match[str]) -> str:
        code = hit.group(1)
        if code in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[code]
        try:
            if code[0] in "xuU" and len(code) > 1:
                return chr(int(code[1:], 16))
            if code[0] in "01234567":
                return chr(int(code, 8) & 0xFF)
        except (ValueError, OverflowError):
            return hit.group()
        if code[0] == "c" and len(code) == 2:
            return chr(ord(code[1]) & 0x1F)
        return code if code in "\\'\"?" else hit.group()

    return _ANSI.sub(replace, text)
