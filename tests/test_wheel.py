"""The wheel holds the package and its data, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Built by the backend itself, without an environment of its own or a network."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_it_holds_all_code_and_data(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    code = {path.relative_to(ROOT).as_posix() for path in (ROOT / "translator").rglob("*.py")}
    assert code <= names
    assert "translator/py.typed" in names
    for folder in ("schemas", "templates", "fixtures"):
        files = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file()}
        assert files
        assert {f"translator/_data/{name}" for name in files} <= names


def test_it_holds_nothing_else(wheel: zipfile.ZipFile) -> None:
    roots = {name.split("/")[0] for name in wheel.namelist()}
    assert len(roots) == 2
    assert "translator" in roots
    assert not [name for name in wheel.namelist() if "tests/" in name or name.endswith((".pyc", ".orig"))]


def test_its_metadata(wheel: zipfile.ZipFile) -> None:
    def read(name: str) -> str:
        (path,) = (path for path in wheel.namelist() if path.endswith(f".dist-info/{name}"))
        return wheel.read(path).decode()

    metadata = Parser().parsestr(read("METADATA"))
    assert metadata["Name"] == "ttx-train"
    assert metadata["Requires-Python"] == ">=3.11"
    needed = [need for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need]
    assert not [need for need in needed if need.lower().startswith(("torch", "matplotlib", "fonttools"))]
    assert "ttx = translator.cli:entry" in read("entry_points.txt")
    assert "ttx-train = translator.cli:entry" in read("entry_points.txt")
