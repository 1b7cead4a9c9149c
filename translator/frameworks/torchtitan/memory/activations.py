"""Activations of a rank under each kind of activation checkpointing."""

from __future__ import annotations

from typing import Any

import numpy as np

from translator.frameworks.torchtitan.memory.layer import Widths, dense_block, exchanged, moe_block, products
from translator.memory.in_flight import in_flight
from translator.memory.saved import Saved, total
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

FUSED = frozenset({"fused"})


def saved(job: Job, stages: Stages) -> list[Term]:
    """Activations in flight on every rank."""
    held = in_flight(job.layout, stages.count) * stages.present
    terms = []
    for name, layers in (("dense", stages.dense), ("MoE", stages.moe)):
        if layers.any():
            terms += _of_blocks(job, name, layers, held, moe=name == "MoE")
    w = Widths(job)
    ends = stages.last * (w.residual() + w.gathered())
    return [*terms, Term("input and output of the last norm", Kind.ACTIVATIONS, ends)]


def _of_blocks(job: Job, name: str, layers: Any, held: Any, *, moe: bool) -> list[Term]:
    whole = _kept_whole(job)
    terms = []
    for share, label, tensors in (
        (whole, f"{name} blocks kept whole", _whole(job, moe=moe)),
        (1 - whole, f"{_label(job)} {name} blocks", kept(job, moe=moe)),
    ):
        if share:
            amount = total(tensors)
            doubtful = total(Saved("", "", tensor.amount * tensor.doubt) for tensor in tensors)
            doubt = float(np.max(doubtful / np.maximum(amount, 1.0)))
            terms.append(Term(label, Kind.ACTIVATIONS, held * layers * share * amount, doubt))
    return terms


def by_operators(job: Job) -> bool:
    """Whether checkpointing selects operators."""
    return job.flat.get("recompute.mode") == "selective" and job.flat.get("recompute.method") == "operators"


def _label(job: Job) -> str:
    return "operators kept of" if by_operators(job) else "inputs of recomputed"


def _kept_whole(job: Job) -> float:
    """The share of the blocks that is not checkpointed."""
    mode, method = job.flat.get("recompute.mode") or "none", job.flat.get("recompute.method")
    if mode == "full" or by_operators(job):
        return 0.0
    if mode != "selective":
        return 1.0
    if method == "memory_budget":
        budget = job.flat.get("recompute.memory_budget")
        return 0.5 if budget is None else float(budget)
    return 1 - 1 / max(int(job.flat.get("recompute.layers") or 1), 1)


def kept(job: Job, *, moe: bool) -> list[Saved]:
    """What a checkpointed block keeps: its input; by operators also what attention puts out and every second product.

    ``distributed/activation_checkpoint.py:112`` (0.2.2), ``SelectiveAC`` (0.3.0). What no backward pass reads ("last")
    stays in the cache all the same; the compiler drops it.
    """
    block = moe_block(job) if moe else dense_block(job)
    if not by_operators(job):
        return [tensor for tensor in block if tensor.module == "input"]
    found = [tensor for tensor in block if tensor.module in ("input", "kernel")]
    # A product with a bias is another operator (addmm), and not one of those counted.
    counted = products(job, moe=moe)
    found += [*(counted if job.model.bias else counted[::2]), *exchanged(job, moe=moe)]
    return [tensor for tensor in found if tensor.module != "last"] if compiled(job) else found


def _whole(job: Job, *, moe: bool) -> list[Saved]:
    """What a block keeps without checkpointing; the compiler keeps products, and fuses what lies between them."""
    block = moe_block(job) if moe else dense_block(job)
    return [tensor for tensor in block if tensor.module not in FUSED] if compiled(job) else block


def compiled(job: Job) -> bool:
    """Whether the blocks are compiled, each on its own (``apply_compile``)."""
    components = job.values.get("compile.components")
    return bool(job.flat.get("launch.compile")) and (not isinstance(components, list) or "model" in components)


def _again(job: Job, stages: Stages) -> Any:
    """Bytes of what the backward pass of the block that needs most computes again, beyond what is kept of it."""
    most: Any = 0
    for layers, moe in ((stages.dense, False), (stages.moe, True)):
        if layers.any():
            there = {tensor.name for tensor in kept(job, moe=moe)}
            missing = total(tensor for tensor in _whole(job, moe=moe) if tensor.name not in there)
            most = np.maximum(most, missing * (layers > 0))
    return most


def backward(job: Job, stages: Stages) -> list[Term]:
    """The backward pass of one block: what it computes again, and gradients of its inner tensors.

    What checkpointing kept is not computed again. The backward pass of a gated feed-forward holds the gradients of the
    product, of the activation and of the gate at once, or two of them and the gradients of both products' inputs.
    """
    w = Widths(job)
    again: Any = 0
    if _kept_whole(job) < 1:
        again = _again(job, stages) + (w.gathered() if compiled(job) else 0)
    inner = _inner(job, stages) / w.tensor * w.compute
    gradients = np.maximum(3 * inner, 2 * inner + 2 * w.gathered())
    # Along the second dimension a sequence is gathered and summed up through a copy (all_gather_tensor and
    # reduce_scatter_tensor in torch/distributed/_functional_collectives.py, torch 2.13); a batch of one needs none.
    copied = w.gathered() * ((np.asarray(w.tensor) > 1) & (np.asarray(job.layout.micro_batch) > 1))
    return [
        Term("copies of the gathered sequence", Kind.TRANSIENT, copied * stages.present, doubt=0.5),
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
    between: Any = 0
    if _kept_whole(job) < 1:
        between = _again(job, stages)
    if compiled(job):
        between = between + Widths(job).gathered()
    return [Term("holes between kept tensors", Kind.TRANSIENT, between * stages.last)]
