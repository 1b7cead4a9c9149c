"""What is in force for one file: the command line, over the project's ``pyproject.toml``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from translator.checking.discovery import matches
from translator.errors import UsageError
from translator.project import Project, project

_PREFIX = re.compile(r"[RSLDMP]\d{0,3}")
# What cannot be read or is no configuration is told whatever is selected.
ALWAYS = ("R040", "R041", "R044")


@dataclass(frozen=True, slots=True)
class Settings:
    """How one file is read, and which findings are told."""

    framework: str | None = None
    world_size: int | None = None
    model: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    positional: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    gpu: str | None = None

    def tells(self, code: str) -> bool:
        """Whether findings of a code are told."""
        if code in ALWAYS:
            return True
        return (not self.select or code.startswith(self.select)) and not (self.ignore and code.startswith(self.ignore))


class Chooser:
    """Settings by file: what the command line says (``said``) over what the project says."""

    def __init__(self, said: Settings) -> None:
        self._said = said
        self._projects: dict[str, Project] = {}

    def project_of(self, name: str) -> Project:
        """The project that a file (or ``-``) belongs to. Raises UsageError for a table that cannot be meant."""
        folder = os.curdir if name == "-" else os.path.dirname(name) or os.curdir
        found = self._projects.get(folder)
        if found is None:
            found = self._projects[folder] = project(Path(folder))
            for what, codes in (("select", found.select), ("ignore", found.ignore)):
                prefixes(codes, f"{found.folder}/pyproject.toml: {what}")
        return found

    def excluded(self, name: str) -> bool:
        """Whether the project leaves out a file or folder."""
        home = self.project_of(name)
        return bool(home.exclude) and any(matches(pattern, _inside(name, home)) for pattern in home.exclude)

    def of(self, name: str) -> Settings:
        """The settings of a file. Raises UsageError."""
        from translator.api import SPECS
        from translator.frameworks import resolve, with_version

        home, said = self.project_of(name), self._said
        framework, world_size, model = None, home.world_size, None
        variables: dict[str, str] = {}
        positional: tuple[str, ...] = ()
        targets, ignore = home.targets, [*home.ignore, *said.ignore]
        for entry in home.files if home.files and name != "-" else ():
            if not matches(entry.path, _inside(name, home)):
                continue
            framework, world_size = entry.framework or framework, entry.world_size or world_size
            model = entry.model or model
            variables |= entry.variables
            positional = positional if entry.positional is None else entry.positional
            ignore += entry.ignore
            targets = targets if entry.targets is None else entry.targets
        wanted = [
            to if "@" in to or to in SPECS else with_version(to, None, home.versions) for to in said.targets or targets
        ]
        for address in (*wanted, *([framework] if framework else [])):
            if address not in SPECS:
                resolve(address)
        return Settings(
            said.framework or framework,
            said.world_size or world_size,
            said.model or model,
            {**variables, **said.variables},
            positional,
            tuple(dict.fromkeys(wanted)),
            said.select or home.select,
            tuple(prefixes(ignore, "ignore")),
            said.gpu or home.gpu,
        )


def _inside(name: str, home: Project) -> str:
    """A path as the patterns of a project see it."""
    return os.path.relpath(os.path.abspath(name), home.folder) if home.folder is not None else name


def prefixes(words: Sequence[str], option: str) -> tuple[str, ...]:
    """Codes and beginnings of codes, from words such as ``R,S1``. Raises UsageError for what can begin no code."""
    found = [part.strip().upper() for word in words for part in word.split(",") if part.strip()]
    for part in found:
        if _PREFIX.fullmatch(part) is None:
            raise UsageError(f"{option}: {part!r} is no code, nor how one begins", fix="such as R014, P5 or D")
    return tuple(found)
