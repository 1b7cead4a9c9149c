"""``sed`` as launch scripts use it, to fill a template in: ``sed "s/GBSIZE/${n}/" in.json > out.json``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from translator.shell.values import Value

if TYPE_CHECKING:
    from translator.shell.interp import Interpreter

_LONGEST = 2_000_000
_SHORTEST = len("s/a//")
# What stands for more than itself in a basic regular expression.
_SPECIAL = re.compile(r"[\[\]*^$.\\]")


class Substitution(NamedTuple):
    """One ``s`` command whose pattern is a plain text."""

    pattern: str
    replacement: str
    everywhere: bool


def substitutions(program: str) -> list[Substitution] | None:
    """The commands of a program; None when it does anything else than replace plain texts."""
    found: list[Substitution] = []
    rest = program.strip()
    while rest:
        if len(rest) < _SHORTEST or rest[0] != "s" or rest[1].isalnum() or rest[1] in "\\\n":
            return None
        mark = rest[1]
        parts = re.split(rf"(?<!\\){re.escape(mark)}", rest[2:], maxsplit=2)
        if len(parts) != len(Substitution._fields):
            return None
        flags, semicolon, rest = parts[2].partition(";")
        # A point that is escaped is one; what else stands for more than itself is not done here.
        pattern, replacement = (part.replace(f"\\{mark}", mark) for part in parts[:2])
        bare = pattern.replace("\\.", "")
        plain = bool(pattern) and not _SPECIAL.search(bare) and not re.search(r"[\\&\n]", replacement)
        if not plain or flags.strip() not in {"", "g"}:
            return None
        found.append(Substitution(pattern.replace("\\.", "."), replacement, flags.strip() == "g"))
        rest = rest.strip() if semicolon else ""
    return found


def edited(interp: Interpreter, words: Sequence[Value]) -> str | None:
    """The output of ``sed`` with these arguments; None when that is not known."""
    if not all(word.known for word in words):
        return None
    programs, files, expects = [], [], False
    for word in words:
        if expects:
            programs.append(word.text)
            expects = False
        elif word.text in {"-e", "--expression"}:
            expects = True
        elif word.text.startswith("-"):
            return None
        elif not programs:
            programs.append(word.text)
        else:
            files.append(word.text)
    text = _input(interp, files)
    commands = [substitutions(program) for program in programs]
    if text is None or not commands or len(text) > _LONGEST:
        return None
    lines = text.splitlines(keepends=True)
    for command in commands:
        if command is None:
            return None
        for one in command:
            lines = [line.replace(one.pattern, one.replacement, -1 if one.everywhere else 1) for line in lines]
    edited_text = "".join(lines)
    return edited_text if len(edited_text) <= _LONGEST else None


def _input(interp: Interpreter, files: Sequence[str]) -> str | None:
    if not files:
        return interp.stdin.text if interp.stdin is not None and interp.stdin.known else None
    if len(files) > 1:
        return None
    return interp.text_of(files[0])
