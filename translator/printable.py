"""Text that is safe to show: what a file says must not steer the terminal, nor leave its line."""

from __future__ import annotations

import sys

_NAMES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str, limit: int | None = None) -> str:
    """``text`` with everything escaped that is not printable, cut to ``limit`` characters.

    That covers control characters, line and paragraph ends, lone surrogates, and the invisible and directional marks
    that make a text read as something else.
    """
    if limit is not None and len(text) > limit:
        text = f"{text[: limit - 3]}..."
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    code = ord(character)
    form = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return _NAMES.get(character, form)


def say(text: str = "") -> None:
    """One line for the person, on standard error."""
    print(one_line(text), file=sys.stderr)
