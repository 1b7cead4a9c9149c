"""Parameters per rank against the real Megatron-LM: to the element, for dense, MoE and latent-attention models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from environments import OracleServer

from translator import api
from translator.frameworks.megatron.memory.parameters import per_rank
from translator.memory.sizes import job_of
from translator.memory.stages import stages_of
from translator.reading import ReadOptions
from translator.source import Source

DRIVER = "megatron_shards.py"
COMMON = """--seq-length 512 --max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 128 --train-iters 10
--lr 1e-4 --mock-data --bf16 --tokenizer-type NullTokenizer --vocab-size 32000"""
LLAMA = """--num-layers 16 --hidden-size 512 --ffn-hidden-size 1536 --num-attention-heads 16 --group-query-attention
--num-query-groups 4 --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope
--untie-embeddings-and-output-weights"""
GPT = "--num-layers 16 --hidden-size 512 --num-attention-heads 16"
QWEN = f"{LLAMA} --qk-layernorm --add-qkv-bias"
MIXTRAL = f"{LLAMA} --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 256"
SHARED = f"{MIXTRAL} --moe-shared-expert-intermediate-size 384 --moe-layer-freq ([0]*2+[1]*14)"
LATENT = """--num-layers 16 --hidden-size 512 --ffn-hidden-size 1536 --num-attention-heads 16 --multi-latent-attention
--q-lora-rank 192 --kv-lora-rank 128 --qk-head-dim 32 --qk-pos-emb-head-dim 16 --v-head-dim 32 --swiglu
--disable-bias-linear --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights
--qk-layernorm"""
T, P, E = "--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--expert-model-parallel-size"
CASES = {
    "gpt": (GPT, "", 1),
    "gpt-tp2": (GPT, f"{T} 2", 8),
    "gpt-tp8": (GPT, f"{T} 8", 8),
    "gpt-pp4-tied": (GPT, f"{P} 4", 8),
    "gpt-tp2-pp2-learned-positions": (GPT, f"{T} 2 {P} 2", 8),
    "llama": (LLAMA, "", 1),
    "llama-tp4": (LLAMA, f"{T} 4 --sequence-parallel", 8),
    "llama-tp8-fewer-groups-than-ranks": (LLAMA, f"{T} 8", 8),
    "llama-pp2": (LLAMA, f"{P} 2", 8),
    "llama-pp8": (LLAMA, f"{P} 8", 8),
    "llama-tp2-pp4": (LLAMA, f"{T} 2 {P} 4", 16),
    "llama-pp4-interleaved": (LLAMA, f"{P} 4 --num-layers-per-virtual-pipeline-stage 2", 8),
    "llama-pp4-short-ends": (
        LLAMA,
        f"{P} 4 --decoder-first-pipeline-num-layers 3 --decoder-last-pipeline-num-layers 3",
        8,
    ),
    "llama-pp3-layout": (LLAMA, f"{P} 3 --pipeline-model-parallel-layout Et*5|t*6|t*5L", 6),
    "llama-cp2": (LLAMA, f"{T} 2 --context-parallel-size 2", 8),
    "qwen": (QWEN, f"{T} 2", 4),
    "mixtral": (MIXTRAL, "", 8),
    "mixtral-ep4": (MIXTRAL, f"{E} 4", 8),
    "mixtral-tp2-ep2": (MIXTRAL, f"{T} 2 {E} 2 --sequence-parallel", 8),
    "mixtral-tp2-ep4-etp1": (MIXTRAL, f"{T} 2 {E} 4 --expert-tensor-parallel-size 1 --sequence-parallel", 8),
    "mixtral-pp2-ep2": (MIXTRAL, f"{P} 2 {E} 2", 8),
    "shared-experts-ep2": (SHARED, f"{E} 2", 4),
    "shared-experts-tp2-pp2": (SHARED, f"{T} 2 {P} 2 {E} 2 --sequence-parallel", 8),
    "latent": (LATENT, "", 1),
    "latent-without-norms": (LATENT.replace("--qk-layernorm", ""), "", 1),
    "latent-layer-norm": (LATENT.replace("RMSNorm", "LayerNorm"), f"{T} 2 --transformer-impl local", 2),
    "latent-tp4-pp2": (LATENT, f"{T} 4 {P} 2 --transformer-impl local", 8),
    "latent-experts": (
        f"{LATENT} --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 256 --moe-layer-freq ([0]*3+[1]*13)",
        f"{P} 2 {E} 4",
        8,
    ),
}


@pytest.fixture(scope="module")
def counter(megatron: OracleServer) -> Iterator[OracleServer]:
    """The driver that counts, in the environment of the other Megatron tests."""
    with megatron.environment.serve(DRIVER) as running:
        yield running


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_parameters_of_every_rank(name: str, counter: OracleServer) -> None:
    model, layout, world_size = CASES[name]
    words = f"{model} {COMMON} {layout}".replace("\n", " ")
    source = Source("arguments.txt", _quoted(words))
    reading = api.read(source, framework="megatron", options=ReadOptions(world_size=world_size))
    assert reading.native is not None
    job = job_of("megatron", reading.version, reading.flat, reading.native.values)
    stages = stages_of(job)
    dense, experts = per_rank(job, stages)
    answer = counter.request(
        "shards", argv=words.split(), world_size=world_size, environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    )
    assert answer["ok"], answer
    ours = [{"dense": round(float(d)), "experts": round(float(e))} for d, e in zip(dense[0], experts[0], strict=True)]
    assert ours == answer["ranks"]


def _quoted(words: str) -> str:
    """Words with characters of the shell in quotes."""
    return " ".join(f'"{word}"' if set(word) & set("(|") else word for word in words.split())
