"""``ttx parse``: a source becomes the neutral spec."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from translator.cli.common import Subparsers, add_source_options, json_text, print_findings, read_options
from translator.findings import Level


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "parse",
        help="print the neutral spec of a source",
        description="Reads SRC and prints the spec, complete with the defaults of its framework. Exit code: 0, 1 when "
        "there are findings at level error, 2 when the source cannot be read or the call is wrong.",
        allow_abbrev=False,
    )
    add_source_options(parser)
    group = parser.add_argument_group("writing the spec")
    group.add_argument("-o", "--output", metavar="FILE", help="file to write; without it standard output")
    group.add_argument("--force", action="store_true", help="overwrite an existing file")
    group.add_argument(
        "--format", choices=("yaml", "json"), default="yaml", help="yaml is a spec file; json adds origins and findings"
    )


def run(parsed: argparse.Namespace) -> int:
    """Parse; returns the exit code."""
    from translator.api import read
    from translator.spec_file import to_yaml, tree_of

    reading = read(parsed.source, framework=parsed.framework, options=read_options(parsed))
    reading.check()
    if parsed.format == "json":
        text = json_text(
            {
                "schema_version": 1,
                "framework": reading.framework,
                "version": reading.version,
                "spec": {"extras": {}, **tree_of(reading)},
                "origins": {leaf: reading.origins[leaf].as_dict() for leaf in reading.flat if leaf in reading.origins},
                "findings": [finding.as_dict() for finding in reading.findings],
            }
        )
    else:
        text = to_yaml(reading)
    if parsed.output is not None:
        from translator.cli.files import write_files

        write_files({Path(parsed.output): text}, force=parsed.force)
    else:
        sys.stdout.write(text)
    if parsed.format == "yaml":
        print_findings(reading.findings)
    return int(any(finding.level is Level.ERROR for finding in reading.findings))
