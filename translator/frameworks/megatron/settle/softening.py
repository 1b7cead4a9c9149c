"""Where the files alone do not decide whether Megatron-LM stops: errors that become warnings."""

from __future__ import annotations

import re
from dataclasses import replace

from translator.findings import Finding, Level
from translator.frameworks.megatron.settle.engine import Settling
from translator.native import PROGRAM

# What depends on the options that a checkpoint overwrites (``load_args_from_checkpoint``,
# ``megatron/training/checkpointing.py:1446``, core 0.18.0).
OF_THE_MODEL = frozenset({"S102", "S104", "S106", "S107", "S113", "S117", "S121", "S124", "S128"})
# What another program than Megatron-LM's own may know or supply: options and choices that it adds to the parser
# (``extra_args_provider``), values that it sets itself (``args_defaults``).
OF_THE_PROGRAM = frozenset({"R011", "R012", "R013", "R014", "R016", "S113", "S119", "S130"})
# The programs at the root of Megatron-LM, of any version, that add no options of their own there.
OWN_PROGRAM = re.compile(r"(pretrain_(gpt|hybrid|mamba|bert|t5|ict|retro|vision_\w+)|train_rl)\.py")


def soften(state: Settling) -> None:
    """Turn errors into warnings where a checkpoint, or a program that is not known here, has the last word."""
    said = state.native.findings
    open_codes = frozenset() if _own_program(state) else OF_THE_PROGRAM
    stored = state.values.get("use_checkpoint_args") and "load" in state.native.given
    open_codes |= OF_THE_MODEL if stored else frozenset()
    said[:] = [_softer(finding, open_codes) for finding in said]


def _own_program(state: Settling) -> bool:
    """Whether the program is a plain entry point of Megatron-LM, or none is named."""
    given = state.native.given.get(PROGRAM)
    if given is None or given.missing is not None:
        return True
    return OWN_PROGRAM.fullmatch(str(given.value).rsplit("/", 1)[-1]) is not None


def _softer(finding: Finding, codes: frozenset[str]) -> Finding:
    if finding.code in codes and finding.level is Level.ERROR:
        return replace(finding, level=Level.WARNING)
    return finding
