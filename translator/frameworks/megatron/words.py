"""Values as the words that Megatron-LM's argument parser reads back to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from translator.catalogue.model import Entry
from translator.frameworks.megatron.arguments import is_negative_number

# Types whose text is a Python list expression (`megatron/training/arguments.py:330`, core 0.18.0).
PATTERN_TYPES = frozenset({"moe_freq_type", "no_rope_freq_type", "la_freq_type"})
# Lists longer than this are written by runs, as [0]*3+[1]*58.
LONGEST_PLAIN_PATTERN = 8


class CannotSayError(ValueError):
    """No word of the command line reads back as the value; the message says why."""


def words_of(entries: Sequence[Entry], value: Any) -> list[str] | None:
    """Flag and value of an option as words; None where saying nothing already means ``value``.

    ``entries`` are all that store to the option's address. Raises `CannotSayError`.
    """
    bare = [entry for entry in entries if not entry.takes_value]
    if bare:
        return _bare_flag(bare, value)
    if value is None:
        return None
    entry = entries[0]
    texts = [text_of(entry, item) for item in _items(entry, value)]
    if isinstance(entry.arity, int) and len(texts) != entry.arity:
        raise CannotSayError(f"it takes {entry.arity} values, not {len(texts)}")
    if not texts and entry.arity not in ("*", "?"):
        if entry.default in (None, [], ()):
            return None
        raise CannotSayError("an empty list has no spelling")
    flag = entry.flags[0]
    if not any(map(_looks_like_a_flag, texts)):
        return [flag, *texts]
    # argparse takes such a word for a value only when it is attached to the flag, and then takes no further ones.
    if len(texts) == 1:
        return [f"{flag}={texts[0]}"]
    raise CannotSayError("one of its values begins with a dash and would be read as an option")


def text_of(entry: Entry, value: Any) -> str:
    """One value as text. Raises `CannotSayError` when the option's type cannot hold it."""
    if entry.type_name in PATTERN_TYPES and isinstance(value, (list, tuple)):
        return pattern(value)
    if entry.type_name == "tuple_type" and isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value)
    if isinstance(value, (list, tuple, dict)):
        raise CannotSayError("it takes a single value")
    if isinstance(value, bool):
        return _text_of_bool(entry, value)
    if entry.kind == "int" and isinstance(value, float):
        if not value.is_integer():
            raise CannotSayError(f"it takes an integer, not {shortest(value)}")
        return str(int(value))
    text = shortest(value) if isinstance(value, float) else str(value)
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise CannotSayError("its text has a character that no command line can hold")
    return text


def shortest(value: float) -> str:
    """The shortest text that reads back as ``value``: ``3e-5``, ``0.0001``, ``1.0``."""
    mantissa, exponent, power = repr(value).partition("e")
    return f"{mantissa}e{int(power)}" if exponent else mantissa


def pattern(layers: Sequence[Any]) -> str:
    """A list as Megatron-LM's list expression; long ones by runs of equal entries."""
    if len(layers) <= LONGEST_PLAIN_PATTERN:
        return f"[{','.join(str(int(item)) for item in layers)}]"
    runs = [(int(item), len(list(same))) for item, same in groupby(layers)]
    if len(runs) * 2 > len(layers):
        return f"[{','.join(str(int(item)) for item in layers)}]"
    return "+".join(f"[{item}]*{count}" if count > 1 else f"[{item}]" for item, count in runs)


def _bare_flag(entries: Sequence[Entry], value: Any) -> list[str] | None:
    wanted = None if value is None else bool(value)
    for entry in entries:
        for flag in entry.flags:
            if wanted is not None and entry.value_of_flag(flag) == wanted:
                return [flag]
    if wanted is None or bool(entries[0].default) == wanted:
        return None
    raise CannotSayError(f"no flag says {str(wanted).lower()}")


def _text_of_bool(entry: Entry, value: bool) -> str:
    if entry.kind == "bool":  # type=bool: every text but the empty one is true
        return "True" if value else ""
    if entry.kind in ("int", "float"):
        return str(int(value))
    return str(value)


def _items(entry: Entry, value: Any) -> Iterable[Any]:
    several = entry.arity in ("+", "*") or (isinstance(entry.arity, int) and entry.arity > 0)
    if several and isinstance(value, (list, tuple)):
        return value
    return (value,)


def _looks_like_a_flag(text: str) -> bool:
    return len(text) > 1 and text.startswith("-") and not is_negative_number(text)
