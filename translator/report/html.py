"""A report as one page that needs nothing else: ``templates/report/page.html.j2`` holds the layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.report import facts, picture, words

if TYPE_CHECKING:
    from translator.report.model import Report

MANY = 1_000  # rows from which on the page lays out what is in view alone


def page(report: Report) -> str:
    """The page; it loads nothing, and its policy lets no script run but its own."""
    from markupsafe import Markup

    from translator.resources import template_dir
    from translator.templating import environment

    script = (template_dir() / "report" / "filter.js").read_text(encoding="utf-8")
    memories = [side.memory for side in report.sides if side.memory is not None]
    top = picture.top_bytes(memories)
    template = environment().get_template("report/page.html.j2")
    return template.render(
        report=report,
        script=Markup(script),
        facts=facts.facts(report),
        rates=f"{facts.rates(report)}.",
        compute=facts.compute(report),
        axes=facts.axes(report),
        script_hash=_hash(f"\n{script}"),
        tracks={side.key: picture.tracks(side.memory, top) for side in report.sides if side.memory is not None},
        legend=picture.legend() if memories else [],
        drawings=[
            (each, picture.polylines(each), picture.worst_at(each))
            for each in (report.curves.drawings if report.curves is not None else ())
        ],
        picture=picture,
        words=words,
        many=sum(len(group.rows) for group in report.ledger) > MANY,
        entries=sorted({row.entry for group in report.ledger for row in group.rows}),
    )


def _hash(script: str) -> str:
    """The hash by which the policy of the page knows its script."""
    from base64 import b64encode
    from hashlib import sha256

    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"
