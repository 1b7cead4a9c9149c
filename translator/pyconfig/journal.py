"""Changes that can be taken back: what two branches of an unknown condition leave is compared and merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from translator.pyconfig.values import MISSING, Node, Unknown, same

_WHOLE = object()
Container = dict[Any, object] | list[object] | set[Any]
Key = tuple[int, object]


class Journal:
    """The first value of every place that was changed since it was opened."""

    def __init__(self) -> None:
        self._old: dict[Key, tuple[Container, object, object]] = {}

    def entry(self, container: dict[Any, object], key: object) -> None:
        """Notes the value of a dictionary entry before it changes."""
        self._old.setdefault((id(container), key), (container, key, container.get(key, MISSING)))

    def whole(self, container: Container) -> None:
        """Notes everything in a container before it changes in a way that is not told apart."""
        if isinstance(container, dict):
            for key in list(container):
                self.entry(container, key)
        else:
            self._old.setdefault((id(container), _WHOLE), (container, _WHOLE, container.copy()))

    def now(self) -> dict[Key, tuple[Container, object, object]]:
        """The present value of every place that was changed."""
        return {where: (box, key, _read(box, key)) for where, (box, key, _) in self._old.items()}

    def undo(self) -> None:
        """Puts everything back."""
        for box, key, value in self._old.values():
            _write(box, key, value)

    def before(self) -> dict[Key, tuple[Container, object, object]]:
        """The value that every changed place had."""
        return dict(self._old)


def _read(box: Container, key: object) -> object:
    return box.get(key, MISSING) if isinstance(box, dict) else box.copy()


def _write(box: Container, key: object, value: Any) -> None:
    if isinstance(box, dict):
        if value is MISSING:
            box.pop(key, None)
        else:
            box[key] = value
    elif isinstance(box, list):
        box[:] = value
    else:
        box.clear()
        box.update(value)


State = dict[Key, tuple[Container, object, object]]


def apply(state: State, note: Callable[[Container, object], None]) -> None:
    """Puts a state in force; ``note`` is told of each place before it changes."""
    for box, key, value in state.values():
        note(box, key)
        _write(box, key, value)


def merged_state(first: State, second: State, before: State, unknown: Unknown) -> State:
    """What holds after either of two branches."""
    found: State = {}
    for where in {**first, **second}:
        box, key, old = before[where]
        one = first[where][2] if where in first else old
        other = second[where][2] if where in second else old
        found[where] = (box, key, merged(one, other, unknown, whole=key is _WHOLE))
    return found


def merged(one: object, other: object, unknown: Unknown, *, whole: bool = False) -> object:
    """One value where both are the same; instances and equally long lists part by part, else ``unknown``."""
    if same(one, other):
        return one
    if isinstance(one, Node) and isinstance(other, Node) and one.cls == other.cls:
        names = [*one.fields, *(name for name in other.fields if name not in one.fields)]
        fields = {
            name: merged(one.fields.get(name, MISSING), other.fields.get(name, MISSING), unknown) for name in names
        }
        return Node(one.cls, fields, {**other.places, **one.places}, one.place, one.bases)
    if isinstance(one, list) and isinstance(other, list):
        if len(one) == len(other):
            return [merged(left, right, unknown) for left, right in zip(one, other, strict=True)]
        return [unknown] if whole else unknown
    if whole:
        return {unknown}
    return unknown


def note_in(journal: Journal | None) -> Callable[[Container, object], None]:
    """How to tell a journal of changes; without one nothing is noted."""

    def note(box: Container, key: object) -> None:
        if journal is None:
            return
        if isinstance(box, dict):
            journal.entry(box, key)
        else:
            journal.whole(box)

    return note
