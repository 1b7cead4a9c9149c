"""Brace expansion: ``{a,b}`` and ``{1..4}``, before anything else happens to a word."""

from __future__ import annotations

import re

from translator.shell.lexer import Lit, Part, RawWord

MAX_WORDS = 10_000
"""A word that would become more words than this is left as it is."""

_RANGE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?\Z")
Items = list[Part]


def expand_braces(word: RawWord) -> list[RawWord]:
    """The words that a word stands for; itself in nearly all cases."""
    for part in word.parts:
        if type(part) is Lit and not part.quoted and "{" in part.text:
            break
    else:
        return [word]
    try:
        variants = _expand(_characters(word.parts), 0)
    except (_TooManyError, RecursionError):
        return [word]
    return [RawWord(_joined(variant), word.start, word.end) for variant in variants]


class _TooManyError(Exception):
    pass


def _characters(parts: tuple[Part, ...]) -> Items:
    """Parts with every unquoted literal cut into single characters."""
    items: Items = []
    for part in parts:
        if type(part) is Lit and not part.quoted:
            items.extend(Lit(char, part.start + at, part.start + at + 1, False) for at, char in enumerate(part.text))
        else:
            items.append(part)
    return items


def _joined(items: Items) -> tuple[Part, ...]:
    parts: list[Part] = []
    for item in items:
        last = parts[-1] if parts else None
        if type(item) is Lit and not item.quoted and type(last) is Lit and not last.quoted and last.end == item.start:
            parts[-1] = Lit(last.text + item.text, last.start, item.end, False)
        else:
            parts.append(item)
    return tuple(parts)


def _char(item: Part) -> str:
    return item.text if type(item) is Lit and not item.quoted else ""


def _expand(items: Items, depth: int) -> list[Items]:
    if depth > 20:
        raise _TooManyError
    start = 0
    while True:
        opening = next((i for i in range(start, len(items)) if _char(items[i]) == "{"), None)
        if opening is None:
            return [items]
        choices, close = _choices(items, opening, depth)
        if choices is not None:
            break
        start = opening + 1
    tails = _expand(items[close + 1 :], depth + 1)
    if len(choices) * len(tails) > MAX_WORDS:
        raise _TooManyError
    head = items[:opening]
    return [head + choice + tail for choice in choices for tail in tails]


def _choices(items: Items, opening: int, depth: int) -> tuple[list[Items] | None, int]:
    level, commas = 1, [opening]
    for at in range(opening + 1, len(items)):
        char = _char(items[at])
        if char == "{":
            level += 1
        elif char == "," and level == 1:
            commas.append(at)
        elif char == "}":
            level -= 1
            if level == 0:
                return _alternatives(items, commas, at, depth), at
    return None, opening


def _alternatives(items: Items, commas: list[int], close: int, depth: int) -> list[Items] | None:
    if len(commas) == 1:
        return _sequence(items[commas[0] + 1 : close])
    result: list[Items] = []
    for low, high in zip(commas, [*commas[1:], close], strict=True):
        result.extend(_expand(items[low + 1 : high], depth + 1))
    return result


def _sequence(items: Items) -> list[Items] | None:
    if not items or any(not _char(item) for item in items):
        return None
    hit = _RANGE.match("".join(_char(item) for item in items))
    if hit is None or hit.group(1).isalpha() != hit.group(2).isalpha():
        return None
    place = items[0].start
    first, last, step_text = hit.groups()
    if first.isalpha():
        low, high = ord(first), ord(last)
    else:
        low, high = int(first[:18]), int(last[:18])
    step = abs(int((step_text or "1")[:18])) or 1
    if abs(high - low) // step >= MAX_WORDS:
        raise _TooManyError
    numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    if first.isalpha():
        texts = [chr(n) for n in numbers]
    else:
        padded = any(len(t.lstrip("-")) > 1 and t.lstrip("-").startswith("0") for t in (first, last))
        width = max(len(first), len(last)) if padded else 0
        texts = [f"{n:0{width}d}" for n in numbers]
    return [[Lit(text, place, place + 1, False)] for text in texts]
