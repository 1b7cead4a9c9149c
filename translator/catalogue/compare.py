"""What changed between two catalogues of one framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from translator.catalogue.document import encode_entry, renamed
from translator.catalogue.model import Catalogue, Entry

NOT_COMPARED = frozenset({"address", "source"})


@dataclass(frozen=True, slots=True)
class Change:
    """One property of one option that differs: ``old`` and ``new`` are JSON, ``None`` where it is not stated."""

    address: str
    what: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class CatalogueDiff:
    """Differences from an old catalogue to a new one.

    Options are named by address, and by address and flag where several share one.

    ``renamed`` maps an address to the one where its flag now stores; such options appear in ``changed`` under the new
    name and neither in ``added`` nor in ``removed``.
    """

    framework: str
    old: str
    new: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    renamed: dict[str, str]
    changed: tuple[Change, ...]

    def as_dict(self) -> dict[str, Any]:
        """The stable JSON form."""
        return {
            "schema_version": 1,
            "framework": self.framework,
            "old": self.old,
            "new": self.new,
            "added": list(self.added),
            "removed": list(self.removed),
            "renamed": self.renamed,
            "changed": [
                {"address": change.address, "what": change.what, "old": change.old, "new": change.new}
                for change in self.changed
            ],
        }


def diff(old: Catalogue, new: Catalogue) -> CatalogueDiff:
    """Compares two catalogues option by option, everything but the place in the source."""
    from deepdiff import DeepDiff

    heirs = renamed(old, new)
    before, after = _facts(old, heirs), _facts(new, {})
    added: list[str] = []
    removed: list[str] = []
    touched: set[tuple[str, str]] = set()
    for kind, items in DeepDiff(before, after, view="tree", ignore_type_in_groups=[(int, float)]).items():
        for item in items:
            path = item.path(output_format="list")
            if len(path) > 1:
                touched.add((str(path[0]), str(path[1])))
            elif kind == "dictionary_item_added":
                added.append(str(path[0]))
            else:
                removed.append(str(path[0]))
    changed = tuple(Change(name, what, before[name].get(what), after[name].get(what)) for name, what in sorted(touched))
    return CatalogueDiff(
        old.framework, old.version, new.version, tuple(sorted(added)), tuple(sorted(removed)), heirs, changed
    )


def _facts(catalogue: Catalogue, heirs: dict[str, str]) -> dict[str, dict[str, Any]]:
    return {_name(entry, catalogue, heirs): _row(entry) for entry in catalogue.entries}


def _name(entry: Entry, catalogue: Catalogue, heirs: dict[str, str]) -> str:
    address = heirs.get(entry.address, entry.address)
    return address if len(catalogue.by_address(entry.address)) == 1 else f"{address} {entry.key}"


def _row(entry: Entry) -> dict[str, Any]:
    return {key: value for key, value in encode_entry(entry).items() if key not in NOT_COMPARED}
