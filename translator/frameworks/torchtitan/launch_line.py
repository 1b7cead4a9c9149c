"""Launch scripts of torchtitan, ``-m torchtitan.train`` and ``run_train.sh``, with the file that they name.

A script names a TOML file (``--job.config_file``, up to 0.2.2), or a module and a function (``--module``, ``--config``,
from 0.3.0 on); the file is read from beside the script, the options of the command line go over it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from translator.environment import travels
from translator.errors import SourceError, UsageError
from translator.findings import Finding, Level
from translator.native import ENVIRONMENT, GPUS_PER_NODE, NODES, WORLD_SIZE, Given, Missing

if TYPE_CHECKING:
    from translator.findings import Place
    from translator.shell import Launch, ScriptReading, Word

Read = Callable[[str], str | None]
_TRAIN = re.compile(r"torchtitan(?:\.|/)(?:\w+(?:\.|/))*train(?:\.py)?$")
_SIGN = re.compile(
    r"-m[ \t]+[\"']?torchtitan\.\w|torchtitan/train\.py|\brun_train\.sh\b|--job\.config[_-]file|torchtitan\.train\b"
)
_SUFFIXES = (".sh", ".slurm", ".sbatch", ".bash", "")
_CONFIG_FILE = ("--job.config_file", "--job.config-file")
_RUN_TRAIN = "run_train.sh"
# What upstream's run_train.sh does with its environment, for scripts that call it and do not have it beside them
# (run_train.sh of the repository at 0.2.2 and 0.3.0).
_STAND_IN = """
if [ -n "${CONFIG_FILE:-}" ]; then
  torchrun --nproc_per_node="${NGPU:-8}" -m "${TRAIN_FILE:-torchtitan.train}" \
    --job.config_file "$CONFIG_FILE" "$@"
else
  torchrun --nproc_per_node="${NGPU:-8}" -m "${TRAIN_FILE:-torchtitan.train}" \
    --module "${MODULE:-llama3}" --config "${CONFIG:-llama3_debugmodel}" "$@"
fi
"""
# Variables of run_train.sh itself, which the training does not read.
_OF_SCRIPT = frozenset({"CONFIG_FILE", "CONFIG", "MODULE", "NGPU", "TRAIN_FILE", "LOG_RANK", "COMM_MODE"})


@dataclass(slots=True)
class LaunchLine:
    """One launch: what it names, its further words, and what it says about the run."""

    toml: str = ""
    module: str = ""
    function: str = ""
    words: list[Word] = field(default_factory=list)
    given: dict[str, Given] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    launch: Launch | None = None


def sniff(path: str, text: str) -> float:
    """How surely a text is a script that launches torchtitan, from 0 to 1."""
    if not path.endswith(_SUFFIXES) and not text.startswith("#!"):
        return 0.0
    return 0.95 if _SIGN.search(text[:400_000]) else 0.0


def read_launch(
    path: str,
    text: str,
    *,
    variables: Mapping[str, str],
    positional: Sequence[str],
    launch_index: int | None,
    read_sibling: Read | None,
) -> LaunchLine:
    """The launch of a script. Raises `SourceError` when it launches no torchtitan, `UsageError` for one not there."""
    from translator.frameworks import launchers
    from translator.shell import evaluate

    def sibling(name: str) -> str | None:
        found = read_sibling(name) if read_sibling is not None else None
        return _STAND_IN if found is None and posixpath.basename(name) == _RUN_TRAIN else found

    reading = evaluate(
        text, path, positional=positional, variables=variables, read_sibling=sibling, launchers=launchers()
    )
    launches = [launch for launch in reading.launches if _is_train(launch)]
    if not launches:
        raise SourceError(f"{path} launches no torchtitan", fix=_why(reading))
    line = LaunchLine(findings=list(reading.findings))
    launch = launches[_pick(launches, launch_index, line.findings)]
    line.launch = launch
    _named(line, launch)
    _facts(line, launch, variables, text)
    return line


def _is_train(launch: Launch) -> bool:
    name = launch.module or launch.program.text
    return bool(_TRAIN.search(name)) or any(word.text.split("=")[0] in _CONFIG_FILE for word in launch.argv)


def _why(reading: ScriptReading) -> str:
    reasons = [finding.message for finding in reading.findings if finding.level is not Level.NOTE]
    return "; ".join(reasons[:2]) or "it has no torchtitan.train"


def _pick(launches: Sequence[Launch], index: int | None, findings: list[Finding]) -> int:
    labels = [f"{number} {launch.program.text} ({launch.place})" for number, launch in enumerate(launches, 1)]
    if index is not None:
        if not 1 <= index <= len(launches):
            raise UsageError(f"there is no launch {index}", fix=f"launches: {'; '.join(labels)}")
        return index - 1
    if len(launches) > 1:
        message = f"{len(launches)} launches, number 1 is read: {'; '.join(labels)}"
        findings.append(Finding("R023", Level.WARNING, message, "pick one with --launch N"))
    return 0


def _named(line: LaunchLine, launch: Launch) -> None:
    """Takes out of the words what names the configuration; the last of several is in force, as upstream has it."""
    words = list(launch.argv)
    at = 0
    while at < len(words):
        flag, equals, value = words[at].text.partition("=")
        if flag in {"--module", "--config"} or flag in _CONFIG_FILE:
            if not equals:
                at += 1
                value = words[at].text if at < len(words) else ""
            unknown = words[min(at, len(words) - 1)].unknowns
            if unknown:
                names = " ".join(f"--set {item.name}=..." for item in unknown if item.name)
                raise SourceError(f"{flag} is {value}, which the script does not determine", fix=names)
            if flag == "--module":
                line.module = value
            elif flag == "--config":
                line.function = value
            else:
                line.toml = value
        else:
            line.words.append(words[at])
        at += 1


def _facts(line: LaunchLine, launch: Launch, variables: Mapping[str, str], text: str) -> None:
    """World size and environment."""
    for address, stated, label in (
        (NODES, launch.nnodes, "nodes"),
        (GPUS_PER_NODE, launch.nproc_per_node, "GPUs per node"),
    ):
        if stated is None:
            continue
        if isinstance(stated, int):
            line.given[address] = Given(address, stated, label, launch.place)
        elif stated.text.isdecimal() and not stated.unknowns:
            line.given[address] = Given(address, int(stated.text), label, stated.place)
        else:
            supply = " ".join(f"--set {item.name}=..." for item in stated.unknowns if item.name)
            reason = "; ".join(item.reason for item in stated.unknowns) or "not a number"
            line.given[address] = Given(address, Missing(stated.text, reason, supply), label, stated.place)
    if launch.world_size is not None:
        label = f"processes of {launch.launcher}"
        line.given[WORLD_SIZE] = Given(WORLD_SIZE, launch.world_size, label, launch.place)
    kept = {
        name: word.text
        for name, word in launch.env.items()
        if not word.unknowns
        and name not in _OF_SCRIPT
        and travels(name)
        and _passed_on(name, word.text, variables, text)
    }
    if kept:
        line.given[ENVIRONMENT] = Given(ENVIRONMENT, kept, "environment", launch.place)


def _passed_on(name: str, value: str, variables: Mapping[str, str], text: str) -> bool:
    """Whether a variable is the script's own: what the person gave for the reading is, where the script exports it."""
    return variables.get(name) != value or bool(re.search(rf"\bexport\b[^\n;]*\b{name}\b", text))


def find_toml(line: LaunchLine, read_sibling: Read | None) -> tuple[str, str]:
    """Name and text of the TOML file. Raises `SourceError` when it is not beside the script."""
    for name in _nearer(line.toml):
        text = read_sibling(name) if read_sibling is not None else None
        if text is not None:
            return name, text
    place = line.launch.place if line.launch is not None else None
    raise SourceError(f"{line.toml} is not beside the script", place=place, fix="put it there, or name it itself")


def find_module(line: LaunchLine, read_sibling: Read | None) -> tuple[str, str] | None:
    """Path and text of the module of a launch: ``M/config_registry.py``, else ``M.py`` or the package ``M``.

    The order is upstream's (``config/manager.py:100-134`` at 0.3.0), where names of torchtitan's own come first; None
    for one of those whose source is not beside the script. Raises `SourceError` for any other that is not.
    """
    from translator.frameworks.torchtitan.python_names import BUILT_IN

    place = line.launch.place if line.launch is not None else None
    if not line.module or not line.function:
        missing = "--config" if line.module else "--module"
        raise SourceError(f"the launch has no {missing}, which torchtitan demands", place=place)
    short = line.module in BUILT_IN
    own = short or line.module.startswith("torchtitan.")
    if short:
        _shadowed(line, read_sibling, place)
    base = f"torchtitan/models/{line.module}" if short else line.module.replace(".", "/")
    candidates = [f"{base}/config_registry.py", f"{base}.py", f"{base}/__init__.py"][: 1 if short else 3]
    for path in candidates:
        for name in [path] if own or path == candidates[0] else _nearer(path):
            text = read_sibling(name) if read_sibling is not None else None
            if text is not None:
                return name, text
    if own:
        return None
    message = f"the module {line.module} is not beside the script"
    raise SourceError(message, place=place, fix=f"put {candidates[1]} there")


def _shadowed(line: LaunchLine, read_sibling: Read | None, place: Place | None) -> None:
    """A module of one's own that torchtitan never looks at (``config/manager.py:103`` at 0.3.0)."""
    if read_sibling is None:
        return
    for path in (f"{line.module}.py", f"{line.module}/config_registry.py"):
        if read_sibling(path) is not None:
            message = f"--module {line.module} is torchtitan's own; {path} beside the script is never read"
            fix = f"rename it, as my_{line.module}"
            line.findings.append(Finding("S198", Level.WARNING, message, fix, place, "--module"))
            return


def _nearer(path: str) -> list[str]:
    """A path, and what is left of it when leading folders are dropped: scripts are often run from elsewhere."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in {"", "."}]
    return ["/".join(parts[at:]) for at in range(len(parts))]
