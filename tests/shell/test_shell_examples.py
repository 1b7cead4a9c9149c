"""Megatron-LM's own example scripts, where TTX_MEGATRON_EXAMPLES names the folder that holds them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from real_bash import difference, run_bash

from translator.shell import ScriptReading, evaluate

FOLDER = os.environ.get("TTX_MEGATRON_EXAMPLES", "")
SCRIPTS = sorted(Path(FOLDER).rglob("*.sh")) if FOLDER else []
POSITIONAL = ["/ckpt", "/tensorboard", "/vocab", "/merge", "/data"]
RANDOM = {"generate-1.3b.sh"}
"""Whose number of words depends on the output of other programs."""
pytestmark = pytest.mark.skipif(not SCRIPTS, reason="TTX_MEGATRON_EXAMPLES is not set")


def read(script: Path, positional: list[str]) -> ScriptReading:
    def sibling(path: str) -> str | None:
        try:
            return (script.parent / path).read_text(encoding="utf-8")
        except OSError:
            return None

    text = script.read_text(encoding="utf-8")
    return evaluate(text, script.name, positional=positional, read_sibling=sibling)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_reads(script: Path) -> None:
    for positional in ([], POSITIONAL):
        read(script, positional)


def test_the_same_words_as_bash(tmp_path: Path, stubs: Path) -> None:
    compared = 0
    for script in SCRIPTS:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(script.parent, copy)
        (copy / "pretrain_gpt.py").touch()
        for positional in ([], POSITIONAL):
            calls = run_bash(copy / script.name, stubs, positional, timeout=3)
            reading = read(script, positional)
            broken = {"R060", "R071"} & {finding.code for finding in reading.findings}
            if not calls or broken or script.name in RANDOM:
                continue
            assert len(calls) == len(reading.launches), script
            for launch, call in zip(reading.launches, calls, strict=True):
                assert difference(launch, call) is None, (script, difference(launch, call))
                compared += 1
    assert compared >= 40
