"""Reports of real-sized migrations are what is stored beside the examples.

``pytest tests/golden tests/report --accept`` stores the present ones; review the difference before it is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_support import Migration, migrations, stored_folders

# One page is stored whole; the others differ by their data alone, which the Markdown holds.
PAGE = "llama3-8b-megatron-to-torchtitan@0.2.2"


@pytest.mark.parametrize("migration", migrations(), ids=lambda migration: migration.case.name)
def test_report(
    migration: Migration, accept: bool, ttx: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(migration.case.folder)
    result = ttx(*migration.words(), "-o", tmp_path / "out")
    assert (result.code, result.out, result.err) == (int(migration.case.convert().alters_training), "", "")
    names = ["report.html", "report.md"] if migration.case.name == PAGE else ["report.md"]
    found = {name: (tmp_path / "out" / name).read_text(encoding="utf-8") for name in names}
    if accept:
        migration.stored.mkdir(exist_ok=True)
        for name, text in found.items():
            (migration.stored / name).write_text(text, encoding="utf-8")
    assert sorted(path.name for path in migration.stored.iterdir()) == names
    for name, text in found.items():
        assert text == (migration.stored / name).read_text(encoding="utf-8"), name


def test_every_stored_report_is_of_a_migration() -> None:
    assert stored_folders() == {migration.stored for migration in migrations()}
