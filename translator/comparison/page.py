"""The comparison as data, as text and as one page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import cleandoc, getdoc
from typing import TYPE_CHECKING

from translator.comparison.registry import Concept, How, chapters, packages_of, ways_of
from translator.errors import InternalError
from translator.knowledge import knowledge_of
from translator.native import is_option

if TYPE_CHECKING:
    from translator.frameworks.base import Framework

PAGE = "comparison.md"
HEAD = """\
# How the frameworks do it

What large-model training frameworks do alike and apart, concept by concept: how each does it, the options that steer
it, what it costs in memory and communication, and where in its source to look. `ttx compare CONCEPT` prints one. In
formulas n is the number of ranks of the group, and bytes are those that a rank sends in one optimizer step. This page
is generated: `ttx compare --format markdown > schemas/comparison.md`.
"""


def entries() -> Iterator[dict[str, object]]:
    """Every concept as data: name, chapter, title, what it is, fields, differences, and each framework's way."""
    for chapter, concepts in chapters():
        for concept in concepts:
            yield entry(concept, chapter)


def entry(concept: Concept, chapter: str) -> dict[str, object]:
    """One concept as data."""
    from translator import frameworks

    ways = {}
    for framework in frameworks.every():
        way = ways_of(framework.name).get(concept.name)
        if way is not None:
            ways[framework.name] = _way(framework, concept, way)
    return {
        "concept": concept.name,
        "chapter": chapter,
        "title": concept.title,
        "what": concept.what,
        "fields": list(concept.fields),
        "differences": codes_of(concept),
        "frameworks": ways,
    }


def codes_of(concept: Concept) -> dict[str, str]:
    """Code and title of the differences about the fields of a concept."""
    from translator.differences.registry import differences

    return {code: one.title for code, one in differences().items() if one.field in concept.fields}


def _way(framework: Framework, concept: Concept, way: How) -> dict[str, object]:
    version = framework.default_version
    guide = [
        {"file": place.file, "symbol": place.symbol, "version": version_of(framework, place.package)}
        for place in way.guide
    ]
    return {
        "title": framework.title,
        "version": version,
        "does": way.does,
        "options": options_of(framework, concept, way),
        "memory": way.memory,
        "communication": [bytes_of(framework.name, name) for name in way.moves],
        "guide": guide,
    }


def version_of(framework: Framework, package: str) -> str:
    """The version that a place in a package is from."""
    return packages_of(framework.name).get(package, framework.default_version)


def options_of(framework: Framework, concept: Concept, way: How) -> list[str]:
    """The options that feed the fields of a concept at the usual version, and those without a field, as users say them.

    What is read from a model's own file, or from the launch, is no option and left out.
    """
    version = framework.default_version
    table = framework.table(version)
    found: dict[str, None] = {}
    for leaf in concept.fields:
        for address in table.options_of(leaf):
            if address in table.known and is_option(address):
                found[framework.spelling(address, version)] = None
    found.update(dict.fromkeys(framework.spelling(address, version) for address in way.options))
    return list(found)


def bytes_of(framework: str, name: str) -> dict[str, str]:
    """What a part of a framework's account of communication moves, and the bytes of a step, from its documentation.

    Raises InternalError for a part that has no formula.
    """
    module = import_module(knowledge_of(framework).communication)
    part = getattr(module, name, None)
    if part is None or part not in module.PARTS:
        raise InternalError(f"{module.__name__} has no part {name}")
    title, *paragraphs = cleandoc(getdoc(part) or "").split("\n\n")
    formula = next((text for text in paragraphs if text.startswith("Bytes")), "")
    if not formula:
        raise InternalError(f"{module.__name__}.{name} says nothing of its bytes")
    return {"part": name, "what": _flat(title).rstrip("."), "bytes": _flat(formula)}


def _flat(text: str) -> str:
    return " ".join(text.split())


def page() -> str:
    """All concepts as Markdown, with a table of contents."""
    found = list(entries())
    parts = [HEAD]
    for chapter, concepts in chapters():
        parts.append(f"- {chapter}: " + ", ".join(f"[{one.title}](#{one.name})" for one in concepts))
    for chapter, _ in chapters():
        parts.append(f"\n## {chapter}\n")
        parts += [section(one) for one in found if one["chapter"] == chapter]
    return "\n".join(parts).rstrip() + "\n"


def section(found: Mapping[str, object], level: int = 3) -> str:
    """One concept as Markdown."""
    marks = "#" * level
    lines = [f'<a id="{found["concept"]}"></a>', "", f"{marks} {found['title']}", "", str(found["what"]), ""]
    fields, codes, ways = found["fields"], found["differences"], found["frameworks"]
    assert isinstance(fields, list)
    assert isinstance(codes, dict)
    assert isinstance(ways, dict)
    if fields:
        lines.append("- Fields: " + ", ".join(f"`{leaf}`" for leaf in fields))
    if codes:
        lines.append("- Differences: " + "; ".join(f"{code} ({title})" for code, title in codes.items()))
    for way in ways.values():
        lines += ["", f"{marks}# {way['title']} {way['version']}", "", way["does"], ""]
        lines += _points(way)
    return "\n".join(lines) + "\n"


def _points(way: Mapping[str, object]) -> Iterator[str]:
    """Options, memory, bytes and places of a way, one line each."""
    options, moves, guide = way["options"], way["communication"], way["guide"]
    assert isinstance(options, list)
    assert isinstance(moves, list)
    assert isinstance(guide, list)
    if options:
        yield "- Options: " + ", ".join(f"`{option}`" for option in options)
    if way["memory"]:
        yield f"- Memory: {way['memory']}"
    yield from (f"- {move['what']}. {move['bytes']}" for move in moves)
    for place in guide:
        yield f"- `{place['file']}`: `{place['symbol']}` ({place['version']})"
