"""Semantic differences: the same words with another meaning in two frameworks or versions (``D3xx``).

A *difference* is a question that frameworks answer differently, such as what the norm of a gradient is clipped
against. Each framework gives its answer as a *stance*, read from a configuration: a short kind, a sentence with the
upstream line, and the ways to make it take another kind. Where source and target take different kinds, and it
matters for this configuration, there is a finding. A new framework brings its stances and changes nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from translator.findings import Finding
    from translator.reading import Reading

MODULES = (
    "translator.differences.batch",
    "translator.differences.optimizer",
    "translator.differences.schedule",
    "translator.differences.precision",
    "translator.differences.layout",
    "translator.differences.model",
    "translator.differences.operation",
)


def between(source: Reading, target: Reading) -> list[Finding]:
    """What the two configurations mean differently, in the order of the codes; places are those of the source.

    ``target`` is best the reading of what ``source`` was converted to.
    """
    from translator.differences.registry import differences, stances_of
    from translator.subject import Subject

    left, right = Subject(source), Subject(target)
    ours, theirs = stances_of(left.framework), stances_of(right.framework)
    found: list[Finding] = []
    for code, entry in differences().items():
        if code in ours and code in theirs:
            found += entry.findings(left, ours[code](left), right, theirs[code](right))
    return found
