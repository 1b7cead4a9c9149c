"""A report as Markdown: ``templates/report/page.md.j2`` holds the layout, and every value in it is escaped."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from translator.printable import one_line
from translator.report import facts, words

if TYPE_CHECKING:
    from jinja2 import Environment

    from translator.report.model import Report, Side

_SAMPLES = 10
_SPECIAL = "\\`*_{}[]<>|#&~$"


class Ready(str):
    """Text that is Markdown already."""

    __slots__ = ()


def page(report: Report) -> str:
    """The report as Markdown."""
    return (
        _environment()
        .get_template("report/page.md.j2")
        .render(
            report=report,
            words=words,
            facts=facts.facts(report),
            rates=f"{facts.rates(report)}.",
            compute=facts.compute(report),
            axes=facts.axes(report),
            pairs=_pairs(report.left, report.right),
            sampled=_sampled(report),
            code=_code,
        )
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from translator.resources import template_dir

    return Environment(
        loader=FileSystemLoader(template_dir()),
        autoescape=False,  # Markdown has rules of its own: finalize escapes
        finalize=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def escape(value: object) -> str:
    """A value that Markdown shows as it is, in a table too."""
    if isinstance(value, Ready):
        return value
    text = one_line(str(value))
    if any(character in text for character in _SPECIAL):
        text = "".join(f"\\{character}" if character in _SPECIAL else character for character in text)
    return text


def _code(text: str) -> Ready:
    """Text as code, in a table too; fenced by more backticks than it holds.

    A bar after a backslash ends a cell in some renderers and not in others when it is code: that text is no code.
    """
    said = one_line(text)
    if "\\|" in said:
        return Ready(escape(said))
    said = said.replace("|", "\\|")
    longest = run = 0
    for character in said:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * (longest + 1)
    space = " " if said.startswith("`") or said.endswith("`") else ""
    return Ready(f"{fence}{space}{said}{space}{fence}") if said.strip() else Ready("")


def _pairs(left: Side, right: Side) -> list[tuple[str, str, str, str]]:
    """Lines of the source beside the lines that say the same in the result: place, text, place, text."""
    lines = {line.anchor: (f"{file.name}:{line.number}", line.text) for file in right.files for line in file.lines}
    found: list[tuple[str, str, str, str]] = []
    for file in left.files:
        for line in file.lines:
            place = f"{file.name}:{line.number}"
            for link in line.links:
                other, said = lines[link.anchor]
                found.append((place, line.text.strip(), other, said.strip()))
    return found


def _sampled(report: Report) -> list[tuple[int, float, float]]:
    """A few steps with the rates of both sides, among them that where they differ most."""
    if report.curves is None:
        return []
    one, other = (series.points for series in report.curves.series)
    chosen = {round(index * (len(one) - 1) / _SAMPLES) for index in range(_SAMPLES + 1)}
    steps = {one[index][0] for index in chosen} | {report.curves.at_step}
    return [(step, rate, second) for (step, rate), (_, second) in zip(one, other, strict=True) if step in steps]
