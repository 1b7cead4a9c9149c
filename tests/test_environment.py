from __future__ import annotations

import pytest

from translator.environment import is_secret, travels


@pytest.mark.parametrize("name", ["WANDB_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "db_password"])
def test_secrets_never_travel(name: str) -> None:
    assert is_secret(name)
    assert not travels(name)


@pytest.mark.parametrize(
    "name", ["NCCL_IB_SL", "CUDA_DEVICE_MAX_CONNECTIONS", "TOKENIZERS_PARALLELISM", "NVTE_FLASH_ATTN"]
)
def test_what_belongs_to_the_configuration_travels(name: str) -> None:
    assert travels(name)


@pytest.mark.parametrize("name", ["PATH", "MASTER_ADDR", "SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES"])
def test_what_belongs_to_a_machine_stays(name: str) -> None:
    assert not travels(name)


def test_a_secret_of_a_script_is_in_no_output() -> None:
    from translator import api
    from translator.source import Source

    script = (
        "export WANDB_API_KEY=hush-hush\nexport NCCL_DEBUG=INFO\n"
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 "
        "--seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 --train-iters 10 --lr 1e-4\n"
    )
    for target in ("torchtitan", "megatron"):
        done = api.convert(Source("run.sh", script), target)
        assert "hush-hush" not in str(done.as_dict())
        assert any(finding.code == "R037" for finding in done.findings)
        assert any("NCCL_DEBUG" in text for text in done.rendered.files.values())
