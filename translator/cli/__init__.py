"""The command line: one module per subcommand, each loaded when it is called."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from translator.errors import TtxError, UsageError
from translator.version import __version__

# Command -> (module, one line for --help).
COMMANDS = {
    "convert": ("convert", "translate a configuration for another framework or version"),
    "parse": ("parse", "read a configuration and print the neutral spec"),
    "render": ("render", "write a spec for a framework"),
    "fields": ("fields", "list the fields of the spec and the options behind them"),
    "catalogue": ("catalogue", "list, compare and extract the options of the frameworks"),
    "explain": ("explain", "explain a code, a field or an option"),
}


class _Parser(argparse.ArgumentParser):
    """Says what was expected in one line and exits with 2, as every wrong call does."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{self.prog}: {message}", fix=f"see {self.prog} --help")


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name.ljust(width)}  {line}" for name, (_, line) in COMMANDS.items()]
    return "\n".join(["commands:", *lines, "", "ttx COMMAND --help tells more of each."])


def _parser(command: str | None) -> _Parser:
    parser = _Parser(
        prog="ttx",
        description="Translates large-model training configurations between Megatron-LM and torchtitan, and says what "
        "the translation keeps, changes and loses.",
        epilog=_overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ttx {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    if command in COMMANDS:
        # Only the module of the command in hand is loaded: start-up time.
        import_module(f"translator.cli.{COMMANDS[command][0]}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code (0 well, 1 with losses or findings, 2 not read or called wrongly, 3 a fault)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments if not word.startswith("-")), None)
    try:
        parser = _parser(command)
        if command is not None and command not in COMMANDS:
            from translator.names import nearest

            near = nearest(command, COMMANDS)
            raise UsageError(
                f"no command {command!r}", fix=f"did you mean {' or '.join(near)}?" if near else "see ttx --help"
            )
        parsed = parser.parse_args(arguments)
        if parsed.command is None:
            parser.print_help()
            return 2
        run: Callable[[argparse.Namespace], int] = import_module(f"translator.cli.{COMMANDS[parsed.command][0]}").run
        return run(parsed)
    except TtxError as error:
        print(f"ttx: error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output went away (ttx ... | head); that is no fault.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except RecursionError:
        print("ttx: error: the input is nested too deeply", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def entry() -> None:
    """The console command."""
    sys.exit(main())
