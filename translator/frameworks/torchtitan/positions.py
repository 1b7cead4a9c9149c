"""Where the keys of a TOML text stand, and its comments: by the grammar, so dotted, quoted and inline keys count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node

Path = tuple[str, ...]
Span = tuple[int, int, int, int]
_KEYS = frozenset({"bare_key", "quoted_key", "dotted_key"})


class Positions:
    """Spans (line, column, end line, end column; from 1, in characters) of keys by path, and of comments."""

    __slots__ = ("comments", "keys")

    def __init__(self) -> None:
        self.keys: dict[Path, Span] = {}
        self.comments: list[tuple[str, int]] = []


def locate(text: str) -> Positions:
    """Positions of all keys and comments of a TOML text that parses; elements of arrays share their array's path."""
    import tree_sitter_toml
    from tree_sitter import Language, Parser

    data = text.encode()
    lines = data.split(b"\n")
    root = Parser(Language(tree_sitter_toml.language())).parse(data).root_node
    found = Positions()
    pending: list[tuple[Node, Path]] = [(root, ())]
    while pending:
        node, above = pending.pop()
        path = above
        for child in node.children:
            if child.type in _KEYS and path is above:
                parts = tuple(_parts(child))
                for depth in range(len(parts)):
                    found.keys.setdefault((*above, *parts[: depth + 1]), _span(child, lines))
                path = (*above, *parts)
            elif child.type == "comment":
                found.comments.append((_text(child), child.start_point[0] + 1))
            elif child.child_count:
                pending.append((child, path))
    return found


def _text(node: Node) -> str:
    return (node.text or b"").decode().rstrip("\r")


def _parts(node: Node) -> Iterator[str]:
    """The plain names of a key, quotes and escapes resolved."""
    stack = [node]
    while stack:
        inner = stack.pop()
        if inner.type == "dotted_key":
            stack.extend(reversed([child for child in inner.children if child.type in _KEYS]))
        else:
            written = _text(inner)
            yield _unquote(written) if written[:1] in {'"', "'"} else written


def _unquote(written: str) -> str:
    if written.startswith("'"):
        return written[1:-1]
    if "\\" not in written:
        return written[1:-1]
    import tomllib

    return next(iter(tomllib.loads(f"{written} = 0")))


def _span(node: Node, lines: list[bytes]) -> Span:
    (row, column), (end_row, end_column) = node.start_point, node.end_point
    return row + 1, _column(lines[row], column), end_row + 1, _column(lines[end_row], end_column)


def _column(line: bytes, offset: int) -> int:
    return len(line[:offset].decode(errors="replace")) + 1


def flat_items(table: dict[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value of nested tables with its path; an empty table is a value."""
    stack: list[tuple[Path, dict[str, Any]]] = [(above, table)]
    while stack:
        path, inner = stack.pop()
        nested = []
        for key, value in inner.items():
            here = (*path, key)
            if isinstance(value, dict) and value:
                nested.append((here, value))
            else:
                yield here, value
        stack.extend(reversed(nested))
