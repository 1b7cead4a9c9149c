"""Docstrings as documentation: rules and differences are explained by their own."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Any


def title_of(function: Callable[..., Any]) -> str:
    """The first line of a docstring, without its full stop."""
    return cleandoc(function.__doc__ or "").partition("\n")[0].rstrip(".")


def text_of(function: Callable[..., Any]) -> str:
    """A docstring after its first line."""
    return cleandoc(function.__doc__ or "").partition("\n")[2].strip()
