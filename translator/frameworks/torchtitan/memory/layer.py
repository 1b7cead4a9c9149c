"""Tensors that one transformer block keeps between its forward and its backward pass, in eager mode.

Read from ``models/llama3/model/model.py``, ``models/moe/moe.py`` and ``models/deepseek_v3/model/model.py`` (0.2.2): the
inputs of matrix products, of norms, of the activation, and what the attention kernel keeps. Modules: ``input`` is the
block's own input; ``kernel`` the outputs of attention; ``odd`` and ``even`` outputs of matrix products by their order;
``pointwise`` everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from translator.memory.saved import Saved
from translator.memory.sizes import Job


class Widths:
    """Tokens per rank and bytes per element that the parts of a block share."""

    def __init__(self, job: Job) -> None:
        layout = job.layout
        self.job = job
        self.model = job.model
        self.tensor: Any = layout.tensor
        self.tokens: Any = layout.tokens
        # Tensor parallelism always brings sequence parallelism along.
        self.own_tokens: Any = layout.tokens / layout.tensor
        self.compute = max(job.bytes_of("precision.compute", "fp32"), 2)

    def residual(self) -> Any:
        """Bytes of the residual stream's share of this rank."""
        return self.own_tokens * self.model.hidden * self.compute

    def gathered(self) -> Any:
        """Bytes of the residual stream gathered along the sequence."""
        return self.tokens * self.model.hidden * self.compute


def dense_block(job: Job) -> list[Saved]:
    """A block with a dense feed-forward."""
    w = Widths(job)
    return [*attention(w), *feed_forward(w)]


def moe_block(job: Job) -> list[Saved]:
    """A block with experts."""
    w = Widths(job)
    return [*attention(w), *experts(w)]


def attention(w: Widths) -> Iterator[Saved]:
    """Norm, projections, rotation, attention, output projection."""
    model = w.model
    query = w.tokens * model.query_width / w.tensor * w.compute
    value = w.tokens * model.value_width / w.tensor * w.compute
    keys = w.tokens * model.kv_heads * model.head_dim / w.tensor * w.compute
    if model.mla is not None:
        keys = query
    yield Saved("input of the block", "input", w.residual())
    yield Saved("normed input", "fused", w.gathered())
    yield Saved("queries", "odd", query)
    yield Saved("keys", "even", keys)
    yield Saved("values", "odd", value if model.mla is not None else keys)
    if model.mla is not None:
        rank = w.tokens * (model.mla.q_rank + model.mla.kv_rank + model.mla.rope) * w.compute
        yield Saved("compressed queries, keys and values", "odd", rank)
        yield Saved("normed compressed tensors", "pointwise", rank)
    yield Saved("attention output", "kernel", value)
    yield Saved("log of the softmax's sums", "kernel", w.tokens * model.heads / w.tensor * 4)
    yield Saved("attention output, laid out for the projection", "pointwise", value)


def feed_forward(w: Widths) -> Iterator[Saved]:
    """Residual sum, norm, gated feed-forward."""
    inner = w.tokens * w.model.ffn / w.tensor * w.compute
    yield Saved("input of the feed-forward", "pointwise", w.residual())
    yield Saved("normed input of the feed-forward", "fused", w.gathered())
    yield Saved("first product", "odd", inner)
    yield Saved("its activation", "fused", inner)
    yield Saved("gate", "even", inner)
    yield Saved("gated", "fused", inner)
    yield Saved("second product", "last", w.residual())


def experts(w: Widths) -> Iterator[Saved]:
    """Router, tokens sorted by expert, grouped products, shared experts; tokens are taken to spread evenly."""
    model = w.model
    moe = model.moe
    assert moe is not None
    layout = w.job.layout
    routed = w.own_tokens * moe.top_k * layout.expert_tensor
    inner = routed * moe.ffn / layout.expert_tensor * w.compute
    yield Saved("input of the experts", "pointwise", w.residual())
    yield Saved("normed input of the experts", "pointwise", w.residual())
    yield Saved("router scores", "pointwise", w.own_tokens * moe.experts * 4 * 3)
    yield Saved("tokens sorted by expert", "pointwise", routed * model.hidden * w.compute * 2, doubt=0.25)
    yield Saved("first product of the experts", "pointwise", inner, doubt=0.25)
    yield Saved("their activation and gate", "pointwise", 3 * inner, doubt=0.25)
    yield Saved(
        "output of the experts and its scores", "pointwise", routed * model.hidden * (w.compute + 4), doubt=0.25
    )
    if moe.shared_ffn:
        shared = w.tokens * moe.shared_ffn / w.tensor * w.compute
        yield Saved("shared experts", "odd", shared)
        yield Saved("shared experts' activation and gate", "pointwise", 3 * shared)
