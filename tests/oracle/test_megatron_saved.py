"""What a layer of the real Megatron-LM keeps for its backward pass, against our terms: every storage, in bytes.

Megatron-LM's own modules run on a CPU, at sizes whose largest tensors are a megabyte. What the CPU's kernels keep and
the GPU's do not is named in KNOWN; means and reciprocal deviations of norms, one number per row, are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from environments import OracleServer

from translator import api
from translator.frameworks.megatron.memory.activations import saved
from translator.memory.sizes import Job, job_of
from translator.memory.stages import stages_of
from translator.reading import ReadOptions
from translator.source import Source

pytestmark = pytest.mark.oracle
DRIVER = "megatron_saved.py"
# The layer's own: the last norm and the dropout of the embedding are outside of it.
ENDS = ("input and output of the last norm", "dropout mask of the embedding")
COMMON = """--num-layers 1 --hidden-size 256 --num-attention-heads 8 --ffn-hidden-size 640 --seq-length 128
--max-position-embeddings 128 --micro-batch-size 2 --global-batch-size 2 --train-iters 10 --lr 1e-4 --mock-data
--tokenizer-type NullTokenizer --vocab-size 1000 --transformer-impl local"""
GPT = "--bf16"
LLAMA = """--bf16 --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope
--hidden-dropout 0 --attention-dropout 0 --untie-embeddings-and-output-weights"""
GROUPED = f"{LLAMA} --group-query-attention --num-query-groups 2"
EXPERTS = f"{LLAMA} --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 192"
LATENT = f"""{LLAMA} --multi-latent-attention --q-lora-rank 96 --kv-lora-rank 64 --qk-head-dim 32
--qk-pos-emb-head-dim 16 --v-head-dim 32 --kv-channels 32"""
SELECTIVE = "--recompute-granularity selective"
FULL = "--recompute-granularity full --recompute-num-layers 1 --recompute-method"
CASES = {
    "gpt with dropout": GPT,
    "gpt": f"{GPT} --hidden-dropout 0 --attention-dropout 0",
    "gpt, hidden dropout alone": f"{GPT} --attention-dropout 0",
    "gpt, gelu in pieces": f"{GPT} --no-bias-gelu-fusion",
    "gpt, squared relu": f"{GPT} --squared-relu --no-bias-gelu-fusion",
    "gpt in fp32": "--hidden-dropout 0",
    "llama": LLAMA,
    "llama in fp32": LLAMA.removeprefix("--bf16"),
    "llama with biases": LLAMA.replace("--disable-bias-linear", ""),
    "llama, swiglu in pieces": f"{LLAMA} --no-bias-swiglu-fusion",
    "llama, wide heads": f"{LLAMA} --kv-channels 64",
    "llama, half of the heads rotated": f"{LLAMA} --rotary-percent 0.5",
    "llama, norms of queries and keys": f"{LLAMA} --qk-layernorm",
    "llama, gated attention": f"{LLAMA} --attention-output-gate",
    "grouped": GROUPED,
    "grouped with dropout": GROUPED.replace("dropout 0", "dropout 0.1"),
    "grouped, learned positions": GROUPED.replace("type rope", "type learned_absolute"),
    "grouped, norms of queries and keys": f"{GROUPED} --qk-layernorm",
    "grouped, layer norms": f"{GROUPED} --qk-layernorm".replace("RMSNorm", "LayerNorm"),
    "one group": GROUPED.replace("groups 2", "groups 1"),
    "latent": LATENT,
    "latent, whole queries": LATENT.replace("--q-lora-rank 96", ""),
    "latent, normed": f"{LATENT} --qk-layernorm",
    "latent, experts": LATENT + EXPERTS.removeprefix(LLAMA),
    "experts": EXPERTS,
    "experts, shared ones too": f"{EXPERTS} --moe-shared-expert-intermediate-size 128",
    "experts of fixed capacity": f"{EXPERTS} --moe-expert-capacity-factor 1.0 --moe-pad-expert-input-to-capacity "
    "--moe-token-dispatcher-type alltoall",
    "full recomputation": f"{LLAMA} {FULL} uniform",
    "full recomputation with dropout": f"{GPT} {FULL} block",
    "attention computed again": f"{LLAMA} {SELECTIVE}",
    "attention computed again, with dropout": f"{GPT} {SELECTIVE}",
    "feed-forward computed again": f"{LLAMA} {SELECTIVE} --recompute-modules mlp",
    "experts computed again": f"{EXPERTS} {SELECTIVE} --recompute-modules moe",
    "latent projections computed again": f"{LATENT} {SELECTIVE} --recompute-modules mla_up_proj",
}


def gate_in_fp32(job: Job) -> float:
    """Compiled, the gate of attention keeps what it is computed from; a CPU keeps its sigmoid in fp32 as well."""
    return 4.0 * job.layout.tokens * job.model.query_width


KNOWN = {"llama, gated attention": gate_in_fp32}


@pytest.fixture(scope="module")
def keeper(megatron: OracleServer) -> Iterator[OracleServer]:
    """The driver that runs layers, in the environment of the other Megatron tests."""
    with megatron.environment.serve(DRIVER) as running:
        yield running


@pytest.mark.parametrize("name", CASES)
def test_bytes_that_a_layer_keeps(name: str, keeper: OracleServer) -> None:
    words = f"{COMMON} {CASES[name]}".split()
    reading = api.read(
        Source("arguments.txt", " ".join(words)), framework="megatron", options=ReadOptions(world_size=1)
    )
    assert reading.native is not None
    job = job_of("megatron", reading.version, reading.flat, reading.native.values)
    ours = sum(float(term.amount.max()) for term in saved(job, stages_of(job)) if term.name not in ENDS)
    answer = keeper.request("saved", argv=words, world_size=1, environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"})
    assert answer["ok"], answer
    theirs = sum(tensor["bytes"] for tensor in answer["kept"]) - KNOWN.get(name, lambda _: 0.0)(job)
    print(f"{name}: ours {ours:,.0f}, kept {theirs:,.0f}, {ours / theirs - 1:+.2%}")
    assert ours == pytest.approx(theirs, rel=0.02), answer["kept"]
