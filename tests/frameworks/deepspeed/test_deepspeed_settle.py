"""What is in force of a DeepSpeed configuration, without the real package."""

from __future__ import annotations

import json
from typing import Any

import pytest

from translator.findings import Level
from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed import codes, schedules
from translator.frameworks.deepspeed.settle import settle
from translator.frameworks.deepspeed.syntax import Companion, Inputs, read_source
from translator.native import WORLD_SIZE, Missing, Native, Origin

WORLD = 8


def settled(
    config: dict[str, Any] | str,
    world: int | None = WORLD,
    version: str = "0.19.2",
    arguments: dict[str, Any] | None = None,
    model: dict[str, Any] | None = None,
    variables: dict[str, str] | None = None,
) -> Native:
    text = config if isinstance(config, str) else json.dumps(config)
    native = read_source(
        "ds.json",
        text,
        version=version,
        world_size=world,
        inputs=Inputs(variables or {}),
        trainer=Companion("args.json", json.dumps(arguments)) if arguments is not None else None,
        model=Companion("config.json", json.dumps(model)) if model is not None else None,
    )
    settle(native)
    return native


def said(native: Native, least: Level = Level.ERROR) -> list[str]:
    order = [Level.NOTE, Level.WARNING, Level.ERROR]
    return [item.code for item in native.findings if order.index(item.level) >= order.index(least)]


def supply(native: Native, address: str) -> str:
    value = native.given[address].value
    assert isinstance(value, Missing)
    return value.supply


def sizes(native: Native) -> tuple[object, ...]:
    return tuple(native.values.get(key) for key in (at.TRAIN_BATCH, at.MICRO_BATCH, at.ACCUMULATION))


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({at.TRAIN_BATCH: 64, at.MICRO_BATCH: 2, at.ACCUMULATION: 4}, (64, 2, 4)),
        ({at.TRAIN_BATCH: 64, at.MICRO_BATCH: 2}, (64, 2, 4)),
        ({at.TRAIN_BATCH: 64, at.ACCUMULATION: 4}, (64, 2, 4)),
        ({at.MICRO_BATCH: 2, at.ACCUMULATION: 4}, (64, 2, 4)),
        ({at.TRAIN_BATCH: 64}, (64, 8, 1)),
        ({at.MICRO_BATCH: 2}, (16, 2, 1)),
    ],
)
def test_the_triangle(config: dict[str, Any], wanted: tuple[int, int, int]) -> None:
    native = settled(config)
    assert sizes(native) == wanted
    assert native.values[at.GLOBAL_BATCH] == wanted[0]
    assert said(native) == []
    for key in (at.TRAIN_BATCH, at.MICRO_BATCH, at.ACCUMULATION):
        assert native.origin(key) is (Origin.EXPLICIT if key in config else Origin.DERIVED)


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({}, "S200"),
        ({at.ACCUMULATION: 4}, "S200"),
        ({at.TRAIN_BATCH: 4}, "S201"),
        ({at.TRAIN_BATCH: 12, at.MICRO_BATCH: 1}, "S202"),
        ({at.TRAIN_BATCH: 64, at.MICRO_BATCH: 2, at.ACCUMULATION: 2}, "S202"),
        ({at.TRAIN_BATCH: "8"}, "S203"),
        ({at.TRAIN_BATCH: -8}, "S201"),
    ],
)
def test_impossible_batches(config: dict[str, Any], code: str) -> None:
    native = settled(config)
    assert said(native) == [code]
    assert at.GLOBAL_BATCH not in native.values
    if code == "S202":
        size = int(native.findings[0].fix.split()[2].rstrip(","))
        assert said(settled({**config, at.TRAIN_BATCH: size})) == []


def test_the_world_size_may_be_open() -> None:
    native = settled({at.MICRO_BATCH: 2}, world=None)
    assert native.values[at.ACCUMULATION] == 1
    assert supply(native, at.TRAIN_BATCH) == "--world-size N"
    assert supply(native, WORLD_SIZE) == "--world-size N"
    other = settled({at.TRAIN_BATCH: 64}, world=None)
    assert supply(other, at.MICRO_BATCH) == "--world-size N"
    assert said(native) == said(other) == []


def test_tensor_parallel_ranks_are_counted_in_the_batch() -> None:
    native = settled({at.MICRO_BATCH: 4, "tensor_parallel": {"autotp_size": 2}})
    assert native.values[at.TRAIN_BATCH] == 32
    assert (native.values[at.DP], native.values[at.DATA_PARALLEL], native.values[at.TENSOR]) == (8, 4, 2)
    assert native.values[at.GLOBAL_BATCH] == 16
    assert "S237" in said(native, Level.NOTE)
    assert said(settled({at.MICRO_BATCH: 4, "tensor_parallel": {"autotp_size": 3}})) == ["S238"]
    stage = {"stage": 3}
    assert "S210" in said(
        settled({at.MICRO_BATCH: 4, "tensor_parallel": {"autotp_size": 2}, "zero_optimization": stage})
    )


def test_sequence_parallel_ranks_are_not() -> None:
    native = settled({at.MICRO_BATCH: 1, "sequence_parallel_size": 2})
    assert (native.values[at.DP], native.values[at.TRAIN_BATCH], native.values[at.SEQUENCE]) == (4, 4, 2)
    assert native.values[at.REDUCE_DTYPE] == "fp32"
    old = settled({at.MICRO_BATCH: 1, "sequence_parallel_size": 2}, version="0.16.9")
    assert old.values[at.TRAIN_BATCH] == 8
    mesh = settled({at.MICRO_BATCH: 1, "sequence_parallel_size": 2, "data_parallel_size": 4})
    assert mesh.values[at.DP] == 4


ARGUMENTS: dict[str, Any] = {
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "learning_rate": 1e-4,
    "weight_decay": 0.1,
    "adam_beta2": 0.95,
    "warmup_steps": 20,
    "max_steps": 100,
    "bf16": True,
}
AUTO: dict[str, Any] = {
    at.TRAIN_BATCH: "auto",
    at.MICRO_BATCH: "auto",
    at.ACCUMULATION: "auto",
    "gradient_clipping": "auto",
    "bf16": {"enabled": "auto"},
    "fp16": {"enabled": "auto"},
    "zero_optimization": {
        "stage": 3,
        "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto",
        "stage3_param_persistence_threshold": "auto",
    },
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
    "scheduler": {
        "type": "WarmupDecayLR",
        "params": {
            "warmup_num_steps": "auto",
            "total_num_steps": "auto",
            "warmup_max_lr": "auto",
            "warmup_min_lr": "auto",
        },
    },
}


def test_transformers_fills_auto() -> None:
    native = settled(AUTO, arguments=ARGUMENTS, model={"hidden_size": 64})
    assert sizes(native) == (64, 4, 2)
    values = native.values
    assert (values["gradient_clipping"], values[at.BF16], values[at.FP16]) == (1.0, True, False)
    assert values["zero_optimization.reduce_bucket_size"] == 64 * 64
    assert values["zero_optimization.stage3_prefetch_bucket_size"] == int(0.9 * 64 * 64)
    assert values["zero_optimization.stage3_param_persistence_threshold"] == 640
    assert (values["@optimizer.beta1"], values["@optimizer.beta2"], values["@optimizer.weight_decay"]) == (
        0.9,
        0.95,
        0.1,
    )
    assert (values["@schedule.peak"], values["@schedule.warmup"], values["@schedule.total"]) == (1e-4, 20, 100)
    assert said(native, Level.WARNING) == []
    assert native.origin("gradient_clipping") is Origin.DERIVED


def test_auto_without_arguments_names_them() -> None:
    native = settled(AUTO)
    assert supply(native, at.MICRO_BATCH) == "--set per_device_train_batch_size=..."
    assert supply(native, "zero_optimization.reduce_bucket_size") == "--model config.json"
    assert supply(native, "scheduler.params.total_num_steps") == "--set max_steps=..."
    assert supply(native, "@optimizer.lr") == "--set learning_rate=..."
    assert said(native, Level.WARNING) == ["R139"]
    given = settled(AUTO, variables={"per_device_train_batch_size": "4", "gradient_accumulation_steps": "2"})
    assert sizes(given) == (64, 4, 2)


def test_arguments_that_are_left_out_have_their_defaults() -> None:
    native = settled(AUTO, arguments={"max_steps": 10}, model={"text_config": {"hidden_sizes": [8, 16]}})
    assert sizes(native) == (64, 8, 1)
    assert native.values["@optimizer.lr"] == 5e-5
    assert native.values["zero_optimization.reduce_bucket_size"] == 256
    assert native.values["scheduler.params.warmup_num_steps"] == 1
    assert native.values["@schedule.warmup"] == 2


def test_stated_values_must_agree_with_the_arguments() -> None:
    native = settled({at.MICRO_BATCH: 2, "gradient_clipping": 0.5}, arguments=ARGUMENTS)
    assert said(native).count("S213") == 2
    assert "S213" not in said(settled({at.MICRO_BATCH: 4}, arguments=ARGUMENTS))


def test_auto_that_nobody_fills() -> None:
    native = settled({at.TRAIN_BATCH: "auto", "steps_per_print": "auto"}, arguments=ARGUMENTS)
    assert said(native) == ["S214"]
    stage2 = settled(
        {**AUTO, "zero_optimization": {"stage": 2, "stage3_prefetch_bucket_size": "auto"}}, arguments=ARGUMENTS
    )
    assert stage2.values["zero_optimization.stage3_prefetch_bucket_size"] == 50_000_000


def test_a_trainer_without_sections_brings_its_own() -> None:
    native = settled({at.TRAIN_BATCH: "auto", "zero_optimization": {"stage": 2}}, arguments=ARGUMENTS)
    values = native.values
    assert (values[at.OPTIMIZER], values["@optimizer.lr"], values[at.DECAY_ALL]) == ("adamw", 1e-4, False)
    assert (values[at.SCHEDULE], values["@schedule.lag"], values["@schedule.warmup"]) == ("hf.linear", 0, 20)
    assert (values[at.BF16], values[at.COMPUTE_DTYPE]) == (True, "bf16")
    assert values[at.CLIP] == 0.0
    assert values["zero_allow_untested_optimizer"] is True
    ratio = settled({at.MICRO_BATCH: 4}, arguments={**ARGUMENTS, "warmup_steps": 0, "warmup_ratio": 0.03})
    assert ratio.values["@schedule.warmup"] == 3
    cosine = {"lr_scheduler_type": "cosine_with_min_lr", "lr_scheduler_kwargs": {"min_lr_rate": 0.1}}
    assert settled({at.MICRO_BATCH: 4}, arguments=ARGUMENTS | cosine).values["@schedule.floor"] == pytest.approx(1e-5)


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({}, ("fp32", "fp32", "fp32", None, "none", "none")),
        ({"bf16": {"enabled": True}}, ("bf16", "bf16", "bf16", "fp32", "none", "BF16")),
        ({"fp16": {"enabled": True}}, ("fp16", "fp16", "fp16", "fp32", "none", "FP16")),
        (
            {"bf16": {"enabled": True}, "zero_optimization": {"stage": 1}, "data_types": {"grad_accum_dtype": "fp32"}},
            ("bf16", "fp32", "bf16", "fp32", "optimizer", "BF16_Optimizer"),
        ),
        (
            {
                "bf16": {"enabled": True},
                "zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}},
                "data_types": {"grad_accum_dtype": "fp32"},
            },
            ("bf16", "fp32", "bf16", "fp32", "optimizer", "ZeRO"),
        ),
        (
            {"bf16": {"enabled": True}, "zero_optimization": {"stage": 3}, "communication_data_type": "fp32"},
            ("bf16", "bf16", "fp32", "fp32", "full", "ZeRO"),
        ),
        (
            {
                "bf16": {"enabled": True, "bf16_master_weights_and_grads": True, "bf16_optimizer_states": True},
                "zero_optimization": {"stage": 2},
            },
            ("bf16", "bf16", "bf16", "bf16", "optimizer_gradients", "ZeRO"),
        ),
    ],
)
def test_precision(config: dict[str, Any], wanted: tuple[str | None, ...]) -> None:
    native = settled({at.TRAIN_BATCH: 8, **config})
    keys = (at.COMPUTE_DTYPE, at.GRAD_DTYPE, at.REDUCE_DTYPE, at.MASTER_DTYPE, at.SHARDING, at.ENGINE_OPTIMIZER)
    assert tuple(native.values.get(key) for key in keys) == wanted
    assert said(native) == []


def test_torch_autocast_keeps_the_weights() -> None:
    native = settled({at.TRAIN_BATCH: 8, "torch_autocast": {"enabled": True, "dtype": "bfloat16"}})
    assert (native.values[at.COMPUTE_DTYPE], native.values[at.PARAM_DTYPE]) == ("bf16", "fp32")


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"fp16": {"enabled": True}, "bf16": {"enabled": True}}, "S204"),
        ({"communication_data_type": "float32"}, "S205"),
        ({"bf16": {"enabled": True, "bf16_master_weights_and_grads": True}}, "S206"),
        ({"bf16": {"enabled": True, "bf16_optimizer_states": True}, "zero_optimization": {"stage": 1}}, "S207"),
        ({"zero_optimization": {"stage": 2, "offload_optimizer": {"ratio": 0.5}}}, "S208"),
        ({"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}, "S209"),
        ({"data_types": {"grad_accum_dtype": "float8"}}, "S209"),
        ({"bf16": {"enabled": True}, "data_types": {"param_dtype": "fp32"}}, "S209"),
        ({"optimizer": {"type": "AdamW", "params": {"max_grad_norm": 1.0}}}, "S211"),
        ({"elasticity": {"enabled": True, "max_train_batch_size": 64, "micro_batch_sizes": [2]}}, "S212"),
        ({"optimizer": {"type": "Lamb"}, "fp16": {"enabled": True, "loss_scale": 128}}, "S216"),
        ({"scheduler": {"type": "WarmupDecayLR", "params": {}}}, "S217"),
        ({"checkpoint": {"tag_validation": "off"}}, "S218"),
        ({"amp": {"enabled": True}, "zero_optimization": {"stage": 1}}, "S220"),
        ({"optimizer": {"type": "OneBitAdam"}, "zero_optimization": {"stage": 1}}, "S221"),
        ({"progressive_layer_drop": {"theta": 0.5}}, "S222"),
        ({"zero_optimization": {"cpu_offload": True, "offload_optimizer": {"device": "cpu"}}}, "S224"),
        ({"gradient_clipping": "1.0"}, "S225"),
        ({"prescale_gradients": True, "zero_optimization": {"stage": 2}}, "S242"),
        ({"expert_parallel": {"load_balance_coeff": 0.1}}, "S243"),
    ],
)
def test_what_deepspeed_refuses(config: dict[str, Any], code: str) -> None:
    assert said(settled({at.TRAIN_BATCH: 8, **config})) == [code]
    assert code in codes.CODES


def test_adam_is_adamw() -> None:
    def optimizer(params: dict[str, Any], kind: str = "Adam") -> Native:
        return settled({at.TRAIN_BATCH: 8, "optimizer": {"type": kind, "params": params}})

    plain = optimizer({"lr": 1e-4})
    assert plain.values[at.OPTIMIZER] == "adamw"
    assert "S233" in said(plain, Level.NOTE)
    assert plain.values["@optimizer.weight_decay"] == 0.0
    assert optimizer({"adam_w_mode": False}).values[at.OPTIMIZER] == "adam"
    assert optimizer({"adam_w_mode": False}, "AdamW").values[at.OPTIMIZER] == "adamw"
    torch = optimizer({"torch_adam": True})
    assert torch.values["@optimizer.weight_decay"] == 0.01
    assert optimizer({}, "SGD").values[at.OPTIMIZER] == "sgd"


def test_offload_and_old_spellings() -> None:
    native = settled({at.TRAIN_BATCH: 8, "zero_optimization": {"stage": 2, "cpu_offload": True}})
    assert native.values["zero_optimization.offload_optimizer.device"] == "cpu"
    assert native.origin("zero_optimization.offload_optimizer.device") is Origin.DERIVED
    useless = settled({at.TRAIN_BATCH: 8, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})
    assert said(useless, Level.WARNING) == ["S240"]


def test_defaults_by_version() -> None:
    config = {at.TRAIN_BATCH: 8, "bf16": {"enabled": True}}
    assert [settled(config, version=version).values[at.CLIP] for version in ("0.16.9", "0.19.2", "0.19.8")] == [0, 0, 1]
    assert settled(config).values["zero_optimization.overlap_comm"] is False
    stage = settled({**config, "zero_optimization": {"stage": 3}})
    assert stage.values["zero_optimization.overlap_comm"] is True
    assert "S225" in said(settled(config), Level.NOTE)


def test_inert_keys_are_named() -> None:
    native = settled(
        {
            at.TRAIN_BATCH: 8,
            "activation_checkpointing": {"partition_activations": True},
            "pipeline": {"stages": 4},
            "flops_profiler": {"enabled": True},
        }
    )
    assert {"S232", "S236"} <= set(said(native, Level.NOTE))
    assert native.values["wall_clock_breakdown"] is True


def test_the_schedule() -> None:
    base: dict[str, Any] = {at.TRAIN_BATCH: 8, "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}}
    warm = settled({**base, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1}}})
    assert (warm.values["@schedule.warmup"], warm.values["@schedule.peak"]) == (2, 3e-4)
    assert (warm.values["@schedule.shape"], warm.values["@schedule.lag"]) == ("log", 1)
    old = settled({**base, "scheduler": {"type": "WarmupLR"}}, version="0.16.9")
    assert old.values["@schedule.peak"] == 0.001
    decay = settled({**base, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 50}}})
    assert (decay.values["@schedule.peak"], decay.values["@schedule.total"]) == (0.001, 50)
    assert "S234" in said(decay, Level.WARNING)
    cosine = settled({**base, "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 50}}})
    assert cosine.values["@schedule.floor"] == pytest.approx(3e-8)
    assert settled(base).values[at.SCHEDULE] is None


def test_the_engine_is_one_step_behind() -> None:
    rate = schedules.deepspeed_rate("WarmupLR", {"warmup_num_steps": 4, "warmup_type": "linear"}, 1.0)
    assert rate is not None
    assert [rate(step) for step in range(7)] == [0, 0, 0.25, 0.5, 0.75, 1, 1]


def test_the_cosine_rises_again_until_it_was_mended() -> None:
    params = {"total_num_steps": 20, "warmup_num_steps": 4}
    old, new = (schedules.deepspeed_rate("WarmupCosineLR", params, 1.0, clamped=clamped) for clamped in (False, True))
    assert old is not None
    assert new is not None
    assert old(20) == pytest.approx(new(20))
    assert old(30) > 0.1
    assert new(30) == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("kind", "options", "wanted"),
    [
        ("linear", {}, [0.0, 0.5, 1.0, 0.5, 0.0]),
        ("cosine", {}, [0.0, 0.5, 1.0, 0.5, 0.0]),
        ("cosine_with_min_lr", {"min_lr_rate": 0.5}, [0.0, 0.5, 1.0, 0.75, 0.5]),
        ("constant_with_warmup", {}, [0.0, 0.5, 1.0, 1.0, 1.0]),
        ("constant", {}, [1.0] * 5),
        ("polynomial", {"lr_end": 0.2}, [0.0, 0.5, 1.0, 0.6, 0.2]),
        ("inverse_sqrt", {}, [0.0, 0.5, 1.0, (2 / 3) ** 0.5, 0.5**0.5]),
    ],
)
def test_transformers_schedules(kind: str, options: dict[str, Any], wanted: list[float]) -> None:
    rate = schedules.trainer_rate(kind, 1.0, 2, 4, options)
    assert rate is not None
    assert [rate(step) for step in range(5)] == pytest.approx(wanted)


def test_templates_stay_open() -> None:
    native = settled('{"train_batch_size": $BATCH, "zero_optimization": {"stage": $ZERO}, "bf16": {"enabled": true}}')
    assert supply(native, at.TRAIN_BATCH) == "--set BATCH=..."
    assert supply(native, at.MICRO_BATCH) == "--set BATCH=..."
    assert supply(native, at.STAGE) == "--set ZERO=..."
    assert at.SHARDING not in native.values
    assert said(native) == []


def test_settling_twice_gives_the_same() -> None:
    native = settled(AUTO, arguments=ARGUMENTS, model={"hidden_size": 64})
    before = dict(native.values)
    settle(native)
    assert native.values == before
