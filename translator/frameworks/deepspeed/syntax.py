"""Text to native options: DeepSpeed's JSON, the YAML around it, and the scripts that start it.

``# ttx: world_size=8`` in a comment says what a configuration cannot (also ``nodes``, ``gpus_per_node``, ``version``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from translator.errors import SourceError, UsageError
from translator.findings import Finding, Level, Place
from translator.frameworks.deepspeed import arguments
from translator.frameworks.deepspeed.positions_json import Document, Placeholder, parse, place_of, plain
from translator.native import GPUS_PER_NODE, NODES, PROGRAM, WORLD_SIZE, Given, Missing, Native, fit_nodes
from translator.source import hints

if TYPE_CHECKING:
    from translator.shell import Launch, ScriptReading, Word, WrittenFile

FRAMEWORK = "deepspeed"
VERSIONS = ("0.16.9", "0.19.2", "0.19.8")
DEFAULT_VERSION = "0.19.2"
MODEL_PREFIX = "model_config."
MODEL = "hf.model_name_or_path"
LOOKED_AT = 200_000
_HINTED = {"world_size": WORLD_SIZE, "nodes": NODES, "gpus_per_node": GPUS_PER_NODE}
_LAUNCH_WORDS = {address: word for word, address in _HINTED.items()}
_TELLTALE = re.compile(
    r"[\"']?(train_batch_size|train_micro_batch_size_per_gpu|zero_optimization|gradient_accumulation_steps|bf16|fp16|"
    r"optimizer|scheduler|gradient_clipping|steps_per_print|zero_allow_untested_optimizer|wall_clock_breakdown|"
    r"activation_checkpointing|communication_data_type|tensor_parallel|data_types|aio|flops_profiler)[\"']?\s*:"
)
_REMARK = re.compile(r"\s*(?:(?:#|//)[^\n]*\n|/\*.*?\*/)*\s*", re.DOTALL)
_LAUNCHER = re.compile(
    r"^[^#\n]*\b(?:deepspeed\s+[-\w./$]|--deepspeed(?:_config)?[\s=]|accelerate\s+launch)", re.MULTILINE
)
_ACCELERATE_LAUNCH = re.compile(r"\baccelerate\s+launch\b|\baccelerate\.commands\.launch\b")
_CONFIG_VARIABLE = re.compile(r"--(?:deepspeed|deepspeed_config)[ =]+[\"']?\$\{?(\w+)")
_BASE64 = re.compile(r"[A-Za-z0-9_-]{40,}={0,2}\s*")


class Companion(NamedTuple):
    """A text beside the configuration: its name, and what it holds."""

    name: str
    text: str


@dataclass(slots=True)
class Inputs:
    """What a reading may use besides the text."""

    variables: Mapping[str, str] = field(default_factory=dict)
    positional: Sequence[str] = ()
    launch: int | None = None
    read_sibling: Callable[[str], str | None] | None = None
    script: str = ""

    def sibling(self, name: str) -> str | None:
        """The text of a file beside this one, or None."""
        return self.read_sibling(name) if self.read_sibling is not None else None


def is_object(text: str) -> bool:
    """Whether a text begins as a JSON object, remarks passed over."""
    match = _REMARK.match(text.removeprefix("\ufeff"))
    return match is not None and text.removeprefix("\ufeff")[match.end() : match.end() + 1] == "{"


def sniff(path: str, text: str) -> float:
    """How surely a text is a DeepSpeed configuration, from 0 to 1; cheap."""
    head = text[:LOOKED_AT]
    if is_object(head) and not path.endswith((".yml", ".yaml")):
        keys = set(_TELLTALE.findall(head))
        strong = keys & {"train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization"}
        return min(1.0, 0.4 * bool(strong) + 0.2 * len(keys))
    if path.endswith((".yml", ".yaml")):
        from translator.frameworks.deepspeed.syntax_yaml import sniff as sniff_yaml

        return sniff_yaml(head)
    if path.endswith(".json") and set(_TELLTALE.findall(head)):
        return 0.6
    launched = _LAUNCHER.search(head) is not None
    return 0.55 if launched else 0.0


def guess_version(text: str) -> str:
    """The version that a hint names, else the default: keys alone rarely tell."""
    named = (version for version in hints(text).get("version", ()) if version in VERSIONS)
    return next(named, DEFAULT_VERSION)


def read_source(
    path: str,
    text: str,
    *,
    version: str = DEFAULT_VERSION,
    world_size: int | None = None,
    inputs: Inputs | None = None,
    trainer: Companion | None = None,
    model: Companion | None = None,
) -> Native:
    """Read a configuration into the options it gives; settling is another step.

    ``trainer`` holds arguments of a Hugging Face trainer (YAML, JSON, or flags), ``model`` a Hugging Face
    ``config.json``. Raises `SourceError` when the text is none that DeepSpeed is started with; everything else is a
    finding, and values that are not there are `Missing` with the flag that supplies them.
    """
    inputs = inputs or Inputs()
    native = Native(FRAMEWORK, version)
    if path.endswith((".yml", ".yaml")):  # gpt-neox writes its YAML in braces
        _read_yaml(path, text, native, inputs)
    elif is_object(text):
        read_json(native, text.removeprefix("\ufeff"), inputs, lambda at, end: place_of(path, text, at, end), path)
    elif _is_yaml(text):
        _read_yaml(path, text, native, inputs)
    elif _BASE64.fullmatch(text):
        decoded = _decoded(text)
        if decoded is None:
            raise SourceError(f"{path} looks like base64, but it holds no configuration", fix="give the JSON itself")
        read_json(native, decoded, inputs, lambda _at, _end: Place(path, 1, 1), path)
    elif path.endswith(".json") or _only_keys(text):
        read_json(native, text, inputs, lambda at, end: place_of(path, text, at, end), path)
    else:
        _read_script(path, text, native, inputs)
    if trainer is not None:
        read_trainer(trainer, native, inputs)
    arguments.read_variables(inputs.variables, native)
    _read_model(native, model, inputs)
    read_sizes(native, text, world_size)
    return native


def read_json(native: Native, text: str, inputs: Inputs, place: Callable[[int, int], Place], path: str) -> None:
    """Read a JSON configuration into a native one. Raises `SourceError` with line and column when it is none."""
    read_document(native, parse(path, text), inputs, place)


def read_document(native: Native, document: Document, inputs: Inputs, place: Callable[[int, int], Place]) -> None:
    """Read a parsed configuration into a native one."""
    from translator.frameworks.deepspeed.syntax_json import JsonReader

    JsonReader(native, document, place, inputs.variables).read()


def _decoded(text: str) -> str | None:
    """The configuration that a base64 text holds, as the launcher hands one on (runtime/config.py:670 at 0.19.2)."""
    import base64
    import binascii

    if not _BASE64.fullmatch(text):
        return None
    try:
        decoded = base64.urlsafe_b64decode(text.strip()).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return decoded if is_object(decoded) else None


def _is_yaml(text: str) -> bool:
    """Whether a text without a name is YAML: mappings at the line starts, no shell."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    top = [line for line in lines if not line[:1].isspace()]
    return bool(top) and all(re.match(r"[\w\"'-]+\s*:(\s|$)", line) or line.startswith(("---", "- ")) for line in top)


def _only_keys(text: str) -> bool:
    return bool(re.match(r"\s*\"\w+\"\s*:", text))


def _read_yaml(path: str, text: str, native: Native, inputs: Inputs) -> None:
    from translator.frameworks.deepspeed.syntax_yaml import read

    nested = read(path, text, native)
    if nested.document is not None:
        read_document(native, nested.document, inputs, nested.text.place)
    elif nested.file is not None:
        read_named(nested.file, native, inputs, nested.text.places[0])


def read_named(name: str, native: Native, inputs: Inputs, place: Place, heredocs: Sequence[WrittenFile] = ()) -> None:
    """Read the configuration that something names: written by the script itself, or a file beside it."""
    if is_object(name):  # the JSON itself, as transformers allows on the command line
        read_json(native, name, inputs, lambda at, end: place, place.file)
        return
    if (decoded := _decoded(name)) is not None:
        read_json(native, decoded, inputs, lambda at, end: place, place.file)
        return
    for written in heredocs:
        if _same_file(written.path.text, name):
            read_written(written, native, inputs)
            return
    text = inputs.sibling(name)
    if text is None:
        message = f"the configuration {name} is not beside the file that names it"
        native.findings.append(Finding("R144", Level.ERROR, message, "put it there, or read it itself", place, name))
        return
    if name.endswith((".yml", ".yaml")):
        _read_yaml(name, text, native, inputs)
    else:
        read_json(native, text, inputs, lambda at, end: place_of(name, text, at, end), name)


def read_written(written: WrittenFile, native: Native, inputs: Inputs) -> None:
    """Read a configuration that the script writes; a variable that is not set leaves a key without its value."""
    body, start = written.body.text, written.body.place

    def empty(key: str) -> Placeholder:
        match = re.search(rf"[\"']?{re.escape(key)}[\"']?\s*:\s*[\"']?(\$\{{?(\w+)[^\n,]*)", inputs.script)
        return Placeholder(match.group(1).strip(" }\"'"), match.group(2)) if match else Placeholder("nothing", None)

    read_document(native, parse(start.file, body, empty), inputs, _inside(body, start))


def _same_file(left: str, right: str) -> bool:
    return left == right or left.rsplit("/", 1)[-1] == right.rsplit("/", 1)[-1]


def _inside(body: str, start: Place) -> Callable[[int, int], Place]:
    """Places in a script, for offsets in a text that stands in it."""

    def place(at: int, end: int) -> Place:
        here = place_of(start.file, body, at, end)
        column = here.column + (start.column - 1 if here.line == 1 else 0)
        return Place(start.file, start.line + here.line - 1, column)

    return place


def _read_script(path: str, text: str, native: Native, inputs: Inputs) -> None:
    from translator.frameworks import launchers
    from translator.shell import evaluate

    reading = evaluate(
        text,
        path,
        positional=inputs.positional,
        variables=inputs.variables,
        read_sibling=inputs.read_sibling,
        launchers=launchers(),
    )
    native.findings.extend(reading.findings)
    inputs.script = text
    launches = [(launch, _score(launch)) for launch in reading.launches]
    launches = [(launch, score) for launch, score in launches if score]
    written = [item for item in reading.heredocs if is_object(item.body.text) and _TELLTALE.search(item.body.text)]
    if not launches:
        _only_heredoc(path, written, native, inputs)
        return
    launch = pick([item for item, _ in launches], [score for _, score in launches], native, inputs.launch)
    read_facts(launch, native, inputs.script)
    config = arguments.read_words(launch.argv, native)
    _accelerate_file(text, reading, launch, native, inputs)
    if config is not None and not config.unknowns:
        read_named(config.text, native, inputs, config.place, reading.heredocs)
    elif len(written) == 1:
        read_written(written[0], native, inputs)
    elif not any(address in native.given for address in ("zero_optimization.stage", "train_batch_size")):
        named = _CONFIG_VARIABLE.search(text)
        name = config.unknowns[0].name if config is not None else named.group(1) if named else None
        supply = f"--set {name}=..." if name else "name the file on the command line, or read it itself"
        message = "the launch does not tell which configuration DeepSpeed reads"
        place = config.place if config is not None else launch.place
        native.findings.append(Finding("R144", Level.ERROR, message, supply, place, "--deepspeed"))


def _only_heredoc(path: str, written: Sequence[WrittenFile], native: Native, inputs: Inputs) -> None:
    if not written:
        raise SourceError(
            f"{path} starts no program with a DeepSpeed configuration and writes none",
            fix="give what it needs with --set NAME=value and --args, or name the framework with --from",
        )
    index = inputs.launch - 1 if inputs.launch is not None and inputs.launch <= len(written) else 0
    start = written[index].body.place
    if len(written) > 1:
        message = f"the script writes {len(written)} configurations; number {index + 1} is read"
        native.findings.append(Finding("R147", Level.WARNING, message, "pick one with --launch N", start))
    read_written(written[index], native, inputs)


def _score(launch: Launch) -> int:
    """How much a launch looks like one of a trainer with DeepSpeed."""
    names = {
        word.text.split("=", 1)[0].lstrip("-").replace("-", "_") for word in launch.argv if word.text.startswith("--")
    }
    known = sum(arguments.kind_of(name) is not None for name in names)
    config = 4 * bool(names & arguments.CONFIG_FLAGS)
    launcher = 2 * any(name in launch.launcher for name in ("deepspeed", "accelerate"))
    return known + config + launcher


def pick(launches: Sequence[Launch], scores: Sequence[int], native: Native, wanted: int | None) -> Launch:
    """The launch to read: the one asked for (from 1), else the best. Raises `UsageError` for one that is not there."""
    labels = [f"{number} {launch.program.text} ({launch.place})" for number, launch in enumerate(launches, 1)]
    if wanted is not None:
        if not 1 <= wanted <= len(launches):
            raise UsageError(f"there is no launch {wanted}", fix=f"launches: {'; '.join(labels)}")
        return launches[wanted - 1]
    best = max(range(len(launches)), key=lambda index: scores[index])
    if len(launches) > 1:
        message = f"{len(launches)} launches, number {best + 1} is read: {'; '.join(labels)}"
        native.findings.append(Finding("R147", Level.WARNING, message, "pick one with --launch N"))
    return launches[best]


def _alone(launch: Launch, script: str) -> bool:
    """Whether the launcher is DeepSpeed's and is told of no other machine."""
    own = launch.launcher.rsplit("/", 1)[-1].split(" ")[0] == "deepspeed"
    return own and re.search(r"--hostfile\b|-H[ =]|--include\b|--num_nodes\b", script) is None


def read_facts(launch: Launch, native: Native, script: str = "") -> None:
    """What a launch says about its program and its ranks."""
    program = launch.program
    native.given[PROGRAM] = Given(PROGRAM, program.text, "program", program.place)
    for address, stated in ((NODES, launch.nnodes), (GPUS_PER_NODE, launch.nproc_per_node)):
        if isinstance(stated, int):
            native.given[address] = Given(address, stated, address.lstrip("@"), launch.place)
        elif stated is not None:
            native.given[address] = _count(address, stated)
    if launch.nnodes is None and isinstance(launch.nproc_per_node, int) and _alone(launch, script):
        # Without a hostfile the launcher runs on its own machine alone (launcher/runner.py:446 at 0.19.2).
        native.given[NODES] = Given(NODES, 1, "deepspeed without --hostfile", launch.place)
    if launch.world_size is not None:
        native.given[WORLD_SIZE] = Given(WORLD_SIZE, launch.world_size, f"processes of {launch.launcher}", launch.place)


def _count(address: str, word: Word) -> Given:
    if not word.unknowns and word.text.isdecimal() and len(word.text) < 10:
        return Given(address, int(word.text), address.lstrip("@"), word.place)
    name = word.unknowns[0].name if word.unknowns else None
    reason = word.unknowns[0].reason if word.unknowns else "not a number"
    supply = f"--set {name}=..." if name else "--world-size N"
    return Given(address, Missing(word.text, reason, supply), address.lstrip("@"), word.place)


def _accelerate_file(text: str, reading: ScriptReading, launch: Launch, native: Native, inputs: Inputs) -> None:
    """The file that ``accelerate launch --config_file`` names: sizes, precision, and perhaps the configuration."""
    if "accelerate" not in launch.launcher:
        return
    flags = _launcher_flags(text, reading, launch)
    before = dict(native.given)
    if "config_file" in flags:
        read_named(flags["config_file"], native, inputs, launch.place, reading.heredocs)
    native.given.update({address: before[address] for address in (WORLD_SIZE, NODES) if address in before})
    from translator.frameworks.deepspeed.syntax_yaml import read_flags

    named = read_flags(flags, native, launch.place)
    if named is not None:
        read_named(named, native, inputs, launch.place, reading.heredocs)


def _launcher_flags(text: str, reading: ScriptReading, launch: Launch) -> dict[str, str]:
    """Options between ``accelerate launch`` and the program, with the variables that are known put in."""
    found: dict[str, str] = {}
    *_, line = _ACCELERATE_LAUNCH.split(text.replace("\\\n", " "), maxsplit=1)
    words = line.split("\n", 1)[0].split()
    for at, word in enumerate(words):
        if word.rsplit("/", 1)[-1] == launch.program.text.rsplit("/", 1)[-1] or word in {"-m", "--module"}:
            break
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            continue
        if not equals and at + 1 < len(words) and not words[at + 1].startswith("--"):
            value = words[at + 1]
        value = value.strip("\"'")
        held = reading.variables.get(value.strip("${}")) if value.startswith("$") else None
        found[name[2:].replace("-", "_")] = held.text if held is not None and not held.unknowns else value
    return found


def read_trainer(trainer: Companion, native: Native, inputs: Inputs) -> None:
    """Arguments of a trainer from a text: YAML or JSON by name, else flags.

    Raises `SourceError` when the text is none of these.
    """
    name, text = trainer
    if is_object(text) or name.endswith(".json"):
        document = parse(name, text)
        for member in document.root.members or []:
            place = place_of(name, text, member.start, member.end)
            if not arguments.note(native, member.key, plain(member.node), member.key, place):
                native.unknown.append(Given(f"--{member.key}", plain(member.node), member.key, place))
        return
    if name.endswith((".yml", ".yaml")) or _is_yaml(text):
        _read_yaml(name, text, native, inputs)
        return
    from translator.shell import split_words

    arguments.read_words(split_words(text, name), native)


def _read_model(native: Native, model: Companion | None, inputs: Inputs) -> None:
    if model is None:
        stated = native.given.get(MODEL)
        if stated is None or not isinstance(stated.value, str):
            return
        text = inputs.sibling(f"{stated.value.rstrip('/')}/config.json")
        if text is None:
            return
        model = Companion(f"{stated.value}/config.json", text)
    document = parse(model.name, model.text)
    for member in document.root.members or []:
        address = MODEL_PREFIX + member.key
        place = place_of(model.name, model.text, member.start, member.end)
        native.given[address] = Given(address, plain(member.node), member.key, place)


def read_sizes(native: Native, text: str, world_size: int | None) -> None:
    """The world size: from the person, a hint, the launch, or open."""
    said = hints(text)
    for key, address in _HINTED.items():
        value = next((word for word in said.get(key, ()) if word.isdecimal() and len(word) < 10), None)
        if value is not None:
            native.given[address] = Given(address, int(value), f"ttx: {key}")
    if world_size is not None:
        native.given[WORLD_SIZE] = Given(WORLD_SIZE, world_size, "--world-size")
        fit_nodes(native, world_size, _LAUNCH_WORDS)
    nodes, per_node = (native.given.get(address) for address in (NODES, GPUS_PER_NODE))
    if WORLD_SIZE not in native.given:
        if nodes and per_node and isinstance(nodes.value, int) and isinstance(per_node.value, int):
            native.given[WORLD_SIZE] = Given(WORLD_SIZE, nodes.value * per_node.value, "nodes times GPUs", nodes.place)
        else:
            missing = Missing("world size", "the files do not say how many GPUs there are", "--world-size N")
            native.given[WORLD_SIZE] = Given(WORLD_SIZE, missing, "world size")
