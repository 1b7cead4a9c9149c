"""What several commands share: source options, overrides, output files."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from translator.errors import UsageError
from translator.findings import Finding, Level
from translator.reading import ReadOptions


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Options that say how the source is to be read."""
    parser.add_argument("source", metavar="SRC", help="the configuration; - reads standard input")
    parser.add_argument(
        "overrides", nargs="*", metavar="FIELD=VALUE", help="fields of the spec set by hand (see ttx fields)"
    )
    parser.add_argument(
        "--from", dest="framework", metavar="FW[@V]", help="framework and version of the source; else the text decides"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a variable that the launch script is given"
    )
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="WORD",
        help="a positional argument of the launch script, in order",
    )
    parser.add_argument(
        "--args", default=None, metavar='"WORDS"', help="all positional arguments of the launch script in one string"
    )
    parser.add_argument("--launch", type=int, metavar="N", help="which launch of the script, from 1")
    parser.add_argument("--world-size", type=int, metavar="N", help="ranks of the run, where the source does not tell")


def read_options(parsed: argparse.Namespace) -> ReadOptions:
    """The options as the reader takes them. Raises UsageError on a malformed one."""
    if parsed.world_size is not None and parsed.world_size < 1:
        raise UsageError("--world-size must be 1 or more")
    return ReadOptions(
        variables=dict(_pair(text, "--set") for text in parsed.set),
        positional=(*_split(parsed.args), *parsed.arg),
        launch=parsed.launch,
        world_size=parsed.world_size,
        overrides=overrides(parsed.overrides),
    )


def _split(text: str | None) -> list[str]:
    import shlex

    if text is None:
        return []
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--args: {error}") from None


def _pair(text: str, what: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{what} takes NAME=VALUE, not {text!r}")
    return name, value


def overrides(texts: Sequence[str]) -> dict[str, Any]:
    """``field=value`` words; values are read as YAML (numbers, booleans, lists). Raises UsageError."""
    if not texts:
        return {}
    import yaml

    found: dict[str, Any] = {}
    for text in texts:
        name, value = _pair(text, "an override")
        try:
            found[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            found[name] = value
        if isinstance(found[name], str):
            # YAML takes 3e-4 for a word; a learning rate is none.
            with suppress(ValueError):
                found[name] = float(value)
    return found


def write_files(files: Mapping[Path, str], *, force: bool) -> None:
    """Write all files or none: each goes to a temporary file beside its place and is moved in when all are there.

    Raises UsageError when a file exists (without ``force``) or cannot be written.
    """
    for path in files:
        if path.is_dir():
            raise UsageError(f"{path} is a folder")
        if path.exists() and not force:
            raise UsageError(f"{path} exists", fix="overwrite it with --force")
    staged: list[tuple[str, Path]] = []
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            staged.append((temporary, path))
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            mode = 0o777 if path.suffix == ".sh" else 0o666
            os.chmod(temporary, mode & ~_umask())
        while staged:
            temporary, path = staged[0]
            os.replace(temporary, path)
            staged.pop(0)
    except OSError as error:
        raise UsageError(f"cannot write {error.filename or ''}: {error.strerror}") from None
    finally:
        for temporary, _ in staged:
            with suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def print_findings(findings: Sequence[Finding], *, notes: bool = True) -> None:
    """Findings on standard error, errors first."""
    order = {Level.ERROR: 0, Level.WARNING: 1, Level.NOTE: 2}
    for finding in sorted(findings, key=lambda finding: order[finding.level]):
        if notes or finding.level is not Level.NOTE:
            print(finding.as_text(), file=sys.stderr)


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    import json

    json.dump(document, sys.stdout, indent=1, default=str, ensure_ascii=False)
    sys.stdout.write("\n")
