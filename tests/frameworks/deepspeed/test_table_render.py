"""DeepSpeed's table and writer: what is said where, what is admitted, and that a folder reads back whole."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from translator import api
from translator.conversion import Conversion
from translator.frameworks.deepspeed.schedules import deepspeed_rate
from translator.frameworks.deepspeed.table.schedule import Settings, leaves_of
from translator.ledger import Entry
from translator.native import Origin
from translator.reading import LeafOrigin, Reading, ReadOptions
from translator.schedules import curve_of
from translator.source import Source
from translator.spec import leaves

BASE: dict[str, Any] = {
    "model.layers": 4,
    "model.hidden": 512,
    "model.ffn": 2048,
    "model.heads": 8,
    "model.kv_heads": 8,
    "model.head_dim": 64,
    "model.vocab": 1000,
    "model.norm": "rmsnorm",
    "model.positions": "rope",
    "model.gated": True,
    "model.activation": "silu",
    "parallel.world_size": 8,
    "parallel.data.degree": 8,
    "parallel.data.sharding": "optimizer",
    "batch.micro_batch": 2,
    "batch.global_batch": 64,
    "batch.seq_len": 256,
    "precision.compute": "bf16",
    "precision.grad_accumulate": "fp32",
    "precision.grad_reduce": "fp32",
    "optimizer.name": "adamw",
    "optimizer.lr": 3e-4,
    "optimizer.beta1": 0.9,
    "optimizer.beta2": 0.95,
    "optimizer.weight_decay": 0.1,
    "optimizer.clip_grad_norm": 1.0,
    "schedule.unit": "steps",
    "schedule.total": 1000,
    "schedule.warmup": 100.0,
    "schedule.warmup_start_lr": 0.0,
    "schedule.warmup_offset": 0,
    "schedule.warmup_shape": "linear",
    "schedule.decay": "cosine",
    "schedule.decay_start": 100.0,
    "schedule.decay_length": 900.0,
    "schedule.min_lr": 3e-5,
}


def reading(**changes: Any) -> Reading:
    """A spec with some leaves set by hand."""
    flat = dict.fromkeys(leaves()) | BASE | {name.replace("__", "."): value for name, value in changes.items()}
    origins = {leaf: LeafOrigin(Origin.EXPLICIT, leaf) for leaf, value in flat.items() if value is not None}
    return Reading("spec", "", flat, origins)


def convert(version: str = "0.19.2", *, nearest: bool = False, **changes: Any) -> Conversion:
    done = api.convert(reading(**changes), f"deepspeed@{version}", nearest=nearest)
    assert not [finding for finding in done.findings if finding.code == "L290"]
    return done


def keys(done: Conversion) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.rendered.files["ds_config.json"])
    return found


def arguments(done: Conversion) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(done.rendered.files["training_args.yaml"])
    return found


def test_a_folder_holds_the_run_and_reads_back() -> None:
    done = convert()
    assert set(done.rendered.files) == {"ds_config.json", "training_args.yaml", "config.json", "launch.sh"}
    for leaf, value in BASE.items():
        if leaf not in done.sink.shortfalls:
            assert done.back.flat[leaf] == value, leaf
    assert done.back.flat["batch.seq_len"] == 256


def test_a_folder_on_disk_is_read_from_its_json(tmp_path: Path) -> None:
    done = convert(launch__environment={"NCCL_DEBUG": "INFO X"})
    for name, text in done.rendered.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = api.read(str(tmp_path / "ds_config.json"))
    assert found.flat == done.back.flat
    assert found.flat["launch.environment"] == {"NCCL_DEBUG": "INFO X"}


def test_a_stranger_s_arguments_beside_a_json_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ds_config.json").write_text('{"train_batch_size": 8}', encoding="utf-8")
    (tmp_path / "training_args.yaml").write_text("deepspeed: other.json\nseed: 1\nmax_steps: 5\n", encoding="utf-8")
    found = api.read(str(tmp_path / "ds_config.json"), options=ReadOptions(world_size=8))
    assert found.flat["data.seed"] is None


@pytest.mark.parametrize(("version", "given"), [("0.16.9", True), ("0.19.2", True), ("0.19.8", True)])
def test_keys_whose_defaults_changed_are_always_written(version: str, given: bool) -> None:
    found = keys(convert(version, optimizer__offload=True))
    assert ("gradient_clipping" in found) is given
    assert "pin_memory" in found["zero_optimization"]["offload_optimizer"]
    assert found["bf16"]["immediate_grad_update"] is False


def test_no_clipping_is_said_too() -> None:
    assert keys(convert(optimizer__clip_grad_norm=0.0))["gradient_clipping"] == 0.0


def test_floats_of_the_yaml_are_numbers() -> None:
    found = arguments(convert(optimizer__lr=1e-5, optimizer__eps=1e-8))
    assert found["learning_rate"] == 1e-5
    assert all(not isinstance(value, str) for name, value in found.items() if name.startswith("adam_"))


@pytest.mark.parametrize(
    ("sharding", "stage"), [("none", 0), ("optimizer", 1), ("optimizer_gradients", 2), ("full", 3)]
)
def test_stages(sharding: str, stage: int) -> None:
    changes: dict[str, Any] = {"precision__grad_accumulate": "bf16"}
    done = convert(parallel__data__sharding=sharding, **changes)
    assert keys(done)["zero_optimization"]["stage"] == stage
    assert done.back.flat["parallel.data.sharding"] == sharding


def test_tensor_ranks_are_counted_in_the_batch() -> None:
    done = convert(parallel__tensor=2, parallel__data__degree=4)
    assert keys(done)["train_batch_size"] == 2 * 64
    assert done.back.flat["batch.global_batch"] == 64
    assert done.back.flat["parallel.tensor"] == 2


def test_autotp_beside_full_sharding_goes_to_stage_2_or_gives_way() -> None:
    changes: dict[str, Any] = {
        "parallel__tensor": 2,
        "parallel__data__degree": 4,
        "parallel__data__sharding": "full",
    }
    plain, nearest = convert(**changes), convert(nearest=True, **changes)
    assert keys(plain)["zero_optimization"]["stage"] == 2
    assert plain.sink.shortfalls["parallel.data.sharding"].entry is Entry.APPROXIMATED
    assert keys(nearest)["zero_optimization"]["stage"] == 3
    assert "tensor_parallel" not in keys(nearest)


def test_a_pipeline_is_unsupported_and_its_nearest_layout_named() -> None:
    changes: dict[str, Any] = {
        "parallel__pipeline__degree": 4,
        "parallel__pipeline__schedule": "1f1b",
        "parallel__data__degree": 2,
    }
    plain, nearest = convert(**changes), convert(nearest=True, **changes)
    for done in (plain, nearest):
        assert done.sink.shortfalls["parallel.pipeline.degree"].entry is Entry.UNSUPPORTED
        assert done.back.flat["batch.global_batch"] == 64
    assert keys(plain)["zero_optimization"]["stage"] == 1
    assert keys(nearest)["zero_optimization"]["stage"] == 3
    assert "ZeRO-3 shards all state" in nearest.sink.shortfalls["parallel.pipeline.degree"].note


def test_nearest_shrinks_a_micro_batch_that_no_longer_divides() -> None:
    changes: dict[str, Any] = {
        "parallel__pipeline__degree": 4,
        "parallel__data__degree": 2,
        "batch__global_batch": 24,
        "batch__micro_batch": 2,
    }
    done = convert(nearest=True, **changes)
    assert done.back.flat["batch.micro_batch"] == 1
    assert done.back.flat["batch.global_batch"] == 24


def test_context_becomes_ulysses() -> None:
    done = convert(parallel__context=2, parallel__context_method="ring", parallel__data__degree=4)
    assert keys(done)["sequence_parallel_size"] == 2
    assert done.back.flat["parallel.context"] == 2
    assert done.back.flat["parallel.context_method"] == "all_to_all"
    assert done.sink.shortfalls["parallel.context_method"].entry is Entry.UNSUPPORTED


def test_groups_are_mics_up_to_0_19_2() -> None:
    changes: dict[str, Any] = {"parallel__data__sharding": "full", "parallel__data__replicate": 2}
    assert keys(convert("0.19.2", **changes))["zero_optimization"]["mics_shard_size"] == 4
    assert keys(convert("0.19.8", **changes))["zero_optimization"]["zero_hpz_partition_size"] == 4


def test_adam_without_decoupled_decay_says_so() -> None:
    found = keys(convert(optimizer__name="adam"))["optimizer"]
    assert (found["type"], found["params"]["adam_w_mode"]) == ("Adam", False)


def test_without_zero_gradients_are_not_accumulated_in_fp32() -> None:
    done = convert(parallel__data__sharding="none")
    assert "data_types" not in keys(done)
    assert done.sink.shortfalls["precision.grad_accumulate"].entry is Entry.UNSUPPORTED


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "cosine_with_min_lr"),
        ({"schedule__min_lr": 0.0}, "cosine"),
        ({"schedule__decay": "linear", "schedule__min_lr": 0.0}, "linear"),
        ({"schedule__decay": "linear"}, "polynomial"),
        ({"schedule__decay": "constant", "schedule__decay_start": None, "schedule__decay_length": None},
         "constant_with_warmup"),
        ({"schedule__decay": "sqrt", "schedule__decay_start": 800.0, "schedule__decay_length": 200.0},
         "warmup_stable_decay"),
        ({"schedule__decay": "inverse_sqrt", "schedule__min_lr": 0.0}, "inverse_sqrt"),
    ],
)  # fmt: skip
def test_the_nearest_schedule_is_chosen(changes: dict[str, Any], kind: str) -> None:
    done = convert(**changes)
    assert arguments(done)["lr_scheduler_type"] == kind
    written, wanted = curve_of(done.back.flat), curve_of(done.source.flat)
    assert written is not None
    assert wanted is not None
    note = done.sink.shortfalls["schedule.decay"].note
    stated = float(note.split(" steps: ")[1].split(" %")[0]) / 100 * wanted.peak
    assert max(abs(written.rate(step) - wanted.rate(step)) for step in range(1000)) <= stated * 1.01 + 1e-15


def test_a_logarithmic_warm_up_is_deepspeed_s_own() -> None:
    done = convert(
        schedule__warmup_shape="log", schedule__decay="linear", schedule__decay_start=101.0, schedule__min_lr=0.0
    )
    assert keys(done)["scheduler"]["type"] == "WarmupDecayLR"
    assert keys(done)["scheduler"]["params"]["warmup_type"] == "log"
    assert done.sink.shortfalls["schedule.decay"].entry is Entry.ADAPTED


@pytest.mark.parametrize("kind", ["WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "OneCycle"])
@pytest.mark.parametrize("shape", ["log", "linear"])
def test_leaves_give_the_curve_of_the_scheduler(kind: str, shape: str) -> None:
    peak, start, warmup, total = 3e-4, 3e-5, 7, 40
    params: dict[str, Any] = {"warmup_num_steps": warmup, "warmup_type": shape, "total_num_steps": total}
    floor, low = start, start
    if kind == "WarmupCosineLR":
        params |= {"cos_min_ratio": 0.1, "warmup_min_ratio": 0.0}
        floor, low = 3e-5, 0.0
    elif kind == "OneCycle":
        params = {"cycle_min_lr": start, "cycle_max_lr": peak, "cycle_first_step_size": 7, "cycle_second_step_size": 33}
    else:
        params |= {"warmup_min_lr": start, "warmup_max_lr": peak}
    real = deepspeed_rate(kind, params, peak, clamped=True)
    settings = Settings(kind, peak, warmup, "linear" if kind == "OneCycle" else shape, low, floor, total)
    flat = leaves_of(settings)
    assert real is not None
    assert flat is not None
    curve = curve_of(flat | {"schedule.unit": "steps", "schedule.total": total, "optimizer.lr": peak})
    assert curve is not None
    for step in range(total + 1):
        assert math.isclose(curve.rate(step), real(step), rel_tol=1e-9, abs_tol=1e-15), step


def test_what_no_leaf_says_survives_its_own_framework() -> None:
    text = json.dumps({"train_batch_size": 8, "aio": {"block_size": 7}, "unheard_of": 1, "wall_clock_breakdown": True})
    done = api.convert(Source("ds_config.json", text), "deepspeed@0.19.2", options=ReadOptions(world_size=8))
    assert keys(done)["aio"] == {"block_size": 7}
    assert keys(done)["unheard_of"] == 1
    assert "training_args.yaml" not in done.rendered.files
    assert done.back.flat["parallel.world_size"] == 8


def test_auto_stays_auto_between_versions() -> None:
    text = json.dumps(
        {"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto", "bf16": {"enabled": "auto"}}
    )
    done = api.convert(Source("ds_config.json", text), "deepspeed@0.19.8", options=ReadOptions(world_size=8))
    assert keys(done)["train_micro_batch_size_per_gpu"] == "auto"
    assert keys(done)["bf16"]["enabled"] == "auto"


@pytest.mark.parametrize("name", ["llama3-8b", "gpt2", "deepseek-v3"])
def test_a_model_may_be_named(name: str) -> None:
    options = ReadOptions(world_size=8, model=name)
    found = api.read(Source("ds.json", '{"train_batch_size": 8, "zero_optimization": {"stage": 1}}'), options=options)
    assert found.flat["model.layers"]


def test_values_reach_the_shell_quoted() -> None:
    done = convert(data__tokenizer="$(touch x); 'y", launch__environment={"A": "`id` $(id)"})
    script = done.rendered.files["launch.sh"]
    assert "'$(touch x); '\"'\"'y'" in script
    assert "export A='`id` $(id)'" in script
    assert done.back.flat["data.tokenizer"] == "$(touch x); 'y"


@pytest.mark.parametrize(
    ("section", "lost"),
    [
        ({"curriculum_learning": {"enabled": False, "min_difficulty": 8}}, False),
        ({"curriculum_learning": {"enabled": True}}, True),
        ({"compression_training": {"a": {"shared": {"enabled": False}, "groups": {}}, "b": {"enabled": False}}}, False),
        ({"compression_training": {"a": {"shared": {"enabled": False}}, "b": {"enabled": True}}}, True),
        ({"compression_training": {}}, True),
    ],
)
def test_a_section_that_is_switched_off_is_no_loss(tmp_path: Path, section: dict[str, Any], lost: bool) -> None:
    path = tmp_path / "ds.json"
    path.write_text(json.dumps({"train_batch_size": 8, "zero_optimization": {"stage": 1}, **section}))
    done = api.convert(str(path), "megatron", options=ReadOptions(world_size=8))
    (line,) = [line for line in done.ledger if line.option in section]
    assert line.entry.is_loss is lost
