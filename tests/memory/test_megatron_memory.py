"""Memory under Megatron-LM: against measured peaks, and against arithmetic that others have published."""

from __future__ import annotations

import pytest

from translator import api
from translator.memory.estimate import Estimate, estimate_reading
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


def of_kind(found: Estimate, *kinds: Kind) -> float:
    """Bytes of the terms of some kinds that are there all the time, on the first stage."""
    return float(sum(term.amount[0, 0] for term in found.account.state if term.kind in kinds))


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


def test_llama_405b_as_published() -> None:
    """TP8, PP16, DP128 with bf16 gradients: 13 GB of state and some 73 GB of activations on the first stage."""
    layout = (
        "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --micro-batch-size 1 "
        "--global-batch-size 2048 --grad-reduce-in-bf16 "
        "--decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7"
    )
    found = estimated(LLAMA_405B, layout, 16384, seq=8192, layers=126)
    state = of_kind(found, Kind.PARAMETERS, Kind.GRADIENTS, Kind.OPTIMIZER)
    assert found.totals.allocated.expected.shape == (1, 16)
    assert 11e9 < state < 14e9
    activations = sum(
        term.amount[0, 0] for term in found.account.phases["backward pass of a layer"] if term.kind is Kind.ACTIVATIONS
    )
    assert 60e9 < float(activations) < 80e9
