"""Real DeepSpeed configurations, converted everywhere; those of other frameworks, converted to DeepSpeed and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from translator import api
from translator.compare import equal
from translator.conversion import Conversion
from translator.errors import SourceError
from translator.native import Origin
from translator.reading import Reading, ReadOptions

pytestmark = pytest.mark.corpus
OPTIONS = ReadOptions(world_size=8)
TARGETS = ("megatron@0.18.0", "torchtitan@0.2.2", "torchtitan@0.3.0", "deepspeed@0.16.9", "deepspeed@0.19.2",
           "deepspeed@0.19.8")  # fmt: skip
VERSIONS = ("deepspeed@0.16.9", "deepspeed@0.19.2", "deepspeed@0.19.8")


def readings(folder: Path) -> Iterator[tuple[Path, Reading]]:
    """Every configuration but gpt-neox's, which is refused in one line."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix in (".tsv", ".md"):
            continue
        try:
            reading = api.read(str(path), options=OPTIONS)
        except SourceError:
            assert path.suffix == ".yml", path
            continue
        assert reading.framework == "deepspeed", path
        yield path, reading


def unadmitted(done: Conversion) -> list[str]:
    return [finding.message for finding in done.findings if finding.code == "L290"]


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_lost_unsaid(corpus: Path, target: str) -> None:
    count = 0
    for path, reading in readings(corpus / "deepspeed"):
        native = reading.native
        assert native is not None
        try:
            done = api.convert(reading, target)
        except SourceError:
            # What is left of a template may be nothing that the target has an option for.
            assert "TEMPLATE" in path.name, path
            continue
        assert not unadmitted(done), path
        lines = [line for line in done.ledger if line.where is not None]
        assert len(lines) == len([g for g in (*native.given.values(), *native.unknown) if g.place is not None]), path
        count += 1
    assert count > 110


def test_at_home_it_stays_what_it_is(corpus: Path) -> None:
    for path, reading in readings(corpus / "deepspeed"):
        done = api.convert(reading, "deepspeed@0.19.2")
        assert reading.table is not None
        # What a row reads follows from all its options.
        unknown = {
            leaf
            for row in reading.table.rows
            if any(reading.origins[leaf].origin is Origin.UNKNOWN for leaf in row.fields)
            for leaf in row.fields
        }
        differing = {leaf for leaf, value in reading.flat.items() if not equal(value, done.back.flat[leaf])}
        assert not differing - unknown, path


@pytest.mark.parametrize("target", VERSIONS)
@pytest.mark.parametrize("source", ["megatron", "torchtitan"])
def test_to_deepspeed_and_back(corpus: Path, source: str, target: str) -> None:
    count = 0
    for path in sorted((corpus / source).rglob("*")):
        if not path.is_file() or path.suffix in (".tsv", ".md"):
            continue
        try:
            reading = api.read(str(path), options=ReadOptions(world_size=64))
        except SourceError:
            continue
        for nearest in (False, True):
            there = api.convert(reading, target, nearest=nearest)
            back = api.convert(there.back, f"{reading.framework}@{reading.version}")
            assert not unadmitted(there), path
            assert not unadmitted(back), path
        count += 1
    assert count > 25
