"""An estimate against a card, as data: what the command prints, and what its JSON holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from translator.memory.changes import Change, changes
from translator.memory.compute import Compute, compute
from translator.memory.estimate import Estimate
from translator.memory.hardware import Gpu
from translator.memory.terms import Kind, Term

KINDS = tuple(kind for kind in Kind if kind is not Kind.HOST)


@dataclass(frozen=True, slots=True)
class StageLine:
    """One pipeline stage: bytes by kind at its peak, and the totals."""

    stage: int
    layers: int
    phase: str
    terms: list[tuple[str, Kind, float]]
    allocated: tuple[float, float, float]
    reserved: tuple[float, float, float]
    outside: float

    @property
    def card(self) -> float:
        """Expected bytes on the card: reserved, and what lies outside the allocator."""
        return self.reserved[1] + self.outside

    def of_kind(self, kind: Kind) -> float:
        """Bytes of one kind."""
        return sum(amount for _, found, amount in self.terms if found is kind)


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Every stage of a configuration against a card; ``worst`` is the index of the fullest stage."""

    estimate: Estimate
    gpu: Gpu
    stages: list[StageLine]
    compute: Compute
    changes: list[Change]

    @property
    def worst(self) -> StageLine:
        """The stage that takes most of its card."""
        return max(self.stages, key=lambda line: line.card)

    @property
    def fits(self) -> bool:
        """Whether the expected bytes of every stage fit on the card."""
        return self.worst.card <= self.gpu.memory_bytes

    @property
    def surely(self) -> bool:
        """Whether the high estimate fits as well."""
        return all(line.reserved[2] + line.outside <= self.gpu.memory_bytes for line in self.stages)

    def as_dict(self) -> dict[str, Any]:
        """The stable JSON form."""
        job = self.estimate.job
        return {
            "schema_version": 1,
            "framework": job.framework,
            "version": job.version,
            "gpu": self.gpu.name,
            "capacity_bytes": self.gpu.memory_bytes,
            "fits": self.fits,
            "assumed": list(self.estimate.assumed),
            "stages": [_stage_dict(line) for line in self.stages],
            "changes": [
                {
                    "change": change.says,
                    "fields": dict(change.fields),
                    "options": list(change.options),
                    "peak_bytes": round(change.peak_bytes),
                }
                for change in self.changes
            ],
            "compute": {
                "forward_flops_per_token": self.compute.forward,
                "training_flops_per_token": self.compute.training,
                "recomputed_flops_per_token": self.compute.recomputed,
            },
        }


def _stage_dict(line: StageLine) -> dict[str, Any]:
    return {
        "stage": line.stage,
        "rank": line.stage,
        "layers": line.layers,
        "phase": line.phase,
        "terms": [{"name": name, "kind": kind.value, "bytes": round(amount)} for name, kind, amount in line.terms],
        "allocated_bytes": _range(line.allocated),
        "reserved_bytes": _range(line.reserved),
        "outside_bytes": round(line.outside),
    }


def _range(values: tuple[float, float, float]) -> dict[str, int]:
    return dict(zip(("low", "expected", "high"), map(round, values), strict=True))


def report(found: Estimate, gpu: Gpu) -> MemoryReport:
    """An estimate of one layout against a card, with changes that would make it fit where it does not."""
    job = found.job
    flat = job.flat
    stages = [_line(found, stage) for stage in range(found.stages.count)]
    flops = compute(
        job.model,
        int(job.layout.seq_len),
        causal=flat.get("model.attention_mask") != "bidirectional",
        recompute=flat.get("recompute.mode") or "none",
    )
    done = MemoryReport(found, gpu, stages, flops, [])
    return done if done.fits else MemoryReport(found, gpu, stages, flops, changes(job, float(gpu.memory_bytes)))


def _line(found: Estimate, stage: int) -> StageLine:
    totals, account = found.totals, found.account
    phase = totals.names[int(totals.phase[0, stage])]

    def at(values: Any) -> float:
        return float(np.broadcast_to(np.asarray(values, dtype=float), totals.allocated.expected.shape)[0, stage])

    def amounts(terms: list[Term]) -> list[tuple[str, Kind, float]]:
        return [(term.name, term.kind, amount) for term in terms if (amount := at(term.amount)) > 0]

    allocated, reserved = totals.allocated, totals.reserved
    return StageLine(
        stage,
        int(at(found.stages.layers)),
        phase,
        [*amounts(account.state), *amounts(account.phases[phase]), *amounts(account.outside), *amounts(account.host)],
        (at(allocated.low), at(allocated.expected), at(allocated.high)),
        (at(reserved.low), at(reserved.expected), at(reserved.high)),
        at(totals.outside),
    )
