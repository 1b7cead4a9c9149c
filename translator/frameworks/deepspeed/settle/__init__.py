"""What is in force: defaults, "auto" filled in, the batch triangle, and everything that DeepSpeed derives.

Read from DeepSpeed 0.16.9, 0.19.2 and 0.19.8, transformers 5.24.0 and accelerate 1.15.0.
"""

from __future__ import annotations

from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.settle import auto, batch, optimizer, precision, refusals, schedule, uses
from translator.frameworks.deepspeed.settle.state import State
from translator.frameworks.deepspeed.values import Auto
from translator.native import Missing, Native

__all__ = ["settle", "values_of"]


def settle(native: Native, *, trainer: str | None = None) -> None:
    """Fill in what is in force, with findings for what DeepSpeed refuses.

    ``trainer`` is who fills "auto" in: ``transformers``, ``accelerate``, or ``deepspeed`` for nobody; None finds out.
    What the files leave open becomes a `Missing` that names the flag that supplies it.
    """
    state = State(native, trainer or auto.trainer_of(native))
    native.values = values_of(native)
    native.derived = {}
    state.put(at.TRAINER, state.trainer, "whose arguments the files hold")
    auto.fill_arguments(state)
    batch.settle_degrees(state)
    auto.resolve(state)
    batch.settle_batch(state)
    precision.settle_zero(state)
    precision.settle_precision(state)
    optimizer.settle_optimizer(state)
    schedule.settle_schedule(state)
    refusals.check(state)
    uses.check(state)
    refusals.remarks(state)


def values_of(native: Native) -> dict[str, object]:
    """Defaults of the JSON's keys, overlaid with what is given; without those that wait for somebody."""
    from translator.catalogue import load

    catalogue = load("deepspeed", native.version)
    found: dict[str, object] = {}
    for address in catalogue.addresses():
        entry = catalogue.first(address)
        if entry.action not in {"parameter", "deprecated"}:
            found[address] = entry.default
    for address, given in native.given.items():
        if isinstance(given.value, Missing | Auto):
            found.pop(address, None)
        else:
            found[address] = given.value
    return found
