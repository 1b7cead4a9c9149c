"""Activations of a rank: what its layers keep, for as many micro batches as are in flight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from translator.frameworks.megatron.memory.layer import Widths, dense_layer, moe_layer, score_matrix, unfused
from translator.memory.in_flight import in_flight
from translator.memory.saved import Saved, total, without
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

# Module named by --recompute-modules -> modules of `layer` whose tensors are dropped (core 0.18.0,
# transformer_config.py:1750). What enters a module is kept.
DROPPED = {
    "core_attn": ("core_attn",),
    "moe_act": ("moe activation",),
    "layernorm": (),
    "mla_up_proj": ("mla_up_proj",),
    "mlp": ("mlp", "mlp activation"),
    "moe": ("moe", "moe activation", "shared_experts", "shared_experts activation"),
    "shared_experts": ("shared_experts", "shared_experts activation"),
}

# Module named by --offload-modules -> names of the tensors of `layer` that enter it.
OFFLOADED = {
    "attn_norm": ("input of the layer",),
    "qkv_linear": ("normed input",),
    "core_attn": (
        "queries, keys and values in one",
        "rotated queries and keys",
        "queries and keys",
        "values",
        "attention probabilities",
        "dropped probabilities and their mask",
    ),
    "attn_proj": ("attention output",),
    "mlp_norm": ("input of the feed-forward", "input of the experts"),
    "expert_fc1": ("dispatched tokens",),
    "moe_act": ("before the experts' activation",),
}


def saved(job: Job, stages: Stages) -> list[Term]:
    """Activations in flight on every rank."""
    held = in_flight(job.layout, stages.count) * stages.present
    terms = []
    for name, layers, kind in (("dense", stages.dense, dense_layer), ("MoE", stages.moe, moe_layer)):
        if layers.any():
            terms += _of_layers(job, name, layers, kind(job), held)
    if job.model.mtp_layers:
        kind = moe_layer if job.model.moe is not None else dense_layer
        terms += _of_layers(job, "prediction", stages.last * job.model.mtp_layers, kind(job), held)
    return [*terms, *_ends(job, stages, held)]


def _of_layers(job: Job, name: str, layers: Any, tensors: list[Saved], held: Any) -> list[Term]:
    """Layers of one kind: kept in full, in parts, or by their inputs alone."""
    mode = job.flat.get("recompute.mode") or "none"
    if mode == "full":
        return _full(job, name, layers, tensors, held)
    modules = job.flat.get("recompute.modules") or ["core_attn"] if mode == "selective" else []
    dropped = [part for module in modules for part in DROPPED.get(module, ())]
    kept = _on_the_card(job, list(without(tensors, dropped)), layers)
    groups = (("attention", ("attention", "core_attn", "mla_up_proj")), ("dropout masks", ("dropout",)))
    terms = [_term(f"{group} of {name} layers", layers, held, kept, parts.__contains__) for group, parts in groups]
    rest = {part for _, parts in groups for part in parts} | {"input"}
    terms.append(_term(f"feed-forward of {name} layers", layers, held, kept, lambda module: module not in rest))
    terms.append(_term(f"inputs of {name} layers", layers, held, kept, lambda module: module == "input"))
    return [term for term in terms if np.any(term.amount)]


def _on_the_card(job: Job, tensors: list[Saved], layers: Any) -> list[Saved]:
    """Tensors without those that rest in host memory meanwhile; those of one layer are on their way.

    Source: ``megatron/core/pipeline_parallel/fine_grained_activation_offload.py`` (core 0.18.0): the tensors that the
    named modules keep.
    """
    modules = job.values.get("offload_modules")
    if not job.values.get("fine_grained_activation_offloading") or not isinstance(modules, list):
        return tensors
    names = {name for module in modules for name in OFFLOADED.get(str(module).strip("[]"), ())}
    share = 1 / np.maximum(layers, 1)
    return [
        Saved(tensor.name, tensor.module, tensor.amount * share, tensor.doubt) if tensor.name in names else tensor
        for tensor in tensors
    ]


def _term(name: str, layers: Any, held: Any, kept: list[Saved], take: Callable[[str], bool]) -> Term:
    chosen = [tensor for tensor in kept if take(tensor.module)]
    amount = total(chosen)
    doubtful = total(Saved("", "", tensor.amount * tensor.doubt) for tensor in chosen)
    share = float(np.max(doubtful / np.maximum(amount, 1.0))) if chosen else 0.0
    return Term(name, Kind.ACTIVATIONS, held * layers * amount, share)


def _full(job: Job, name: str, layers: Any, tensors: list[Saved], held: Any) -> list[Term]:
    """Full recomputation: of groups of N layers (uniform), or of the first N layers of each chunk (block)."""
    count = job.flat.get("recompute.layers") or 1
    chunks = job.layout.chunks
    kept = Widths(job).residual(Widths(job).compute)
    if job.flat.get("recompute.distribute"):
        kept = kept / np.where(job.layout.sequence_parallel, 1, job.layout.tensor)
    if job.flat.get("recompute.method") == "block":
        again = np.minimum(layers, count * chunks)
        whole = Term(f"{name} layers kept whole", Kind.ACTIVATIONS, held * (layers - again) * total(tensors))
        inputs = Term(f"inputs of recomputed {name} layers", Kind.ACTIVATIONS, held * again * kept)
        return [inputs, whole]
    groups = np.ceil(layers / count)
    return [Term(f"inputs of recomputed {name} layers", Kind.ACTIVATIONS, held * groups * kept)]


def _ends(job: Job, stages: Stages, held: Any) -> list[Term]:
    """Embedding dropout on the first stage; the last norm, kept twice, on the last."""
    w = Widths(job)
    terms = [Term("input and output of the last norm", Kind.ACTIVATIONS, stages.last * w.residual(2 * w.compute))]
    if job.model.hidden_dropout:
        mask = stages.first * held * w.residual(1)
        terms.append(Term("dropout mask of the embedding", Kind.ACTIVATIONS, mask))
    return terms


def backward(job: Job, stages: Stages) -> list[Term]:
    """The backward pass of the layer that needs most: gradients of its inner tensors, and what it computes again."""
    w = Widths(job)
    model, layout = job.model, job.layout
    branches = 2 if model.gated else 1
    inner = w.tokens * model.ffn / w.tensor * (1 + branches)
    if model.moe is not None:
        routed = w.own_tokens * model.moe.top_k * layout.expert_tensor
        inner = np.maximum(inner, routed * (model.moe.ffn / layout.expert_tensor * (1 + branches) + model.hidden))
    stream = 2 * w.residual(w.compute)
    gathered = np.where(layout.sequence_parallel, w.tokens * model.hidden * w.compute, 0)
    terms = [
        Term("gradients of inner tensors", Kind.TRANSIENT, stages.present * (inner * w.compute + stream)),
        Term("sequence gathered for weight gradients", Kind.TRANSIENT, stages.present * gathered),
    ]
    if unfused(w):
        # Gradients of the probabilities and of the scores, one after the softmax and one before it.
        matrices = 2 * score_matrix(w) * w.compute
        terms.append(Term("gradients of the attention matrix", Kind.TRANSIENT, stages.present * matrices))
    if job.values.get("gradient_accumulation_fusion") is False:
        weight = model.hidden * model.ffn * branches / layout.tensor * w.compute
        terms.append(Term("weight gradient before it is added", Kind.TRANSIENT, stages.present * weight))
    if job.flat.get("recompute.mode") == "full":
        again = np.maximum(
            total(dense_layer(job)) * (stages.dense > 0), total(moe_layer(job)) * (stages.moe > 0) if model.moe else 0
        )
        uniform = job.flat.get("recompute.method") != "block"
        count = np.minimum(job.flat.get("recompute.layers") or 1, stages.layers) if uniform else 1
        terms.append(Term("layers computed again", Kind.TRANSIENT, again * count * stages.present))
    return terms
