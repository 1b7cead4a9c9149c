"""The nearest layout that torchtitan can run, where it cannot split a model into pipeline stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.torchtitan.flavors import choose
from translator.frameworks.torchtitan.models import family
from translator.ledger import Entry
from translator.mapping.views import Shortfall
from translator.spec.derive import accumulation

_PIPELINE = "parallel.pipeline.degree"
_UNUSED = ("schedule", "layer_split", "overlap_p2p")


def fit(flat: Mapping[str, Any], version: str) -> tuple[Mapping[str, Any], list[Shortfall]]:
    """The leaves to write, and what of them is changed: ranks of a pipeline share data where the model has no stages.

    Everything stays as it is when the model can be split, or when the sequences of a step do not suffice.
    """
    stages, layers, hidden = flat.get(_PIPELINE) or 1, flat.get("model.layers"), flat.get("model.hidden")
    if stages == 1 or layers is None or hidden is None:
        return flat, []
    choice = choose(flat, version, seq_len=flat.get("batch.seq_len"), pipeline=stages)
    known = family(choice.name, version) if choice is not None else None
    if known is None or known.pipeline:
        return flat, []
    degree, shard = flat.get("parallel.data.degree"), flat.get("parallel.data.shard")
    total, micro = flat.get("batch.global_batch"), flat.get("batch.micro_batch")
    wider = degree * stages if degree else None
    smaller = micro
    if total and micro and wider:
        share, rest = divmod(total, wider)
        if rest:
            return flat, []
        smaller = max(size for size in range(1, min(micro, share) + 1) if share % size == 0)
    changed = {
        _PIPELINE: 1,
        "parallel.pipeline.stages_per_rank": 1,
        **{f"parallel.pipeline.{leaf}": None for leaf in _UNUSED},
        "parallel.data.degree": wider,
        "parallel.data.shard": shard * stages if shard else None,
        "batch.micro_batch": smaller,
        "batch.accumulation": accumulation(total, smaller, wider),
    }
    why = f"{known.name} has no stages in torchtitan {version}: the ranks of {stages} stages share data instead"
    entries = dict.fromkeys(changed, Entry.ADAPTED) | {_PIPELINE: Entry.UNSUPPORTED}
    if smaller != micro:
        entries["batch.micro_batch"] = Entry.APPROXIMATED
    return {**flat, **changed}, [Shortfall(leaf, entry, why) for leaf, entry in entries.items()]
