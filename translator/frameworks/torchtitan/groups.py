"""Parameter groups of 0.3.0: patterns on names, of which the first that matches wins.

The rule is in ``components/optimizer/optimizer.py:186``.

A pattern that matches nothing in a part of the model raises, and a pipeline stage is such a part: so the patterns
written here occur in every stage that has a layer, and are not anchored, for wrappers lengthen the names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from translator.frameworks.torchtitan.model_names import BIAS, EMBEDDING, MATRIX, NORM, QK_NORM

Group = dict[str, Any]
EVERYTHING = ".*"
ENDS_OF_MODEL = "tok_embeddings|lm_head"
# One-dimensional parameters and biases, which Megatron-LM and many recipes do not decay.
NORMS = "norm|bias"
SINKS = "sinks"
NORMS_BUT_QK = "(?<![qk]_)norm|bias"
# torch.optim's own defaults, which count where a group leaves something out.
_TORCH: Mapping[str, Mapping[str, Any]] = {
    "AdamW": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 1e-2},
    "Adam": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0},
}
NAMES = {"AdamW": "adamw", "Adam": "adam", "DistMuon": "dist_muon"}


class Meaning(NamedTuple):
    """What the groups mean for the weights: the optimizer of the matrices, and how the others differ."""

    name: str
    lr: float | None
    betas: tuple[Any, Any]
    eps: float | None
    weight_decay: float | None
    scope: str
    embedding_lr: float | None


def options(group: Mapping[str, Any]) -> dict[str, Any]:
    """A group's arguments, with torch's defaults where it leaves them out."""
    return {**_TORCH.get(str(group.get("optimizer_name")), {}), **(group.get("optimizer_kwargs") or {})}


def assign(groups: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Per parameter the arguments of its group, the optimizer's name among them as ``name``.

    A pattern that is no regular expression matches nothing here, and raises there.
    """
    found: dict[str, dict[str, Any]] = {}
    for group in groups:
        try:
            pattern = re.compile(str(group.get("pattern")))
        except re.error:
            continue
        held = {**options(group), "name": group.get("optimizer_name")}
        for name in names:
            if name not in found and pattern.search(name):
                found[name] = held
    return found


def meaning(groups: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Meaning | None:
    """What groups mean for a model with parameters ``names`` (name -> kind); None when no weight is covered."""
    assigned = assign(groups, names)
    matrices = [assigned[name] for name, kind in names.items() if kind == MATRIX and name in assigned]
    if not matrices:
        return None
    main = matrices[0]
    betas = main.get("betas")
    first, second = betas if isinstance(betas, (list, tuple)) and len(betas) == 2 else (None, None)
    return Meaning(
        NAMES.get(str(main.get("name")), "other"),
        main.get("lr"),
        (first, second),
        main.get("eps"),
        main.get("weight_decay"),
        _scope(assigned, names, main),
        _embedding_lr(assigned, names, main),
    )


def _scope(assigned: Mapping[str, Mapping[str, Any]], names: Mapping[str, str], main: Mapping[str, Any]) -> str:
    rate = main.get("weight_decay")
    rates: dict[str, set[Any]] = {}
    for name, kind in names.items():
        rates.setdefault(kind, set()).add(assigned.get(name, {}).get("weight_decay"))
    if not rate:
        return "all" if all(found == {rate} for found in rates.values()) else "custom"
    if {MATRIX, EMBEDDING} & {kind for kind, found in rates.items() if found != {rate}}:
        return "custom"
    plain = {kind: rates[kind] for kind in (NORM, BIAS, QK_NORM) if kind in rates}
    if all(found == {rate} for found in plain.values()):
        return "all"
    if all(not any(found) for found in plain.values()):
        return "matrices"
    others = {kind: found for kind, found in plain.items() if kind != QK_NORM}
    if plain.get(QK_NORM) == {rate} and all(not any(found) for found in others.values()):
        return "matrices_and_qk_norm"
    return "custom"


def _embedding_lr(
    assigned: Mapping[str, Mapping[str, Any]], names: Mapping[str, str], main: Mapping[str, Any]
) -> float | None:
    rates = {assigned.get(name, {}).get("lr") for name, kind in names.items() if kind == EMBEDDING}
    return rates.pop() if len(rates) == 1 and rates != {main.get("lr")} else None


def unmatched(
    groups: Sequence[Mapping[str, Any]], names: Mapping[str, str], split: Sequence[int] | None
) -> list[tuple[str, int | None]]:
    """Patterns that match nothing, with the stage in which they do not (``split``: layers of each stage)."""
    if split is None:
        parts: list[tuple[int | None, list[str]]] = [(None, list(names))]
    else:
        inner = [name for name in names if name.startswith("layers.")]
        parts = [(stage, inner if count else []) for stage, count in enumerate(split)]
        parts[0] = (0, ["tok_embeddings.weight", *parts[0][1]])
        parts[-1] = (len(split) - 1, [*parts[-1][1], "norm.weight", "lm_head.weight"])
    found: list[tuple[str, int | None]] = []
    for stage, held in parts:
        left = list(held)
        for item in groups:
            try:
                pattern = re.compile(str(item.get("pattern")))
            except re.error:
                continue
            rest = [name for name in left if not pattern.search(name)]
            if len(rest) == len(left):
                found.append((str(item.get("pattern")), stage))
            left = rest
    return found


def group(pattern: str, name: str, arguments: Mapping[str, Any]) -> Group:
    """One group as a configuration holds it."""
    return {"pattern": pattern, "optimizer_name": name, "optimizer_kwargs": dict(arguments)}


def build(
    name: str, arguments: Mapping[str, Any], *, scope: str, sinks: bool = False, embedding_lr: float | None = None
) -> list[Group]:
    """The fewest groups that mean this."""
    found: list[Group] = []
    if embedding_lr is not None:
        found.append(group(ENDS_OF_MODEL, name, {**arguments, "lr": embedding_lr}))
    if scope != "all" and arguments.get("weight_decay"):
        pattern = NORMS_BUT_QK if scope == "matrices_and_qk_norm" else NORMS
        found.append(group(f"{pattern}|{SINKS}" if sinks else pattern, name, {**arguments, "weight_decay": 0.0}))
    return [*found, group(EVERYTHING, name, arguments)]
