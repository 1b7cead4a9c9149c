"""Architectures of torchtitan: one module per family, its arguments and the neutral leaves joined row by row."""

from __future__ import annotations

from translator.frameworks.torchtitan.models.base import Family, Inexpressible, Leaves, Row

__all__ = ["Family", "Inexpressible", "Leaves", "Row", "families", "family"]

# Names in torchtitan's registries that share a family's arguments: models/llama3_ft/__init__.py:22 and the folders of
# experiments/__init__.py:7-19 (0.2.2, 0.3.0).
_PREFIXES = (
    "simple_fsdp.",
    "compiler_toolkit.",
    "autoparallel.",
    "autoparallel.local_map_",
    "graph_trainer.",
    "torchft.",
)


def families(version: str) -> dict[str, Family]:
    """The families that one version can train, by ``model.name``; empty for a version without named flavors."""
    if version == "0.3.0":
        from translator.frameworks.torchtitan.models import python

        return python.FAMILIES
    from translator.frameworks.torchtitan.models import deepseek_v3, gpt_oss, llama3, llama4, qwen3

    modules = (llama3, llama4, qwen3, deepseek_v3, gpt_oss)
    found = (module.FAMILIES.get(version) for module in modules)
    return {family.name: family for family in found if family is not None}


def family(name: str, version: str) -> Family | None:
    """The family behind a ``model.name``, variants of experiments included; None when it is not a known one."""
    known = families(version)
    if name in known:
        return known[name]
    if name == "llama3_ft":
        return known.get("llama3")
    for prefix in sorted(_PREFIXES, key=len, reverse=True):
        if name.startswith(prefix):
            return known.get(name[len(prefix) :])
    return None
