"""Which rank holds what: stages by data and context shards, drawn so that 8 and 16,384 ranks are both readable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.report.model import Layout, LayoutRow
from translator.report.words import count

if TYPE_CHECKING:
    from translator.memory.sizes import Job

_ORDER = "tp-cp-ep-dp-pp"
_AXES = {"tp": "tensor", "cp": "context", "dp": "data", "pp": "pipeline"}
# What data-parallel ranks share out, by the spec's word.
_KEPT = {
    "optimizer": "the optimizer state",
    "optimizer_gradients": "optimizer state and gradients",
    "full": "parameters, gradients and optimizer state",
}
_ALL_COLUMNS, _FIRST_COLUMNS, _ALL_ROWS, _FIRST_ROWS = 8, 4, 64, 8


def layout(job: Job) -> Layout:
    """The drawing of a job's ranks.

    Ranks are numbered along the axes in the order that the configuration gives, the first axis fastest; of the data
    axis, shards before replicas.
    """
    from translator.memory.stages import stages_of

    one = job.layout
    tensor, context, pipeline = int(one.tensor), int(one.context), int(one.pipeline)
    shard, replicate = int(one.shard), int(one.replicate)
    data = shard * replicate
    degrees = {"tp": tensor, "cp": context, "dp": data, "pp": pipeline}
    order = _order(job)
    strides, step = {}, 1
    for word in order:
        strides[word] = step
        step *= degrees[word]
    held = stages_of(job).layers[0]

    def ranks(stage: int, column: int) -> str:
        index, part = divmod(column, context)
        return _range(stage * strides["pp"] + index * strides["dp"] + part * strides["cp"], strides["tp"], tensor)

    columns = _some(data * context, _ALL_COLUMNS, _FIRST_COLUMNS)
    rows = [
        LayoutRow(
            stage,
            int(held[stage]) if stage >= 0 else 0,
            ["" if stage < 0 or column < 0 else ranks(stage, column) for column in columns],
        )
        for stage in _some(pipeline, _ALL_ROWS, _FIRST_ROWS)
    ]
    return Layout(
        step,
        _degrees(job),
        ", ".join(_AXES[word] for word in order),
        _replicas(tensor * context * pipeline, job),
        [_column(column, context, shard, replicate) for column in columns],
        rows,
        _experts(job, tensor * context * data),
    )


def _order(job: Job) -> list[str]:
    """The axes from the fastest to the slowest; those that the configuration leaves out come last."""
    stated = job.flat.get("parallel.rank_order")
    words = stated.split("-") if isinstance(stated, str) else []
    return list(dict.fromkeys(word for word in (*words, *_ORDER.split("-")) if word in _AXES))


def _some(total: int, all_of: int, first: int) -> list[int]:
    """Indices that are drawn: all, or the first ones, a gap (-1) and the last."""
    return list(range(total)) if total <= all_of else [*range(first), -1, total - 1]


def _range(base: int, stride: int, number: int) -> str:
    """The ranks of a tensor-parallel group."""
    last = base + (number - 1) * stride
    if number == 1:
        return str(base)
    return f"{base}-{last}" if stride == 1 else f"{base}-{last}, every {stride}"


def _column(column: int, context: int, shard: int, replicate: int) -> str:
    if column < 0:
        return ""
    data, part = divmod(column, context)
    replica, piece = divmod(data, shard)
    words = [f"data {data}" if replicate == 1 or shard == 1 else f"replica {replica} shard {piece}"]
    return " ".join([*words, f"context {part}"]) if context > 1 else words[0]


def _replicas(ranks: int, job: Job) -> str:
    """How many ranks a copy of the model takes, how many copies there are, and what they share out among them."""
    shard, replicate = int(job.layout.shard), int(job.layout.replicate)
    copies = shard * replicate
    said = f"A copy of the model spans {count(ranks, 'rank')}, and there {'is' if copies == 1 else 'are'} {copies:,}"
    kept = _KEPT.get(str(job.flat.get("parallel.data.sharding")))
    if shard == 1 or kept is None:
        return said
    over = f"the {copies:,}" if replicate == 1 else f"each {shard:,} of them"
    return f"{said}; {over} share out {kept}"


def _degrees(job: Job) -> list[tuple[str, int]]:
    one = job.layout
    known = {
        "tensor": one.tensor,
        "context": one.context,
        "pipeline": one.pipeline,
        "model chunks per rank": one.chunks,
        "sharded data": one.shard,
        "replicated data": one.replicate,
        "expert": one.expert,
        "expert tensor": one.expert_tensor,
    }
    return [(name, int(degree)) for name, degree in known.items() if int(degree) > 1]


def _experts(job: Job, ranks: int) -> list[tuple[str, str]]:
    """Per rank of the expert group: its ranks on the first stage (offsets from the stage's first), and its experts."""
    moe, degree, tensor = job.model.moe, int(job.layout.expert), int(job.layout.expert_tensor)
    if moe is None or degree < 2:
        return []
    each = moe.experts // degree
    found: list[tuple[str, str]] = []
    for index in _some(degree, 16, 4):
        if index < 0:
            found.append(("", ""))
            continue
        held = _range(index * each, 1, each)
        first = _range(index * tensor, 1, tensor)
        period = degree * tensor
        found.append((f"{first}, and every {period} ranks on" if ranks > period else first, held))
    return found
