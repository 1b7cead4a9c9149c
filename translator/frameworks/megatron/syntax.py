"""Reading Megatron-LM configurations: launch scripts, plain argument text, ``model_config.yaml``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from translator.catalogue.model import Catalogue, load
from translator.environment import is_secret, travels
from translator.errors import SourceError, UsageError
from translator.findings import Finding, Level, Place
from translator.frameworks.megatron.arguments import FRAMEWORK, missing_value, parse_arguments
from translator.native import ENVIRONMENT, GPUS_PER_NODE, NODES, PROGRAM, WORLD_SIZE, Given, Missing, Native, fit_nodes

if TYPE_CHECKING:
    from translator.shell.values import Launch, ScriptReading, Word

ENTRY_POINT = re.compile(r"(?:pretrain|train|finetune|run|sft)\w*\.py$")
# Options that only Megatron-LM and its forks spell like this; three of them and the text is theirs.
TELLTALE = frozenset(
    f"--{name}"
    for name in [
        "num-layers",
        "hidden-size",
        "num-attention-heads",
        "seq-length",
        "max-position-embeddings",
        "micro-batch-size",
        "global-batch-size",
        "tensor-model-parallel-size",
        "pipeline-model-parallel-size",
        "context-parallel-size",
        "expert-model-parallel-size",
        "train-iters",
        "train-samples",
        "lr-decay-style",
        "lr-warmup-iters",
        "lr-decay-iters",
        "use-distributed-optimizer",
        "swiglu",
        "untie-embeddings-and-output-weights",
        "disable-bias-linear",
        "group-query-attention",
        "num-query-groups",
        "use-mcore-models",
        "transformer-impl",
        "num-experts",
        "moe-router-topk",
        "tokenizer-type",
        "make-vocab-size-divisible-by",
    ]
)
# What the ledger calls facts of the launch, whose spelling depends on the launcher.
_LABELS = {NODES: "nodes", GPUS_PER_NODE: "GPUs per node", PROGRAM: "program"}
_KINDS = {
    "bert": "an encoder (BERT)",
    "t5": "an encoder-decoder (T5)",
    "ict": "a retriever",
    "biencoder": "a retriever",
    "retro": "a retrieval-enhanced model",
    "vlm": "a vision-language model",
    "multimodal": "a vision-language model",
    "llava": "a vision-language model",
    "vision": "a vision model",
    "vit": "a vision model",
    "dino": "a vision model",
}
_OF_A_NODE = re.compile(r"(?:NODE_|GROUP_|LOCAL_)?RANK|MASTER_ADDR|MASTER_PORT|HOSTNAME|I|J|NODE|HOST", re.IGNORECASE)
SNIFFED_CHARACTERS = 400_000
LEAST_OPTIONS = 3
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
_YAML_OPTIONS = re.compile(r"^MODEL_ARGS\s*:", re.MULTILINE)
_SHELL_SIGNS = re.compile(
    r"^\s*(?:#!|\w+\+?=|export\s|source\s|\.\s|if\s|for\s|while\s|case\s|function\s|torchrun\b|srun\b|python3?\b|set\s)",
    re.MULTILINE,
)
WORLD_SIZE_FIX = "give --world-size N"

# Files that may speak of options, and are no script.
_NO_SCRIPT = (".json", ".toml", ".yaml", ".yml", ".md", ".csv", ".tsv")


def sniff(path: str, text: str) -> float:
    """How surely a text is a Megatron-LM configuration, from 0 to 1."""
    head = text[:SNIFFED_CHARACTERS]
    flags = set(_FLAG.findall(head))
    score = min(0.9, 0.3 * len(flags & TELLTALE))
    if _YAML_OPTIONS.search(head) and flags:
        return 0.95
    if re.search(r"\bpretrain_\w+\.py\b", head):
        score = max(score, 0.6) if flags else max(score, 0.3)
    return score / 2 if path.endswith(_NO_SCRIPT) else score


@dataclass(slots=True)
class _Command:
    """One command line with what is known about its launch."""

    words: Sequence[Word]
    environment: dict[str, str] | None = None
    facts: dict[str, Given] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    place: Place | None = None


def read_source(
    path: str,
    text: str,
    *,
    version: str,
    set_values: Mapping[str, str] | None = None,
    positional: Sequence[str] = (),
    launch_index: int | None = None,
    world_size: int | None = None,
    read_sibling: Callable[[str], str | None] | None = None,
) -> Native:
    """Read a text into the options that it gives; settling is another step.

    ``set_values`` and ``positional`` are what a shell would hold; ``launch_index`` picks one of several launches,
    from 1; ``world_size`` is the number of ranks where the text does not tell. Raises `SourceError` when the text
    starts no training, and `UsageError` for a launch that is not there.
    """
    catalogue = load(FRAMEWORK, version)
    variables = dict(set_values or {})
    if _YAML_OPTIONS.search(text):
        command = _from_yaml(path, text, variables, launch_index)
    elif _is_plain(text):
        command = _from_words(path, text, variables)
    else:
        command = _from_script(
            path,
            text,
            catalogue,
            variables=variables,
            positional=positional,
            launch_index=launch_index,
            read_sibling=read_sibling,
        )
    native = Native(FRAMEWORK, version)
    native.given, native.unknown, findings = parse_arguments(command.words, catalogue)
    native.findings = _joined(command.findings, findings)
    if not native.given:
        raise SourceError(f"{path} gives no option of Megatron-LM", fix="name the framework with --from")
    native.given |= command.facts
    carried = {name: value for name, value in (command.environment or {}).items() if travels(name)}
    if carried:
        native.given[ENVIRONMENT] = Given(ENVIRONMENT, carried, "environment", command.place)
    _note_world_size(native, world_size)
    _note_elsewhere(native)
    return native


def _joined(reported: Sequence[Finding], findings: Sequence[Finding]) -> list[Finding]:
    """What the script and the parser say; quotes inside values once, by whoever saw them first."""
    if all(finding.code != "R062" for finding in reported):
        return [*reported, *findings]
    edits = {(f.place.line, f.place.column): f.edits for f in findings if f.code == "R026" and f.place}
    quoted = [
        replace(f, edits=edits.get((f.place.line, f.place.column), ())) if f.code == "R062" and f.place else f
        for f in reported
    ]
    return [*quoted, *(finding for finding in findings if finding.code != "R026")]


def _is_plain(text: str) -> bool:
    """Whether a text is options and values only: its first word is an option, and nothing looks like a script."""
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            return stripped.startswith("-") and not _SHELL_SIGNS.search(text)
    return False


def _from_yaml(path: str, text: str, variables: Mapping[str, str], launch_index: int | None) -> _Command:
    from translator.frameworks.megatron.config_yaml import read_config

    reading = read_config(path, text, variables)
    labels = [f"{run.name} ({run.place})" for run in reading.runs]
    number = _pick(labels, launch_index, reading.findings, 0)
    run = reading.runs[number]
    return _Command(run.words, reading.environment, {}, reading.findings, run.place)


def _from_words(path: str, text: str, variables: Mapping[str, str]) -> _Command:
    from translator.shell import split_words

    words: list[Word] = []
    for word in split_words(text, path):
        words.extend(_substitute(word, variables))
    return _Command(words)


def _substitute(word: Word, variables: Mapping[str, str]) -> list[Word]:
    """Put in what the person gave for a word's variables; one that stands alone may be several words."""
    from translator.shell import Word

    if not word.unknowns or any(unknown.name not in variables for unknown in word.unknowns):
        return [word]
    if word.text == word.unknowns[0].expression:
        return [Word(part, word.place) for part in variables[word.unknowns[0].name or ""].split()]
    text = word.text
    for unknown in word.unknowns:
        text = text.replace(unknown.expression, variables[unknown.name or ""], 1)
    return [Word(text, word.place)]


def _from_script(
    path: str,
    text: str,
    catalogue: Catalogue,
    *,
    variables: Mapping[str, str],
    positional: Sequence[str],
    launch_index: int | None,
    read_sibling: Callable[[str], str | None] | None,
) -> _Command:
    from translator.frameworks import launchers
    from translator.shell import evaluate

    reading = evaluate(
        text, path, positional=positional, variables=variables, read_sibling=read_sibling, launchers=launchers()
    )
    scored = [(launch, _score(launch, catalogue)) for launch in reading.launches]
    candidates = [(launch, score) for launch, score in scored if score >= LEAST_OPTIONS or _is_entry_point(launch)]
    candidates = [(launch, score) for launch, score in candidates if score] or candidates
    # A loop over the nodes starts the same program once per node.
    candidates = list({_same_run(launch): (launch, score) for launch, score in reversed(candidates)}.values())[::-1]
    if not candidates:
        raise SourceError(f"{path} starts no program that takes options of Megatron-LM", fix=_why_nothing(reading))
    findings = list(reading.findings)
    labels = [f"{launch.program.text} ({launch.place})" for launch, _ in candidates]
    best = max(range(len(candidates)), key=lambda index: (_is_entry_point(candidates[index][0]), candidates[index][1]))
    launch = candidates[_pick(labels, launch_index, findings, best)][0]
    if not _is_entry_point(launch):
        message = f"{launch.program.text} is no entry point of Megatron-LM; its options are taken for Megatron-LM's"
        findings.append(Finding("R035", Level.NOTE, message, "", launch.place))
    kind = _other_kind(launch)
    if kind is not None:
        message = f"{launch.program.text} trains {kind}; its options are read as those of a decoder of text"
        findings.append(Finding("R038", Level.WARNING, message, "", launch.place))
    environment = _environment(launch, findings)
    facts = _facts(launch, environment)
    for name in variables:
        # What the person gave for the reading is only part of the configuration where the script passes it on.
        if environment.get(name) == variables[name] and not re.search(rf"\bexport\b[^\n;]*\b{name}\b", text):
            del environment[name]
    return _Command(launch.argv, environment, facts, findings, launch.place)


def _same_run(launch: Launch) -> tuple[object, ...]:
    """What two launches have in common when only the node differs."""
    environment = [(name, word.text) for name, word in launch.env.items() if not _OF_A_NODE.fullmatch(name)]
    words = tuple(word.text for word in (launch.program, *launch.argv))
    sizes = (str(launch.nnodes), str(launch.nproc_per_node), launch.world_size)
    return words, tuple(sorted(environment)), sizes


def _score(launch: Launch, catalogue: Catalogue) -> int:
    return sum(catalogue.by_flag(word.text.split("=", 1)[0]) is not None for word in launch.argv)


def _is_entry_point(launch: Launch) -> bool:
    return ENTRY_POINT.search(launch.program.text.rsplit("/", 1)[-1]) is not None


def _other_kind(launch: Launch) -> str | None:
    """What the program trains, by its name, when that is no decoder of text."""
    parts = re.split(r"[^a-z0-9]+", launch.program.text.rsplit("/", 1)[-1].removesuffix(".py").lower())
    return next((kind for part, kind in _KINDS.items() if part in parts), None)


def _why_nothing(reading: ScriptReading) -> str:
    reasons = [finding for finding in reading.findings if finding.level is not Level.NOTE]
    if reasons:
        return "; ".join(f"{each.message} [{each.fix}]" if each.fix else each.message for each in reasons[:2])
    return "give the arguments as plain text, or what the script needs with --set NAME=value and --args"


def _pick(labels: Sequence[str], launch_index: int | None, findings: list[Finding], best: int) -> int:
    """The launch to read, from 0; a finding lists them when there is a choice and nobody chose."""
    if launch_index is not None:
        if not 1 <= launch_index <= len(labels):
            listed = "; ".join(f"{number} {label}" for number, label in enumerate(labels, 1))
            raise UsageError(f"there is no launch {launch_index}", fix=f"launches: {listed}")
        return launch_index - 1
    if len(labels) > 1:
        listed = "; ".join(f"{number} {label}" for number, label in enumerate(labels, 1))
        message = f"{len(labels)} launches, number {best + 1} is read: {listed}"
        findings.append(Finding("R023", Level.WARNING, message, "pick one with --launch N"))
    return best


def _environment(launch: Launch, findings: list[Finding]) -> dict[str, str]:
    known: dict[str, str] = {}
    secrets = sorted(name for name in launch.env if is_secret(name))
    if secrets:
        message = f"not carried over, for they look like secrets: {', '.join(secrets)}"
        findings.append(Finding("R037", Level.NOTE, message, "set them where the result runs", launch.place))
    for name, word in launch.env.items():
        if is_secret(name):
            continue
        if word.unknowns:
            missing = missing_value([word])
            message = f"environment variable {name} is not determined ({missing.expression}: {missing.reason})"
            findings.append(Finding("R022", Level.NOTE, message, missing.supply, word.place))
        else:
            known[name] = word.text
    return known


def _facts(launch: Launch, environment: Mapping[str, str]) -> dict[str, Given]:
    facts: dict[str, Given] = {}
    program = launch.program
    value: object = missing_value([program]) if program.unknowns else program.text
    facts[PROGRAM] = Given(PROGRAM, value, _LABELS[PROGRAM], program.place)
    for address, stated in ((NODES, launch.nnodes), (GPUS_PER_NODE, launch.nproc_per_node)):
        if stated is not None:
            facts[address] = _count(address, stated, launch.place)
    if launch.world_size is not None:
        facts[WORLD_SIZE] = Given(WORLD_SIZE, launch.world_size, f"processes of {launch.launcher}", launch.place)
    elif _is_alone(launch):
        # Started without a launcher, the program reads WORLD_SIZE and takes 1
        # (megatron/training/arguments.py:155, core 0.18.0).
        text = environment.get("WORLD_SIZE", "1")
        if text.isdecimal():
            facts[WORLD_SIZE] = Given(WORLD_SIZE, int(text), f"WORLD_SIZE={text}", launch.place)
    return facts


def _is_alone(launch: Launch) -> bool:
    return launch.launcher.rsplit("/", 1)[-1].startswith("python") or not launch.launcher


def _count(address: str, stated: Word | int, place: Place) -> Given:
    if isinstance(stated, int):
        return Given(address, stated, _LABELS[address], place)
    if not stated.unknowns and stated.text.isdecimal():
        return Given(address, int(stated.text), _LABELS[address], stated.place)
    missing = missing_value([stated]) if stated.unknowns else Missing(stated.text, "not a number", "")
    return Given(address, missing, _LABELS[address], stated.place)


def _note_world_size(native: Native, world_size: int | None) -> None:
    """Take the world size from the person, the launch, or say that it is open."""
    stated = native.given.get(WORLD_SIZE)
    if world_size is not None:
        if stated is not None and stated.value != world_size:
            message = f"--world-size {world_size} is believed, although the launch has {stated.value} processes"
            native.findings.append(Finding("R033", Level.WARNING, message, "", stated.place))
        native.given[WORLD_SIZE] = Given(WORLD_SIZE, world_size, "--world-size")
        fit_nodes(native, world_size, _LABELS)
        return
    if stated is not None:
        return
    parts = [native.given[address] for address in (NODES, GPUS_PER_NODE) if address in native.given]
    missing = [part.value for part in parts if isinstance(part.value, Missing)]
    reason = (
        "; ".join(f"{item.expression}: {item.reason}" for item in missing) or "the number of processes is not stated"
    )
    native.given[WORLD_SIZE] = Given(WORLD_SIZE, Missing("world size", reason, "--world-size N"), "world size")
    supply = " or ".join(dict.fromkeys([WORLD_SIZE_FIX, *(item.supply for item in missing if item.supply)]))
    message = f"the world size is open ({reason}), and so is the data parallel degree"
    native.findings.append(Finding("R025", Level.WARNING, message, supply))


def _note_elsewhere(native: Native) -> None:
    """Options that say: the configuration is in another file."""
    config = native.given.get("yaml_cfg")
    if config is not None and config.value is not None:
        message = f"{config.written} replaces every option on the command line by a file of its own, which is not read"
        native.findings.append(Finding("R027", Level.ERROR, message, "give the options", config.place, config.written))
    checkpoint = native.given.get("use_checkpoint_args")
    if checkpoint is not None and checkpoint.value:
        message = f"{checkpoint.written} overwrites model options with those of a checkpoint, which is not read"
        fix = f"compare them with the checkpoint, or leave {checkpoint.written} out"
        native.findings.append(Finding("R028", Level.WARNING, message, fix, checkpoint.place, checkpoint.written))
