"""Real configurations: converted to their own framework and version they stay what they are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cases import sources, spoken

from translator import api
from translator.compare import equal
from translator.conversion import Conversion
from translator.ledger import Entry, summary
from translator.native import GPUS_PER_NODE, NODES, PROGRAM, Native, Origin
from translator.reading import ReadOptions

pytestmark = pytest.mark.corpus
WORLD_SIZE = 64
# A script has a number of machines and a program, which the source leaves open.
LAUNCH = {NODES, GPUS_PER_NODE, PROGRAM, "launch.nodes", "launch.gpus_per_node", "launch.program"}


@cache
def conversions(folder: Path) -> list[tuple[Path, Conversion]]:
    """Every source converted to its own framework and version."""
    options = ReadOptions(world_size=WORLD_SIZE)
    found = []
    for path, address in sources(folder):
        reading = api.read(str(path), framework=address, options=options)
        found.append((path, api.convert(reading, address)))
    assert len(found) > 100
    return found


@pytest.fixture
def converted(corpus: Path) -> list[tuple[Path, Conversion]]:
    return conversions(corpus)


def unresolved(native: Native) -> set[str]:
    """Addresses whose value the files do not tell."""
    return {address for address, given in native.given.items() if given.missing is not None}


def native_of(found: Conversion) -> Native:
    native = found.source.native
    assert native is not None
    return native


def test_every_leaf_stays(converted: list[tuple[Path, Conversion]]) -> None:
    for path, found in converted:
        before, after = found.source.flat, found.back.flat
        unknown = {leaf for leaf, origin in found.source.origins.items() if origin.origin is Origin.UNKNOWN}
        differing = {leaf for leaf in before if not equal(before[leaf], after[leaf])}
        assert not differing - unknown - LAUNCH, path


def test_every_native_value_stays(converted: list[tuple[Path, Conversion]]) -> None:
    for path, found in converted:
        source, result = native_of(found), found.back.native
        assert result is not None
        allowed = LAUNCH | unresolved(source)
        # Values that follow from an unresolved one are not known either.
        for address, value in source.values.items():
            if address not in allowed:
                assert equal(value, result.values.get(address)), f"{path}: {address}"


def test_the_result_converts_to_itself(converted: list[tuple[Path, Conversion]]) -> None:
    for path, found in converted:
        again = api.convert(found.back, f"{found.target}@{found.version}")
        assert spoken(again.rendered.files) == spoken(found.rendered.files), path


def _expected(found: Conversion) -> Iterator[tuple[str, Any]]:
    native = native_of(found)
    for given in (*found.source.stated(), *native.unknown):
        yield given.written, given.place


def test_every_option_has_one_line(converted: list[tuple[Path, Conversion]]) -> None:
    for path, found in converted:
        expected = sorted(map(str, _expected(found)))
        lines = sorted(str((line.option, line.where)) for line in found.ledger if line.where is not None)
        assert lines == [text for text in expected if not text.endswith(", None)")], path
        assert sum(summary(found.ledger).values()) == len(found.ledger)


def test_every_differing_default_has_a_line(converted: list[tuple[Path, Conversion]]) -> None:
    for path, found in converted:
        told = {leaf for line in found.ledger for leaf in line.fields}
        differing = {leaf for leaf, value in found.source.flat.items() if not equal(value, found.back.flat[leaf])}
        stated = {leaf for leaf in differing if found.source.flat[leaf] is not None}
        assert stated <= told, path


def test_nothing_is_lost_at_home(converted: list[tuple[Path, Conversion]]) -> None:
    for path, found in converted:
        native = native_of(found)
        unknown = {given.written for given in native.unknown}
        for line in found.ledger:
            if line.entry is Entry.NEEDS_INPUT:
                given = next(given for given in native.given.values() if given.written == line.option)
                assert given.missing is not None, f"{path}: {line.option}"
            elif line.entry.is_loss:
                # No parser of Megatron-LM's takes an option that it does not know.
                assert line.option in unknown, f"{path}: {line.option}: {line.note}"
                assert found.target == "megatron"


def test_elsewhere_every_option_has_one_line(corpus: Path) -> None:
    targets = {"megatron": "torchtitan@0.2.2", "torchtitan": "megatron@0.18.0"}
    options = ReadOptions(world_size=WORLD_SIZE)
    for path, address in list(sources(corpus))[::7]:
        found = api.convert(api.read(str(path), framework=address, options=options), targets[address.partition("@")[0]])
        assert not [finding.message for finding in found.findings if finding.code == "L290"], path
        expected = sorted(text for text in map(str, _expected(found)) if not text.endswith(", None)"))
        lines = sorted(str((line.option, line.where)) for line in found.ledger if line.where is not None)
        assert lines == expected, path
