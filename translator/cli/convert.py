"""``ttx convert``: a source becomes a configuration of another framework or version."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from translator.cli.common import Subparsers, add_source_options, print_json, read_options
from translator.errors import SourceError, UsageError
from translator.findings import Level
from translator.frameworks import BUILT_IN

if TYPE_CHECKING:
    from translator.conversion import Conversion

DESCRIPTION = """\
Reads SRC, writes it for another framework or version, reads the result back to prove it, and says what became of
every option. The result goes to standard output or -o, what there is to say to standard error. Nothing of SRC is run.
"""
EPILOG = """\
exit code:
  0  nothing that touches training was lost
  1  something was approximated, has no counterpart or needs your answer (--on-loss changes this),
     or a framework would refuse its side (findings at level error)
  2  the source cannot be read, or the call is wrong

examples:
  ttx convert train.sh --to torchtitan -o out/
  ttx convert train.sh --to torchtitan --set NNODES=4 --args "70b --fp8"
  ttx convert train.toml --to megatron batch.global_batch=1024 -o train.sh
  ttx convert train.sh --to torchtitan@0.3.0 -o out/
  ttx convert llama3_70b.toml --to torchtitan@0.3.0 --into config_registry.py:my_70b
  ttx convert config_registry.py:llama3_8b --to megatron -o train.sh
  ttx convert train.sh --to spec > spec.yaml
  ttx convert old.sh --from megatron@0.12.0 --to megatron@0.19.0 --ledger all
"""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "convert",
        help="translate a configuration",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_source_options(parser)
    add_target_options(parser)


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Options that say what is written, where, and what a loss means."""
    group = parser.add_argument_group("writing the result")
    group.add_argument(
        "--to",
        required=True,
        metavar="FW[@V]",
        help=f"target framework and version: {', '.join(BUILT_IN)} ... (@VERSION for another than usual), or spec",
    )
    group.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="a file (a name with a suffix) for the configuration, or a folder for all files of the result",
    )
    group.add_argument(
        "--into",
        metavar="FILE.py[:NAME]",
        help="add the configuration, called NAME, to an existing Python registry and leave the rest as it is",
    )
    group.add_argument(
        "--nearest",
        action="store_true",
        help="write the nearest layout that the target can run, where it cannot say that of the source",
    )
    group.add_argument("--force", action="store_true", help="overwrite existing files")
    group.add_argument(
        "--on-loss",
        choices=("ignore", "warn", "error"),
        default="warn",
        help="what a loss that touches training means: nothing, exit code 1 (default), or no output and exit code 1",
    )
    group.add_argument(
        "--ledger",
        choices=("losses", "all", "none"),
        default="losses",
        help="which ledger lines are printed (default: losses)",
    )
    group.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="json prints one document on standard output: files, ledger, findings, summary",
    )


def run(parsed: argparse.Namespace) -> int:
    """Convert; returns the exit code."""
    from translator.api import convert

    target = target_of(parsed)
    options = read_options(parsed)
    done = convert(parsed.source, target, framework=parsed.framework, options=options, nearest=parsed.nearest)
    return finish(done, parsed)


def target_of(parsed: argparse.Namespace) -> str:
    """The target with its version: as said, else by the suffix of ``-o``, else as pyproject.toml has it."""
    from translator.api import SPECS
    from translator.frameworks import with_version
    from translator.project import target_versions

    target: str = parsed.to
    if "@" in target or target in SPECS:
        return target
    into = _registry(parsed.into)[0] if parsed.into is not None else None
    return with_version(target, parsed.output or into, target_versions())


def _registry(into: str) -> tuple[str, str]:
    """The file and the name of ``--into``. Raises UsageError for a name that is none."""
    path, colon, name = into.rpartition(":")
    if not colon or "/" in name or "\\" in name:
        return into, ""
    from keyword import iskeyword

    if not path or not name.isidentifier() or iskeyword(name):
        raise UsageError(f"--into {into}: {name!r} is no name of a function")
    return path, name


def finish(done: Conversion, parsed: argparse.Namespace) -> int:
    """Write the result and say what became of the source; returns the exit code."""
    from translator.api import advice, differences

    refused = parsed.on_loss == "error" and done.alters_training
    missing = [] if refused else _deliver(done, parsed)
    findings, other = [*done.findings, *advice(done.source)], differences(done)
    if parsed.format == "json":
        document = {**done.as_dict(), "findings": [finding.as_dict() for finding in (*findings, *other)]}
        print_json({**document, "files": {}} if refused else document)
    else:
        from translator.cli.summary import tell

        tell(done, findings, other, ledger=parsed.ledger, refused=refused, missing=missing)
    lossy = done.alters_training and parsed.on_loss != "ignore"
    return 1 if lossy or any(finding.level is Level.ERROR for finding in findings) else 0


def _deliver(done: Conversion, parsed: argparse.Namespace) -> list[str]:
    """Write the result; returns the names of files that hold a part of it and were not written."""
    rendered = done.rendered
    if parsed.into is not None:
        _insert(done, parsed)
        return []
    if parsed.output is None:
        if parsed.format == "text":
            sys.stdout.write(rendered.files[rendered.main])
        return [*done.sink.files, *rendered.needed]
    from translator.cli.files import write_files

    target = Path(parsed.output)
    if target.is_dir() or parsed.output.endswith("/") or not (_is_file_name(target) or target.exists()):
        write_files({target / name: text for name, text in rendered.files.items()}, force=parsed.force)
        return []
    _check_name(done.target, target.name)
    beside = {target.parent / name: text for name, text in done.sink.files.items()}
    write_files({target: rendered.files[rendered.main], **beside}, force=parsed.force)
    return list(rendered.needed)


def _check_name(target: str, name: str) -> None:
    """Raises UsageError for the name of a file that the framework would not find."""
    from translator.api import SPECS
    from translator.frameworks import get
    from translator.frameworks.base import NamesFiles

    framework = None if target in SPECS else get(target)
    if isinstance(framework, NamesFiles):
        framework.check_file_name(name)


def _insert(done: Conversion, parsed: argparse.Namespace) -> None:
    """Add the result to a file that is there. Raises UsageError and SourceError, and then writes nothing."""
    from translator.api import SPECS
    from translator.cli.files import write_files
    from translator.frameworks import get
    from translator.frameworks.base import Inserting

    name, wanted = _registry(parsed.into)
    if parsed.output is not None:
        raise UsageError("-o and --into exclude each other")
    framework = get(done.target) if done.target not in SPECS else None
    if not isinstance(framework, Inserting):
        raise UsageError(f"--into: {done.target} has no file that holds several configurations", fix="-o PATH")
    path = Path(name)
    try:
        existing = path.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise UsageError(f"cannot read {name}: {reason}", fix="-o writes a new file") from None
    try:
        text, function = framework.insert(existing, done.rendered, wanted)
    except SourceError as error:
        raise SourceError(
            f"{name}: {error.message}", fix=f"--into {name}:NAME" if not error.fix else error.fix
        ) from None
    write_files({path: text}, force=True)
    print(f"added {function} to {name}", file=sys.stderr)


def _is_file_name(path: Path) -> bool:
    """Whether a name that does not exist yet means a file: it has a suffix, and one that is no number (llama3.1)."""
    return bool(path.suffix) and not path.suffix[1:].isdigit()
