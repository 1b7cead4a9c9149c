"""Where the files alone do not decide whether Megatron-LM stops: errors that become warnings."""

from __future__ import annotations

from dataclasses import replace

from translator.findings import Finding, Level
from translator.frameworks.megatron.settle.engine import Settling

# What depends on the options that a checkpoint overwrites (``load_args_from_checkpoint``,
# ``megatron/training/checkpointing.py:1446``, core 0.18.0).
OF_THE_MODEL = frozenset({"S102", "S104", "S106", "S107", "S113", "S117", "S121", "S124", "S128"})
# What another program than Megatron-LM's own may know: options that it adds to the parser.
OF_THE_PARSER = frozenset({"R011", "R012", "R013", "R014"})


def soften(state: Settling) -> None:
    """Turn errors into warnings where a checkpoint, or a program that is not known here, has the last word."""
    said = state.native.findings
    codes = {finding.code for finding in said}
    open_codes = OF_THE_PARSER if codes & {"R035", "R038"} else frozenset()
    stored = state.values.get("use_checkpoint_args") and "load" in state.native.given
    open_codes |= OF_THE_MODEL if stored else frozenset()
    said[:] = [_softer(finding, open_codes) for finding in said]


def _softer(finding: Finding, codes: frozenset[str]) -> Finding:
    if finding.code in codes and finding.level is Level.ERROR:
        return replace(finding, level=Level.WARNING)
    return finding
