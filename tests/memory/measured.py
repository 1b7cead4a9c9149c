"""Measured peaks: ``peak_memory.json`` in the folder that TTX_MEASURED names."""

from __future__ import annotations

import json
import os
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from translator.reading import Reading, ReadOptions
from translator.source import Source

Row = dict[str, Any]
GIB = 2**30
FILE = "peak_memory.json"
CASES = "test_cases/"


@cache
def rows() -> list[Row]:
    """All rows; skips the test where there are none."""
    folder = os.environ.get("TTX_MEASURED", "")
    path = Path(folder) / FILE
    if not folder or not path.is_file():
        pytest.skip("TTX_MEASURED names no folder with measured peaks")
    found: list[Row] = json.loads(path.read_text(encoding="utf-8"))
    return found


def megatron_ci() -> list[Row]:
    """Rows of Megatron-LM's own tests that are plain training."""
    return [row for row in rows() if row.get("suitability") == "clean-train"]


def simumax() -> list[Row]:
    """Rows of SimuMax's table."""
    return [row for row in rows() if "SimuMax" in row["source"]]


def reading_of_ci(row: Row, corpus: Path) -> Reading:
    """The configuration that a row of Megatron-LM's tests ran."""
    from translator import api

    path = corpus / "megatron" / row["config"].split(CASES)[1]
    return api.read(str(path), framework="megatron", options=ReadOptions(world_size=row["gpus"]))


# Models of SimuMax's table (configs/models of MooreThreads/SimuMax 4dcaae5), and what all its runs have in common
# (simu_tools/megatron_scripts there).
_COMMON = """--transformer-impl transformer_engine --bf16 --swiglu --disable-bias-linear --normalization RMSNorm
--hidden-dropout 0 --attention-dropout 0 --position-embedding-type rope --use-distributed-optimizer --mock-data
--cross-entropy-loss-fusion --cross-entropy-fusion-impl te --train-iters 10 --lr 1e-4 --tokenizer-type NullTokenizer
--untie-embeddings-and-output-weights --no-create-attention-mask-in-dataloader"""
_MLA = """--multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64
--v-head-dim 128 --num-attention-heads 128 --num-layers 4 --moe-layer-freq "([0]*1+[1]*3)" --moe-grouped-gemm
--moe-token-dispatcher-type alltoall --moe-expert-capacity-factor 1 --moe-pad-expert-input-to-capacity"""
_MODELS = {
    "llama3-70b": """--num-layers 12 --hidden-size 8192 --num-attention-heads 64 --group-query-attention
        --num-query-groups 8 --ffn-hidden-size 28672 --vocab-size 128255""",
    "llama3-405b": """--num-layers 4 --hidden-size 16384 --num-attention-heads 128 --group-query-attention
        --num-query-groups 16 --ffn-hidden-size 53248 --vocab-size 128255""",
    "deepseek-v2": f"""{_MLA} --hidden-size 5120 --ffn-hidden-size 12288 --num-experts 160 --moe-router-topk 6
        --moe-ffn-hidden-size 1536 --moe-shared-expert-intermediate-size 3072 --vocab-size 102399""",
    "deepseek-v3": f"""{_MLA} --hidden-size 7168 --ffn-hidden-size 18432 --num-experts 256 --moe-router-topk 8
        --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 --vocab-size 129279""",
}


def words_of_simumax(row: Row) -> list[str]:
    """The arguments of a row of SimuMax's table. Raises KeyError for a model that is not known here."""
    model = next((name for name in _MODELS if row["model"]["name"].startswith(name)), row["model"]["name"])
    words = [_COMMON, _MODELS[model]]
    words += [f"--{name}-parallel-size {row[key]}" for name, key in _DEGREES]
    words += [f"--micro-batch-size {row['micro_batch']} --global-batch-size {row['global_batch']}"]
    words += [f"--seq-length {row['seq']} --max-position-embeddings {row['seq']}"]
    words += ["--sequence-parallel"] if row["tp"] > 1 else []
    return shlex.split(" ".join(words))


def reading_of_simumax(row: Row) -> Reading:
    """The configuration of a row of SimuMax's table. Raises KeyError for a model that is not known here."""
    from translator import api

    source = Source("arguments.txt", shlex.join(words_of_simumax(row)))
    return api.read(source, framework="megatron", options=ReadOptions(world_size=row["gpus"]))


_DEGREES = (
    ("tensor-model", "tp"),
    ("pipeline-model", "pp"),
    ("context", "cp"),
    ("expert-model", "ep"),
)
