"""Values that no key expects end in findings and ledger lines, never in a fault of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from translator import api
from translator.conversion import Conversion
from translator.ledger import Entry
from translator.reading import ReadOptions

BASE: dict[str, Any] = {
    "train_batch_size": 64,
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {"stage": 1},
    "bf16": {"enabled": True},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
}
ACCELERATE = """compute_environment: LOCAL_MACHINE
deepspeed_config: {zero_stage: 3, zero3_init_flag: true, deepspeed_multinode_launcher: standard}
distributed_type: DEEPSPEED
mixed_precision: bf16
"""


def converted(path: Path, text: str, target: str) -> Conversion:
    path.write_text(text, encoding="utf-8")
    reading = api.read(str(path), options=ReadOptions(world_size=8))
    return api.convert(reading, target)


@pytest.mark.parametrize(
    "changes",
    [
        {"zero_optimization": {"stage": {"a": 1}}},
        {"zero_optimization": {"stage": [1, [2]]}},
        {"sequence_parallel_size": 1e308},
        {"train_micro_batch_size_per_gpu": True},
    ],
)
@pytest.mark.parametrize("target", ["deepspeed@0.19.8", "torchtitan", "megatron"])
def test_hostile_values(changes: dict[str, Any], target: str, tmp_path: Path) -> None:
    found = converted(tmp_path / "ds.json", json.dumps(BASE | changes), target)
    assert "L290" not in {finding.code for finding in found.findings}


def test_accelerates_own_keys_are_no_keys_of_the_json(tmp_path: Path) -> None:
    found = converted(tmp_path / "acc.yaml", ACCELERATE, "deepspeed")
    written = json.loads(found.rendered.files["ds_config.json"])
    assert written["zero_optimization"]["stage"] == 3
    assert not any("accelerate" in key or "deepspeed_config" in key for key in written)
    for target in (found, converted(tmp_path / "acc.yaml", ACCELERATE, "torchtitan")):
        entries = {line.option: line.entry for line in target.ledger}
        own = ("zero3_init_flag", "deepspeed_multinode_launcher", "compute_environment", "distributed_type")
        assert {entries[name] for name in own} == {Entry.IRRELEVANT}
