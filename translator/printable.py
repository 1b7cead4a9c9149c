"""Text that is safe to show: what a file says must not steer the terminal, nor leave its line."""

from __future__ import annotations

import sys

# Directional and invisible marks can make text read as something else (see Unicode TR36); U+2028 and U+2029 end lines.
_INVISIBLE = (0x061C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_NAMES = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_TABLE = {code: _NAMES.get(code, _escape(code)) for code in (*_CONTROLS, *_INVISIBLE)}


def one_line(text: str, limit: int | None = None) -> str:
    """``text`` with control characters, lone surrogates and invisible marks escaped; cut to ``limit`` characters."""
    if limit is not None and len(text) > limit:
        text = f"{text[: limit - 3]}..."
    if not text.isprintable():  # a blank is printable, a line end or an escape sequence is not
        text = text.translate(_TABLE).encode("utf-8", "backslashreplace").decode()
    return text


def say(text: str = "") -> None:
    """One line for the person, on standard error."""
    print(one_line(text), file=sys.stderr)
