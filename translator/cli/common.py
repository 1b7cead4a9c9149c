"""What several commands share: source options, overrides, output for people and for programs."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from translator.errors import UsageError
from translator.findings import Finding, Level
from translator.printable import one_line, say
from translator.reading import ReadOptions

Subparsers = Any  # argparse has no public name for it


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Options that say how the source is to be read."""
    parser.add_argument(
        "source",
        metavar="SRC",
        help="launch script, argument text, TOML, JSON, Python or spec file; - reads standard input",
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        default=[],
        metavar="FIELD=VALUE",
        help="fields of the spec set by hand (ttx fields lists them)",
    )
    group = parser.add_argument_group("reading the source")
    group.add_argument(
        "--from",
        dest="framework",
        metavar="FW[@V]",
        help="framework and version of the source (NAME or NAME@VERSION), or spec; else the text decides",
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an environment variable that the launch script is given; may be repeated",
    )
    group.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="WORD",
        help="a positional argument of the launch script, or a word of the command line over a configuration file; "
        "may be repeated, in order",
    )
    group.add_argument("--args", metavar='"WORDS"', help="positional arguments of the launch script in one string")
    group.add_argument("--launch", type=int, metavar="N", help="which launch of the script, counted from 1")
    group.add_argument("--world-size", type=int, metavar="N", help="number of ranks, where the source does not tell")
    group.add_argument(
        "--model",
        metavar="PATH|NAME",
        help="the model, where the source leaves it to another file: a Hugging Face config.json, a folder with one, "
        "or the name of an architecture",
    )


def read_options(parsed: argparse.Namespace) -> ReadOptions:
    """The options as the reader takes them. Raises UsageError on a malformed one."""
    for name, value in (("--world-size", parsed.world_size), ("--launch", parsed.launch)):
        if value is not None and not 1 <= value < 2**31:
            raise UsageError(f"{name} must be 1 or more")
    return ReadOptions(
        variables=variables(parsed.set),
        positional=(*_split(parsed.args), *parsed.arg),
        launch=parsed.launch,
        world_size=parsed.world_size,
        overrides=overrides(parsed.overrides),
        model=parsed.model,
    )


def _split(text: str | None) -> list[str]:
    import shlex

    if text is None:
        return []
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--args: {error}") from None


def variables(texts: Sequence[str]) -> dict[str, str]:
    """``NAME=value`` words of ``--set``. Raises UsageError."""
    return dict(_variable(text) for text in texts)


def _variable(text: str) -> tuple[str, str]:
    name, value = _pair(text, "--set")
    if not (name.isascii() and name.isidentifier()):
        raise UsageError(f"--set: {name!r} is no name of a shell variable")
    return name, value


def _pair(text: str, what: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{what} takes NAME=VALUE, not {text!r}")
    return name, value


def overrides(texts: Sequence[str]) -> dict[str, Any]:
    """``field=value`` words; values are read as YAML (numbers, booleans, lists). Raises UsageError."""
    found: dict[str, Any] = {}
    for text in texts:
        if "=" not in text:
            raise UsageError(f"{text!r} is no FIELD=VALUE", fix="one source at a time; ttx render merges spec files")
        name, value = _pair(text, "an override")
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    import yaml

    try:
        # No aliases: a few words could stand for billions of items.
        value = text if "&" in text or "*" in text or len(text) > 10_000 else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        value = text
    if isinstance(value, str):
        # YAML takes 3e-4 for a word; a learning rate is none.
        with suppress(ValueError):
            return float(text)
    return value if isinstance(value, int | float | str | list | dict) or value is None else text


def print_findings(findings: Sequence[Finding]) -> None:
    """Findings on standard error, errors first."""
    order = {Level.ERROR: 0, Level.WARNING: 1, Level.NOTE: 2}
    for finding in sorted(findings, key=lambda finding: order[finding.level]):
        say(finding.as_text())


def json_text(document: object) -> str:
    """One JSON document; infinities and other non-numbers become text, since JSON has none."""
    import json

    text = json.dumps(_finite(document), indent=1, default=str, ensure_ascii=False, allow_nan=False) + "\n"
    # A file name that is no UTF-8 has characters that cannot be written; JSON has escapes for them.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json_text(document))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on a terminal, tab-separated lines otherwise."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(map(one_line, row)))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, box=None, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    Console().print(table)
