"""What the catalogue says about sections: which exist, which are strict, which classes `params` belong to."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from translator.catalogue import Catalogue, Entry, load

FRAMEWORK = "deepspeed"
STRICT, LAX, OPEN = "strict", "lax", "open"
OPTIMIZER, SCHEDULER = "optimizer.params", "scheduler.params"
# What the engine builds for a name of `optimizer.type` (runtime/engine.py:1782 at 0.19.2); torch's own take others.
OPTIMIZER_CLASSES = {
    "adam": ("FusedAdam", "Adam", "DeepSpeedCPUAdam"),
    "adamw": ("FusedAdam", "Adam", "DeepSpeedCPUAdam"),
    "adagrad": ("DeepSpeedCPUAdagrad",),
    "lamb": ("FusedLamb",),
    "lion": ("FusedLion",),
}
SCHEDULER_CLASSES = ("LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR")
# An argument of torch's SGD, which no class of DeepSpeed's has.
MOMENTUM = f"{OPTIMIZER}.momentum"
# Names that DeepSpeed knows itself, in any case of letters (runtime/config.py:85 at 0.19.2).
OPTIMIZERS = frozenset(
    {"adagrad", "adam", "adamw", "lamb", "onebitadam", "onebitlamb", "zerooneadam", "muadam", "muadamw", "musgd"}
    | {"lion", "muon"}
)


class Sections(NamedTuple):
    """Sections of one version by path, with how each treats a key that it does not know."""

    kinds: dict[str, str]
    by_spelling: dict[str, Entry]

    def kind(self, path: str) -> str:
        """``strict``, ``lax`` or ``open``, for the section at a path (empty for the top level)."""
        return self.kinds.get(path, LAX)


@cache
def sections(version: str) -> Sections:
    """The sections of a version, from its catalogue."""
    catalogue = load(FRAMEWORK, version)
    kinds: dict[str, str] = {"": LAX, OPTIMIZER: OPEN, SCHEDULER: OPEN}
    spelled: dict[str, Entry] = {}
    for entry in catalogue.entries:
        for flag in (entry.address,) if entry.action == "parameter" else entry.flags:
            spelled.setdefault(flag, entry)
            parts = flag.split(".")
            for depth in range(1, len(parts)):
                kinds.setdefault(".".join(parts[:depth]), LAX)
            section = ".".join(parts[:-1])
            if entry.action in {STRICT, "deprecated"}:
                kinds[section] = STRICT
            elif entry.action == OPEN and section:
                kinds[section] = OPEN
    return Sections(kinds, spelled)


def parameter_entry(catalogue: Catalogue, address: str, classes: tuple[str, ...]) -> Entry | None:
    """The entry of an argument of the first of some classes that takes it."""
    entries = {entry.key.split(".")[2]: entry for entry in catalogue.by_address(address)}
    return next((entries[name] for name in classes if name in entries), None)


def classes_of(section: str, type_name: str, *, torch_adam: bool = False) -> tuple[str, ...]:
    """The classes that may take the arguments of a section, for the type it names; empty where DeepSpeed has none."""
    if section == SCHEDULER:
        return (type_name,) if type_name in SCHEDULER_CLASSES else ()
    name = type_name.lower()
    return () if torch_adam and name in {"adam", "adamw"} else OPTIMIZER_CLASSES.get(name, ())
