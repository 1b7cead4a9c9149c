"""Configurations converted to DeepSpeed, judged by the real DeepSpeed 0.19.2 and transformers.

DeepSpeed resolves the JSON at the source's world size; transformers checks that the trainer's arguments agree with it
(its own comparison refuses any mismatch) and that a strict JSON parser takes it; learning rates are those of the real
schedulers, stepped as the engine does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from environments import OracleServer

from translator import api
from translator.conversion import Conversion
from translator.findings import Level
from translator.reading import Reading, ReadOptions
from translator.schedules import curve_of

pytestmark = pytest.mark.oracle
EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples"
SOURCES = [
    (path.parent / stated["source"], stated)
    for path in sorted(EXAMPLES.glob("*/case.yaml"))
    for stated in [yaml.safe_load(path.read_text(encoding="utf-8"))]
    if not stated["framework"].startswith("deepspeed")
]
STEPS = 3000
WORLD_SIZES = (8, 64, 256, 512, 1024, 2048)
ADAM = {"adamw": "adamw", "adam": "adam"}


def reading_of(path: Path, stated: dict[str, Any]) -> Reading:
    """The source as its case reads it, at the first number of ranks that fits where it names none."""
    stated_size = stated.get("world_size")
    for world_size in (stated_size, *WORLD_SIZES):
        options = ReadOptions(
            variables=stated.get("set", {}),
            positional=tuple(stated.get("positional", ())),
            world_size=world_size,
            overrides=stated.get("fields", {}),
        )
        found = api.read(str(path), framework=stated["framework"], options=options)
        refused = any(finding.level is Level.ERROR for finding in found.findings)
        if found.flat["parallel.world_size"] is not None and (stated_size or not refused):
            return found
    raise AssertionError(f"{path} fits no number of ranks")


def cases() -> Iterator[tuple[Path, dict[str, Any], bool]]:
    """Every example; those with a pipeline also by their nearest layout."""
    for path, stated in SOURCES:
        yield path, stated, False
        flat = reading_of(path, stated).flat
        if (flat["parallel.pipeline.degree"] or 1) > 1 or flat["parallel.data.sharding"] == "full":
            yield path, stated, True


CASES = list(cases())


def named(case: tuple[Path, dict[str, Any], bool]) -> str:
    return case[0].parent.name + ("-nearest" if case[2] else "")


@pytest.fixture(params=CASES, ids=named)
def done(request: pytest.FixtureRequest) -> Conversion:
    path, stated, nearest = request.param
    return api.convert(reading_of(path, stated), "deepspeed@0.19.2", nearest=nearest)


def keys(conversion: Conversion) -> dict[str, Any]:
    """The JSON, as a strict parser has it."""
    found: dict[str, Any] = json.loads(conversion.rendered.files["ds_config.json"])
    return found


def trainer(conversion: Conversion) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(conversion.rendered.files["training_args.yaml"])
    return found


def test_there_are_enough_sources() -> None:
    assert len(SOURCES) >= 12
    assert any(nearest for *_, nearest in CASES)


def test_deepspeed_resolves_it_as_meant(deepspeed: OracleServer, done: Conversion) -> None:
    flat, back = done.source.flat, done.back.flat
    world = flat["parallel.world_size"]
    answer = deepspeed.request("resolve", text=done.rendered.files["ds_config.json"], world_size=world)
    assert answer["ok"], answer
    found = answer["config"]
    given = keys(done)
    tensor = given.get("tensor_parallel", {}).get("autotp_size", 1)
    # Every rank of a tensor group is counted, although they share their samples.
    assert found["train_batch_size"] / tensor == flat["batch.global_batch"]
    assert found["train_micro_batch_size_per_gpu"] == back["batch.micro_batch"]
    assert found["gradient_accumulation_steps"] == back["batch.accumulation"]
    if "batch.micro_batch" not in done.sink.shortfalls:
        assert found["train_micro_batch_size_per_gpu"] == flat["batch.micro_batch"]
    if flat["optimizer.clip_grad_norm"] is not None:
        assert found["gradient_clipping"] == flat["optimizer.clip_grad_norm"]
    assert found["bfloat16_config"]["enabled"] == (flat["precision.compute"] == "bf16")
    assert found["float16_config"]["enabled"] == (flat["precision.compute"] == "fp16")
    stage = {"none": 0, "optimizer": 1, "optimizer_gradients": 2, "full": 3}[back["parallel.data.sharding"]]
    assert found["zero_config"]["stage"] == stage
    if "parallel.data.sharding" not in done.sink.shortfalls:
        assert flat["parallel.data.sharding"] == back["parallel.data.sharding"]
    assert found["optimizer_name"] == ADAM[flat["optimizer.name"]]
    params = found["optimizer_params"]
    assert params["lr"] == flat["optimizer.lr"]
    assert params["betas"] == [flat["optimizer.beta1"], flat["optimizer.beta2"]]
    assert math.isclose(params["weight_decay"], flat["optimizer.weight_decay"])


def test_transformers_finds_no_mismatch(deepspeed: OracleServer, done: Conversion) -> None:
    given = {name: value for name, value in trainer(done).items() if name not in ("deepspeed", "output_dir")}
    if keys(done).get("sequence_parallel_size", 1) > 1:
        pytest.skip("transformers counts all ranks as data-parallel ones")
    hidden = json.loads(done.rendered.files["config.json"]).get("hidden_size", 1)
    # A graphics card decides about these; the judge has none.
    for name in ("bf16", "fp16", "torch_compile", "report_to"):
        given.pop(name, None)
    config = keys(done)
    for name in ("bf16", "fp16"):
        config.pop(name, None)
    answer = deepspeed.request(
        "auto",
        text=json.dumps(config),
        arguments=given,
        world_size=done.source.flat["parallel.world_size"],
        hidden_size=hidden,
        total_steps=given.get("max_steps", 1),
    )
    assert answer["ok"], answer


def test_rates_are_those_of_the_real_scheduler(deepspeed: OracleServer, done: Conversion) -> None:
    given, arguments = keys(done), trainer(done)
    steps = min(STEPS, arguments["max_steps"])
    rate = given["optimizer"]["params"]["lr"]
    if "scheduler" in given:
        answer = deepspeed.request("lr", scheduler=given["scheduler"], steps=steps, rate=rate)
    else:
        answer = deepspeed.request(
            "trainer",
            kind=arguments["lr_scheduler_type"],
            steps=steps,
            warmup=arguments.get("warmup_steps", 0),
            total=arguments["max_steps"],
            options=arguments.get("lr_scheduler_kwargs", {}),
            rate=rate,
        )
    assert answer["ok"], answer
    written, wanted = curve_of(done.back.flat), curve_of(done.source.flat)
    assert written is not None
    assert wanted is not None
    worst = max(abs(real - ours) for real, ours in zip(answer["lr"], written.rates(range(steps)), strict=True))
    assert worst <= 1e-9 * rate
    note = done.sink.shortfalls["schedule.decay"].note
    stated = float(note.split(" steps: ")[1].split(" %")[0]) / 100.0
    apart = max(abs(real - ours) for real, ours in zip(answer["lr"], wanted.rates(range(steps)), strict=True))
    assert apart <= stated * rate * 1.01 + 1e-9 * rate
