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
# (distributed/activation_checkpoint.py:112, models/llama3/infra/parallelize.py:36 of 0.2.2).
BY_OPERATORS = frozenset({"input", "kernel", "odd", "odd only"})
WHOLE = frozenset({"input", "kernel", "odd", "even", "pointwise"})
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
    whole, kept = 1.0, INPUT
    mode, method = job.flat.get("recompute.mode") or "none", job.flat.get("recompute.method")
    if mode == "selective" and method == "operators":
        whole, kept = 0.0, BY_OPERATORS
    elif mode == "selective" and method == "memory_budget":
        whole = float(job.flat.get("recompute.memory_budget") or 0.5)
    elif mode == "selective":
        whole = 1 - 1 / max(int(job.flat.get("recompute.layers") or 1), 1)
    elif mode == "full":
        whole = 0.0
    terms = []
    if whole:
        amount = held * layers * whole * _amount(tensors, WHOLE)
        terms.append(Term(f"{name} blocks kept whole", Kind.ACTIVATIONS, amount))
    if whole < 1:
        label = "operators kept of" if kept is BY_OPERATORS else "inputs of recomputed"
        amount = held * layers * (1 - whole) * _amount(tensors, kept)
        terms.append(Term(f"{label} {name} blocks", Kind.ACTIVATIONS, amount))
    return terms


def _amount(tensors: list[Saved], modules: frozenset[str]) -> Any:
    return total(tensor for tensor in tensors if tensor.module in modules)


def backward(job: Job, stages: Stages) -> list[Term]:
    """The backward pass of one block: what it computes again, and gradients of its inner tensors."""
    w = Widths(job)
    block: Any = _amount(dense_block(job), WHOLE) * (stages.dense > 0)
    if job.model.moe is not None:
        block = np.maximum(block, _amount(moe_block(job), WHOLE) * (stages.moe > 0))
    again = block if (job.flat.get("recompute.mode") or "none") != "none" else 0
    # Compiled blocks fuse what lies between the products and compute it once more in passing.
    if job.flat.get("launch.compile"):
        again = again * 0.6
    inner = w.tokens * max(job.model.ffn, 1) / w.tensor * w.compute
    gradients = 2 * inner + 2 * w.gathered()
    return [
        Term("blocks computed again", Kind.TRANSIENT, again * stages.present),
        Term("gradients of inner tensors", Kind.TRANSIENT, gradients * stages.present),
    ]
