"""Conversion: spec to target text, proved by reading it back, with a ledger of every source option."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from translator.compare import equal, lost
from translator.findings import Finding, Level
from translator.frameworks import get as get_framework
from translator.frameworks.base import Framework, RenderContext, Rendered
from translator.ledger import Entry, LedgerLine, summary
from translator.mapping.table import Table
from translator.mapping.views import Sink
from translator.native import LAUNCH_ADDRESSES, Given, Native, Origin, is_option
from translator.reading import Reading, ReadOptions, read_native
from translator.source import Source
from translator.spec import leaves
from translator.spec.touches import Touches

SEVERITY = {
    Entry.DEFAULT: 0,
    Entry.EXACT: 1,
    Entry.ADAPTED: 2,
    Entry.IRRELEVANT: -1,
    Entry.APPROXIMATED: 3,
    Entry.UNSUPPORTED: 4,
    Entry.NEEDS_INPUT: 5,
}


@dataclass(frozen=True, slots=True)
class Conversion:
    """A finished conversion: files, ledger, findings, and the reading of the output."""

    source: Reading
    target: str
    version: str
    rendered: Rendered
    ledger: list[LedgerLine]
    findings: list[Finding]
    back: Reading
    sink: Sink = field(repr=False)

    @property
    def alters_training(self) -> bool:
        """Whether anything that touches training was approximated, unsupported or left open."""
        return any(line.alters_training for line in self.ledger)

    def completed(self) -> Reading:
        """The result with what its framework knows by the model's name, or by the launch, as the source has it."""
        known = dict(self.back.flat)
        for leaf, value in self.source.flat.items():
            if known.get(leaf) is None and leaf.startswith(("model.", "parallel.world_size", "batch.seq_len")):
                known[leaf] = value
        return replace(self.back, flat=known)

    def as_dict(self) -> dict[str, object]:
        """The stable JSON form."""
        return {
            "schema_version": 1,
            "source": {"framework": self.source.framework, "version": self.source.version},
            "target": {"framework": self.target, "version": self.version},
            "files": self.rendered.files,
            "ledger": [line.as_dict() for line in self.ledger],
            "findings": [finding.as_dict() for finding in self.findings],
            "summary": summary(self.ledger),
        }


def convert(
    reading: Reading,
    framework: Framework,
    version: str,
    source_name: str,
    source_title: str,
    *,
    nearest: bool = False,
) -> Conversion:
    """Write ``reading`` for a target, read the result back, and account for every option.

    ``nearest`` lets a layout that the target cannot say give way to the nearest one that it can run.
    Raises SourceError when a value is impossible. A difference between the two specs that no row admits is a fault of
    ttx; it is reported as finding L290 at level error and counted as a loss.
    """
    reading.check()
    table = framework.table(version)
    extras = reading.extras.get(framework.name, {})
    sink = table.write(reading.flat, reading.origins, nearest=nearest, extras=extras)
    for address, value in extras.items():
        sink.put(reading.table.row_name(address) if reading.table else address, value)
    _keep_given(reading, table, sink)
    if framework.keeps_unknown(version):
        _keep_unknown(reading, table, sink)
    own = reading.native if reading.framework == framework.name else None
    context = RenderContext(_origin_notes(reading, table, sink), source_name, source_title, reading.flat, own)
    rendered = framework.render(sink, version, context)
    back = _read_back(rendered, framework, version)
    differences = lost(reading.flat, back.flat)
    judge = _Judge(reading, table, sink, rendered, differences, _baseline(framework.name, version))
    ledger = judge.lines()
    findings = [*reading.findings, *judge.unadmitted(), *_refusals(reading, back)]
    return Conversion(reading, framework.name, version, rendered, ledger, findings, back, sink)


# A launch script that asks its environment for the number of ranks says what is missing by itself.
_ASKED = frozenset({"R068"})


def _refusals(reading: Reading, back: Reading) -> list[Finding]:
    """What the target would refuse about the result and its source was not refused for, at its place in the result."""
    known = {(finding.code, finding.message) for finding in reading.findings}
    errors = [f for f in back.findings if f.level is Level.ERROR and f.code not in _ASKED]
    return [f for f in errors if (f.code, f.message) not in known]


def _keep_given(reading: Reading, table: Table, sink: Sink) -> None:
    """What the source says in the words of the target stays as it says it, even where it has no effect.

    Rows whose leaves were changed by hand, or that wrote a file, keep what they wrote.
    """
    native = reading.native
    if native is None or not _same_words(reading, table):
        return
    # The source was read by this very table, unless leaves were set by hand.
    before = table.read(native.values)
    for row in table.rows:
        untouched = all(equal(reading.flat.get(leaf), before[leaf]) for leaf in row.fields)
        if not row.fields or not untouched or row in sink.filed:
            continue
        for spelled in row.options:
            address = table.names.get(spelled, spelled)
            given = native.given.get(address)
            if given is not None and given.missing is None:
                sink.values[address] = given.value
            elif address in native.derived or not equal(sink.values.get(address), native.values.get(address)):
                # Derived again from what is given, or another way to say what another option of the row says.
                sink.values.pop(address, None)
        for leaf in row.fields:
            sink.needs.pop(leaf, None)


def _same_words(reading: Reading, table: Table) -> bool:
    """Whether the source was read by the rows that write the result."""
    same = (reading.framework, reading.version) == (table.framework, table.version)
    return same and reading.table is not None and not reading.table.reads_only


def _keep_unknown(reading: Reading, table: Table, sink: Sink) -> None:
    """Options that the catalogue does not have, for code of the user's that does."""
    native = reading.native
    if native is None or not _same_words(reading, table):
        return
    for given in native.unknown:
        name = given.address
        # A section that holds a value, or a value that holds a section, is a mistake and no unknown option.
        nested = any(known.startswith(f"{name}.") or name.startswith(f"{known}.") for known in table.known)
        if given.missing is None and name not in table.known and not nested:
            sink.values[name] = given.value


@cache
def _baseline(name: str, version: str) -> Mapping[str, Any]:
    """What the target means when nothing is stated."""
    framework = get_framework(name)
    native = Native(name, version)
    framework.settle(native)
    return framework.table(version).read(native.values)


def _read_back(rendered: Rendered, framework: Framework, version: str) -> Reading:
    source = Source(rendered.main, rendered.files[rendered.main], siblings=rendered.files)
    native = framework.parse(source, version, ReadOptions())
    return read_native(native, framework.table(version))


def _origin_notes(reading: Reading, table: Table, sink: Sink) -> dict[str, str]:
    """Per written address a few words on where its value came from."""
    notes: dict[str, str] = {}
    for address in sink.values:
        words: list[str] = []
        for leaf in table.fields_of(address):
            origin = reading.origins.get(leaf)
            if origin is None or reading.flat.get(leaf) is None:
                continue
            if origin.option and origin.option not in words:
                words.append(origin.option)
        if words:
            notes[address] = ", ".join(words[:3]) + (" ..." if len(words) > 3 else "")
        elif address in sink.remarks:
            notes[address] = sink.remarks[address]
        elif table.fields_of(address):
            notes[address] = "default of the source"
    return notes


@dataclass
class _Judge:
    """Says what became of each option."""

    reading: Reading
    table: Table
    sink: Sink
    rendered: Rendered
    differences: Mapping[str, tuple[Any, Any]]
    baseline: Mapping[str, Any]

    def lines(self) -> list[LedgerLine]:
        """One line per stated option, then one per default of the source that the target does not share."""
        reading = self.reading
        if reading.native is None or reading.table is None:
            return [self._leaf_line(leaf) for leaf, value in reading.flat.items() if value is not None]
        lines = [self._given_line(given) for given in reading.stated()]
        lines += [self._unknown_line(given) for given in reading.native.unknown]
        lines += self._default_lines()
        told = {leaf for line in lines for leaf in line.fields}
        # What is set by hand stands in no option of the source.
        left = [*(leaf for leaf in reading.flat if leaf in reading.by_hand), *self.sink.needs]
        return lines + [self._leaf_line(leaf) for leaf in dict.fromkeys(left) if leaf not in told]

    def unadmitted(self) -> list[Finding]:
        """Differences that nothing admits: faults of ttx."""
        return [
            Finding(
                "L290",
                Level.ERROR,
                f"{leaf}: the source means {wanted!r}, the result reads back as {found!r}, and no row admits it",
                "this is a fault of ttx; please report it with the source",
                field=leaf,
            )
            for leaf, (wanted, found) in self.differences.items()
            if leaf not in self.sink.shortfalls
            and leaf not in self.sink.needs
            and leaves()[leaf].touches is not Touches.NOTHING
        ]

    def _given_line(self, given: Given) -> LedgerLine:
        reading = self.reading
        assert reading.table is not None
        assert reading.native is not None
        value = given.missing.expression if given.missing else given.value
        fields = reading.table.fields_of(given.address)
        if not fields:
            return self._own_line(given, value)
        if given.missing is not None:
            touches = _gravest(fields)
            note = given.missing.note
            return LedgerLine(given.written, value, given.place, Entry.NEEDS_INPUT, touches, "", note, fields)
        entry, touches, target, note = self._fate(
            fields, identical=reading.table.row_of_option[given.address].identical
        )
        in_force = reading.native.values.get(given.address)
        if given.address in reading.native.derived and not equal(in_force, given.value):
            told = f"{str(in_force).lower() if isinstance(in_force, bool) else in_force} is in force: "
            told += reading.native.derived[given.address]
            note = f"{told}; {note}" if note else told
        return LedgerLine(given.written, value, given.place, entry, touches, target, note, fields)

    def _unchanged(self, given: Given) -> bool:
        """Whether the target is the same framework and says the very same."""
        return (
            self.reading.framework == self.table.framework
            and self._address_here(given.address) in self.rendered.stated
            and equal(self.sink.values.get(self._address_here(given.address)), given.value)
        )

    def _address_here(self, address: str) -> str:
        """An address of the source in the names of the target version of the same framework."""
        assert self.reading.table is not None
        row_name = self.reading.table.row_name(address)
        return self.table.names.get(row_name, row_name)

    def _own_line(self, given: Given, value: object) -> LedgerLine:
        reading = self.reading
        assert reading.table is not None
        row = reading.table.row_of_option.get(given.address)
        inside = f"{given.address}."
        if given.missing is not None and any(option.startswith(inside) for option in reading.table.row_of_option):
            # A whole section that could not be read: nothing says what it holds.
            note = f"{given.missing.reason}; what it sets is not known"
            return LedgerLine(given.written, value, given.place, Entry.NEEDS_INPUT, Touches.TRAINING, "", note, ())
        if row is None:
            entry = Entry.NEEDS_INPUT if given.missing else Entry.UNSUPPORTED
            note = given.missing.note if given.missing else "what it does is not known"
            return LedgerLine(given.written, value, given.place, entry, Touches.TRAINING, "", note, ())
        if given.address in LAUNCH_ADDRESSES:
            return LedgerLine(given.written, value, given.place, Entry.IRRELEVANT, Touches.NOTHING, "", "", ())
        here = self._address_here(given.address)
        if here in self.sink.values and reading.framework == self.table.framework:
            target = self.rendered.stated.get(here, "")
            entry = Entry.EXACT if target else Entry.DEFAULT
            return LedgerLine(given.written, value, given.place, entry, row.touches, target, "", ())
        if given.missing is not None:
            note = given.missing.note
            entry = Entry.NEEDS_INPUT if row.touches in (Touches.TRAINING, Touches.MEMORY) else Entry.IRRELEVANT
            return LedgerLine(given.written, value, given.place, entry, row.touches, "", note, ())
        entry = row.entry or Entry.IRRELEVANT
        note = row.note
        if row.touches is Touches.NOTHING and equal(given.value, self._source_default(given.address)):
            entry, note = Entry.IRRELEVANT, "stated with the value that it has anyway"
        elif reading.framework == self.table.framework and is_option(given.address):
            entry, note = Entry.UNSUPPORTED, f"not an option of version {self.table.version}"
        elif entry.is_loss and equal(given.value, self._source_default(given.address)):
            entry, note = Entry.IRRELEVANT, "stated with the value that it has anyway"
        elif entry.is_loss and _switched_off(given.value):
            entry, note = Entry.IRRELEVANT, "switched off"
        return LedgerLine(given.written, value, given.place, entry, row.touches, "", note, ())

    def _source_default(self, address: str) -> object:
        reading = self.reading
        return get_framework(reading.framework).default(address, reading.version)

    def _unknown_line(self, given: Given) -> LedgerLine:
        if given.address in self.sink.values:
            return LedgerLine(
                given.written,
                given.value,
                given.place,
                Entry.EXACT,
                Touches.NOTHING,
                self.rendered.stated.get(given.address, ""),
                "",
            )
        value = given.missing.expression if given.missing else given.value
        note = f"not an option of {self.reading.framework} {self.reading.version}; what it does is not known"
        return LedgerLine(given.written, value, given.place, Entry.UNSUPPORTED, Touches.TRAINING, "", note)

    def _default_lines(self) -> list[LedgerLine]:
        """Effective values that the source supplies itself and the target would not."""
        reading = self.reading
        table = reading.table
        assert table is not None
        grouped: dict[str, list[str]] = {}
        for leaf, value in reading.flat.items():
            origin = reading.origins.get(leaf)
            if value is None or origin is None or origin.origin in (Origin.EXPLICIT, Origin.UNKNOWN):
                continue
            written = any(address in self.rendered.stated for address in self.table.options_of(leaf))
            if leaf in self.differences or (written and not equal(value, self.baseline.get(leaf))):
                options = sorted(table.options_of(leaf), key=self._how_telling)
                grouped.setdefault(options[0] if options else leaf, []).append(leaf)
        return [self._default_line(label, tuple(group)) for label, group in grouped.items()]

    def _how_telling(self, address: str) -> tuple[bool, int]:
        """The order in which options name a default: those that hold something, then those about the fewest fields."""
        assert self.reading.native is not None
        assert self.reading.table is not None
        return not self.reading.native.values.get(address), len(self.reading.table.fields_of(address))

    def _default_line(self, label: str, group: tuple[str, ...]) -> LedgerLine:
        reading = self.reading
        assert reading.native is not None
        framework = get_framework(reading.framework)
        entry, touches, target, note = self._fate(group, identical=False)
        origin = reading.origins[group[0]]
        said = origin.note if origin.origin is Origin.DERIVED else f"default of {framework.title}"
        value = reading.native.values.get(label, reading.flat[group[0]])
        option = label if label in group else framework.spelling(label, reading.version)
        return LedgerLine(option, value, None, entry, touches, target, f"{said}; {note}" if note else said, group)

    def _leaf_line(self, leaf: str) -> LedgerLine:
        entry, touches, target, note = self._fate((leaf,), identical=True)
        origin = self.reading.origins.get(leaf)
        return LedgerLine(
            leaf, self.reading.flat[leaf], origin.place if origin else None, entry, touches, target, note, (leaf,)
        )

    def _fate(self, fields: tuple[str, ...], *, identical: bool) -> tuple[Entry, Touches, str, str]:
        """The worst fate among ``fields``, what it touches, what the target says, and why."""
        verdicts = [self._fate_of_leaf(leaf, identical=identical) for leaf in fields]
        worst = max(verdicts, key=lambda verdict: SEVERITY[verdict[0]])
        entry = worst[0]
        concerned = [leaf for leaf, verdict in zip(fields, verdicts, strict=True) if verdict[0] is entry]
        notes = list(
            dict.fromkeys(note for verdict, note in verdicts if note and (verdict.is_loss or not entry.is_loss))
        )
        stated = dict.fromkeys(
            self.rendered.stated[address]
            for leaf in fields
            for address in self.table.options_of(leaf)
            if address in self.rendered.stated
        )
        if entry is Entry.IRRELEVANT:
            notes = notes or ["without effect in this configuration"]
        touches = _gravest(
            tuple(leaf for leaf, v in zip(fields, verdicts, strict=True) if v[0].is_loss)
            if entry.is_loss
            else tuple(concerned)
        )
        return entry, touches, "; ".join(stated), "; ".join(notes)

    def _fate_of_leaf(self, leaf: str, *, identical: bool) -> tuple[Entry, str]:
        if leaf in self.sink.needs:
            return Entry.NEEDS_INPUT, self.sink.needs[leaf]
        wanted = self.reading.flat.get(leaf)
        if leaf in self.differences:
            short = self.sink.shortfalls.get(leaf)
            if short is not None:
                return short.entry, short.note
            if leaves()[leaf].touches is not Touches.NOTHING:
                return Entry.APPROXIMATED, f"reads back as {self.differences[leaf][1]!r}"
        if wanted is None:
            return Entry.IRRELEVANT, ""
        row = self.table.row_of_field[leaf]
        written = [address for address in self.table.options_of(leaf) if address in self.rendered.stated]
        if not written:
            return Entry.DEFAULT, ""
        return (Entry.EXACT if identical and row.identical else Entry.ADAPTED), ""


def _switched_off(value: object) -> bool:
    """Whether a section says of itself, or of all its parts, that it is not enabled."""
    if not isinstance(value, Mapping):
        return False
    parts = [part for part in value.values() if part != {}]
    return value.get("enabled") is False or (bool(parts) and all(map(_switched_off, parts)))


def _gravest(fields: tuple[str, ...]) -> Touches:
    known = leaves()
    return max((known[leaf].touches for leaf in fields), key=lambda touches: touches.weight, default=Touches.NOTHING)
