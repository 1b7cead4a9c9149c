"""Memory under DeepSpeed: the arithmetic of ZeRO, and of DeepSpeed's own estimators."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from translator import api
from translator.errors import SourceError
from translator.memory.estimate import Estimate, estimate_reading
from translator.memory.terms import Kind
from translator.reading import ReadOptions
from translator.source import Source

RANKS = 64


def estimated(
    zero: Mapping[str, object], *, model: str = "llama3-70b", world_size: int = RANKS, **more: object
) -> Estimate:
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 4,
        "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "zero_optimization": zero,
        **more,
    }
    source = Source("ds_config.json", json.dumps(config))
    options = ReadOptions(world_size=world_size, model=model, overrides={"batch.seq_len": 4096})
    return estimate_reading(api.read(source, framework="deepspeed", options=options))


def state(found: Estimate, *kinds: Kind) -> float:
    return float(sum(term.amount[0, 0] for term in found.account.state if term.kind in kinds))


def parameters(found: Estimate) -> float:
    """Elements of the model, from a run without ZeRO whose parameters are whole in bf16."""
    return state(found, Kind.PARAMETERS) / 2


@pytest.fixture(scope="module")
def whole() -> float:
    return parameters(estimated({"stage": 0}))


def test_a_70b_model_at_16_bytes_per_parameter(whole: float) -> None:
    assert whole == pytest.approx(70.55e9, rel=0.01)
    assert whole * 16 == pytest.approx(1.13e12, rel=0.01)
    everything = state(estimated({"stage": 0}), Kind.PARAMETERS, Kind.GRADIENTS, Kind.OPTIMIZER)
    assert everything == pytest.approx(whole * 16, rel=0.01)


@pytest.mark.parametrize(
    ("zero", "per_parameter"),
    [
        (1, 2 + 2 + 12 / RANKS),
        (2, 2 + (2 + 12) / RANKS),
        (3, (2 + 2 + 12) / RANKS),
    ],
)
def test_bytes_per_parameter_by_stage(zero: int, per_parameter: float, whole: float) -> None:
    found = state(estimated({"stage": zero}), Kind.PARAMETERS, Kind.GRADIENTS, Kind.OPTIMIZER)
    assert found == pytest.approx(per_parameter * whole, rel=0.001)


def test_stage_2_at_the_step_is_what_deepspeeds_estimator_says(whole: float) -> None:
    """2 P + 18 P / N: ``estimate_zero2_model_states_mem_needs``, stage_1_and_2.py:2940 (0.19.2)."""
    found = estimated({"stage": 2, "allgather_bucket_size": 1})
    step = sum(float(term.amount[0, 0]) for term in found.account.phases["optimizer step"])
    total = state(found, Kind.PARAMETERS, Kind.GRADIENTS, Kind.OPTIMIZER) + step
    assert total == pytest.approx(2 * whole + 18 * whole / RANKS, rel=0.001)


def test_stage_1_with_fp32_accumulation_holds_two_kinds_of_whole_gradients(whole: float) -> None:
    found = estimated({"stage": 1}, data_types={"grad_accum_dtype": "fp32"})
    assert state(found, Kind.GRADIENTS) == pytest.approx(6 * whole, rel=0.001)


def test_buckets_are_counted_in_elements() -> None:
    def bucket(elements: int, *, overlap: bool) -> float:
        zero = {"stage": 2, "reduce_bucket_size": elements, "overlap_comm": overlap}
        phase = estimated(zero).account.phases["backward pass of a layer"]
        return float(next(term.amount[0, 0] for term in phase if term.name == "buckets of gradients"))

    assert bucket(500_000_000, overlap=False) == pytest.approx(1e9)
    assert bucket(500_000_000, overlap=True) == pytest.approx(2e9)
    assert bucket(10_000_000, overlap=False) == pytest.approx(2e7)


def test_a_bucket_is_a_buffer_of_its_full_size_however_small_the_model_is() -> None:
    def buckets(**zero: object) -> float:
        account = estimated({"reduce_bucket_size": 10**12, **zero}).account
        terms = [*account.state, *account.phases["backward pass of a layer"]]
        return float(sum(term.amount[0, 0] for term in terms if term.name == "buckets of gradients"))

    assert buckets(stage=1) == buckets(stage=3, overlap_comm=True) == 2e12
    assert buckets(stage=2, contiguous_gradients=False) < 2e11


def test_zero_keeps_a_copy_of_its_partition_even_in_fp32(whole: float) -> None:
    for stage, share in ((0, 16.0), (1, 8 + 12 / RANKS), (2, 4 + 16 / RANKS), (3, 20 / RANKS)):
        found = estimated({"stage": stage}, bf16={"enabled": False})
        held = state(found, Kind.PARAMETERS, Kind.GRADIENTS, Kind.OPTIMIZER)
        assert held == pytest.approx(share * whole, rel=0.01), stage


def test_offloading_moves_the_optimizer_to_host_memory(whole: float) -> None:
    found = estimated({"stage": 3, "offload_optimizer": {"device": "cpu"}})
    assert state(found, Kind.OPTIMIZER) == 0
    assert sum(float(term.amount[0, 0]) for term in found.account.host) > 12 * whole / RANKS


def test_without_a_model_the_way_out_names_the_flag() -> None:
    config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}
    reading = api.read(Source("ds.json", json.dumps(config)), framework="deepspeed", options=ReadOptions(world_size=8))
    with pytest.raises(SourceError, match="--model"):
        estimate_reading(reading)
