"""Every GPT configuration of the corpus, converted and handed to the real torchtitan 0.2.2.

torchtitan itself judges: its ConfigManager, ParallelDims with meshes, the split into stages, the schedule, and the
model on the meta device. The files do not say how many GPUs run them: the first number that fits Megatron-LM is taken.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from environments import OracleServer

from translator import api
from translator.conversion import Conversion
from translator.errors import SourceError
from translator.findings import Level
from translator.reading import ReadOptions

pytestmark = [pytest.mark.oracle, pytest.mark.corpus]
FOLDERS = ("gpt", "gpt-nemo", "mixtral", "moe")
WORLD_SIZES = (8, 64, 256, 1024, 4, 2, 1)
LLAMA3_VOCABULARY = 128256
# What the functional tests' runner puts into the environment.
RUNNER = dict.fromkeys(
    (
        "CHECKPOINT_LOAD_PATH",
        "CHECKPOINT_SAVE_PATH",
        "DATA_BLEND",
        "DATA_CACHE_PATH",
        "DATA_PATH",
        "OUTPUT_PATH",
        "TENSORBOARD_PATH",
        "WANDB_EXPERIMENT",
        "WANDB_SAVE_PATH",
    ),
    "/x",
)


def converted(path: Path) -> Conversion | None:
    """The conversion at the first world size at which Megatron-LM runs it; None for what is no training of it."""
    for world_size in WORLD_SIZES:
        options = ReadOptions(world_size=world_size, variables=RUNNER)
        try:
            reading = api.read(str(path), framework="megatron@0.18.0", options=options)
        except SourceError:
            return None
        assert reading.native is not None
        if not {"train_iters", "train_samples"} & reading.native.given.keys():
            return None
        if not any(finding.level is Level.ERROR for finding in reading.findings):
            return api.convert(reading, "torchtitan@0.2.2")
    return None


def judged(titan: OracleServer, conversion: Conversion, folder: Path) -> list[str]:
    """What the real torchtitan makes of it: refusals, and values that are not the source's."""
    for name, text in conversion.rendered.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    asked: dict[str, Any] = {"text": conversion.rendered.files["train.toml"], "path": [str(folder)]}
    flat = conversion.source.flat
    world_size = flat["parallel.world_size"]
    answers = {
        "resolve": titan.request("resolve", **asked),
        "dims": titan.request("dims", world_size=world_size, **asked),
        "nparams": titan.request("nparams", vocab_size=LLAMA3_VOCABULARY, **asked),
        "lr": titan.request("lr", steps=3, **asked),
    }
    if flat["parallel.pipeline.degree"] > 1:
        answers["stages"] = titan.request("stages", world_size=world_size, **asked)
    wrong = [f"{name}: {answer['stage']}: {answer['error']}" for name, answer in answers.items() if not answer["ok"]]
    if wrong:
        return wrong
    dims = answers["dims"]
    steps = dims["batch"]["gradient_accumulation_steps"] * answers.get("stages", {}).get("n_microbatches", 1)
    found = {
        "parallel.tensor": dims["dims"]["tp"],
        "parallel.context": dims["dims"]["cp"],
        "parallel.pipeline.degree": dims["dims"]["pp"],
        "parallel.expert": dims["dims"]["ep"],
        "parallel.data.degree": dims["batch"]["data_parallel"],
        "batch.global_batch": dims["batch"]["global_batch_size"],
        "batch.accumulation": steps,
    }
    if "stages" in answers:
        found["parallel.pipeline.layer_split"] = [len(stage) for stage in answers["stages"]["layers"]]
    # A batch that grows is no number; the conversion asks for one.
    asked_for = {leaf for leaf in ("batch.global_batch", "batch.accumulation") if flat["batch.steps"]}
    wrong = [
        f"{leaf}: {flat[leaf]} became {value}"
        for leaf, value in found.items()
        if flat[leaf] != value and leaf not in asked_for
    ]
    if flat["batch.seq_len"] % dims["seq_len_divisor"]:
        wrong.append("sequence length")
    return wrong


def test_corpus_is_accepted(torchtitan_022: OracleServer, corpus: Path, tmp_path: Path) -> None:
    judgements: dict[str, list[str]] = {}
    files = sorted(path for folder in FOLDERS for path in (corpus / "megatron" / folder).rglob("model_config.yaml"))
    for number, path in enumerate(files):
        conversion = converted(path)
        if conversion is None:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        wrong = judged(torchtitan_022, conversion, folder)
        wrong += [finding.message for finding in conversion.findings if finding.code == "L290"]
        judgements[path.parent.name] = wrong
    summary = f"{sum(not wrong for wrong in judgements.values())} of {len(judgements)} accepted as meant"
    print(summary)
    assert not any(judgements.values()), {name: wrong for name, wrong in judgements.items() if wrong}
    assert len(judgements) >= 130, summary
