"""Memory under torchtitan, judged by the real package on a CPU: shards to the element, saved tensors by bytes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from environments import OracleServer, environment
from torchtitan_python import native

from translator import api
from translator.frameworks.torchtitan.framework import FRAMEWORK
from translator.frameworks.torchtitan.memory.activations import kept
from translator.frameworks.torchtitan.memory.gathers import unfinished_chunks
from translator.frameworks.torchtitan.memory.layer import dense_block, moe_block
from translator.frameworks.torchtitan.memory.output import tables
from translator.frameworks.torchtitan.memory.parameters import elements, sharded
from translator.memory.in_flight import in_flight
from translator.memory.saved import total
from translator.memory.sizes import Job, job_of
from translator.memory.stages import V_SHAPED, stages_of
from translator.reading import ReadOptions
from translator.source import Source

pytestmark = pytest.mark.oracle

NAME = "torchtitan-0.3.0"
TEXT = """
from torchtitan.components.loss import CrossEntropyLoss
from torchtitan.components.optimizer import default_adamw
from torchtitan.models.{family} import model_registry
from torchtitan.trainer import Trainer


def run() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("{flavor}"), loss=CrossEntropyLoss.Config(), optimizer=default_adamw(lr=8e-4)
    )
"""
P = "parallelism."
TP, PP, CP, EP = (f"{P}{name}_parallel_degree" for name in ("tensor", "pipeline", "context", "expert"))
REPLICATE, SCHEDULE = f"{P}data_parallel_replicate_degree", f"{P}pipeline_parallel_schedule"


@pytest.fixture(scope="module")
def titan() -> Iterator[OracleServer]:
    found = environment(NAME)
    if reason := found.missing():
        pytest.skip(reason)
    with found.serve("torchtitan_memory.py") as running:
        yield running


def job(model: str, world_size: int, values: dict[str, Any], **training: Any) -> Job:
    """Our job of a named flavor with options."""
    family, flavor = model.split("/")
    settled = native(
        {
            "model_spec.name": family,
            "model_spec.flavor": flavor,
            "loss": "CrossEntropyLoss",
            "training.seq_len": 2048,
            "training.local_batch_size": 8,
            "@world_size": world_size,
            **{f"training.{name}": value for name, value in training.items()},
            **values,
        }
    )
    return job_of("torchtitan", "0.3.0", FRAMEWORK.table("0.3.0").read(settled.values), settled.values)


def asked(model: str, values: dict[str, Any]) -> dict[str, Any]:
    """The same, as a request to the driver."""
    family, flavor = model.split("/")
    words = ["--training.seq_len", "2048", "--training.local_batch_size", "8"]
    for address, value in values.items():
        words += [f"--{address}", str(value)]
    if values.get(PP, 1) > 1 or values.get(EP, 1) > 1:
        words.append("--training.disable_cuda_graphs")
    words += [f"--{P}spmd_backend", "partial_dtensor"]
    return {"text": TEXT.format(family=family, flavor=flavor), "config": "run", "overrides": words}


# Model, world size, options.
LAYOUTS: list[tuple[str, int, dict[str, Any]]] = [
    ("llama3/8B", 8, {}),
    ("llama3/8B", 8, {TP: 8}),
    ("llama3/8B", 24, {TP: 2}),
    ("llama3/8B", 8, {TP: 2, CP: 2}),
    ("llama3/8B", 16, {REPLICATE: 4, TP: 2}),
    ("llama3/8B", 4, {REPLICATE: 4}),
    ("llama3/1B", 8, {TP: 2}),
    ("llama3/70B", 64, {TP: 8, PP: 4}),
    ("llama3/405B", 512, {TP: 8, PP: 8}),
    ("llama3/8B", 8, {PP: 4, SCHEDULE: "Interleaved1F1B"}),
    ("llama3/8B", 8, {PP: 4, SCHEDULE: "ZBVZeroBubble"}),
    ("qwen3/0.6B", 6, {}),
    ("qwen3/32B", 16, {TP: 4}),
    ("qwen3/30B-A3B", 8, {}),
    ("qwen3/30B-A3B", 16, {EP: 8}),
    ("qwen3/30B-A3B", 16, {EP: 4, TP: 2}),
    ("qwen3/235B-A22B", 256, {}),
    ("deepseek_v3/debugmodel", 4, {TP: 2}),
    ("deepseek_v3/16B", 16, {EP: 8, TP: 2}),
    ("deepseek_v3/236B", 64, {EP: 8, PP: 2}),
    ("deepseek_v3/671B", 256, {EP: 64, PP: 4}),
    ("deepseek_v3/671B", 512, {EP: 32, TP: 4}),
    ("gpt_oss/20b", 8, {EP: 4}),
    ("gpt_oss/20b", 8, {TP: 2}),
    ("gpt_oss/120b", 16, {EP: 16, TP: 2}),
]


@pytest.mark.parametrize(
    ("model", "world_size", "values"),
    LAYOUTS,
    ids=lambda value: str(value) if not isinstance(value, dict) else "-".join(str(v) for v in value.values()),
)
def test_shards_to_the_element(titan: OracleServer, model: str, world_size: int, values: dict[str, Any]) -> None:
    """The first rank of the first and of the last stage holds exactly as many elements and buffers as we say."""
    ours = job(model, world_size, values)
    stages = stages_of(ours)
    found = elements(ours, stages, sharded)
    degree = values.get(PP, 1)
    for stage in sorted({0, degree - 1}):
        answer = titan.request(
            "shards", timeout=300, world_size=world_size, rank=stage * world_size // degree, **asked(model, values)
        )
        assert answer["ok"], answer
        assert answer["bytes"] == 4 * answer["total"]
        counted = float(np.broadcast_to(found, (1, degree))[0, stage])
        assert counted == answer["total"], (stage, counted, shapes(answer))
        buffers = sum(float(np.broadcast_to(term.amount, (1, degree))[0, stage]) for term in tables(ours, stages))
        assert buffers == answer["buffers"]


def shapes(answer: dict[str, Any]) -> dict[str, list[int]]:
    """Shapes of a few tensors, for a failing test's message."""
    named = answer["by_name"]
    return {name: shape for name, shape in list(named.items())[:24] if math.prod(shape)}


# Model, world size, options of [parallelism] of the TOML releases.
OLDER: list[tuple[str, str, int, dict[str, int]]] = [
    ("0.1.0", "llama3/8B", 8, {"tensor": 2}),
    ("0.1.0", "llama3/70B", 64, {"tensor": 8, "context": 2}),
    ("0.2.2", "llama3/8B", 24, {"tensor": 2}),
    ("0.2.2", "llama3/8B", 8, {"context": 4}),
    ("0.2.2", "qwen3/14B", 6, {}),
    ("0.2.2", "qwen3/30B-A3B", 16, {"expert": 8}),
    ("0.2.2", "deepseek_v3/16B", 16, {"expert": 8, "tensor": 2}),
    ("0.2.2", "deepseek_v3/16B", 16, {"expert": 8, "tensor": 2, "expert_tensor": 2}),
    ("0.2.2", "llama4/17bx16e", 32, {"expert": 4}),
]


@pytest.mark.parametrize(("version", "model", "world_size", "degrees"), OLDER)
def test_shards_of_toml_releases(
    request: pytest.FixtureRequest, version: str, model: str, world_size: int, degrees: dict[str, int]
) -> None:
    running = request.getfixturevalue("torchtitan_010" if version == "0.1.0" else "torchtitan_022")
    name, flavor = model.split("/")
    lines = [f'[model]\nname = "{name}"\nflavor = "{flavor}"', "[training]\nseq_len = 2048", "[parallelism]"]
    lines += [f"{degree}_parallel_degree = {ranks}" for degree, ranks in degrees.items()]
    text = "\n".join(lines)
    read = api.read(
        Source("run.toml", text), framework=f"torchtitan@{version}", options=ReadOptions(world_size=world_size)
    )
    assert read.native is not None
    flat = {**read.flat, "model.vocab_padded": read.flat["model.vocab_padded"] or 128256}
    ours = job_of("torchtitan", version, flat, read.native.values)
    answer = running.request("parallelize", timeout=300, world_size=world_size, text=text)
    assert answer["ok"], answer
    assert float(elements(ours, stages_of(ours), sharded)[0, 0]) == answer["local_total"]


SCHEDULES = {
    "gpipe": ("GPipe", (1,)),
    "1f1b": ("1F1B", (1,)),
    "looped_bfs": ("LoopedBFS", (2, 3)),
    "interleaved_1f1b": ("Interleaved1F1B", (2, 3)),
    "interleaved_zero_bubble": ("InterleavedZeroBubble", (2, 3)),
    "zbv_zero_bubble": ("ZBVZeroBubble", (2,)),
    "dual_pipe_v": ("DualPipeV", (2,)),
}


@cache
def plain_job() -> Job:
    """A job whose layout is replaced."""
    return job("llama3/8B", 8, {})


def most_held(order: list[list[Any]]) -> int:
    """The largest number of passes of one rank that wait for their backward pass, that for weights included."""
    held = most = 0
    for kind, _, _ in order:
        held += {"F": 1, "B": -1, "W": -1}.get(kind, 0)
        most = max(most, held)
    return most


def most_unfinished(order: list[list[Any]]) -> int:
    """The largest number of a rank's stages that have a part of their gradients, at one time."""
    found: dict[int, list[int]] = {}
    for index, (kind, stage, _) in enumerate(order):
        if kind in ("B", "W"):
            found.setdefault(stage, []).append(index)
    spans = [(min(steps), max(steps)) for steps in found.values()]
    return max(sum(first <= index < last for first, last in spans) for index in range(len(order)))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("ranks", "micro_batches"), [(2, 4), (4, 4), (4, 8), (8, 16)])
def test_passes_in_flight(titan: OracleServer, schedule: str, ranks: int, micro_batches: int) -> None:
    """What we say of a schedule is what torch's own makes of it, on every rank."""
    name, several = SCHEDULES[schedule]
    plain = plain_job()
    if schedule in V_SHAPED and micro_batches < 2 * ranks:
        pytest.skip("a V is filled by twice as many micro batches as ranks")
    for chunks in several:
        answer = titan.request(
            "orders", schedule=name, ranks=ranks, stages_per_rank=chunks, n_microbatches=micro_batches
        )
        assert answer["ok"], answer
        real = [most_held(order) / chunks for order in answer["orders"]]
        layout = dataclasses.replace(
            plain.layout,
            pipeline=ranks,
            chunks=chunks,
            micro_batches=micro_batches,
            schedule=schedule,
        )
        assert in_flight(layout, ranks)[0].tolist() == pytest.approx(real), chunks
        unfinished = max(most_unfinished(order) / chunks for order in answer["orders"])
        asked = dataclasses.replace(plain, layout=layout)
        assert float(unfinished_chunks(asked)) == pytest.approx(unfinished), chunks


# Model, and number of a block in it; kinds of checkpointing as we name them, and as Python.
BLOCKS = [
    ("llama3/8B", 1),
    ("qwen3/8B", 0),
    ("qwen3/30B-A3B", 0),
    ("deepseek_v3/16B", 0),
    ("deepseek_v3/16B", 1),
    ("deepseek_v3/236B", 0),
    ("gpt_oss/20b", 0),
]
KINDS = {"none": "None", "SelectiveAC": "SelectiveAC.Config()", "FullAC": "FullAC.Config()"}
TOKENS = 64


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("model", "layer"), BLOCKS)
def test_saved_tensors(titan: OracleServer, model: str, layer: int, kind: str) -> None:
    """The unique storages that the real block keeps for its backward pass are as large as our terms, within 2 %."""
    values = {} if kind == "none" else {"activation_checkpoint": kind}
    ours = job(model, 1, values, local_batch_size=1, seq_len=TOKENS)
    moe = layer not in ours.model.dense
    block = kept(ours, moe=moe) if kind != "none" else moe_block(ours) if moe else dense_block(ours)
    family, flavor = model.split("/")
    text = TEXT.format(family=family, flavor=flavor).replace(
        "lr=8e-4)", f"lr=8e-4), activation_checkpoint={KINDS[kind]}"
    )
    text = f"from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC\n{text}"
    answer = titan.request(
        "saved", timeout=300, text=text, config="run", layer=layer, tokens=TOKENS, checkpointed=kind != "none"
    )
    assert answer["ok"], answer
    theirs = as_on_a_gpu(answer["saved"]) + sum(size for _, size, *_ in answer["cached"])
    assert total(block) == pytest.approx(theirs, rel=0.02), ([(x.name, x.amount) for x in block], answer)


def as_on_a_gpu(saved: list[list[Any]]) -> int:
    """Bytes with the norms of a GPU: a fused one keeps its bf16 input, the CPU's its input and output in fp32.

    Such a pair stands beside the norm's factors, which have one element for a row of it.
    """
    single = [tuple(shape) for _, _, dtype, shape in saved if dtype == "torch.float32"]
    size = sum(size for _, size, *_ in saved)
    for shape in set(single):
        pairs = single.count(shape) // 2
        if (*shape[:-1], 1) in single and shape[-1] > 1:
            size -= pairs * math.prod(shape) * (4 + 4 - 2)
    return size
