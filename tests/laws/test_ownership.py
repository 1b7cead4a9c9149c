"""Every leaf and every option has one owner, and every owner says why it does what it does."""

from __future__ import annotations

import pytest
from cases import TARGETS, resolve, tables

from translator.catalogue import load
from translator.errors import InternalError
from translator.mapping.rows import absent, implied, own, same
from translator.mapping.table import Table
from translator.spec import leaves
from translator.spec.touches import Touches


@pytest.mark.parametrize("target", TARGETS)
def test_one_owner(target: str) -> None:
    framework, version = resolve(target)
    table = framework.table(version)
    fields = [leaf for row in table.rows for leaf in row.fields]
    assert sorted(fields) == sorted(leaves())
    options = [table.names.get(option, option) for row in table.rows for option in row.options]
    assert len(options) == len(set(options))
    assert set(load(framework.name, version).addresses()) <= set(options)


def test_every_option_belongs_to_some_version() -> None:
    """A misspelt option in a row would be owned by nobody and written never."""
    for target in TARGETS:
        framework, version = resolve(target)
        known = {address for v in framework.versions for address in framework.table(v).known}
        for row in framework.table(version).rows:
            # What begins with @ is a fact of the launch, or what settling derives.
            assert {option for option in row.options if not option.startswith("@")} <= known, row.options


@pytest.mark.parametrize("target", TARGETS)
def test_influences_name_what_the_row_owns(target: str) -> None:
    framework, version = resolve(target)
    for row in framework.table(version).rows:
        assert set(row.influences) <= set(row.options)
        for option, fed in row.influences.items():
            assert set(fed) <= set(row.fields), option


def test_rows_that_lose_say_why() -> None:
    lossy = tuple(f"{kind.__name__}." for kind in (own, implied, absent))
    for table in tables():
        rows = [row for row in table.rows if row.write.__qualname__.startswith(lossy)]
        assert any(not row.options for row in rows)
        for row in rows:
            assert row.note, f"{table.framework}: {row.options[:1] or row.fields} has no note"


def test_a_table_refuses_two_owners() -> None:
    rows = [same("a", leaf) for leaf in leaves()]
    with pytest.raises(InternalError, match="option a has two rows"):
        Table("x", "1", rows, known=["a"])


def test_a_table_refuses_an_option_without_an_owner() -> None:
    rows = [same(leaf, leaf) for leaf in leaves()]
    with pytest.raises(InternalError, match="option b has no row"):
        Table("x", "1", [*rows, own(["c"], Touches.NOTHING, "none")], known=["b"])


def test_a_table_refuses_a_leaf_without_an_owner() -> None:
    rows = [same(leaf, leaf) for leaf in list(leaves())[1:]]
    with pytest.raises(InternalError, match=f"leaf {next(iter(leaves()))} has no row"):
        Table("x", "1", rows, known=[])
