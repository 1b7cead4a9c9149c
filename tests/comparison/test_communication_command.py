"""``ttx communication``, and the account of every shipped example."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from jobs import job

from translator import api, frameworks
from translator.cli import main
from translator.cli.memory import seen_as
from translator.communication import communication_of, network
from translator.communication.account import communication_of_reading
from translator.reading import ReadOptions

EXAMPLES = Path(__file__).resolve().parents[2] / "fixtures" / "examples"
DENSE = str(EXAMPLES / "llama3-70b-megatron" / "pretrain.sbatch")
EIGHT = str(EXAMPLES / "llama3-8b-torchtitan" / "llama3_8b_fp8.toml")
# What examples leave open.
OPEN = {
    "gpt2-pretraining-deepspeed": {"batch.seq_len": 1024},
    "llama2-7b-zero3-deepspeed": {"batch.seq_len": 4096},
    "llama-7b-fork-deepspeed": {"model.vocab": 32000},
    "llama3-8b-old-torchtitan": {"model.vocab": 128256},
}
CASES = sorted(path.parent.name for path in EXAMPLES.glob("*/case.yaml"))


@pytest.mark.parametrize("target", frameworks.BUILT_IN)
@pytest.mark.parametrize("name", CASES)
def test_every_example_has_an_account_under_every_framework(name: str, target: str) -> None:
    import yaml

    stated = yaml.safe_load((EXAMPLES / name / "case.yaml").read_text(encoding="utf-8"))
    options = ReadOptions(
        variables=stated.get("set", {}),
        positional=tuple(stated.get("positional", ())),
        world_size=stated.get("world_size") or 512,
        overrides={**stated.get("fields", {}), **OPEN.get(name, {})},
        model=stated.get("model"),
    )
    reading = api.read(str(EXAMPLES / name / stated["source"]), framework=stated["framework"], options=options)
    seen = reading if reading.framework == target else seen_as(reading, target)
    found = communication_of_reading(seen, network())
    assert found.lines
    for line in found.lines:
        values = [*line.calls, *line.sent_bytes, *line.crossing_bytes, *line.seconds]
        assert all(math.isfinite(value) and value >= 0 for value in values), line
        assert len(line.seconds) == found.stages
        assert max(line.sent_bytes) > 0
        assert 1 <= line.nodes <= line.ranks
    assert 0 <= found.seconds(overlapped=False) <= found.seconds() < 3600


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["communication", DENSE]) == 0
    out = capsys.readouterr().out
    assert "Megatron-LM 0.18.0, one optimizer step, NVLink 4" in out
    # 80 layers on 4 stages, 128 micro batches, 2 sublayers, 1 + 2 and full recomputation's 1 more
    assert "inputs of column-parallel layers" in out
    assert f"{20 * 128 * 2 * 4:,}" in out
    assert "gradients*" in out


def test_json_is_by_stage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["communication", DENSE, "--format", "json", "--network", "nvlink3+infiniband-hdr"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["network"] == {"inside": "nvlink3", "between": "infiniband-hdr"}
    assert {len(one["sent_bytes"]) for one in document["transfers"]} == {4}
    sends = next(one for one in document["transfers"] if one["axis"] == "pipeline")
    assert sends["calls"] == [7 * 128, 8 * 128, 8 * 128, 7 * 128]  # four chunks, both ways
    total = [sum(one["seconds"][stage] for one in document["transfers"]) for stage in range(4)]
    assert document["seconds"] == pytest.approx(max(total))


def test_a_slower_network_takes_longer(capsys: pytest.CaptureFixture[str]) -> None:
    taken = []
    for name in ("dgx-b200", "dgx-h100", "dgx-a100", "pcie4-hdr"):
        assert main(["communication", DENSE, "--network", name, "--format", "json"]) == 0
        taken.append(json.loads(capsys.readouterr().out)["seconds"])
    assert taken == sorted(taken)
    assert len(set(taken)) == 4


def test_smaller_nodes_make_tensor_groups_cross(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["communication", DENSE, "--gpus-per-node", "4", "--format", "json"]) == 0
    tensor = [one for one in json.loads(capsys.readouterr().out)["transfers"] if one["axis"] == "tensor"]
    assert {(one["ranks"], one["nodes"]) for one in tensor} == {(8, 2)}


def test_another_framework_moves_other_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["communication", DENSE, "--as", "torchtitan", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["framework"], document["version"]) == ("torchtitan", "0.2.2")
    names = {one["name"] for one in document["transfers"]}
    assert "inputs of attention and feed-forward" in names


def test_what_was_assumed_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["communication", EIGHT, "--world-size", "64"]) == 0
    assert "Assumed: 8 GPUs on each node." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([EIGHT], "communication cannot be estimated"),
        ([DENSE, "--network", "token-ring"], "no network called 'token-ring'"),
        ([DENSE, "--network", "nvlnk4+pcie4"], "no link called 'nvlnk4' (known: nvlink4"),
        ([DENSE, "--gpus-per-node", "0"], "--gpus-per-node must be"),
        ([DENSE, "--algorithm", "star"], "invalid choice"),
        (["no-such-file.sh"], "no-such-file.sh"),
    ],
)
def test_what_cannot_be_told_is_said_in_a_line(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert main(["communication", *words]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_a_spec_has_to_be_seen_as_something(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    assert main(["parse", DENSE, "-o", str(spec)]) == 0
    assert main(["communication", str(spec)]) == 2
    assert "--as FRAMEWORK" in capsys.readouterr().err
    assert main(["communication", str(spec), "--as", "megatron"]) == 0


@pytest.mark.parametrize("framework", frameworks.BUILT_IN)
def test_ten_thousand_layouts_take_a_moment(framework: str) -> None:
    count = 10_000
    random = np.random.default_rng(7)
    degrees = {name: 2 ** random.integers(0, 4, count) for name in ("tensor", "pipeline", "shard", "context")}
    version = frameworks.get(framework).default_version
    many = job(framework, version, model__layers=16, batch__accumulation=8).with_layouts(**degrees)
    before = time.perf_counter()
    found = communication_of(many)
    seconds = sum(float(np.max(transfer.seconds(network(), "fastest"))) for transfer in found)
    assert seconds > 0
    assert time.perf_counter() - before < 5
