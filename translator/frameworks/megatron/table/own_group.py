"""Short forms for groups of options without a neutral meaning."""

from __future__ import annotations

from translator.ledger import Entry
from translator.mapping.rows import Row, own
from translator.spec.touches import Touches


def machinery(names: str, touches: Touches, note: str) -> Row:
    """Options of Megatron-LM's own machinery: another framework has its own, and needs nothing from them.

    ``names`` are the addresses, with spaces between.
    """
    return own(names.split(), touches, note)


def lost(names: str, touches: Touches, note: str) -> Row:
    """Options that change a run in a way that no leaf of the spec says."""
    return own(names.split(), touches, note, Entry.UNSUPPORTED)


def folded(names: str, touches: Touches, note: str) -> Row:
    """Other spellings of an option that has a neutral meaning; settling moves their value there."""
    return own(names.split(), touches, note, Entry.ADAPTED)
