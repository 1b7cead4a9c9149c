"""What nothing checks when the file is read, and what stops the engine or its first step.

The real engine's answers to these and many more are in the oracle tests.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from translator import api
from translator.findings import Level
from translator.reading import ReadOptions
from translator.source import Source

BASE: dict[str, Any] = {
    "train_batch_size": 8,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2},
    "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
}
CURRICULUM = {
    "enabled": True,
    "min_difficulty": 8,
    "max_difficulty": 1024,
    "schedule_type": "fixed_linear",
    "schedule_config": {"total_curriculum_step": 1000, "difficulty_step": 8},
}
GROUPS = {"wq1": {"params": {"start_bits": 8, "target_bits": 8}, "modules": ["up_proj"]}}


def optimizer(kind: object, **params: object) -> dict[str, Any]:
    return {"optimizer": {"type": kind, "params": params}}


def scheduler(kind: object, **params: object) -> dict[str, Any]:
    return {"scheduler": {"type": kind, "params": params}}


def quantized(**shared: object) -> dict[str, Any]:
    return {"compression_training": {"weight_quantization": {"shared_parameters": shared, "different_groups": GROUPS}}}


def errors(changes: dict[str, Any], version: str = "0.19.2") -> set[str]:
    source = Source("ds_config.json", json.dumps(BASE | changes, indent=1))
    found = api.check(source, framework=f"deepspeed@{version}", options=ReadOptions(world_size=8))
    return {finding.code for finding in found if finding.level is Level.ERROR}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"steps_per_print": 0}, "S229"),
        ({"steps_per_print": "100"}, "S229"),
        ({"wall_clock_breakdown": None}, "S229"),
        ({"flops_profiler": {"enabled": "true"}}, "S229"),
        ({"vocabulary_size": "50304"}, "S229"),
        ({"zero_optimization": {"stage": 2, "reduce_bucket_size": 0}}, "S229"),
        ({"zero_optimization": {"stage": 1, "legacy_stage1": True}}, "S229"),
        ({"tensor_parallel": {"autotp_size": "2"}}, "R133"),
        ({"curriculum_learning": {"enabled": True, "min_difficulty": 8}}, "S222"),
        ({"curriculum_learning": CURRICULUM | {"schedule_type": "fixed_sqrt"}}, "S222"),
        ({"curriculum_learning": CURRICULUM | {"schedule_config": {"difficulty_step": 8}}}, "S222"),
        ({"progressive_layer_drop": {"enabled": True, "theta": 0.5}}, "S222"),
        ({"sparse_attention": {"mode": "diagonal"}}, "S222"),
        ({"amp": {}}, "S222"),
        (quantized(enabled=True), "S222"),
        ({"compression_training": {"sparse_pruning": {"shared_parameters": {"enabled": True}}}}, "S222"),
        ({"compression_training": None}, "R142"),
        (optimizer("AdamX", lr=1e-4), "S216"),
        (optimizer("sgd", lr=1e-4), "S216"),
        (optimizer("", lr=1e-4), "S216"),
        (optimizer("NAdam", lr=1e-4), "S216"),
        (optimizer("AdamW", lr=1e-4, amsgrad=True), "S216"),
        (optimizer("AdamW", lr=-1e-4, torch_adam=True), "S216"),
        (optimizer("SGD", lr=1e-4, betas=[0.9, 0.95]), "R132"),
        (optimizer("AdamW", lr=1e-4, fp32_optimizer_states=True), "R132"),
        (optimizer("AdamW", lr=1e-4, betas=None), "R134"),
        (scheduler("cosine"), "S217"),
        (scheduler(7), "S217"),
        (scheduler("StepLR", step_size=10), "S217"),
        (scheduler("StepLR", step_size=10, gama=0.1), "R132"),
        (scheduler("OneCycle", cycle_min_lr=1e-5), "S217"),
        (scheduler("LRRangeTest", lr_range_test_step_size=0), "S217"),
        ({"scheduler": {"type": "WarmupLR"}}, "S217"),
        (scheduler("WarmupDecayLR", total_num_steps="1000"), "R134"),
        ({"fp16": {"loss_scale": -1}}, "S204"),
        ({"torch_autocast": {"enabled": True, "dtype": "tf32"}}, "S209"),
        ({"data_types": {"buffer_dtype": "int7"}}, "S209"),
        ({"bf16": {"enabled": True, "bf16_master_weights_and_grads": True}}, "S206"),
        ({"checkpoint": {"tag_validation": False}}, "S218"),
        ({"checkpoint": {"writer": {"type": "FAST"}}}, "S218"),
    ],
    ids=str,
)
def test_it_is_an_error(changes: dict[str, Any], code: str) -> None:
    assert code in errors(changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"steps_per_print": None},
        {"wall_clock_breakdown": True, "flops_profiler": {"enabled": False}},
        {"vocabulary_size": 50257},
        {"curriculum_learning": CURRICULUM},
        {"curriculum_learning": {"enabled": False}},
        {"progressive_layer_drop": {"enabled": True, "theta": 0.5, "gamma": 0.001}},
        {"sparse_attention": {"mode": "bigbird"}},
        quantized(enabled=True, quantize_weight_in_forward=True),
        {"expert_parallel": None},
        {"optimizer": {"type": "AdamW", "params": None}},
        {"zero_allow_untested_optimizer": True, **optimizer("SGD", lr=1e-4, momentum=0.9)},
        optimizer("AdamW", lr=1e-4, torch_adam=True, fused=True, betas=[0.9, 0.95]),
        optimizer("AdamW", lr=1e-4, weight_decay=True),
        scheduler("WarmupLR"),
        scheduler("WarmupDecayLR", total_num_steps=1000, warmup_max_lr=None),
        scheduler("WarmupLR", warmup_min_lr=[0], warmup_max_lr=[1e-4]),
        {"zero_optimization": {}, "bf16": {}, **scheduler("CosineAnnealingLR", T_max=100)},
        {"bf16": {"enabled": True, "bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}},
        {"gradient_clipping": True},
        {"checkpoint": {"writer": {"type": "FAST", "data_parallel": "replica"}}},
    ],
    ids=str,
)
def test_it_is_none(changes: dict[str, Any]) -> None:
    assert errors(changes) == set()


def test_an_older_version_checks_less() -> None:
    assert errors({"fp16": {"loss_scale": -1}}, "0.16.9") == set()


def test_one_rank_is_counted_where_ranks_cannot_be_divided() -> None:
    changes = {"sequence_parallel_size": 0, "train_batch_size": 4, "train_micro_batch_size_per_gpu": 4}
    source = Source("ds_config.json", json.dumps(BASE | changes))
    reading = api.read(source, framework="deepspeed@0.19.2", options=ReadOptions(world_size=8))
    assert "S239" in {finding.code for finding in reading.findings}
    assert "S202" not in {finding.code for finding in reading.findings}


@pytest.mark.parametrize(
    ("text", "code", "found"),
    [
        ('"type": "Adagrad", "params": {"lr": 0.01, "lr_decay": 0.1}', "R132", False),
        ('"type": "Adagrad", "params": {"lr": 0.01, "lr_dcay": 0.1}', "R132", True),
        ('"type": "MuAdamW", "params": {"lr": 0.01}', "S216", False),
        ('"type": "MuSGD", "params": {"lr": 0.01}', "S216", True),
    ],
)
def test_optimizers_that_are_torchs(text: str, code: str, found: bool) -> None:
    """Adagrad is torch's where the host does not step; mup's Adam is torch's, which ZeRO takes."""
    config = f'{{"train_batch_size": 8, "zero_optimization": {{"stage": 1}}, "optimizer": {{{text}}}}}'
    reading = api.read(Source("ds.json", config), framework="deepspeed", options=ReadOptions(world_size=8))
    assert (code in {finding.code for finding in reading.findings}) == found
