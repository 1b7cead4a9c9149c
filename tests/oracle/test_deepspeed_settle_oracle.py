"""Our reading and settling of DeepSpeed's JSON, judged by the real DeepSpeed 0.19.2 and transformers."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from environments import OracleServer

from translator.catalogue import load
from translator.catalogue.model import Entry
from translator.findings import Level
from translator.frameworks.deepspeed import schedules
from translator.frameworks.deepspeed.settle import settle
from translator.frameworks.deepspeed.syntax import Companion, read_source
from translator.native import Native

WORLD = 8
VERSION = "0.19.2"
# Where DeepSpeedConfig keeps the keys of a section.
SECTIONS = {
    "zero_optimization": "zero_config",
    "fp16": "float16_config",
    "bf16": "bfloat16_config",
    "activation_checkpointing": "activation_checkpointing_config",
    "flops_profiler": "flops_profiler_config",
    "aio": "aio_config",
    "tensor_parallel": "tensor_parallel_config",
    "expert_parallel": "expert_parallel_config",
    "compile": "compile_config",
    "timers.throughput": "timers_config",
    "autotuning": "autotuning_config",
    "nebula": "nebula_config",
    "data_efficiency": "data_efficiency_config",
    **{name: f"monitor_config.{name}" for name in ("tensorboard", "wandb", "csv_monitor", "comet")},
}
# Keys that it keeps under a name of their own.
NAMED = {
    "sparse_gradients": "sparse_gradients_enabled",
    "optimizer.legacy_fusion": "optimizer_legacy_fusion",
    "scheduler.type": "scheduler_name",
    "use_data_before_expert_parallelism": "use_data_before_expert_parallel_",
    "checkpoint.load_universal": "load_universal_checkpoint",
    "checkpoint.use_node_local_storage": "use_node_local_storage",
    "checkpoint.parallel_write.pipeline_stage": "checkpoint_parallel_write_pipeline",
    "checkpoint.checkpoint_serialization": "checkpoint_config.checkpoint_serialization",
    "data_types.grad_accum_dtype": "grad_accum_dtype",
    "data_types.param_dtype": "param_dtype",
    "data_types.buffer_dtype": "buffer_dtype",
    "torch_autocast.enabled": "torch_autocast_enabled",
    "torch_autocast.lower_precision_safe_modules": "torch_autocast_lower_precision_safe_modules",
    "amp.enabled": "amp_enabled",
}
# Its monitors' counterpart of an absent section, and what it makes of the words before it keeps them.
ABSENT = object()
FP32 = {"torch.float32": "fp32", "torch.float16": "fp16", "torch.bfloat16": "bf16", None: None}


def lookup(config: Any, path: str) -> Any:
    for part in path.split("."):
        if not isinstance(config, dict) or part not in config:
            return ABSENT
        config = config[part]
    return config


def real_value(entry: Entry, config: dict[str, Any]) -> Any:
    """What DeepSpeedConfig holds for a key; ABSENT where it keeps nothing comparable."""
    address = (
        entry.flags[1]
        if entry.address.startswith(("zero_optimization.stage3_", "tensor_parallel.")) and len(entry.flags) > 1
        else entry.address
    )
    if address in NAMED:
        return lookup(config, NAMED[address])
    if address == "checkpoint.tag_validation":
        return lookup(config, "checkpoint_config.tag_validation")
    for section, kept in SECTIONS.items():
        if address.startswith(f"{section}."):
            return lookup(config, f"{kept}{address.removeprefix(section)}")
    return lookup(config, address)


def ours(entry: Entry, native: Native) -> Any:
    value = native.values.get(entry.address)
    if entry.address == "checkpoint.tag_validation" and isinstance(value, str):
        return value.upper()
    return value


def same(left: Any, right: Any) -> bool:
    return bool(left == right) or FP32.get(right if isinstance(right, str) else None) == left is not None


def read(
    text: str,
    world: int = WORLD,
    trainer: str | None = "deepspeed",
    name: str = "ds.json",
    trainer_text: Companion | None = None,
    model: Companion | None = None,
) -> Native:
    native = read_source(name, text, version=VERSION, world_size=world, trainer=trainer_text, model=model)
    settle(native, trainer=trainer)
    return native


def compared(native: Native, config: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Every key that both sides hold: its address, our value, the real one."""
    catalogue = load("deepspeed", VERSION)
    for address in catalogue.addresses():
        entry = catalogue.first(address)
        if entry.action in {"parameter", "deprecated"} or entry.kind == "dict":
            continue
        real = real_value(entry, config)
        if real is not ABSENT:
            yield address, ours(entry, native), real
    for section in ("optimizer", "scheduler"):
        params = config[f"{section}_params"] or {}
        for name, real in params.items():
            address = f"{section}.params.{name}"
            if address in native.given:
                yield address, native.values.get(address), real
    kind = native.values.get("optimizer.type")
    known = isinstance(kind, str) and config["optimizer_name"] == kind.lower()
    yield "optimizer.type", kind, kind if known else config["optimizer_name"]


def differences(native: Native, config: dict[str, Any]) -> tuple[int, list[str]]:
    pairs = list(compared(native, config))
    wrong = [f"{address}: {left!r}, really {right!r}" for address, left, right in pairs if not same(left, right)]
    return len(pairs), wrong


def refused(native: Native, answer: dict[str, Any]) -> str | None:
    """Why our findings do not give the reason of a refusal; None when they do."""
    error: str = answer["error"]
    findings = [finding for finding in native.findings if finding.level is not Level.NOTE]
    codes = {finding.code for finding in findings}
    if error.startswith("ValidationError"):
        model = error.split(" for ", 1)[1].split("\n", maxsplit=1)[0]
        section = {
            "DeepSpeedZeroConfig": "zero_optimization",
            "DeepSpeedFP16Config": "fp16",
            "CompileConfig": "compile",
        }
        places = [line.strip() for line in error.splitlines()[1:] if line and not line.startswith(" ")]
        about = {finding.option for finding in findings if finding.code in {"R130", "R133", "R140", "S208"}}
        prefix = section.get(model, "")
        wanted = {f"{prefix}.{place}" if prefix else place for place in places if place}
        if {"S208"} & codes and "Value error" in error:
            return None
        return None if wanted <= about or codes & {"S208"} else f"{wanted} not in {about}"
    for text, code in REASONS:
        if text in error:
            return None if code & codes else f"{code} not in {codes}"
    return f"no reason known for {error}"


REASONS: tuple[tuple[str, set[str]], ...] = (
    ("not supported between instances of", {"S203", "R140", "S225"}),
    ("unsupported operand type", {"S203", "R140"}),
    ("has to be greater than 0", {"S201"}),
    ("train_batch_size is not equal", {"S202"}),
    ("needs to be provided", {"S200"}),
    ("cannot be simultaneously enabled", {"S204"}),
    ("Invalid communication_data_type", {"S205"}),
    ("master_weights_and_grads is only supported", {"S206"}),
    ("bf16_optimizer_states is only supported", {"S206"}),
    ("bf16_optimizer_states requires", {"S207"}),
    ("Cannot provide deprecated parameter", {"S224"}),
    ("Partial offloading", {"S208"}),
    ("Duplicate keys", {"R136"}),
    ("invalid tag_validation", {"S218"}),
    ("pipeline_stage", {"S218"}),
    ("contains invalid value", {"S218"}),
    ("batch related parameters were found", {"S212"}),
    ("ElasticityConfigError", {"S212"}),
    ("ElasticityIncompatibleWorldSize", {"S212"}),
    ("load_balance_coeff", {"S243"}),
    ("curriculum_metrics", {"S222"}),
    ("KeyError", {"S222"}),
    ("argument after ** must be a mapping", {"R142"}),
    ("has no attribute", {"R142"}),
    ("HjsonDecodeError", {"R140", "R141"}),
)


def corpus() -> Path:
    folder = os.environ.get("TTX_CORPUS")
    if not folder or not (Path(folder) / "deepspeed").is_dir():
        pytest.skip("TTX_CORPUS names no folder with configurations")
    return Path(folder) / "deepspeed"


def test_corpus(deepspeed: OracleServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Every JSON of the corpus at 8 ranks: equal values key by key, or a finding with the reason of the refusal."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for path in sorted(corpus().glob("*.json")):
        answer = deepspeed.request("resolve", file=str(path), world_size=WORLD)
        native = read(path.read_text(encoding="utf-8"), name=path.name)
        if answer["ok"]:
            number, found = differences(native, answer["config"])
            counts["resolved files"] += 1
            counts["values compared"] += number
            wrong += [f"{path.name}: {item}" for item in found]
            errors = [item.code for item in native.findings if item.level is Level.ERROR]
            wrong += [f"{path.name}: {code} on a file that is taken" for code in errors if code not in LATER]
        else:
            counts["refused files"] += 1
            if reason := refused(native, answer):
                wrong.append(f"{path.name}: {reason} ({answer['error'][:100]})")
    with capsys.disabled():
        print(f"\nDeepSpeed corpus: {dict(counts)}, {len(wrong)} differences")
    assert not wrong, "\n".join(wrong)
    assert counts["resolved files"] > 25
    assert counts["refused files"] > 80


# Refused by the engine, after the configuration was taken.
LATER = {"S209", "S210", "S211", "S216", "S217", "S220", "S221", "S225", "S242", "R132"}
ZERO = {"stage": 2}
TAKEN: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "all three": ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}, {}),
    "batch and micro": ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2}, {}),
    "batch and steps": ({"train_batch_size": 64, "gradient_accumulation_steps": 2}, {}),
    "micro and steps": ({"train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 5}, {}),
    "batch": ({"train_batch_size": 64}, {}),
    "micro": ({"train_micro_batch_size_per_gpu": 3}, {}),
    "sequence": ({"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2}, {}),
    "AutoTP": ({"train_micro_batch_size_per_gpu": 4, "tensor_parallel": {"autotp_size": 2}}, {}),
    "stage as text": ({"train_batch_size": 8, "zero_optimization": {"stage": "2"}}, {}),
    "stage as float": ({"train_batch_size": 8, "zero_optimization": {"stage": 3.0, "reduce_bucket_size": 5e8}}, {}),
    "old bool": ({"train_batch_size": 8, "zero_optimization": True}, {}),
    "cpu_offload": ({"train_batch_size": 8, "zero_optimization": {"stage": 2, "cpu_offload": True}}, {}),
    "cpu_offload off": ({"train_batch_size": 8, "zero_optimization": {"stage": 2, "cpu_offload": False}}, {}),
    "old gather": (
        {"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_gather_fp16_weights_on_model_save": True}},
        {},
    ),
    "plain names": ({"train_batch_size": 8, "zero_optimization": {"stage": 3, "prefetch_bucket_size": 17}}, {}),
    "auto in a section": ({"train_batch_size": 8, "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}}, {}),
    "bfloat16": ({"train_batch_size": 8, "bfloat16": {"enabled": "true"}, "zero_optimization": {"stage": 1}}, {}),
    "words for bools": (
        {"train_batch_size": 8, "fp16": {"enabled": "yes", "loss_scale": "128", "hysteresis": True}},
        {},
    ),
    "profiler": ({"train_batch_size": 8, "flops_profiler": {"enabled": True, "profile_step": 5}}, {}),
    "checkpoint": ({"train_batch_size": 8, "checkpoint": {"tag_validation": "fail", "load_universal": True}}, {}),
    "unknown at the top": ({"train_batch_size": 8, "gradient_cliping": 1.0, "_comment": "x"}, {}),
    "pipeline": ({"train_batch_size": 8, "pipeline": {"stages": 4, "seed_layers": True}}, {}),
    "reduce": (
        {"train_batch_size": 8, "communication_data_type": "FP32", "data_types": {"grad_accum_dtype": "fp32"}},
        {},
    ),
    "monitors": (
        {"train_batch_size": 8, "wandb": {"enabled": True, "group": "a"}, "tensorboard": {"job_name": "x"}},
        {},
    ),
    "null sections": ({"train_batch_size": 8, "aio": None, "zero_optimization": {"offload_param": None}}, {}),
}
REFUSED: dict[str, tuple[Any, int]] = {
    "nothing": ({}, 8),
    "steps only": ({"gradient_accumulation_steps": 4}, 8),
    "too small": ({"train_batch_size": 4}, 8),
    "mismatch": ({"train_batch_size": 9, "train_micro_batch_size_per_gpu": 1}, 8),
    "text": ({"train_batch_size": "auto"}, 8),
    "both": ({"train_batch_size": 8, "fp16": {"enabled": True}, "bf16": {"enabled": True}}, 8),
    "reduce": ({"train_batch_size": 8, "communication_data_type": "float32"}, 8),
    "unknown": ({"train_batch_size": 8, "zero_optimization": {"stages": 2}}, 8),
    "unknown below": ({"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"pin": True}}}, 8),
    "type": ({"train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": "5e8"}}, 8),
    "fraction": ({"train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": 0.5}}, 8),
    "bound": ({"train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": -1}}, 8),
    "stage": ({"train_batch_size": 8, "zero_optimization": {"stage": 4}}, 8),
    "device": ({"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "gpu"}}}, 8),
    "ratio": ({"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"ratio": 0.5}}}, 8),
    "old and new": (
        {"train_batch_size": 8, "zero_optimization": {"cpu_offload": True, "offload_optimizer": {"device": "cpu"}}},
        8,
    ),
    "master": ({"train_batch_size": 8, "fp16": {"enabled": True, "fp16_master_weights_and_grads": True}}, 8),
    "states": (
        {"train_batch_size": 8, "zero_optimization": ZERO, "bf16": {"enabled": True, "bf16_optimizer_states": True}},
        8,
    ),
    "tag": ({"train_batch_size": 8, "checkpoint": {"tag_validation": "off"}}, 8),
    "elastic": (
        {
            "train_batch_size": 8,
            "elasticity": {"enabled": True, "max_train_batch_size": 2000, "micro_batch_sizes": [2, 4], "version": 0.1},
        },
        8,
    ),
    "section": ({"train_batch_size": 8, "fp16": True}, 8),
    "null section": ({"train_batch_size": 8, "zero_optimization": None}, 8),
    "layer drop": ({"train_batch_size": 8, "progressive_layer_drop": {"theta": 0.5}}, 8),
    "balance": ({"train_batch_size": 8, "expert_parallel": {"load_balance_coeff": 0.1}}, 8),
    "twice": ('{"train_batch_size": 8, "train_batch_size": 8}', 8),
    "metrics": (
        {
            "train_batch_size": 8,
            "data_efficiency": {"data_sampling": {"curriculum_learning": {"enabled": True}}},
        },
        8,
    ),
}


_ELASTIC: dict[str, Any] = {"enabled": True, "max_train_batch_size": 2000, "micro_batch_sizes": [2, 4, 6]}
TAKEN |= {
    "elastic": ({"elasticity": {**_ELASTIC, "version": 0.1}}, {}),
    "elastic small": ({"elasticity": {**_ELASTIC, "version": 0.1, "prefer_larger_batch": False}}, {}),
    "elastic nodes": ({"elasticity": {**_ELASTIC, "version": 0.2, "num_gpus_per_node": 4}}, {}),
    "elastic few": ({"elasticity": {**_ELASTIC, "version": 0.2, "max_train_batch_size": 100, "max_gpus": 8}}, {}),
}
REFUSED |= {
    "elastic ranks": ({"elasticity": {**_ELASTIC, "version": 0.1, "max_gpus": 4}}, 8),
    "elastic list": ({"elasticity": {**_ELASTIC, "version": 0.1, "micro_batch_sizes": [2, -1]}}, 8),
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(deepspeed: OracleServer, name: str) -> None:
    config, sizes = TAKEN[name]
    text = json.dumps(config)
    answer = deepspeed.request("resolve", text=text, world_size=WORLD, **sizes)
    assert answer["ok"], answer
    native = read(text)
    number, wrong = differences(native, answer["config"])
    assert number > 220
    assert not wrong
    assert not [item for item in native.findings if item.level is Level.ERROR and item.code not in LATER]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(deepspeed: OracleServer, name: str) -> None:
    config, world = REFUSED[name]
    text = config if isinstance(config, str) else json.dumps(config)
    answer = deepspeed.request("resolve", text=text, world_size=world)
    assert not answer["ok"]
    assert refused(read(text, world), answer) is None, answer["error"]


SCHEDULERS: dict[str, dict[str, Any]] = {
    "warm-up": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}},
    "linear warm-up": {
        "type": "WarmupLR",
        "params": {"warmup_num_steps": 7, "warmup_type": "linear", "warmup_min_lr": 1e-5, "warmup_max_lr": 2e-3},
    },
    "no warm-up": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}},
    "decay": {"type": "WarmupDecayLR", "params": {"total_num_steps": 40, "warmup_num_steps": 10}},
    "decay to a floor": {
        "type": "WarmupDecayLR",
        "params": {"total_num_steps": 30, "warmup_num_steps": 5, "warmup_min_lr": 1e-4, "warmup_type": "linear"},
    },
    "cosine": {"type": "WarmupCosineLR", "params": {"total_num_steps": 40, "warmup_num_steps": 10}},
    "cosine, linear": {
        "type": "WarmupCosineLR",
        "params": {"total_num_steps": 33, "warmup_num_steps": 4, "warmup_type": "linear", "cos_min_ratio": 0.1,
                   "warmup_min_ratio": 0.2},
    },
    "range test": {"type": "LRRangeTest", "params": {"lr_range_test_step_size": 5}},
    "range test in stairs": {
        "type": "LRRangeTest",
        "params": {"lr_range_test_step_size": 4, "lr_range_test_staircase": True, "lr_range_test_step_rate": 0.5},
    },
    "one cycle": {
        "type": "OneCycle",
        "params": {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-3, "cycle_first_step_size": 10, "decay_lr_rate": 0.1,
                   "decay_step_size": 5},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedules(deepspeed: OracleServer, name: str) -> None:
    """Every step's rate in the engine's order, the two first at the minimum and the steps past the end included."""
    scheduler = SCHEDULERS[name]
    answer = deepspeed.request("lr", scheduler=scheduler, steps=50, rate=3e-4)
    assert answer["ok"], answer
    rate = schedules.deepspeed_rate(scheduler["type"], scheduler["params"], 3e-4)
    assert rate is not None
    assert [rate(step) for step in range(50)] == pytest.approx(answer["lr"], rel=1e-9, abs=1e-15)


TRAINER_SCHEDULES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "linear": ("linear", 7, {}),
    "cosine": ("cosine", 7, {}),
    "cosine, more cycles": ("cosine", 0, {"num_cycles": 1.5}),
    "cosine with a floor": ("cosine_with_min_lr", 5, {"min_lr": 1e-4}),
    "cosine with a floor in percent": ("cosine_with_min_lr", 5, {"min_lr_rate": 0.1}),
    "restarts": ("cosine_with_restarts", 3, {"num_cycles": 3}),
    "polynomial": ("polynomial", 4, {"power": 2.0, "lr_end": 1e-5}),
    "inverse square root": ("inverse_sqrt", 6, {}),
    "inverse square root, scale": ("inverse_sqrt", 6, {"timescale": 20}),
    "constant": ("constant", 0, {}),
    "constant with warm-up": ("constant_with_warmup", 5, {}),
}


@pytest.mark.parametrize("name", TRAINER_SCHEDULES)
def test_trainer_schedules(deepspeed: OracleServer, name: str) -> None:
    kind, warmup, options = TRAINER_SCHEDULES[name]
    answer = deepspeed.request("trainer", kind=kind, steps=50, warmup=warmup, total=40, options=options, rate=3e-4)
    assert answer["ok"], answer
    rate = schedules.trainer_rate(kind, 3e-4, warmup, 40, options)
    assert rate is not None
    assert [rate(step) for step in range(50)] == pytest.approx(answer["lr"], rel=1e-9, abs=1e-15)


ARGUMENTS = {
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "learning_rate": 2e-4,
    "weight_decay": 0.05,
    "adam_beta2": 0.95,
    "max_grad_norm": 0.7,
    "warmup_steps": 30,
    "max_steps": 400,
    "bf16": True,
}
HIDDEN = 96


def leaves(item: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(item, dict):
        for key, value in item.items():
            yield from leaves(value, f"{path}.{key}" if path else key)
    else:
        yield path, item


def test_auto(deepspeed: OracleServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Every "auto" of the corpus as transformers fills it, and its refusals of values that disagree."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    catalogue = load("deepspeed", VERSION)
    spelled = {
        flag: entry.address for entry in catalogue.entries if entry.action != "parameter" for flag in entry.flags
    }
    trainer = Companion("args.json", json.dumps(ARGUMENTS))
    model = Companion("config.json", json.dumps({"hidden_size": HIDDEN}))
    for path in sorted(corpus().glob("*.json")):
        text = path.read_text(encoding="utf-8")
        if '"auto"' not in text:
            continue
        answer = deepspeed.request(
            "auto", text=text, arguments=ARGUMENTS, world_size=WORLD, hidden_size=HIDDEN, total_steps=400
        )
        native = read(text, trainer=None, name=path.name, trainer_text=trainer, model=model)
        mismatch = any(item.code == "S213" for item in native.findings)
        if not answer["ok"]:
            counts["refused files"] += 1
            if not mismatch or "mismatch" not in answer["error"]:
                wrong.append(f"{path.name}: {answer['error'][:200]}, ours {[item.code for item in native.findings]}")
            continue
        counts["filled files"] += 1
        if mismatch:
            wrong.append(f"{path.name}: S213 on a file that is taken")
        original = dict(leaves(json.loads(json.dumps(answer["config"]))))
        for key, real in original.items():
            address = spelled.get(key, key)
            given = native.given.get(address)
            if (
                real == "auto"
                or given is None
                or (given.missing is not None and given.missing.supply.startswith("write"))
            ):
                continue  # not filled in, or a value that DeepSpeed itself refuses
            counts["values compared"] += 1
            if not same(native.values.get(address), real):
                wrong.append(f"{path.name}: {key} {native.values.get(address)!r}, really {real!r}")
    with capsys.disabled():
        print(f"\nDeepSpeed auto: {dict(counts)}, {len(wrong)} differences")
    assert not wrong, "\n".join(wrong)
    assert counts["filled files"] >= 20
