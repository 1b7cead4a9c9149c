"""``ttx fields``: the fields of the spec, and the options behind them in each framework."""

from __future__ import annotations

import argparse

from translator.cli.common import print_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "fields",
        help="list the fields of the spec",
        description="Lists the fields of the spec with what they touch and the options of each framework that feed them.",
        allow_abbrev=False,
    )
    parser.add_argument("pattern", nargs="?", default="", help="part of a field, of its description or of an option")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def rows() -> list[dict[str, object]]:
    """One row per field: path, type, touches, description, options by framework."""
    from translator import frameworks
    from translator.spec import leaves

    known = [frameworks.get(name) for name in frameworks.BUILT_IN]
    found: list[dict[str, object]] = []
    for path, leaf in leaves().items():
        options = {
            framework.name: [
                framework.spelling(address, framework.default_version)
                for address in framework.table(framework.default_version).options_of(path)
                if address in framework.table(framework.default_version).known or address.startswith("@")
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
    """List; returns 0, or 1 when nothing fits."""
    wanted = parsed.pattern.lower()
    shown = [row for row in rows() if wanted in str(row).lower()]
    if parsed.format == "json":
        print_json({"schema_version": 1, "fields": shown})
        return 0 if shown else 1
    from rich.console import Console
    from rich.table import Table

    table = Table("field", "touches", "description", "Megatron-LM", "torchtitan", show_lines=False, box=None)
    for row in shown:
        options = row["options"]
        assert isinstance(options, dict)
        columns = [", ".join(options.get(name, [])) or "-" for name in ("megatron", "torchtitan")]
        table.add_row(str(row["field"]), str(row["touches"]), str(row["description"]), *columns)
    Console(soft_wrap=False).print(table)
    return 0 if shown else 1
