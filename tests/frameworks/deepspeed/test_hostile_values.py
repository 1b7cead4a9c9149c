"""Values that no key expects end in findings and ledger lines, never in a fault of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from translator import api
from translator.conversion import Conversion
from translator.findings import Level
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


@pytest.mark.parametrize(
    ("changes", "code", "option"),
    [
        ({"zero_optimization": {"stage": {}}}, "R133", "zero_optimization.stage"),
        ({"fp16": []}, "R142", "fp16"),
        ({"fp16": None}, "R142", "fp16"),
        ({"optimizer": "Adam"}, "R142", "optimizer"),
        ({"optimizer": {"type": "AdamW", "params": {"lr": "1e-4"}}}, "R134", "optimizer.params.lr"),
        ({"optimizer": {"type": "AdamW", "params": {"eps": {}}}}, "R134", "optimizer.params.eps"),
        ({"optimizer": {"type": "AdamW", "params": {"betas": [0.9]}}}, "R134", "optimizer.params.betas"),
        ({"train_batch_size": 2**70}, "R134", "train_batch_size"),
        ({"gradient_accumulation_steps": 1e-300}, "S203", "gradient_accumulation_steps"),
        ({"gradient_clipping": 1e308}, "R134", "gradient_clipping"),
        ({"zero_optimization": {"reduce_bucket_size": 2**70}}, "R133", "zero_optimization.reduce_bucket_size"),
        ({"fp16": {"enabled": True, "initial_scale_power": 10**9}}, "S204", "fp16.initial_scale_power"),
    ],
)
def test_what_nothing_can_use_is_an_error_at_its_place(
    changes: dict[str, Any], code: str, option: str, tmp_path: Path
) -> None:
    found = converted(tmp_path / "ds.json", json.dumps(BASE | changes, indent=1), "deepspeed@0.19.8")
    said = [f for f in found.findings if f.level is Level.ERROR and f.code == code and f.option == option]
    assert said, [(f.code, f.option) for f in found.findings]
    assert said[0].place is not None
    line = next(line for line in found.ledger if line.option == option)
    assert line.entry in (Entry.NEEDS_INPUT, Entry.UNSUPPORTED, Entry.ADAPTED)


def test_a_word_that_nobody_fills_in_makes_no_trainer(tmp_path: Path) -> None:
    changes = {"zero_optimization": {"stage": 1, "mics_shard_size": "auto"}}
    found = converted(tmp_path / "ds.json", json.dumps(BASE | changes), "deepspeed@0.19.8")
    assert found.source.flat["loss.normalization"] == "micro_batch_mean"
    assert "L290" not in {finding.code for finding in found.findings}


def test_a_bound_that_no_norm_reaches_is_no_clipping(tmp_path: Path) -> None:
    for bound in (-1.0, 2.0**31):
        found = converted(tmp_path / "ds.json", json.dumps(BASE | {"gradient_clipping": bound}), "torchtitan")
        assert found.source.flat["optimizer.clip_grad_norm"] == 0.0


def test_accelerates_own_keys_are_no_keys_of_the_json(tmp_path: Path) -> None:
    found = converted(tmp_path / "acc.yaml", ACCELERATE, "deepspeed")
    written = json.loads(found.rendered.files["ds_config.json"])
    assert written["zero_optimization"]["stage"] == 3
    assert not any("accelerate" in key or "deepspeed_config" in key for key in written)
    for target in (found, converted(tmp_path / "acc.yaml", ACCELERATE, "torchtitan")):
        entries = {line.option: line.entry for line in target.ledger}
        own = ("zero3_init_flag", "deepspeed_multinode_launcher", "compute_environment", "distributed_type")
        assert {entries[name] for name in own} == {Entry.IRRELEVANT}
