"""The command in process, as in the tests of the command line."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from translator.cli import main


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def ttx(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command line; ``stdin`` is what stands on standard input."""

    def run(*words: object, stdin: bytes | None = None) -> Result:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """Whether to store instead of to compare; the option is that of the golden tests."""
    return bool(request.config.getoption("--accept", default=False))
