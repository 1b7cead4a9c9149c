"""Changes that make a configuration fit: sayable in its framework, estimated again, cheapest first."""

from __future__ import annotations

import json
import shlex

import pytest

from translator import api
from translator.errors import SourceError
from translator.memory.changes import changes, peak_bytes
from translator.memory.estimate import Estimate, estimate_reading
from translator.reading import Reading, ReadOptions
from translator.source import Source

GIB = 2**30
LLAMA_8B = """--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
--group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 --swiglu
--disable-bias-linear --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights
--hidden-dropout 0 --attention-dropout 0 --bf16 --mock-data --tokenizer-type NullTokenizer --vocab-size 128256 --lr 1e-4
--train-iters 10 --global-batch-size 128"""
TOML = """
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 4
global_batch_size = 64
seq_len = 8192
steps = 20
[activation_checkpoint]
mode = "none"
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 4
"""


def megatron(more: str = "--micro-batch-size 2", world_size: int = 8) -> Reading:
    text = " ".join(f"{LLAMA_8B} {more}".split())
    return api.read(Source("arguments.txt", text), framework="megatron", options=ReadOptions(world_size=world_size))


def torchtitan() -> Reading:
    options = ReadOptions(world_size=8, overrides={"model.vocab": 128256})
    return api.read(Source("train.toml", TOML), framework="torchtitan", options=options)


def deepspeed(stage: int = 2) -> Reading:
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 4,
        "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "zero_optimization": {"stage": stage},
    }
    options = ReadOptions(world_size=8, model="llama3-8b", overrides={"batch.seq_len": 4096})
    return api.read(Source("ds.json", json.dumps(config)), framework="deepspeed", options=options)


def estimated(reading: Reading) -> Estimate:
    return estimate_reading(reading)


@pytest.mark.parametrize("share", [0.9, 0.6, 0.4])
def test_setting_the_options_of_a_change_gives_the_peak_that_it_states(share: float) -> None:
    found = estimated(megatron())
    ways = changes(found.job, share * peak_bytes(found))
    assert ways
    for way in ways:
        assert way.peak_bytes <= share * peak_bytes(found)
        words = " ".join(option for option in way.options if not option.startswith("without "))
        kept = [pair for pair in ("--micro-batch-size 2",) if pair.split()[0] not in words]
        again = estimated(megatron(" ".join([*kept, words])))
        assert peak_bytes(again) == pytest.approx(way.peak_bytes, rel=0.01), way.says


def test_the_cheapest_comes_first() -> None:
    found = estimated(megatron())
    ways = changes(found.job, 0.6 * peak_bytes(found))
    assert [way.cost for way in ways] == sorted(way.cost for way in ways)
    assert "sharded" in ways[0].says
    assert ways[0].options[0] == "--use-distributed-optimizer"


def test_full_recomputation_names_all_three_flags() -> None:
    # All of the state is sharded as far as it goes, and the sequence is one of a batch of one.
    reading = megatron("--micro-batch-size 1 --use-distributed-optimizer --pipeline-model-parallel-size 8", 8)
    found = estimated(reading)
    ways = changes(found.job, 0.75 * peak_bytes(found))
    (full,) = [way for way in ways if way.says.startswith("full recomputation")]
    assert full.written == "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"


def test_only_what_the_framework_can_say_is_proposed() -> None:
    for reading, never in ((torchtitan(), {"optimizer.offload"}), (deepspeed(), {"parallel.pipeline.degree"})):
        found = estimated(reading)
        ways = [way for share in (0.9, 0.7, 0.5, 0.3) for way in changes(found.job, share * peak_bytes(found))]
        assert ways, reading.framework
        assert all(way.options for way in ways if "ranks" not in way.says.rpartition(", on ")[2])
        assert not any(never & way.fields.keys() for way in ways)


def test_the_stage_of_zero_is_what_shards() -> None:
    found = estimated(deepspeed(stage=0))
    ways = changes(found.job, 0.8 * peak_bytes(found))
    first = next(way for way in ways if "sharded" in way.says)
    assert any(option.startswith("zero_optimization.stage = ") for option in first.options)


def test_two_changes_together_where_one_is_not_enough() -> None:
    found = estimated(torchtitan())
    ways = changes(found.job, 0.25 * peak_bytes(found))
    assert ways
    assert any(", and " in way.says for way in ways)


def test_micro_batches_of_a_change_keep_the_global_batch() -> None:
    found = estimated(deepspeed())
    ways = [way for way in changes(found.job, 0.8 * peak_bytes(found)) if "micro batch" in way.says]
    assert any("gradient_accumulation_steps = 8" in way.options for way in ways)


def test_degrees_set_by_hand_take_the_others_along() -> None:
    reading = api.read(
        Source("arguments.txt", " ".join(f"{LLAMA_8B} --micro-batch-size 2 --use-distributed-optimizer".split())),
        framework="megatron",
        options=ReadOptions(world_size=8, overrides={"parallel.tensor": 4}),
    )
    assert estimated(reading).job.layout.data == 2
    stated = estimated(megatron("--micro-batch-size 2 --use-distributed-optimizer --tensor-model-parallel-size 4"))
    assert peak_bytes(estimated(reading)) == pytest.approx(peak_bytes(stated), rel=0.01)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"parallel.pipeline.degree": 1_000_000}, "longer than the model's 32 layers"),
        ({"parallel.pipeline.stages_per_rank": 10**9}, "longer than the model's 32 layers"),
        ({"parallel.pipeline.degree": 2, "parallel.pipeline.layer_split": [1, 2]}, "shares 3 layers over 2 stages"),
        ({"parallel.tensor": 64}, "32 attention heads cannot be split over 64"),
        ({"parallel.world_size": 7, "parallel.tensor": 2}, "7 ranks cannot be shared out in groups of 2"),
        ({"parallel.context": 10_000, "parallel.world_size": 10_000}, "a sequence of 8192 tokens cannot be split"),
    ],
)
def test_layouts_that_cannot_be(overrides: dict[str, object], message: str) -> None:
    options = ReadOptions(world_size=8, overrides=overrides)
    text = shlex.join(f"{LLAMA_8B} --micro-batch-size 1".split())
    reading = api.read(Source("arguments.txt", text), framework="megatron", options=options)
    with pytest.raises(SourceError, match=message):
        estimate_reading(reading)


def test_everything_that_is_missing_is_named_at_once() -> None:
    reading = api.read(Source("ds.json", '{"zero_optimization": {"stage": 2}}'), framework="deepspeed")
    with pytest.raises(SourceError) as raised:
        estimate_reading(reading)
    for words in ("--model", "--world-size", "batch.seq_len="):
        assert words in (raised.value.fix or "")


EXPERTS = "--micro-batch-size 2 --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 14336 --moe-grouped-gemm"


def test_modules_to_recompute_join_those_that_are_recomputed_already() -> None:
    layout = "--use-distributed-optimizer --pipeline-model-parallel-size 8 --expert-model-parallel-size 1"
    found = estimated(megatron(f"{EXPERTS} {layout} --recompute-granularity selective --recompute-modules moe_act"))
    ways = changes(found.job, 0.95 * peak_bytes(found))
    (more,) = [way for way in ways if way.says == "recomputation of moe as well"]
    assert more.written == "--recompute-modules moe moe_act"


def test_expert_ranks_set_by_hand_must_come_out() -> None:
    text = " ".join(f"{LLAMA_8B} {EXPERTS}".split())
    options = ReadOptions(world_size=4, overrides={"parallel.expert": 8})
    reading = api.read(Source("arguments.txt", text), framework="megatron", options=options)
    with pytest.raises(SourceError, match="4 ranks cannot be shared out in groups of 8"):
        estimate_reading(reading)
