"""From a launch script to the options that script and JSON give."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from translator.environment import is_secret, travels
from translator.findings import Finding, Level
from translator.frameworks.deepspeed import syntax
from translator.frameworks.deepspeed.megatron_fork import forks
from translator.native import ENVIRONMENT, Given, Missing, Native

if TYPE_CHECKING:
    from translator.shell import Launch, ScriptReading, Word

LOOKED_AT = 400_000
LEAST = 3
_ENGINE_FLAGS = frozenset({"--deepspeed", "--deepspeed_config"})
_ENGINE = re.compile(r"^[^#\n]*--deepspeed(?:_config)?(?![\w-])", re.MULTILINE)
# Megatron-LM's names that no Hugging Face trainer has.
_ARGUMENT = re.compile(
    r"(?<![\w-])--(?:num-layers|hidden-size|num-attention-heads|seq-length|max-position-embeddings|micro-batch-size|"
    r"global-batch-size|tensor-model-parallel-size|pipeline-model-parallel-size|train-iters|train-samples|"
    r"lr-decay-style|tokenizer-type|no-pipeline-parallel|zero-stage|ds-sequence-parallel-size)(?![\w-])"
)
_SUFFIXES = (".sh", ".bash", ".slurm", ".sbatch", ".args", ".txt")


def sniff(path: str, text: str) -> bool:
    """Whether a text looks like a script of a fork: DeepSpeed's flag beside several of Megatron-LM's arguments."""
    name = path.rsplit("/", 1)[-1]
    if (
        "." in name
        and not name.endswith(_SUFFIXES)
        and name.rsplit(".", 1)[-1] in {"yml", "yaml", "json", "toml", "py"}
    ):
        return False
    head = text[:LOOKED_AT]
    return "--deepspeed" in head and len(set(_ARGUMENT.findall(head))) >= LEAST and _ENGINE.search(head) is not None


def read(path: str, text: str, version: str, world_size: int | None, inputs: syntax.Inputs) -> Native | None:
    """A script's arguments and the JSON that it names; None when nothing in it starts a fork with DeepSpeed."""
    from translator.frameworks import launchers
    from translator.shell import evaluate

    native = Native(syntax.FRAMEWORK, version)
    inputs.script = text
    reading = evaluate(
        text,
        path,
        positional=inputs.positional,
        variables=inputs.variables,
        read_sibling=inputs.read_sibling,
        launchers=launchers(),
    )
    scored = [(launch, _score(launch)) for launch in reading.launches]
    scored = [(launch, score) for launch, score in scored if score >= LEAST]
    # A launch that the script's flag does not reach is said to be one.
    scored = [(launch, score) for launch, score in scored if _ENGINE_FLAGS & set(_flags(launch))] or scored
    if not scored:
        return None
    native.findings.extend(reading.findings)
    launch = syntax.pick([item for item, _ in scored], [score for _, score in scored], native, inputs.launch)
    syntax.read_facts(launch, native)
    _environment(launch, native)
    _arguments(launch.argv, native)
    _config(reading, native, inputs)
    syntax.read_sizes(native, text, world_size)
    return native


def _flags(launch: Launch) -> list[str]:
    return [word.text.split("=", 1)[0] for word in launch.argv if word.text.startswith("--")]


def _score(launch: Launch) -> int:
    """How many arguments a launch has; 0 where too few of them are Megatron-LM's."""
    flags = _flags(launch)
    named = sum(_ARGUMENT.fullmatch(flag) is not None for flag in flags)
    return len(flags) if named >= LEAST else 0


def _environment(launch: Launch, native: Native) -> None:
    known = {
        name: word.text
        for name, word in launch.env.items()
        if not word.unknowns and travels(name) and not is_secret(name)
    }
    if known:
        native.given[ENVIRONMENT] = Given(ENVIRONMENT, known, "environment", launch.place)


def _arguments(words: Sequence[Word], native: Native) -> None:
    from translator.frameworks.megatron.arguments import parse_arguments

    flags = [word.text.split("=", 1)[0] for word in words if word.text.startswith("--")]
    fork = forks.choose(flags)
    catalogue = forks.catalogue(fork)
    given, unknown, findings = parse_arguments(words, catalogue)
    native.values[forks.FORK] = fork
    native.given |= {
        forks.address(dest): Given(forks.address(dest), item.value, item.written, item.place)
        for dest, item in given.items()
    }
    native.unknown += unknown
    for finding in findings:
        strange = finding.code in {"R010", "R011", "R012", "R013", "R014"} and finding.option
        native.findings.append(_stranger(finding, fork) if strange else finding)
    message = f"read as a script of {forks.FORKS[fork]}: its arguments, and the JSON for what DeepSpeed does"
    native.findings.append(Finding("R152", Level.NOTE, message, "", words[0].place if words else None))


def _stranger(finding: Finding, fork: str) -> Finding:
    """What is said about an argument that the fork lacks."""
    from translator.catalogue.model import nearest

    flag = str(finding.option)
    other = next(name for name in forks.FORKS if name != fork)
    if forks.catalogue(other).by_flag(flag) is not None:
        message, fix = f"{forks.FORKS[fork]} has no {flag}, which {forks.FORKS[other]} has", "drop it, or the others"
    else:
        near = nearest(flag, forks.catalogue(fork))
        message = f"{forks.FORKS[fork]} has no {flag}; the script needs a changed copy"
        fix = f"nearest: {', '.join(near)}" if near else ""
    return Finding("R143", Level.WARNING, message, fix, finding.place, flag)


def _config(reading: ScriptReading, native: Native, inputs: syntax.Inputs) -> None:
    """The JSON that the script names: written by it, or beside it; else it stays open."""
    address = forks.address("deepspeed_config")
    stated = native.given.get(address)
    if stated is None:
        missing = Missing("--deepspeed_config", "the script names no JSON", "add --deepspeed_config FILE")
        native.given[address] = Given(address, missing, "--deepspeed_config")
        if forks.address("deepspeed") not in native.given:
            return
        message = "--deepspeed without --deepspeed_config: DeepSpeed stops without a JSON"
        native.findings.append(Finding("R144", Level.ERROR, message, missing.supply, None, "--deepspeed"))
        return
    written = reading.heredocs
    if stated.missing is not None:
        name = stated.missing.expression.removeprefix(f"{stated.written}=")
        same = [item for item in written if item.path.text == name]
        if same:
            native.given[address] = Given(address, name, stated.written, stated.place)
            syntax.read_written(same[-1], native, inputs)
            return
        last = name.rpartition("/")[2]
        if stated.place is not None and not set("$`()") & set(last) and inputs.sibling(last) is not None:
            # Only the folder is not known, and a file of this name lies beside the script.
            native.given[address] = Given(address, name, stated.written, stated.place)
            syntax.read_named(last, native, inputs, stated.place)
            return
        message = f"the name of the JSON is not known ({stated.missing.expression}: {stated.missing.reason})"
        finding = Finding("R144", Level.ERROR, message, stated.missing.supply, stated.place, stated.written)
        native.findings.append(finding)
        return
    before = len(native.findings)
    assert stated.place is not None
    syntax.read_named(str(stated.value), native, inputs, stated.place, written[::-1])
    if any(finding.code == "R144" for finding in native.findings[before:]):
        missing = Missing(str(stated.value), "it is not beside the script", f"put {stated.value} beside it")
        native.given[address] = Given(address, missing, stated.written, stated.place)
