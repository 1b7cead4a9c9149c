"""The hooks, run by the real pre-commit in a scratch repository, installed from a clone of this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
HOOKS = ROOT / ".pre-commit-hooks.yaml"
PARTS = ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", "translator", "schemas", "templates")
SCRIPT = """\
#!/bin/bash
torchrun --nproc_per_node 8 pretrain_gpt.py --use-distributed-optimizer=true \\
  --num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 \\
  --micro-batch-size 1 --global-batch-size 64 --train-iters 1000 --lr 1e-4 --lr-decay-style constant --bf16 \\
  --vocab-size 50304
"""


def git(folder: Path, env: Mapping[str, str], *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Surroundings in which nothing of the person's own settings or caches plays a part."""
    home = tmp_path / "home"
    home.mkdir()
    who = {f"GIT_{role}_{what}": "ttx@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PYTHON", "VIRTUAL_"))}
    where = {"HOME": str(home), "PRE_COMMIT_HOME": str(home / "pre-commit"), "GIT_CONFIG_GLOBAL": os.devnull}
    return {**kept, **who, **where, "PRE_COMMIT_COLOR": "never"}


def commit(folder: Path, env: Mapping[str, str]) -> str:
    git(folder, env, "init", "-q")
    git(folder, env, "add", "-A")
    git(folder, env, "commit", "-q", "-m", "all")
    return git(folder, env, "rev-parse", "HEAD")


def test_the_hooks_are_complete() -> None:
    hooks = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))
    assert [hook["id"] for hook in hooks] == ["ttx-check", "ttx-fix"]
    for hook in hooks:
        assert hook["language"] == "python"
        assert hook["entry"].startswith("ttx-train check "), "another package may have installed a ttx"


def test_pre_commit_runs_them(tmp_path: Path, env: dict[str, str]) -> None:
    source = tmp_path / "ttx"
    source.mkdir()
    for part in PARTS:
        here = ROOT / part
        if here.is_dir():
            shutil.copytree(here, source / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, source / part)
    (source / "fixtures").mkdir()
    (source / "fixtures" / "none").write_text("the hooks need no examples\n")
    revision = commit(source, env)
    project = tmp_path / "project"
    project.mkdir()
    repo = {"repo": str(source), "rev": revision}
    config = {"repos": [{**repo, "hooks": [{"id": "ttx-fix"}]}, {**repo, "hooks": [{"id": "ttx-check"}]}]}
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (project / "train.sh").write_text(SCRIPT)
    (project / "notes.json").write_text('{"buy": "milk"}\n')
    (project / "broken.sh").write_text(SCRIPT.replace("=true", "").replace("heads 12", "heads 11"))
    commit(project, env)

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", "run", "--all-files", "--verbose"]
        return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=False, timeout=900)

    first = run()
    assert first.returncode == 1, first.stdout + first.stderr
    assert "files were modified by this hook" in first.stdout
    assert (project / "train.sh").read_text() == SCRIPT.replace("=true", "")
    assert "broken.sh" in first.stdout
    assert "notes.json" not in first.stdout
    (project / "broken.sh").unlink()
    git(project, env, "add", "-A")
    second = run()
    assert second.returncode == 0, second.stdout + second.stderr
    assert second.stdout.count("Passed") == 2
