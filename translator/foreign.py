"""Files that people have at hand and that are no configuration, so that the error can say so."""

from __future__ import annotations

from translator.source import Source

_ELSEWHERE = ('"train_batch_size"', '"train_micro_batch_size_per_gpu"', '"zero_optimization"')
_HUGGING_FACE = ('"architectures"', '"model_type"', '"transformers_version"')
_LOOKED_AT = 200_000


def kind(source: Source) -> str | None:
    """What the text is, when it is nothing that a reader exists for; cheap, by name and telltale keys."""
    name, text = source.name.lower(), source.text[:_LOOKED_AT]
    if name.endswith((".pyi", ".ipynb")) or (name.endswith(".py") and "torchtitan" not in source.text):
        return "a Python program that configures no torchtitan"
    model = any(key in text for key in _HUGGING_FACE) and not any(key in text for key in _ELSEWHERE)
    if model and text.lstrip()[:1] == "{":
        return "a Hugging Face model, which is not a configuration of its own: give it to one with --model"
    return None
