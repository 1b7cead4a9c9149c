"""Arguments that do nothing, launchers without machines, base64, optimizers and schedulers that nothing else has."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from translator import api
from translator.conversion import Conversion
from translator.findings import Level
from translator.ledger import Entry
from translator.reading import Reading, ReadOptions
from translator.source import Source

JSON: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 4,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_type": "linear", "warmup_max_lr": 1e-4}},
}


def launched(line: str, config: dict[str, Any] | None = None) -> Reading:
    source = Source("run.sh", line + "\n", siblings={"ds.json": json.dumps(config or JSON)})
    return api.read(source, framework="deepspeed")


def lines(done: Conversion) -> dict[str, Any]:
    return {line.option: line for line in done.ledger}


@pytest.mark.parametrize(
    ("flag", "in_force"), [("--lr_scheduler_type cosine", "WarmupLR"), ("--optim adafactor", "AdamW")]
)
def test_an_argument_beside_a_section_does_nothing(flag: str, in_force: str) -> None:
    reading = launched(f"deepspeed --num_gpus 8 train.py --deepspeed ds.json --learning_rate 1e-4 {flag}")
    name = flag.split(maxsplit=1)[0]
    assert any(f.code == "S232" and f.option == name for f in reading.findings)
    assert f"{in_force} is in force" in lines(api.convert(reading, "torchtitan"))[name].note
    assert reading.flat["optimizer.name"] == "adamw"


def test_a_rate_that_differs_is_refused_and_the_json_is_in_force() -> None:
    reading = launched("deepspeed --num_gpus 8 train.py --deepspeed ds.json --learning_rate 5e-4")
    assert any(f.code == "S213" and f.level is Level.ERROR for f in reading.findings)
    assert reading.flat["optimizer.lr"] == 1e-4
    assert "0.0001 is in force" in lines(api.convert(reading, "torchtitan"))["--learning_rate"].note


@pytest.mark.parametrize(("options", "world"), [("", 8), ("--hostfile hosts ", None)])
def test_without_a_hostfile_there_is_one_node(options: str, world: int | None) -> None:
    reading = launched(f"deepspeed {options}--num_gpus 8 train.py --deepspeed_config ds.json")
    assert reading.flat["parallel.world_size"] == world
    assert reading.flat["batch.global_batch"] == (64 if world else None)


def test_base64_on_the_command_line_and_in_a_file() -> None:
    packed = base64.urlsafe_b64encode(json.dumps(JSON).encode()).decode()
    reading = launched(f"deepspeed --num_gpus 8 train.py --deepspeed_config {packed}")
    assert reading.flat["batch.global_batch"] == 64
    alone = api.read(Source("x", packed), framework="deepspeed", options=ReadOptions(world_size=4))
    assert alone.flat["batch.global_batch"] == 32


def test_momentum_of_sgd() -> None:
    config = JSON | {"optimizer": {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.8}}}
    reading = launched("deepspeed --num_gpus 8 train.py --deepspeed_config ds.json", config)
    assert reading.flat["optimizer.momentum"] == 0.8
    for target in ("megatron", "deepspeed@0.19.8"):
        assert api.convert(reading, target).back.flat["optimizer.momentum"] == 0.8
    assert lines(api.convert(reading, "torchtitan"))["optimizer.params.momentum"].entry is Entry.UNSUPPORTED


@pytest.mark.parametrize(
    "scheduler",
    [
        {"type": "LRRangeTest", "params": {"lr_range_test_min_lr": 1e-4}},
        {"type": "StepLR", "params": {"step_size": 10}},
        {
            "type": "OneCycle",
            "params": {
                "cycle_min_lr": 1e-5,
                "cycle_max_lr": 1e-3,
                "cycle_first_step_size": 100,
                "decay_step_size": 10,
                "decay_lr_rate": 0.1,
            },
        },
    ],
    ids=lambda item: item["type"],
)
@pytest.mark.parametrize("target", ["megatron", "torchtitan"])
def test_a_curve_without_fields_is_said_to_be_lost(scheduler: dict[str, Any], target: str) -> None:
    reading = launched("deepspeed --num_gpus 8 train.py --deepspeed_config ds.json", JSON | {"scheduler": scheduler})
    done = api.convert(reading, target)
    assert lines(done)[scheduler["type"]].entry is Entry.NEEDS_INPUT
    assert done.alters_training


def test_one_cycle_moves_the_first_beta() -> None:
    params = {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-3, "cycle_first_step_size": 100}
    for moves in (True, False):
        scheduler = {"type": "OneCycle", "params": {**params, "cycle_momentum": moves}}
        reading = launched(
            "deepspeed --num_gpus 8 train.py --deepspeed_config ds.json", JSON | {"scheduler": scheduler}
        )
        assert reading.flat["optimizer.lr"] == 1e-3
        assert (reading.flat["optimizer.beta1"] is None) == moves


def trained(kind: str, options: str) -> Reading:
    plain = {key: value for key, value in JSON.items() if key not in ("optimizer", "scheduler")}
    line = "deepspeed --num_gpus 8 train.py --deepspeed ds.json --per_device_train_batch_size 2 --max_steps 1000"
    line += f" --gradient_accumulation_steps 4 --warmup_steps 100 --learning_rate 1e-4 --lr_scheduler_type {kind}"
    return launched(line + (f" --lr_scheduler_kwargs '{options}'" if options else ""), plain)


@pytest.mark.parametrize(
    ("kind", "options", "decay", "start", "floor"),
    [
        ("cosine_with_min_lr", '{"min_lr": 1e-6}', "cosine", 100.0, 1e-6),
        ("polynomial", '{"lr_end": 1e-6}', "linear", 100.0, 1e-6),
        ("warmup_stable_decay", '{"num_decay_steps": 100}', "cosine", 900.0, 0.0),
        (
            "warmup_stable_decay",
            '{"num_decay_steps": 100, "min_lr_ratio": 0.1, "decay_type": "linear"}',
            "linear",
            900.0,
            1e-5,
        ),
    ],
)
def test_options_of_a_schedule_on_the_command_line(
    kind: str, options: str, decay: str, start: float, floor: float
) -> None:
    flat = trained(kind, options).flat
    assert (flat["schedule.decay"], flat["schedule.decay_start"]) == (decay, start)
    assert flat["schedule.min_lr"] == pytest.approx(floor)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("cosine_with_restarts", '{"num_cycles": 3}'),
        ("polynomial", '{"power": 2.0}'),
        ("cosine", '{"num_cycles": 1.5}'),
        ("reduce_lr_on_plateau", ""),
        ("greedy", ""),
        ("warmup_stable_decay", ""),
    ],
)
def test_a_schedule_of_transformers_without_fields(kind: str, options: str) -> None:
    done = api.convert(trained(kind, options), "megatron")
    assert lines(done)[kind].entry is Entry.NEEDS_INPUT
    assert done.alters_training


def test_broken_options_are_refused() -> None:
    found = trained("cosine", "{broken").findings
    assert any(f.code == "R146" and f.option == "--lr_scheduler_kwargs" for f in found)


@pytest.mark.parametrize(("cap", "entry"), [(30.0, Entry.UNSUPPORTED), (None, Entry.IRRELEVANT)])
def test_soft_caps_are_a_loss(cap: float | None, entry: Entry) -> None:
    config = {"model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26, "final_logit_softcapping": cap}
    source = Source("run.sh", "deepspeed --num_gpus 8 train.py --deepspeed ds.json --model_name_or_path m\n")
    source.siblings.update({"ds.json": json.dumps(JSON), "m/config.json": json.dumps(config)})
    reading = api.read(source, framework="deepspeed")
    for target in ("megatron", "torchtitan"):
        assert lines(api.convert(reading, target))["final_logit_softcapping"].entry is entry
