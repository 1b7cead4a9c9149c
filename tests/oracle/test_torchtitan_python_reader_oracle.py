"""The real ConfigManager of 0.3.0 judges the reader: every function of the shipped registries, field by field.

Also what overrides of the command line do, and that reading what was written for a configuration gives it back.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from environments import OracleServer, environment

from translator.api import convert
from translator.api import read as api_read
from translator.catalogue import load
from translator.catalogue.classes import classes
from translator.findings import Level
from translator.frameworks.torchtitan import settle_python, shipped, syntax_python
from translator.native import Native
from translator.pyconfig import functions
from translator.reading import Reading, ReadOptions
from translator.resources import schema_path
from translator.source import Source

pytestmark = pytest.mark.oracle

VERSION = "0.3.0"
FAMILIES = ("llama3", "qwen3", "deepseek_v3", "gpt_oss", "kimi_k2_7", "qwen3_5", "muse_glimmer", "flux")
TITAN = environment(f"torchtitan-{VERSION}")
# What the settling fills in or takes away where the world size is not known.
SETTLED = ("parallelism.data_parallel_shard_degree", "training.global_batch_size")
ABSENT = "(absent)"
REFUSALS = ("R090", "R096", "R097", "R107", "R108")
# Packages whose registry names the model otherwise (models/kimi_k2_7/__init__.py).
SPEC_NAMES = {"kimi_k2_7": "kimi_k2_5"}


@pytest.fixture(scope="module")
def titan() -> Iterator[OracleServer]:
    if reason := TITAN.missing():
        pytest.skip(reason)
    with TITAN.serve() as server:
        yield server


def registry(family: str) -> Path:
    return TITAN.source / "torchtitan" / "models" / family / "config_registry.py"


def read(family: str, function: str, overrides: tuple[str, ...] = ()) -> Native:
    """The reader's own values for a function of an installed registry."""
    path = registry(family)
    text = path.read_text()
    source = Source(str(path), text, path.parent)
    native = syntax_python.read_source(
        str(path), text, function=function, overrides=overrides, read_sibling=source.read_sibling
    )
    settle_python.settle(native, load("torchtitan", VERSION))
    return native


def normal(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): normal(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [normal(item) for item in value]
    return value


def group_defaults(groups: Any) -> Any:
    """Parameter groups as the driver shows them."""
    return [{"class": "ParamGroupConfig", "optimizer_kwargs": {}, **group} for group in groups]


def differences(native: Native, real: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The fields that are not the real ones: ours, and the real value."""
    catalogue = load("torchtitan", VERSION)
    ours = {name: value for name, value in native.values.items() if not name.startswith(("@", "model_spec"))}
    for name in {*SETTLED, *native.derived} & set(catalogue.addresses()):
        ours[name] = native.given[name].value if name in native.given else catalogue.default(name)
    for given in native.unknown:
        ours[given.address] = given.value
    open_fields = {name for name, given in native.given.items() if given.missing is not None}
    if "optimizer.param_groups" not in open_fields:
        ours["optimizer.param_groups"] = group_defaults(ours["optimizer.param_groups"])
    found: dict[str, tuple[Any, Any]] = {}
    for name in sorted({*ours, *real} - open_fields):
        mine, wanted = normal(ours.get(name, ABSENT)), real.get(name, ABSENT)
        if isinstance(wanted, dict) and wanted.keys() == {"function"}:
            # By name; one that the class has by default is in the class data only.
            mine = wanted if mine == ABSENT or str(mine).endswith(f".{wanted['function']}") else mine
        if mine == ABSENT and name not in catalogue:
            continue  # a default of a class that is not one of Trainer.Config's
        if wanted == ABSENT and any(inner.startswith(f"{name}.") for inner in real):
            continue  # the name of a plain dataclass, whose fields are what counts
        if mine != wanted:
            found[name] = (mine, wanted)
    return found


def test_every_function_of_the_registries(titan: OracleServer, record_property: Any) -> None:
    counts = {"functions": 0, "fields": 0, "open": 0, "refused": 0}
    wrong: dict[str, Any] = {}
    for family in FAMILIES:
        path = registry(family)
        for item in functions(path.read_text(), str(path)):
            answer = titan.request("effective", module=f"torchtitan.models.{family}", config=item.name)
            if not answer["ok"]:
                counts["refused"] += 1
                print(f"{family}.{item.name}: refused by the real package: {str(answer['error'])[:120]}")
                continue
            native = read(family, item.name)
            found = differences(native, answer["values"])
            counts["functions"] += 1
            counts["fields"] += len(answer["values"])
            counts["open"] += sum(given.missing is not None for name, given in native.given.items() if name[0] != "@")
            if found:
                wrong[f"{family}.{item.name}"] = found
            check_model(native, answer)
    print(counts)
    for name, value in counts.items():
        record_property(name, value)
    assert not wrong
    assert counts["refused"] == 0
    assert counts["functions"] >= 68
    assert counts["fields"] >= 68 * 120
    assert counts["open"] <= 4  # the sharding of Muon, which functions of torchtitan's own make


def check_model(native: Native, answer: Mapping[str, Any]) -> None:
    """Name, flavor and size of the model, and every field of its converters."""
    model = answer["model"]
    name = native.values["model_spec.name"]
    assert SPEC_NAMES.get(str(name), name) == model["name"]
    assert native.values["model_spec.flavor"] == model["flavor"]
    if "@model.layers" in native.values:
        assert native.values["@model.layers"] == model["layers"]
        assert native.values["@model.hidden"] == model["dim"]
    facts = classes("torchtitan", VERSION)
    stated: Any = native.values.get("model_spec.converters") or []
    ours = []
    for item in stated:
        cls = facts.by_component(item["class"])
        ours.append({**{name: facts.default(cls, name) for name in facts.fields(cls)}, **item})
    assert normal(ours) == answer["converters"]


def written(reading: Reading) -> tuple[str, Reading]:
    """A spec as Python, without comments and the function's name, and what is read of that text alone."""
    done = convert(reading, f"torchtitan@{VERSION}")
    text = done.rendered.files[done.rendered.main]
    code = [line.split("  #")[0] for line in text.splitlines() if not line.startswith(("#", "def "))]
    return "\n".join(code), api_read(Source("written.py", text))


@pytest.mark.parametrize("family", ["llama3", "qwen3", "deepseek_v3", "gpt_oss"])
def test_python_to_spec_to_python_is_a_fixed_point(family: str) -> None:
    if reason := TITAN.missing():
        pytest.skip(reason)
    path = registry(family)
    text = path.read_text()
    known = functions(text, str(path))
    assert known
    for item in known:
        source = Source(str(path), text, path.parent, function=item.name)
        reading = api_read(source, options=ReadOptions(world_size=64))
        code, again = written(reading)
        assert again.flat == reading.flat, item.name
        assert written(again)[0] == code, item.name


def test_the_shipped_configurations_are_those_of_the_wheel() -> None:
    if reason := TITAN.missing():
        pytest.skip(reason)
    text = schema_path("torchtitan", f"configs-{VERSION}.json").read_text()
    assert shipped.generate(VERSION, TITAN.source) == text
    assert len(shipped.functions_of("llama3", VERSION)) == 14


ACCEPTED = [
    "--training.steps=5",
    "--training.steps 5 --training.steps 1_000",
    "--training.seq-len 4096",
    "--training.disable_cuda_graphs",
    "--training.disable-cuda-graphs --training.no-disable-cuda-graphs",
    "--training.no_disable_cuda_graphs",
    "--parallelism.no-enable-sequence-parallel",
    "activation-checkpoint:full",
    "activation-checkpoint:none",
    "activation-checkpoint:None",
    "activation-checkpoint:selective",
    "activation_checkpoint:full",
    "--compile.enable activation-checkpoint:memory-budget --activation-checkpoint.memory_budget=0.3",
    "activation-checkpoint:full --activation-checkpoint.debug",
    "activation-checkpoint:selective --activation_checkpoint.force_recompute_mm_shapes_by_fqns a,b",
    "--compile.components model,loss",
    "--compile.components=model",
    "--lr_scheduler.decay_ratio 0.5",
    "--lr_scheduler.decay_ratio None",
    "--lr-scheduler.decay-type cosine",
    "--training.max_norm 2",
    "--loss.num_chunks 4 --loss.loss_fn.global_vocab_size 5",
    "--optimizer.implementation foreach",
    "--optimizer.param_groups.0.optimizer_kwargs.lr 3",
    "--optimizer.param_groups.0.optimizer_kwargs.lr=3e-5 --optimizer.param-groups.0.pattern x",
    "--optimizer.param_groups.0.optimizer_kwargs.betas 0.8 0.9",
    "--dataloader.dataset x --dataloader.dataset_path None",
    "--hf_assets_path /x",
    "--hf-assets-path=/x",
    "--validator.dataloader.dataset x --validator.enable",
    "--checkpoint.enable --checkpoint.interval 7 --checkpoint.exclude_from_loading a,b",
    "--parallelism.module_fqns_per_model_part a,b c,d",
    "--parallelism.module_fqns_per_model_part a,b",
    "--override.imports a.b 'c.d={\"x\":1}'",
    "--debug.seed 3",
    "--profiler.profiler_repeat None",
    "--training.steps -5",
    "--comm.mode fake_backend",
    "--training.dtype=bfloat16",
    "--training.enable_cpu_offload --training.steps 3",
    "--metrics.save_tb_folder ''",
]
REFUSED = [
    "--no-training.disable_cuda_graphs",
    "--training.disable_cuda_graphs=True",
    "--training.disable_cuda_graphs True",
    "activation-checkpoint:full-ac",
    "activation-checkpoint:memory-budget --activation-checkpoint.memory-budget 0.3 --compile.enable",
    "--activation-checkpoint.debug",
    "--activation_checkpoint.memory_budget 0.5",
    "--compile.components model loss",
    "--lr_scheduler.decay_type exp",
    "--training.steps 1e3",
    "--training.steps",
    "--optimizer.param_groups []",
    "--optimizer.lr 3",
    "--optimizer.param_groups.4.pattern x",
    "--optimizer.param_groups.0.optimizer_kwargs.nesterov True",
    "--model_spec.flavor 8B",
    "--training.stps 5",
    "loss:cross-entropy",
    "dataloader:chat",
    "--training.seq_len 5 activation-checkpoint:full --training.steps 3",
    "--training.dtype bf16",
    "--Training.steps 5",
    "steps",
    "--dataloader.seed 3",
]


@pytest.mark.parametrize("words", ACCEPTED)
def test_an_override_means_what_tyro_makes_of_it(titan: OracleServer, words: str) -> None:
    overrides = tuple(shlex.split(words))
    answer = titan.request(
        "effective", module="torchtitan.models.llama3", config="llama3_debugmodel", overrides=list(overrides)
    )
    assert answer["ok"], answer
    native = read("llama3", "llama3_debugmodel", overrides)
    assert not [finding for finding in native.findings if finding.code in REFUSALS]
    assert not differences(native, answer["values"])


@pytest.mark.parametrize("words", REFUSED)
def test_an_override_that_tyro_refuses_is_an_error(titan: OracleServer, words: str) -> None:
    overrides = tuple(shlex.split(words))
    answer = titan.request(
        "effective", module="torchtitan.models.llama3", config="llama3_debugmodel", overrides=list(overrides)
    )
    assert not answer["ok"]
    native = read("llama3", "llama3_debugmodel", overrides)
    assert [item for item in native.findings if item.code in REFUSALS and item.level is Level.ERROR]
