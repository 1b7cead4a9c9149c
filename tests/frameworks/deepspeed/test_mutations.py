"""Real configurations with mistakes of every kind end in findings, ledger lines or one line of error, and soon."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from mutations import mutated

from translator import api
from translator.errors import InternalError, TtxError
from translator.reading import ReadOptions
from translator.source import Source

TARGETS = ("megatron", "torchtitan", "deepspeed@0.19.8")
LONGEST = 5.0  # seconds for one file and three targets, which take some ten milliseconds


def faults(document: dict[str, Any], siblings: dict[str, str]) -> list[str]:
    """What is wrong with how ttx takes a configuration; an exception that is no word to the person goes up."""
    text = json.dumps(document, indent=1)
    found: list[str] = []
    began = time.monotonic()
    for target in TARGETS:
        try:
            done = api.convert(
                Source("ds.json", text), target, framework="deepspeed", options=ReadOptions(world_size=8)
            )
        except InternalError:
            raise
        except TtxError as error:
            if "\n" in str(error):
                found.append(f"{target}: more than a line: {error}")
            continue
        found += [f"{target}: {finding.message}" for finding in done.findings if finding.code == "L290"]
    if time.monotonic() - began > LONGEST:
        found.append("it takes too long")
    return found


def beside(path: str) -> dict[str, str]:
    """The trainer's arguments, the model and the launch script in the folder of a configuration."""
    files = [Path(path).parent / name for name in ("training_args.yaml", "config.json", "launch.sh")]
    return {file.name: file.read_text(encoding="utf-8") for file in files if file.is_file()}


def swept(documents: list[tuple[str, dict[str, Any]]], count: int) -> list[str]:
    """Faults of ``count`` mutations, each with how it was made."""
    generator = random.Random(5)
    found: list[str] = []
    for _ in range(count):
        name, document = generator.choice(documents)
        changed, how = mutated(document, generator)
        found += [f"{name}, {', '.join(how)}: {fault}" for fault in faults(changed, beside(name))]
    return found


def parsed(files: list[Path]) -> list[tuple[str, dict[str, Any]]]:
    """Those of the files that are plain JSON objects."""
    documents: list[tuple[str, dict[str, Any]]] = []
    for path in sorted(files):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            continue  # more than JSON
        if isinstance(document, dict):
            documents.append((str(path), document))
    return documents


def test_mutated_examples(examples: Path) -> None:
    documents = parsed(list(examples.rglob("ds_config.json")))
    assert len(documents) > 5
    assert swept(documents, 200) == []


@pytest.mark.corpus
def test_mutated_corpus(corpus: Path) -> None:
    documents = parsed(list((corpus / "deepspeed").rglob("*.json")))
    assert len(documents) > 80
    assert swept(documents, 300) == []
