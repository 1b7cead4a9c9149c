"""YAML as the nodes that the JSON reader takes, with places, within bounds; nothing is constructed."""

from __future__ import annotations

from typing import Any

from translator.errors import SourceError
from translator.findings import Place
from translator.frameworks.deepspeed.positions_json import Document, Member, Members, Node

MAX_CHARACTERS = 1_000_000
MAX_NODES = 20_000
MAX_DEPTH = 40
_FALSE = {"false", "no", "off"}


class YamlText:
    """A YAML mapping as a `Document`; spans of nodes are indices into ``places``."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.places: list[Place] = []
        self.count = 0
        self.document = Document(self._node(self._compose(text), 0))

    def place(self, start: int, end: int) -> Place:
        """The place of a node."""
        _ = end
        return self.places[start]

    def _compose(self, text: str) -> Any:
        import yaml

        if len(text) > MAX_CHARACTERS:
            raise SourceError(f"{self.path} is larger than any training configuration ({MAX_CHARACTERS} characters)")
        try:
            root: Any = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = Place(self.path, mark.line + 1, mark.column + 1) if mark else None
            raise SourceError(f"not YAML: {error.problem or error.context}", place=place) from None
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise SourceError(f"{self.path} is not YAML: {reason}") from None
        if root is None or root.id != "mapping":
            raise SourceError(f"{self.path} is no YAML mapping")
        return root

    def _mark(self, node: Any) -> int:
        start, end = node.start_mark, node.end_mark
        self.places.append(Place(self.path, start.line + 1, start.column + 1, end.line + 1, end.column + 1))
        return len(self.places) - 1

    def _node(self, node: Any, depth: int) -> Node:
        self.count += 1
        if self.count > MAX_NODES or depth > MAX_DEPTH:
            raise SourceError(f"{self.path} expands to more than a configuration holds")
        at = self._mark(node)
        if node.id == "mapping":
            items: list[Member] = []
            for key, value in node.value:
                if key.id == "scalar":
                    where = self._mark(key)
                    items.append(Member(str(key.value), where, where, self._node(value, depth + 1)))
            return Node(Members(items), at, at)
        if node.id == "sequence":
            return Node([self._node(item, depth + 1) for item in node.value], at, at)
        return Node(_scalar(node), at, at)


def _scalar(node: Any) -> object:
    text, tag = str(node.value), node.tag.rsplit(":", 1)[-1]
    try:
        if tag == "int":
            return int(text.replace("_", ""), 0)
        if tag == "float":
            return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text
    if tag == "bool":
        return text.lower() not in _FALSE
    return None if tag == "null" else text
