"""All finding codes: title and documentation, gathered from where they are raised."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = (
    "translator.shell.codes",
    "translator.pyconfig.codes",
    "translator.frameworks.megatron.codes",
    "translator.frameworks.torchtitan.codes",
    "translator.frameworks.deepspeed.codes",
)
CORE: dict[str, tuple[str, str]] = {
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
    for name in _MODULES:
        for code, entry in import_module(name).CODES.items():
            if code in found:
                raise ValueError(f"code {code} is documented twice")
            found[code] = entry if isinstance(entry, tuple) else _text(entry)
    return dict(sorted(found.items()))


def _text(entry: Any) -> tuple[str, str]:
    """A code whose parts are named (meaning, explanation, example, fix) in the form of the others."""
    title = entry.meaning.rstrip(".")
    example = f"Example: `{entry.example}`. " if entry.example else ""
    return title[:1].lower() + title[1:], f"{entry.explanation}\n{example}Way out: {entry.fix}"
