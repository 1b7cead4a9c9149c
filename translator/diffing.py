"""Two configurations compared by what they mean: field by field, with where each value comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from translator.compare import equal
from translator.spec import leaves
from translator.spec.touches import Touches

if TYPE_CHECKING:
    from translator.findings import Finding
    from translator.reading import LeafOrigin, Reading

_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that the right configuration does not say as the left one does; None is a value not said."""

    field: str
    left: Any
    right: Any
    left_origin: LeafOrigin | None
    right_origin: LeafOrigin | None

    @property
    def touches(self) -> Touches:
        """What the field touches."""
        return leaves()[self.field].touches

    @property
    def alters_training(self) -> bool:
        """Whether the numbers that the model sees may differ because of it."""
        return self.touches is Touches.TRAINING

    def as_dict(self) -> dict[str, object]:
        """The stable JSON form."""
        return {
            "field": self.field,
            "left": self.left,
            "right": self.right,
            "alters_training": self.alters_training,
            "touches": self.touches.value,
            "left_origin": None if self.left_origin is None else self.left_origin.as_dict(),
            "right_origin": None if self.right_origin is None else self.right_origin.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class Compared:
    """Two configurations side by side.

    ``differences`` are the fields that the left one says and the right one does not say likewise; ``right_only`` those
    that only the right one says. ``findings`` are the semantic differences: same words, other meaning. ``curve`` is the
    largest difference of the learning rates as a share of the left peak, and the step where it is; None where a
    schedule is not known.
    """

    left: Reading
    right: Reading
    differences: list[Difference]
    right_only: list[Difference]
    findings: list[Finding]
    curve: tuple[float, int] | None

    @property
    def same_training(self) -> bool:
        """Whether no difference alters training."""
        return not any(difference.alters_training for difference in self.differences)

    def as_dict(self) -> dict[str, object]:
        """The stable JSON form."""
        return {
            "schema_version": 1,
            "left": {"framework": self.left.framework, "version": self.left.version},
            "right": {"framework": self.right.framework, "version": self.right.version},
            "same_training": self.same_training,
            "differences": [difference.as_dict() for difference in self.differences],
            "right_only": [difference.as_dict() for difference in self.right_only],
            "findings": [finding.as_dict() for finding in self.findings],
            "learning_rate": None
            if self.curve is None
            else {"largest_difference": self.curve[0], "step": self.curve[1]},
        }


def diff(left: Reading, right: Reading) -> Compared:
    """Compare two configurations, of the same framework or of two; the left one is the reference.

    What the right side's framework says in another form, without a loss, is no difference. Raises SourceError for a
    value that is impossible.
    """
    from translator.differences import between

    changed, added = _changed(left.flat, right.flat)
    adapted = _adapted(left, right, changed)
    changed = [name for name in changed if name not in adapted]
    known = leaves()

    def told(names: Iterable[str]) -> list[Difference]:
        found = [
            Difference(name, left.flat.get(name), right.flat.get(name), left.origins.get(name), right.origins.get(name))
            for name in names
            if name in known and known[name].touches is not Touches.NOTHING
        ]
        position = {name: index for index, name in enumerate(known)}
        return sorted(found, key=lambda each: (-each.touches.weight, position[each.field]))

    return Compared(left, right, told(changed), told(added), between(left, right), _curves(left, right))


def _changed(left: Mapping[str, Any], right: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Fields that the left side says and the right does not say likewise, and those that only the right side says."""
    from deepdiff import DeepDiff

    said = {name: value for name, value in left.items() if value is not None}
    found = DeepDiff(
        said,
        {name: value for name, value in right.items() if value is not None},
        ignore_numeric_type_changes=True,
        significant_digits=_DIGITS,
        number_format_notation="e",
    )
    concerned = list(found.affected_root_keys)
    changed = [name for name in concerned if name in said and not equal(said[name], right.get(name))]
    return changed, [name for name in concerned if name not in said]


def _adapted(left: Reading, right: Reading, changed: list[str]) -> set[str]:
    """Fields that the right side says in another form: as the left side's own conversion would, without a loss."""
    from translator import api

    if right.native is None or not changed:
        return set()
    done = api.convert(left, f"{right.framework}@{right.version}")
    admitted = {name: short for name, short in done.sink.shortfalls.items() if not short.entry.is_loss}
    return {name for name in changed if name in admitted and equal(done.back.flat.get(name), right.flat.get(name))}


def _curves(left: Reading, right: Reading) -> tuple[float, int] | None:
    from translator.schedules import curve_of, largest_difference

    curves = curve_of(left.flat), curve_of(right.flat)
    peak = left.flat.get("optimizer.lr")
    if curves[0] is None or curves[1] is None or not isinstance(peak, int | float) or not peak:
        return None
    difference, step = largest_difference(curves[0], curves[1], min(curves[0].total, curves[1].total))
    return difference / peak, step
