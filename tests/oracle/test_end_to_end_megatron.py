"""What ttx writes for Megatron-LM, judged by the real argument code of core 0.18.0, example by example.

The arguments are those that bash itself passes on when it runs the written script; a stub stands in for ``torchrun``.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from environments import OracleServer
from example_cases import Case, cases
from parameter_count import parameter_count

from translator.compare import equal
from translator.conversion import Conversion
from translator.schedules import curve_of

CASES = [case for case in cases() if case.target == "megatron@0.18.0"]
DEGREES = {
    "tensor_model_parallel_size": "parallel.tensor",
    "pipeline_model_parallel_size": "parallel.pipeline.degree",
    "context_parallel_size": "parallel.context",
    "expert_model_parallel_size": "parallel.expert",
    "data_parallel_size": "parallel.data.degree",
}
SAME = {
    "num_layers": "model.layers",
    "hidden_size": "model.hidden",
    "num_attention_heads": "model.heads",
    "seq_length": "batch.seq_len",
    "micro_batch_size": "batch.micro_batch",
    "global_batch_size": "batch.global_batch",
    "lr": "optimizer.lr",
    "adam_beta1": "optimizer.beta1",
    "adam_beta2": "optimizer.beta2",
    "adam_eps": "optimizer.eps",
    "weight_decay": "optimizer.weight_decay",
    "clip_grad": "optimizer.clip_grad_norm",
    "hidden_dropout": "model.hidden_dropout",
    "attention_dropout": "model.attention_dropout",
    "num_experts": "model.moe.experts",
    "moe_router_topk": "model.moe.top_k",
}
LLAMA3_VOCABULARY = 128256
STUB = """#!{python}
import json, os, sys
with open({answer!r}, "w") as file:
    json.dump({{"argv": sys.argv[1:], "connections": os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS")}}, file)
"""

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash runs the written scripts"),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture
def asked(case: Case, tmp_path: Path) -> dict[str, Any]:
    """The parameters of every question: the words that bash passes on, and the ranks that it starts."""
    answer, stub = tmp_path / "answer.json", tmp_path / "bin" / "torchrun"
    stub.parent.mkdir()
    stub.write_text(STUB.format(python=sys.executable, answer=str(answer)), encoding="utf-8")
    stub.chmod(0o755)
    script = tmp_path / "train.sh"
    script.write_text(case.convert().rendered.files["train.sh"], encoding="utf-8")
    path = f"{stub.parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", str(script)], env={"PATH": path}, check=True, timeout=60)
    found = json.loads(answer.read_text(encoding="utf-8"))
    argv = found["argv"]
    program = argv.index("pretrain_gpt.py")
    each, nodes = (int(argv[argv.index(flag) + 1]) for flag in ("--nproc_per_node", "--nnodes"))
    assert each * nodes == case.convert().source.flat["parallel.world_size"]
    return {
        "argv": argv[program + 1 :],
        "world_size": each * nodes,
        "vocab_size": case.convert().source.flat["model.vocab"] or LLAMA3_VOCABULARY,
        "assume_te": True,
        "environment": {"CUDA_DEVICE_MAX_CONNECTIONS": found["connections"]},
    }


def answered(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["ok"], answer
    return answer


def meant(conversion: Conversion, leaf: str) -> Any:
    """What the source means, or what the result says where the ledger admits that it cannot say that."""
    wanted, found = conversion.source.flat[leaf], conversion.back.flat[leaf]
    told = [line for line in conversion.ledger if line.entry.is_loss and leaf in line.fields]
    lost = leaf in conversion.sink.shortfalls and conversion.sink.shortfalls[leaf].entry.is_loss
    return found if wanted is None or (told and lost and not equal(wanted, found)) else wanted


def test_arguments(case: Case, megatron: OracleServer, asked: dict[str, Any]) -> None:
    """The real parser and validation accept the words, and hold the numbers of the source."""
    conversion = case.convert()
    found = answered(megatron.request("resolve", **asked))
    args = found["args"]
    for dest, leaf in {**SAME, **DEGREES}.items():
        wanted = meant(conversion, leaf)
        if wanted is not None:
            assert math.isclose(args[dest], wanted, rel_tol=1e-12), dest
    assert found["num_microbatches"] == conversion.source.flat["batch.accumulation"]
    assert args["bf16"] == (conversion.source.flat["precision.compute"] == "bf16")
    wanted = meant(conversion, "model.vocab_padded")
    if wanted is not None:
        assert args["padded_vocab_size"] == wanted


def test_model_configuration(case: Case, megatron: OracleServer, asked: dict[str, Any]) -> None:
    """The real TransformerConfig passes its own checks."""
    config = answered(megatron.request("config", **asked))["config"]
    flat = case.convert().source.flat
    assert config["num_layers"] == flat["model.layers"]
    assert config["ffn_hidden_size"] == meant(case.convert(), "model.ffn")
    if flat["recompute.mode"] in ("none", "full"):
        assert config["recompute_granularity"] == {"none": None, "full": "full"}[flat["recompute.mode"]]


def test_stages(case: Case, megatron: OracleServer, asked: dict[str, Any]) -> None:
    """Every pipeline stage has the layers that the source gives it."""
    flat = case.convert().source.flat
    if flat["parallel.pipeline.degree"] == 1:
        pytest.skip("no pipeline")
    found = answered(megatron.request("stages", **asked))
    per_rank = found["layers"]
    chunks = range(len(per_rank[0]))
    in_order = [per_rank[rank][chunk] for chunk in chunks for rank in range(len(per_rank))]
    assert in_order == flat["parallel.pipeline.layer_split"]
    assert len(chunks) == flat["parallel.pipeline.stages_per_rank"]


def test_learning_rate(case: Case, megatron: OracleServer, asked: dict[str, Any]) -> None:
    """Every step runs at the rate that the source means, but where the ledger admits a difference."""
    conversion = case.convert()
    read, wanted = curve_of(conversion.back.flat), curve_of(conversion.source.flat)
    assert read is not None
    assert wanted is not None
    found = answered(megatron.request("lr", timeout=300, **asked))
    assert found["train_iters"] == wanted.total
    shortfalls = conversion.sink.shortfalls.items()
    lossy = any(leaf.startswith("schedule.") and shortfall.entry.is_loss for leaf, shortfall in shortfalls)
    for step, rate in enumerate(found["lr"]):
        assert math.isclose(rate, read.rate(step), rel_tol=1e-9, abs_tol=1e-12 * read.peak), step
        assert lossy or math.isclose(rate, wanted.rate(step), rel_tol=1e-9, abs_tol=1e-9 * read.peak), step


def test_parameters(case: Case, megatron: OracleServer, asked: dict[str, Any]) -> None:
    """The real model has as many parameters as the source's own framework makes of it, padding aside."""
    flat = case.convert().source.flat
    if flat["model.mla.enabled"]:
        pytest.skip("Megatron-LM's own attention, which needs no GPU, has no latent form")
    if flat["model.norm"] != "rmsnorm" or not flat["model.gated"]:
        pytest.skip("the count is of models with RMSNorm and gates")
    found = answered(megatron.request("params", **asked))
    leaves = {leaf: meant(case.convert(), leaf) for leaf in flat if leaf.startswith("model.")}
    leaves["model.vocab"] = found["padded_vocab_size"]
    assert found["total"] == parameter_count(leaves)


def test_enough_is_judged() -> None:
    assert len(CASES) >= 6
    assert {case.framework.partition("@")[0] for case in CASES} >= {"megatron", "torchtitan"}
