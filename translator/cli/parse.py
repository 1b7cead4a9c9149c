"""``ttx parse``: a source becomes the neutral spec."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from translator.cli.common import add_source_options, print_findings, print_json, read_options, write_files
from translator.findings import Level


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "parse",
        help="print the neutral spec of a source",
        description="Reads SRC and prints the spec, complete with the defaults of its framework. Exit code: 0, 1 when there are "
        "findings at level error, 2 when the source cannot be read.",
        allow_abbrev=False,
    )
    add_source_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write; without it standard output")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.add_argument(
        "--format", choices=("yaml", "json"), default="yaml", help="yaml is a spec file; json adds origins and findings"
    )


def run(parsed: argparse.Namespace) -> int:
    """Parse; returns the exit code."""
    from translator.api import read
    from translator.spec_file import to_yaml

    reading = read(parsed.source, framework=parsed.framework, options=read_options(parsed))
    _ = reading.spec
    failed = any(finding.level is Level.ERROR for finding in reading.findings)
    if parsed.format == "json":
        from translator.spec import nest

        document = {
            "schema_version": 1,
            "framework": reading.framework,
            "version": reading.version,
            "spec": {**nest(reading.flat), "extras": reading.extras},
            "origins": {leaf: reading.origins[leaf].as_dict() for leaf in reading.flat if leaf in reading.origins},
            "findings": [finding.as_dict() for finding in reading.findings],
        }
        print_json(document)
        return int(failed)
    text = to_yaml(reading)
    if parsed.output:
        write_files({Path(parsed.output): text}, force=parsed.force)
    else:
        sys.stdout.write(text)
    print_findings(reading.findings)
    return int(failed)
