"""Placeholders such as ``<some dir>`` that an unquoted expansion has cut into several words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from translator.shell.values import QUOTED, Chunk, Unknown, Value

_OPENS = re.compile(r"<[A-Za-z][^<>]*")
# Nobody describes a value in more words than this.
_LONGEST = 8


def join(values: Sequence[Value]) -> tuple[tuple[Value, ...], list[Unknown]]:
    """The words with each placeholder in one piece again, its text not known, and the placeholders that were joined."""
    out: list[Value] = []
    found: list[Unknown] = []
    at = 0
    while at < len(values):
        end = _end(values, at)
        if end is None:
            out.append(values[at])
        else:
            value, unknown = _joined(values[at : end + 1])
            out.append(value)
            found.append(unknown)
            at = end
        at += 1
    return tuple(out), found


def _end(values: Sequence[Value], at: int) -> int | None:
    """Where the placeholder ends that begins with a word; None where none begins there."""
    if not values[at].known or _OPENS.fullmatch(values[at].text) is None:
        return None
    for end in range(at + 1, min(at + _LONGEST, len(values))):
        text = values[end].text
        head = values[end].chunks[0] if values[end].chunks else None
        if text.startswith("-") or "<" in text or head is None:
            return None
        if ">" in text:
            return end if head.unknown is None and ">" in head.text else None
    return None


def _joined(values: Sequence[Value]) -> tuple[Value, Unknown]:
    first, last = values[0].chunks[0], values[-1].chunks[0]
    length = last.text.index(">") + 1
    text = " ".join([value.text for value in values[:-1]] + [last.text[:length]])
    unknown = Unknown(text, None, f"{text} is a placeholder", first.place())
    rest = [last.cut(length, len(last.text))] if length < len(last.text) else []
    chunk = Chunk(text, first.source, first.offset, unknown, QUOTED)
    return Value([chunk, *rest, *values[-1].chunks[1:]]), unknown
