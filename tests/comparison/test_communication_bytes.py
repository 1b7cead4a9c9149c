"""Bytes and calls of a step against numbers computed by hand (see `jobs` for the model)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from jobs import BLOCK, DENSE_ELEMENTS, EXPERTS, calls, job, on_axis, sent, transfers

from translator.communication import Axis, communication_of

MEGATRON, TORCHTITAN, DEEPSPEED = ("megatron", "0.18.0"), ("torchtitan", "0.2.2"), ("deepspeed", "0.19.2")
EVERY = (MEGATRON, TORCHTITAN, DEEPSPEED)
RESIDUAL = 16 * 8 * 2  # tokens x hidden x bytes
GRADIENTS, PARAMETERS = DENSE_ELEMENTS * 4, DENSE_ELEMENTS * 2
SHARE = 7 / 8  # of an all-gather or reduce-scatter over 8 ranks


def zero(stage: int, **more: Any) -> dict[str, Any]:
    return {f"zero_optimization.{name}": value for name, value in {"stage": stage, **more}.items()}


SHARDING = {0: "none", 1: "optimizer", 2: "optimizer_gradients", 3: "full"}


def test_the_model_has_the_elements_that_the_numbers_are_about() -> None:
    assert DENSE_ELEMENTS == 3560


@pytest.mark.parametrize("framework", EVERY, ids=str)
def test_one_rank_sends_nothing(framework: tuple[str, str]) -> None:
    assert transfers(*framework) == []


TENSOR: dict[str, Any] = {"parallel__tensor": 4, "parallel__sequence_parallel": True, "batch__accumulation": 3}


@pytest.mark.parametrize(
    ("framework", "fields", "gathers", "scatters"),
    [
        # 2 layers x 3 micro batches x 2 sublayers x so many
        (MEGATRON, {}, 12 * 3, 12 * 2),
        (MEGATRON, {"recompute__mode": "full", "recompute__method": "uniform"}, 12 * 4, 12 * 3),
        (MEGATRON, {"recompute__mode": "full", "recompute__method": "block", "recompute__layers": 1}, 12 * 3.5, 30),
        (MEGATRON, {"recompute__mode": "selective", "recompute__modules": ["mlp"]}, 12 * 3 + 6, 12 * 2 + 6),
        (MEGATRON, {"recompute__mode": "selective", "recompute__modules": ["core_attn"]}, 12 * 3, 12 * 2),
        (TORCHTITAN, {}, 12 * 2, 12 * 2),
        (TORCHTITAN, {"recompute__mode": "full"}, 12 * 3, 12 * 3),
        (TORCHTITAN, {"recompute__mode": "selective", "recompute__method": "operators"}, 12 * 3, 12 * 2),
    ],
)
def test_sequence_parallel_layers_gather_and_scatter(
    framework: tuple[str, str], fields: Mapping[str, Any], gathers: float, scatters: float
) -> None:
    found = transfers(*framework, **TENSOR, **fields)
    ins, outs = ("inputs of column", "outputs of row") if framework == MEGATRON else ("inputs of att", "outputs of att")
    assert (calls(found, ins), calls(found, outs)) == (gathers, scatters)
    assert sent(found, ins) == gathers * 3 / 4 * RESIDUAL
    assert sent(found, outs) == scatters * 3 / 4 * RESIDUAL


@pytest.mark.parametrize(
    ("framework", "values", "forwards_and_backwards"),
    [(MEGATRON, {}, 4), (DEEPSPEED, {}, 4), (DEEPSPEED, {"tensor_parallel.autotp_size": 4}, 2 + 5)],
)
def test_whole_sequences_are_all_reduced(
    framework: tuple[str, str], values: Mapping[str, Any], forwards_and_backwards: int
) -> None:
    fields = {**TENSOR, "parallel__sequence_parallel": False}
    found = transfers(*framework, values, **fields)
    layers = [one for one in found if one.name.startswith("outputs of")]
    total = sum(float(one.sent_bytes[0, 0]) for one in layers)
    assert total == 2 * 3 * forwards_and_backwards * (2 * 3 / 4) * RESIDUAL


def test_the_ends_of_a_megatron_model() -> None:
    found = transfers(*MEGATRON, **TENSOR)
    # Embedding: scatter forward, gather backward. Head: gather forward and again for the weight, scatter backward.
    assert sent(found, "ends of the model") == 3 * (3 + 2) * 3 / 4 * RESIDUAL
    assert sent(found, "cross entropy") == 3 * 3 * (2 * 3 / 4) * 16 * 4
    assert sent(found, "gradients of norms") == (2 * 2 + 1) * 8 * 4 * (2 * 3 / 4)


def test_logits_travel_without_loss_parallelism() -> None:
    found = transfers(*TORCHTITAN, **TENSOR, parallel__loss_parallel=False)
    assert sent(found, "logits") == 3 * 3 / 4 * 16 * 100 * 2
    assert sent(transfers(*TORCHTITAN, **TENSOR), "logits") == 0


def test_a_head_that_is_whole_moves_nothing() -> None:
    whole = {"tensor_parallel.autotp_size": 4}
    assert {one.name for one in transfers(*DEEPSPEED, whole, **TENSOR)} == {
        "outputs of attention and feed-forward, input gradients"
    }
    cut = transfers("deepspeed", "0.19.8", {**whole, "tensor_parallel.vocab_parallel_lm_head": True}, **TENSOR)
    assert sent(cut, "cross entropy") == 3 * 3 * (2 * 3 / 4) * 16 * 4
    assert sent(cut, "input gradient of the head") == 3 * (2 * 3 / 4) * RESIDUAL


DATA: dict[str, Any] = {"parallel__data__degree": 8, "parallel__data__shard": 8, "batch__accumulation": 5}


@pytest.mark.parametrize(
    ("sharding", "gradients", "parameters"),
    [
        ("none", 2 * SHARE * GRADIENTS, 0),
        ("optimizer", SHARE * GRADIENTS, SHARE * PARAMETERS),
        ("optimizer_gradients", 5 * SHARE * GRADIENTS, SHARE * PARAMETERS),
        ("full", 5 * SHARE * GRADIENTS, 10 * SHARE * PARAMETERS),
    ],
)
def test_data_parallelism_under_megatron(sharding: str, gradients: float, parameters: float) -> None:
    found = transfers(*MEGATRON, **DATA, parallel__data__sharding=sharding)
    assert sent(found, "gradients") == gradients
    assert sent(found, "parameters") == parameters


@pytest.mark.parametrize(
    ("stage", "gradients", "parameters"),
    [
        (0, 2 * SHARE * GRADIENTS, 0),
        (1, 2 * SHARE * GRADIENTS, SHARE * PARAMETERS),
        (2, 5 * 2 * SHARE * GRADIENTS, SHARE * PARAMETERS),
        (3, 5 * SHARE * GRADIENTS, 10 * SHARE * PARAMETERS),
    ],
)
def test_data_parallelism_by_zero_stage(stage: int, gradients: float, parameters: float) -> None:
    found = transfers(*DEEPSPEED, zero(stage), **DATA, parallel__data__sharding=SHARDING[stage])
    assert sent(found, "gradients") == gradients
    assert sent(found, "parameters") == parameters


def test_zero_plus_plus_gathers_within_its_group_and_in_int8() -> None:
    found = transfers(*DEEPSPEED, zero(3, zero_hpz_partition_size=2), **DATA, parallel__data__sharding="full")
    assert sent(found, "parameters, forward") == 5 * SHARE * PARAMETERS
    assert sent(found, "parameters, backward") == 5 / 2 * PARAMETERS
    found = transfers(*DEEPSPEED, zero(3, zero_quantized_weights=True), **DATA, parallel__data__sharding="full")
    assert sent(found, "parameters") == 10 * SHARE * DENSE_ELEMENTS


def test_rank_by_rank_reduction_sends_half_of_an_all_reduce() -> None:
    values = zero(1, use_multi_rank_bucket_allreduce=False)
    found = transfers(*DEEPSPEED, values, **DATA, parallel__data__sharding="optimizer")
    assert sent(found, "gradients") == SHARE * GRADIENTS


def test_fsdp_repeats_itself_under_accumulation() -> None:
    found = transfers(*TORCHTITAN, **DATA, parallel__data__sharding="full", parallel__data__reshard_after_forward=True)
    # Two blocks, the embedding, and the output layer with its norm, which stays whole until its backward pass.
    assert sent(found, "parameters") == 5 * SHARE * (2 * PARAMETERS - 808 * 2)
    assert sent(found, "gradients") == 5 * SHARE * GRADIENTS
    assert calls(found, "parameters") == 5 * (2 * 3 + 1)
    outright = {"parallelism.fsdp_reshard_after_forward": "always"}
    every = transfers(*TORCHTITAN, outright, **DATA, parallel__data__sharding="full")
    assert sent(every, "parameters") == 10 * SHARE * PARAMETERS
    kept = transfers(*TORCHTITAN, **DATA, parallel__data__sharding="full", parallel__data__reshard_after_forward=False)
    assert sent(kept, "parameters") == 5 * SHARE * PARAMETERS


def test_float8_gathers_halve_the_linear_layers() -> None:
    fields = {**DATA, "parallel__data__sharding": "full", "precision__fp8_parameters": True}
    found = transfers(*TORCHTITAN, **fields)
    assert sent(found, "parameters") == 5 * SHARE * (2 * (PARAMETERS - 2 * BLOCK) - 808 * 2)


def test_fsdp_under_a_pipeline_gathers_and_reduces_once_per_schedule() -> None:
    fields = {**DATA, "parallel__data__sharding": "full", "parallel__data__reshard_after_forward": False}
    first = (DENSE_ELEMENTS - 8) / 2  # a block and the embedding
    found = transfers(*TORCHTITAN, **fields, parallel__pipeline__degree=2)
    assert sent(found, "parameters") == SHARE * first * 2
    assert sent(found, "gradients") == SHARE * first * 4
    twice = transfers(
        *TORCHTITAN,
        {"training.local_batch_size": 2},
        **{**fields, "batch__accumulation": 4},
        parallel__pipeline__degree=2,
    )
    assert sent(twice, "gradients") == 2 * SHARE * first * 4


@pytest.mark.parametrize(
    ("framework", "sharding", "times"), [(MEGATRON, "optimizer", 1), (TORCHTITAN, "full", 5)], ids=str
)
def test_replicas_add_an_all_reduce_of_the_shard(framework: tuple[str, str], sharding: str, times: int) -> None:
    fields = {**DATA, "parallel__data__replicate": 2, "parallel__data__shard": 4, "parallel__data__sharding": sharding}
    found = transfers(*framework, **fields)
    assert on_axis(found, Axis.REPLICAS) == times * GRADIENTS / 4
    assert sent(found, "gradients") == times * 3 / 4 * GRADIENTS


def test_buckets_count_calls() -> None:
    fields = {**DATA, "parallel__data__sharding": "optimizer", "parallel__data__overlap_gradient_reduction": True}
    found = transfers(*MEGATRON, **fields, parallel__data__bucket_elements=1000)
    assert calls(found, "gradients") == 4  # 3,560 elements
    assert sent(found, "gradients") == SHARE * GRADIENTS
    assert calls(transfers(*DEEPSPEED, zero(2, reduce_bucket_size=1000), **DATA), "gradients") == 5 * 4


KEYS = 4 * 8 * 2  # local tokens x (key and value width) x bytes over 4 ranks of one sequence
CONTEXT: dict[str, Any] = {"parallel__context": 4, "batch__accumulation": 3}


@pytest.mark.parametrize(
    ("framework", "fields", "expected"),
    [
        # 2 layers x 3 micro batches
        (MEGATRON, {"parallel__context_method": "ring"}, 6 * 3 * 3 * KEYS),
        (MEGATRON, {"parallel__context_method": "all_gather"}, 6 * (2 + 1) * 3 * KEYS),
        (MEGATRON, {"parallel__context_method": "all_to_all"}, 6 * 2 * 3 / 4 * (KEYS + 4 * 16 * 2)),
        (DEEPSPEED, {"parallel__context_method": "all_to_all"}, 6 * 2 * 3 / 4 * (2 * KEYS + 4 * 16 * 2)),
        (TORCHTITAN, {"parallel__context_method": "all_gather"}, 6 * (2 * 3 + 4 * 2) * KEYS),
        (TORCHTITAN, {"model__attention_kernel": "flex"}, 6 * 2 * 3 * KEYS),
    ],
)
def test_context_parallelism(framework: tuple[str, str], fields: Mapping[str, Any], expected: float) -> None:
    assert on_axis(transfers(*framework, **CONTEXT, **fields), Axis.CONTEXT) == expected


ROUTED = 16 * 2 * 8 * 2  # tokens x top-k x hidden x bytes
EXPERT: dict[str, Any] = {
    "parallel__expert": 4,
    "parallel__data__degree": 4,
    "parallel__data__shard": 4,
    "batch__accumulation": 3,
}


@pytest.mark.parametrize(
    ("framework", "fields", "expected"),
    [
        # 2 layers x 3 micro batches, twice forward and twice backward
        (MEGATRON, {"model__moe__dispatcher": "alltoall"}, 6 * 4 * 3 / 4 * ROUTED),
        (MEGATRON, {"model__moe__dispatcher": "allgather"}, 6 * 4 * 3 / 4 * 16 * 4 * 8 * 2),
        (MEGATRON, {"model__moe__dispatcher": "flex"}, 6 * 4 * 3 / 4 * 16 * 1.75 * 8 * 2),
        (TORCHTITAN, {}, 6 * 4 * 3 / 4 * ROUTED),
        (TORCHTITAN, {"recompute__mode": "full"}, 6 * 6 * 3 / 4 * ROUTED),
        (DEEPSPEED, {}, 6 * 4 * 3 / 4 * ROUTED),
    ],
)
def test_tokens_travel_to_experts(framework: tuple[str, str], fields: Mapping[str, Any], expected: float) -> None:
    moe = {name.replace(".", "__"): value for name, value in EXPERTS.items()}
    found = transfers(*framework, **moe, **EXPERT, **fields)
    assert on_axis(found, Axis.EXPERT) == pytest.approx(expected)


@pytest.mark.parametrize("framework", EVERY, ids=str)
def test_experts_reduce_over_the_ranks_that_share_them(framework: tuple[str, str]) -> None:
    moe = {name.replace(".", "__"): value for name, value in EXPERTS.items()}
    fields = {**EXPERT, "parallel__data__degree": 8, "parallel__data__shard": 8, "parallel__data__sharding": "full"}
    found = transfers(*framework, zero(3), **moe, **fields)
    own = 2 * (4 * 3 * 8 * 16) / 4  # two layers of a quarter of the experts
    assert sent(found, "gradients of experts") == pytest.approx(3 * 1 / 2 * own * 4)


def test_expert_tensor_ranks_gather_what_arrived() -> None:
    moe = {name.replace(".", "__"): value for name, value in EXPERTS.items()}
    fields = {**EXPERT, "parallel__tensor": 2, "parallel__sequence_parallel": True, "parallel__expert_tensor": 2}
    found = transfers(*MEGATRON, **moe, **fields)
    assert on_axis(found, Axis.EXPERT_TENSOR) == 6 * 2 * 2 * 1 / 2 * ROUTED  # a half of the tokens, then both halves


PIPELINE: dict[str, Any] = {"model__layers": 8, "parallel__pipeline__degree": 4, "batch__accumulation": 6}


@pytest.mark.parametrize(
    ("fields", "first", "middle", "last"),
    [
        ({}, 1, 2, 1),
        ({"parallel__pipeline__stages_per_rank": 2}, 3, 4, 3),
        ({"parallel__pipeline__stages_per_rank": 2, "parallel__pipeline__schedule": "zbv_zero_bubble"}, 2, 4, 2),
    ],
)
@pytest.mark.parametrize("framework", EVERY, ids=str)
def test_stages_send_to_their_neighbours(
    framework: tuple[str, str], fields: Mapping[str, Any], first: int, middle: int, last: int
) -> None:
    found = transfers(*framework, **PIPELINE, **fields)
    assert [on_axis(found, Axis.PIPELINE, stage) for stage in range(4)] == [
        6 * count * RESIDUAL for count in (first, middle, middle, last)
    ]


def test_tensor_ranks_send_their_part_of_the_sequence() -> None:
    split = {"parallel__tensor": 2, "parallel__sequence_parallel": True}
    for framework in (MEGATRON, TORCHTITAN):
        assert on_axis(transfers(*framework, **PIPELINE, **split), Axis.PIPELINE, 1) == 6 * RESIDUAL
    assert on_axis(transfers(*DEEPSPEED, **PIPELINE, **split), Axis.PIPELINE, 1) == 12 * RESIDUAL


def test_a_tied_embedding_is_reduced_between_the_ends() -> None:
    found = transfers(*MEGATRON, **PIPELINE, model__tied_embeddings=True)
    assert [sent(found, "gradient of the tied", stage) for stage in range(4)] == [800 * 4, 0, 0, 800 * 4]


@pytest.mark.parametrize("framework", EVERY, ids=str)
def test_candidate_layouts_at_once_are_as_one_by_one(framework: tuple[str, str]) -> None:
    fields = {"model__layers": 8, "batch__accumulation": 4, "parallel__data__sharding": "full"}
    base = job(*framework, zero(3), **fields)
    tensor, pipeline, shard = np.array([1, 2, 4]), np.array([4, 2, 1]), np.array([2, 2, 8])
    many = communication_of(base.with_layouts(tensor=tensor, pipeline=pipeline, shard=shard))
    for row in range(3):
        degrees = {"tensor": tensor, "pipeline": pipeline, "shard": shard}
        one = communication_of(base.with_layouts(**{name: value[row : row + 1] for name, value in degrees.items()}))
        for axis in Axis:
            expected = np.zeros(4)
            for transfer in one:
                if transfer.axis is axis:
                    expected[: pipeline[row]] += np.broadcast_to(transfer.sent_bytes, (1, pipeline[row]))[0]
            total = sum(np.broadcast_to(each.sent_bytes, (3, 4)) for each in many if each.axis is axis)
            assert np.allclose(np.broadcast_to(total, (3, 4))[row], expected), (axis, row)
