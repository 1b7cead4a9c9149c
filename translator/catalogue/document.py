"""Writes catalogues, flavor tables and histories: stable, compact, one option per line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from translator.catalogue.model import FIELD_ACTION, SCHEMA_VERSION, Catalogue, Entry

Span = list[str | None]


def encode_entry(entry: Entry) -> dict[str, Any]:
    """The JSON row of an entry; what has its default is left out."""
    row: dict[str, Any] = {"address": entry.address}
    if entry.flags:
        row["flags"] = list(entry.flags)
    row["action"] = entry.action
    row["kind"] = entry.kind
    optional: dict[str, Any] = {
        "type": entry.type_name if entry.type_name != entry.kind else None,
        "default": _json(entry.default),
        "dynamic": entry.dynamic,
        "choices": None if entry.choices is None else list(entry.choices),
        "arity": entry.arity,
        "const": entry.const,
        "optional": entry.optional or None,
        "conditional": entry.conditional,
    }
    row.update((key, value) for key, value in optional.items() if value is not None)
    row["source"] = entry.source
    return row


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _block(name: str, lines: Sequence[str], brackets: str) -> str:
    body = ",\n".join(lines)
    return f"{_line(name)}: {brackets[0]}\n{body}\n{brackets[1]}" if lines else f"{_line(name)}: {brackets}"


def _document(head: dict[str, Any], blocks: Sequence[str]) -> str:
    lines = [f"{_line(key)}: {_line(value)}" for key, value in head.items()]
    return "{\n" + ",\n".join([*lines, *blocks]) + "\n}\n"


def catalogue_text(framework: str, version: str, entries: Sequence[Entry]) -> str:
    """The text of ``schemas/<framework>/<version>.json``; entries must be in order of address."""
    head = {"schema_version": SCHEMA_VERSION, "framework": framework, "version": version}
    return _document(head, [_block("options", [_line(encode_entry(entry)) for entry in entries], "[]")])


def flavors_text(framework: str, version: str, families: dict[str, Any], aliases: dict[str, str]) -> str:
    """The text of ``schemas/<framework>/flavors-<version>.json``, one flavor per line."""
    head = {"schema_version": SCHEMA_VERSION, "framework": framework, "version": version}
    blocks = [
        _block(family, [f"{_line(name)}: {_line(item)}" for name, item in table.items()], "{}")
        for family, table in families.items()
    ]
    names = _block("aliases", [f"{_line(name)}: {_line(family)}" for name, family in aliases.items()], "{}")
    return _document(head, [names, '"families": {\n' + ",\n".join(blocks) + "\n}"])


def classes_text(framework: str, version: str, tables: dict[str, dict[str, Any]]) -> str:
    """The text of ``schemas/<framework>/classes-<version>.json``, one class or function per line."""
    head = {"schema_version": SCHEMA_VERSION, "framework": framework, "version": version}
    blocks = [
        _block(name, [f"{_line(key)}: {_line(item)}" for key, item in table.items()], "{}")
        for name, table in tables.items()
    ]
    return _document(head, blocks)


def _spans(catalogues: Sequence[Catalogue], names: Sequence[frozenset[str]]) -> dict[str, Span]:
    """First version with a name and first one without it again; names in every version are left out."""
    spans: dict[str, Span] = {}
    order = [catalogue.version for catalogue in catalogues]
    for name in sorted(frozenset().union(*names)):
        present = [name in group for group in names]
        if not all(present):
            first = present.index(True)
            last = len(present) - 1 - present[::-1].index(True)
            spans[name] = [order[first], order[last + 1] if last + 1 < len(order) else None]
    return spans


def _drift(catalogues: Sequence[Catalogue]) -> dict[str, dict[str, Any]]:
    """Addresses whose default changed, each with the version from which each default holds."""
    drift: dict[str, dict[str, Any]] = {}
    for address in sorted({name for catalogue in catalogues for name in catalogue.addresses()}):
        steps: dict[str, Any] = {}
        for catalogue in catalogues:
            if address in catalogue:
                default = catalogue.default(address)
                if not steps or not _same(list(steps.values())[-1], default):
                    steps[catalogue.version] = default
        if len(steps) > 1:
            drift[address] = steps
    return drift


def _same(left: Any, right: Any) -> bool:
    """Equal, and not merely by ``True == 1``; ``1`` and ``1.0`` are the same setting."""
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def renamed(old: Catalogue, new: Catalogue) -> dict[str, str]:
    """Addresses that went while one of their flags now stores elsewhere: old address to new."""
    found: dict[str, str] = {}
    for entry in old.entries:
        if entry.address in new or entry.action == FIELD_ACTION:
            continue
        for flag in entry.flags:
            heir = new.by_flag(flag)
            if heir is not None and heir.address not in old:
                found[entry.address] = heir.address
    return found


def _own_flags(catalogue: Catalogue) -> frozenset[str]:
    """Flags that are facts of their own, not spelt after the address."""
    return frozenset(flag for entry in catalogue.entries if entry.action != FIELD_ACTION for flag in entry.flags)


def history_text(framework: str, catalogues: Sequence[Catalogue]) -> str:
    """The text of ``schemas/<framework>/history.json`` from catalogues in order of version."""
    head = {
        "schema_version": SCHEMA_VERSION,
        "framework": framework,
        "versions": [catalogue.version for catalogue in catalogues],
    }
    addresses = _spans(catalogues, [frozenset(catalogue.addresses()) for catalogue in catalogues])
    flags = _spans(catalogues, [_own_flags(catalogue) for catalogue in catalogues])
    renames: dict[str, list[str]] = {}
    for old, new in pairwise(catalogues):
        renames.update((name, [heir, new.version]) for name, heir in renamed(old, new).items())
    drift = _drift(catalogues)
    parts: dict[str, dict[str, Any]] = {"addresses": addresses, "flags": flags, "renames": renames, "drift": drift}
    blocks = [
        _block(name, [f"{_line(key)}: {_line(_json(value))}" for key, value in part.items()], "{}")
        for name, part in parts.items()
    ]
    return _document(head, blocks)


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value
