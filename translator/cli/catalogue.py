"""``ttx catalogue``: extract, show and compare the catalogues of upstream options."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from translator.cli.common import Subparsers, print_json, print_table
from translator.errors import UsageError

if TYPE_CHECKING:
    from translator.catalogue.compare import CatalogueDiff
    from translator.catalogue.model import Entry

# Files beside a catalogue of options that a framework may have generated from its source.
KINDS = {
    "flavors": "the table of named models",
    "configs": "the shipped configurations",
    "classes": "the configuration classes",
}


def add_parser(subparsers: Subparsers) -> None:
    """Registers the command and its subcommands."""
    parser = subparsers.add_parser("catalogue", help="extract, show or compare the options that a framework knows")
    actions = parser.add_subparsers(dest="catalogue_command", required=True, metavar="ACTION")

    extract = actions.add_parser("extract", help="generate a catalogue from upstream source, which is never imported")
    extract.add_argument("framework")
    extract.add_argument("version")
    extract.add_argument("--source", required=True, metavar="DIR", help="root of the source tree or unpacked wheel")
    extract.add_argument("-o", "--output", metavar="FILE", help="write here instead of standard output")
    kind = extract.add_mutually_exclusive_group()
    for name, meaning in KINDS.items():
        kind.add_argument(f"--{name}", action="store_const", dest="kind", const=name, help=f"{meaning} instead")

    show = actions.add_parser("show", help="list options, with types, defaults and choices")
    show.add_argument("framework", metavar="FRAMEWORK[@VERSION]")
    show.add_argument(
        "pattern", nargs="?", default="", help="part of a flag (without its dashes) or address, or a glob"
    )
    _add_format(show)

    compare = actions.add_parser("diff", help="what changed between two versions")
    compare.add_argument("framework")
    compare.add_argument("old", metavar="A")
    compare.add_argument("new", metavar="B")
    _add_format(compare)

    past = actions.add_parser("history", help="generate the history of all catalogues of a framework")
    past.add_argument("framework")
    past.add_argument("-o", "--output", metavar="FILE", help="write here instead of standard output")


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit code. Raises `TtxError` for bad input."""
    command = {"extract": _extract, "show": _show, "diff": _diff, "history": _history}[args.catalogue_command]
    return command(args)


def _extract(args: argparse.Namespace) -> int:
    from translator.frameworks.base import OPTIONS
    from translator.frameworks.catalogues import generate

    _emit(generate(args.framework, args.version, Path(args.source), args.kind or OPTIONS), args.output)
    return 0


def _history(args: argparse.Namespace) -> int:
    from translator.catalogue.document import history_text
    from translator.catalogue.model import load, versions

    catalogues = [load(args.framework, version) for version in versions(args.framework)]
    _emit(history_text(args.framework, catalogues), args.output)
    return 0


def _emit(text: str, output: str | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    from translator.cli.files import write_files

    write_files({Path(output): text}, force=True)


def _show(args: argparse.Namespace) -> int:
    from translator.catalogue.document import encode_entry
    from translator.catalogue.model import nearest
    from translator.frameworks.catalogues import named

    name, _, version = args.framework.partition("@")
    catalogue = named(name, version)
    found = [entry for entry in catalogue.entries if _matches(entry, args.pattern)]
    if not found:
        word = args.pattern if set("._") & set(args.pattern) else f"--{args.pattern.lstrip('-')}"
        close = ", ".join(nearest(word, catalogue))
        raise UsageError(
            f"no option of {name} {catalogue.version} matches {args.pattern!r}",
            fix=f"nearest: {close}" if close else "",
        )
    if args.format == "json":
        rows = [encode_entry(entry) for entry in found]
        print_json({"schema_version": 1, "framework": name, "version": catalogue.version, "options": rows})
        return 0
    print_table(("option", "kind", "default", "choices", "stored as"), [_cells(entry) for entry in found])
    return 0


def _matches(entry: Entry, pattern: str) -> bool:
    from fnmatch import fnmatchcase

    names = (entry.address, *entry.flags)
    if any(mark in pattern for mark in "*?["):
        return any(fnmatchcase(name, pattern) for name in names)
    return any(pattern in name for name in names)


def _cells(entry: Entry) -> tuple[str, ...]:
    from translator.catalogue.model import FIELD_ACTION

    several = f" ({entry.arity})" if entry.arity else ""
    default = json.dumps(entry.default) if entry.default_known else f"{json.dumps(entry.default)} ({entry.dynamic})"
    if entry.conditional:
        default += f" [only with {entry.conditional}]"
    choices = ", ".join(map(str, entry.choices or ()))
    option = entry.address if entry.action == FIELD_ACTION else ", ".join(entry.flags)
    stored = "" if entry.action == FIELD_ACTION else entry.address
    return option, f"{entry.type_name}{several}", default, choices, stored


def _diff(args: argparse.Namespace) -> int:
    from translator.catalogue.compare import diff
    from translator.frameworks.catalogues import named

    found = diff(named(args.framework, args.old), named(args.framework, args.new))
    if args.format == "json":
        print_json(found.as_dict())
    else:
        print_table(("change", "option", "old", "new"), _diff_rows(found))
    return 0


def _diff_rows(found: CatalogueDiff) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("removed", name, "", "") for name in found.removed]
    rows += [("added", name, "", "") for name in found.added]
    rows += [("renamed", new, old, new) for old, new in found.renamed.items()]
    rows += [(change.what, change.address, json.dumps(change.old), json.dumps(change.new)) for change in found.changed]
    return rows
