"""Launch scripts read without running them: bash evaluated statically, with the place of every word.

`evaluate` reads a script, `split_words` a plain list of arguments. Nothing of the user's is ever executed: no
command, no substitution, no file beyond what ``read_sibling`` hands over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from translator.findings import Finding, Level, Place
from translator.shell.values import Launch, ScriptReading, Source, Unknown, Word, WrittenFile

if TYPE_CHECKING:
    from translator.shell.launchers import Launcher

__all__ = ["Launch", "ScriptReading", "Unknown", "Word", "WrittenFile", "evaluate", "split_words"]


def evaluate(
    text: str,
    file: str,
    *,
    positional: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    read_sibling: Callable[[str], str | None] | None = None,
    launchers: Mapping[str, Launcher] | None = None,
) -> ScriptReading:
    """Read a launch script as bash would run it, in an environment that holds only ``variables``.

    ``positional`` are the script's own arguments. ``read_sibling`` gives the text of a file that the script sources
    or calls (by the path as written), or None. ``launchers`` are the programs known to start others, by name; without
    them those that belong to no framework. Values that only the machine knows (``$HOSTNAME``, a scheduler's
    variables, another program's output) stay `Unknown`. Never raises for bad input: trouble is in the findings.
    """
    from translator.shell.interp import Interpreter
    from translator.shell.launchers import LAUNCHERS

    early: list[Finding] = []
    if "\x00" in text[:100_000]:
        return ScriptReading((), (Finding("R060", Level.ERROR, "this is not text", "", Place(file, 1, 1)),))
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        early.append(
            Finding("R070", Level.WARNING, "the script has Windows line ends", "run dos2unix", Place(file, 1, 1))
        )
    interpreter = Interpreter(
        Source(text, file), positional, variables or {}, read_sibling, LAUNCHERS if launchers is None else launchers
    )
    interpreter.run()
    nowhere = Place(file, 1, 1)
    final = {
        name: value.word(nowhere) for name, var in interpreter.state.vars.items() if (value := var.scalar) is not None
    }
    return ScriptReading(
        tuple(interpreter.launches), tuple(early + interpreter.findings), tuple(interpreter.files), final
    )


def split_words(text: str, file: str) -> tuple[Word, ...]:
    """Words of plain argument text: quotes, backslashes, continuations and comments as in a shell.

    Variables are looked up nowhere, so ``$NAME`` stays an unknown part of its word. Raises `SourceError` when there are
    more words than a command line can hold.
    """
    from translator.shell.plain import plain

    return plain(text, file)
