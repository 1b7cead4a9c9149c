"""What a project's ``pyproject.toml`` says about ttx: ``[tool.ttx]``, with target versions by framework.

[tool.ttx]
torchtitan = "0.3.0"
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from translator.errors import UsageError

FILE = "pyproject.toml"
_TABLE = b"tool.ttx"
MAX_BYTES = 1024 * 1024


def target_versions(folder: Path | None = None) -> dict[str, str]:
    """Framework -> the version to write, from the nearest ``pyproject.toml`` at or above a folder (the current one).

    Empty where there is none, or where it says nothing about ttx. Raises UsageError for a table that cannot be meant.
    """
    start = folder or Path.cwd()
    for parent in (start, *start.parents):
        path = parent / FILE
        try:
            if not path.is_file() or path.stat().st_size > MAX_BYTES:
                continue
            data = path.read_bytes()
        except OSError:
            continue
        return _versions(data, path) if _TABLE in data else {}
    return {}


def _versions(data: bytes, path: Path) -> dict[str, str]:
    import tomllib

    try:
        tool: Any = tomllib.loads(data.decode()).get("tool", {})
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    table = tool.get("ttx", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise UsageError(f"{path}: [tool.ttx] holds versions by framework", fix='write NAME = "VERSION" for each')
    return {str(name): value for name, value in table.items()}
