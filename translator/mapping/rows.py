"""Rows: one declaration that serves reading and writing.

A row owns native addresses and spec leaves. Every leaf, and every option of a catalogue, is owned by exactly one
row of a framework's table (`table.Table` checks it). Constructors cover the usual kinds:

* `same`, `text`, `choice`, `scaled`, `negated`: one option, one leaf, an invertible lens between them;
* `linked`: several options and leaves that only make sense together, with a read and a write function;
* `implied`: a leaf that the framework fixes; `absent`: a leaf without meaning there;
* `own`: options without a neutral meaning, kept verbatim as extras.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from translator.errors import InternalError
from translator.ledger import Entry
from translator.mapping.views import NativeView, Sink, SpecView, is_word
from translator.spec.touches import Touches

if TYPE_CHECKING:
    from collections.abc import Iterable

Read = Callable[[NativeView], Mapping[str, Any]]
Write = Callable[[SpecView, Sink], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One fact about how a framework says something.

    ``read`` takes the effective native values and gives values for ``fields``; ``write`` takes the spec and puts
    values for ``options`` into a sink. ``influences`` narrows which fields an option of a linked row feeds (default:
    all of them). ``identical`` marks rows in which option and leaf hold the same value.
    ``entry`` and ``touches`` are for rows without fields: what becomes of such an option in another framework.
    """

    options: tuple[str, ...]
    fields: tuple[str, ...]
    read: Read
    write: Write
    note: str = ""
    identical: bool = False
    influences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    entry: Entry | None = None
    touches: Touches = Touches.NOTHING

    def fields_of(self, option: str) -> tuple[str, ...]:
        """The leaves that ``option`` feeds."""
        return self.influences.get(option, self.fields)


def same(option: str, leaf: str) -> Row:
    """The option and the leaf hold the same value."""

    def read(native: NativeView) -> Mapping[str, Any]:
        return {leaf: native(option)}

    def write(spec: SpecView, sink: Sink) -> None:
        value = spec(leaf)
        if value is not None and not sink.put(option, value):
            _not_here(sink, leaf, value)

    return Row((option,), (leaf,), read, write, identical=True)


def text(option: str, leaf: str) -> Row:
    """A name or path; an empty one counts as none."""

    def read(native: NativeView) -> Mapping[str, Any]:
        return {leaf: native(option) or None}

    def write(spec: SpecView, sink: Sink) -> None:
        if spec(leaf) == "":
            sink.short(leaf, Entry.DEFAULT, "an empty name is none")
        else:
            plain.write(spec, sink)

    plain = same(option, leaf)
    return replace(plain, read=read, write=write)


def switch(option: str, leaf: str) -> Row:
    """An on-off option and leaf; an option that is not set is off. None where the version lacks the option."""
    row = same(option, leaf)

    def read(native: NativeView) -> Mapping[str, Any]:
        return {leaf: bool(native(option)) if native.has(option) else None}

    return replace(row, read=read)


def _not_here(sink: Sink, leaf: str, value: Any) -> None:
    """The version lacks the option, or the choice. That something is off needs no option."""
    entry = Entry.UNSUPPORTED if value else Entry.DEFAULT
    sink.short(leaf, entry, f"version {sink.version} has no option for it")


def choice(
    option: str,
    leaf: str,
    words: Mapping[Any, Any],
    *,
    nearest: Mapping[Any, tuple[Any, str]] | None = None,
    note: str = "",
) -> Row:
    """The option and the leaf use different words for the same things.

    ``words`` maps native to neutral and must be one to one. ``nearest`` maps neutral values that cannot be said to
    (the nearest native value, why), written as an approximation. Native values outside ``words`` read as None;
    neutral ones outside both are unsupported.
    """
    inverse = {neutral: native for native, neutral in words.items()}
    if len(inverse) != len(words):
        raise InternalError(f"the choices of {option} are not one to one")

    def read(native: NativeView) -> Mapping[str, Any]:
        value = native(option)
        return {leaf: words.get(value) if is_word(value) else None}

    def write(spec: SpecView, sink: Sink) -> None:
        value = spec(leaf)
        if value is None and None not in inverse:
            return
        if value in inverse:
            if not sink.put(option, inverse[value]):
                _not_here(sink, leaf, value)
        elif nearest and value in nearest:
            native_value, why = nearest[value]
            sink.put(option, native_value)
            sink.short(leaf, Entry.APPROXIMATED, why)
        else:
            sink.short(leaf, Entry.UNSUPPORTED, note or f"{option} has no choice that means {value!r}")

    return Row((option,), (leaf,), read, write, note=note)


def negated(option: str, leaf: str) -> Row:
    """A boolean option that says the opposite of the leaf."""
    return choice(option, leaf, {True: False, False: True})


def scaled(option: str, leaf: str, factor: float) -> Row:
    """The option holds the leaf times ``factor``."""

    def read(native: NativeView) -> Mapping[str, Any]:
        value = native(option)
        return {leaf: None if value is None else value / factor}

    def write(spec: SpecView, sink: Sink) -> None:
        value = spec(leaf)
        if value is not None and not sink.put(option, value * factor):
            _not_here(sink, leaf, value)

    return Row((option,), (leaf,), read, write)


def linked(
    options: Sequence[str],
    fields: Sequence[str],
    *,
    read: Read,
    write: Write,
    note: str = "",
    influences: Mapping[str, tuple[str, ...]] | None = None,
) -> Row:
    """Options and leaves that only make sense together."""
    return Row(tuple(options), tuple(fields), read, write, note=note, influences=influences or {})


def implied(leaf: str, value: Any, note: str) -> Row:
    """The framework fixes this leaf at ``value``; anything else is unsupported, and the row says why."""

    def read(_: NativeView) -> Mapping[str, Any]:
        return {leaf: value}

    def write(spec: SpecView, sink: Sink) -> None:
        wanted = spec(leaf)
        if wanted is not None and wanted != value:
            sink.short(leaf, Entry.UNSUPPORTED, note)

    return Row((), (leaf,), read, write, note=note)


def absent(leaf: str, note: str, entry: Entry = Entry.UNSUPPORTED) -> Row:
    """The leaf has no meaning in this framework; a stated value is lost, as ``entry`` says, unless it means "off"."""

    def read(_: NativeView) -> Mapping[str, Any]:
        return {}

    def write(spec: SpecView, sink: Sink) -> None:
        value = spec(leaf)
        if value is not None:
            sink.short(leaf, Entry.DEFAULT if value is False else entry, note)

    return Row((), (leaf,), read, write, note=note)


def own(options: Iterable[str], touches: Touches, note: str, entry: Entry = Entry.IRRELEVANT) -> Row:
    """Options without a neutral meaning: verbatim extras at home, ``entry`` elsewhere."""

    def read(_: NativeView) -> Mapping[str, Any]:
        return {}

    def write(_: SpecView, __: Sink) -> None:
        return None

    return Row(tuple(options), (), read, write, note=note, entry=entry, touches=touches)
