"""Tensors that one transformer layer keeps between its forward and its backward pass.

Read from the modules of core 0.18.0 and of TransformerEngine 2.x, in the order of execution. Per rank and micro batch:
``tokens`` are those of the context-parallel rank; norms and residuals hold a tensor rank's share of them under sequence
parallelism. Memory of one layer in the textbook form: Korthikanti et al. 2022 (arXiv:2205.05198), table 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from translator.memory.saved import Saved
from translator.memory.sizes import Job

HALF, SINGLE = 2, 4


class Widths:
    """Bytes per element and tokens per rank that the parts of a layer share."""

    def __init__(self, job: Job) -> None:
        layout = job.layout
        self.job = job
        self.model = job.model
        self.tensor: Any = layout.tensor
        self.tokens: Any = layout.tokens
        self.own_tokens: Any = layout.tokens / layout.sequence_ranks
        self.compute = max(job.bytes_of("precision.compute", "fp32"), HALF)
        self.fp8 = job.flat.get("precision.fp8") not in (None, "none")
        self.engine = job.values.get("transformer_impl") != "local"
        # A linear layer keeps its input for the weight's gradient, in fp8 where it multiplies in fp8.
        self.linear_input = 1.0 if self.fp8 else float(self.compute)

    def residual(self, width: float = 1.0) -> Any:
        """Bytes of one tensor of the residual stream, ``width`` bytes per element."""
        return self.own_tokens * self.model.hidden * width


def dense_layer(job: Job) -> list[Saved]:
    """A layer with a dense feed-forward."""
    w = Widths(job)
    return [*attention(w), *feed_forward(w, w.model.ffn, "mlp", w.tokens)]


def moe_layer(job: Job) -> list[Saved]:
    """A layer with experts."""
    w = Widths(job)
    return [*attention(w), *experts(w)]


def attention(w: Widths) -> Iterator[Saved]:
    """Norm, projections, attention proper, output projection, dropout and residual."""
    model = w.model
    yield Saved("input of the layer", "input", w.residual(w.compute))
    yield Saved("normed input", "attention", w.residual(w.linear_input))
    if model.mla is not None:
        yield from _latent(w)
    else:
        yield from _heads(w)
    out = w.tokens * model.value_width / w.tensor
    yield Saved("attention output", "attention", out * w.compute)
    if w.fp8:
        yield Saved("attention output in fp8", "attention", out)
    if model.attention_gate:
        yield Saved("attention output before its gate", "attention", out * w.compute)
    yield from _core(w)
    if model.hidden_dropout:
        yield Saved("dropout mask after attention", "dropout", w.residual(1))


def _heads(w: Widths) -> Iterator[Saved]:
    """Queries, keys and values: ``megatron/core/transformer/attention.py:1295`` (core 0.18.0) splits one product.

    Keys and values are views of that product and keep it; rotated queries and keys are new tensors; queries of grouped
    heads are copied, for their strides do not fit (``query.reshape``). Megatron-LM's own attention repeats the keys and
    values of groups for every head (``megatron/core/transformer/dot_product_attention.py:166``), and nothing keeps the
    product then.
    """
    model = w.model
    query = w.tokens * model.query_width / w.tensor * w.compute
    keys = w.tokens * model.kv_heads * model.head_dim / w.tensor * w.compute
    product = query * (2 if model.attention_gate else 1) + 2 * keys
    grouped = model.kv_heads != model.heads
    if not w.engine and grouped:
        yield Saved("queries, and keys and values repeated for every head", "attention", 3 * query)
    else:
        yield Saved("queries, keys and values in one", "attention", product)
        if model.rope:
            yield Saved("rotated queries and keys", "attention", query + keys)
        elif grouped:
            yield Saved("queries, copied out of their groups", "attention", query, doubt=0.5)
    if model.rope and not w.engine:
        # Of queries and of keys, computed anew by every layer (``rope_utils.py``, unfused).
        tables = 4 * w.job.layout.seq_len * model.head_dim * model.rope_fraction * w.compute
        yield Saved("cosines and sines", "attention", tables)
    if model.qk_norm in ("rmsnorm", "layernorm", "l2"):
        if w.engine:
            yield Saved("queries and keys before their norm", "attention", query + keys)
        elif grouped:
            yield Saved("queries before their norm, and the product that holds the keys", "attention", query + product)


def _latent(w: Widths) -> Iterator[Saved]:
    """Latent attention: compressed tensors and their normed copies, then whole queries, keys and values per head."""
    mla = w.model.mla
    assert mla is not None
    tokens, heads = w.tokens, w.model.heads / w.tensor
    own = w.own_tokens
    compressed = own * (mla.q_rank + mla.kv_rank)
    yield Saved("compressed queries, keys and values", "attention", (compressed + own * mla.rope) * w.compute)
    if w.model.qk_norm != "none":
        yield Saved("normed compressed tensors", "attention", compressed * w.linear_input)
    width = mla.nope + mla.rope
    yield Saved("queries and keys", "mla_up_proj", tokens * heads * 2 * width * w.compute)
    yield Saved("values", "mla_up_proj", tokens * heads * mla.value * w.compute)
    if not w.engine:
        yield Saved("cosines and sines", "mla_up_proj", 4 * w.job.layout.seq_len * mla.rope * w.compute)


def _core(w: Widths) -> Iterator[Saved]:
    """Attention proper: fused kernels keep the log of each row's sum, others the whole matrix of probabilities."""
    model = w.model
    heads = model.heads / w.tensor
    if not unfused(w):
        yield Saved("log of the softmax's sums", "core_attn", w.tokens * heads * SINGLE)
        return
    matrix = score_matrix(w)
    yield Saved("attention probabilities", "core_attn", matrix * w.compute)
    if model.attention_dropout:
        yield Saved("dropped probabilities and their mask", "core_attn", matrix * (w.compute + 1))


def unfused(w: Widths) -> bool:
    """Whether the matrix of attention probabilities is built in memory."""
    return not w.engine or w.job.values.get("attention_backend") in ("unfused", "AttnBackend.unfused")


def score_matrix(w: Widths) -> Any:
    """Elements of the matrix of attention probabilities of one micro batch."""
    return w.tokens * w.job.layout.seq_len * w.model.heads / w.tensor


def feed_forward(w: Widths, width: int, module: str, tokens: Any, *, norm: bool = True) -> Iterator[Saved]:
    """Norm, first product, activation, second product, dropout and residual; ``width`` of one branch."""
    model = w.model
    if norm:
        yield Saved("input of the feed-forward", "input", w.residual(w.compute))
        # TransformerEngine's norm is part of the first product; Megatron-LM's own is outside what `mlp` recomputes.
        normed = module if w.engine else f"{module} input"
        yield Saved("normed input of the feed-forward", normed, w.residual(w.linear_input))
    branches = 2 if model.gated else 1
    inner = tokens * width / w.tensor
    yield Saved("before the activation", f"{module} activation", inner * branches * w.compute)
    if model.gated and not _fused(w):
        # The gate's activation, and the other branch plus its offset (``megatron/core/transformer/mlp.py``, ``glu``).
        yield Saved("the gate's activation, and the linear branch", f"{module} activation", 2 * inner * w.compute)
    yield Saved("after the activation", f"{module} activation", inner * w.linear_input)
    if norm and model.hidden_dropout:
        yield Saved("dropout mask after the feed-forward", "dropout", w.residual(1))


def _fused(w: Widths) -> bool:
    """Whether activation and gate are one kernel that keeps its input only."""
    fused = w.job.values.get("bias_swiglu_fusion" if w.model.activation == "silu" else "bias_gelu_fusion")
    return fused is not False


def experts(w: Widths) -> Iterator[Saved]:
    """Router, dispatched tokens, grouped products, shared experts: ``megatron/core/transformer/moe`` (core 0.18.0).

    Tokens are taken to spread evenly over the experts; a doubt stands for those that do not.
    """
    model = w.model
    moe = model.moe
    assert moe is not None
    yield Saved("input of the experts", "input", w.residual(w.compute))
    yield Saved("normed input of the experts", "moe input", w.residual(w.compute))
    yield Saved("router scores", "moe", w.own_tokens * moe.experts * (3 * SINGLE + 1))
    width = w.job.layout.expert_tensor
    routed = w.own_tokens * moe.top_k * np.maximum(w.job.values.get("moe_expert_capacity_factor") or 1.0, 1.0) * width
    branches = 2 if model.gated else 1
    inner = routed * moe.ffn / width
    yield Saved("dispatched tokens", "moe", routed * model.hidden * w.linear_input, doubt=0.25)
    yield Saved("before the experts' activation", "moe activation", inner * branches * w.compute, doubt=0.25)
    yield Saved("after the experts' activation", "moe activation", inner * w.linear_input, doubt=0.25)
    if moe.shared_ffn:
        yield from feed_forward(w, moe.shared_ffn, "shared_experts", w.tokens, norm=False)
    if model.hidden_dropout:
        yield Saved("dropout mask after the experts", "dropout", w.residual(1))
