"""What torchtitan 0.3.0 makes of a Python configuration: the same ground as `settle`, in its own rules.

FSDP runs at every degree, so mixed precision always applies (``distributed/parallel_dims.py:196``); there is no expert
tensor degree; the sequence divides by the tensor degree only under sequence parallelism (``trainer.py:306-316``).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

from translator.findings import Level
from translator.frameworks.torchtitan import addresses as at
from translator.frameworks.torchtitan import groups, idle, model_names, python_classes, refusals_python
from translator.frameworks.torchtitan.settle import (
    CONTEXT,
    NO_CHECKS,
    PIPELINE,
    TENSOR,
    settle_batch,
    settle_schedule,
    settle_stages,
    settle_world,
)
from translator.frameworks.torchtitan.state import State

if TYPE_CHECKING:
    from translator.catalogue import Catalogue
    from translator.native import Native

SEQUENCE = "parallelism.enable_sequence_parallel"
NAME, FLAVOR, BACKEND = "model_spec.name", "model_spec.flavor", "model_spec.attn_backend"
GROUPS = "optimizer.param_groups"


def settle(native: Native, catalogue: Catalogue) -> None:
    """Fill ``native.values`` with what is in force, ``native.derived`` with reasons, and add findings."""
    values = native.values
    values.update({address: copy.copy(catalogue.default(address)) for address in catalogue.addresses()})
    stated = {address: copy.copy(value) for address, value in native.explicit_values().items()}
    _classes(values, stated, catalogue)
    values.update(stated)
    state = State(native)
    _model(state)
    settle_world(state)
    settle_batch(state)
    _sequence(state)
    _optimizer(state)
    settle_schedule(state)
    _precision(state)
    settle_stages(state)
    refusals_python.check(state)
    idle.soften(state)


def _classes(values: dict[str, object], stated: Mapping[str, object], catalogue: Catalogue) -> None:
    """The class at each place, with the defaults of its own fields only; outer places come before inner ones."""
    for path in sorted(python_classes.places()):
        if path in stated:
            values[path] = stated[path]
        inner = f"{path}."
        for address in [address for address in values if address.startswith(inner)]:
            del values[address]
        if path not in values:  # a field of a class that does not stand there
            continue
        values.update(copy.deepcopy(python_classes.defaults_at(path, values, catalogue)))


def _model(state: State) -> None:
    """The architecture behind name and flavor, or the facts of one that is built by hand."""
    from translator.frameworks.torchtitan import flavors
    from translator.frameworks.torchtitan.models import family

    version = state.native.version
    name, flavor = state.text(NAME), state.text(FLAVOR)
    if not name:
        return
    own = state.get(at.MODEL_ARGUMENTS)
    built = isinstance(own, Mapping)
    facts = own if isinstance(own, Mapping) else flavors.arguments(name, flavor, version)
    state.family = family(name, version)
    if state.family is None:
        message = f"the architecture of {name!r} is not known here"
        state.say("R102", message, NAME, NO_CHECKS, Level.WARNING)
        return
    if facts is None:
        known = ", ".join(flavors.flavor_names(name, version))
        state.say("R102", f"{name} has no flavor {flavor!r}", FLAVOR, f"one of {known}" if known else "")
        return
    backend = state.text(BACKEND)
    facts = {**facts, "attn_backend": backend} if backend else facts
    source = f"a {name} model of its own" if built else f"flavor {flavor} of {name}"
    try:
        leaves = flavors.leaves_of(name, facts, version, state.number("training.seq_len") or None)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        leaves = None
    if leaves is None:
        return
    for leaf, value in leaves.items():
        state.put(f"@{leaf}", value, source)
    state.put(f"{at.MODEL}name", f"{name}/{flavor}", source)
    layers = leaves.get("model.layers")
    state.layers = layers if isinstance(layers, int) else None


def _sequence(state: State) -> None:
    """What the sequence length must divide by (``trainer.py:307-309``)."""
    context = state.number(CONTEXT)
    tensor = state.number(TENSOR) if state.get(SEQUENCE) else 1
    reason = "tensor under sequence parallelism, times 2 * context beyond 1 (trainer.py:307)"
    state.put(at.SEQ_LEN_DIVISOR, tensor * (2 * context if context > 1 else 1), reason)


def _optimizer(state: State) -> None:
    """The learning rate of the weights, of which the schedule is a factor."""
    found = state.get(GROUPS)
    if not isinstance(found, list):
        return
    stated = [group for group in found if isinstance(group, Mapping)]
    meaning = groups.meaning(stated, model_names.parameters(lambda leaf: state.get(f"{at.MODEL}{leaf}")))
    if meaning is not None and meaning.lr is not None:
        state.put(at.PEAK_LR, meaning.lr, f"the group that holds the weights, in {GROUPS}")


def _precision(state: State) -> None:
    """FSDP always runs, with its mixed precision; when it frees parameters (``distributed/fsdp.py:52-79``)."""
    state.put(at.FSDP, True, "fully_shard always runs, at degree 1 as well (distributed/parallel_dims.py:196)")
    param = state.text("training.mixed_precision_param")
    state.put(at.COMPUTE_DTYPE, param, "mixed_precision_param, applied by FSDP")
    policy = state.text("parallelism.fsdp_reshard_after_forward")
    free = {"always": True, "never": False}.get(policy, state.number(PIPELINE) == 1)
    reason = f"fsdp_reshard_after_forward is {policy}; the default frees unless pipelined (distributed/fsdp.py:75)"
    state.put(at.RESHARD_AFTER_FORWARD, free, reason)
