"""Writes a torchtitan configuration: TOML, its launch line, and modules that stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from translator.catalogue import history, load
from translator.compare import equal
from translator.frameworks.base import RenderContext, Rendered
from translator.frameworks.torchtitan.launch_facts import VARIABLE
from translator.frameworks.torchtitan.writer_toml import write_toml
from translator.native import ENVIRONMENT, GPUS_PER_NODE, NODES, WORLD_SIZE
from translator.version import __version__

if TYPE_CHECKING:
    from translator.mapping.views import Sink

MAIN = "train.toml"
LAUNCH = "launch.sh"
# What a reader looks for first is written even where it is the default.
ALWAYS = frozenset(
    {
        "model.name",
        "model.flavor",
        "optimizer.lr",
        "training.steps",
        "training.seq_len",
        "training.local_batch_size",
        "training.global_batch_size",
        "parallelism.data_parallel_shard_degree",
        "activation_checkpoint.mode",
    }
)
FACTS = {WORLD_SIZE: "world_size", NODES: "nodes", GPUS_PER_NODE: "gpus_per_node"}


def must_state(address: str, value: Any, version: str) -> bool:
    """Whether the value differs from the default of the version, or supported versions disagree about the default."""
    if address.startswith("@"):
        return address in FACTS
    if address in ALWAYS or history("torchtitan").default_drifts(address):
        return True
    catalogue = load("torchtitan", version)
    return address not in catalogue or not equal(value, catalogue.default(address))


def render(sink: Sink, version: str, context: RenderContext) -> Rendered:
    """A TOML file with a comment per line on where its value came from, and a launch script beside it."""
    rows: list[tuple[str, object, str | None]] = []
    stated: dict[str, str] = {}
    for address, value in sink.values.items():
        if not must_state(address, value, version):
            continue
        stated[address] = text_of(address, value)
        if not address.startswith("@"):
            rows.append((address, value, comment_on(address, sink, context)))
    environment = sink.values.get(ENVIRONMENT) or {}
    header = header_lines(sink, version, context)
    files = {MAIN: write_toml(rows, header), **sink.files}
    if environment:
        stated[ENVIRONMENT] = exported(environment)
    files[LAUNCH] = launch_script(sink, version, MAIN, f"--job.config_file {MAIN}")
    return Rendered(MAIN, files, stated)


def header_lines(sink: Sink, version: str, context: RenderContext) -> list[str]:
    """Where the file comes from, and what it cannot say itself: version, ranks, environment."""
    facts = [f"{name}={sink.values[address]}" for address, name in FACTS.items() if sink.values.get(address)]
    environment = sink.values.get(ENVIRONMENT) or {}
    if environment:
        from urllib.parse import quote

        facts += [f"{VARIABLE}{name}={quote(value, safe='/:,@+')}" for name, value in environment.items()]
    return [
        f"torchtitan {version}, written by ttx {__version__} from {context.source_name} ({context.source_title})",
        "ttx: " + " ".join([f"version={version}", *facts]),
    ]


def exported(environment: Mapping[str, str]) -> str:
    """The environment as it is stated."""
    return " ".join(["export", *(f"{name}={value}" for name, value in environment.items())])


def text_of(address: str, value: Any) -> str:
    """An address and its value in one line."""
    shown = repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return f"{FACTS.get(address, address)} = {shown}"


def comment_on(address: str, sink: Sink, context: RenderContext) -> str | None:
    """Where a value came from."""
    words = [context.origin_of.get(address, ""), sink.remarks.get(address, "")]
    return "; ".join(dict.fromkeys(word for word in words if word)) or None


def launch_script(sink: Sink, version: str, name: str, arguments: str) -> str:
    """A launch script by hand-laid lines: the values are quoted, nothing else varies."""
    import shlex

    environment = sink.values.get(ENVIRONMENT) or {}

    nodes, gpus, world = (sink.values.get(address) for address in (NODES, GPUS_PER_NODE, WORLD_SIZE))
    if world and not (nodes and gpus):
        gpus = min(int(world), 8)
        nodes = int(world) // gpus
    # expandable segments and the entry point are those of run_train.sh (0.2.2).
    variables = {"PYTORCH_ALLOC_CONF": "expandable_segments:True", **environment}
    lines = [
        "#!/usr/bin/env bash",
        f"# Launches {name} with torchtitan {version}, from the folder that holds both.",
        "set -euo pipefail",
        'cd "$(dirname "${BASH_SOURCE[0]}")"',
        *(f"export {name}={shlex.quote(value)}" for name, value in variables.items() if name.isidentifier()),
        'export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"',
        f"torchrun --nnodes {nodes or '${NNODES:?}'} --nproc_per_node {gpus or '${NGPU:?}'} \\",
        '  --rdzv_backend c10d --rdzv_endpoint "${MASTER_ADDR:-localhost}:${MASTER_PORT:-29500}" \\',
        f'  -m torchtitan.train {arguments} "$@"',
    ]
    return "\n".join(lines) + "\n"
