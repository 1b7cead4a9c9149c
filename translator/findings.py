"""Findings: everything that ttx says to a person about a configuration.

Exceptions (``errors``) only stop work. Whatever is worth saying about an option, a value or a
combination of them is a `Finding`: a stable code, a level, a place, and a way out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How serious a finding is; ``error`` means that the framework would refuse or misread."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Place:
    """A span in a source file; lines and columns count from 1, columns in characters."""

    file: str
    line: int
    column: int
    end_line: int | None = None
    end_column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the source that mends a fault and alters nothing else.

    ``place`` spans exactly ``expected`` (end line and end column are set, the end excluded); the change is only made
    where the file holds that text there.
    """

    place: Place
    expected: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing said to a person.

    ``code`` is stable and never reused (families: R0 reading, S1 impossible, L2 loss, D3 difference,
    M4 memory, P5 slow). ``option`` is the native option as written; ``field`` the spec field it is about.
    ``fix`` says what to do; ``edits`` do it, where that is safe.
    """

    code: str
    level: Level
    message: str
    fix: str = ""
    place: Place | None = None
    option: str | None = None
    field: str | None = None
    edits: tuple[Edit, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The stable JSON form."""
        where: dict[str, object] | None = None
        if self.place is not None:
            where = {"file": self.place.file, "line": self.place.line, "column": self.place.column}
        return {
            "code": self.code,
            "level": self.level.value,
            "message": self.message,
            "fix": self.fix,
            "where": where,
            "option": self.option,
            "field": self.field,
        }

    def as_text(self) -> str:
        """One line for a terminal: place, level, code, message, then the way out."""
        head = f"{self.place}: " if self.place else ""
        tail = f" [{self.fix}]" if self.fix else ""
        return f"{head}{self.level.value} {self.code}: {self.message}{tail}"
