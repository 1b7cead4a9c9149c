"""Our effective values against the real argument code of Megatron-LM core 0.18.0, option by option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from environments import OracleServer
from megatron_commands import COMMANDS, CONNECTED, REFUSED, UNCONNECTED, Command

from translator.catalogue import load
from translator.errors import SourceError
from translator.findings import Level, Place
from translator.frameworks.megatron.arguments import parse_arguments
from translator.frameworks.megatron.config_yaml import read_config
from translator.frameworks.megatron.settle import layers_per_stage, settle
from translator.native import ENVIRONMENT, WORLD_SIZE, Given, Native
from translator.shell import Word

pytestmark = pytest.mark.oracle
VERSION = "0.18.0"
NOWHERE = Place("command", 1, 1)

# The real namespace has these, ours has not: the rank of the process that asks, and whether a batch size was stated.
NOT_OURS = {"rank", "_is_global_batch_size_explicitly_specified"}
# `validate_args` deletes these once it has used them; ours keep the value that was parsed.
CONSUMED = {
    "batch_size",
    "warmup",
    "model_parallel_size",
    "checkpoint_activations",
    "recompute_activations",
    "cuda_graph_scope_deprecated",
    "enable_cuda_graph",
    "external_cuda_graph",
}
# What the functional tests' runner and recipes put into the environment; the files refer to it.
RUNNER = {
    name: f"/x/{name.lower()}"
    for name in (
        "DATA_PATH",
        "DATA_CACHE_PATH",
        "DATA_BLEND",
        "CHECKPOINT_SAVE_PATH",
        "CHECKPOINT_LOAD_PATH",
        "TENSORBOARD_PATH",
        "INFERENCE_OUTPUT_PATH",
        "WANDB_SAVE_PATH",
        "WANDB_EXPERIMENT",
        "OUTPUT_PATH",
    )
} | {"REPEAT": "1"}
WORLD_SIZES = (8, 64, 256, 4, 2, 1)


def ours(words: Sequence[str | Word], world_size: int, environment: Mapping[str, str]) -> Native:
    catalogue = load("megatron", VERSION)
    parsed = [word if isinstance(word, Word) else Word(word, NOWHERE) for word in words]
    given, unknown, findings = parse_arguments(parsed, catalogue)
    given[WORLD_SIZE] = Given(WORLD_SIZE, world_size, "--world-size")
    given[ENVIRONMENT] = Given(ENVIRONMENT, dict(environment), "environment")
    native = Native("megatron", VERSION, given, unknown, findings=findings)
    settle(native, catalogue)
    return native


def as_json(value: Any) -> Any:
    return [as_json(item) for item in value] if isinstance(value, list | tuple) else value


def differences(native: Native, real: Mapping[str, Any]) -> tuple[int, list[str]]:
    """How many options were compared, and which differ."""
    unlike = []
    compared = 0
    for address, value in real.items():
        if address in NOT_OURS:
            continue
        compared += 1
        own = as_json(native.values.get(address, "<no value>"))
        if own != value or type(own) is not type(value):
            unlike.append(f"{address}: ours {own!r}, real {value!r}")
    present = set(load("megatron", VERSION).addresses())
    for address in present - real.keys():
        conditional = all(entry.conditional for entry in load("megatron", VERSION).by_address(address))
        if not conditional and address not in CONSUMED:
            unlike.append(f"{address}: the real namespace has no such option")
    return compared, unlike


def config_differences(native: Native, real: Mapping[str, Any]) -> tuple[int, list[str]]:
    unlike = []
    fields = [name[7:] for name in native.values if name.startswith("config.") and name[7:] in real]
    fields.remove("activation_func")  # a function there, a name here
    for name in fields:
        own, value = as_json(native.values[f"config.{name}"]), real[name]
        if own != value:
            unlike.append(f"config.{name}: ours {own!r}, real {value!r}")
    return len(fields), unlike


def ask(server: OracleServer, question: str, command: Command) -> dict[str, Any]:
    return server.request(
        question,
        argv=command.words,
        world_size=command.world_size,
        assume_te=True,
        environment=dict(command.environment),
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_our_own_commands_settle_like_the_real_code(megatron: OracleServer, name: str) -> None:
    command = COMMANDS[name]
    answer = ask(megatron, "resolve", command)
    if not answer["ok"] and "multistorageclient" in answer["error"]:
        pytest.skip("needs the multi-storage client")
    assert answer["ok"], answer
    native = ours(command.words, command.world_size, command.environment)
    compared, unlike = differences(native, answer["args"])
    assert unlike == []
    assert compared > 700
    assert native.values["num_microbatches"] == answer["num_microbatches"]
    assert [finding for finding in native.findings if finding.level is Level.ERROR] == []


@pytest.mark.parametrize("name", [name for name in COMMANDS if not name.startswith("hybrid")])
def test_model_configuration_and_stages_are_the_real_ones(megatron: OracleServer, name: str) -> None:
    command = COMMANDS[name]
    native = ours(command.words, command.world_size, command.environment)
    config = ask(megatron, "config", command)
    if not config["ok"] and "multistorageclient" in config["error"]:
        pytest.skip("needs the multi-storage client")
    assert config["ok"], config
    compared, unlike = config_differences(native, config["config"])
    assert unlike == []
    assert compared > 10
    stages = ask(megatron, "stages", command)
    assert stages["ok"], stages
    assert layers_per_stage(native.values) == stages["layers"]
    assert sum(map(sum, stages["layers"])) == native.values["num_layers"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_real_code_refuses_is_a_finding(megatron: OracleServer, name: str) -> None:
    command, code = REFUSED[name]
    answer = ask(megatron, "resolve", command)
    assert not answer["ok"], "the real code accepts it"
    native = ours(command.words, command.world_size, command.environment)
    said = {finding.code: finding.level for finding in native.findings}
    assert code in said
    assert said[code] is not Level.NOTE


def without_foreign(words: Sequence[Word], native: Native) -> list[Word]:
    """The words that the plain parser takes: none that entry points add, none that need packages besides."""
    left = list(words)
    catalogue = load("megatron", VERSION)
    conditional = [
        option
        for address, option in native.given.items()
        if address in catalogue and catalogue.first(address).conditional
    ]
    for option in [*native.unknown, *conditional]:
        values = option.value if isinstance(option.value, list) else [option.value]
        texts = [option.written, *(str(value) for value in values if isinstance(value, str))]
        for start in range(len(left)):
            if [word.text for word in left[start : start + len(texts)]] == texts:
                del left[start : start + len(texts)]
                break
    return left


def corpus_commands(corpus: Path) -> dict[str, tuple[list[Word], int, dict[str, str]]]:
    """Every run of every ``model_config.yaml`` with options of Megatron-LM; the same run under two names once."""
    found: dict[str, tuple[list[Word], int, dict[str, str]]] = {}
    seen = set()
    for path in sorted((corpus / "megatron").rglob("model_config.yaml")):
        name = str(path.relative_to(corpus / "megatron"))
        try:
            reading = read_config(name, path.read_text(), RUNNER)
        except SourceError:
            continue
        for run in reading.runs:
            environment = {**around(run.words), **reading.environment}
            words = without_foreign(run.words, ours(run.words, 8, environment))
            if any(word.unknowns for word in words):
                continue
            identity = (tuple(word.text for word in words), tuple(sorted(environment.items())))
            if identity in seen:
                continue
            seen.add(identity)
            # The files do not say how many GPUs run them: the first number that fits.
            fitting = (size for size in WORLD_SIZES if not misfits(ours(words, size, environment)))
            found[f"{name} {run.name}"] = (words, next(fitting, WORLD_SIZES[0]), environment)
    return found


def around(words: Sequence[Word]) -> dict[str, str]:
    """What the environment must hold where a file does not say: the runner's default, and connections.

    Source: ``tests/functional_tests/shell_test_utils/_run_training.sh:43`` (core 0.18.0).
    """
    fsdp = {"--use-megatron-fsdp", "--use-torch-fsdp2"} & {word.text for word in words}
    return {"NCCL_ALGO": "Ring", **(UNCONNECTED if fsdp else CONNECTED)}


def misfits(native: Native) -> bool:
    return any(finding.code in ("S100", "S101") for finding in native.findings)


@pytest.mark.corpus
def test_corpus_settles_like_the_real_code(megatron: OracleServer, corpus: Path) -> None:
    compared = options = fields = splits = 0
    unlike: list[str] = []
    refused: list[str] = []
    for name, (words, world_size, environment) in corpus_commands(corpus).items():
        native = ours(words, world_size, environment)
        question = {
            "argv": [word.text for word in words],
            "world_size": world_size,
            "assume_te": True,
            "environment": environment,
        }
        answer = megatron.request("resolve", **question)
        if not answer["ok"]:
            refused.append(f"{name}: {answer['stage']}: {answer['error'][:300]}")
            said = any(finding.level is Level.ERROR for finding in native.findings)
            # Programs for inference set themselves what the parser of training misses, so no error is due there.
            said = said or "inference" in name
            # A package that is not installed here is no fault of the configuration.
            if not said and not answer["error"].startswith("ImportError"):
                unlike.append(f"{name}: the real code refuses it, ours does not: {answer['error']}")
            continue
        count, wrong = differences(native, answer["args"])
        compared, options = compared + 1, options + count
        config = megatron.request("config", **question)
        if config["ok"]:
            count, more = config_differences(native, config["config"])
            fields, wrong = fields + count, wrong + more
        if native.values["num_microbatches"] != answer["num_microbatches"]:
            wrong.append(f"num_microbatches: ours {native.values['num_microbatches']}")
        if native.values["hybrid_layer_pattern"] is None and native.values["pipeline_model_parallel_size"] > 1:
            stages = megatron.request("stages", **question)
            if stages["ok"]:
                splits += 1
                if layers_per_stage(native.values) != stages["layers"]:
                    wrong.append(f"stages: ours {layers_per_stage(native.values)}, real {stages['layers']}")
        unlike += [f"{name}: {line}" for line in wrong]
    summary = (
        f"{compared} configurations, {options} options, {fields} fields of the model configuration, "
        f"{splits} stage splits; {len(unlike)} mismatches; {len(refused)} refused by the real code"
    )
    print(summary, *refused, sep="\n")
    assert unlike == [], summary
    assert compared >= 150, summary
    assert options >= 110_000, summary
