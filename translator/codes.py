"""All finding codes: title and documentation, gathered from where they are raised.

Findings of the readers are documented in modules called ``codes``; rules and differences by their docstrings.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

_MODULES = ("translator.shell.codes", "translator.pyconfig.codes", "translator.memory.codes")
CORE: dict[str, tuple[str, str]] = {
    "R040": (
        "file that cannot be read",
        "The file looks like a configuration, or was named as one, and cannot be read: it is missing, no text, too "
        "large, broken, or starts no training. Of files that a folder holds, those that merely need input, or are part "
        "of another script, are told as notes.\n"
        "Example: a TOML with an unclosed table header.\n"
        "Way out: mend the file; the message says where and why.",
    ),
    "R041": (
        "no configuration",
        "A file that was named is recognised as a configuration by none of the frameworks. Files that are found in a "
        "folder and are none are passed over.\n"
        "Example: `ttx check README.txt`.\n"
        "Way out: leave it out, or name what it is with --from FRAMEWORK[@VERSION].",
    ),
    "R042": (
        "ignore comment without effect",
        "A comment `# ttx: ignore=CODE` silences nothing: the finding is gone, or stands on another line. Told with "
        "--strict only.\n"
        "Example: `lr = 3e-4  # ttx: ignore=R014` where nothing is renamed.\n"
        "Way out: remove the comment.",
    ),
    "R043": (
        "configuration that a target cannot take",
        "The configuration cannot be written for a framework that --to or `targets` names.\n"
        "Example: a value that the neutral spec has no place for.\n"
        "Way out: what the message says, or leave the target out.",
    ),
    "R044": (
        "fault of ttx",
        "ttx itself failed while it checked this file. The other files are checked all the same; the exit code is 3.\n"
        "Example: a rule that did not expect a value.\n"
        "Way out: report it with the source; until then --ignore does not help, leave the file out.",
    ),
    "L290": (
        "the result does not say what the source says",
        "After writing, ttx reads its own output back and compares it with the source. Every difference must be "
        "admitted by the mapping row that caused it; this one is not, so it is a fault of ttx. The ledger counts it "
        "as a loss.\n"
        "Way out: report it with the source file; until then check the field by hand.",
    ),
}


def all_codes() -> dict[str, tuple[str, str]]:
    """Code -> (title, documentation), in order. Raises ValueError when two modules claim one code."""
    found: dict[str, tuple[str, str]] = dict(CORE)
    for code, entry in _entries():
        if found.setdefault(code, entry) is not entry:
            raise ValueError(f"code {code} is documented twice")
    return dict(sorted(found.items()))


def _entries() -> Iterator[tuple[str, tuple[str, str]]]:
    from translator import frameworks
    from translator.checks import MODULES
    from translator.checks.registry import rules_in
    from translator.differences.registry import differences
    from translator.knowledge import knowledge_of

    known = [knowledge_of(name) for name in frameworks.names()]
    for module in (*_MODULES, *(module for each in known for module in each.codes)):
        for code, entry in import_module(module).CODES.items():
            yield code, entry if isinstance(entry, tuple) else _text(entry)
    for module in (*MODULES, *(module for each in known for module in each.checks)):
        for code, rule in rules_in(module).items():
            yield code, (rule.title, rule.documentation)
    for code, difference in differences().items():
        yield code, (difference.title, difference.documentation)


def _text(entry: Any) -> tuple[str, str]:
    """A code whose parts are named (meaning, explanation, example, fix) in the form of the others."""
    title = entry.meaning.rstrip(".")
    example = f"Example: `{entry.example}`. " if entry.example else ""
    return title[:1].lower() + title[1:], f"{entry.explanation}\n{example}Way out: {entry.fix}"
