"""Jinja2 for markup: everything that is put into a template is escaped, and a missing name is an error."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from translator.resources import template_dir

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> Environment:
    """The environment for SVG and HTML. Nothing of a user's is ever a template."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(template_dir()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
