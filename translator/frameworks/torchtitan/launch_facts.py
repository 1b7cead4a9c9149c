"""What a configuration file cannot say itself, in comments: ``# ttx: key=value ...``.

``world_size`` (also ``nodes`` and ``gpus_per_node``), the ``version`` it was written for, and variables of the
environment (``env:NAME=value``, percent-encoded).
"""

from __future__ import annotations

from collections.abc import Iterable

from translator.findings import Finding, Level, Place
from translator.frameworks.torchtitan.values import shown
from translator.native import ENVIRONMENT, GPUS_PER_NODE, NODES, WORLD_SIZE, Given, Native

# Keys of hints that are environment variables; their values are percent-encoded.
VARIABLE = "env:"
_HINT = "ttx:"
_HINTED = {"world_size": WORLD_SIZE, "nodes": NODES, "gpus_per_node": GPUS_PER_NODE}


def hints(comments: Iterable[str]) -> dict[str, str]:
    """What ``# ttx: key=value ...`` comments say."""
    found: dict[str, str] = {}
    for comment in comments:
        body = comment.lstrip("#").strip()
        if body.startswith(_HINT):
            pairs = (word.partition("=") for word in body.removeprefix(_HINT).split())
            found.update({key: value for key, equals, value in pairs if equals})
    return found


def comment_lines(text: str) -> list[tuple[str, int]]:
    """Lines that are a comment and nothing else, with their numbers."""
    return [(line.strip(), at) for at, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("#")]


def read_hints(native: Native, comments: Iterable[tuple[str, int]], path: str, world_size: int | None) -> None:
    """The launch, from ``# ttx:`` comments (text and line) and from the caller, whose world size outweighs theirs."""
    for comment, line in comments:
        for key, value in hints([comment]).items():
            place = Place(path, line, 1)
            if key.startswith(VARIABLE):
                add_variable(native, key.removeprefix(VARIABLE), value, place)
            address = _HINTED.get(key)
            if address is None:
                continue
            if value.isascii() and value.isdecimal() and 0 < len(value) < 10 and int(value) > 0:
                native.given[address] = Given(address, int(value), f"# ttx: {key}={value}", place)
            else:
                message = f"# ttx: {key} must be a positive number, not {shown(value)}"
                native.findings.append(Finding("R103", Level.ERROR, message, "", place))
    if world_size is not None:
        native.given[WORLD_SIZE] = Given(WORLD_SIZE, world_size, "--world-size")


def add_variable(native: Native, name: str, value: str, place: Place) -> None:
    """An environment variable of the launch, from a hint."""
    from urllib.parse import unquote

    known = native.given.get(ENVIRONMENT)
    values = dict(known.value) if known is not None and isinstance(known.value, dict) else {}
    values[name] = unquote(value)
    native.given[ENVIRONMENT] = Given(ENVIRONMENT, values, "# ttx: env:", known.place if known else place)
