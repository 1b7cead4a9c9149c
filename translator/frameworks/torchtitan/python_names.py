"""Names of generated modules and functions, and their imports.

torchtitan takes ``--module M --config F``: it imports ``M.config_registry``, else ``M`` itself, and calls ``F``; names
of its own models and experiments lead into the package instead (``config/manager.py:100-160`` at 0.3.0).
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable, Mapping

# torchtitan/models/__init__.py and torchtitan/experiments/__init__.py of 0.3.0.
BUILT_IN = frozenset(
    (
        "deepseek_v3",
        "flux",
        "gpt_oss",
        "kimi_k2_7",
        "llama3",
        "muse_glimmer",
        "qwen3",
        "qwen3_5",
        "transformers_modeling_backend",
        "rl",
        "alphabet_sort",
        "dapo_math",
        "search_r1",
        "graph_trainer",
        "autoparallel",
        "torchft",
    )
)
# A module beside the launch line comes before these on the import path.
_INSTALLED = frozenset(
    (
        "torch",
        "torchtitan",
        "torchao",
        "torchdata",
        "torchvision",
        "datasets",
        "tokenizers",
        "tyro",
        "numpy",
        "tensorboard",
        "wandb",
        "triton",
        "safetensors",
        "einops",
        "PIL",
        "fsspec",
        "pyarrow",
        "pandas",
        "requests",
        "huggingface_hub",
        "spmd_types",
        "tiktoken",
        "regex",
        "yaml",
        "packaging",
    )
)
# Names that say nothing of what is trained.
_GENERIC = frozenset(
    (
        "train",
        "run",
        "launch",
        "config",
        "main",
        "script",
        "pretrain",
        "pretrain_gpt",
        "job",
        "start",
        "submit",
        "spec",
        "stdin",
        "args",
        "arguments",
        "model",
    )
)


def module_name(source: str, fallback: str) -> str:
    """An importable name for a configuration that came from ``source``, which clashes with nothing.

    ``fallback`` names the model, for sources whose own name says nothing.
    """
    stem = re.split(r"[/\\]", source)[-1]
    base = identifier(stem.split(".")[0] if stem.count(".") <= 1 else stem.rsplit(".", 1)[0])
    if not base or base in _GENERIC:
        base = identifier(fallback) or "run"
    clashes = base in BUILT_IN or base in _INSTALLED or base in _GENERIC or base in sys.stdlib_module_names
    return f"{base}_run" if clashes else base


def identifier(text: str) -> str:
    """Lower-case letters, digits and underscores, not beginning with a digit; empty when nothing is left."""
    found = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:60].strip("_")
    if found[:1].isdigit():
        found = f"run_{found}"
    return f"{found}_run" if keyword.iskeyword(found) else found


def import_lines(names: Mapping[str, Iterable[str]], width: int = 88) -> list[str]:
    """Import statements in isort's order: the standard library, then the rest; ``names`` is module -> names."""
    standard = {module for module in names if module.partition(".")[0] in sys.stdlib_module_names}
    lines: list[str] = []
    for group in (standard, set(names) - standard):
        if lines and group:
            lines.append("")
        for module in sorted(group):
            lines += _from(module, sorted(set(names[module]), key=_order), width)
    return lines


def _from(module: str, names: list[str], width: int) -> list[str]:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= width:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def _order(name: str) -> tuple[int, str]:
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name
