"""Parameters of one rank, tensor by tensor: tensor parallelism first, then FSDP along the first dimension.

FSDP2 gives every rank ``ceil(rows / ranks)`` rows and pads what is left over
(``torch/distributed/fsdp/_fully_shard/_fsdp_param.py:330``, torch 2.13), so a tensor costs by its rows.
Source of the plans: ``models/llama3/infra/parallelize.py:185`` and ``models/llama4/infra/parallelize.py`` (0.2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from translator.memory.sizes import Job, Model
from translator.memory.stages import Stages


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter: rows and the product of the other dimensions, and which of the two tensor parallelism splits.

    ``experts`` is the number of experts of a stacked tensor, whose first dimension they are.
    """

    name: str
    rows: int
    columns: int = 1
    split: str = "none"
    experts: int = 0

    @property
    def elements(self) -> int:
        """Elements of the whole tensor."""
        return max(self.experts, 1) * self.rows * self.columns


def attention(job: Job) -> Iterator[Tensor]:
    """Attention of a block with its norm."""
    model, hidden = job.model, job.model.hidden
    yield Tensor("attention_norm", hidden)
    if model.mla is not None:
        yield from _latent(model)
    else:
        keys = model.kv_heads * model.head_dim
        named: tuple[tuple[str, int], ...] = (("wq", model.query_width), ("wk", keys), ("wv", keys))
        if one_product(job):
            named = (("wqkv", model.query_width + 2 * keys),)
        for name, rows in named:
            yield Tensor(name, rows, hidden, "rows")
            if model.bias_qkv:
                yield Tensor(f"{name}.bias", rows, 1, "rows")
        if model.qk_norm != "none":
            yield Tensor("q_norm", model.head_dim)
            yield Tensor("k_norm", model.head_dim)
        if model.sinks:
            yield Tensor("sinks", model.heads, 1, "rows")
    yield Tensor("wo", hidden, model.value_width, "columns")
    if model.bias:
        yield Tensor("wo.bias", hidden)


def one_product(job: Job) -> bool:
    """Whether queries, keys and values have one weight: since 0.3 (``models/common/attention.py``, FusedQKVLinear)."""
    flavor = str(job.values.get("model_spec.flavor") or "")
    return release(job) >= (0, 3) and not flavor.endswith("_non_fused_qkv")


def _latent(model: Model) -> Iterator[Tensor]:
    mla = model.mla
    assert mla is not None
    if mla.q_rank:
        yield Tensor("wq_a", mla.q_rank, model.hidden)
        yield Tensor("q_norm", mla.q_rank)
        yield Tensor("wq_b", model.query_width, mla.q_rank, "rows")
    else:
        yield Tensor("wq", model.query_width, model.hidden, "rows")
    yield Tensor("wkv_a", mla.kv_rank + mla.rope, model.hidden)
    yield Tensor("kv_norm", mla.kv_rank)
    yield Tensor("wkv_b", model.heads * (mla.nope + mla.value), mla.kv_rank, "rows")


def feed_forward(model: Model, width: int) -> Iterator[Tensor]:
    """A gated feed-forward without its norm."""
    yield Tensor("w1", width, model.hidden, "rows")
    yield Tensor("w2", model.hidden, width, "columns")
    if model.gated:
        yield Tensor("w3", width, model.hidden, "rows")


def dense_block(job: Job) -> list[Tensor]:
    """A block with a dense feed-forward."""
    model = job.model
    return [*attention(job), Tensor("ffn_norm", model.hidden), *feed_forward(model, model.ffn)]


def around_experts(job: Job) -> list[Tensor]:
    """A MoE block without its routed experts."""
    model = job.model
    moe = model.moe
    if moe is None:
        return []
    shared = feed_forward(model, moe.shared_ffn) if moe.shared_ffn else ()
    router = [Tensor("router", moe.experts, model.hidden)]
    if model.bias:
        router.append(Tensor("router.bias", moe.experts))
    return [*attention(job), Tensor("ffn_norm", model.hidden), *router, *shared]


def routed_experts(job: Job) -> list[Tensor]:
    """The stacked weights of routed experts; with biases, gate and product are one (``gpt_oss/moe.py:90``, 0.3.0)."""
    moe, hidden = job.model.moe, job.model.hidden
    if moe is None:
        return []
    second = Tensor("experts.w2", hidden, moe.ffn, "columns", moe.experts)
    if moe.bias:
        return [
            Tensor("experts.w13", 2 * moe.ffn, hidden, "rows", moe.experts),
            Tensor("experts.w13.bias", 2 * moe.ffn, 1, "rows", moe.experts),
            second,
            Tensor("experts.w2.bias", hidden, 1, "none", moe.experts),
        ]
    return [
        Tensor("experts.w1", moe.ffn, hidden, "rows", moe.experts),
        second,
        Tensor("experts.w3", moe.ffn, hidden, "rows", moe.experts),
    ]


def embedding(model: Model) -> list[Tensor]:
    """The embedding, or the output layer."""
    return [Tensor("embedding", model.vocab, model.hidden, "rows")]


def held(job: Job, tensors: list[Tensor]) -> Any:
    """Elements of tensors on one rank before FSDP: its tensor- and expert-parallel share."""
    layout = job.layout
    total: Any = 0
    for tensor in tensors:
        if tensor.experts:
            width = 1 if tensor.split == "none" else expert_width(job)
            total = total + tensor.elements / layout.expert / width
        else:
            total = total + tensor.elements / (1 if tensor.split == "none" else layout.tensor)
    return total


def expert_width(job: Job) -> Any:
    """Ranks that split the weights of one expert: those of tensor parallelism, where experts are not spread."""
    layout = job.layout
    return np.where(np.asarray(layout.expert) > 1, layout.expert_tensor, layout.tensor)


def sharded(job: Job, tensors: list[Tensor]) -> Any:
    """Elements of tensors that the first rank keeps after FSDP, which deals out rows and rounds up."""
    ranks = fsdp_ranks(job)
    total: Any = 0
    for tensor in tensors:
        if tensor.experts:
            total = total + _expert_shard(job, tensor)
        else:
            rows, columns = _split(tensor, job.layout.tensor)
            total = total + np.ceil(np.ceil(rows) / ranks) * columns
    return total


def _split(tensor: Tensor, width: Any) -> tuple[Any, Any]:
    """Rows and columns on one tensor rank."""
    rows = tensor.rows / (width if tensor.split == "rows" else 1)
    return rows, tensor.columns / (width if tensor.split == "columns" else 1)


def _expert_shard(job: Job, tensor: Tensor) -> Any:
    """Experts over the expert ranks, then FSDP over the ranks left: by expert, or by rows where those are too few.

    ``models/llama4/infra/parallelize.py:396`` (0.2.2) for spread experts, ``distributed/fsdp.py:205`` (0.3.0) for all.
    """
    layout = job.layout
    spread = np.asarray(layout.expert) > 1
    rows, columns = _split(tensor, expert_width(job))
    local = tensor.experts / layout.expert
    left = np.maximum(fsdp_ranks(job) * layout.tensor // (layout.expert * layout.expert_tensor), 1)
    ranks = np.where(spread, left, fsdp_ranks(job))
    by_rows = (spread | (release(job) >= (0, 3))) & (ranks * layout.expert > tensor.experts)
    return np.where(by_rows, local * np.ceil(rows / ranks) * columns, np.ceil(local / ranks) * rows * columns)


def fsdp_ranks(job: Job) -> Any:
    """Ranks that share one copy: those of the shard degree and of context parallelism; 1 under plain replication."""
    context = np.asarray(job.layout.context)
    full = (job.flat.get("parallel.data.sharding") == "full") | (context > 1)
    return np.where(full, np.asarray(job.layout.shard) * context, 1)


def release(job: Job) -> tuple[int, ...]:
    """The first two numbers of the version."""
    return tuple(int(part) for part in job.version.split(".")[:2])


def last_norm(model: Model) -> Tensor:
    """The norm before the output layer."""
    return Tensor("norm", model.hidden)


def elements(job: Job, stages: Stages, count: Callable[[Job, list[Tensor]], Any]) -> Any:
    """Elements of every rank, counted by ``count``; shape (layouts, stages)."""
    model = job.model
    total = stages.dense * count(job, dense_block(job))
    if model.moe is not None:
        total = total + stages.moe * (count(job, around_experts(job)) + count(job, routed_experts(job)))
    ends = count(job, embedding(model))
    tied = model.tied & (np.asarray(job.layout.pipeline) == 1)
    last = ends * ~np.asarray(tied) + count(job, [last_norm(model)])
    return (total + stages.first * ends + stages.last * last) * stages.present
