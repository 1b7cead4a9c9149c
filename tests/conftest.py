"""What all tests share: the corpus of real configurations, and a steady hypothesis."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

# A slow machine is no failure, and a run that CI repeats must repeat the same examples.
# TTX_RANDOM=1 looks for new ones.
hypothesis.settings.register_profile("random", deadline=None)
hypothesis.settings.register_profile("steady", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("random" if os.environ.get("TTX_RANDOM") else "steady")


def corpus_folder() -> Path | None:
    """The folder of real configurations that TTX_CORPUS names, if it names one."""
    named = os.environ.get("TTX_CORPUS", "")
    return Path(named).resolve() if named else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = corpus_folder()
    if folder is not None and folder.is_dir():
        return
    reason = "TTX_CORPUS names no folder" if folder is None else f"TTX_CORPUS: no folder {folder}"
    for item in items:
        if item.get_closest_marker("corpus"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The corpus of real configurations; mark the test with ``corpus``, it is skipped without."""
    folder = corpus_folder()
    if folder is None or not folder.is_dir():
        pytest.skip("TTX_CORPUS names no folder")
    return folder


@pytest.fixture(scope="session")
def examples() -> Path:
    """The folder of the example configurations."""
    return REPOSITORY / "fixtures" / "examples"
