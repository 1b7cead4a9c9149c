"""What to write where numbers do not go together: the nearest that do."""

from __future__ import annotations

import re
from math import prod

_MULTIPLE = re.compile(r"\((\d+)\) is not a multiple of (.+)")
_DIVIDES = re.compile(r"(\d+)\)? ?(?:[a-z ]+ )?do(?:es)? not divide (?:over|into) .*?\(?(\d+)\)?(?: [a-z ]+)?$")
_NO_MULTIPLE = re.compile(r"(\d+) [a-z ]+ are no multiple of (?:[a-z ]+ \()?(\d+)")
_EXCEEDS = re.compile(r"(--[\w-]+) \(([\d.e-]+)\) (?:exceeds|is above) (--[\w-]+) \(([\d.e-]+)\)")
_WARM_UP = re.compile(r"the warm-up \([\d.e+]+ (\w+)\) is not shorter than the decay \((\d+)\)")


def nearest(message: str) -> str:
    """The numbers next to those that a message complains of; empty where its form is another."""
    if found := _MULTIPLE.search(message):
        number, factors = int(found[1]), re.findall(r"(?:^|x )(\d+) x|\((\d+)\)", found[2])
        return _multiples(number, prod(int(one or other) for one, other in factors)) if factors else ""
    if found := _NO_MULTIPLE.search(message) or _DIVIDES.search(message):
        return _divisors(int(found[1]), int(found[2]))
    if found := _EXCEEDS.search(message):
        return f"{found[1]} {found[4]} at the most, or {found[3]} {found[2]}"
    if found := _WARM_UP.search(message):
        return f"a warm-up of fewer than {found[2]} {found[1]}"
    return ""


def _multiples(number: int, unit: int) -> str:
    if unit < 1:
        return ""
    below = number // unit * unit
    return f"a multiple of {unit}, such as {f'{below} or ' if below else ''}{below + unit}"


def _divisors(whole: int, number: int) -> str:
    if whole < 1 or number < 1:
        return ""
    below = next((size for size in range(min(number - 1, whole), 0, -1) if whole % size == 0), None)
    above = next((size for size in range(number + 1, whole + 1) if whole % size == 0), None) if number < whole else None
    sizes = " or ".join(str(size) for size in (below, above) if size is not None)
    return f"{sizes} instead of {number}, or another number than {whole}"
