"""What the laws hold for: every registered framework in every version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from translator import frameworks
from translator.frameworks.base import Framework
from translator.mapping.table import Table

TARGETS = tuple(f"{name}@{version}" for name in frameworks.BUILT_IN for version in frameworks.get(name).versions)
_COMMENT = re.compile(r"(^|\s+)#.*$")


def resolve(target: str) -> tuple[Framework, str]:
    """The framework and the version of ``name@version``."""
    framework, version = frameworks.resolve(target)
    return framework, version or framework.default_version


def tables() -> Iterator[Table]:
    """The table of every framework in every version."""
    for target in TARGETS:
        framework, version = resolve(target)
        yield framework.table(version)


def spoken(files: dict[str, str]) -> dict[str, list[str]]:
    """The lines of written files without their comments, which name the source."""
    return {name: [_COMMENT.sub("", line) for line in text.splitlines()] for name, text in files.items()}


def sources(corpus: Path) -> Iterator[tuple[Path, str]]:
    """Files of the corpus that configure the training of a GPT, with the address to read them as.

    Megatron-LM's recipes of another launcher hold no arguments, and those of inference are no training.
    """
    for path in sorted(corpus.glob("megatron/*/*/model_config.yaml")):
        text = path.read_text(encoding="utf-8")
        if path.parts[-3] in {"gpt", "moe", "mixtral"} and "\nMODEL_ARGS:" in text and "--train-iters:" in text:
            yield path, "megatron@0.18.0"
    for folder in sorted(corpus.glob("torchtitan/*")):
        yield from ((path, f"torchtitan@{folder.name}") for path in sorted(folder.glob("**/*.toml")))
