"""The command in process: exit code, standard output and standard error of one call."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from cli_support import SCRIPT, TOML, Result, Ttx

from translator.cli import main


@pytest.fixture
def ttx(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ttx:
    """Runs a command line; ``stdin`` is what stands on standard input."""

    def run(*words: object, stdin: bytes | None = None) -> Result:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def script() -> Path:
    return SCRIPT


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "train.toml"
    path.write_text(TOML)
    return path
