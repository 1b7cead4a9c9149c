"""Every example of the README is run, and prints what it shows; ``...`` stands for anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED_CODES = dict.fromkeys(
    ("ttx diff", "ttx report", "ttx convert", "ttx render", "ttx check", "ttx memory"), frozenset({0, 1})
)


@dataclass(frozen=True)
class Step:
    command: str
    shown: str


def steps() -> list[Step]:
    found: list[Step] = []
    for language, body in BLOCK.findall(README):
        if language == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                found.append(Step(command, shown))
    return found


def pattern(shown: str) -> re.Pattern[str]:
    """The shown output as a pattern: ``...`` alone is any lines, within a line any text; runs of blanks are one."""
    lines = []
    for line in shown.splitlines():
        if line == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            parts = [r"\s+".join(map(re.escape, re.split(r" +", part))) for part in line.split("...")]
            lines.append("[^\n]*".join(parts) + r"[ ]*\n")
    return re.compile("".join(lines))


def test_every_block_is_either_run_here_or_by_the_continuous_integration() -> None:
    languages = [language for language, _ in BLOCK.findall(README)]
    assert set(languages) == {"sh", "console", "toml", "yaml"}
    assert languages.count("sh") == README.count("<!-- command: ") == 2
    assert languages.count("console") == README.count("<!-- example -->")
    assert len(steps()) >= 15


def test_the_examples(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "fixtures" / "examples", tmp_path / "work" / "fixtures" / "examples")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ttx").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m translator "$@"\n')
    (programs / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    for step in steps():
        done = subprocess.run(
            ["bash", "-c", step.command], cwd=tmp_path / "work", env=env, capture_output=True, text=True, check=False
        )
        output = done.stderr + done.stdout
        allowed = EXPECTED_CODES.get(" ".join(step.command.split()[:2]), {0})
        assert done.returncode in allowed, f"$ {step.command}\n{output}"
        if step.shown.strip():
            assert pattern(step.shown).match(output), f"$ {step.command}\nshown:\n{step.shown}\nis:\n{output}"


def test_the_settings_that_it_shows_are_settings(tmp_path: Path) -> None:
    from translator.project import project

    (text,) = [body for language, body in BLOCK.findall(README) if language == "toml"]
    (tmp_path / "pyproject.toml").write_text(text)
    found = project(tmp_path)
    assert found.versions
    assert found.targets
    assert found.files


def test_the_hooks_that_it_shows_exist() -> None:
    (text,) = [body for language, body in BLOCK.findall(README) if language == "yaml"]
    shown = re.findall(r"- id: (\S+)", text)
    assert sorted(shown) == sorted(re.findall(r"- id: (\S+)", (ROOT / ".pre-commit-hooks.yaml").read_text()))


@pytest.mark.parametrize("version", ["0.12.0", "0.19.0", "0.1.0", "0.2.2"])
def test_the_versions_that_it_names_exist(version: str) -> None:
    from translator import frameworks

    assert f"{version}" in README
    assert any(version in frameworks.get(name).versions for name in frameworks.BUILT_IN)


def test_the_options_that_it_names_exist() -> None:
    from translator.cli import COMMANDS, _options, _parser

    known = {option for command in COMMANDS for option in _options(_parser(command))}
    for command, option in re.findall(r"`?ttx (\w+)[^`\n]*?(--[a-z-]+)", README):
        if command == "convert":
            assert option in known, option
    for option in ("--set", "--args", "--launch", "--world-size", "--on-loss", "--ledger", "--format"):
        assert option in known
        assert option in README


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target
