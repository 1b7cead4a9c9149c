"""Named architectures of torchtitan and neutral models: what a flavor means, which flavor a model is, or its arguments.

The arguments of every flavor are facts in ``schemas/torchtitan/flavors-<version>.json``; ``models`` says what they
mean. All public functions speak of leaves by their full path (``model.hidden``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from translator.frameworks.torchtitan.models import Family, families, family
from translator.frameworks.torchtitan.models.base import Leaves, flatten, integer, same
from translator.resources import schema_path

PREFIX = "model."
Differences = dict[str, tuple[object, object]]

# Torchtitan sets the longest position to the training sequence length; padding of the vocabulary does not exist.
NOT_COMPARED = frozenset({"max_positions", "name", "family"})
# Reported, but no reason for a flavor of one's own: kernels, initial scales, and the order of rotary pairs, which is a
# permutation of weights.
MINOR = frozenset(
    {
        "attention_kernel",
        "init_output_scaling",
        "init_std",
        "moe.dispatcher",
        "moe.grouped_gemm",
        "moe.router_dtype",
        "rope.interleaved",
    }
)
# What guides training from outside: a family without it still has the model's weights, and computes the same.
GUIDANCE = frozenset(
    {
        "attention_dropout",
        "hidden_dropout",
        "moe.aux_loss_coefficient",
        "moe.balancing",
        "moe.capacity_factor",
        "moe.capacity_padding",
        "moe.router_bias",
        "moe.router_bias_rate",
        "moe.router_jitter",
        "moe.z_loss_coefficient",
    }
)
# A difference that no other agreement makes up for: dense against MoE, grouped against latent attention.
KIND = frozenset({"moe.experts", "mla.enabled"})
KIND_WEIGHT = 1000.0
# Where neither model nor run says how long a sequence may be, and the version wants to know.
DEFAULT_POSITIONS = 8192
# Leaves whose absence in a model means "none", so that they are compared all the same.
ABSENT_MEANS_NONE = frozenset({"attention_window", "mla.enabled", "moe.experts", "mtp.layers", "rope.scaling"})


class Match(NamedTuple):
    """A named flavor and the leaves in which it differs from a model: leaf -> (wanted, what the flavor has)."""

    name: str
    flavor: str
    differences: Differences

    @property
    def exact(self) -> bool:
        """Whether no leaf differs that changes the model itself."""
        return not major(self.differences)


class Custom(NamedTuple):
    """Arguments for a flavor of one's own in a family, with the leaves that they still miss, and why."""

    name: str
    arguments: dict[str, object]
    differences: Differences
    reasons: dict[str, str]


class Choice(NamedTuple):
    """How torchtitan says a model: a named flavor, or arguments for one of its own (``custom``)."""

    name: str
    flavor: str | None
    custom: Custom | None
    differences: Differences
    reasons: dict[str, str]
    nearest: Match


def major(differences: Iterable[str]) -> set[str]:
    """The differing leaves that change the model itself."""
    return {leaf for leaf in differences if leaf.removeprefix(PREFIX) not in MINOR}


def _shape(differences: Iterable[str]) -> set[str]:
    """The differing leaves that change the weights or what is computed with them."""
    return {leaf for leaf in differences if leaf not in MINOR and leaf not in GUIDANCE}


@cache
def _document(version: str) -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    try:
        with schema_path("torchtitan", f"flavors-{version}.json").open("rb") as stream:
            found = json.loads(stream.read())["families"]
    except OSError:
        found = {}
    return MappingProxyType(found)


def flavor_names(name: str, version: str) -> tuple[str, ...]:
    """The named flavors of a ``model.name``; empty when it is unknown."""
    known = family(name, version)
    rows = _document(version).get(known.name if known else name, {})
    return tuple(flavor for flavor in rows if flavor != "_defaults")


def arguments(name: str, flavor: str, version: str) -> Mapping[str, object] | None:
    """The arguments of a named flavor as upstream's table has them, or None when there is no such flavor."""
    known = family(name, version)
    row = _document(version).get(known.name if known else name, {}).get(flavor)
    inner = row.get("args") if row is not None and flavor != "_defaults" else None
    return inner if isinstance(inner, Mapping) else None


def default_arguments(name: str, version: str) -> Mapping[str, object]:
    """The defaults of a family's argument class; empty for an unknown family."""
    known = family(name, version)
    if known is None:
        return {}
    defaults = _document(version).get(known.name, {}).get("_defaults", {}).get(known.arguments_class)
    return defaults if isinstance(defaults, Mapping) else {}


def complete(name: str, partial: Mapping[str, object], version: str) -> dict[str, object]:
    """Arguments with the defaults of their classes filled in."""
    known = family(name, version)
    full: dict[str, object] = dict(default_arguments(name, version))
    for argument, value in partial.items():
        default = full.get(argument)
        if isinstance(value, Mapping):
            base = default if isinstance(default, Mapping) else _nested_defaults(known, argument, version)
            full[argument] = {**base, **value}
        else:
            full[argument] = value
    return full


def _nested_defaults(known: Family | None, argument: str, version: str) -> Mapping[str, object]:
    """Defaults of a nested class whose default value is None (llama4's scaling), found in a flavor that has it."""
    if known is None or argument not in known.nested:
        return {}
    inner = _document(version).get(known.name, {}).get("_defaults", {}).get(known.nested[argument][0])
    if isinstance(inner, Mapping):
        return inner
    for flavor in flavor_names(known.name, version):
        value = (arguments(known.name, flavor, version) or {}).get(argument)
        if isinstance(value, Mapping):
            return value
    return {}


def _full(leaves: Mapping[str, object]) -> Leaves:
    return {f"{PREFIX}{leaf}": value for leaf, value in leaves.items()}


def leaves_of(
    name: str, values: Mapping[str, object], version: str, seq_len: int | None = None
) -> dict[str, object] | None:
    """What (complete) arguments mean, as neutral leaves; None for an unknown family.

    ``seq_len`` is ``training.seq_len``, which torchtitan puts in place of ``max_seq_len`` before it builds the model
    (``models/llama3/model/args.py:47-53`` of 0.2.2).
    """
    known = family(name, version)
    if known is None:
        return None
    given = dict(values) if seq_len is None else {**values, "max_seq_len": seq_len}
    return _full(known.read(given))


def dimensions(name: str, flavor: str, version: str, seq_len: int | None = None) -> dict[str, object] | None:
    """The neutral leaves of a named flavor, or None when name or flavor is unknown."""
    values = arguments(name, flavor, version)
    return None if values is None else leaves_of(name, values, version, seq_len)


def canonical(model: Mapping[str, object]) -> Leaves:
    """A model's leaves without prefix, with equal meanings brought to the form that torchtitan's code has."""
    wanted: Leaves = {
        leaf.removeprefix(PREFIX): value
        for leaf, value in model.items()
        if leaf.startswith(PREFIX) and value is not None
    }
    if wanted.get("positions") == "yarn":
        wanted["positions"] = "rope"
        wanted.setdefault("rope.scaling", "yarn")
    dense, layers = wanted.get("moe.dense_layers"), wanted.get("layers")
    all_dense = isinstance(dense, list) and isinstance(layers, int) and dense == list(range(layers))
    if not wanted.get("moe.experts") or all_dense:
        wanted = {leaf: value for leaf, value in wanted.items() if not leaf.startswith("moe.")}
    else:
        wanted.setdefault("moe.dense_layers", [])
    if not wanted.get("mla.enabled"):
        wanted = {leaf: value for leaf, value in wanted.items() if not leaf.startswith("mla.")}
    if "vocab" not in wanted and "vocab_padded" in wanted:
        wanted["vocab"] = wanted["vocab_padded"]
    if "kv_heads" not in wanted and "heads" in wanted:
        wanted["kv_heads"] = wanted["heads"]
    return wanted


def compare(wanted: Leaves, have: Mapping[str, object]) -> Differences:
    """The leaves (without prefix) in which a canonical model and a flavor differ.

    What the model leaves open is no difference.
    """
    found: Differences = {}
    for leaf, value in have.items():
        want = wanted.get(leaf)
        if leaf in NOT_COMPARED or (want is None and leaf not in ABSENT_MEANS_NONE) or same(want, value):
            continue
        found[leaf] = (want, value)
    return found


def _too_long(known: Family, values: Mapping[str, object], seq_len: int | None) -> Differences:
    """The positions, where the version refuses sequences beyond them."""
    longest = flatten(values).get(known.positions) if known.positions else None
    short = isinstance(longest, int) and seq_len is not None and seq_len > longest
    return {"max_positions": (seq_len, longest)} if short else {}


def _distance(differences: Differences) -> float:
    """How far apart, for choosing the nearest of several: minor leaves hardly count, numbers by their ratio."""
    total = 0.0
    for leaf, (want, have) in differences.items():
        if leaf in MINOR:
            total += 1e-3
        elif isinstance(want, (int, float)) and isinstance(have, (int, float)) and want > 0 and have > 0:
            total += 0.1 + min(abs(math.log(want / have)), 5.0)
        else:
            total += KIND_WEIGHT if leaf in KIND else 3.0
    return total


@lru_cache(maxsize=256)
def _read_flavor(name: str, flavor: str, version: str, seq_len: int | None) -> Mapping[str, object]:
    """Leaves of a named flavor, without prefix; the same for every configuration of that sequence length."""
    values = arguments(name, flavor, version) or {}
    known = families(version)[name]
    return MappingProxyType(known.read(dict(values) if seq_len is None else {**values, "max_seq_len": seq_len}))


def _nearest(known: Family, wanted: Leaves, version: str, seq_len: int | None) -> Match | None:
    best: tuple[float, Match] | None = None
    for flavor in flavor_names(known.name, version):
        differences = compare(wanted, _read_flavor(known.name, flavor, version, seq_len))
        differences |= _too_long(known, arguments(known.name, flavor, version) or {}, seq_len)
        distance = _distance(differences)
        if wanted.get("name") == f"{known.name}/{flavor}":
            distance -= 1e-4
        if best is None or distance < best[0]:
            best = distance, Match(known.name, flavor, differences)
    return None if best is None else best[1]


def _custom(known: Family, wanted: Leaves, version: str, seq_len: int | None) -> Custom:
    if known.positions:
        longest = max(integer(wanted.get("max_positions")), seq_len or 0)
        wanted = {**wanted, "max_positions": longest or DEFAULT_POSITIONS}
    partial, reasons = known.write(wanted)
    full = complete(known.name, partial, version)
    given = full if seq_len is None else {**full, "max_seq_len": seq_len}
    differences = compare(wanted, known.read(given))
    kept = {leaf: reason for leaf, reason in reasons.items() if leaf in differences}
    return Custom(known.name, partial, differences, kept)


def _published(differences: Differences) -> Differences:
    return {f"{PREFIX}{leaf}": pair for leaf, pair in differences.items()}


def native_args(name: str, model: Mapping[str, object], version: str, seq_len: int | None = None) -> Custom | None:
    """Arguments that make a family's model as the leaves say, as near as it can; None for an unknown family.

    ``arguments`` holds only what differs from the class's defaults or is wanted explicitly; ``reasons`` says why
    leaves in ``differences`` cannot be met.
    """
    known = family(name, version)
    if known is None:
        return None
    custom = _custom(known, canonical(model), version, seq_len)
    return Custom(custom.name, custom.arguments, _published(custom.differences), _published_reasons(custom.reasons))


def _published_reasons(reasons: Mapping[str, str]) -> dict[str, str]:
    return {f"{PREFIX}{leaf}": reason for leaf, reason in reasons.items()}


def find(model: Mapping[str, object], version: str, seq_len: int | None = None) -> Match | None:
    """The named flavor that is the model, or else the nearest one in the family that fits best.

    None only for a version without flavors.
    """
    choice = choose(model, version, seq_len=seq_len)
    return None if choice is None else choice.nearest


def choose(
    model: Mapping[str, object], version: str, *, seq_len: int | None = None, pipeline: int = 1
) -> Choice | None:
    """How to say a model in torchtitan: the family that misses least, and there a named flavor if that misses no more.

    Families that cannot be split are left out when ``pipeline`` is above 1, unless one of them has just this model and
    no other does: a layout can be changed, a model cannot. None only for a version without families.
    """
    wanted = canonical(model)
    candidates: list[tuple[tuple[float, ...], Custom, Match]] = []
    whole: list[tuple[tuple[float, ...], Custom, Match]] = []
    for order, known in enumerate(families(version).values()):
        nearest = _nearest(known, wanted, version, seq_len)
        if nearest is None:
            continue
        custom = _custom(known, wanted, version, seq_len)
        missed = _distance({leaf: custom.differences[leaf] for leaf in major(custom.differences)})
        distance = _distance(nearest.differences)
        named = 0.0 if major(nearest.differences) <= major(custom.differences) else 1.0
        # Among dense families that can all say the model, the first is the one that people use.
        rank = distance if wanted.get("moe.experts") else float(order)
        splits = pipeline == 1 or known.pipeline
        (candidates if splits else whole).append(((missed, named, rank, distance), custom, nearest))
    if not candidates:
        return None
    best = min(candidates, key=lambda candidate: candidate[0])
    if whole and _shape(best[1].differences):
        unsplit = min(whole, key=lambda candidate: candidate[0])
        best = best if _shape(unsplit[1].differences) else unsplit
    _, custom, nearest = best
    named = major(nearest.differences) <= major(custom.differences)
    taken = nearest.differences if named else custom.differences
    return Choice(
        name=custom.name,
        flavor=nearest.flavor if named else None,
        custom=None
        if named
        else Custom(custom.name, custom.arguments, _published(custom.differences), _published_reasons(custom.reasons)),
        differences=_published(taken),
        reasons=_published_reasons(custom.reasons),
        nearest=Match(nearest.name, nearest.flavor, _published(nearest.differences)),
    )
