"""Files side by side, and the links between an option and what it became."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from translator.findings import Place
from translator.printable import one_line
from translator.report.model import CodeFile, CodeLine, Link

MAX_LINES, MAX_COLUMNS, MAX_LINKS = 1500, 1000, 4
_AROUND = 2


@dataclass
class Files:
    """The files of one side, and what is said about their lines; ``key`` makes anchors unique on the page.

    Of a file that is too long to be shown only the marked lines are, so that marks come before links.
    """

    key: str
    texts: Mapping[str, str]
    links: dict[tuple[str, int], dict[str, Link]] = field(default_factory=dict)
    marks: dict[tuple[str, int], str] = field(default_factory=dict)
    _shown: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._order = {name: index for index, name in enumerate(self.texts)}
        self._lines = {name: said.removesuffix("\n").split("\n") for name, said in self.texts.items()}

    def link(self, place: Place | None) -> Link | None:
        """A place as a link; it has an anchor where its line is one of the files."""
        if place is None:
            return None
        return Link(one_line(f"{place.file}:{place.line}", 200), self._anchor(place))

    def _anchor(self, place: Place) -> str:
        known = self._order.get(place.file)
        if known is None or place.line not in self._chosen(place.file):
            return ""
        return f"{self.key}{known}-{place.line}"

    def connect(self, place: Place, other: Link) -> None:
        """Say that a line has a counterpart."""
        if other.anchor:
            self.links.setdefault((place.file, place.line), {}).setdefault(other.anchor, other)

    def mark(self, place: Place, mark: str) -> None:
        """Say what became of a line; the worst is kept."""
        key = (place.file, place.line)
        self.marks[key] = max(self.marks.get(key, ""), mark, key=_MARKS.index)

    def files(self) -> list[CodeFile]:
        """The files, those that are too long cut to what is spoken of."""
        return [self._file(name) for name in self.texts]

    def _file(self, name: str) -> CodeFile:
        lines = self._lines[name]
        chosen = self._chosen(name)
        found = [
            CodeLine(
                number,
                _cut(lines[number - 1]),
                f"{self.key}{self._order[name]}-{number}",
                list(self.links.get((name, number), {}).values())[:MAX_LINKS],
                self.marks.get((name, number), ""),
            )
            for number in sorted(chosen)
        ]
        return CodeFile(one_line(name, 200), found, len(lines) - len(found))

    def _chosen(self, name: str) -> set[int]:
        if name not in self._shown:
            length = len(self._lines[name])
            short = length <= MAX_LINES
            self._shown[name] = set(range(1, length + 1)) if short else self._spoken_of(name, length)
        return self._shown[name]

    def _spoken_of(self, name: str, count: int) -> set[int]:
        ordered = sorted(
            (key for key in self.marks if key[0] == name), key=lambda key: (-_MARKS.index(self.marks[key]), key[1])
        )
        chosen: set[int] = set()
        for _, number in ordered:
            if len(chosen) >= MAX_LINES:
                break
            chosen |= set(range(max(1, number - _AROUND), min(count, number + _AROUND) + 1))
        return chosen or set(range(1, MAX_LINES + 1))


_MARKS = ("", "kept", "loss", "training")


def _cut(line: str) -> str:
    more = len(line) - MAX_COLUMNS
    shown = one_line(line.expandtabs(4).rstrip()[:MAX_COLUMNS])
    return f"{shown} ... ({more} more characters)" if more > 0 else shown
