"""``ttx convert``: a source becomes a configuration of another framework or version."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from translator.cli.common import add_source_options, print_findings, print_json, read_options, write_files

if TYPE_CHECKING:
    from translator.conversion import Conversion
    from translator.ledger import LedgerLine


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "convert",
        help="translate a configuration",
        description="Reads SRC, writes it for another framework or version, reads the result back to prove it, and says what "
        "became of every option. Exit code: 0 when nothing that touches training was lost, 1 when something was, 2 when the "
        "source cannot be read or the call is wrong.",
        allow_abbrev=False,
    )
    add_source_options(parser)
    add_target_options(parser)


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Options that say what is written, where, and what a loss means."""
    parser.add_argument(
        "--to", required=True, metavar="FW[@V]", help="target framework and version, such as torchtitan@0.2.2"
    )
    parser.add_argument(
        "-o", "--output", metavar="PATH", help="file or folder to write; without it the result goes to standard output"
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.add_argument(
        "--on-loss",
        choices=("ignore", "warn", "error"),
        default="warn",
        help="what a loss that touches training means: nothing, exit code 1 (default), or no output at all",
    )
    parser.add_argument(
        "--ledger",
        choices=("losses", "all", "none"),
        default="losses",
        help="which ledger lines to print on standard error",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="json prints one document with files, ledger and findings",
    )


def run(parsed: argparse.Namespace) -> int:
    """Convert; returns the exit code."""
    from translator.api import convert

    return finish(convert(parsed.source, parsed.to, framework=parsed.framework, options=read_options(parsed)), parsed)


def finish(done: Conversion, parsed: argparse.Namespace) -> int:
    """Write the result and say what became of the source; returns the exit code."""
    refused = parsed.on_loss == "error" and done.alters_training
    if not refused:
        _deliver(done, parsed)
    if parsed.format == "json":
        print_json(done.as_dict())
    else:
        _tell(done, parsed, refused=refused)
    return 1 if done.alters_training and parsed.on_loss != "ignore" else 0


def _deliver(done: Conversion, parsed: argparse.Namespace) -> None:
    rendered = done.rendered
    if parsed.output is None:
        if parsed.format == "text":
            sys.stdout.write(rendered.files[rendered.main])
        return
    target = Path(parsed.output)
    if target.suffix and not target.is_dir():
        beside = {target.parent / name: text for name, text in rendered.files.items() if name.endswith(".py")}
        write_files({target: rendered.files[rendered.main], **beside}, force=parsed.force)
    else:
        write_files({target / name: text for name, text in rendered.files.items()}, force=parsed.force)


def _tell(done: Conversion, parsed: argparse.Namespace, *, refused: bool) -> None:
    from translator.ledger import summary

    print_findings(done.findings)
    counts = ", ".join(f"{count} {name.replace('_', '-')}" for name, count in summary(done.ledger).items() if count)
    print(
        f"{done.source.framework} {done.source.version} -> {done.target} {done.version}: {counts or 'nothing stated'}",
        file=sys.stderr,
    )
    shown = (
        []
        if parsed.ledger == "none"
        else done.ledger
        if parsed.ledger == "all"
        else [line for line in done.ledger if line.entry.is_loss]
    )
    for line in sorted(shown, key=lambda line: -line.touches.weight):
        print(_line(line), file=sys.stderr)
    extra = [name for name in done.rendered.files if name != done.rendered.main and name.endswith(".py")]
    if extra and parsed.output is None:
        print(f"The result needs {', '.join(extra)} beside it: write a folder with -o DIR.", file=sys.stderr)
    if refused:
        print("Nothing was written: something that touches training would be lost (--on-loss error).", file=sys.stderr)


def _line(line: LedgerLine) -> str:
    where = f"{line.where}: " if line.where else ""
    value = "" if line.where and isinstance(line.value, bool) else str(line.value)
    value = value if len(value) <= 60 else f"{value[:57]}..."
    result = f" -> {line.target}" if line.target else ""
    note = f" ({line.note})" if line.note else ""
    return f"  {line.entry.value} [{line.touches.value}] {where}{line.option} {value}{result}{note}"
