"""The neutral spec as a target: nothing is lost on the way, except what the source leaves open."""

from __future__ import annotations

from translator.compare import lost
from translator.conversion import Conversion
from translator.findings import Finding, Level
from translator.frameworks.base import Rendered
from translator.ledger import Entry, LedgerLine
from translator.mapping.views import Sink
from translator.native import Given
from translator.reading import Reading
from translator.source import Source
from translator.spec import leaves
from translator.spec.touches import Touches
from translator.spec_file import VERSION, read_spec, to_yaml

MAIN = "spec.yaml"


def to_spec(reading: Reading) -> Conversion:
    """A reading as a spec file, read back and compared. Raises SourceError when a value is impossible."""
    reading.check()
    text = to_yaml(reading)
    back = read_spec([Source(MAIN, text)], {})
    findings = [
        Finding(
            "L290",
            Level.ERROR,
            f"{leaf}: the source means {wanted!r}, the result reads back as {found!r}",
            "this is a fault of ttx; please report it with the source",
            field=leaf,
        )
        for leaf, (wanted, found) in lost(reading.flat, back.flat).items()
    ]
    rendered = Rendered(MAIN, {MAIN: text})
    sink = Sink(frozenset(), {}, VERSION)
    return Conversion(reading, "spec", VERSION, rendered, _lines(reading), [*reading.findings, *findings], back, sink)


def _lines(reading: Reading) -> list[LedgerLine]:
    if reading.native is None:
        known = leaves()
        return [
            LedgerLine(leaf, value, None, Entry.EXACT, known[leaf].touches, leaf, "", (leaf,))
            for leaf, value in reading.flat.items()
            if value is not None
        ]
    return [_line(reading, given) for given in (*reading.stated(), *reading.native.unknown)]


def _line(reading: Reading, given: Given) -> LedgerLine:
    known = leaves()
    fields = reading.table.fields_of(given.address) if reading.table else ()
    touches = max((known[leaf].touches for leaf in fields), key=lambda one: one.weight, default=Touches.NOTHING)
    if given.missing is not None:
        note = given.missing.note
        entry = Entry.NEEDS_INPUT if fields else Entry.IRRELEVANT
        return LedgerLine(given.written, given.missing.expression, given.place, entry, touches, "", note, fields)
    said = [leaf for leaf in fields if reading.flat.get(leaf) is not None]
    if not fields and given.address in reading.extras.get(reading.framework, {}):
        said = [f"extras.{reading.framework}.{given.address}"]
    entry = Entry.EXACT if len(said) == 1 else Entry.ADAPTED if said else Entry.IRRELEVANT
    note = "" if said else "without effect in this configuration"
    return LedgerLine(given.written, given.value, given.place, entry, touches, ", ".join(said), note, fields)
