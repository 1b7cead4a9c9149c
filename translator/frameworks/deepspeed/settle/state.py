"""The configuration while it is settled."""

from __future__ import annotations

import math

from translator.findings import Finding, Level
from translator.frameworks.deepspeed.values import Auto
from translator.native import WORLD_SIZE, Given, Missing, Native

Number = int | float
CONFIG = "deepspeed/runtime/config.py"
ENGINE = "deepspeed/runtime/engine.py"
VERSIONS = ("0.16.9", "0.19.2", "0.19.8")
WORLD_SUPPLY = "--world-size N"


class State:
    """A native configuration, who fills its "auto" values in, and what is known so far."""

    __slots__ = ("native", "trainer")

    def __init__(self, native: Native, trainer: str) -> None:
        self.native = native
        self.trainer = trainer

    def since(self, version: str) -> bool:
        """Whether the version read is this one or a later one."""
        return VERSIONS.index(self.native.version) >= VERSIONS.index(version)

    def get(self, address: str, default: object = None) -> object:
        """The value in force, or a default."""
        return self.native.values.get(address, default)

    def given(self, address: str) -> bool:
        """Whether the source states the key."""
        return address in self.native.given

    def section(self, prefix: str) -> bool:
        """Whether the source states any key of a section."""
        return any(address.startswith(f"{prefix}.") for address in self.native.given)

    def on(self, address: str) -> bool:
        """Whether a switch is on, as Python sees it."""
        return bool(self.native.values.get(address))

    def number(self, address: str) -> Number | None:
        """A number in force, or None."""
        value = self.native.values.get(address)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def whole(self, address: str, default: int = 0) -> int:
        """A whole number in force, or the default."""
        value = self.number(address)
        return int(value) if value is not None and math.isfinite(value) and value == int(value) else default

    def text(self, address: str) -> str:
        """A string in force; empty when there is none."""
        value = self.native.values.get(address)
        return value if isinstance(value, str) else ""

    @property
    def world(self) -> int | None:
        """The number of ranks, when it is known."""
        value = self.number(WORLD_SIZE)
        return int(value) if value is not None else None

    @property
    def zero_stage(self) -> int:
        """The ZeRO stage in force."""
        return self.whole("zero_optimization.stage")

    def missing(self, address: str) -> Missing | None:
        """Why a stated value is not known, if it is not."""
        stated = self.native.given.get(address)
        return stated.missing if stated is not None else None

    def is_auto(self, address: str) -> bool:
        """Whether the source leaves a value to a trainer."""
        stated = self.native.given.get(address)
        return stated is not None and isinstance(stated.value, Auto)

    def put(self, address: str, value: object, reason: str) -> None:
        """A derived value, with the upstream line that derives it."""
        self.native.values[address] = value
        self.native.derived[address] = reason

    def idle(self, address: str, instead: object, reason: str) -> None:
        """Say that a stated argument does nothing, as something else is in force."""
        if self.given(address) and not self.missing(address):
            self.put(address, instead, reason)
            self.note("S232", f"{self.native.given[address].written} does nothing: {reason}", address)

    def lack(self, address: str, expression: str, reason: str, supply: str) -> None:
        """A value that the files leave open; whoever asks for it is told what supplies it."""
        stated = self.native.given.get(address)
        # What is derived has no name of its own; a reader knows it by what it waits for.
        name = expression if address.startswith("@") else address
        written, place = (stated.written, stated.place) if stated is not None else (name, None)
        self.native.given[address] = Given(address, Missing(expression, reason, supply), written, place)
        self.native.values.pop(address, None)
        self.native.derived.pop(address, None)

    def say(self, code: str, message: str, address: str, fix: str = "", level: Level = Level.ERROR) -> None:
        """A finding about an option, at its place if it is stated."""
        stated = self.native.given.get(address)
        stated = stated or next((given for given in self.native.unknown if given.address == address), None)
        place, option = (stated.place, stated.written) if stated is not None else (None, address)
        self.native.findings.append(Finding(code, level, message, fix, place, option))

    def note(self, code: str, message: str, address: str, fix: str = "") -> None:
        """A remark on something that works, but maybe not as meant."""
        self.say(code, message, address, fix, Level.NOTE)
