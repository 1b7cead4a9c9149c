"""A new option costs one field of the spec and one row in each table; nothing else lists the fields."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cases import TARGETS, resolve
from test_neutrality import PACKAGE, modules

from translator.cli.fields import rows as listed
from translator.conversion import convert
from translator.errors import InternalError
from translator.ledger import Entry
from translator.mapping.rows import Row, absent, implied
from translator.mapping.table import Table
from translator.native import Origin
from translator.reading import LeafOrigin, Reading
from translator.spec import Touches, index, leaves
from translator.spec_file import to_yaml

NEW = "model.flavour_of_the_month"
# A rule, a formula or a concept is about certain fields, and may name those that it needs.
RULES = ("checks", "comparison", "differences", "memory")
FIELD = {"path": NEW, "type": "int", "ge": 1, "touches": "memory", "doc": "what no framework has yet"}


@contextmanager
def one_more_field(folder: Path) -> Iterator[None]:
    """The spec with one field more: what generating the list of fields from changed models would give."""
    document = json.loads(index.schema_path(index.FILE).read_text(encoding="utf-8"))
    document["leaves"].append(FIELD)
    changed = folder / index.FILE
    changed.write_text(json.dumps(document), encoding="utf-8")
    before = leaves()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "schema_path", lambda *_: changed)
        leaves.cache_clear()
        assert leaves().keys() - before.keys() == {NEW}
        yield
    leaves.cache_clear()
    assert leaves().keys() == before.keys()


def extended(table: Table, *more: Row) -> Table:
    """The table with rows added."""
    return Table(
        table.framework,
        table.version,
        (*table.rows, *more),
        known=table.known,
        names=table.names,
        choices=table.choices,
    )


class Extended:
    """A framework whose table has rows of its own besides."""

    def __init__(self, framework: Any, version: str, *more: Row) -> None:
        self._framework = framework
        self._table = extended(framework.table(version), *more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._framework, name)

    def table(self, version: str) -> Table:
        assert version == self._table.version
        return self._table


@pytest.mark.parametrize("target", TARGETS)
def test_a_field_needs_one_row_in_every_table(target: str, tmp_path: Path) -> None:
    framework, version = resolve(target)
    table = framework.table(version)
    with one_more_field(tmp_path):
        with pytest.raises(InternalError, match=rf"leaf {NEW} has no row \(1 in all\)"):
            extended(table)
        with pytest.raises(InternalError, match=rf"leaf {NEW} has two rows \(1 in all\)"):
            extended(table, *[absent(NEW, "there is none")] * 2)
        assert extended(table, absent(NEW, "there is none")).options_of(NEW) == ()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("row", [absent(NEW, "there is none"), implied(NEW, 7, "it is 7")], ids=["absent", "implied"])
def test_one_row_is_enough_to_convert(target: str, row: Row, tmp_path: Path) -> None:
    known, version = resolve(target)
    known.table(version)
    with one_more_field(tmp_path):
        framework: Any = Extended(known, version, row)
        flat = {**dict.fromkeys(leaves()), "model.layers": 4, NEW: 3}
        origins = {leaf: LeafOrigin(Origin.EXPLICIT, leaf) for leaf, value in flat.items() if value is not None}
        reading = Reading("spec", "1", flat, origins)
        assert to_yaml(reading) == f"model:\n  layers: 4\n  {NEW.partition('.')[2]}: 3\n"
        found = convert(reading, framework, version, "spec.yaml", "spec")
        (line,) = [line for line in found.ledger if line.option == NEW]
        assert (line.entry, line.touches, line.note) == (Entry.UNSUPPORTED, Touches.MEMORY, row.note)
        assert not [finding for finding in found.findings if finding.code == "L290"]


def test_one_row_is_enough_to_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from translator import frameworks

    known = frameworks.every()
    for framework in known:
        framework.table(framework.default_version)
    with one_more_field(tmp_path):
        row = absent(NEW, "there is none")
        more = [Extended(framework, framework.default_version, row) for framework in known]
        monkeypatch.setattr(frameworks, "every", lambda: more)
        (found,) = [entry for entry in listed() if entry["field"] == NEW]
    assert (found["type"], found["touches"], found["description"]) == ("int", "memory", FIELD["doc"])
    assert found["fixed"] == {framework.name: "there is none" for framework in known}


def lists(path: Path) -> Iterator[tuple[int, set[str]]]:
    """Lists, sets and the like that hold nothing but fields of the spec, whole or without their section."""
    whole, by_section = set(leaves()), defaultdict(set)
    for leaf in whole:
        section, _, name = leaf.rpartition(".")
        by_section[section].add(name)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            items: list[ast.expr | None] = list(node.elts)
        elif isinstance(node, ast.Dict):
            items = list(node.keys)
        else:
            continue
        words = {item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)}
        named = [words <= names for names in (whole, *by_section.values())]
        if len(words) > 1 and len(words) == len(items) and any(named):
            yield node.lineno, words


ENGINE = [path for path in modules() if path.relative_to(PACKAGE).parts[0] not in RULES]


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_module_of_the_engine_lists_fields(path: Path) -> None:
    assert not list(lists(path))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("for leaf in ('batch.seq_len', 'batch.micro_batch'): pass", True),
        ("X = {'schedule', 'stages_per_rank'}", True),
        ("X = {'optimizer.lr': 1, 'optimizer.beta1': 2}", True),
        ("X = ['batch.seq_len']", False),
        ("X = ('name', 'batch.seq_len')", False),
    ],
)
def test_a_list_of_fields_is_found(text: str, found: bool, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(text, encoding="utf-8")
    assert bool(list(lists(path))) is found
