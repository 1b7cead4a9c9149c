"""Models that cannot be split: the model is kept, and the layout gives way where that is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from translator import api
from translator.frameworks.torchtitan import flavors
from translator.ledger import Entry
from translator.reading import ReadOptions
from translator.source import Source

QWEN3_MOE = """--num-layers 48 --hidden-size 2048 --ffn-hidden-size 6144 --num-attention-heads 32 --kv-channels 128
--group-query-attention --num-query-groups 4 --qk-layernorm --num-experts 128 --moe-router-topk 8
--moe-ffn-hidden-size 768 --moe-grouped-gemm --vocab-size 151936 --normalization RMSNorm --norm-epsilon 1e-6 --swiglu
--disable-bias-linear --untie-embeddings-and-output-weights --position-embedding-type rope --rotary-base 1000000
--hidden-dropout 0 --attention-dropout 0 --seq-length 4096 --max-position-embeddings 4096 --bf16 --lr 1e-4
--train-iters 100 --use-distributed-optimizer --pipeline-model-parallel-size 4 --tensor-model-parallel-size 2
--sequence-parallel --micro-batch-size {micro} --global-batch-size {total}"""


def _convert(micro: int, total: int, *, nearest: bool) -> Any:
    source = Source("run.args", QWEN3_MOE.format(micro=micro, total=total))
    options = ReadOptions(world_size=32)
    return api.convert(source, "torchtitan@0.2.2", framework="megatron", options=options, nearest=nearest)


def _values(done: Any) -> Mapping[str, Any]:
    values: Mapping[str, Any] = done.sink.values
    return values


def test_a_model_that_cannot_be_split_is_not_exchanged_for_one_that_can() -> None:
    done = _convert(1, 64, nearest=False)
    assert _values(done)["model.name"] == "qwen3"
    assert _values(done)["model.flavor"] == "30B-A3B"
    refusal = next(finding for finding in done.findings if finding.code == "S159")
    assert "--nearest" in refusal.fix


def test_the_nearest_layout_lets_the_ranks_of_the_stages_share_data() -> None:
    done = _convert(2, 64, nearest=True)
    values = _values(done)
    assert values["parallelism.pipeline_parallel_degree"] == 1
    assert values["parallelism.data_parallel_shard_degree"] == 16
    assert values["training.local_batch_size"] == 2
    assert values["training.global_batch_size"] == 64
    assert [finding for finding in done.findings if finding.code in ("S159", "L290")] == []
    entries = {line.option: line.entry for line in done.ledger}
    assert entries["--pipeline-model-parallel-size"] is Entry.UNSUPPORTED


def test_a_smaller_micro_batch_is_admitted_where_the_ranks_get_fewer_sequences() -> None:
    done = _convert(2, 16, nearest=True)
    assert _values(done)["training.local_batch_size"] == 1
    assert [finding for finding in done.findings if finding.code in ("S155", "L290")] == []
    entries = {line.option: line.entry for line in done.ledger}
    assert entries["--micro-batch-size"] is Entry.APPROXIMATED


def test_with_too_few_sequences_the_layout_stays() -> None:
    assert _values(_convert(1, 8, nearest=True))["parallelism.pipeline_parallel_degree"] == 4


@pytest.mark.parametrize("leaf", ["model.qk_norm", "model.head_dim"])
def test_a_family_with_another_shape_of_weights_does_not_do(leaf: str) -> None:
    wanted = dict(flavors.dimensions("qwen3", "30B-A3B", "0.2.2") or {})
    choice = flavors.choose(wanted, "0.2.2", pipeline=2)
    assert choice is not None
    assert leaf not in choice.differences
