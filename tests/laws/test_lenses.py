"""Rows of one option and one leaf invert: what is written reads back."""

from __future__ import annotations

import typing
from typing import Any

import pytest
from cases import TARGETS, resolve
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from translator.compare import equal
from translator.mapping.rows import Row, choice, negated, same, scaled, switch
from translator.mapping.table import Table
from translator.mapping.views import NativeView, Sink, SpecView
from translator.spec import Spec

STRATEGIES: dict[type, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(0, 2**40),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=20),
    list: st.lists(st.integers(), max_size=4),
    dict: st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
}


def annotation(leaf: str) -> Any:
    """The declared type of a leaf, without None."""
    section: type[BaseModel] = Spec
    *parents, last = leaf.split(".")
    for name in parents:
        section = typing.cast("type[BaseModel]", section.model_fields[name].annotation)
    declared = section.model_fields[last].annotation
    return next(kind for kind in typing.get_args(declared) if kind is not type(None))


def values(leaf: str) -> st.SearchStrategy[Any]:
    """Everything that a leaf may be."""
    kind = annotation(leaf)
    if typing.get_origin(kind) is typing.Literal:
        return st.sampled_from(typing.get_args(kind))
    return STRATEGIES[typing.get_origin(kind) or kind]


def simple(table: Table) -> list[Row]:
    """The rows that hold one option and one leaf and are made by a constructor of rows."""
    return [
        row
        for row in table.rows
        if len(row.options) == 1 and len(row.fields) == 1 and row.write.__module__ == same.__module__
    ]


def round_trip(row: Row, value: Any, table: Table) -> tuple[Sink, Any]:
    """What a row writes for a value, and what it reads from that."""
    leaf = row.fields[0]
    sink = Sink(table.known, table.names, table.version, table.choices)
    row.write(SpecView({leaf: value}), sink)
    return sink, row.read(NativeView(sink.values, table.names, table.version))[leaf]


@pytest.mark.parametrize("target", TARGETS)
@given(data=st.data())
def test_what_is_written_reads_back(target: str, data: st.DataObject) -> None:
    framework, version = resolve(target)
    table = framework.table(version)
    for row in simple(table):
        leaf = row.fields[0]
        value = data.draw(values(leaf), label=leaf)
        sink, back = round_trip(row, value, table)
        assert leaf in sink.shortfalls or equal(value, back), f"{leaf}: {value!r} reads back as {back!r}"


@pytest.mark.parametrize("target", TARGETS)
def test_every_choice_is_said_or_admitted(target: str) -> None:
    framework, version = resolve(target)
    table = framework.table(version)
    rows = simple(table)
    assert len(rows) > 5
    for row in rows:
        leaf = row.fields[0]
        if typing.get_origin(annotation(leaf)) is not typing.Literal:
            continue
        for value in typing.get_args(annotation(leaf)):
            sink, back = round_trip(row, value, table)
            assert leaf in sink.shortfalls or back == value, f"{leaf}: {value!r} reads back as {back!r}"


@given(value=st.floats(1e-300, 1e300), factor=st.sampled_from((60.0, 1e-3, 1024.0)))
def test_scaled(value: float, factor: float) -> None:
    sink = Sink(frozenset({"a"}), {}, "1")
    row = scaled("a", "optimizer.lr", factor)
    row.write(SpecView({"optimizer.lr": value}), sink)
    back = row.read(NativeView(sink.values, {}, "1"))["optimizer.lr"]
    assert equal(back, value)
    assert equal(sink.values["a"], value * factor)


@pytest.mark.parametrize("value", [True, False])
def test_switches_and_their_opposites(value: bool) -> None:
    for row, native in ((switch("a", "loss.cpu_check_nan"), value), (negated("a", "loss.cpu_check_nan"), not value)):
        sink = Sink(frozenset({"a"}), {}, "1")
        row.write(SpecView({"loss.cpu_check_nan": value}), sink)
        assert sink.values == {"a": native}
        assert row.read(NativeView(sink.values, {}, "1")) == {"loss.cpu_check_nan": value}


def test_a_version_without_the_option_admits_it() -> None:
    sink = Sink(frozenset(), {}, "1")
    same("a", "optimizer.lr").write(SpecView({"optimizer.lr": 0.5}), sink)
    assert sink.shortfalls["optimizer.lr"].entry.is_loss


@pytest.mark.parametrize("value", [{"a": 1}, ["half", {"a": 1}], [["half"]]])
def test_a_section_is_none_of_the_choices(value: Any) -> None:
    row = choice("a", "precision.compute", {"half": "bf16", "single": "fp32"})
    assert row.read(NativeView({"a": value}, {}, "1")) == {"precision.compute": None}
    sink = Sink(frozenset({"a"}), {}, "1", {"a": frozenset({"half", "single"})})
    assert not sink.put("a", value)
    assert sink.put("a", ["half", "single"])
