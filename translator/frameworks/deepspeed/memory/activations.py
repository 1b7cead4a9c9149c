"""Activations of a transformers model in eager mode, its loss, and what stays allocated.

Read from ``transformers/models/llama/modeling_llama.py`` and ``transformers/loss/loss_utils.py`` (5.24.0); models of
other families have the same parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from translator.memory.in_flight import in_flight
from translator.memory.saved import Saved, total
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

MIB = 2**20
SINGLE = 4


class Widths:
    """Tokens per rank and bytes per element."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.model = job.model
        self.tensor: Any = job.layout.tensor
        # Ulysses splits the sequence of all layers but attention, where it splits the heads: the same share.
        self.tokens: Any = job.layout.tokens
        self.compute = max(job.bytes_of("precision.compute", "fp32"), 2)

    def residual(self) -> Any:
        """Bytes of the residual stream; AutoTP does not split it."""
        return self.tokens * self.model.hidden * self.compute


def layer(job: Job, *, moe: bool) -> list[Saved]:
    """What one layer keeps."""
    w = Widths(job)
    return [*_norm(w), *_attention(w), *_norm(w), *(_experts(w) if moe else _feed_forward(w))]


def _norm(w: Widths) -> Iterator[Saved]:
    """A norm and its output. An RMS norm works on a copy in fp32 and keeps the result before its weight as well."""
    if w.model.layer_norm:
        yield Saved("input of a norm", "norm", w.residual())
    else:
        yield Saved("input of a norm in fp32", "norm", w.tokens * w.model.hidden * SINGLE)
        yield Saved("normed input before its weight", "norm", w.residual())
    yield Saved("normed input", "norm", w.residual())


def _attention(w: Widths) -> Iterator[Saved]:
    """Rotated queries and keys, values, output; the output of fused attention is the input of the next product."""
    model = w.model
    query = w.tokens * model.query_width / w.tensor
    keys = w.tokens * model.kv_heads * model.head_dim / w.tensor if model.mla is None else query
    value = w.tokens * model.value_width / w.tensor
    values = keys if model.mla is None else value
    if model.qk_norm not in ("none", "l2") and model.mla is None:
        norms = (query + keys) * (SINGLE + w.compute)
        yield Saved("queries and keys in fp32, and normed before their weights", "attention", norms)
    yield Saved("attention output", "attention", value * w.compute)
    if w.job.values.get("attn_implementation") == "eager":
        matrix = w.tokens * w.job.layout.seq_len * model.heads / w.tensor
        kept = matrix * (SINGLE + w.compute)
        yield Saved("attention probabilities in fp32 and in the compute type", "attention", kept)
        # Keys and values of groups are repeated for every head.
        yield Saved("queries, and keys and values of every head", "attention", (2 * query + value) * w.compute)
        return
    yield Saved("queries and keys", "attention", (query + keys) * w.compute)
    yield Saved("values", "attention", values * w.compute)
    yield Saved("log of the softmax's sums", "attention", w.tokens * model.heads / w.tensor * SINGLE)


def _feed_forward(w: Widths) -> Iterator[Saved]:
    inner = w.tokens * w.model.ffn / w.tensor * w.compute
    yield Saved("inner tensors of the feed-forward", "feed-forward", inner * (4 if w.model.gated else 2))


def _experts(w: Widths) -> Iterator[Saved]:
    moe = w.model.moe
    assert moe is not None
    routed = w.tokens * moe.top_k
    yield Saved("tokens of the experts", "experts", routed * w.model.hidden * w.compute * 2, doubt=0.25)
    inner = routed * moe.ffn / w.tensor * w.compute
    yield Saved("inner tensors of the experts", "experts", inner * (4 if w.model.gated else 2), doubt=0.25)
    yield Saved("router scores", "experts", w.tokens * moe.experts * SINGLE * 3)
    if moe.shared_ffn:
        shared = w.tokens * moe.shared_ffn / w.tensor * w.compute
        yield Saved("inner tensors of the shared experts", "experts", shared * (4 if w.model.gated else 2))


def saved(job: Job, stages: Stages) -> list[Term]:
    """Activations in flight: whole layers, or their inputs under gradient checkpointing."""
    held = in_flight(job.layout, stages.count) * stages.present
    w = Widths(job)
    if job.flat.get("recompute.mode") == "full":
        kept = held * stages.layers * w.residual()
        return [Term("inputs of recomputed layers", Kind.ACTIVATIONS, kept)]
    terms = []
    for name, layers, moe in (("dense", stages.dense, False), ("MoE", stages.moe, True)):
        if layers.any():
            terms.append(Term(f"{name} layers", Kind.ACTIVATIONS, held * layers * total(layer(job, moe=moe)), 0.1))
    return terms


def loss(job: Job, stages: Stages) -> list[Term]:
    """Logits, kept in the model's output, their fp32 copy, log-softmax and gradients."""
    w = Widths(job)
    logits = stages.last * w.tokens * job.model.vocab
    return [
        Term("logits", Kind.TRANSIENT, logits * w.compute),
        Term("log-softmax of the logits and gradients in fp32", Kind.TRANSIENT, logits * 3 * SINGLE, doubt=0.34),
    ]


def backward(job: Job, stages: Stages) -> list[Term]:
    """The backward pass of a layer: what it computes again, and gradients of its inner tensors."""
    w = Widths(job)
    block: Any = total(layer(job, moe=False)) * (stages.dense > 0)
    if job.model.moe is not None:
        block = np.maximum(block, total(layer(job, moe=True)) * (stages.moe > 0))
    again = block if job.flat.get("recompute.mode") == "full" else 0
    inner = w.tokens * max(job.model.ffn, 1) / w.tensor * w.compute
    return [
        Term("layer computed again", Kind.TRANSIENT, again * stages.present),
        Term("gradients of inner tensors", Kind.TRANSIENT, (2 * inner + 3 * w.residual()) * stages.present),
    ]


def buffers(job: Job, stages: Stages) -> list[Term]:
    """Workspaces of cuBLAS."""
    _ = job
    return [Term("workspaces of cuBLAS", Kind.WORKSPACE, stages.present * 64 * MIB, doubt=0.5)]
