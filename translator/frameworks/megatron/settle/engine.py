"""How settling runs: ordered rules over the values, each with the addresses that it decides.

A rule is a plain function over a `Settling`. Reading an address whose value is not known ends the rule, and then the
addresses that it decides are not known either, so nothing is guessed. A rule holds for the versions from ``since`` to
before ``until``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from translator.catalogue.model import Catalogue
from translator.findings import Finding, Level
from translator.frameworks.megatron.settle.numbers import nearest
from translator.native import ENVIRONMENT, PROGRAM, Native

ARGUMENTS = "megatron/training/arguments.py"
TRANSFORMER_CONFIG = "megatron/core/transformer/transformer_config.py"
SOURCE_VERSION = "0.18.0"
FIRST, NEVER = (0,), (99,)


class UnknownValueError(Exception):
    """A rule asked for a value that is not known."""


def because(text: str, line: int, file: str = ARGUMENTS, version: str = SOURCE_VERSION) -> str:
    """A reason with its source."""
    return f"{text} ({file}:{line} at core {version})"


def version_key(text: str) -> tuple[int, ...]:
    """A version in a form that sorts; parts that are no numbers are left out."""
    return tuple(int(part) for part in text.split(".") if part.isdigit())


class Settling:
    """The values while they settle.

    ``state[address]`` is the value in force, ``None`` for an address that this version does not have.
    """

    __slots__ = ("environment", "missing", "native", "values", "version")

    def __init__(self, native: Native, catalogue: Catalogue) -> None:
        self.native = native
        self.version = version_key(catalogue.version)
        self.values = native.values
        self.missing: set[str] = {address for address, given in native.given.items() if given.missing is not None}
        given = native.given.get(ENVIRONMENT)
        # A launch without variables of its own has none; where no launch is seen, nothing is known.
        seen: dict[str, str] | None = {} if PROGRAM in native.given else None
        self.environment: dict[str, str] | None = given.value if given and isinstance(given.value, dict) else seen

    def __getitem__(self, address: str) -> Any:
        if address in self.values:
            return self.values[address]
        if address in self.missing:
            raise UnknownValueError(address)
        return None

    def need(self, address: str) -> Any:
        """The value, which must be there. Raises `UnknownValueError` when it is None."""
        value = self[address]
        if value is None:
            raise UnknownValueError(address)
        return value

    def put(self, address: str, value: object, reason: str) -> None:
        """Set a value and say why, where it differs from the one in force."""
        before = self.values.get(address, self)
        self.missing.discard(address)
        self.values[address] = value
        if before is not value and (before != value or type(before) is not type(value)):
            self.native.derived[address] = reason

    def field(self, name: str, value: object, reason: str) -> None:
        """Set a field of the model's configuration; the reason counts where the argument of the same name differs."""
        address = f"config.{name}"
        self.missing.discard(address)
        self.values[address] = value
        if name not in self.values or self.values[name] != value:
            self.native.derived[address] = reason

    def recode(self, address: str, value: object) -> None:
        """Set the same value in the form that it has after settling, or a plain fact of the run."""
        self.missing.discard(address)
        self.values[address] = value

    def forget(self, addresses: Iterable[str]) -> None:
        """Treat addresses as not known, unless the source states them."""
        for address in addresses:
            if address not in self.native.given:
                self.values.pop(address, None)
                self.missing.add(address)

    def refuse(
        self, code: str, message: str, option: str | None = None, fix: str = "", level: Level = Level.ERROR
    ) -> None:
        """Record that Megatron-LM would stop here; ``option`` is the address to blame.

        Without a ``fix`` the one that the message implies is given.
        """
        given = self.native.given.get(option) if option else None
        written = given.written if given else None
        place = given.place if given else None
        self.native.findings.append(Finding(code, level, message, fix or way_out(message, written), place, written))

    def refuse_where(self, code: str, wrong: Iterable[tuple[object, str, str]]) -> None:
        """`refuse` for every ``(whether, address to blame, message)`` that holds."""
        for holds, option, message in wrong:
            if holds:
                self.refuse(code, message, option)


NUMBERS = "change one of the numbers"
# What a message of each form asks for; the first that is found counts.
WAYS_OUT = (
    (r"go with gradient accumulation fusion", "add --no-gradient-accumulation-fusion"),
    (r"go with tied embeddings", "add --untie-embeddings-and-output-weights"),
    (r"needs expert parallelism", "add --expert-model-parallel-size"),
    (r"needs tensor parallelism", "add --tensor-model-parallel-size"),
    (r"needs sequence parallelism", "add --sequence-parallel with tensor parallelism"),
    (r"needs (?:virtual|an interleaved)", "add --num-virtual-stages-per-pipeline-rank"),
    (r"needs (?:a pipeline|p2p overlap)", "add --pipeline-model-parallel-size"),
    (r"needs the distributed optimizer", "add --use-distributed-optimizer"),
    (r"needs? (--[\w-]+(?: (?!(?:and|or|with|to|of)\b)[\w.]+)?)(?: and (--[\w-]+))?", "add {0}"),
    (r"; add (--[\w-]+)", "add {0}"),
    (r"exclude each other|at most one of", "keep one of them"),
    (r"training counts (\w+)", "state all lengths in {0}"),
    (r"do(?:es)? not go with (.+?)(?=[;,(]|$)", "give up {0}"),
    (r"multiple of|divide|divisor|multiply to|must not fall", NUMBERS),
    (r"exceeds|is above|is not below|not shorter|between|decoder layers", NUMBERS),
    (r"cannot be split|more than \d pipeline stages", "another number of pipeline stages, or of layers"),
    (r"has no (?:experts|dense)", "leave the module out"),
    (r"a pipeline layout|the pipeline layout", "mend the layout: E first, then t for each layer, L last"),
    (r"takes THRESHOLD", "write 0:16,1B:32"),
    (r"more than train, validation and test", "three numbers, such as 969,30,1"),
    (r"entries for", "one entry for each layer"),
    (r"takes no (--[\w-]+)", "leave {0} out"),
    (r"constant weight decay", "leave --start-weight-decay and --end-weight-decay out"),
    (r"unknown (--[\w-]+)", "take the known ones"),
    (r" is -?\d+", "give a number in range"),
    (r"needs? ", "give it that"),
)


def way_out(message: str, written: str | None) -> str:
    """What to do about a message of a usual form; empty for any other."""
    for pattern, text in WAYS_OUT:
        found = re.search(pattern, message)
        if found is None:
            continue
        if text == NUMBERS and (fitting := nearest(message)):
            return fitting
        wanted = " ".join(word for word in found.groups() if word)
        fix = text.format(wanted)
        either = fix.startswith(("add ", "give it ", "give up ")) and written is not None and written not in fix
        return f"{fix}, or leave {written} out" if either else fix
    return ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One step of settling."""

    run: Callable[[Settling], None]
    decides: tuple[str, ...]
    since: tuple[int, ...]
    until: tuple[int, ...]


class Rules(list[Rule]):
    """Rules of one topic, in the order in which upstream does them."""

    def rule(
        self, *decides: str, since: str | None = None, until: str | None = None
    ) -> Callable[[Callable[[Settling], None]], Callable[[Settling], None]]:
        """Register a function as the next rule."""

        def register(function: Callable[[Settling], None]) -> Callable[[Settling], None]:
            first = version_key(since) if since else FIRST
            self.append(Rule(function, decides, first, version_key(until) if until else NEVER))
            return function

        return register


def apply(rules: Iterable[Rule], state: Settling) -> None:
    """Run rules in order; never raises on values that the framework would refuse."""
    for rule in rules:
        try:
            rule.run(state)
        except (UnknownValueError, ArithmeticError):
            # A division by zero is a size of zero, which `sizes` has already refused.
            state.forget(rule.decides)
