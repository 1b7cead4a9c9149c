"""The catalogues of all registered frameworks: the options of a version, and how the files are generated.

A framework with generated catalogues ships them below ``schemas``. For any other its table, spellings and defaults make
one, so that every command shows its options alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from translator import frameworks
from translator.catalogue import Catalogue, Entry, load, versions
from translator.catalogue.model import FIELD_ACTION
from translator.errors import UsageError
from translator.frameworks.base import OPTIONS, Catalogued, Framework, Generated, Generator

_KINDS = {bool: "bool", int: "int", float: "float", list: "list", dict: "dict"}


def of(framework: Framework, version: str) -> Catalogue:
    """The options of a version: the framework's own catalogue, else what its table knows."""
    if isinstance(framework, Catalogued):
        return framework.catalogue(version)
    known = sorted(framework.table(version).known)
    return Catalogue(framework.name, version, tuple(_entry(framework, address, version) for address in known))


def _entry(framework: Framework, address: str, version: str) -> Entry:
    default, flag = framework.default(address, version), framework.spelling(address, version)
    choices = framework.table(version).choices.get(address)
    return Entry(
        key=address,
        address=address,
        kind="enum" if choices else _KINDS.get(type(default), "str"),
        action=FIELD_ACTION if flag == address else "option",
        flags=(flag,),
        default=default,
        choices=tuple(sorted(choices, key=str)) if choices else None,
        type_name="" if default is None else type(default).__name__,
    )


def named(name: str, version: str = "") -> Catalogue:
    """The catalogue of a framework, or one that completes a framework's; of the default version unless one is given.

    Raises UsageError for an unknown name or version.
    """
    if name not in frameworks.names() and name in _generators():
        return load(name, version or versions(name)[-1])
    framework, _ = frameworks.resolve(f"{name}@{version}" if version else name)
    return of(framework, version or framework.default_version)


def every(framework: Framework) -> Iterator[tuple[str, Catalogue]]:
    """All catalogues of a framework, each with the version of the framework that it is for: the usual version first.

    Those that complete it, such as one of a trainer's arguments, come last.
    """
    usual = framework.default_version
    for version in (usual, *(other for other in reversed(framework.versions) if other != usual)):
        yield version, of(framework, version)
    if isinstance(framework, Generated):
        for name in framework.generators():
            if name != framework.name:
                yield usual, load(name, versions(name)[-1])


def span(framework: Framework, address: str) -> tuple[str, str | None] | None:
    """The first version with an option, and the first one after it without (None while it is there).

    None where no version's own catalogue has it.
    """
    having = [address in of(framework, version) for version in framework.versions]
    if True not in having:
        return None
    first = having.index(True)
    after = len(having) - having[::-1].index(True)
    return framework.versions[first], framework.versions[after] if after < len(having) else None


def generate(name: str, version: str, source: Path, kind: str = OPTIONS) -> str:
    """The text of a generated file: the catalogue of a version, or another kind that its framework has.

    Raises UsageError for a name that nothing is generated for and a kind that it lacks, SourceError for a source tree
    of something else.
    """
    known = _generators()
    if name not in known:
        raise UsageError(f"no extractor for {name!r}", fix=f"known: {', '.join(sorted(known))}")
    if kind not in known[name]:
        having = ", ".join(sorted(other for other in known if kind in known[other]))
        raise UsageError(f"{name} has no {kind}", fix=f"{kind} are extracted for {having}" if having else "")
    return known[name][kind](version, source)


def _generators() -> Mapping[str, Mapping[str, Generator]]:
    found: dict[str, Mapping[str, Generator]] = {}
    for name in frameworks.names():
        framework = frameworks.get(name)
        if isinstance(framework, Generated):
            found |= framework.generators()
    return found
