"""The two forks of Megatron-LM that train with DeepSpeed, by the month of their last change.

``2025.7`` is deepspeedai/Megatron-DeepSpeed at 4efb479d, ``2023.12`` bigscience-workshop/Megatron-DeepSpeed at
8387ae17, with which BLOOM was trained. They share most arguments; a script is read as the one that knows more of its.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from translator.catalogue import Catalogue
    from translator.native import Native

CATALOGUE = "megatrondeepspeed"
DEEPSPEEDAI, BIGSCIENCE = "2025.7", "2023.12"
FORKS = {DEEPSPEEDAI: "deepspeedai/Megatron-DeepSpeed", BIGSCIENCE: "bigscience-workshop/Megatron-DeepSpeed"}
# Addresses of the forks' arguments among those of DeepSpeed; what `settle` keeps for the table.
PREFIX = "@fork."
FORK, MEGATRON, UNSAID = "@fork", "@megatron", "@unsaid"


def address(dest: str) -> str:
    """The address of an argument, for its argparse ``dest``."""
    return PREFIX + dest


def catalogue(fork: str) -> Catalogue:
    """All arguments of a fork."""
    from translator.catalogue import load

    return load(CATALOGUE, fork)


def reads(native: Native) -> bool:
    """Whether a configuration is a script of one of the forks."""
    return FORK in native.values


def choose(flags: Iterable[str]) -> str:
    """The fork that knows the most of some flags; deepspeedai's where both know as many."""
    named = list(flags)
    return max(FORKS, key=lambda fork: sum(catalogue(fork).by_flag(flag) is not None for flag in named))


@cache
def entry_of(dest: str) -> tuple[tuple[str, ...], object]:
    """Flags and default of an argument, of the newer fork that has it. Raises KeyError for neither's."""
    for fork in FORKS:
        if dest in catalogue(fork):
            first = catalogue(fork).first(dest)
            return first.flags, first.default
    raise KeyError(dest)


def spelling(name: str) -> str:
    """The flag at an address."""
    return entry_of(name.removeprefix(PREFIX))[0][0]


def default(name: str) -> object:
    """The default at an address, of the newer fork that has it."""
    return entry_of(name.removeprefix(PREFIX))[1]


@cache
def destinations() -> frozenset[str]:
    """The ``dest`` of every argument of either fork."""
    return frozenset(dest for fork in FORKS for dest in catalogue(fork).addresses())
