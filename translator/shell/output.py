"""What ``echo`` and ``printf`` print."""

from __future__ import annotations

import re
from collections.abc import Sequence

from translator.shell.lexer import ansi_unescape
from translator.shell.values import Chunk, Source, Value

_DIRECTIVE = re.compile(r"%(?:%|([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?([a-zA-Z]|\([^)]*\)T))")
_PADDING_LIMIT = 10_000


def echo(values: Sequence[Value], source: Source, offset: int) -> list[Chunk]:
    """The text of ``echo``."""
    newline, escapes, at = True, False, 0
    while at < len(values) and re.fullmatch(r"-[neE]+", values[at].text):
        newline = newline and "n" not in values[at].text
        for letter in values[at].text[1:]:
            escapes = letter == "e" if letter in "eE" else escapes
        at += 1
    chunks: list[Chunk] = []
    for value in values[at:]:
        if chunks:
            chunks.append(Chunk(" ", source, offset))
        for chunk in value.chunks:
            if escapes and chunk.unknown is None and "\\" in chunk.text:
                text, cut, stop = ansi_unescape(chunk.text.replace("\\'", "\\\\'")).partition("\x00c")
                del cut, stop
                chunks.append(Chunk(text, chunk.source, chunk.offset))
            else:
                chunks.append(chunk.flagged(0))
        if not value.chunks:
            chunks.append(Chunk("", source, offset))
    if newline:
        chunks.append(Chunk("\n", source, offset))
    return chunks


def format_text(values: Sequence[Value], source: Source, offset: int) -> list[Chunk] | None:
    """The text of ``printf``; None when the format needs more than is done here."""
    if not values[0].known:
        return None
    pattern, arguments = values[0].text, list(values[1:])
    if len(pattern) > 10_000:
        return None
    out: list[Chunk] = []
    at, rounds = 0, 0
    while True:
        before = at
        rounds += 1
        finished = _once(pattern, arguments, out, source, offset)
        if finished is None:
            return None
        at += finished
        if at == before or not arguments[finished:] or rounds > 5000:
            return out
        arguments = arguments[finished:]


def _once(pattern: str, arguments: list[Value], out: list[Chunk], source: Source, offset: int) -> int | None:
    """Use the format once; returns how many arguments it took."""
    used, at = 0, 0
    for hit in _DIRECTIVE.finditer(pattern):
        if hit.start() > at:
            out.append(Chunk(ansi_unescape(pattern[at : hit.start()]), source, offset))
        at = hit.end()
        kind = hit.group(4)
        if kind is None:
            out.append(Chunk("%", source, offset))
            continue
        argument = arguments[used] if used < len(arguments) else None
        used += 1
        chunks = _directive(hit, kind, argument, source, offset)
        if chunks is None:
            return None
        out.extend(chunks)
    if at < len(pattern):
        out.append(Chunk(ansi_unescape(pattern[at:]), source, offset))
    return used


def _directive(
    hit: re.Match[str], kind: str, argument: Value | None, source: Source, offset: int
) -> list[Chunk] | None:
    flags, width, precision = hit.group(1), hit.group(2), hit.group(3)
    if "*" in (width, precision) or len(width) > 4:
        return None
    plain = not flags and not width and precision is None
    if argument is not None and not argument.known:
        return [c.flagged(0) for c in argument.chunks] if kind in "sdi" and plain else None
    text = argument.text if argument is not None else ""
    if kind == "s" and plain:
        return [c.flagged(0) for c in argument.chunks] if argument is not None else []
    rendered = _render(kind, flags, width, precision, text)
    if rendered is None or len(rendered) > _PADDING_LIMIT:
        return None
    place = argument.chunks[0] if argument is not None and argument.chunks else None
    return [Chunk(rendered, place.source if place else source, place.offset if place else offset)]


def _render(kind: str, flags: str, width: str, precision: str | None, text: str) -> str | None:
    spec = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
    try:
        if kind == "s":
            return (spec + "s") % text
        if kind == "b":
            return (spec + "s") % ansi_unescape(text)
        if kind == "c":
            return (spec + "s") % text[:1]
        if kind in "diuxXo":
            number = int(text, 0) if not re.fullmatch(r"0[0-7]+", text) else int(text, 8)
            return (spec + kind) % number
        if kind in "eEfFgG":
            return (spec + kind) % float(text or "0")
    except (ValueError, TypeError, OverflowError):
        return (spec + "d") % 0 if kind in "diu" and not text else None
    return None
