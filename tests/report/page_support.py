"""A page taken apart, for tests of what it holds and how it is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "hr", "line", "polyline"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def all(self, tag: str | None = None) -> list[Element]:
        """This element and all below, in the order of the page."""
        found = [self] if tag is None or self.tag == tag else []
        for child in self.children:
            found += child.all(tag)
        return found

    @property
    def text(self) -> str:
        """Its text, with that of what is below it at the end."""
        return "".join([*self.texts, *(child.text for child in self.children)])


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {})
        self._open = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        element = Element(tag, dict(attrs), self._open)
        self._open.children.append(element)
        if tag not in VOID:
            self._open = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.children.append(Element(tag, dict(attrs), self._open))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.tag == tag, f"</{tag}> ends <{self._open.tag}>"
        assert self._open.parent is not None
        self._open = self._open.parent

    def handle_data(self, data: str) -> None:
        self._open.texts.append(data)


def parsed(page: str) -> Element:
    """The page as a tree; every element that needs an end has one, in order."""
    parser = _Parser()
    parser.feed(page)
    parser.close()
    assert parser._open is parser.root
    return parser.root
