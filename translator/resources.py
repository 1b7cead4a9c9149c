"""Finds the data folders (schemas, templates, fixtures), in a wheel and in a checkout alike."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def data_root() -> Path:
    """The folder that holds ``schemas``, ``templates`` and ``fixtures``.

    A wheel carries them under ``translator/_data``; an editable install uses the repository root.
    """
    packaged = Path(__file__).parent / "_data"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent


def schema_path(*parts: str) -> Path:
    """Path of a generated catalogue or table below ``schemas``."""
    return data_root().joinpath("schemas", *parts)


def template_dir() -> Path:
    """The folder of Jinja2 templates."""
    return data_root() / "templates"


def fixture_path(*parts: str) -> Path:
    """Path of a fixture (models, hardware, examples)."""
    return data_root().joinpath("fixtures", *parts)
