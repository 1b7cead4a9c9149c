"""Memory under Megatron-LM: against measured peaks, and against arithmetic that others have published."""

from __future__ import annotations

import numpy as np
import pytest

from translator import api
from translator.frameworks.megatron.memory.layer import dense_layer
from translator.memory.estimate import Estimate, estimate_reading
from translator.memory.saved import total
from translator.memory.terms import Kind
from translator.reading import ReadOptions
from translator.source import Source

GIB = 2**30
COMMON = """--bf16 --swiglu --disable-bias-linear --normalization RMSNorm --hidden-dropout 0 --attention-dropout 0
--position-embedding-type rope --use-distributed-optimizer --mock-data --train-iters 10 --lr 1e-4
--untie-embeddings-and-output-weights --tokenizer-type NullTokenizer --cross-entropy-loss-fusion
--cross-entropy-fusion-impl te --no-create-attention-mask-in-dataloader --seq-length {seq}
--max-position-embeddings {seq} --sequence-parallel"""
LLAMA_70B = """--num-layers {layers} --hidden-size 8192 --num-attention-heads 64 --group-query-attention
--num-query-groups 8 --ffn-hidden-size 28672 --vocab-size 128255"""
LLAMA_405B = """--num-layers {layers} --hidden-size 16384 --num-attention-heads 128 --group-query-attention
--num-query-groups 8 --ffn-hidden-size 53248 --vocab-size 128255"""
DEEPSEEK_V3 = """--num-layers 4 --hidden-size 7168 --num-attention-heads 128 --multi-latent-attention --q-lora-rank 1536
--kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --ffn-hidden-size 18432 --num-experts 256
--moe-router-topk 8 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048
--moe-layer-freq "([0]*1+[1]*3)" --vocab-size 129279 --moe-grouped-gemm --moe-token-dispatcher-type alltoall
--moe-expert-capacity-factor 1 --moe-pad-expert-input-to-capacity"""


def estimated(model: str, layout: str, world_size: int, *, seq: int = 4096, layers: int = 0) -> Estimate:
    words = f"{model.format(layers=layers)} {COMMON.format(seq=seq)} {layout}".replace("\n", " ")
    source = Source("arguments.txt", words)
    return estimate_reading(api.read(source, framework="megatron", options=ReadOptions(world_size=world_size)))


# Allocated peaks over the stages in GiB, measured on B200 (MooreThreads/SimuMax 4dcaae5,
# docs/b200/b200_release_v1.2_summary.md; Megatron-LM 23e00ed with TransformerEngine 2.11).
@pytest.mark.parametrize(
    ("model", "layers", "seq", "layout", "peak_gib"),
    [
        (LLAMA_70B, 12, 4096, "--tensor-model-parallel-size 2 --global-batch-size 16", 60.68),
        (LLAMA_70B, 12, 4096, "--tensor-model-parallel-size 4 --global-batch-size 8", 39.07),
        (LLAMA_70B, 12, 4096, "--tensor-model-parallel-size 8 --global-batch-size 4", 28.29),
        (
            LLAMA_70B,
            12,
            32768,
            "--tensor-model-parallel-size 2 --context-parallel-size 4 --global-batch-size 4",
            68.43,
        ),
        (
            DEEPSEEK_V3,
            4,
            4096,
            "--expert-model-parallel-size 4 --pipeline-model-parallel-size 2 --global-batch-size 16",
            114.0,
        ),
    ],
)
def test_allocated_peaks(model: str, layers: int, seq: int, layout: str, peak_gib: float) -> None:
    found = estimated(model, f"--micro-batch-size 1 {layout}", 8, seq=seq, layers=layers)
    assert found.totals.allocated.expected.max() / GIB == pytest.approx(peak_gib, rel=0.02)


def in_flight(found: Estimate, stage: int) -> float:
    """Bytes of activations on a stage in the backward pass."""
    phase = found.account.phases["backward pass of a layer"]
    return float(sum(term.amount[0, stage] for term in phase if term.kind is Kind.ACTIVATIONS))


def test_llama_405b_as_published() -> None:
    """TP8, PP16, DP128 with bf16 gradients: 13 GB of state, and 73 GB of activations in flight on the first stage.

    The first stage holds 8 of the 126 layers. The published state is that of a rank without embedding or output layer.
    """
    layout = (
        "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --micro-batch-size 1 "
        "--global-batch-size 2048 --grad-reduce-in-bf16 "
        "--decoder-first-pipeline-num-layers 8 --decoder-last-pipeline-num-layers 6"
    )
    found = estimated(LLAMA_405B, layout, 16384, seq=8192, layers=126)
    kinds = (Kind.PARAMETERS, Kind.GRADIENTS, Kind.OPTIMIZER)
    state = sum(term.amount for term in found.account.state if term.kind in kinds)
    assert found.totals.allocated.expected.shape == (1, 16)
    assert float(np.mean(state)) == pytest.approx(13e9, rel=0.02)
    assert float(state[0, 1]) == pytest.approx(13e9, rel=0.02)
    assert in_flight(found, 0) == pytest.approx(73e9, rel=0.10)


def test_a_layer_of_a_70b_model_as_published() -> None:
    """2.3 GB at sequence 8192 without tensor parallelism, which is 34 s b h of the textbook."""
    found = estimated(LLAMA_70B, "--micro-batch-size 1 --global-batch-size 8", 8, seq=8192, layers=80)
    ours = float(total(dense_layer(found.job)))
    assert ours == pytest.approx(2.3e9, rel=0.10)
    assert ours == pytest.approx(34 * 8192 * 8192, rel=0.10)


def test_where_the_textbook_formula_does_not_hold() -> None:
    """It knows one ratio of widths, whole heads and no pipeline: the docstring of `translator.memory` has the parts."""
    narrow = LLAMA_70B.replace("--ffn-hidden-size 28672", "--ffn-hidden-size 8192")
    found = estimated(narrow, "--micro-batch-size 1 --global-batch-size 8", 8, seq=8192, layers=80)
    assert float(total(dense_layer(found.job))) < 0.75 * 34 * 8192 * 8192
    unfused = estimated(
        LLAMA_70B, "--micro-batch-size 1 --global-batch-size 8 --transformer-impl local", 8, seq=8192, layers=80
    )
    assert float(total(dense_layer(unfused.job))) > 4 * 34 * 8192 * 8192
