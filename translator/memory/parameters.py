"""Parameters of a plain transformer, part by part, in elements: matrices that can be split, and the rest.

Frameworks that build their own modules count for themselves; this is the architecture as published, without padding.
"""

from __future__ import annotations

from dataclasses import dataclass

from translator.memory.sizes import Model


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of a part of the model: of matrices, and of everything that every tensor rank holds whole."""

    matrices: int
    whole: int

    @property
    def elements(self) -> int:
        """All elements."""
        return self.matrices + self.whole


def norm(model: Model) -> int:
    """One norm over the hidden size."""
    return model.hidden * (2 if model.layer_norm else 1)


def attention(model: Model) -> Part:
    """Attention of one layer with its norm."""
    hidden = model.hidden
    if model.mla is not None:
        mla = model.mla
        rank = mla.q_rank * (hidden + 1) if mla.q_rank else 0
        query = (mla.q_rank or hidden) * model.query_width
        latent = hidden * (mla.kv_rank + mla.rope) + mla.kv_rank
        heads = mla.kv_rank * model.heads * (mla.nope + mla.value) + model.value_width * hidden
        return Part(query + heads, rank + latent + norm(model))
    projected = model.query_width + 2 * model.kv_heads * model.head_dim
    bias = projected * (model.bias_qkv or model.bias)
    whole = norm(model) + (hidden if model.bias else 0)
    whole += 2 * model.head_dim if model.qk_norm != "none" else 0
    return Part(hidden * projected + model.value_width * hidden + bias, whole)


def feed_forward(model: Model, width: int) -> Part:
    """A feed-forward without its norm."""
    first = width * (2 if model.gated else 1)
    bias = first if model.bias else 0
    return Part(model.hidden * (first + width) + bias, model.hidden if model.bias else 0)


def dense_layer(model: Model) -> Part:
    """A layer with a dense feed-forward."""
    return _sum(attention(model), feed_forward(model, model.ffn), Part(0, norm(model)))


def moe_layer(model: Model) -> Part:
    """A layer with experts, all of them."""
    moe = model.moe
    if moe is None:
        return Part(0, 0)
    one = feed_forward(model, moe.ffn)
    routed = Part(moe.experts * one.matrices, moe.experts * one.whole)
    shared = feed_forward(model, moe.shared_ffn) if moe.shared_ffn else Part(0, 0)
    return _sum(attention(model), routed, shared, Part(0, norm(model) + model.hidden * moe.experts))


def embedding(model: Model) -> int:
    """Word embedding, or output layer."""
    return model.vocab * model.hidden


def _sum(*parts: Part) -> Part:
    return Part(sum(part.matrices for part in parts), sum(part.whole for part in parts))
