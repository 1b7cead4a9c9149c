"""``ttx report``: what a migration changes, as a page to read and to send round."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from translator.cli.common import Subparsers, add_source_options, print_json, read_options
from translator.errors import UsageError
from translator.frameworks import BUILT_IN

if TYPE_CHECKING:
    from translator.reading import Reading
    from translator.report.model import Report
    from translator.source import Source

DESCRIPTION = """\
Draws up a report of a conversion (SRC --to FW), or of two configurations side by side (A B): what became of every
option, before and after, what the same words mean on both sides, checks, memory, compute, learning rate, layout,
communication, the commands to run, and what a person must still decide. Nothing is run, nothing is fetched.
"""
EPILOG = """\
Without -o the Markdown goes to standard output. -o FILE.html is one page that needs nothing else, -o FILE.md the
Markdown, -o DIR both.

exit code:
  0  nothing that touches training was lost; A and B train the same
  1  something was approximated, has no counterpart or needs your answer, or a framework would refuse its side;
     A and B do not train the same
  2  a source cannot be read, or the call is wrong

examples:
  ttx report train.sh --to torchtitan -o report.html
  ttx report train.sh --to torchtitan@0.2.2 --gpu b200 -o reports/
  ttx report old.sh new.toml -o report.md
"""
_NAME, _FOLDER = "report", "out/"


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "report",
        help="report what a migration changes",
        usage="%(prog)s [options] SRC --to FW[@V] [FIELD=VALUE ...]\n       %(prog)s [options] A B",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_source_options(parser)
    group = parser.add_argument_group("the report")
    group.add_argument(
        "--to",
        metavar="FW[@V]",
        help=f"target framework and version: {', '.join(BUILT_IN)} ... (@VERSION for another than usual)",
    )
    group.add_argument(
        "--from-b", dest="second", metavar="FW[@V]", help="framework and version of B, where it is not that of --from"
    )
    group.add_argument("-o", "--output", metavar="PATH", help="a folder, a file .html or a file .md")
    group.add_argument("--gpu", metavar="NAME", help="the card, such as h100-80gb (the default), b200 or mi300x")
    group.add_argument("--network", metavar="NAME", help="the links, such as dgx-h100 (the default) or nvlink4+pcie5")
    group.add_argument(
        "--nearest",
        action="store_true",
        help="of the nearest layout that the target can run, where it cannot say that of the source",
    )
    group.add_argument("--force", action="store_true", help="overwrite existing files")
    group.add_argument("--format", choices=("markdown", "json"), default="markdown", help="of standard output")


def run(parsed: argparse.Namespace) -> int:
    """Report; returns the exit code."""
    paths = _paths(parsed)
    report = _of_conversion(parsed) if parsed.to is not None else _of_two(parsed)
    if paths:
        from translator.cli.files import write_files

        write_files({path: _page(report, path.suffix) for path in paths}, force=parsed.force)
    if parsed.format == "json":
        print_json(report.as_dict())
    elif not paths:
        sys.stdout.write(_page(report, ".md"))
    return 0 if report.same_training and not report.refused else 1


def _page(report: Report, suffix: str) -> str:
    from translator.report import html, markdown

    return html.page(report) if suffix == ".html" else markdown.page(report)


def _paths(parsed: argparse.Namespace) -> list[Path]:
    """The files to write. Raises UsageError for a name of another kind."""
    if parsed.output is None:
        return []
    path = Path(parsed.output)
    if path.is_dir() or parsed.output.endswith(("/", os.sep)) or not path.suffix:
        return [path / f"{_NAME}.html", path / f"{_NAME}.md"]
    if path.suffix not in (".html", ".md"):
        raise UsageError(f"-o {parsed.output}: reports are written as .html or .md", fix="or name a folder: -o DIR/")
    return [path]


def _of_conversion(parsed: argparse.Namespace) -> Report:
    from translator import api
    from translator.cli.convert import target_of
    from translator.report.build import Choices, of_conversion
    from translator.report.model import Command

    if parsed.to in api.SPECS:
        raise UsageError("a report is about a framework, not the spec", fix=f"--to {' or --to '.join(BUILT_IN)}")
    if parsed.second is not None:
        raise UsageError("--from-b is for a second configuration, not for --to")
    target = _target(parsed, target_of)
    source = _load(parsed.source)
    done = api.convert(source, target, framework=parsed.framework, options=read_options(parsed), nearest=parsed.nearest)
    line = _convert_line(parsed, source, f"{done.target}@{done.version}")
    commands = Command("convert it", line), Command("check the result", f"ttx check {_FOLDER}")
    choices = Choices(parsed.gpu or _preferred(), parsed.network, commands, _FOLDER)
    return of_conversion(source, done, choices)


def _target(parsed: argparse.Namespace, target_of: object) -> str:
    """The target with its version; the suffix of -o is that of the report and says nothing of the target."""
    assert callable(target_of)
    found: str = target_of(argparse.Namespace(to=parsed.to, output=None, into=None))
    return found


def _of_two(parsed: argparse.Namespace) -> Report:
    import shlex

    from translator import api
    from translator.report.build import Choices, of_two
    from translator.report.model import Command

    words = parsed.overrides
    if len(words) != 1 or ("=" in words[0] and not os.path.exists(words[0])):
        raise UsageError("nothing to compare with", fix="--to FRAMEWORK for a conversion, or a second configuration")
    if parsed.source == "-" and words[0] == "-":
        raise UsageError("only one of the two can be standard input")
    parsed.overrides = []
    left, right = _load(parsed.source), _load(words[0])
    options = read_options(parsed)
    one = api.read(left, framework=parsed.framework, options=options)
    other = _second(right, parsed.second or parsed.framework, parsed)
    commands = (Command("compare the values", f"ttx diff {shlex.join((left.name, right.name))}"),)
    return of_two((left, right), (one, other), Choices(parsed.gpu or _preferred(), parsed.network, commands))


def _second(source: Source, framework: str | None, parsed: argparse.Namespace) -> Reading:
    """B: what is said for a launch script of A is not said to it."""
    from translator import api
    from translator.reading import ReadOptions

    return api.read(source, framework=framework, options=ReadOptions(world_size=parsed.world_size))


def _load(name: str) -> Source:
    """The source; one that is named from the root goes by its last name, since a page is sent round."""
    from translator.source import load

    source = load(name)
    return replace(source, name=Path(source.name).name) if os.path.isabs(source.name) else source


def _preferred() -> str | None:
    from translator.project import target_versions

    return target_versions().get("gpu")


def _convert_line(parsed: argparse.Namespace, source: Source, target: str) -> str:
    """The command that makes the result of which the report tells."""
    import shlex

    name = source.name if source.function is None else f"{source.name}:{source.function}"
    words = ["ttx", "convert", "-" if parsed.source == "-" else name, *parsed.overrides]
    model = Path(parsed.model).name if parsed.model is not None and os.path.isabs(parsed.model) else parsed.model
    for option, value in (("--from", parsed.framework), ("--args", parsed.args), ("--model", model)):
        words += [option, value] if value is not None else []
    for option, values in (("--set", parsed.set), ("--arg", parsed.arg)):
        words += [word for value in values for word in (option, value)]
    for option, number in (("--launch", parsed.launch), ("--world-size", parsed.world_size)):
        words += [option, str(number)] if number is not None else []
    words += ["--to", target, *(["--nearest"] if parsed.nearest else []), "-o", _FOLDER]
    return shlex.join(words)
