"""Files that people have at hand and that are no configuration, so that the error can say so."""

from __future__ import annotations

from collections.abc import Sequence

from translator.source import Source

PROGRAMS = (".py", ".pyi", ".ipynb")
_HUGGING_FACE = ('"architectures"', '"model_type"', '"transformers_version"')
_LOOKED_AT = 200_000


def kind(source: Source, configured: Sequence[str]) -> str | None:
    """What a text is that no reader is sure of, as far as that shows; cheap, by name and telltale keys.

    ``configured`` are the titles of the frameworks that are configured in Python, none of which the source can be for.
    """
    if source.name.lower().endswith(PROGRAMS) and configured:
        return f"a Python program that configures no {' or '.join(configured)}"
    text = source.text[:_LOOKED_AT]
    if text.lstrip()[:1] == "{" and any(key in text for key in _HUGGING_FACE):
        return "a Hugging Face model, which is not a configuration of its own: give it to one with --model"
    return None
