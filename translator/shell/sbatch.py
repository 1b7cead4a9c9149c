"""``#SBATCH`` directives: what the scheduler was asked for, and the variables that it then sets."""

from __future__ import annotations

import re
from collections.abc import Mapping

from translator.shell.values import Chunk, Source, Value

_DIRECTIVE = re.compile(r"^#SBATCH[ \t]+(.*)$", re.MULTILINE)
_OPTION = re.compile(r"(--[A-Za-z-]+|-[A-Za-z])(?:=|[ \t]*)([^\s#]*)")
_ROLES = {
    "-N": "nodes", "--nodes": "nodes", "-n": "tasks", "--ntasks": "tasks", "--ntasks-per-node": "per_node",
    "--tasks-per-node": "per_node", "--gpus-per-node": "gpus_per_node", "--gres": "gpus_per_node",
    "-G": "gpus", "--gpus": "gpus", "-c": "cpus", "--cpus-per-task": "cpus", "-J": "name", "--job-name": "name",
    "-p": "partition", "--partition": "partition", "-A": "account", "--account": "account",
}  # fmt: skip
_VARIABLES = {
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "tasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "per_node": ("SLURM_NTASKS_PER_NODE",),
    "gpus_per_node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
    "gpus": ("SLURM_GPUS",),
    "cpus": ("SLURM_CPUS_PER_TASK",),
    "name": ("SLURM_JOB_NAME",),
    "partition": ("SLURM_JOB_PARTITION",),
    "account": ("SLURM_JOB_ACCOUNT",),
}
_COUNTS = frozenset({"nodes", "tasks", "per_node", "gpus_per_node", "gpus", "cpus"})


def directives(source: Source, asked: Mapping[str, Value]) -> dict[str, Value]:
    """What the directives ask for, by role; values keep their place. Placeholders and ranges are left out.

    ``asked`` is what stands on the command line of ``sbatch``, which counts before the directives.
    """
    if "#SBATCH" not in source.text and not asked:
        return {}
    found: dict[str, Value] = {}
    for line in _DIRECTIVE.finditer(source.text):
        for option in _OPTION.finditer(source.text, line.start(1), line.end(1)):
            role = _ROLES.get(option.group(1))
            if role is None or not option.group(2):
                continue
            text, start = option.group(2), option.start(2)
            if option.group(1) == "--gres":
                hit = re.search(r"gpu(?::[A-Za-z_][\w.-]*)?:(\d+)", text)
                if hit is None:
                    continue
                start, text = start + hit.start(1), hit.group(1)
            elif role in {"gpus_per_node", "gpus"} and ":" in text:
                start, text = start + text.rindex(":") + 1, text[text.rindex(":") + 1 :]
            if role in _COUNTS:
                low, _, high = text.partition("-")
                if not low.isdigit() or (high and high != low):
                    continue
                text = low
            found[role] = Value((Chunk(text, source, start),))
    found.update((role, value) for role, value in asked.items() if value.known and value.text.isdigit())
    return _derived(found, source)


def _derived(found: dict[str, Value], source: Source) -> dict[str, Value]:
    def number(role: str) -> int | None:
        return int(found[role].text) if role in found and len(found[role].text) < 10 else None

    nodes, per_node, tasks = number("nodes"), number("per_node"), number("tasks")
    if tasks is None and nodes is not None and per_node is not None:
        found["tasks"] = Value((Chunk(str(nodes * per_node), source, found["per_node"].chunks[0].offset),))
    if nodes is not None and tasks is None and per_node is None:
        found["tasks"] = Value((Chunk(str(nodes), source, found["nodes"].chunks[0].offset),))
    if found and nodes is None and tasks is not None and per_node:
        found["nodes"] = Value((Chunk(str(-(-tasks // per_node)), source, found["tasks"].chunks[0].offset),))
    return found


def variables(found: dict[str, Value]) -> dict[str, Value]:
    """The variables that the scheduler sets because of the directives."""
    return {name: value for role, value in found.items() for name in _VARIABLES.get(role, ())}
