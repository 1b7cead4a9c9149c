"""A finding with the file that it is about."""

from __future__ import annotations

from dataclasses import dataclass

from translator.findings import Finding


@dataclass(frozen=True, slots=True)
class Told:
    """A finding, and the file whose check found it."""

    source: str
    finding: Finding

    @property
    def file(self) -> str:
        """The file that the finding is about: where its place is, else the one that was checked."""
        return self.finding.place.file if self.finding.place is not None else self.source
