"""Options that a configuration does not use.

A value that the code would refuse harms nothing as long as it is not read: an error of the reader becomes a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from translator.findings import Level
from translator.frameworks.torchtitan.state import State

_P = "parallelism."
# Of the reader: a value of another type, one that cannot be used, one that is not among the choices.
_CODES = frozenset({"R095", "R096", "R097"})


def _profiles(state: State) -> bool:
    return bool(state.get("profiling.enable_profiling") or state.get("profiling.enable_memory_snapshot"))


def _converter(name: str) -> Callable[[State], bool]:
    return lambda state: name in state.names("model.converters")


# Texts of which torch itself makes numbers (torch/nn/utils/clip_grad.py).
_CONVERTED = frozenset({"training.max_norm"})
# By address or section, whether the code reads it (0.1.0 and 0.2.2).
_USED: dict[str, Callable[[State], bool]] = {
    "checkpoint": lambda state: bool(state.get("checkpoint.enable")),
    "validation": lambda state: bool(state.get("validation.enable")),
    "profiling": lambda state: bool(
        state.get("profiling.enable_profiling") or state.get("profiling.enable_memory_snapshot")
    ),
    "fault_tolerance": lambda state: bool(state.get("fault_tolerance.enable")),
    "memory_estimation": lambda state: bool(state.get("memory_estimation.enable")),
    "quantize.linear.float8": _converter("quantize.linear.float8"),
    "quantize.linear.mx": _converter("quantize.linear.mx"),
    "quantize.grouped_mm.float8": _converter("quantize.grouped_mm.float8"),
    "quantize.grouped_mm.mx": _converter("quantize.grouped_mm.mx"),
    "activation_checkpoint.selective_ac_option": lambda state: state.text("activation_checkpoint.mode") == "selective",
    "activation_checkpoint.memory_budget": lambda state: state.text("activation_checkpoint.mode") == "memory_budget",
    f"{_P}context_parallel_rotate_method": lambda state: bool(state.get("validation.enable")),
    f"{_P}expert_parallel_comm_backend": lambda state: state.number(f"{_P}expert_parallel_degree", 1) > 1,
}
# The same for 0.3.0, whose classes check much of it whether it is used or not.
_USED_PYTHON: dict[str, Callable[[State], bool]] = {
    "checkpoint.export_dtype": lambda state: bool(state.get("checkpoint.enable")),
    "profiler": lambda state: bool(
        state.get("profiler.enable_profiling") or state.get("profiler.enable_memory_snapshot")
    ),
}
# What turns a section on is read even where the section is off.
_SWITCHES = ("enable", "enable_profiling", "enable_memory_snapshot", "create_seed_checkpoint")


def soften(state: State) -> None:
    """Make warnings of the reader's errors about options that are not read."""
    findings = state.native.findings
    for number, finding in enumerate(findings):
        if finding.code == "R095" and finding.option in _CONVERTED:
            findings[number] = replace(finding, level=Level.WARNING)
        elif (
            finding.code in _CODES and finding.level is Level.ERROR and finding.option and _idle(state, finding.option)
        ):
            message = f"{finding.message} (not read in this configuration)"
            findings[number] = replace(finding, level=Level.WARNING, message=message)


def _idle(state: State, option: str) -> bool:
    section, _, name = option.rpartition(".")
    known = _USED_PYTHON if state.native.version == "0.3.0" else _USED
    used = known.get(option) or (known.get(section) if name not in _SWITCHES else None)
    return used is not None and not used(state)
