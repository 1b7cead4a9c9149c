"""Rows between the entries of a Hugging Face ``config.json`` and leaves of the spec's section ``model``.

One row reads and writes. Leaves are named without their prefix (``rope.scaling``). A family reads a configuration with
the defaults of its class; what it writes is complete, so that no default of another version of transformers enters.
Files and lines are of transformers 5.24.0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

Config = Mapping[str, Any]
Leaves = Mapping[str, Any]


class Row(NamedTuple):
    """One fact in both directions. ``read`` gets entries with defaults filled in, ``write`` the wanted leaves.

    ``note`` says why a leaf of the row may not be met. ``choices`` are the words that its entry may be, where these
    are all that is known.
    """

    keys: tuple[str, ...]
    leaves: tuple[str, ...]
    read: Callable[[Config], Mapping[str, Any]]
    write: Callable[[Leaves], Mapping[str, Any]]
    note: str = ""
    choices: tuple[Any, ...] = ()


class Family(NamedTuple):
    """A model type: its class for language modelling, the defaults of its configuration class, and its rows.

    ``source`` is the file of the configuration class. ``constant`` are entries that are written as they are.
    """

    model_type: str
    architecture: str
    source: str
    defaults: Mapping[str, Any]
    rows: tuple[Row, ...]
    constant: Mapping[str, Any]

    @property
    def keys(self) -> tuple[str, ...]:
        """Every entry that the rows read or write."""
        return tuple(dict.fromkeys((*(key for row in self.rows for key in row.keys), *self.constant)))

    def read(self, config: Config) -> dict[str, Any]:
        """The leaves that a configuration means."""
        full = {**self.defaults, **config}
        leaves: dict[str, Any] = {}
        for row in self.rows:
            leaves.update(row.read(full))
        return leaves

    def write(self, leaves: Leaves) -> dict[str, Any]:
        """The configuration nearest to the leaves."""
        config: dict[str, Any] = {"architectures": [self.architecture], "model_type": self.model_type}
        for row in self.rows:
            config.update(row.write(leaves))
        return {**config, **self.constant}

    def notes(self) -> dict[str, str]:
        """Per leaf why it may not be met."""
        return {leaf: row.note for row in self.rows for leaf in row.leaves if row.note}


def link(key: str, leaf: str) -> Row:
    """An entry that is the leaf."""
    return Row(
        (key,),
        (leaf,),
        lambda config: {leaf: config.get(key)},
        lambda leaves: {} if leaves.get(leaf) is None else {key: leaves[leaf]},
    )


def number(key: str, leaf: str, default: float = 0.0) -> Row:
    """An entry that is the leaf, a float, written even where it is not wanted."""

    def read(config: Config) -> Mapping[str, Any]:
        value = config.get(key)
        return {leaf: None if value is None else float(value)}

    return Row((key,), (leaf,), read, lambda leaves: {key: leaves[leaf] if leaves.get(leaf) is not None else default})


def fixed(leaf: str, value: Any, source: str) -> Row:
    """A leaf that the model's code fixes; ``source`` is where."""
    word = "none" if value is None or value in ([], ["none"]) else value
    word = {True: "on", False: "off"}[value] if isinstance(value, bool) else word
    return Row((), (leaf,), lambda _: {leaf: value}, lambda _: {}, f"{leaf}: always {word} ({source})")


def all_fixed(values: Mapping[str, Any], source: str) -> tuple[Row, ...]:
    """A row per leaf that the model's code fixes at one place."""
    return tuple(fixed(leaf, value, source) for leaf, value in values.items())


def words(key: str, leaf: str, pairs: Mapping[Any, Any], source: str, *, also: Mapping[Any, Any] | None = None) -> Row:
    """An entry and a leaf that name the same things differently (one to one); ``also`` are read, never written."""
    inverse = {neutral: native for native, neutral in pairs.items()}
    known = {**pairs, **(also or {})}

    def read(config: Config) -> Mapping[str, Any]:
        value = config.get(key)
        return {leaf: known.get(value) if isinstance(value, Hashable) else None}

    def write(leaves: Leaves) -> Mapping[str, Any]:
        wanted = leaves.get(leaf)
        return {key: inverse.get(wanted, next(iter(pairs)))} if wanted is not None else {}

    note = f"{leaf}: only {', '.join(map(str, inverse))} ({source})"
    return Row((key,), (leaf,), read, write, note, tuple(known))


def family(  # noqa: PLR0917 - one declaration per family, always in this order
    model_type: str,
    architecture: str,
    source: str,
    defaults: Mapping[str, Any],
    rows: Iterable[Row],
    constant: Mapping[str, Any] | None = None,
) -> Family:
    """A family with its rows in a tuple."""
    return Family(model_type, architecture, source, defaults, tuple(rows), constant or {})
