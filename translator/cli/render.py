"""``ttx render``: one or several spec files become a configuration of a framework."""

from __future__ import annotations

import argparse

from translator.cli import convert
from translator.cli.common import Subparsers, overrides
from translator.errors import UsageError


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "render",
        help="write a spec for a framework",
        description="Merges spec files from left to right, applies FIELD=VALUE, and writes the result for a framework. "
        "Output and exit codes are those of ttx convert.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "sources", nargs="+", metavar="SPEC|FIELD=VALUE", help="spec files in YAML, and fields set by hand"
    )
    convert.add_target_options(parser)


def run(parsed: argparse.Namespace) -> int:
    """Render; returns the exit code."""
    from translator.api import convert as convert_source
    from translator.source import load
    from translator.spec_file import read_spec

    names = [word for word in parsed.sources if "=" not in word]
    values = overrides([word for word in parsed.sources if "=" in word])
    if not names:
        raise UsageError("no spec file to render", fix="name one before FIELD=VALUE; - reads standard input")
    reading = read_spec([load(name) for name in names], values)
    return convert.finish(convert_source(reading, convert.target_of(parsed), nearest=parsed.nearest), parsed)
