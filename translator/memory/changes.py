"""The smallest changes that make a configuration fit, each estimated again and said in the framework's own options."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from translator.errors import TtxError
from translator.memory.estimate import Estimate, estimate
from translator.memory.possible import see_possible
from translator.memory.relay import Flat, relay
from translator.memory.sizes import Job, UnknownSizeError, job_of
from translator.native import is_option

_LIMIT = 6
# What is combined with what: the changes that help most.
_HELPFUL = 8
_MOST_TOGETHER = 3
_MOST_TIMES_RANKS = 16
# A change as dear as this is worth less than two cheaper ones together.
_DEAR = 4.0


@dataclass(frozen=True, slots=True)
class Change:
    """A change by spec fields; ``cost`` orders changes, from what costs nothing to what slows the run down.

    ``peak_bytes`` is the expected reserved peak of the worst rank after it, outside memory included; ``options`` are
    the framework's options to set, as its users write them.
    """

    says: str
    fields: Mapping[str, Any]
    cost: float
    peak_bytes: float
    options: tuple[str, ...] = ()

    @property
    def written(self) -> str:
        """The options in one line: flags as on a command line, keys with semicolons."""
        return (" " if all(option.startswith("-") for option in self.options) else "; ").join(self.options)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """``otherwise`` are the fields to try where the framework has no words for all of ``fields``."""

    says: str
    cost: float
    fields: Flat
    otherwise: Flat = field(default_factory=dict)


def peak_bytes(found: Estimate) -> float:
    """What the worst rank takes of its card: reserved, and what lies outside the allocator."""
    totals = found.totals
    return float((totals.reserved.expected + totals.outside).max())


def changes(job: Job, capacity_bytes: float) -> list[Change]:
    """Single changes that make the job fit, else the fewest that do together, cheapest first; at most six."""
    start = Change("", {}, 0.0, peak_bytes(estimate(job)))
    tried, fitting = [start], list[Change]()
    for _ in range(_MOST_TOGETHER):
        before = sorted(tried, key=lambda change: change.peak_bytes)[:_HELPFUL]
        found = {repr(sorted(change.fields.items())): change for one in before for change in _further(job, one)}
        fitting += [change for change in found.values() if change.peak_bytes <= capacity_bytes]
        tried = [change for change in found.values() if change.peak_bytes > capacity_bytes]
        if not tried or any(change.cost < _DEAR for change in fitting):
            break
    if not fitting:
        fitting = list(_more_ranks(job, tried or [start], capacity_bytes))
    least = [change for change in fitting if not any(_more(change, other) for other in fitting)]
    return sorted(least, key=lambda change: (change.cost, change.peak_bytes))[:_LIMIT]


def _more(change: Change, other: Change) -> bool:
    """Whether a change is another one that fits already, and something on top."""
    return len(change.fields) > len(other.fields) and other.fields.items() <= change.fields.items()


def _further(job: Job, before: Change) -> Iterator[Change]:
    """Changes on top of others that help further, as far as the framework can say them."""
    base = {**job.flat, **before.fields}
    relay(base, before.fields)
    for candidate in _candidates(base, job):
        if not before.fields.keys().isdisjoint(candidate.fields):
            continue
        says = f"{before.says.replace(', and ', ', ')}, and {candidate.says}" if before.says else candidate.says
        for fields in filter(None, (candidate.fields, candidate.otherwise)):
            done = _change(job, {**before.fields, **fields}, says, before.cost + candidate.cost)
            if done is not None:
                if done.peak_bytes < 0.998 * before.peak_bytes:
                    yield done
                break


def _more_ranks(job: Job, tried: list[Change], capacity_bytes: float) -> Iterator[Change]:
    """The best of what was tried on more cards, where no change alone is enough."""
    best = min(tried, key=lambda change: change.peak_bytes)
    world = job.flat.get("parallel.world_size")
    if not isinstance(world, int):
        return
    for world in (world * 2**power for power in range(1, _MOST_TIMES_RANKS.bit_length())):
        says = f"{best.says}, on {world:,} ranks" if best.says else f"{world:,} ranks"
        done = _change(job, {**best.fields, "parallel.world_size": world}, says, best.cost + 10)
        if done is not None and done.peak_bytes <= capacity_bytes:
            yield done
            return


def _change(job: Job, fields: Flat, says: str, cost: float) -> Change | None:
    """A change estimated; None where it cannot be estimated, or the framework has no words for it."""
    flat = {**job.flat, **fields}
    relay(flat, fields)
    if not _even(flat):
        return None
    said = _said(job, flat, frozenset(fields))
    if said is None:
        return None
    options, values = said
    try:
        see_possible(flat, fields)
        found = estimate(job_of(job.framework, job.version, flat, {**job.values, **values}))
    except (UnknownSizeError, TtxError, ArithmeticError):
        return None
    return Change(says, fields, cost, peak_bytes(found), options)


def _even(flat: Flat) -> bool:
    """Whether the global batch still comes out."""
    total, data, micro = flat.get("batch.global_batch"), flat.get("parallel.data.degree"), flat.get("batch.micro_batch")
    return not (isinstance(total, int) and data and micro) or total % (data * micro) == 0


def _said(job: Job, flat: Flat, changed: frozenset[str]) -> tuple[tuple[str, ...], dict[str, Any]] | None:
    """The options that say the changed fields, as written and by address; None where one of them is left unsaid."""
    if job.table is None:
        return (), {}
    before, after = job.table.write(job.flat), job.table.write(flat)
    differing = {
        address: value
        for address, value in after.values.items()
        if is_option(address) and (address not in before.values or before.values[address] != value)
    }
    back = job.table.read({**job.values, **differing})
    if any(leaf in after.shortfalls and back.get(leaf) != flat[leaf] for leaf in changed if flat[leaf] is not None):
        return None
    followed = changed | {leaf for leaf in flat if flat[leaf] != job.flat.get(leaf)}
    told = {
        address: value for address, value in differing.items() if followed.intersection(job.table.fields_of(address))
    }
    # What only the launcher sees, such as the number of ranks, needs no option.
    if not told and any(job.table.options_of(leaf) for leaf in changed if leaf in job.table.row_of_field):
        launched = {leaf for leaf in changed if not any(map(is_option, job.table.options_of(leaf)))}
        if launched != changed:
            return None
    return tuple(_written(job, address, value) for address, value in told.items()), differing


def _written(job: Job, address: str, value: Any) -> str:
    from translator import frameworks

    spelled = frameworks.get(job.framework).spelling(address, job.version)
    if not spelled.startswith("-"):
        return f"{spelled} = {json.dumps(value, default=str)}"
    if value is True:
        return spelled
    if value is False:
        return f"without {spelled}"
    return f"{spelled} {' '.join(map(str, value)) if isinstance(value, list) else value}"


def _candidates(flat: Flat, job: Job) -> Iterator[_Candidate]:
    """Changes that the configuration leaves room for."""
    for propose in _PROPOSALS:
        yield from propose(flat)
    yield from _selective(flat, job)


def _sequence_parallel(flat: Flat) -> Iterator[_Candidate]:
    if (flat.get("parallel.tensor") or 1) > 1 and flat.get("parallel.sequence_parallel") is False:
        yield _Candidate("sequence parallelism", 0.0, {"parallel.sequence_parallel": True})


_SHARDED = (
    ("optimizer", "optimizer state sharded over the data-parallel ranks", 0.5),
    ("optimizer_gradients", "optimizer state and gradients sharded over the data-parallel ranks", 0.8),
    ("full", "parameters, gradients and optimizer state sharded over the data-parallel ranks", 1.4),
)


def _sharding(flat: Flat) -> Iterator[_Candidate]:
    if (flat.get("parallel.data.degree") or 1) < 2:
        return
    names = ["none", *(name for name, _, _ in _SHARDED)]
    now = flat.get("parallel.data.sharding") or "none"
    known = names.index(now) if now in names else len(names)
    for name, says, cost in _SHARDED[known:]:
        yield _Candidate(says, cost, {"parallel.data.sharding": name})
    replicate = flat.get("parallel.data.replicate") or 1
    if replicate > 1 and now == "full":
        yield _Candidate("state sharded over all data-parallel ranks", 0.7, {"parallel.data.replicate": 1})


def _micro_batch(flat: Flat) -> Iterator[_Candidate]:
    micro = flat.get("batch.micro_batch") or 1
    smaller = {micro // 2 if micro % 2 == 0 else 1, 1} - {micro}
    for size in sorted(smaller, reverse=True):
        yield _Candidate(f"micro batch {size} instead of {micro}", 2.0 - size / micro, {"batch.micro_batch": size})


def _recompute(flat: Flat) -> Iterator[_Candidate]:
    if (flat.get("recompute.mode") or "none") != "full":
        full = {
            "recompute.mode": "full",
            "recompute.method": "uniform",
            "recompute.layers": 1,
            "recompute.modules": None,
        }
        alone = {**full, "recompute.method": None, "recompute.layers": None}
        yield _Candidate("full recomputation (a third more compute)", 3.0, full, alone)


# Sets of modules to recompute, as leaves name them, and what that costs: from what is nearly free to whole blocks.
_MODULES: tuple[tuple[tuple[str, ...], float], ...] = (
    (("core_attn",), 1.1),
    (("moe_act",), 1.0),
    (("mla_up_proj",), 1.2),
    (("mla_up_proj", "moe_act"), 1.3),
    (("mlp",), 2.1),
    (("moe",), 2.4),
)


def _selective(flat: Flat, job: Job) -> Iterator[_Candidate]:
    """Recomputation by modules, where the framework names them; else its own selection."""
    mode, table = flat.get("recompute.mode") or "none", job.table
    if table is None or not any(map(is_option, table.options_of("recompute.modules"))):
        if mode == "none":
            fields = {"recompute.mode": "selective", "recompute.method": "operators"}
            yield _Candidate("selective recomputation", 1.5, fields)
        return
    if mode == "full" or (mode == "selective" and flat.get("recompute.method") != "modules"):
        return
    already = set(flat.get("recompute.modules") or ()) if mode == "selective" else set()
    have = {"mla_up_proj": flat.get("model.mla.enabled"), "moe_act": flat.get("model.moe.experts")}
    have["moe"], have["mlp"] = flat.get("model.moe.experts"), not flat.get("model.moe.experts")
    for modules, cost in _MODULES:
        if all(have.get(module, True) for module in modules) and not already.issuperset(modules):
            chosen: Flat = {"recompute.mode": "selective", "recompute.method": "modules"}
            chosen["recompute.modules"] = sorted(already.union(modules))
            yield _Candidate(f"recomputation of {' and '.join(modules)}{' as well' if already else ''}", cost, chosen)


def _degrees(flat: Flat) -> Iterator[_Candidate]:
    data = flat.get("parallel.data.degree") or 1
    cards = flat.get("launch.gpus_per_node") or 8
    tensor, pipeline = flat.get("parallel.tensor") or 1, flat.get("parallel.pipeline.degree") or 1
    heads, layers = flat.get("model.heads") or 1, flat.get("model.layers") or 1
    if data % 2 or not flat.get("parallel.world_size"):
        return
    if tensor * 2 <= cards and heads % (tensor * 2) == 0 and (flat.get("model.kv_heads") or heads) % (tensor * 2) == 0:
        fields = {"parallel.tensor": tensor * 2, "parallel.sequence_parallel": True}
        yield _Candidate(f"tensor degree {tensor * 2}", 2.0, fields, {"parallel.tensor": tensor * 2})
    chunks = flat.get("parallel.pipeline.stages_per_rank") or 1
    if layers % (pipeline * 2 * chunks) == 0:
        schedule = flat.get("parallel.pipeline.schedule") or "1f1b"
        fields = {"parallel.pipeline.degree": pipeline * 2, "parallel.pipeline.schedule": schedule}
        yield _Candidate(f"pipeline degree {pipeline * 2}", 2.5, fields)
    context = flat.get("parallel.context") or 1
    if (flat.get("batch.seq_len") or 0) >= 16384 * context:
        yield _Candidate(f"context degree {context * 2}", 2.2, {"parallel.context": context * 2})


def _experts(flat: Flat) -> Iterator[_Candidate]:
    expert, experts = flat.get("parallel.expert") or 1, flat.get("model.moe.experts") or 0
    ranks = (flat.get("parallel.data.degree") or 1) * (flat.get("parallel.context") or 1)
    ranks *= flat.get("parallel.tensor") or 1
    if experts and experts % (expert * 2) == 0 and ranks % (expert * 2) == 0:
        yield _Candidate(f"expert degree {expert * 2}", 1.5, {"parallel.expert": expert * 2})


def _offload(flat: Flat) -> Iterator[_Candidate]:
    if not flat.get("optimizer.offload"):
        fields = {"optimizer.offload": True, "optimizer.offload_fraction": 1.0}
        yield _Candidate("optimizer state in host memory", 4.0, fields, {"optimizer.offload": True})
    if flat.get("parallel.data.sharding") == "full" and not flat.get("parallel.data.offload_parameters"):
        yield _Candidate(
            "parameters and optimizer state in host memory", 5.0, {"parallel.data.offload_parameters": True}
        )


_PROPOSALS: tuple[Callable[[Flat], Iterator[_Candidate]], ...] = (
    _sequence_parallel,
    _sharding,
    _micro_batch,
    _recompute,
    _degrees,
    _experts,
    _offload,
)
