"""Converted bundles drive the real DeepSpeed 0.19.2: two ranks on a CPU, a tiny model, three optimizer steps.

The engine is made from the bundle's own files, so what it counts and the learning rates it steps with are those of a
training run, not those of a configuration that was only read.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from environments import OracleEnvironment, environment

from translator import api
from translator.conversion import Conversion
from translator.reading import ReadOptions
from translator.schedules import curve_of

pytestmark = pytest.mark.oracle
STEPS = 3
RANKS = 2
TORCHTITAN = """
[model]
name = "llama3"
flavor = "debugmodel"
[optimizer]
name = "AdamW"
lr = 8e-4
[lr_scheduler]
warmup_steps = 4
decay_type = "linear"
min_lr_factor = 0.1
[training]
local_batch_size = 2
global_batch_size = 12
seq_len = 512
max_norm = 1.0
steps = 10
[parallelism]
data_parallel_shard_degree = 2
"""
MEGATRON = (
    "torchrun --nproc_per_node 2 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4"
    " --seq-length 128 --max-position-embeddings 128 --micro-batch-size 4 --global-batch-size 16 --train-iters 8"
    " --lr 6e-4 --min-lr 6e-5 --lr-decay-style cosine --lr-warmup-iters 1 --lr-decay-iters 8 --clip-grad 0.5"
    " --use-distributed-optimizer --tokenizer-type NullTokenizer --vocab-size 1000 --mock-data\n"
)
DEEPSPEED = json.dumps(
    {
        "train_batch_size": 8,
        "train_micro_batch_size_per_gpu": 1,
        "gradient_clipping": 2.0,
        "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 5e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}},
        "scheduler": {
            "type": "WarmupDecayLR",
            "params": {
                "warmup_num_steps": 2,
                "warmup_type": "linear",
                "warmup_max_lr": 5e-4,
                "total_num_steps": 9,
            },
        },
        "zero_optimization": {"stage": 2},
    }
)
# Source, its framework, and what the engine must have: micro batch, accumulation, batch of a step, ZeRO stage, type.
CASES = {
    "torchtitan": ("config.toml", TORCHTITAN, "torchtitan@0.2.2", (2, 3, 12, 3, "torch.bfloat16")),
    "megatron": ("train.sh", MEGATRON, "megatron@0.18.0", (4, 2, 16, 1, "torch.float32")),
    "deepspeed": ("ds_config.json", DEEPSPEED, "deepspeed@0.19.2", (1, 4, 8, 2, "torch.bfloat16")),
}


@pytest.fixture(scope="module")
def real() -> OracleEnvironment:
    found = environment("deepspeed-0.19.2")
    if reason := found.missing():
        if os.environ.get("TTX_ORACLE_REQUIRED") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def converted(folder: Path, name: str, text: str, framework: str) -> Conversion:
    """The source converted to DeepSpeed, its files in ``folder / "bundle"``."""
    source = folder / name
    source.write_text(text, encoding="utf-8")
    done = api.convert(str(source), "deepspeed@0.19.2", framework=framework, options=ReadOptions(world_size=RANKS))
    for file, content in done.rendered.files.items():
        target = folder / "bundle" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    return done


@pytest.mark.parametrize("case", CASES)
def test_the_engine_trains_as_the_spec_says(real: OracleEnvironment, tmp_path: Path, case: str) -> None:
    name, text, framework, expected = CASES[case]
    done = converted(tmp_path, name, text, framework)
    found = real.run("deepspeed_training.py", [str(tmp_path / "bundle"), str(RANKS), str(STEPS)])
    kept = ("micro_batch", "accumulation", "train_batch", "stage", "dtype")
    assert tuple(found[key] for key in kept) == expected
    for flat in (done.source.flat, done.back.flat):
        assert found["micro_batch"] == flat["batch.micro_batch"]
        assert found["accumulation"] == flat["batch.accumulation"]
        assert found["train_batch"] == flat["batch.global_batch"]
        assert found["data_parallel"] == flat["parallel.data.degree"]
        assert found["clip"] == flat["optimizer.clip_grad_norm"]
    assert found["steps"] == STEPS
    assert found["skipped"] == 0
    assert found["micro_steps"] == STEPS * found["accumulation"]
    assert len(found["losses"]) == STEPS
    assert all(math.isfinite(loss) for loss in found["losses"])
    curve = curve_of(done.back.flat)
    assert curve is not None
    ours = curve.rates(range(STEPS + 1))
    assert found["used"] == pytest.approx(ours[:-1], rel=1e-9, abs=1e-15)
    assert found["rates"] == pytest.approx(ours[1:], rel=1e-9, abs=1e-15)
    assert len(set(ours)) > 2
