"""Python expressions as text, laid out as ruff and black lay them out: on one line where they fit, else exploded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

WIDTH = 88
INDENT = "    "


@dataclass(frozen=True, slots=True)
class Code:
    """Text that is written as it stands; never the user's."""

    text: str


@dataclass(frozen=True, slots=True)
class Argument:
    """A keyword argument with a comment behind it; arguments with comments stand on lines of their own."""

    name: str
    value: Any
    comment: str = ""


@dataclass(slots=True)
class Call:
    """A call with keyword arguments (``positional`` come first)."""

    function: str
    arguments: list[Argument] = field(default_factory=list)
    positional: list[Any] = field(default_factory=list)

    def add(self, name: str, value: Any, comment: str = "") -> None:
        """One more keyword argument."""
        self.arguments.append(Argument(name, value, comment))


def literal(value: object) -> str:
    """A plain value as Python text; strings are inert whatever they hold, in double quotes unless that escapes more."""
    if isinstance(value, str):
        text = ascii(value) if not value.isprintable() else repr(value)
        return f'"{text[1:-1]}"' if text.startswith("'") and '"' not in text and "\\'" not in text else text
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def plain_comment(text: str) -> str:
    """A comment of one line: nothing in it ends the line."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


def layout(value: object, indent: str = "", used: int = 0) -> str:
    """An expression; ``indent`` is that of its first line, ``used`` the columns before and after it on that line."""
    flat = _flat(value)
    if flat is not None and (_is_atom(value) or len(indent) + used + len(flat) <= WIDTH):
        return flat
    inner = indent + INDENT
    if isinstance(value, Call):
        lines = [f"{inner}{layout(item, inner, 1)}," for item in value.positional]
        for argument in value.arguments:
            comment = f"  # {plain_comment(argument.comment)}" if argument.comment else ""
            text = layout(argument.value, inner, len(argument.name) + 2 + len(comment))
            first, newline, rest = text.partition("\n")
            # Behind an exploded value the comment stands on its opening line.
            head = f"{inner}{argument.name}={first}"
            lines.append(f"{head}{comment}{newline}{rest}," if newline else f"{head},{comment}")
        return _exploded(f"{value.function}(", lines, ")", indent)
    if isinstance(value, Mapping):
        pairs = [(f"{literal(key)}: ", item) for key, item in value.items()]
        return _exploded(
            "{", [f"{inner}{head}{layout(item, inner, len(head) + 1)}," for head, item in pairs], "}", indent
        )
    if isinstance(value, (list, tuple)):
        opening, closing = ("[", "]") if isinstance(value, list) else ("(", ")")
        return _exploded(opening, [f"{inner}{layout(item, inner, 1)}," for item in value], closing, indent)
    return flat if flat is not None else literal(value)


def _is_atom(value: object) -> bool:
    """Whether there is nothing inside that could stand on lines of its own."""
    if isinstance(value, Call):
        return not value.arguments and not value.positional
    return not isinstance(value, (Mapping, list, tuple)) or not value


def _exploded(opening: str, lines: Iterable[str], closing: str, indent: str) -> str:
    return "\n".join([opening, *lines, f"{indent}{closing}"])


def _flat(value: object) -> str | None:
    """The expression on one line; None when a comment must stand in it."""
    if isinstance(value, Code):
        return value.text
    if isinstance(value, Call):
        parts = [_flat(item) for item in value.positional]
        for argument in value.arguments:
            text = None if argument.comment else _flat(argument.value)
            parts.append(None if text is None else f"{argument.name}={text}")
        known = [part for part in parts if part is not None]
        return f"{value.function}({', '.join(known)})" if len(known) == len(parts) else None
    if isinstance(value, Mapping):
        pairs = [(literal(key), _flat(item)) for key, item in value.items()]
        return None if any(text is None for _, text in pairs) else "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}"
    if isinstance(value, (list, tuple)):
        items = [_flat(item) for item in value]
        if any(item is None for item in items):
            return None
        inside = ", ".join(item for item in items if item is not None)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(items) == 1 else f"({inside})"
    return literal(value)
