"""Rows of precision, optimizer, recomputation and loss in 0.3.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.torchtitan import addresses, groups, model_names
from translator.frameworks.torchtitan.flavors import dimensions, leaves_of
from translator.frameworks.torchtitan.table.training import WORDS, read_precision
from translator.ledger import Entry
from translator.mapping.rows import Row, absent, linked
from translator.mapping.views import NativeView, Sink, SpecView

IMPLEMENTATION = "optimizer.implementation"
GROUPS = "optimizer.param_groups"
# Adam's moments in bf16 beside fp32 parameters, with the fused kernel (components/optimizer/optimizer.py:325).
BF16_MOMENTS = "fused_opt_states_bf16"
_IMPLEMENTATIONS = {"fused": "fused", "foreach": "foreach", "for-loop": "for_loop", BF16_MOMENTS: "fused"}


def _read_precision(native: NativeView) -> Mapping[str, Any]:
    flat = dict(read_precision(native))
    implementation = native(IMPLEMENTATION)
    if implementation == BF16_MOMENTS:
        flat["precision.first_moment"] = flat["precision.second_moment"] = "bf16"
    return {**flat, "optimizer.implementation": _IMPLEMENTATIONS.get(str(implementation))}


def _write_precision(spec: SpecView, sink: Sink) -> None:
    compute, master = spec("precision.compute"), spec("precision.master")
    if compute in WORDS:
        sink.put("training.mixed_precision_param", WORDS[compute])
    elif compute is not None:
        sink.put("training.mixed_precision_param", "bfloat16")
        why = f"no {compute} and no loss scaling; bfloat16 is written"
        sink.short("precision.compute", Entry.APPROXIMATED, why)
        sink.short("precision.parameters", Entry.APPROXIMATED, why)
    if master == "bf16":
        sink.put("training.dtype", "bfloat16")
    elif master not in (None, "fp32"):
        sink.short("precision.master", Entry.UNSUPPORTED, "the optimizer keeps fp32 parameters")
    moments = {spec("precision.first_moment", master), spec("precision.second_moment", master)}
    wanted = spec("optimizer.implementation")
    if moments == {"bf16"} and master != "bf16" and wanted in (None, "fused"):
        sink.put(IMPLEMENTATION, BF16_MOMENTS)
    elif wanted is not None:
        sink.put(IMPLEMENTATION, {"for_loop": "for-loop"}.get(wanted, wanted))
    why = "Adam's moments are in the format of the stored parameters, or both in bf16 with the fused kernel"
    for leaf in ("first_moment", "second_moment"):
        sink.short(f"precision.{leaf}", Entry.UNSUPPORTED, why)
    why = "gradients are reduced in fp32, more exactly than the source"
    sink.short("precision.grad_reduce", Entry.APPROXIMATED, why)
    why = "gradients are added up in the format of the stored parameters"
    sink.short("precision.grad_accumulate", Entry.APPROXIMATED, why)
    sink.short("precision.parameters", Entry.APPROXIMATED, "parameters are gathered in the format of the products")
    for leaf in ("loss_scale", "initial_loss_scale", "min_loss_scale", "loss_scale_window", "loss_scale_hysteresis"):
        if spec(f"precision.{leaf}") is not None:
            sink.short(f"precision.{leaf}", Entry.UNSUPPORTED, "no loss scaling")


_OPTIMIZER_FIELDS = (
    "optimizer.name",
    "optimizer.lr",
    "optimizer.beta1",
    "optimizer.beta2",
    "optimizer.eps",
    "optimizer.weight_decay",
    "optimizer.weight_decay_end",
    "optimizer.weight_decay_shape",
    "optimizer.decay_scope",
    "optimizer.embedding_lr",
    "optimizer.embedding_min_lr",
)


def _read_optimizer(native: NativeView) -> Mapping[str, Any]:
    stated = native(GROUPS)
    items = [item for item in stated if isinstance(item, Mapping)] if isinstance(stated, list) else []
    names = model_names.parameters(lambda leaf: native(f"{addresses.MODEL}{leaf}"))
    found = groups.meaning(items, names)
    if found is None:
        return {}
    factor = native("lr_scheduler.min_lr_factor") or 0.0
    return {
        "optimizer.name": found.name,
        "optimizer.lr": found.lr,
        "optimizer.beta1": found.betas[0],
        "optimizer.beta2": found.betas[1],
        "optimizer.eps": found.eps,
        "optimizer.weight_decay": found.weight_decay,
        "optimizer.weight_decay_end": found.weight_decay,
        "optimizer.weight_decay_shape": "constant",
        "optimizer.decay_scope": found.scope,
        "optimizer.embedding_lr": found.embedding_lr,
        "optimizer.embedding_min_lr": None if found.embedding_lr is None else factor * found.embedding_lr,
    }


_NATIVE_NAMES = {"adamw": "AdamW", "adam": "Adam"}


def _write_optimizer(spec: SpecView, sink: Sink) -> None:
    name = spec("optimizer.name", "adamw")
    arguments: dict[str, Any] = {}
    if spec("optimizer.lr") is None:
        sink.need("optimizer.lr", "the learning rate is not in the source; set optimizer.lr=X")
    else:
        arguments["lr"] = spec("optimizer.lr")
    arguments["betas"] = (spec("optimizer.beta1", 0.9), spec("optimizer.beta2", 0.95))
    arguments["eps"] = spec("optimizer.eps", 1e-8)
    arguments["weight_decay"] = spec("optimizer.weight_decay", 0.1)
    scope, embedding = _scope(spec, sink), _embedding_lr(spec, sink)
    sinks = spec("model.attention_softmax") == "learnable"
    native = _NATIVE_NAMES.get(name, "AdamW")
    sink.put(GROUPS, groups.build(native, arguments, scope=scope, sinks=sinks, embedding_lr=embedding))
    if name not in _NATIVE_NAMES:
        why = "Adam, AdamW and a distributed Muon exist; AdamW is written"
        for leaf in ("name", "beta1", "beta2", "eps"):
            sink.short(f"optimizer.{leaf}", Entry.APPROXIMATED, why)
    if spec("optimizer.weight_decay_shape", "constant") != "constant":
        for leaf in ("weight_decay_end", "weight_decay_shape"):
            why = "weight decay is constant; the starting value is written"
            sink.short(f"optimizer.{leaf}", Entry.APPROXIMATED, why)


def _scope(spec: SpecView, sink: Sink) -> str:
    wanted = spec("optimizer.decay_scope", "all")
    if not spec("optimizer.weight_decay", 0.1):
        sink.short("optimizer.decay_scope", Entry.ADAPTED, "nothing decays")
        return "all"
    split = spec("parallel.pipeline.layer_split")
    if wanted != "all" and split and not split[0] and spec("parallel.pipeline.degree", 1) > 1:
        why = "the first stage holds nothing but the embedding, where no pattern for norms matches"
        sink.short("optimizer.decay_scope", Entry.APPROXIMATED, f"{why}; all parameters decay")
        return "all"
    if wanted == "custom":
        why = "which parameters decay is not known; all but norms and biases do"
        sink.short("optimizer.decay_scope", Entry.APPROXIMATED, why)
        return "matrices"
    sink.short(
        "optimizer.decay_scope", Entry.ADAPTED, "the same parameters, for the model has no norms of its own there"
    )
    return str(wanted)


def _embedding_lr(spec: SpecView, sink: Sink) -> float | None:
    wanted: float | None = spec("optimizer.embedding_lr")
    if wanted is None or wanted == spec("optimizer.lr"):
        for leaf in ("embedding_lr", "embedding_min_lr"):
            sink.short(f"optimizer.{leaf}", Entry.ADAPTED, "the same rate as that of the other weights")
        return None
    why = "one schedule for all parameters: the floor is the same share of each rate"
    sink.short("optimizer.embedding_min_lr", Entry.APPROXIMATED, why)
    stages = spec("parallel.pipeline.degree", 1) * spec("parallel.pipeline.stages_per_rank", 1)
    if stages > 2:
        why = "a stage without embedding and head has nothing that such a group matches, and torchtitan raises"
        sink.short("optimizer.embedding_lr", Entry.UNSUPPORTED, f"{why} (components/optimizer/optimizer.py:203)")
        sink.short("optimizer.embedding_min_lr", Entry.UNSUPPORTED, why)
        return None
    return wanted


_AC = "activation_checkpoint"
_BUDGET = f"{_AC}.memory_budget"


def _read_recompute(native: NativeView) -> Mapping[str, Any]:
    kind = native(_AC)
    if kind == "FullAC":
        return {
            "recompute.mode": "full",
            "recompute.method": "uniform",
            "recompute.layers": 1,
            "recompute.distribute": False,
        }
    if kind == "MemoryBudgetAC":
        return {
            "recompute.mode": "selective",
            "recompute.method": "memory_budget",
            "recompute.memory_budget": native(_BUDGET),
        }
    if kind == "SelectiveAC":
        return {"recompute.mode": "selective", "recompute.method": "operators"}
    return {"recompute.mode": "none" if kind is None else None}


def _write_recompute(spec: SpecView, sink: Sink) -> None:
    mode, method = spec("recompute.mode", "none"), spec("recompute.method")
    if mode == "none":
        sink.put(_AC, None, "operators are recomputed by default")
    elif mode == "full":
        sink.put(_AC, "FullAC")
        for leaf in ("method", "layers", "distribute"):
            sink.short(f"recompute.{leaf}", Entry.APPROXIMATED, "every layer is recomputed on its own")
    elif method == "operators":
        sink.put(_AC, "SelectiveAC")
    elif method == "memory_budget" and spec("launch.compile"):
        sink.put(_AC, "MemoryBudgetAC")
        sink.put(_BUDGET, spec("recompute.memory_budget", 0.5))
    else:
        _nearest_recompute(spec, method, sink)


def _nearest_recompute(spec: SpecView, method: Any, sink: Sink) -> None:
    modules = spec("recompute.modules") or ["core_attn"]
    if method in (None, "modules") and modules == ["core_attn"]:
        sink.put(_AC, None)
        why = "fused attention keeps no attention matrix, which is all that the source recomputes"
    else:
        sink.put(_AC, "SelectiveAC")
        what = {"every_nth": "every n-th layer cannot be chosen", "memory_budget": "a memory budget needs compile"}
        why = what.get(str(method), f"modules cannot be chosen ({', '.join(modules)})")
        why += "; matrix products are kept in turn, and cheap operators recomputed, in every layer"
    for leaf in ("mode", "method", "modules", "layers", "memory_budget"):
        sink.short(f"recompute.{leaf}", Entry.APPROXIMATED, why)


CHUNKED, PLAIN = "ChunkedLossWrapper", "CrossEntropyLoss"


def _read_loss(native: NativeView) -> Mapping[str, Any]:
    kind = native("loss")
    chunks = native("loss.num_chunks") if kind == CHUNKED else 1 if kind == PLAIN else None
    return {"loss.normalization": "global_tokens", "loss.chunks": chunks}


def _write_loss(spec: SpecView, sink: Sink) -> None:
    why = "the sum over tokens is divided by all valid tokens of the step"
    same_if = "the same numbers when every sequence has equally many unmasked tokens"
    sink.short("loss.normalization", Entry.APPROXIMATED, f"{why}; {same_if}")
    chunks = spec("loss.chunks", 1)
    local = (spec("batch.seq_len") or 0) // spec("parallel.context", 1)
    inner = "loss"
    if chunks > 1 and local % chunks == 0:
        sink.put("loss", CHUNKED)
        sink.put("loss.num_chunks", chunks)
        sink.put("loss.loss_fn", PLAIN)
        inner = "loss.loss_fn"
    else:
        sink.put("loss", PLAIN)
        sink.short("loss.chunks", Entry.APPROXIMATED, f"{local} tokens do not divide into {chunks} chunks")
    # Vocabulary-parallel cross entropy asks for it under tensor parallelism (components/loss.py); where the source
    # leaves the vocabulary open, it is that of the model that was chosen.
    vocab = spec("model.vocab") or _chosen_vocab(sink)
    if vocab is not None:
        sink.put(f"{inner}.global_vocab_size", vocab)


def _chosen_vocab(sink: Sink) -> int | None:
    name, flavor = sink.values.get("model_spec.name"), sink.values.get("model_spec.flavor")
    if not isinstance(name, str) or not isinstance(flavor, str):
        return None
    own = sink.values.get(addresses.MODEL_ARGUMENTS)
    leaves = leaves_of(name, own, sink.version) if own else dimensions(name, flavor, sink.version)
    vocab = (leaves or {}).get("model.vocab")
    return vocab if isinstance(vocab, int) else None


ROWS: tuple[Row, ...] = (
    linked(
        [
            "training.dtype",
            "training.mixed_precision_param",
            "training.mixed_precision_reduce",
            IMPLEMENTATION,
        ],
        [
            "precision.compute",
            "precision.parameters",
            "precision.master",
            "precision.grad_accumulate",
            "precision.grad_reduce",
            "precision.first_moment",
            "precision.second_moment",
            "precision.loss_scale",
            "precision.initial_loss_scale",
            "precision.min_loss_scale",
            "precision.loss_scale_window",
            "precision.loss_scale_hysteresis",
            "optimizer.implementation",
        ],
        read=_read_precision,
        write=_write_precision,
        influences={
            "training.dtype": (
                "precision.master",
                "precision.grad_accumulate",
                "precision.first_moment",
                "precision.second_moment",
            ),
            "training.mixed_precision_param": ("precision.compute", "precision.parameters"),
            "training.mixed_precision_reduce": ("precision.grad_reduce",),
            IMPLEMENTATION: (
                "optimizer.implementation",
                "precision.first_moment",
                "precision.second_moment",
            ),
        },
    ),
    linked(
        [GROUPS],
        _OPTIMIZER_FIELDS,
        read=_read_optimizer,
        write=_write_optimizer,
    ),
    absent("optimizer.momentum", "no SGD"),
    linked(
        [_AC, _BUDGET],
        [
            "recompute.mode",
            "recompute.method",
            "recompute.layers",
            "recompute.modules",
            "recompute.distribute",
            "recompute.memory_budget",
        ],
        read=_read_recompute,
        write=_write_recompute,
        influences={_BUDGET: ("recompute.memory_budget",)},
    ),
    linked(
        ["loss", "loss.num_chunks", "loss.loss_fn", "loss.loss_fn.global_vocab_size", "loss.global_vocab_size"],
        ["loss.normalization", "loss.chunks"],
        read=_read_loss,
        write=_write_loss,
        influences={
            "loss": ("loss.chunks", "loss.normalization"),
            "loss.num_chunks": ("loss.chunks",),
        },
    ),
)
