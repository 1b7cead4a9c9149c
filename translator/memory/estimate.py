"""An estimate: every term of every pipeline stage, and what it adds up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from translator.errors import SourceError
from translator.knowledge import knowledge_of
from translator.memory.possible import see_possible
from translator.memory.relay import relay
from translator.memory.sizes import Job, UnknownSizeError, job_of
from translator.memory.stages import Stages, stages_of
from translator.memory.terms import Account, Totals, add_up

if TYPE_CHECKING:
    from translator.reading import Reading


@dataclass(frozen=True, slots=True)
class Estimate:
    """The account of a job with its sum; arrays of shape (layouts, stages). ``assumed`` says what was not known."""

    job: Job
    stages: Stages
    account: Account
    totals: Totals
    assumed: tuple[str, ...] = ()


def estimate(job: Job) -> Estimate:
    """Estimate one job, or all its candidate layouts at once. Raises SourceError where the framework has no account."""
    module = knowledge_of(job.framework).memory
    if not module:
        raise SourceError(f"no account of memory under {job.framework}")
    stages = stages_of(job)
    account: Account = import_module(module).account(job, stages)
    return Estimate(job, stages, account, add_up(account, stages.dense.shape))


def estimate_reading(reading: Reading) -> Estimate:
    """Estimate a configuration. Raises SourceError naming the field that is missing, or whose value is impossible."""
    job, why = job_of_reading(reading)
    return replace(estimate(job), assumed=why)


def job_of_reading(reading: Reading, what: str = "memory") -> tuple[Job, tuple[str, ...]]:
    """The sizes of a configuration, and what was assumed of them; ``what`` is to be estimated, in words.

    Raises SourceError naming the field that is missing, or whose value is impossible.
    """
    reading.check()
    values: dict[str, Any] = reading.native.values if reading.native is not None else {}
    flat, why = _completed(reading, values)
    relay(flat, reading.by_hand)
    job = _sized(reading, flat, values, what)
    see_possible(flat, reading.by_hand)
    return replace(job, table=reading.table), why


def _sized(reading: Reading, flat: dict[str, Any], values: Mapping[str, Any], what: str) -> Job:
    """The sizes. Raises SourceError that names everything that is missing at once."""
    missing: list[str] = []
    guessed = dict(flat)
    while True:
        try:
            job = job_of(reading.framework, reading.version, guessed, values)
        except UnknownSizeError as error:
            missing.append(error.field)
            guessed[error.field] = 1
            continue
        if not missing:
            return job
        raise _unknown(reading, missing, what)


def _unknown(reading: Reading, missing: list[str], what: str) -> SourceError:
    """What is missing, and one way out for each."""
    names, ways = [], []
    model = [name for name in missing if name.startswith("model.")]
    if len(model) > 1 and _takes_model(reading.framework):
        names, ways = ["the model"], ["--model PATH|NAME"]
        missing = [name for name in missing if name not in model]
    for name in missing:
        ranks = name == "parallel.data.degree"
        names.append("the number of ranks" if ranks else name)
        way = "--world-size N" if ranks else f"{name}=VALUE"
        ways.append(f"--model PATH|NAME, or {way}" if name in model and _takes_model(reading.framework) else way)
    return SourceError(f"{what} cannot be estimated without {_listed(names)}", fix="give " + _listed(ways))


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _takes_model(framework: str) -> bool:
    from translator import frameworks
    from translator.frameworks.base import TakesModel

    return isinstance(frameworks.get(framework), TakesModel)


def _completed(reading: Reading, values: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The fields, with what the framework's account lets one assume, and the words for it."""
    module = knowledge_of(reading.framework).memory
    assume = getattr(import_module(module), "assumed", None) if module else None
    found: dict[str, tuple[Any, str]] = assume(reading.flat, values) if assume is not None else {}
    flat = {**reading.flat, **{leaf: value for leaf, (value, _) in found.items()}}
    return flat, tuple(words for _, words in found.values())
