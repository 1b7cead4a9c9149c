"""Our Python configurations, judged by the real torchtitan 0.3.0: accepted, and meaning what the spec says."""

from __future__ import annotations

from typing import Any

import pytest
from environments import OracleServer
from parameter_count import parameter_count
from torchtitan_python import VERSION, Written, flat, native, write

from translator import api
from translator.compare import lost
from translator.findings import Level
from translator.frameworks.torchtitan import addresses as at
from translator.frameworks.torchtitan import groups, model_names, python_classes
from translator.frameworks.torchtitan.framework import FRAMEWORK
from translator.frameworks.torchtitan.insert_python import insert_into
from translator.reading import ReadOptions
from translator.schedules import curve_of
from translator.source import Source

LLAMA_LIKE = {
    "model.rope_base": 10000.0,
    "model.rope.scaling": "none",
    "model.rope.scaling_factor": None,
    "model.rope.low_freq_factor": None,
    "model.rope.high_freq_factor": None,
    "model.rope.original_max_positions": None,
}
MATRICES = {"optimizer.decay_scope": "matrices"}
PIPELINE = {
    "parallel.world_size": 16,
    "parallel.pipeline.degree": 4,
    "parallel.pipeline.schedule": "1f1b",
    "parallel.data.degree": 4,
    "parallel.data.shard": 4,
    "parallel.data.reshard_after_forward": False,
    "batch.micro_batch": 1,
    "batch.global_batch": 64,
    "launch.cuda_graphs": "none",
}
COSINE = {
    "schedule.total": 50,
    "schedule.warmup": 7.0,
    "schedule.decay": "cosine",
    "schedule.decay_start": 7.0,
    "schedule.decay_length": 43.0,
    "schedule.min_lr": 3e-5,
}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("llama3/8B", {}),
    "1B, tied": ("llama3/1B", {}),
    "matrices decay": ("llama3/8B", {**MATRICES, "optimizer.weight_decay": 0.05, "optimizer.weight_decay_end": 0.05}),
    "pipeline": ("llama3/8B", {**PIPELINE, **MATRICES, "parallel.pipeline.layer_split": [8, 8, 8, 8]}),
    "pipeline, uneven": (
        "llama3/8B",
        {**PIPELINE, "parallel.pipeline.layer_split": [6, 9, 9, 8], "recompute.mode": "full"},
    ),
    "interleaved": (
        "llama3/70B",
        {
            **PIPELINE,
            "parallel.pipeline.schedule": "interleaved_1f1b",
            "parallel.pipeline.stages_per_rank": 4,
            "parallel.pipeline.layer_split": [5] * 16,
        },
    ),
    "tensor without sequence parallelism": (
        "llama3/8B",
        {
            "parallel.tensor": 8,
            "parallel.sequence_parallel": False,
            "parallel.loss_parallel": True,
            "parallel.data.degree": 1,
            "parallel.data.shard": 1,
        },
    ),
    "context": (
        "llama3/8B",
        {"parallel.context": 4, "parallel.data.degree": 2, "parallel.data.shard": 2, "batch.seq_len": 8192},
    ),
    "replicas": (
        "llama3/8B",
        {"parallel.data.replicate": 8, "parallel.data.shard": 1, "parallel.data.sharding": "none"},
    ),
    "cosine": ("llama3/debugmodel", COSINE),
    "chunks": ("llama3/8B", {"loss.chunks": 8, "batch.seq_len": 8192}),
    "bf16 moments": ("llama3/8B", {"precision.first_moment": "bf16", "precision.second_moment": "bf16"}),
    "compiled": (
        "llama3/8B",
        {
            "launch.compile": True,
            "recompute.mode": "selective",
            "recompute.method": "memory_budget",
            "recompute.memory_budget": 0.3,
        },
    ),
    "odd width": ("llama3/8B", {**LLAMA_LIKE, "model.ffn": 11008, "model.kv_heads": 32}),
    "odd width, tied": (
        "llama3/8B",
        {
            **LLAMA_LIKE,
            "model.layers": 13,
            "model.hidden": 1536,
            "model.heads": 12,
            "model.kv_heads": 4,
            "model.head_dim": 128,
            "model.ffn": 4133,
            "model.vocab": 50257,
            "model.tied_embeddings": True,
            **MATRICES,
        },
    ),
    "wide heads": ("llama3/8B", {"model.head_dim": 256, "model.heads": 32}),
    "wide sequence": ("qwen3/debugmodel", {"batch.seq_len": 8192, "model.max_positions": 8192}),
    "qwen3": ("qwen3/0.6B", MATRICES),
    "qwen3 of its own": ("qwen3/8B", {"model.ffn": 11111, "model.layers": 7, "model.init_std": 0.01, **MATRICES}),
    "qwen3, qk norms decay": ("qwen3/8B", {"optimizer.decay_scope": "matrices_and_qk_norm"}),
    "qwen3 MoE": ("qwen3/30B-A3B", MATRICES),
    "qwen3 MoE, some dense layers": (
        "qwen3/30B-A3B",
        {"model.moe.dense_layers": [0, 3, 5], "model.ffn": 6000, "model.moe.shared_ffn": 1000},
    ),
    "expert parallel": (
        "qwen3/30B-A3B",
        {"parallel.expert": 8, "parallel.expert_tensor": 1, "launch.cuda_graphs": "none"},
    ),
    "deepseek": ("deepseek_v3/16B", MATRICES),
    "deepseek of its own": (
        "deepseek_v3/671B",
        {
            "model.layers": 9,
            "model.moe.experts": 48,
            "model.moe.router_groups": 4,
            "model.moe.router_group_top_k": 2,
            "model.moe.shared_ffn": 3000,
            "model.norm_eps": 1e-6,
            "model.rope.scaling": "none",
            **MATRICES,
        },
    ),
    "gpt_oss": ("gpt_oss/20b", MATRICES),
    "gpt_oss of its own": (
        "gpt_oss/20b",
        {
            "model.layers": 5,
            "model.attention_window": 256,
            "model.attention_window_pattern": [0, 4],
            "model.moe.experts": 6,
            "model.moe.ffn": 100,
            **MATRICES,
        },
    ),
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Written]:
    """Leaves, and what is written for them."""
    model, changes = CASES[request.param]
    spec = flat(model, changes)
    return spec, write(spec)


def ask(server: OracleServer, command: str, written: Written, **parameters: object) -> dict[str, Any]:
    answer = server.request(command, text=written.text, config=written.function, **parameters)
    assert answer["ok"], (answer["stage"], answer["error"], written.text)
    return answer


def at_path(config: dict[str, Any], address: str) -> Any:
    found: Any = config
    for part in address.split("."):
        found = found[part]
    return found


def test_the_values_that_are_written_are_in_force(
    case: tuple[dict[str, Any], Written], torchtitan_030: OracleServer
) -> None:
    _, written = case
    config = ask(torchtitan_030, "resolve", written)["config"]
    compared = 0
    for address, value in written.sink.values.items():
        names_a_class = address in python_classes.places()
        if address.startswith(("@", "model_spec.")) or address == "optimizer.param_groups" or names_a_class:
            continue
        assert at_path(config, address) == value, address
        compared += 1
    assert compared > 5
    stated = config["optimizer"]["param_groups"]
    assert [item["pattern"] for item in stated] == [
        item["pattern"] for item in written.sink.values["optimizer.param_groups"]
    ]
    # What is not written is the default that we take for it.
    for address, value in written.settled.values.items():
        if address in written.sink.values or address in written.settled.derived or address in python_classes.places():
            continue
        if address.partition(".")[0] in ("training", "parallelism", "compile", "lr_scheduler", "debug", "comm"):
            assert at_path(config, address) == value, address


def test_degrees_batch_and_stages(case: tuple[dict[str, Any], Written], torchtitan_030: OracleServer) -> None:
    spec, written = case
    values = written.settled.values
    real = ask(torchtitan_030, "dims", written, world_size=spec["parallel.world_size"])
    for name, axis in (("dp_shard", "data_parallel_shard"), ("tp", "tensor_parallel"), ("ep", "expert_parallel")):
        assert real["dims"][name] == values[f"parallelism.{axis}_degree"]
    assert real["batch"]["data_parallel"] == values[at.DP_DEGREE] == spec["parallel.data.degree"]
    assert real["batch"]["global_batch_size"] == values["training.global_batch_size"]
    assert real["batch"]["gradient_accumulation_steps"] == values[at.ACCUMULATION]
    assert real["seq_len_divisor"] == values[at.SEQ_LEN_DIVISOR]
    if spec["parallel.pipeline.degree"] > 1:
        real = ask(torchtitan_030, "stages", written, world_size=spec["parallel.world_size"])
        assert [len(layers) for layers in real["layers"]] == values[at.LAYER_SPLIT]
        assert values[at.LAYER_SPLIT] == spec["parallel.pipeline.layer_split"]
        assert real["n_microbatches"] == values[at.PIPELINE_MICRO_BATCHES]


def test_the_rate_at_every_step(case: tuple[dict[str, Any], Written], torchtitan_030: OracleServer) -> None:
    spec, written = case
    steps = min(spec["schedule.total"], 400)
    real = ask(torchtitan_030, "lr", written, steps=steps)["lr"]
    curve = curve_of(spec)
    assert curve is not None
    assert real == pytest.approx([curve.rate(step) for step in range(steps)], rel=1e-9)


def test_the_model_has_the_parameters_of_the_spec(
    case: tuple[dict[str, Any], Written], torchtitan_030: OracleServer
) -> None:
    spec, written = case
    real = ask(torchtitan_030, "nparams", written)
    assert real["total"] == parameter_count({leaf: value for leaf, value in spec.items() if leaf.startswith("model.")})


def test_the_groups_decay_what_they_should(case: tuple[dict[str, Any], Written], torchtitan_030: OracleServer) -> None:
    spec, written = case
    shapes: dict[str, list[int]] = ask(torchtitan_030, "nparams", written)["shapes"]
    stated = written.sink.values["optimizer.param_groups"]
    rates = {name: found["weight_decay"] for name, found in groups.assign(stated, shapes).items()}
    assert rates.keys() == shapes.keys()
    scope, rate = spec["optimizer.decay_scope"], spec["optimizer.weight_decay"]
    for name, shape in shapes.items():
        matrix = len(shape) > 1 and "bias" not in name
        qk = scope == "matrices_and_qk_norm" and name.endswith(("q_norm.weight", "k_norm.weight"))
        assert rates[name] == (rate if scope == "all" or matrix or qk else 0.0), name
    # The names that parameter groups are judged by are the model's own: one layer of each kind stands for all.
    known = model_names.parameters(lambda leaf: spec[f"model.{leaf}"])
    mine = {name.replace("layers.0.", "") for name in known}
    real = {name.split(".", 2)[2] if name.startswith("layers.") else name for name in shapes}
    assert mine == real


def test_the_configuration_reads_back_as_the_spec(case: tuple[dict[str, Any], Written]) -> None:
    spec, written = case
    assert not written.settled.findings
    back = FRAMEWORK.table(VERSION).read(written.settled.values)
    admitted = written.sink.shortfalls.keys() | written.sink.needs.keys() | {"model.name"}
    assert not {leaf: pair for leaf, pair in lost(spec, back).items() if leaf not in admitted}


def test_a_flavor_beyond_its_positions_is_refused_and_we_say_so(torchtitan_030: OracleServer) -> None:
    text = (
        "from torchtitan.config import TrainingConfig\n"
        "from torchtitan.models.qwen3 import model_registry\n"
        "from torchtitan.trainer import Trainer\n\n\n"
        "def run() -> Trainer.Config:\n"
        "    return Trainer.Config(\n"
        '        model_spec=model_registry("debugmodel"), training=TrainingConfig(seq_len=8192)\n'
        "    )\n"
    )
    answer = torchtitan_030.request("nparams", text=text, config="run")
    assert not answer["ok"]
    assert "8192 exceeds" in answer["error"]
    values = {"model_spec.name": "qwen3", "model_spec.flavor": "debugmodel", "training.seq_len": 8192}
    assert "S181" in {finding.code for finding in native(values).findings}


REGISTRY = '''\
"""A registry of ours."""
from torchtitan.models.qwen3 import model_registry
from torchtitan.trainer import Trainer

SIZE = "0.6B"


def other() -> Trainer.Config:
    return Trainer.Config(model_spec=model_registry(SIZE))
'''


@pytest.mark.parametrize("name", ["plain", "odd width, tied", "gpt_oss"])
def test_a_configuration_in_a_registry_beside_others_is_accepted(name: str, torchtitan_030: OracleServer) -> None:
    model, changes = CASES[name]
    written = write(flat(model, changes))
    text = insert_into(REGISTRY, written.rendered, "added")
    alone = ask(torchtitan_030, "nparams", written)
    added = torchtitan_030.request("nparams", text=text, config="added")
    assert added["ok"], added
    assert added["total"] == alone["total"]
    assert torchtitan_030.request("resolve", text=text, config="other")["ok"]


REFUSED = {
    "S190": "checkpoint=CheckpointManager.Config(interval=0)",
    "S190 model": 'checkpoint=CheckpointManager.Config(exclude_from_loading=["model"])',
    "S196": 'parallelism=ParallelismConfig(context_parallel_load_balancer="")',
    "S199": "debug=DebugConfig(batch_invariant=True)",
    "S199 pipeline": (
        "debug=DebugConfig(spmd_typechecking=True), parallelism=ParallelismConfig(pipeline_parallel_degree=2), "
        "training=TrainingConfig(disable_cuda_graphs=True)"
    ),
    "S199 recomputation": "debug=DebugConfig(spmd_typechecking=True)",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_called_an_error_is_refused(name: str, torchtitan_030: OracleServer) -> None:
    text = (
        "from torchtitan.components.checkpointer import CheckpointManager\n"
        "from torchtitan.components.loss import CrossEntropyLoss\n"
        "from torchtitan.components.optimizer import default_adamw\n"
        "from torchtitan.config import DebugConfig, ParallelismConfig, TrainingConfig\n"
        "from torchtitan.models.llama3 import model_registry\n"
        "from torchtitan.trainer import Trainer\n\n\n"
        "def run() -> Trainer.Config:\n"
        "    return Trainer.Config(\n"
        '        model_spec=model_registry("8B"),\n'
        "        loss=CrossEntropyLoss.Config(global_vocab_size=128256),\n"
        "        optimizer=default_adamw(lr=1e-3),\n        {}\n    )\n"
    )
    assert torchtitan_030.request("resolve", text=text.format(""), config="run")["ok"]
    refused = torchtitan_030.request("resolve", text=text.format(REFUSED[name]), config="run")
    assert not refused["ok"]
    reading = api.read(Source("run.py", text.format(REFUSED[name])), options=ReadOptions(world_size=8))
    assert name.partition(" ")[0] in {finding.code for finding in reading.findings if finding.level is Level.ERROR}
