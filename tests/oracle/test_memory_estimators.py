"""The estimators that people use today beside ours, on runs whose memory was measured; ``pytest -s`` prints the table.

Megatron-LM's own (``theoretical_memory_usage.py``, core 0.18.0), DeepSpeed's for model states (0.19.2) and
llm-analysis 0.2.2 are asked for the same configurations. A row that one of them has no words for is left to the others,
with the reason.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from environments import OracleServer
from test_megatron_settle_oracle import RUNNER, around, ours, without_foreign

from translator.errors import TtxError
from translator.frameworks.megatron.config_yaml import read_config
from translator.memory.estimate import Estimate, estimate_reading
from translator.memory.parameters import dense_layer, embedding, moe_layer, norm
from translator.memory.sizes import Job

GIB = 2**30
SMALLEST_GIB = 4.0
NAMES = ("ours", "Megatron-LM", "DeepSpeed", "llm-analysis")

_file = Path(__file__).resolve().parents[1] / "memory" / "measured.py"
_spec = importlib.util.spec_from_file_location("measured_rows", _file)
assert _spec is not None
assert _spec.loader is not None
measured: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(measured)


@dataclass(frozen=True)
class Row:
    """A measured run: its allocated peak, our estimate, and the arguments for Megatron-LM's."""

    name: str
    gib: float
    found: Estimate
    ours_gib: float
    words: list[str]
    world_size: int
    environment: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def measurements(corpus: Path) -> list[Row]:
    """SimuMax's table, and the rows of Megatron-LM's own tests that measure more than fixed overhead."""
    rows = []
    for row in measured.simumax():
        found = estimate_reading(measured.reading_of_simumax(row))
        ours_gib = float(found.totals.allocated.expected.max()) / GIB
        name = row["source"].rpartition("#")[2]
        rows.append(Row(name, row["reported_gib"], found, ours_gib, measured.words_of_simumax(row), row["gpus"]))
    for row in measured.megatron_ci():
        if row["reported_gib"] < SMALLEST_GIB:
            continue
        name = row["config"].removesuffix("/model_config.yaml").rpartition("/")[2]
        try:
            found = estimate_reading(measured.reading_of_ci(row, corpus))
        except TtxError as error:
            print(f"left out: {name}: {error}")
            continue
        layers = row["model"].get("layers")
        if layers not in (None, found.job.model.layers):
            print(f"left out: {name}: its stored configuration has {found.job.model.layers} layers, not {layers}")
            continue
        text = corpus / "megatron" / row["config"].split(measured.CASES)[1]
        run = read_config(text.name, text.read_text(), RUNNER).runs[0]
        environment = around(run.words)
        words = [word.text for word in without_foreign(run.words, ours(run.words, row["gpus"], environment))]
        # The last rank wrote the record.
        ours_gib = float(found.totals.allocated.expected[0, -1]) / GIB
        rows.append(Row(name, row["reported_gib"], found, ours_gib, words, row["gpus"], environment))
    return rows


def megatrons(server: OracleServer, row: Row) -> float | str:
    """What Megatron-LM reports for the fullest rank, in GiB, or why it reports nothing."""
    answer = server.request(
        "memory",
        argv=row.words,
        world_size=row.world_size,
        vocab_size=row.found.job.model.vocab,
        assume_te=True,
        environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1", "NVTE_CPU_OFFLOAD_V1": "1", **row.environment},
    )
    return answer["total_mib"] / 1024 if answer["ok"] else str(answer["error"])


def deepspeeds(server: OracleServer, row: Row) -> float | str:
    """DeepSpeed's estimate of model states at stage 2, in GiB: it knows of no other parallelism and no activations."""
    job = row.found.job
    if max(job.layout.tensor, job.layout.pipeline, job.layout.expert) > 1:
        return "no tensor, pipeline or expert parallelism"
    ranks = job.layout.data * job.layout.context
    answer = server.request("estimate", stage=2, parameters=parameters(job), gpus_per_node=int(ranks))
    assert answer["ok"], answer
    return float(answer["gpu_bytes"]) / GIB


def parameters(job: Job) -> int:
    """All parameters of a model."""
    model = job.model
    total = len(model.dense) * dense_layer(model).elements + (model.layers - len(model.dense)) * (
        moe_layer(model).elements
    )
    return total + norm(model) + embedding(model) * (1 if model.tied else 2)


def llm_analysis_says(server: OracleServer, row: Row) -> float | str:
    """llm-analysis' weights, gradients, optimizer state and activations, in GiB."""
    job = row.found.job
    model, layout = job.model, job.layout
    if model.mla is not None:
        return "no latent attention"
    if layout.context > 1:
        return "no context parallelism"
    recompute = {"full": "FULL", "selective": "SELECTIVE"}.get(job.flat.get("recompute.mode") or "", "NONE")
    answer = server.request(
        "memory",
        model={
            "num_layers": model.layers,
            "n_head": model.heads,
            "hidden_dim": model.hidden,
            "vocab_size": model.vocab,
            "max_seq_len": int(layout.seq_len),
            "num_key_value_heads": model.kv_heads,
            "ffn_embed_dim": model.ffn,
            "expansion_ratio": model.ffn / model.hidden,
            **({"moe_num_experts": model.moe.experts, "moe_top_k": model.moe.top_k} if model.moe else {}),
        },
        parallel={
            "tp_size": layout.tensor,
            "pp_size": layout.pipeline,
            "dp_size": layout.data,
            "ep_size": layout.expert,
            "sp_size": layout.tensor if layout.sequence_parallel else 1,
        },
        training={
            "batch_size_per_gpu": layout.micro_batch,
            "gradient_accumulation_steps": layout.micro_batches,
            "seq_len": int(layout.seq_len),
            "mlp_gated_linear_units": model.gated,
            "softmax_dropout": bool(model.attention_dropout),
        },
        recompute=recompute,
        zero="NONE" if job.flat.get("parallel.data.sharding") in (None, "none") else "STAGE_1",
    )
    return float(answer["bytes"]) / GIB if answer["ok"] else str(answer["error"])


def test_ours_is_the_nearest(
    measurements: list[Row], megatron: OracleServer, deepspeed: OracleServer, llm_analysis: OracleServer
) -> None:
    with deepspeed.environment.serve("deepspeed_memory.py") as states:
        answers = [
            (
                row,
                (
                    row.ours_gib,
                    megatrons(megatron, row),
                    deepspeeds(states, row),
                    llm_analysis_says(llm_analysis, row),
                ),
            )
            for row in measurements
        ]
    print(f"{'measured':>9}" + "".join(f"{name:>22}" for name in NAMES), " GiB, allocated peak")
    for row, found in answers:
        print(f"{row.gib:9.2f}" + "".join(cell(value, row.gib) for value in found), "", row.name)
    errors: dict[str, list[float]] = {}
    for index, name in enumerate(NAMES):
        able = [(row, found[index]) for row, found in answers if isinstance(found[index], float)]
        errors[name] = [abs(value / row.gib - 1) for row, value in able if isinstance(value, float)]
        beside = [abs(row.ours_gib / row.gib - 1) for row, _ in able]
        print(
            f"{name}: {len(able)} of {len(answers)} rows, median error {median(errors[name]):.1%}, "
            f"worst {max(errors[name]):.1%}; ours on these rows {median(beside):.1%} and {max(beside):.1%}"
        )
        for reason in sorted({str(found[index]) for _, found in answers if isinstance(found[index], str)}):
            lacking = [row.name for row, found in answers if found[index] == reason]
            print(f"  not for {len(lacking)} rows: {reason[:160]} ({', '.join(sorted(set(lacking)))[:200]})")
        if name != "ours":
            assert len(able) >= 3, name
            assert median(beside) < median(errors[name]), name
            assert max(beside) < max(errors[name]), name
    assert len(errors["ours"]) == len(answers) >= 40
    assert all(median(errors["ours"]) < median(errors[name]) for name in NAMES[1:])


def cell(value: float | str, gib: float) -> str:
    return f"{value:13.2f} {value / gib - 1:+8.1%}" if isinstance(value, float) else f"{'-':>22}"
