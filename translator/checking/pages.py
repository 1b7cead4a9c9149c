"""The documentation of codes as data and as one page of Markdown, generated from where the codes are raised."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from translator.codes import all_codes
from translator.subject import Subject

# Family -> heading, in the order of the page.
FAMILIES = {
    "R": "Reading",
    "S": "Impossible or broken configurations",
    "L": "Loss in translation",
    "D": "Same words, other meaning",
    "M": "Memory",
    "P": "Legal, but slow, wasteful or not as meant",
}
HEAD = """\
# Findings of ttx

What every code means, why it matters, and what to do. `ttx explain CODE` prints one; a comment `# ttx: ignore=CODE` in
a source silences it. This page is generated: `ttx explain --all --format markdown > schemas/rules.md`.
"""
_SECTION = re.compile(r"^(Why|Example|Fix|Source|Way out):[ \t]*")


def entries() -> Iterator[dict[str, object]]:
    """Every code with its title, its documentation and, for differences, what each framework does by default."""
    for code, (title, documentation) in all_codes().items():
        yield {"code": code, "title": title, "documentation": documentation, **_more(code)}


def _more(code: str) -> dict[str, object]:
    said = by_default(code)
    return {"by_default": said} if said else {}


def by_default(code: str) -> dict[str, str]:
    """Framework and version -> what it does where nothing is stated, for a difference; empty for other codes.

    Where that leaves the question open (no schedule, no experts), an example that answers it stands for the framework.
    """
    from translator.differences.registry import stances_of

    found: dict[str, str] = {}
    for name, subject in _defaults().items():
        stance = stances_of(name).get(code)
        if stance is None:
            continue
        known = [("", subject), *_examples(name)] if (first := stance(subject)) is None else [("", subject)]
        for example, each in known:
            stated = first if each is subject else stance(each)
            if stated is not None:
                where = f" (as in {example})" if example else ""
                found[f"{each.title} {each.reading.version}{where}"] = f"{stated.says} ({stated.source})"
                break
    return found


@cache
def _defaults() -> Mapping[str, Subject]:
    """Each framework's configuration that states nothing, at its usual version."""
    from translator import frameworks
    from translator.native import Native
    from translator.reading import read_native

    found: dict[str, Subject] = {}
    for framework in frameworks.every():
        native = Native(framework.name, framework.default_version)
        framework.settle(native)
        found[framework.name] = Subject(read_native(native, framework.table(native.version)))
    return found


@cache
def _examples(name: str) -> tuple[tuple[str, Subject], ...]:
    """The shipped examples of a framework, those of its usual version first."""
    import yaml

    from translator import api, frameworks
    from translator.reading import ReadOptions
    from translator.resources import fixture_path

    usual = frameworks.get(name).default_version
    found: list[tuple[str, Subject]] = []
    for case in sorted(fixture_path("examples").glob("*/case.yaml")):
        stated = yaml.safe_load(case.read_text(encoding="utf-8"))
        if stated["framework"].partition("@")[0] == name:
            options = ReadOptions(
                variables=stated.get("set", {}),
                positional=tuple(stated.get("positional", ())),
                world_size=stated.get("world_size"),
                model=stated.get("model"),
            )
            source = str(case.parent / stated["source"])
            reading = api.read(source, framework=stated["framework"], options=options)
            found.append((case.parent.name, Subject(reading)))
    return tuple(sorted(found, key=lambda item: item[1].reading.version != usual))


def page() -> str:
    """All codes as Markdown, with a table of contents by family."""
    every = list(entries())
    parts = [HEAD]
    for family, heading in FAMILIES.items():
        group = [entry for entry in every if str(entry["code"]).startswith(family)]
        if group:
            parts.append(f"## {heading} ({len(group)})\n")
            parts += [section(entry) for entry in group]
    return "\n".join(parts)


def section(entry: Mapping[str, object], level: int = 3) -> str:
    """One code as Markdown."""
    lines = [f"{'#' * level} {entry['code']}: {_escaped(str(entry['title']))}", ""]
    for line in str(entry["documentation"]).replace(" Way out: ", "\nWay out: ").splitlines():
        label = _SECTION.match(line)
        text = _escaped(line[label.end() :] if label else line)
        lines += ["", f"**{label[1]}:** {text}"] if label else [text]
    said = entry.get("by_default")
    if isinstance(said, Mapping):
        lines += ["", "By default:", ""]
        lines += [f"- {name} {_escaped(text)}" for name, text in said.items()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _escaped(text: str) -> str:
    """Text whose signs Markdown leaves alone, outside of code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a lone backtick
        return re.sub(r"([\\`*<])", r"\\\1", text)
    return "`".join(part if number % 2 else re.sub(r"([\\*<])", r"\\\1", part) for number, part in enumerate(parts))
