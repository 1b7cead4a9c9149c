"""The real packages answer: one accepted and one refused configuration each."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from environments import OracleServer

LLAMA3_8B_PARAMETERS = 8_030_261_248

MEGATRON_LLAMA3_8B = shlex.split(
    """
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
    --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192
    --position-embedding-type rope --rotary-base 500000 --swiglu --disable-bias-linear --normalization RMSNorm
    --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0
    --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --sequence-parallel
    --micro-batch-size 1 --global-batch-size 128 --bf16 --use-distributed-optimizer
    --lr 3e-4 --min-lr 3e-5 --lr-decay-style cosine --lr-warmup-iters 100 --train-iters 1000
    --mock-data --tokenizer-type NullTokenizer --vocab-size 128256
    """
)

TOML = """
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 4
seq_len = 8192
steps = 20
[optimizer]
lr = 1e-3
[lr_scheduler]
warmup_steps = 10
[parallelism]
tensor_parallel_degree = 2
pipeline_parallel_degree = 4
"""

PYTHON = """
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
from torchtitan.config import ParallelismConfig, TrainingConfig
from torchtitan.hf_datasets.text_datasets import HuggingFaceTextDataLoader
from torchtitan.models.common.config_utils import decoder_vocab_size
from torchtitan.models.llama3 import model_registry
from torchtitan.trainer import Trainer


def llama3_8b():
    spec = model_registry("8B")
    return Trainer.Config(
        model_spec=spec,
        loss=ChunkedLossWrapper.Config(
            loss_fn=CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(spec)),
        ),
        optimizer=default_adamw(lr=1e-3),
        lr_scheduler=LRSchedulersContainer.Config(warmup_steps=10),
        training=TrainingConfig(local_batch_size=4, seq_len=8192, steps=20, disable_cuda_graphs=True),
        dataloader=HuggingFaceTextDataLoader.Config(dataset="c4"),
        parallelism=ParallelismConfig(
            tensor_parallel_degree=2, pipeline_parallel_degree=4, pipeline_parallel_schedule="1F1B"
        ),
    )
"""


def test_megatron_accepts_llama3_8b(megatron: OracleServer) -> None:
    request = {"argv": MEGATRON_LLAMA3_8B, "world_size": 8}
    resolved = megatron.request("resolve", **request)
    assert resolved["ok"], resolved
    assert resolved["num_microbatches"] == 64
    assert resolved["args"]["data_parallel_size"] == 2
    assert resolved["args"]["padded_vocab_size"] == 128256
    assert resolved["args"]["accumulate_allreduce_grads_in_fp32"] is True

    assert megatron.request("config", **request)["config"]["params_dtype"] == "torch.bfloat16"
    assert megatron.request("params", **request)["total"] == LLAMA3_8B_PARAMETERS
    stages = megatron.request("stages", **request)
    assert (stages["layers"], stages["first"]) == ([[16], [16]], [[0], [16]])
    rates = megatron.request("lr", **request)["lr"]
    assert len(rates) == 1000
    assert (rates[0], rates[50], rates[100]) == (0.0, pytest.approx(1.5e-4), pytest.approx(3e-4))


def test_megatron_splits_interleaved_and_written_layouts(megatron: OracleServer) -> None:
    def layers(*words: str) -> list[list[int]]:
        answer = megatron.request("stages", argv=[*MEGATRON_LLAMA3_8B, *words], world_size=8)
        assert answer["ok"], answer
        return list(answer["layers"])

    assert layers("--num-layers-per-virtual-pipeline-stage", "8") == [[8, 8], [8, 8]]
    assert layers("--decoder-first-pipeline-num-layers", "14") == [[14], [18]]
    assert layers("--pipeline-model-parallel-layout", "Et*7|t*9|t*9|t*7L") == [[7, 9], [9, 7]]


@pytest.mark.parametrize(
    ("request_", "stage", "message"),
    [
        ({"argv": MEGATRON_LLAMA3_8B, "world_size": 6}, "validate_args", "world size (6) is not divisible"),
        (
            {"argv": [*MEGATRON_LLAMA3_8B, "--no-such-option"], "world_size": 8},
            "parse_args",
            "unrecognized arguments: --no-such-option",
        ),
        (
            {
                "argv": MEGATRON_LLAMA3_8B,
                "world_size": 8,
                "environment": {"CUDA_DEVICE_MAX_CONNECTIONS": None},
            },
            "validate_args",
            "environment variable CUDA_DEVICE_MAX_CONNECTIONS",
        ),
    ],
)
def test_megatron_refuses(megatron: OracleServer, request_: dict[str, Any], stage: str, message: str) -> None:
    answer = megatron.request("resolve", **request_)
    assert not answer["ok"]
    assert answer["stage"] == stage
    assert message in answer["error"]


def test_megatron_refuses_an_incomplete_recompute_in_its_model_configuration(megatron: OracleServer) -> None:
    argv = [*MEGATRON_LLAMA3_8B, "--recompute-granularity", "full"]
    assert megatron.request("resolve", argv=argv, world_size=8)["ok"]
    answer = megatron.request("config", argv=argv, world_size=8)
    assert answer["stage"] == "TransformerConfig"
    assert "recompute_method" in answer["error"]


def accepts_toml(server: OracleServer) -> None:
    assert server.request("resolve", text=TOML)["config"]["training"]["seq_len"] == 8192
    dims = server.request("dims", text=TOML, world_size=32)
    assert dims["ok"], dims
    assert dims["dims"]["dp_shard"] == dims["batch"]["data_parallel"] == 4
    assert dims["batch"]["global_batch_size"] == 16
    stages = server.request("stages", text=TOML, world_size=32)
    assert [len(layers) for layers in stages["layers"]] == [8, 9, 8, 7]
    assert stages["n_microbatches"] == 4
    rates = server.request("lr", text=TOML)["lr"]
    assert len(rates) == 20
    assert (rates[0], rates[9], rates[10]) == (pytest.approx(1e-4), pytest.approx(1e-3), pytest.approx(1e-3))
    assert server.request("nparams", text=TOML)["total"] == LLAMA3_8B_PARAMETERS
    flat = server.request(
        "parallelize", text=TOML, world_size=8, overrides=["--parallelism.pipeline_parallel_degree=1"]
    )
    # Embedding, linear layers and output are cut by all 8 ranks; the norms by the 4 of data parallel only.
    norms = 65 * 4096
    assert flat["local_total"] == (LLAMA3_8B_PARAMETERS - norms) // 8 + norms // 4
    assert "8B" in server.request("flavors")["flavors"]["llama3"]


def refuses_toml(server: OracleServer) -> None:
    answer = server.request("dims", text=TOML, world_size=12)
    assert (answer["ok"], answer["stage"]) == (False, "ParallelDims")
    assert "WORLD_SIZE(12)" in answer["error"]
    answer = server.request("resolve", text=TOML, overrides=["--training.no_such_option=1"])
    assert answer["stage"] == "ConfigManager"
    assert "no_such_option" in answer["error"]
    answer = server.request("nparams", text=TOML.replace("8B", "9B"))
    assert answer["stage"] == "flavor"
    answer = server.request(
        "stages", text=TOML, world_size=32, overrides=["--parallelism.pipeline_parallel_microbatch_size=3"]
    )
    assert (answer["ok"], answer["stage"]) == (False, "schedule")


def test_torchtitan_022_accepts_a_toml(torchtitan_022: OracleServer) -> None:
    accepts_toml(torchtitan_022)


def test_torchtitan_022_refuses(torchtitan_022: OracleServer) -> None:
    refuses_toml(torchtitan_022)
    answer = torchtitan_022.request("resolve", text=TOML + "no_such_option = 1\n")
    assert "no_such_option" in answer["error"]


def test_torchtitan_010_accepts_a_toml(torchtitan_010: OracleServer) -> None:
    accepts_toml(torchtitan_010)


def test_torchtitan_010_refuses(torchtitan_010: OracleServer) -> None:
    refuses_toml(torchtitan_010)
    # This version looks only for the names it knows in a file, and says nothing of others.
    assert torchtitan_010.request("resolve", text=TOML + "no_such_option = 1\n")["ok"]


CUSTOM = """
from dataclasses import replace

import torchtitan.models.llama3 as llama3
from torchtitan.protocols.train_spec import register_train_spec

spec = llama3.get_train_spec()
arguments = {**spec.model_args, "four-layers": replace(spec.model_args["8B"], n_layers=4)}
register_train_spec("mine", replace(spec, model_args=arguments))
"""


def test_torchtitan_imports_a_module_of_ones_own(torchtitan_022: OracleServer, tmp_path: Path) -> None:
    (tmp_path / "my_flavors.py").write_text(CUSTOM, encoding="utf-8")
    text = (
        TOML.replace('"llama3"', '"mine"').replace('"8B"', '"four-layers"')
        + '[experimental]\ncustom_import = "my_flavors"\n'
    )
    answer = torchtitan_022.request("nparams", text=text, path=[str(tmp_path)])
    assert answer["ok"], answer
    assert answer["args"]["n_layers"] == 4
    assert answer["total"] == 2 * 128256 * 4096 + 4 * 218_112_000 + 4096
    assert torchtitan_022.request("nparams", text=text)["stage"] == "custom_import"


def test_torchtitan_030_accepts_a_python_configuration(torchtitan_030: OracleServer) -> None:
    request = {"text": PYTHON, "config": "llama3_8b"}
    assert torchtitan_030.request("resolve", **request)["config"]["training"]["seq_len"] == 8192
    dims = torchtitan_030.request("dims", **request, world_size=32)
    assert dims["dims"]["dp_shard"] == 4
    stages = torchtitan_030.request("stages", **request, world_size=32)
    assert [len(layers) for layers in stages["layers"]] == [8, 9, 8, 7]
    rates = torchtitan_030.request("lr", **request)["lr"]
    assert (len(rates), rates[0], rates[9]) == (20, pytest.approx(1e-4), pytest.approx(1e-3))
    assert torchtitan_030.request("nparams", **request)["total"] == LLAMA3_8B_PARAMETERS
    flat = torchtitan_030.request(
        "parallelize",
        **request,
        world_size=8,
        overrides=["--parallelism.pipeline_parallel_degree=1", "--parallelism.spmd_backend=partial_dtensor"],
    )
    norms = 65 * 4096
    assert flat["local_total"] == (LLAMA3_8B_PARAMETERS - norms) // 8 + norms // 4
    assert torchtitan_030.request("flavors")["flavors"]["llama3"]["8B"] == LLAMA3_8B_PARAMETERS


def test_torchtitan_030_refuses(torchtitan_030: OracleServer) -> None:
    request = {"text": PYTHON, "config": "llama3_8b"}
    answer = torchtitan_030.request("dims", **request, world_size=12)
    assert answer["stage"] == "ParallelDims"
    answer = torchtitan_030.request("resolve", **request, overrides=["--training.no_such_option=1"])
    assert "no_such_option" in answer["error"]
    answer = torchtitan_030.request("resolve", text=PYTHON, config="llama3_9b")
    assert "'llama3_9b' not found" in answer["error"]
