"""Activations of a rank under each kind of activation checkpointing."""

from __future__ import annotations

from typing import Any

import numpy as np

from translator.frameworks.torchtitan.memory.layer import Widths, dense_block, moe_block
from translator.memory.in_flight import in_flight
from translator.memory.saved import Saved, total
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

# What selective checkpointing by operators keeps: outputs of attention and of every second matrix product
# (distributed/activation_checkpoint.py:112, models/llama3/infra/parallelize.py:36 of 0.2.2). "last" is the block's last
# product, which no backward pass reads: the cache keeps it all the same, the compiler drops it.
BY_OPERATORS = frozenset({"input", "kernel", "odd", "last"})
WHOLE = frozenset({"input", "kernel", "odd", "even", "pointwise", "fused"})
INPUT = frozenset({"input"})


def saved(job: Job, stages: Stages) -> list[Term]:
    """Activations in flight on every rank."""
    held = in_flight(job.layout, stages.count) * stages.present
    terms = []
    for name, layers, block in (("dense", stages.dense, dense_block), ("MoE", stages.moe, moe_block)):
        if layers.any():
            terms += _of_blocks(job, name, layers, block(job), held)
    w = Widths(job)
    ends = stages.last * (w.residual() + w.gathered())
    return [*terms, Term("input and output of the last norm", Kind.ACTIVATIONS, ends)]


def _of_blocks(job: Job, name: str, layers: Any, tensors: list[Saved], held: Any) -> list[Term]:
    whole, kept = _checkpointed(job)
    terms = []
    if whole:
        amount = held * layers * whole * _amount(tensors, _whole(job))
        terms.append(Term(f"{name} blocks kept whole", Kind.ACTIVATIONS, amount))
    if whole < 1:
        label = "inputs of recomputed" if kept is INPUT else "operators kept of"
        amount = held * layers * (1 - whole) * _amount(tensors, kept)
        terms.append(Term(f"{label} {name} blocks", Kind.ACTIVATIONS, amount))
    return terms


def _checkpointed(job: Job) -> tuple[float, frozenset[str]]:
    """The share of the blocks that is kept whole, and what the others keep."""
    mode, method = job.flat.get("recompute.mode") or "none", job.flat.get("recompute.method")
    if mode == "full":
        return 0.0, INPUT
    if mode != "selective":
        return 1.0, INPUT
    if method == "operators":
        return 0.0, BY_OPERATORS - {"last"} if compiled(job) else BY_OPERATORS
    if method == "memory_budget":
        budget = job.flat.get("recompute.memory_budget")
        return 0.5 if budget is None else float(budget), INPUT
    return 1 - 1 / max(int(job.flat.get("recompute.layers") or 1), 1), INPUT


def compiled(job: Job) -> bool:
    """Whether the blocks are compiled, each on its own (``apply_compile``)."""
    components = job.values.get("compile.components")
    return bool(job.flat.get("launch.compile")) and (not isinstance(components, list) or "model" in components)


def _whole(job: Job) -> frozenset[str]:
    """What a block keeps without checkpointing; the compiler keeps products, and fuses what lies between them."""
    return WHOLE - {"fused"} if compiled(job) else WHOLE


def _amount(tensors: list[Saved], modules: frozenset[str]) -> Any:
    return total(tensor for tensor in tensors if tensor.module in modules)


def _largest(job: Job, stages: Stages, modules: frozenset[str]) -> Any:
    """Bytes of the tensors of the block that has more of them, of the kinds that a stage holds."""
    block: Any = _amount(dense_block(job), modules) * (stages.dense > 0)
    if job.model.moe is not None:
        block = np.maximum(block, _amount(moe_block(job), modules) * (stages.moe > 0))
    return block


def backward(job: Job, stages: Stages) -> list[Term]:
    """The backward pass of one block: what it computes again, and gradients of its inner tensors.

    What checkpointing kept is not computed again. The backward pass of a gated feed-forward holds the gradients of the
    product, of the activation and of the gate at once, or two of them and the gradients of both products' inputs.
    """
    w = Widths(job)
    whole, kept = _checkpointed(job)
    again: Any = 0
    if whole < 1:
        again = _largest(job, stages, _whole(job) - kept)
        if compiled(job):
            again = again + w.gathered()
    inner = _inner(job, stages) / w.tensor * w.compute
    gradients = np.maximum(3 * inner, 2 * inner + 2 * w.gathered())
    return [
        Term("blocks computed again", Kind.TRANSIENT, again * stages.present, doubt=0.5),
        Term("gradients of inner tensors", Kind.TRANSIENT, gradients * stages.present, doubt=0.5),
    ]


def _inner(job: Job, stages: Stages) -> Any:
    """Elements of one inner tensor of the feed-forward, before tensor parallelism splits it."""
    w, model = Widths(job), job.model
    inner = w.tokens * model.ffn * (stages.dense > 0)
    if model.moe is not None:
        routed = w.tokens * (model.moe.top_k * model.moe.ffn + model.moe.shared_ffn)
        inner = np.maximum(inner, routed * (stages.moe > 0))
    return inner


def left_free(job: Job, stages: Stages) -> list[Term]:
    """What one block's forward pass needs beside what it keeps: free afterwards, and spread between kept tensors.

    Blocks that follow use it again; the logits, each larger than any of these holes, do not.
    """
    whole, kept = _checkpointed(job)
    w = Widths(job)
    stays = kept if whole < 1 else WHOLE
    between = _largest(job, stages, WHOLE - stays - ({"fused"} if compiled(job) else set()))
    if compiled(job):
        between = between + w.gathered()
    return [Term("holes between kept tensors", Kind.TRANSIENT, between * stages.last)]
