"""Reading the user's files, safely: bounded size, text only, nothing executed."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from translator.errors import SourceError

MAX_SOURCE_BYTES = 4 * 1024 * 1024
HINT = "# ttx:"
# Where a shell puts the pipe of <(command); a named pipe elsewhere may never have a writer.
_PIPES = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


@dataclass(frozen=True, slots=True)
class Source:
    """One text to read: its name as the user gave it, and where siblings may be found.

    ``function`` is what a name such as ``configs.py:llama3_8b`` picks out of the file.
    """

    name: str
    text: str
    folder: Path | None = None
    siblings: dict[str, str] = field(default_factory=dict)
    function: str | None = None

    def read_sibling(self, path: str) -> str | None:
        """The text of a file named by this one; None when it is absent, or not below the same folder."""
        if path in self.siblings:
            return self.siblings[path]
        if self.folder is None or "\x00" in path:
            return None
        root = self.folder.resolve()
        try:
            target = (root / path).resolve()
            if not target.is_file() or not target.is_relative_to(root):
                return None
            return load(str(target)).text
        except (OSError, RuntimeError, ValueError, SourceError):
            return None


def load(name: str) -> Source:
    """Read a file, or standard input for ``-``; ``FILE.py:FUNCTION`` names a function in a file.

    Raises SourceError on anything that is no text of bounded size.
    """
    if name == "-":
        if sys.stdin is None:
            raise SourceError("standard input is closed")
        try:
            data = sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1)
        except OSError as error:
            raise SourceError(f"cannot read standard input: {error.strerror}") from None
        return Source("<stdin>", decode(data, "<stdin>"))
    path, _, function = name.rpartition(":")
    if path.endswith(".py") and function.isidentifier() and not os.path.exists(name):
        return replace(load(path), function=function)
    try:
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise SourceError(f"{name} is a folder, not a configuration file")
        if not (stat.S_ISREG(mode) or (stat.S_ISFIFO(mode) and name.startswith(_PIPES))):
            raise SourceError(f"{name} is no regular file", fix="pipe it in, and name - as the source")
        with open(name, "rb") as stream:
            data = stream.read(MAX_SOURCE_BYTES + 1)
    except FileNotFoundError:
        raise SourceError(f"no such file: {name}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(f"cannot read {name}: {reason}") from None
    return Source(name, decode(data, name), Path(name).parent)


def decode(data: bytes, name: str) -> str:
    """UTF-8 text (a byte order mark is dropped) of at most `MAX_SOURCE_BYTES`; SourceError otherwise."""
    if len(data) > MAX_SOURCE_BYTES:
        raise SourceError(
            f"{name} is larger than {MAX_SOURCE_BYTES // 2**20} MiB; a training configuration is far smaller"
        )
    if not data.removeprefix(b"\xef\xbb\xbf").strip():
        raise SourceError(f"{name} is empty")
    if b"\x00" in data:
        raise SourceError(f"{name} is binary, not a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{name} is not UTF-8 text (line {line})") from None


def hints(text: str) -> dict[str, list[str]]:
    """What comments of the form ``# ttx: key=value ...`` say: the values by key, in order."""
    found: dict[str, list[str]] = {}
    at = text.find(HINT)
    while at >= 0:
        end = text.find("\n", at)
        for word in text[at + len(HINT) : end if end >= 0 else len(text)].split():
            key, equals, value = word.partition("=")
            if equals and value:
                found.setdefault(key, []).append(value)
        at = text.find(HINT, at + len(HINT))
    return found
