"""``ttx compare``: how the frameworks do the same things, and where in their source to look."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from translator.cli.common import Subparsers, print_json
from translator.errors import UsageError

if TYPE_CHECKING:
    from translator.comparison.registry import Concept

_WIDTH = 100
DESCRIPTION = """\
Tells how each framework does one thing (pipeline-schedules, gather-policy ...): in words, with the options that steer
it, what it means for memory and communication, and the files and functions to read. Without CONCEPT, lists what there
is.
"""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "compare",
        help="tell how each framework does something",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "concept", nargs="?", help="name of a concept, part of it or of its title, or a field of the spec"
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "markdown"),
        default="text",
        help="markdown without CONCEPT is the whole page",
    )


def run(parsed: argparse.Namespace) -> int:
    """Compare; returns 0. Raises UsageError for an unknown concept, with the nearest names."""
    from translator.comparison import page

    if parsed.concept is None:
        _all(parsed.format)
        return 0
    found = [page.entry(concept, chapter) for chapter, concept in chosen(parsed.concept)]
    if parsed.format == "json":
        print_json({"schema_version": 1, "concepts": found})
    elif parsed.format == "markdown":
        sys.stdout.write("\n".join(page.section(one) for one in found))
    else:
        sys.stdout.write("\n".join(_text(one) for one in found))
    return 0


def chosen(wanted: str) -> list[tuple[str, Concept]]:
    """Chapter and concept of what a name, a part of one, or a field stands for.

    Raises UsageError with the nearest names.
    """
    from translator.comparison.registry import chapters

    word = wanted.lower().strip().replace(" ", "-").replace("_", "-")
    every = [(chapter, concept) for chapter, entries in chapters() for concept in entries]
    fits: tuple[Callable[[Concept], bool], ...] = (
        lambda concept: concept.name == word,
        lambda concept: wanted in concept.fields,
        lambda concept: word != "" and word in f"{concept.name} {concept.title.lower().replace(' ', '-')}",
    )
    for fit in fits:
        found = [pair for pair in every if fit(pair[1])]
        if found:
            return found
    from translator.names import nearest

    near = nearest(word, [concept.name for _, concept in every])
    fix = f"nearest: {', '.join(near)}" if near else "ttx compare lists the concepts"
    raise UsageError(f"no concept {wanted!r}", fix=fix)


def _all(how: str) -> None:
    from translator.comparison import page
    from translator.comparison.registry import chapters

    if how == "json":
        print_json({"schema_version": 1, "concepts": list(page.entries())})
    elif how == "markdown":
        sys.stdout.write(page.page())
    else:
        for chapter, concepts in chapters():
            print(f"{chapter}:")
            width = max(len(concept.name) for concept in concepts)
            for concept in concepts:
                print(f"  {concept.name.ljust(width)}  {concept.title}")


def _text(found: Mapping[str, object]) -> str:
    """A concept for a terminal."""
    fields, codes, ways = found["fields"], found["differences"], found["frameworks"]
    assert isinstance(fields, list)
    assert isinstance(codes, dict)
    assert isinstance(ways, dict)
    lines = [f"{found['title']} ({found['concept']})", *_wrapped(str(found["what"]))]
    if fields:
        lines += _wrapped("fields: " + ", ".join(fields))
    lines += [f"  {code}: {title}" for code, title in codes.items()]
    for way in ways.values():
        lines += ["", f"{way['title']} {way['version']}", *_wrapped(way["does"])]
        if way["options"]:
            lines += _wrapped("options: " + ", ".join(way["options"]))
        if way["memory"]:
            lines += _wrapped(f"memory: {way['memory']}")
        for move in way["communication"]:
            lines += _wrapped(f"{move['what']}. {move['bytes']}")
        lines += [f"  {place['file']}: {place['symbol']} ({place['version']})" for place in way["guide"]]
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
