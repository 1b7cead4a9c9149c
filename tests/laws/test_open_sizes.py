"""Sizes that nobody can mean, and sizes that are not known, end in words and never in a fault of our own."""

from __future__ import annotations

import pytest

from translator import api
from translator.errors import SourceError
from translator.findings import Level
from translator.ledger import Entry
from translator.source import Source

COMMON = """torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers {layers} --hidden-size {hidden} \\
  --num-attention-heads 8 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 --train-iters 10 \\
  --lr 1e-4 --mock-data --vocab-size 1000 {more}
"""
TARGETS = ("megatron@0.18.0", "torchtitan@0.2.2", "torchtitan@0.3.0", "deepspeed@0.19.2")


def script(*, layers: str = "8", hidden: str = "512", more: str = "") -> Source:
    return Source("run.sh", COMMON.format(layers=layers, hidden=hidden, more=more))


@pytest.mark.parametrize("more", ["--num-experts 8 --moe-layer-freq 2", "--no-rope-freq 2", ""])
def test_more_layers_than_any_model_has(more: str) -> None:
    for target in TARGETS:
        with pytest.raises(SourceError, match="--num-layers"):
            api.convert(script(layers="999999999", more=more), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("more", ["--num-experts 8 --expert-model-parallel-size 2", "--lr-decay-style $STYLE", ""])
def test_a_size_that_the_files_leave_open(target: str, more: str) -> None:
    done = api.convert(script(hidden="$WIDTH", more=more), target)
    assert not [finding for finding in done.findings if finding.code == "L290"]
    assert [line.entry for line in done.ledger if line.option == "--hidden-size"] == [Entry.NEEDS_INPUT]


def test_a_malformed_ramp_up_is_refused_in_words() -> None:
    source = script(more="--rampup-batch-size 1 x")
    found = api.read(source, framework="megatron@0.12.0").findings
    assert any(finding.level is Level.ERROR and "ramp" in finding.message for finding in found)
