"""Numbers and ways out, as differences and stances word them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def number(value: float) -> str:
    """A number without noise in its last digits: 3e-05, 0.1, 1000."""
    return f"{value:.6g}"


def percent(share: float) -> str:
    """A share in percent, with two digits that count."""
    return f"{100.0 * share:.2g} %"


class Whatever(Mapping[str, str]):
    """Ways that are one way whatever kind is wanted; ``{kind}`` in the text stands for the kind.

    Kinds that hold ``unless`` cannot be had.
    """

    def __init__(self, text: str, unless: str = "") -> None:
        self._text = text
        self._unless = unless

    def __getitem__(self, kind: str) -> str:
        if self._unless and self._unless in kind:
            raise KeyError(kind)
        return self._text.replace("{kind}", kind)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
