"""The model that the person names: a ``config.json``, a folder with one, or an architecture of ``fixtures/models``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from translator.errors import UsageError
from translator.frameworks.deepspeed.syntax import Companion
from translator.resources import fixture_path
from translator.source import load


def find(name: str) -> Companion:
    """The text of a model's configuration. Raises UsageError with the known names, SourceError for a bad file."""
    path = Path(name)
    if path.is_dir():
        path = path / "config.json"
    if path.is_file():
        return Companion(str(path), load(str(path)).text)
    known = names()
    if name not in known:
        raise UsageError(
            f"--model {name}: no such file or folder, and no architecture of this name",
            fix=f"architectures: {', '.join(known)}",
        )
    from translator.frameworks.deepspeed import hf_models

    return Companion(f"{name}/config.json", json.dumps(hf_models.write(architecture(name)).config))


def names() -> tuple[str, ...]:
    """The architectures that are known by name."""
    return tuple(sorted(path.stem for path in fixture_path("models").glob("*.yaml")))


def architecture(name: str) -> dict[str, Any]:
    """The leaves of a named architecture, with their prefix."""
    import yaml

    document = yaml.safe_load(fixture_path("models", f"{name}.yaml").read_text(encoding="utf-8"))
    flat: dict[str, Any] = {}

    def walk(section: dict[str, Any], prefix: str) -> None:
        for key, value in section.items():
            if isinstance(value, dict):
                walk(value, f"{prefix}{key}.")
            else:
                flat[f"{prefix}{key}"] = value

    walk(document, "")
    return flat
