"""Tensors that one transformer block keeps between its forward and its backward pass, and the products it computes.

Read from ``models/common/attention.py``, ``feed_forward.py`` and ``moe.py``, ``models/deepseek_v3/model.py`` (0.3.0)
and their predecessors (``models/llama3/model/model.py``, ``models/moe/moe.py``, 0.2.2). Modules: ``input`` is the
block's own input; ``kernel`` what attention puts out; ``product`` the output of a matrix product; ``fused`` what a
compiler computes again inside the kernel that needs it; ``pointwise`` everything else; ``sum`` results of
communication; ``last`` what no backward pass reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from translator.frameworks.torchtitan.memory.parameters import expert_width, one_product, release
from translator.memory.saved import Saved
from translator.memory.sizes import Job

SINGLE = 4


class Widths:
    """Tokens per rank and bytes per element that the parts of a block share."""

    def __init__(self, job: Job) -> None:
        layout = job.layout
        self.job = job
        self.model = job.model
        self.tensor: Any = layout.tensor
        self.tokens: Any = layout.tokens
        self.own_tokens: Any = layout.tokens / layout.sequence_ranks
        self.compute = max(job.bytes_of("precision.compute", "fp32"), 2)

    def residual(self) -> Any:
        """Bytes of the residual stream's share of this rank."""
        return self.own_tokens * self.model.hidden * self.compute

    def gathered(self) -> Any:
        """Bytes of the residual stream gathered along the sequence."""
        return self.tokens * self.model.hidden * self.compute

    def heads(self, heads: int, width: int) -> Any:
        """Bytes of some heads, which tensor parallelism splits."""
        return self.tokens * heads * width / self.tensor * self.compute

    def routed(self) -> Any:
        """Tokens that the experts of this rank work on, each counted once per expert; spread evenly."""
        moe = self.model.moe
        assert moe is not None
        return self.tokens / self.tensor * moe.top_k * expert_width(self.job)


def dense_block(job: Job) -> list[Saved]:
    """A block with a dense feed-forward."""
    w = Widths(job)
    return [*attention(w), *feed_forward(w)]


def moe_block(job: Job) -> list[Saved]:
    """A block with experts."""
    w = Widths(job)
    return [*attention(w), *experts(w)]


def attention(w: Widths) -> Iterator[Saved]:
    """Norm, projections, rotation, attention proper; a norm keeps its input, which is the block's."""
    model = w.model
    yield Saved("input of the block", "input", w.residual())
    yield Saved("normed input", "fused", w.gathered())
    if model.mla is not None:
        yield from _latent(w)
    else:
        yield from _heads(w)
    yield Saved("attention output", "kernel", w.heads(model.heads, model.value_width // model.heads))
    yield Saved("log of the softmax's sums", "kernel", w.tokens * model.heads / w.tensor * SINGLE)
    if model.sinks:
        # models/gpt_oss/model.py:34 (0.3.0) scales the output by a sigmoid of the sums.
        yield Saved("scaled attention output", "fused", w.heads(model.heads, model.value_width // model.heads))
        yield Saved("scales", "fused", w.tokens * model.heads / w.tensor * (SINGLE + w.compute))


def _heads(w: Widths) -> Iterator[Saved]:
    """Rotated queries and keys, and values; until 0.2 keys and values were repeated for every query head.

    ``models/llama3/model/model.py`` (0.1.0), ``repeat_kv``. One product of all three is split into copies (0.3.0).
    """
    model = w.model
    query, keys = w.heads(model.heads, model.head_dim), w.heads(model.kv_heads, model.head_dim)
    if model.qk_norm != "none":
        yield Saved("queries and keys before their norm", "pointwise", query + keys)
    yield Saved("rotated queries", "pointwise", query)
    if repeats_keys(w.job):
        yield Saved("keys and values, repeated", "pointwise", 2 * query)
        return
    yield Saved("rotated keys", "pointwise", keys)
    yield Saved("values", "pointwise" if one_product(w.job) else "product", keys)


def repeats_keys(job: Job) -> bool:
    """Whether attention works on keys and values repeated for every query head."""
    return release(job) < (0, 2) and job.model.kv_heads != job.model.heads


def _latent(w: Widths) -> Iterator[Saved]:
    """Latent attention: compressed tensors and their normed copies, whole queries and keys, the product with values."""
    model, mla = w.model, w.model.mla
    assert mla is not None
    if mla.q_rank:
        yield Saved("compressed queries", "product", w.tokens * mla.q_rank * w.compute)
        yield Saved("normed compressed queries", "fused", w.tokens * mla.q_rank * w.compute)
    yield Saved("compressed keys and values", "product", w.tokens * (mla.kv_rank + mla.rope) * w.compute)
    yield Saved("normed compressed keys and values", "fused", w.tokens * mla.kv_rank * w.compute)
    yield Saved("whole queries and keys", "pointwise", 2 * w.heads(model.heads, mla.nope + mla.rope))
    # Values are a view of the product that holds the keys' part too.
    yield Saved("keys and values", "product", w.heads(model.heads, mla.nope + mla.value))


def feed_forward(w: Widths) -> Iterator[Saved]:
    """Residual sum, norm, gated feed-forward."""
    yield Saved("input of the feed-forward", "pointwise", w.residual())
    yield Saved("normed input of the feed-forward", "fused", w.gathered())
    yield from _gated("", w.tokens * w.model.ffn / w.tensor * w.compute)


def _gated(of: str, inner: Any, doubt: float = 0.0) -> Iterator[Saved]:
    yield Saved(f"first product{of}", "product", inner, doubt)
    yield Saved(f"activation{of}", "fused", inner, doubt)
    yield Saved(f"gate{of}", "product", inner, doubt)
    yield Saved(f"gated activation{of}", "fused", inner, doubt)


def experts(w: Widths) -> Iterator[Saved]:
    """Router, tokens sorted by expert, grouped products, shared experts; tokens are taken to spread evenly."""
    model = w.model
    moe = model.moe
    assert moe is not None
    routed = w.routed()
    alone = np.asarray(w.job.layout.expert) == 1
    yield Saved("input of the experts", "pointwise", w.residual())
    whole = alone | bool(moe.shared_ffn)
    yield Saved("normed input of the experts", "fused", np.where(whole, w.gathered(), w.residual()))
    scored = np.where(alone, w.tokens, w.own_tokens)
    yield Saved("router scores", "pointwise", scored * moe.experts * SINGLE)
    yield Saved("tokens sorted by expert", "pointwise", routed * model.hidden * w.compute, doubt=0.25)
    inner = routed * moe.ffn / expert_width(w.job) * w.compute
    if moe.bias:
        # With biases, gate and product are one, clamped and multiplied step by step (models/gpt_oss/moe.py:60, 0.3.0).
        yield Saved("first product of the experts", "product", 2 * inner, doubt=0.25)
        yield Saved("clamped halves, sigmoid and gated activation", "fused", 5 * inner, doubt=0.25)
    else:
        yield from _gated(" of the experts", inner, doubt=0.25)
    # Scores multiply the output in fp32 (models/common/token_dispatcher.py, combine).
    yield Saved("output of the experts in fp32", "fused", routed * model.hidden * SINGLE, doubt=0.25)
    if moe.shared_ffn:
        yield from _gated(" of shared experts", w.tokens * moe.shared_ffn / w.tensor * w.compute)


def products(job: Job, *, moe: bool) -> list[Saved]:
    """Outputs of a block's matrix products in their order, as selective checkpointing counts them.

    The router's product (``force_recompute_mm_shapes_by_fqns``) and grouped ones are not counted. Products that
    tensor parallelism sums up are whole before the sum.
    """
    w = Widths(job)
    model = job.model
    found = list(_attention_products(w))
    width = model.moe.shared_ffn if moe and model.moe is not None else model.ffn
    if width:
        of = " of shared experts" if moe else ""
        inner = w.tokens * width / w.tensor * w.compute
        found += [Saved(f"first product{of}", "product", inner), Saved(f"gate{of}", "product", inner)]
        found.append(Saved("last product", "last", w.gathered()))
    return found


def _attention_products(w: Widths) -> Iterator[Saved]:
    model, mla = w.model, w.model.mla
    if mla is not None:
        if mla.q_rank:
            yield Saved("compressed queries", "product", w.tokens * mla.q_rank * w.compute)
        yield Saved("queries", "product", w.heads(model.heads, mla.nope + mla.rope))
        yield Saved("compressed keys and values", "product", w.tokens * (mla.kv_rank + mla.rope) * w.compute)
        yield Saved("keys and values", "product", w.heads(model.heads, mla.nope + mla.value))
    else:
        query, keys = w.heads(model.heads, model.head_dim), w.heads(model.kv_heads, model.head_dim)
        if one_product(w.job):
            yield Saved("queries, keys and values in one", "product", query + 2 * keys)
        else:
            yield Saved("queries", "product", query)
            yield Saved("keys", "product", keys)
            yield Saved("values", "product", keys)
    yield Saved("output projection", "product", w.gathered())


def exchanged(job: Job, *, moe: bool) -> list[Saved]:
    """Results of communication inside a block, which selective checkpointing keeps: sums over tensor ranks, all-to-all.

    ``_get_default_save_ops`` in ``distributed/activation_checkpoint.py:28`` (0.3.0), and
    ``models/llama4/infra/parallelize.py:59`` (0.2.2).
    """
    w = Widths(job)
    summed = np.where(np.asarray(w.tensor) > 1, w.residual(), 0)
    found = [Saved("summed attention output", "sum", summed), Saved("summed output", "last", summed)]
    if moe:
        apart = np.where(np.asarray(job.layout.expert) > 1, 1, 0)
        routed = w.routed() * w.model.hidden * w.compute * apart
        found += [
            Saved("dispatched tokens", "sum", routed, doubt=0.25),
            Saved("combined tokens", "last", routed, doubt=0.25),
        ]
    return found
