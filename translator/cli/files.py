"""Writing results: all files of a result, or none."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from translator.errors import UsageError


def write_files(files: Mapping[Path, str], *, force: bool, keep_mode: bool = False) -> None:
    """Write all files or none: each goes to a temporary file beside its place and is moved in when all are there.

    When a move fails, the ones before it are taken back. A device or pipe (``/dev/stdout``) is written to as it is.
    With ``keep_mode`` a file that is replaced keeps its permissions.
    Raises UsageError when a file exists (without ``force``) or cannot be written.
    """
    places = {path: _place(path) for path in files}
    for path, place in places.items():
        if place.is_dir():
            raise UsageError(f"{path} is a folder")
        if place.is_file() and not force:
            raise UsageError(f"{path} exists", fix="overwrite it with --force")
    job = _Job()
    try:
        for path, text in files.items():
            if _is_special(places[path]):
                path.write_text(text, encoding="utf-8", newline="\n")
            else:
                job.stage(places[path], text, keep_mode=keep_mode)
        job.commit()
    except (OSError, ValueError) as error:
        job.undo()
        reason = getattr(error, "strerror", None) or str(error)
        name = getattr(error, "filename2", None) or getattr(error, "filename", None) or next(iter(files))
        raise UsageError(f"cannot write {job.shown(str(name))}: {reason}") from None
    except BaseException:
        job.undo()
        raise
    job.finish()


def _place(path: Path) -> Path:
    """What a link leads to: that is replaced, not the link."""
    try:
        return Path(os.path.realpath(path))
    except ValueError as error:
        raise UsageError(f"cannot write {path}: {error}") from None


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode)


class _Job:
    """Files on their way, with what is needed to take them back."""

    def __init__(self) -> None:
        self._folders: list[Path] = []
        self._staged: list[tuple[str, Path]] = []
        self._saved: list[tuple[Path, str | None]] = []
        self._names: dict[str, str] = {}

    def stage(self, path: Path, text: str, *, keep_mode: bool) -> None:
        missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir()
            self._folders.append(folder)
        descriptor, temporary = _temporary(path)
        self._staged.append((temporary, path))
        self._names[temporary] = str(path)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            mode = (0o777 if path.suffix == ".sh" else 0o666) & ~_umask()
            os.chmod(temporary, stat.S_IMODE(path.stat().st_mode) if keep_mode and path.exists() else mode)

    def commit(self) -> None:
        for temporary, path in self._staged:
            backup = None
            if path.exists():
                backup = f"{temporary}.old"
                os.link(path, backup)
            self._saved.append((path, backup))
            os.replace(temporary, path)

    def undo(self) -> None:
        for path, backup in reversed(self._saved):
            with suppress(OSError):
                if backup is not None:
                    os.rename(backup, path)
                elif not any(os.path.exists(temporary) for temporary, place in self._staged if place == path):
                    path.unlink()
        self._remove([temporary for temporary, _ in self._staged] + [f"{name}.old" for name, _ in self._staged])
        for folder in reversed(self._folders):
            with suppress(OSError):
                folder.rmdir()

    def finish(self) -> None:
        self._remove([backup for _, backup in self._saved if backup is not None])

    def shown(self, name: str) -> str:
        """The user's name for a temporary file."""
        return self._names.get(name, name)

    @staticmethod
    def _remove(names: list[str]) -> None:
        for name in names:
            with suppress(OSError):
                os.unlink(name)


def _temporary(path: Path) -> tuple[int, str]:
    # Not tempfile: it loads a third of what a conversion needs to start.
    for attempt in range(100):
        name = path.parent / f".{path.name[:100]}.{os.getpid()}-{attempt}"
        with suppress(FileExistsError):
            return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600), str(name)
    raise FileExistsError(17, "no free temporary name", str(path))


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
