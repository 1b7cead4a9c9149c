"""From the options as given to the values in force, as Megatron-LM derives and silently changes them.

Four layers upstream decide: the argument parser's defaults, ``validate_args``, ``TransformerConfig`` and the
micro-batch calculator; `settle` follows them in this order. 0.18.0 is the main version; rules that differ elsewhere
say since or until when.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from translator.catalogue.model import Catalogue, load
from translator.frameworks.megatron.settle import (
    batch,
    config,
    experts,
    limits,
    model,
    operation,
    parallel,
    precision,
    softening,
    start,
    transformer,
)
from translator.frameworks.megatron.settle.batch import parse_batch_schedule
from translator.frameworks.megatron.settle.engine import Rule, Settling, apply
from translator.frameworks.megatron.settle.layout import layers_per_stage
from translator.native import Native

__all__ = ["RULES", "defaults", "layers_per_stage", "parse_batch_schedule", "settle"]

# The order of `validate_args` at core 0.18.0; its checks stand beside what they look at.
RULES: tuple[Rule, ...] = (
    *operation.EARLY,
    *parallel.SIZES,
    *operation.REINFORCEMENT,
    *operation.RETIRED,
    *precision.GRAPHS,
    *batch.BATCH,
    *model.HYBRID,
    *parallel.STAGES,
    *precision.OVERLAP,
    *precision.DTYPES,
    *batch.TRAINING,
    *model.MODEL,
    *operation.RECOMPUTE,
    *parallel.TENSOR,
    *model.MODEL_LATE,
    *operation.OPTIMIZER,
    *operation.CHECKPOINT,
    *precision.GRAPHS_LATE,
    *limits.LIMITS,
    *batch.MICROBATCHES,
    *config.CONFIG,
    *transformer.TRANSFORMER,
    *experts.EXPERTS,
    *start.START,
)


@cache
def defaults(version: str) -> dict[str, Any]:
    """The parser's default of every option of a version, by address. Do not change it."""
    catalogue = load("megatron", version)
    return {address: catalogue.default(address) for address in catalogue.addresses()}


@cache
def _rules(version: tuple[int, ...]) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES if rule.since <= version < rule.until)


def settle(native: Native, catalogue: Catalogue) -> None:
    """Fill ``native.values`` with what is in force and ``native.derived`` with why.

    Values that depend on something unknown get no entry. Where Megatron-LM would stop, a finding says so (``S100`` to
    ``S149``); nothing is raised for any configuration.
    """
    values = dict(defaults(catalogue.version))
    for address, given in native.given.items():
        if given.missing is None:
            values[address] = given.value
        else:
            values.pop(address, None)
    native.values = values
    state = Settling(native, catalogue)
    apply(_rules(state.version), state)
    softening.soften(state)
