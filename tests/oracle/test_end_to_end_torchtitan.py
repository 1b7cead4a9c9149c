"""What ttx writes for torchtitan, judged by the real torchtitan 0.2.2 and 0.1.0, example by example."""

from __future__ import annotations

import math
import posixpath
from pathlib import Path
from typing import Any

import pytest
from environments import OracleServer
from example_cases import Case, cases
from parameter_count import parameter_count

from translator.compare import equal
from translator.conversion import Conversion
from translator.ledger import Entry
from translator.native import Origin
from translator.schedules import curve_of

pytestmark = pytest.mark.oracle

NEW = [case for case in cases() if case.target == "torchtitan@0.2.2"]
OLD = [case for case in cases() if case.target == "torchtitan@0.1.0"]
DEGREES = {
    "tp": "parallel.tensor",
    "cp": "parallel.context",
    "pp": "parallel.pipeline.degree",
    "ep": "parallel.expert",
}
SAME = {
    "training.seq_len": "batch.seq_len",
    "training.global_batch_size": "batch.global_batch",
    "optimizer.lr": "optimizer.lr",
    "optimizer.beta1": "optimizer.beta1",
    "optimizer.beta2": "optimizer.beta2",
    "optimizer.eps": "optimizer.eps",
    "optimizer.weight_decay": "optimizer.weight_decay",
}
LLAMA3_VOCABULARY = 128256
FORMATS = {"bf16": "bfloat16", "fp32": "float32", "fp16": "bfloat16"}


@pytest.fixture(params=[*NEW, *OLD], ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture
def titan(case: Case, request: pytest.FixtureRequest) -> OracleServer:
    """The real torchtitan of the case's version."""
    name = "torchtitan_022" if case in NEW else "torchtitan_010"
    server: OracleServer = request.getfixturevalue(name)
    return server


@pytest.fixture
def asked(case: Case, tmp_path: Path) -> dict[str, Any]:
    """The parameters of every question: the written text, and the folder of the module beside it."""
    files = case.convert().rendered.files
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {"text": files["train.toml"], "path": [str(tmp_path)]}


def answered(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["ok"], answer
    return answer


def meant(conversion: Conversion, leaf: str) -> Any:
    """What the source means, or what the result says where the ledger admits that it cannot say that."""
    wanted, found = conversion.source.flat[leaf], conversion.back.flat[leaf]
    told = [line for line in conversion.ledger if line.entry.is_loss and leaf in line.fields]
    lost = leaf in conversion.sink.shortfalls and conversion.sink.shortfalls[leaf].entry.is_loss
    return found if wanted is None or (told and lost and not equal(wanted, found)) else wanted


def option(config: dict[str, Any], address: str) -> Any:
    for part in address.split("."):
        config = config[part]
    return config


def world_size(case: Case) -> int:
    return int(case.convert().source.flat["parallel.world_size"])


def test_values(case: Case, titan: OracleServer, asked: dict[str, Any]) -> None:
    """The real configuration holds the numbers of the source."""
    reading = case.convert().source
    source = reading.flat
    config = answered(titan.request("resolve", **asked))["config"]
    for address, leaf in SAME.items():
        if source[leaf] is not None:
            assert math.isclose(option(config, address), source[leaf], rel_tol=1e-12), address
    clip = option(config, "training.max_norm")
    assert clip >= 1e9 if source["optimizer.clip_grad_norm"] == 0 else clip == source["optimizer.clip_grad_norm"]
    assert option(config, "training.mixed_precision_param") == FORMATS[source["precision.compute"]]
    assert option(config, "training.mixed_precision_reduce") == "float32"
    assert option(config, "debug.seed" if case in NEW else "training.seed") == source["data.seed"]
    saves = source["checkpoint.save"] is not None
    # A source that saves to a folder that its files do not tell is written to save as well.
    enabled = saves or reading.origins["checkpoint.save"].origin is Origin.UNKNOWN
    assert option(config, "checkpoint.enable" if case in NEW else "checkpoint.enable_checkpoint") == enabled
    if saves:
        # torchtitan puts the folder into its dump folder, unless it is absolute.
        folder = posixpath.join(option(config, "job.dump_folder"), option(config, "checkpoint.folder"))
        assert posixpath.normpath(folder) == posixpath.normpath(source["checkpoint.save"])
        assert option(config, "checkpoint.interval") == source["checkpoint.interval"]
    check_recomputation(source, option(config, "activation_checkpoint"))


def check_recomputation(source: dict[str, Any], found: dict[str, Any]) -> None:
    """Full recomputation stays full, a share of the layers stays that share, none stays none."""
    mode = source["recompute.mode"]
    if mode == "full" and source["recompute.method"] == "uniform":
        assert found["mode"] == "full"
    elif mode == "full":
        stages = source["parallel.pipeline.degree"] * source["parallel.pipeline.stages_per_rank"]
        every = round(source["model.layers"] / stages / source["recompute.layers"])
        assert (found["mode"], found["selective_ac_option"]) == ("selective", str(every))
    elif mode == "none" or source["recompute.modules"] == ["core_attn"]:
        assert found["mode"] == "none"
    else:
        assert found["mode"] == "selective"


def test_layout(case: Case, titan: OracleServer, asked: dict[str, Any]) -> None:
    """The real ParallelDims builds its meshes at the world size, with the degrees and the batch of the source."""
    conversion = case.convert()
    source = conversion.source.flat
    found = answered(titan.request("dims", world_size=world_size(case), **asked))
    for name, leaf in DEGREES.items():
        if name in found["dims"]:
            assert found["dims"][name] == meant(conversion, leaf), leaf
    assert found["batch"]["data_parallel"] == source["parallel.data.degree"]
    assert found["batch"]["divisible"]
    assert found["batch"]["global_batch_size"] == source["batch.global_batch"]
    assert source["batch.seq_len"] % (found["seq_len_divisor"] or 1) == 0
    steps = found["batch"]["gradient_accumulation_steps"]
    config = answered(titan.request("resolve", **asked))["config"]
    if source["parallel.pipeline.degree"] > 1:
        micro = option(config, "parallelism.pipeline_parallel_microbatch_size")
        steps *= answered(titan.request("stages", world_size=world_size(case), **asked))["n_microbatches"]
    else:
        micro = option(config, "training.local_batch_size")
    assert micro == source["batch.micro_batch"]
    assert steps == source["batch.accumulation"]


def test_stages(case: Case, titan: OracleServer, asked: dict[str, Any]) -> None:
    """Every pipeline stage has the layers that the source gives it."""
    conversion = case.convert()
    source = conversion.source.flat
    if source["parallel.pipeline.degree"] == 1:
        pytest.skip("no pipeline")
    found = answered(titan.request("stages", world_size=world_size(case), **asked))
    layers = found["layers"]
    assert [number for stage in layers for number in stage] == list(range(source["model.layers"]))
    assert [len(stage) for stage in layers] == source["parallel.pipeline.layer_split"]
    assert len(layers) == source["parallel.pipeline.degree"] * source["parallel.pipeline.stages_per_rank"]


def test_learning_rate(case: Case, titan: OracleServer, asked: dict[str, Any]) -> None:
    """Every step runs at the rate that we say, and is as far from the source's as the ledger says."""
    conversion = case.convert()
    read, meant = curve_of(conversion.back.flat), curve_of(conversion.source.flat)
    assert read is not None
    assert meant is not None
    rates = answered(titan.request("lr", timeout=300, **asked))["lr"]
    assert len(rates) == meant.total
    for step, rate in enumerate(rates):
        assert math.isclose(rate, read.rate(step), rel_tol=1e-9, abs_tol=1e-12 * read.peak), step
    furthest = max(abs(rate - meant.rate(step)) for step, rate in enumerate(rates))
    percent = 100 * furthest / meant.peak
    notes = {
        line.note
        for line in conversion.ledger
        if line.entry.is_loss and any(leaf.startswith("schedule.") for leaf in line.fields)
    }
    if percent < 1e-6:
        assert not notes
    else:
        assert notes
        assert all(f"{percent:.3g} % of the peak" in note for note in notes), (percent, notes)


def test_parameters(case: Case, titan: OracleServer, asked: dict[str, Any]) -> None:
    """The real model has as many parameters as the dimensions of the source make."""
    conversion = case.convert()
    model = {leaf: meant(conversion, leaf) for leaf in conversion.source.flat if leaf.startswith("model.")}
    model["model.vocab"] = model["model.vocab"] or LLAMA3_VOCABULARY
    found = answered(titan.request("nparams", vocab_size=model["model.vocab"], **asked))
    assert found["total"] == parameter_count(model)


def test_sharding(case: Case, titan: OracleServer, asked: dict[str, Any]) -> None:
    """The real parallelize function shards the model over the ranks, without holding more than a rank's share."""
    flat = case.convert().source.flat
    if flat["parallel.pipeline.degree"] > 1 or case in OLD:
        pytest.skip("parallelize takes whole models")
    overrides = ["--model.converters", "", "--compile.no-enable"]
    vocab = flat["model.vocab"] or LLAMA3_VOCABULARY
    found = answered(
        titan.request("parallelize", world_size=world_size(case), vocab_size=vocab, overrides=overrides, **asked)
    )
    whole = answered(titan.request("nparams", vocab_size=vocab, **asked))["total"]
    back = case.convert().back.flat
    ranks = back["parallel.data.shard"] * back["parallel.context"] * back["parallel.tensor"]
    assert whole / ranks <= found["local_total"] <= 1.1 * whole / ranks


def test_enough_is_judged() -> None:
    """At least twelve varied sources reach 0.2.2, four 0.1.0, and each kind that matters is among them."""
    assert len(NEW) >= 12
    assert len(OLD) >= 4
    spread = [case.convert().source.flat for case in NEW]
    for leaf in ("parallel.tensor", "parallel.context", "parallel.expert", "parallel.pipeline.degree"):
        assert any((flat[leaf] or 1) > 1 for flat in spread), leaf
    assert any((flat["parallel.pipeline.stages_per_rank"] or 1) > 1 for flat in spread)
    assert any(flat["model.mla.enabled"] for flat in spread)
    assert {flat["recompute.mode"] for flat in spread} == {"none", "selective", "full"}
    assert len({flat["precision.fp8_recipe"] for flat in spread}) >= 4
    assert any(Entry.UNSUPPORTED in {line.entry for line in case.convert().ledger} for case in NEW)
