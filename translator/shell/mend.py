"""Keeps the grammar from joining several assignments on one line with the command on the next.

tree-sitter-bash reads ``TP=4 PP=2``, a line break and ``torchrun ...`` as one command whose environment the two
assignments are. The break that the grammar overlooked is made a semicolon, which means the same to bash.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

_NAME = rb"[A-Za-z_]\w{0,99}\+?="
_SUSPECT = re.compile(
    rb"^[ \t]{0,99}(?:[^\n]{0,99}\b(?:then|do|else) )?" + _NAME + rb"[^\n]*?[ \t\"')][ \t]{0,99}" + _NAME, re.MULTILINE
)
_BREAK = re.compile(rb"[ \t]*(?:#[^\n]*)?\r?\n")


def mended(data: bytes, root: Tree) -> bytes | None:
    """``data`` with a semicolon after each assignment that ends its line within a command; None without any."""
    if _SUSPECT.search(data) is None:
        return None
    breaks = _breaks(data, root)
    if not breaks:
        return None
    text = bytearray(data)
    for offset in breaks:
        text[offset : offset + 1] = b";"
    return bytes(text)


def _breaks(data: bytes, root: Tree) -> list[int]:
    """Offsets right after assignments that are the last word of their line, and still part of a command."""
    found: list[int] = []
    stack = [root]
    while stack:
        node = stack.pop()
        children = node.children
        if node.type == "command" and children and children[0].type == "variable_assignment":
            for child in children:
                if child.type == "command_name":
                    break
                if child.type == "variable_assignment" and _BREAK.match(data, child.end_byte):
                    found.append(child.end_byte)
        stack.extend(children)
    return found
