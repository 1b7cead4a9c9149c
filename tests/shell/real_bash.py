"""Runs scripts under the real bash with stub launchers, and says how our own reading differs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from translator import frameworks
from translator.shell import Launch, ScriptReading, Word, evaluate

RECORDERS = ("torchrun", "python", "python3", "deepspeed", "accelerate")
WRAPPERS = ("uv", "srun", "numactl", "nsys", "mpirun", "sudo")
TOOLS = [
    "bash",
    "sh",
    "cat",
    "tee",
    "mkdir",
    "dirname",
    "basename",
    "seq",
    "expr",
    "bc",
    "tr",
    "cut",
    "wc",
    "head",
    "tail",
    "sed",
    "grep",
    "awk",
    "sleep",
    "date",
    "touch",
    "rm",
    "hostname",
    "env",
    "nohup",
    "timeout",
]

_RECORDER = """#!/bin/bash
{ printf '%s\\0' "$0" "$@"; printf '\\1\\0'; /usr/bin/env -0; printf '\\2\\0'; } >> "$STUB_LOG"
"""
_WRAPPER = """#!/bin/bash
while [ $# -gt 0 ]; do
  case "$1" in
    torchrun|python|python3|deepspeed|accelerate|numactl|nsys|bash|sh|env) exec "$@";;
  esac
  shift
done
"""
_IGNORED = {"STUB_LOG", "PATH", "PWD", "OLDPWD", "SHLVL", "_"}


@dataclass(frozen=True)
class Call:
    """One start of a stub."""

    argv: tuple[str, ...]
    env: dict[str, str]


def make_stubs(folder: Path) -> Path:
    """A folder for PATH: stub launchers and a few real tools."""
    stubs = folder / "bin"
    stubs.mkdir(exist_ok=True)
    for names, text in ((RECORDERS, _RECORDER), (WRAPPERS, _WRAPPER)):
        for name in names:
            (stubs / name).write_text(text)
            (stubs / name).chmod(0o755)
    for name in TOOLS:
        found = shutil.which(name)
        if found and not (stubs / name).exists():
            (stubs / name).symlink_to(found)
    return stubs


def run_bash(
    script: Path,
    stubs: Path,
    positional: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    *,
    timeout: float = 20,
) -> list[Call]:
    """What the script starts, in order of the stubs' records."""
    log = script.parent / "stub.log"
    log.unlink(missing_ok=True)
    command = ["/bin/bash", script.name, *positional]
    env = {"PATH": str(stubs), "STUB_LOG": str(log), **(variables or {})}
    try:
        subprocess.run(
            command, cwd=script.parent, env=env, timeout=timeout, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return []
    if not log.exists():
        return []
    calls: list[Call] = []
    for record in log.read_bytes().decode().split("\2\0")[:-1]:
        argv_text, env_text = record.split("\1\0", 1)
        argv = argv_text.split("\0")[:-1]
        pairs = [item.partition("=") for item in env_text.split("\0") if item]
        environment = {name: value for name, _, value in pairs if name not in _IGNORED}
        calls.append(Call((os.path.basename(argv[0]), *argv[1:]), environment))
    return calls


def word_fits(word: Word, text: str) -> bool:
    """Equal, or, where the word has unknown parts, equal around them."""
    if not word.unknowns:
        return word.text == text
    rest, at = word.text, 0
    for unknown in word.unknowns:
        before, _, rest = rest.partition(unknown.expression)
        if not text.startswith(before, at):
            found = text.find(before, at)
            if found < 0:
                return False
            at = found
        at += len(before)
    return text.endswith(rest)


def difference(launch: Launch, call: Call, *, compare_env: bool = True) -> str | None:
    """What our launch says differently from the real call; None when they agree."""
    ours = [launch.program, *launch.argv]
    theirs = list(call.argv[1:])[-len(ours) :]
    if len(theirs) < len(ours):
        return f"bash passes {len(call.argv) - 1} words, ours has {len(ours)}: {call.argv} / {ours}"
    for word, text in zip(ours, theirs, strict=True):
        if not word_fits(word, text):
            return f"bash passes {text!r}, ours {word.text!r}\nbash: {list(call.argv)}\nours: {[w.text for w in ours]}"
    if compare_env:
        env = {name: word for name, word in launch.env.items() if name not in _IGNORED}
        if set(env) != set(call.env):
            return f"exported: bash {sorted(call.env)}, ours {sorted(env)}"
        for name, word in env.items():
            if not word_fits(word, call.env[name]):
                return f"{name}: bash {call.env[name]!r}, ours {word.text!r}"
    return None


def compare(
    text: str,
    folder: Path,
    stubs: Path,
    *,
    positional: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    siblings: Mapping[str, str] | None = None,
    name: str = "run.sh",
) -> tuple[ScriptReading, list[Call]]:
    """Run and read the same script; asserts that both start the same programs with the same words."""
    script = folder / name
    script.write_text(text)
    for sibling, body in (siblings or {}).items():
        (folder / sibling).write_text(body)

    def read(path: str) -> str | None:
        return (siblings or {}).get(path.removeprefix("./"))

    reading = evaluate(
        text, name, positional=positional, variables=variables, read_sibling=read, launchers=frameworks.launchers()
    )
    calls = run_bash(script, stubs, positional, variables)
    assert len(reading.launches) == len(calls), (reading.launches, calls, reading.findings)
    for launch, call in zip(reading.launches, calls, strict=True):
        assert difference(launch, call) is None, (difference(launch, call), reading.findings)
    return reading, calls
