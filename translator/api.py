"""The public functions: read a source, write a spec, convert one into the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from translator import frameworks
from translator.conversion import Conversion
from translator.conversion import convert as _convert
from translator.errors import UsageError
from translator.frameworks.base import Dialects, TakesModel
from translator.ignores import read_ignores
from translator.native import Origin
from translator.printable import one_line
from translator.reading import LeafOrigin, Reading, ReadOptions, read_native
from translator.source import Source, load

if TYPE_CHECKING:
    from translator.diffing import Compared
    from translator.findings import Finding
    from translator.memory.estimate import Estimate
    from translator.spec import Spec

SPEC = "spec"  # the neutral spec itself, as a source and as a target
SPECS = (SPEC, "spec.yaml")


def read(source: str | Source, *, framework: str | None = None, options: ReadOptions | None = None) -> Reading:
    """Read a configuration file (or a `Source`) as a spec.

    ``framework`` is ``name`` or ``name@version``, or ``spec``; without it the text decides. Findings that a comment
    ``# ttx: ignore=CODE`` names are left out. Raises SourceError when the text cannot be read, UsageError for an
    unknown framework or version.
    """
    from translator.spec_file import is_spec, read_spec

    options = options or ReadOptions()
    known = frameworks.resolve(framework) if framework not in (None, SPEC) else None
    text = load(source) if isinstance(source, str) else source
    if framework == SPEC or (framework is None and is_spec(text)):
        found = read_spec([text], options.overrides)
        found.ignored = read_ignores(text.name, text.text)
        return found
    chosen, version = known or (frameworks.detect(text), None)
    if options.model is not None and not isinstance(chosen, TakesModel):
        raise UsageError(f"--model: a configuration of {chosen.title} holds its model", fix="set model.FIELD=VALUE")
    native = chosen.parse(text, version or chosen.guess_version(text), options)
    table = chosen.table_of(native) if isinstance(chosen, Dialects) else chosen.table(native.version)
    reading = read_native(native, table)
    reading.ignored = read_ignores(text.name, text.text)
    reading.findings = reading.ignored.keep(reading.findings)
    return override(reading, options.overrides)


def override(reading: Reading, overrides: Mapping[str, Any]) -> Reading:
    """Set leaves by hand. Raises UsageError for an unknown leaf."""
    if not overrides:
        return reading
    from translator.spec import leaves
    from translator.spec_file import unknown_field

    for leaf, value in overrides.items():
        if leaf not in leaves():
            raise unknown_field(leaf)
        reading.flat[leaf] = value
        reading.origins[leaf] = LeafOrigin(Origin.EXPLICIT, f"{leaf}={value}")
    reading.by_hand = frozenset(overrides)
    return reading


def convert(
    source: str | Source | Reading,
    to: str,
    *,
    framework: str | None = None,
    options: ReadOptions | None = None,
    nearest: bool = False,
) -> Conversion:
    """Convert a source to ``to`` (``name`` or ``name@version``, or ``spec``). Raises SourceError and UsageError.

    With ``nearest`` a layout that the target cannot say gives way to the nearest one that it can run.
    """
    target, version = (None, None) if to in SPECS else frameworks.resolve(to)
    reading = source if isinstance(source, Reading) else read(source, framework=framework, options=options)
    if target is None:
        from translator.to_spec import to_spec

        return to_spec(reading)
    name = _name(source, reading)
    title = "spec" if reading.native is None else f"{frameworks.get(reading.framework).title} {reading.version}"
    return _convert(reading, target, version or target.default_version, one_line(name), title, nearest=nearest)


def check(
    source: str | Source | Reading, *, framework: str | None = None, options: ReadOptions | None = None
) -> list[Finding]:
    """What there is to say about one configuration: of reading it, and of the rules. Raises SourceError, UsageError.

    Codes that a comment ``# ttx: ignore=CODE`` in the source names are left out.
    """
    from translator.checks import check as _check

    reading = source if isinstance(source, Reading) else read(source, framework=framework, options=options)
    return [*reading.findings, *reading.ignored.keep(_check(reading))]


def advice(reading: Reading) -> list[Finding]:
    """What the rules warn of in a configuration that its framework takes: what is slow, wasteful or not as meant."""
    from translator.checks import check as _check
    from translator.findings import Level

    return reading.ignored.keep([finding for finding in _check(reading) if finding.level is not Level.NOTE])


def differences(done: Conversion) -> list[Finding]:
    """What source and target of a conversion mean differently by the same words."""
    from translator.differences import between

    return done.source.ignored.keep(between(done.source, done.back))


def diff(left: str | Source | Reading, right: str | Source | Reading) -> Compared:
    """Compare two configurations by the values in force; ``left`` is the reference. Raises SourceError, UsageError."""
    from translator.diffing import diff as _diff

    one, two = (each if isinstance(each, Reading) else read(each) for each in (left, right))
    return _diff(one, two)


def estimate(source: str | Source | Reading, *, options: ReadOptions | None = None) -> Estimate:
    """What every rank of a run holds. Raises SourceError where the configuration does not say enough; UsageError."""
    from translator.memory.estimate import estimate_reading

    return estimate_reading(source if isinstance(source, Reading) else read(source, options=options))


def write(spec: Spec | Reading, to: str) -> Conversion:
    """Write a spec for ``to``; the same as `convert` from a spec. Raises SourceError and UsageError."""
    if isinstance(spec, Reading):
        return convert(spec, to)
    from translator.spec_file import reading_of

    return convert(reading_of(spec), to)


def _name(source: str | Source | Reading, reading: Reading) -> str:
    if isinstance(source, Source):
        return source.name
    return "<stdin>" if source == "-" else source if isinstance(source, str) else reading.framework
