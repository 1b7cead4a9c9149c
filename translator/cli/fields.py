"""``ttx fields``: the fields of the spec, and the options behind them in each framework."""

from __future__ import annotations

import argparse

from translator.cli.common import Subparsers, print_json, print_table
from translator.errors import UsageError
from translator.native import is_option


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "fields",
        help="list the fields of the spec",
        description="Lists the fields of the spec with what they touch and the options of each framework that feed "
        "them: a table on a terminal, tab-separated lines otherwise.",
        allow_abbrev=False,
    )
    parser.add_argument("pattern", nargs="?", default="", help="part of a field, of its description or of an option")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def rows() -> list[dict[str, object]]:
    """One row per field: path, type, touches, description, options by framework."""
    from translator import frameworks
    from translator.spec import leaves

    known = frameworks.every()
    found: list[dict[str, object]] = []
    for path, leaf in leaves().items():
        options = {
            framework.name: [
                framework.spelling(address, framework.default_version)
                for address in framework.table(framework.default_version).options_of(path)
                if address in framework.table(framework.default_version).known or not is_option(address)
            ]
            for framework in known
        }
        found.append(
            {
                "field": path,
                "type": leaf.type_name,
                "touches": leaf.touches.value,
                "description": leaf.doc,
                "options": options,
                "fixed": {
                    framework.name: framework.table(framework.default_version).row_of_field[path].note
                    for framework in known
                    if not options[framework.name]
                },
            }
        )
    return found


def run(parsed: argparse.Namespace) -> int:
    """List; returns 0. Raises UsageError when nothing fits, with the nearest names."""
    wanted = parsed.pattern.lower()
    shown = [row for row in rows() if wanted in str(row).lower()]
    if not shown:
        from translator.names import nearest
        from translator.spec import leaves

        near = nearest(parsed.pattern, leaves())
        raise UsageError(
            f"no field matches {parsed.pattern!r}", fix=f"nearest: {', '.join(near)}" if near else "see ttx fields"
        )
    if parsed.format == "json":
        print_json({"schema_version": 1, "fields": shown})
        return 0
    from translator import frameworks

    print_table(
        ("field", "touches", "description", *(framework.title for framework in frameworks.every())),
        [
            (str(row["field"]), str(row["touches"]), str(row["description"]), *_options(row, *frameworks.names()))
            for row in shown
        ],
    )
    return 0


def _options(row: dict[str, object], *names: str) -> list[str]:
    options = row["options"]
    assert isinstance(options, dict)
    return [", ".join(options.get(name, [])) or "-" for name in names]
