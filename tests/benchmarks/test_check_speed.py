"""``ttx check`` over a folder of many configurations, and what it loads."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from startup import ROOT

FILES = 500
LIMIT_SECONDS = 5.0
ATTEMPTS = 3

SCRIPT = """\
#!/bin/bash
#SBATCH --nodes={nodes}
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP={tp}
PP={pp}
MODEL_ARGS=(
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32
  --seq-length 4096 --max-position-embeddings 4096 --swiglu --normalization RMSNorm
  --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights
)
TRAINING_ARGS=(--micro-batch-size 1 --global-batch-size {batch} --train-iters {iters} --bf16
  --lr 3.0e-4 --min-lr 3.0e-5 --lr-decay-style cosine --lr-warmup-iters 200 --clip-grad 1.0 --weight-decay 0.1)
for option in "--tensor-model-parallel-size $TP" "--pipeline-model-parallel-size $PP"; do
  PARALLEL_ARGS="$PARALLEL_ARGS $option"
done
torchrun --nproc_per_node 8 --nnodes {nodes} pretrain_gpt.py "${{MODEL_ARGS[@]}}" "${{TRAINING_ARGS[@]}}" \\
  $PARALLEL_ARGS --use-distributed-optimizer --sequence-parallel --vocab-size 32000 --old-option-{batch} 1
"""
TOML = """\
[model]
name = "llama3"
flavor = "8B"
[optimizer]
lr = 3e-4
[lr_scheduler]
warmup_steps = {iters}
[training]
local_batch_size = 1
global_batch_size = {batch}
seq_len = 8192
steps = 1000
[parallelism]
tensor_parallel_degree = {tp}
pipeline_parallel_degree = {pp}
data_parallel_shard_degree = -1
[activation_checkpoint]
mode = "full"
"""
JSON = """\
{{
  "train_batch_size": {batch},
  "train_micro_batch_size_per_gpu": 1,
  "gradient_clipping": 1.0,
  "bf16": {{"enabled": true}},
  "zero_optimization": {{"stage": {stage}, "overlap_comm": true, "cpu_offload": false}},
  "optimizer": {{"type": "AdamW", "params": {{"lr": 3e-4, "betas": [0.9, 0.95], "weight_decay": 0.1}}}},
  "scheduler": {{"type": "WarmupDecayLR", "params": {{"warmup_num_steps": 100, "total_num_steps": {iters}}}}}
}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scripts, TOML and JSON in equal numbers, no two alike, with other files between them."""
    root = tmp_path_factory.mktemp("many")
    for number in range(FILES):
        place = root / f"team{number % 7}"
        place.mkdir(exist_ok=True)
        values = {
            "nodes": 1 + number % 16,
            "tp": 2 ** (number % 4),
            "pp": 2 ** (number % 3),
            "batch": 64 + number,
            "iters": 500 + number,
            "stage": number % 4,
        }
        suffix, text = ((".sh", SCRIPT), (".toml", TOML), (".json", JSON))[number % 3]
        (place / f"run{number}{suffix}").write_text(text.format(**values))
        if number % 5 == 0:
            (place / f"other{number}.yaml").write_text("a: 1\n" * 20)
    return root


def seconds(folder: Path, *words: str) -> float:
    begin = time.perf_counter()
    command = [sys.executable, "-m", "translator", "check", str(folder), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - begin
    assert done.returncode in {0, 1}, done.stderr
    assert f"{FILES} configurations checked" in done.stderr
    return elapsed


def test_five_hundred_files_take_at_most_five_seconds(folder: Path) -> None:
    best = seconds(folder)
    for _ in range(ATTEMPTS - 1):
        if best <= LIMIT_SECONDS:
            break
        best = min(best, seconds(folder))
    print(f"\n{FILES} files: {best:.2f} s")
    assert best <= LIMIT_SECONDS


def test_what_checking_loads(folder: Path) -> None:
    """Nothing heavy: scripts, TOML and JSON are checked without the packages that other commands need."""
    heavy = {"pydantic", "libcst", "omegaconf", "deepdiff", "rich", "jinja2", "jsonschema", "sarif_pydantic"}
    code = (
        "import sys\nfrom translator.cli import main\n"
        f"main(['check', {str(folder)!r}])\n"
        f"print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr.splitlines()[-1] == "[]"
