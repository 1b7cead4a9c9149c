"""Which files are configurations: by name for those that could be, by content for those that are."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from translator.errors import SourceError
from translator.findings import Finding, Level, Place

SUFFIXES = frozenset(
    {".sh", ".bash", ".slurm", ".sbatch", ".args", ".toml", ".json", ".hjson", ".yaml", ".yml", ".py", ".txt"}
)
# A configuration that a folder holds is no larger; one that is named may be as large as a source is.
MAX_FOUND_BYTES = 1024 * 1024
_SKIPPED = frozenset(
    {
        *(".git", ".hg", ".svn", ".jj", "node_modules", "site-packages", "__pycache__", "__pypackages__"),
        *(".venv", "venv", ".tox", ".nox", ".eggs", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"),
        *(".ipynb_checkpoints", ".cache", ".idea", ".vscode"),
    }
)
_HERE = os.path.join(os.curdir, "")
_MARKER_OF_VENV = "pyvenv.cfg"
_UNREADABLE = "R040"

Excluded = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be a configuration; ``named`` when the person named it, else a folder held it."""

    name: str
    named: bool


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A folder that cannot be looked into, and why."""

    name: str
    reason: str


def candidates(
    paths: Sequence[str], excluded: Excluded, *, skip_unknown: bool = False
) -> Iterator[Candidate | Unreadable]:
    """The files behind ``paths``, each once, in a steady order; folders are searched. `Unreadable` for other folders.

    ``excluded`` is asked about what folders hold, not about what is named; with ``skip_unknown`` what is named is taken
    like what a folder holds.
    """
    seen: set[str] = set()
    for path in paths:
        if path != "-" and os.path.isdir(path):
            found = _walk(path, excluded)
        elif skip_unknown and excluded(path):
            continue
        else:
            found = iter((Candidate(path, not skip_unknown),))
        for item in found:
            key = item.name if item.name == "-" else os.path.abspath(item.name)
            if key not in seen:
                seen.add(key)
                yield item


def _walk(folder: str, excluded: Excluded) -> Iterator[Candidate | Unreadable]:
    """What a folder holds, depth first and by name. Links to folders are not followed: they may go in circles."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield Unreadable(here, error.strerror or str(error))
            continue
        if here != folder and any(entry.name == _MARKER_OF_VENV for entry in found):
            continue
        below: list[str] = []
        for entry in found:
            path = entry.path.removeprefix(_HERE)
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED and not excluded(path):
                        below.append(entry.path)
                elif entry.is_file() and _may_be(entry, path) and not excluded(path):
                    yield Candidate(path, False)
            except OSError:  # a link in circles
                continue
        waiting += reversed(below)


def _may_be(entry: os.DirEntry[str], path: str) -> bool:
    """Whether name and size of a file allow for a configuration."""
    suffix = os.path.splitext(entry.name)[1].lower()
    if suffix not in SUFFIXES and (suffix or not _is_script(path)):
        return False
    return 0 < entry.stat().st_size <= MAX_FOUND_BYTES


def _is_script(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return stream.read(2) == b"#!"
    except OSError:
        return False


def unreadable(reason: str, level: Level = Level.ERROR, place: Place | None = None, fix: str = "") -> Finding:
    """The finding that a file or folder cannot be read."""
    return Finding(_UNREADABLE, level, reason, fix, place)


def matches(pattern: str, path: str) -> bool:
    """Whether a glob pattern (``*``, ``?``, ``[...]``, ``**`` over folders) names a path or a folder above it."""
    return _expression(pattern).fullmatch(path.replace(os.sep, "/")) is not None


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """A pattern without a ``/`` inside is about names wherever they are."""
    stripped = pattern.removeprefix("./").rstrip("/")
    anywhere = "/" not in stripped
    parts: list[str] = []
    at = 0
    while at < len(stripped):
        if stripped.startswith("**/", at):
            parts.append("(?:[^/]+/)*")
            at += 3
        elif stripped.startswith("**", at):
            parts.append(".*")
            at += 2
        else:
            end = stripped.find("]", at + 2) if stripped[at] == "[" else -1
            parts.append(_piece(stripped[at : end + 1] if end > 0 else stripped[at]))
            at = end + 1 if end > 0 else at + 1
    head = "(?:.*/)?" if anywhere else ""
    try:
        return re.compile(f"{head}{''.join(parts)}(?:/.*)?", re.DOTALL)
    except re.error:
        return re.compile(f"{head}{re.escape(stripped)}(?:/.*)?", re.DOTALL)


def _piece(text: str) -> str:
    if text == "*":
        return "[^/]*"
    if text == "?":
        return "[^/]"
    if text.startswith("[") and len(text) > 2:
        inside = text[1:-1].replace("\\", "\\\\")
        return f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(text)


def cannot_be_read(error: SourceError, name: str) -> Finding:
    """A `SourceError` as a finding; its message need not name the file again."""
    message = error.message
    for head in (f"cannot read {name}: ", f"{name}: "):
        message = message.removeprefix(head)
    message = message.removeprefix(f"{name} ")
    return unreadable(message, place=error.place, fix=error.fix)
