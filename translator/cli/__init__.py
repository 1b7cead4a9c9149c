"""The command line: one module per subcommand, each loaded when it is called."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from translator.errors import TtxError, UsageError
from translator.printable import say
from translator.version import __version__

# Command -> (module, one line for --help).
COMMANDS = {
    "check": ("check", "say what is wrong with configurations, and what is slow"),
    "convert": ("convert", "translate a configuration for another framework or version"),
    "parse": ("parse", "read a configuration and print the neutral spec"),
    "render": ("render", "write a spec for a framework"),
    "fields": ("fields", "list the fields of the spec and the options behind them"),
    "catalogue": ("catalogue", "list, compare and extract the options of the frameworks"),
    "explain": ("explain", "explain a code, a field or an option"),
    "diff": ("diff", "compare two configurations by what they mean"),
    "report": ("report", "report what a migration changes, as a page to read and to send round"),
    "memory": ("memory", "estimate the memory of every rank, against a card"),
    "communication": ("communication", "tell what the ranks send each other in a step, and how long it takes"),
    "compare": ("compare", "tell how each framework does something, and where in its source to look"),
}
# Options whose value is passed on to a script, and may look like an option itself.
_VERBATIM = ("--arg", "--args", "--set")
# What argparse gives as a list; another value is an empty list where -- stood for it.
_LISTS = ("overrides", "sources", "paths", "set", "arg", "targets", "select", "ignore", "frameworks")


class _Parser(argparse.ArgumentParser):
    """Says what was expected in one line and exits with 2, as every wrong call does."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", fix=f"see {self.prog} --help")


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name.ljust(width)}  {line}" for name, (_, line) in COMMANDS.items()]
    return "\n".join(["commands:", *lines, "", "ttx COMMAND --help tells more of each."])


def _parser(command: str | None) -> _Parser:
    parser = _Parser(
        prog="ttx",
        description="Translates large-model training configurations between Megatron-LM, DeepSpeed and torchtitan, and "
        "says what the translation keeps, changes and loses.",
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


def _unknown_command(command: str) -> UsageError:
    from translator.names import nearest

    near = nearest(command, COMMANDS)
    return UsageError(f"no command {command!r}", fix=f"did you mean {' or '.join(near)}?" if near else "see ttx --help")


def _parse(arguments: Sequence[str]) -> argparse.Namespace | None:
    """The parsed arguments; None when no command is named. Raises UsageError, and SystemExit after --help."""
    command = next((word for word in arguments if not word.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        raise _unknown_command(command)
    parser = _parser(command)
    module = import_module(f"translator.cli.{COMMANDS[command][0]}") if command else None
    prepare: Callable[[list[str]], list[str]] = getattr(module, "prepare", list)
    parsed, rest = parser.parse_known_args(prepare(_joined(arguments)))
    # argparse leaves positional words that follow options unread.
    for name in ("overrides", "sources", "paths"):
        if hasattr(parsed, name):
            setattr(parsed, name, [*getattr(parsed, name), *(word for word in rest if not _is_option(word))])
            rest = [word for word in rest if _is_option(word)]
    if rest:
        raise _unknown_option(rest, parser, command)
    for name, value in vars(parsed).items():
        if (value == [] and name not in _LISTS) or (isinstance(value, list) and [] in value):
            raise UsageError(f"ttx {command}: -- is no value of an option", fix=f"see ttx {command} --help")
    return parsed if parsed.command is not None else None


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _joined(arguments: Sequence[str]) -> list[str]:
    """``--args "-v"`` as ``--args=-v``, since argparse takes the second word for an option."""
    joined: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return [*joined, word, *words]
        value = next(words, None) if word in _VERBATIM else None
        joined.append(word if value is None else f"{word}={value}")
    return joined


def _unknown_option(rest: Sequence[str], parser: argparse.ArgumentParser, command: str | None) -> UsageError:
    from translator.names import nearest

    where = f"ttx {command}" if command else "ttx"
    near = nearest(rest[0].partition("=")[0], _options(parser)) if rest[0].startswith("--") else []
    fix = f"did you mean {' or '.join(near)}?" if near else f"see {where} --help"
    return UsageError(f"{where}: unknown argument {rest[0]!r}", fix=fix)


def _options(parser: argparse.ArgumentParser) -> Iterable[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _options(below)
        else:
            yield from (option for option in action.option_strings if option.startswith("--"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code.

    0 is well, 1 says losses or findings, 2 that something could not be read or was called wrongly, 3 is a fault of ttx.
    """
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except TtxError as error:
        say(f"ttx: error: {error}")
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output went away (ttx ... | head); that is no fault.
        _discard_output()
        return 0
    except OSError as error:
        say(f"ttx: error: {error.strerror or error}")
        _discard_output()
        return 2
    except RecursionError:
        say("ttx: error: the input is nested too deeply")
        return 2
    except MemoryError:
        say("ttx: error: the input needs too much memory")
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _fault(error)
    return code


def _run(arguments: list[str]) -> int:
    try:
        parsed = _parse(arguments)
    except SystemExit as done:  # argparse, after --help and --version
        return int(done.code or 0)
    if parsed is None:
        print(_parser(None).format_help(), end="", file=sys.stderr)
        return 2
    run: Callable[[argparse.Namespace], int] = import_module(f"translator.cli.{COMMANDS[parsed.command][0]}").run
    return run(parsed)


def _fault(error: Exception) -> int:
    if os.environ.get("TTX_DEBUG"):
        raise error
    say(f"ttx: internal error: {type(error).__name__}: {error}")
    say("This is a fault of ttx; please report it with the source. TTX_DEBUG=1 shows where it happened.")
    return 3


def _discard_output() -> None:
    """Lead standard output nowhere, so that the interpreter does not stumble over it when it ends."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def entry() -> None:
    """The console command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no reason to stop
    sys.exit(main())
