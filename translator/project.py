"""What a project's ``pyproject.toml`` says about ttx.

[tool.ttx]
FRAMEWORK = "0.3.0"               # the version to write
targets = ["FRAMEWORK"]           # ttx check compares with these
gpu = "h100-80gb"
world-size = 64
select = ["R", "S"]
ignore = ["P501"]
exclude = ["third_party/**"]

[[tool.ttx.files]]                # for the files that a pattern names; later entries win
path = "legacy/*.sh"
from = "FRAMEWORK@0.16.0"
set = { NNODES = "4" }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from translator.errors import UsageError

FILE = "pyproject.toml"
_TABLE = b"tool.ttx"
MAX_BYTES = 1024 * 1024

# Key -> the type that it takes, with the words for it.
_TEXT, _NUMBER, _LIST = (str, "text"), (int, "a whole number of 1 or more"), (list, "a list of texts")
_VARIABLES = (dict, "a table of environment variables")
_PROJECT = {
    "targets": _LIST,
    "gpu": _TEXT,
    "world-size": _NUMBER,
    "select": _LIST,
    "ignore": _LIST,
    "exclude": _LIST,
    "files": (list, "an array of tables"),
}
_FILES = {
    "path": _TEXT,
    "from": _TEXT,
    "world-size": _NUMBER,
    "model": _TEXT,
    "set": _VARIABLES,
    "args": _LIST,
    "ignore": _LIST,
    "targets": _LIST,
}


@dataclass(frozen=True, slots=True)
class FileSettings:
    """What an entry of ``[[tool.ttx.files]]`` says about the files that match ``path``; None where it says nothing."""

    path: str
    framework: str | None = None
    world_size: int | None = None
    model: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    positional: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    targets: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """``[tool.ttx]``; ``folder`` is where its file stands, and patterns are relative to it."""

    folder: Path | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    gpu: str | None = None
    world_size: int | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    files: tuple[FileSettings, ...] = ()


def target_versions(folder: Path | None = None) -> dict[str, str]:
    """Framework -> the version to write, from the nearest ``pyproject.toml`` at or above a folder (the current one).

    Empty where there is none, or where it says nothing about ttx. Raises UsageError for a table that cannot be meant.
    """
    return dict(project(folder).versions)


def project(folder: Path | None = None) -> Project:
    """What the nearest ``pyproject.toml`` at or above a folder (the current one) says. Raises UsageError."""
    return _project(Path.cwd() if folder is None else Path.cwd() / folder)


def _project(start: Path) -> Project:
    for parent in (start, *start.parents):
        path = parent / FILE
        try:
            if not path.is_file() or path.stat().st_size > MAX_BYTES:
                continue
            data = path.read_bytes()
        except OSError:
            continue
        return _read(data, path) if _TABLE in data else Project()
    return Project()


def _read(data: bytes, path: Path) -> Project:
    import tomllib

    try:
        tool: Any = tomllib.loads(data.decode()).get("tool", {})
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    table = tool.get("ttx", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{path}: [tool.ttx] must be a table")
    where = f"{path}: [tool.ttx]"
    own = {key: value for key, value in table.items() if key in _PROJECT}
    _demand(own, _PROJECT, where)
    return Project(
        path.parent,
        _versions({key: value for key, value in table.items() if key not in _PROJECT}, where),
        targets=tuple(own.get("targets", ())),
        gpu=own.get("gpu"),
        world_size=own.get("world-size"),
        select=tuple(own.get("select", ())),
        ignore=tuple(own.get("ignore", ())),
        exclude=tuple(own.get("exclude", ())),
        files=tuple(_file(entry, f"{path}: [[tool.ttx.files]]") for entry in own.get("files", ())),
    )


def _versions(table: Mapping[str, Any], where: str) -> dict[str, str]:
    """The keys that are names of frameworks. Others' frameworks are only looked for where a name is none of ours."""
    from translator import frameworks

    for key, value in table.items():
        if key not in frameworks.BUILT_IN and key not in frameworks.names():
            raise _unknown(key, (*_PROJECT, *frameworks.names()), where)
        if not isinstance(value, str):
            raise UsageError(f"{where} {key} must be a version, as text", fix=f'write {key} = "VERSION"')
    return dict(table)


def _file(entry: Any, where: str) -> FileSettings:
    if not isinstance(entry, dict) or "path" not in entry:
        raise UsageError(f"{where} needs a path", fix='write path = "configs/*.sh"')
    where = f"{where} path = {entry['path']!r}:"
    for key in entry:
        if key not in _FILES:
            raise _unknown(key, _FILES, where)
    _demand(entry, _FILES, where)
    return FileSettings(
        entry["path"],
        entry.get("from"),
        entry.get("world-size"),
        entry.get("model"),
        entry.get("set", {}),
        tuple(entry["args"]) if "args" in entry else None,
        tuple(entry.get("ignore", ())),
        tuple(entry["targets"]) if "targets" in entry else None,
    )


def _demand(table: Mapping[str, Any], known: Mapping[str, tuple[type, str]], where: str) -> None:
    """See that every value has its type. Raises UsageError."""
    for key, value in table.items():
        kind, words = known[key]
        fits = isinstance(value, kind) and not isinstance(value, bool)
        if kind is int:
            fits = fits and 1 <= value < 2**31
        elif kind is list and key != "files":
            fits = fits and all(isinstance(item, str) for item in value)
        elif kind is dict:
            fits = fits and all(isinstance(item, str) for item in value.values())
        if not fits:
            raise UsageError(f"{where} {key} must be {words}, not {value!r}"[:300])


def _unknown(key: str, known: Any, where: str) -> UsageError:
    from translator.names import nearest

    near = nearest(key, known, count=1) or sorted(known)
    return UsageError(f"{where} has no key {key!r}", fix=f"nearest: {', '.join(near)}")
