"""Nearest names for a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], count: int = 3, cutoff: float = 70.0) -> list[str]:
    """At most ``count`` known names that resemble ``name``, the closest first (rapidfuzz, 0 to 100)."""
    from rapidfuzz import fuzz, process

    found = process.extract(name, list(known), scorer=fuzz.WRatio, limit=count, score_cutoff=cutoff)
    return [match for match, _, _ in found]
