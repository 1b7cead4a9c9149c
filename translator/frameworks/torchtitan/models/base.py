"""Rows between the arguments of a model class and neutral leaves; the same row reads and writes.

Arguments are flat: ``moe_args.top_k`` for a nested one. Leaves are those of the spec's section ``model``, without that
prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

Leaves = dict[str, object]
Arguments = dict[str, object]
Reader = Callable[[Mapping[str, object]], Mapping[str, object]]


class Inexpressible(Exception):  # noqa: N818 - it is an answer, not a failure
    """A family has no arguments for the wanted value of a leaf."""

    def __init__(self, leaf: str, reason: str) -> None:
        super().__init__(reason)
        self.leaf = leaf
        self.reason = reason


class Row(NamedTuple):
    """One fact in both directions.

    ``read`` turns the arguments of a flavor into leaves; ``write`` turns wanted leaves into arguments and raises
    `Inexpressible` where there are none. A leaf that is not wanted is absent.
    """

    arguments: tuple[str, ...]
    leaves: tuple[str, ...]
    read: Reader
    write: Reader


class Family(NamedTuple):
    """A model family of one version.

    ``table`` and ``module`` say where its flavors live; ``arguments_class`` and ``nested`` (argument -> class and
    module) how one is built. ``pipeline`` is whether torchtitan can split it into stages, ``context`` the attention
    types with which it runs context parallel. ``unused`` are arguments without influence on the model that is trained.
    ``positions`` is the argument that bounds the sequence length, where the version refuses longer sequences.
    """

    name: str
    rows: tuple[Row, ...]
    table: str
    module: str
    arguments_class: str
    nested: Mapping[str, tuple[str, str]]
    unused: frozenset[str]
    pipeline: bool = True
    context: frozenset[str] = frozenset({"sdpa"})
    wraps_experts: bool = False
    positions: str = ""

    def read(self, arguments: Mapping[str, object]) -> Leaves:
        """The leaves that these arguments mean."""
        flat = flatten(arguments)
        leaves: Leaves = {}
        for row in self.rows:
            leaves.update(row.read(flat))
        return leaves

    def write(self, leaves: Mapping[str, object]) -> tuple[Arguments, dict[str, str]]:
        """The arguments nearest to the leaves, and why each leaf that is not met cannot be."""
        flat: Arguments = {}
        reasons: dict[str, str] = {}
        for row in self.rows:
            try:
                flat.update(row.write(leaves))
            except Inexpressible as refusal:
                reasons[refusal.leaf] = refusal.reason
        return nest(flat), reasons


def flatten(arguments: Mapping[str, object]) -> Arguments:
    """Nested arguments with dotted names; a nested None stays under its own name."""
    flat: Arguments = {}
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}.{inner}": item for inner, item in value.items()})
            flat[name] = True
        else:
            flat[name] = value
    return flat


def nest(flat: Mapping[str, object]) -> Arguments:
    """The inverse of `flatten`."""
    nested: Arguments = {}
    for name, value in flat.items():
        group, _, inner = name.partition(".")
        if inner:
            inside = nested.setdefault(group, {})
            if isinstance(inside, dict):
                inside[inner] = value
        else:
            nested[name] = value
    return nested


def integer(value: object) -> int:
    """A count among arguments or leaves; 0 when absent. Raises `TypeError` for anything that is no number."""
    if value is None:
        return 0
    if isinstance(value, (int, float)):
        return int(value)
    raise TypeError(f"{value!r} is no count")


def link(argument: str, leaf: str) -> Row:
    """An argument that is the leaf."""
    return Row(
        (argument,),
        (leaf,),
        lambda arguments: {leaf: arguments[argument]} if argument in arguments else {},
        lambda leaves: {argument: leaves[leaf]} if leaves.get(leaf) is not None else {},
    )


def fixed(leaf: str, value: object, source: str) -> Row:
    """A leaf that the model's code fixes; ``source`` is where."""

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get(leaf)
        if wanted is not None and not same(wanted, value):
            raise Inexpressible(leaf, f"{leaf.replace('.', ' ').replace('_', ' ')}: always {_word(value)} ({source})")
        return {}

    return Row((), (leaf,), lambda _: {leaf: value}, write)


def _word(value: object) -> str:
    """A fixed value for a reader."""
    if value is None or value in (["none"], []):
        return "none"
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def all_fixed(values: Mapping[str, object], source: str) -> tuple[Row, ...]:
    """A row per leaf that the model's code fixes at one place."""
    return tuple(fixed(leaf, value, source) for leaf, value in values.items())


def choice(argument: str, leaf: str, pairs: Mapping[object, object], source: str) -> Row:
    """An argument and a leaf that name the same alternatives differently (argument -> leaf, one to one)."""
    inverse = {value: key for key, value in pairs.items()}

    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        return {leaf: pairs[arguments[argument]]} if arguments.get(argument) in pairs else {}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get(leaf)
        if wanted is None:
            return {}
        if wanted not in inverse:
            raise Inexpressible(leaf, f"{leaf} cannot be {wanted!r}: only {', '.join(map(str, inverse))} ({source})")
        return {argument: inverse[wanted]}

    return Row((argument,), (leaf,), read, write)


def same(one: object, other: object) -> bool:
    """Whether two values mean the same; absent, zero, false, "none" and empty are one value."""
    if isinstance(one, bool) is isinstance(other, bool) and one == other:
        return True
    return (not one or one == "none") and (not other or other == "none")


def attention_rows(source: str, types: Mapping[object, object]) -> tuple[Row, ...]:
    """The attention implementation (``attn_type``) and its mask (``attn_mask_type``)."""

    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        kind = arguments.get("attn_type")
        document = kind != "sdpa" and arguments.get("attn_mask_type") == "block_causal"
        return {"attention_kernel": types.get(kind, kind), "attention_mask": "document" if document else "causal"}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get("attention_mask") or "causal"
        if wanted not in {"causal", "document"}:
            raise Inexpressible("attention_mask", f"attention is causal ({source})")
        kind = next((key for key, value in types.items() if value == leaves.get("attention_kernel")), None)
        if wanted == "document":
            return {"attn_type": kind if kind not in {None, "sdpa"} else "flex", "attn_mask_type": "block_causal"}
        if kind is None or kind == "varlen":
            kind = "sdpa" if "sdpa" in types else "flex"
        return {"attn_type": kind, "attn_mask_type": "causal"}

    return (Row(("attn_type", "attn_mask_type"), ("attention_kernel", "attention_mask"), read, write),)
