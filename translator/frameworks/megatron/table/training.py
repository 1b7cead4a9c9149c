"""Rows of batch, precision, optimizer, recomputation and loss (sources of core 0.18.0)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from translator.ledger import Entry
from translator.mapping.rows import Row, choice, implied, linked, own, same, switch
from translator.mapping.shared import accumulation_follows
from translator.mapping.views import NativeView, Sink, SpecView
from translator.spec.derive import accumulation
from translator.spec.touches import Touches

_DTYPES = {
    "torch.float32": "fp32",
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.uint8": "fp8",
    "fp32": "fp32",
    "bf16": "bf16",
    "fp16": "fp16",
    "fp8": "fp8",
}
RAMP_UP_IGNORED_SINCE = (0, 18)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


def _read_batch(native: NativeView) -> Mapping[str, Any]:
    micro, total, degree = native("micro_batch_size"), native("global_batch_size"), native("data_parallel_size")
    ramp, stepwise = native("rampup_batch_size"), native("step_batch_size_schedule")
    if stepwise:
        # What stands for the global batch then is one micro batch per replica, which is never trained with
        # (core/num_microbatches_calculator.py:264 at 0.18.0).
        total = None
    wired = _version(native.version) < RAMP_UP_IGNORED_SINCE
    return {
        "batch.micro_batch": micro,
        "batch.global_batch": total,
        "batch.accumulation": accumulation(total, micro, degree),
        # 0.18 and 0.19 parse the ramp-up but never hand it to the calculator (global_vars.py:127).
        "batch.ramp_up": _ramp(ramp) if wired else None,
        "batch.steps": stepwise,
    }


def _ramp(ramp: Any) -> list[int] | None:
    """Start, increment and samples; None for what is no three integers, which settling has refused."""
    try:
        return [int(part) for part in ramp] or None
    except (TypeError, ValueError):
        return None


def _write_batch(spec: SpecView, sink: Sink) -> None:
    for leaf, option in (("batch.micro_batch", "micro_batch_size"), ("batch.global_batch", "global_batch_size")):
        if spec(leaf) is not None:
            sink.put(option, spec(leaf))
    accumulation_follows(spec, sink)
    ramp = spec("batch.ramp_up")
    if ramp:
        if _version(sink.version) >= RAMP_UP_IGNORED_SINCE:
            sink.short("batch.ramp_up", Entry.UNSUPPORTED, "this version parses --rampup-batch-size and ignores it")
        elif spec("schedule.unit", "steps") == "steps":
            why = "a ramp-up needs a schedule in samples (arguments.py:1051, 0.17.0); this one counts steps"
            sink.short("batch.ramp_up", Entry.UNSUPPORTED, why)
        else:
            sink.put("rampup_batch_size", ramp)
    if spec("batch.steps") is not None and not sink.put("step_batch_size_schedule", spec("batch.steps")):
        sink.short("batch.steps", Entry.UNSUPPORTED, "this version has no batch schedule by thresholds")


def _read_precision(native: NativeView) -> Mapping[str, Any]:
    compute = _DTYPES.get(native("params_dtype"), "fp32")
    gradients = "fp32" if compute == "fp32" or native("accumulate_allreduce_grads_in_fp32") else compute
    aware = bool(native("use_precision_aware_optimizer"))
    # Without the precision-aware optimizer master weights and moments are fp32 (optimizer_config.py).
    flat: dict[str, Any] = {
        "precision.compute": compute,
        "precision.parameters": compute,
        "precision.master": _DTYPES.get(native("main_params_dtype"), "fp32") if aware else "fp32",
        "precision.grad_accumulate": gradients,
        "precision.grad_reduce": gradients,
        "precision.first_moment": _DTYPES.get(native("exp_avg_dtype"), "fp32") if aware else "fp32",
        "precision.second_moment": _DTYPES.get(native("exp_avg_sq_dtype"), "fp32") if aware else "fp32",
    }
    if compute == "fp16":
        flat["precision.loss_scale"] = native("loss_scale")
        if native("loss_scale") is None:
            flat["precision.initial_loss_scale"] = native("initial_loss_scale")
            flat["precision.min_loss_scale"] = native("min_loss_scale")
            flat["precision.loss_scale_window"] = native("loss_scale_window")
            flat["precision.loss_scale_hysteresis"] = native("hysteresis")
    return flat


_SCALES = {
    "loss_scale": "precision.loss_scale",
    "initial_loss_scale": "precision.initial_loss_scale",
    "min_loss_scale": "precision.min_loss_scale",
    "loss_scale_window": "precision.loss_scale_window",
    "hysteresis": "precision.loss_scale_hysteresis",
}


def _write_precision(spec: SpecView, sink: Sink) -> None:
    compute = spec("precision.compute")
    if compute in ("bf16", "fp16"):
        sink.put(compute, True)
    elif compute not in (None, "fp32"):
        sink.short(
            "precision.compute", Entry.UNSUPPORTED, f"{compute} is not a format of --bf16/--fp16; fp32 is in force"
        )
    parameters = spec("precision.parameters")
    if parameters is not None and parameters != compute:
        sink.short("precision.parameters", Entry.UNSUPPORTED, "parameters are kept in the compute format")
    reduce, accumulate = spec("precision.grad_reduce"), spec("precision.grad_accumulate")
    if compute == "bf16" and reduce == "bf16":
        sink.put("grad_reduce_in_bf16", True)
    if compute == "fp16" and reduce == "fp32":
        sink.put("accumulate_allreduce_grads_in_fp32", True)
    if accumulate is not None and accumulate != (reduce or accumulate):
        sink.short(
            "precision.grad_accumulate", Entry.UNSUPPORTED, "gradients are accumulated in the format of the reduction"
        )
    if compute not in ("bf16", "fp16"):
        for leaf in ("grad_accumulate", "grad_reduce"):
            sink.short(f"precision.{leaf}", Entry.UNSUPPORTED, "an fp32 model has fp32 gradients")
    moments = {
        "main_params_dtype": "precision.master",
        "exp_avg_dtype": "precision.first_moment",
        "exp_avg_sq_dtype": "precision.second_moment",
    }
    wanted = {option: spec(leaf, "fp32") for option, leaf in moments.items()}
    refusal = ""
    if wanted["main_params_dtype"] not in ("fp32", "fp16"):
        sink.short("precision.master", Entry.UNSUPPORTED, "master weights are fp32 or fp16")
        wanted["main_params_dtype"] = "fp32"
    if spec("optimizer.name", "adamw") not in ("adamw", "adam"):
        refusal = "only Adam keeps its states in other formats than fp32"
    elif spec("parallel.data.sharding", "none") == "none":
        refusal = "only the distributed optimizer keeps its states in other formats than fp32"
    if any(value != "fp32" for value in wanted.values()):
        for option, leaf in moments.items():
            if refusal:
                sink.short(leaf, Entry.UNSUPPORTED, refusal)
            elif not sink.put(option, wanted[option]):
                sink.short(leaf, Entry.UNSUPPORTED, f"this version has no {wanted[option]} states")
            elif wanted[option] != "fp32":
                sink.put("use_precision_aware_optimizer", True)
    for option, leaf in _SCALES.items():
        if spec(leaf) is not None:
            if compute == "fp16":
                sink.put(option, spec(leaf))
            else:
                sink.short(leaf, Entry.IRRELEVANT, "only fp16 scales its loss")


def _read_fp8(native: NativeView) -> Mapping[str, Any]:
    kind = native("fp8") or "none"
    flat: dict[str, Any] = {"precision.fp8": kind, "precision.fp4": native("fp4") or "none"}
    if kind != "none":
        flat["precision.fp8_recipe"] = native("fp8_recipe", "delayed")
        flat["precision.fp8_parameters"] = bool(native("fp8_param_gather"))
        # Embedding, output layer and router are no Transformer Engine linears under fp8.
        if native("num_experts"):
            flat["precision.fp8_experts"] = True
        flat["precision.fp8_skip"] = ["output", "router.gate"] if native("num_experts") else ["output"]
    return flat


def _write_fp8(spec: SpecView, sink: Sink) -> None:
    kind = spec("precision.fp8", "none")
    if kind != "none":
        sink.put("fp8", kind)
        recipe = spec("precision.fp8_recipe")
        if recipe == "rowwise":
            sink.put("fp8_recipe", "tensorwise")
            sink.short("precision.fp8_recipe", Entry.APPROXIMATED, "no row-wise scaling; one scale per tensor instead")
        elif recipe is not None and not sink.put("fp8_recipe", recipe):
            sink.short("precision.fp8_recipe", Entry.UNSUPPORTED, "this version has delayed scaling only")
        # Muon before 0.18 shards its states out by itself, without the distributed optimizer.
        by_itself = spec("optimizer.name") in ("muon", "dist_muon") and sink.version in ("0.16.0", "0.17.0")
        if spec("precision.fp8_parameters") and (by_itself or spec("parallel.data.sharding", "none") == "none"):
            why = "fp8 parameters need the distributed optimizer or FSDP"
            sink.short("precision.fp8_parameters", Entry.UNSUPPORTED, why)
        elif spec("precision.fp8_parameters"):
            sink.put("fp8_param_gather", True)
        skip = sorted(spec("precision.fp8_skip") or [])
        expected = ["output", "router.gate"] if spec("model.moe.experts") else ["output"]
        if skip != expected:
            sink.short(
                "precision.fp8_skip",
                Entry.APPROXIMATED,
                "every linear of the layers runs in fp8, output layer and router do not",
            )
        if spec("precision.fp8_experts") is False:
            sink.short("precision.fp8_experts", Entry.APPROXIMATED, "experts run in fp8 like the other linears")
    if spec("precision.fp4", "none") != "none" and not sink.put("fp4", spec("precision.fp4")):
        sink.short("precision.fp4", Entry.UNSUPPORTED, "this version has no fp4")


_OPTIMIZERS = {"adam": "adamw", "sgd": "sgd", "lion": "lion", "muon": "muon", "dist_muon": "dist_muon", "soap": "soap"}


def _read_optimizer(native: NativeView) -> Mapping[str, Any]:
    kind = _OPTIMIZERS.get(native("optimizer"), "other")
    flat: dict[str, Any] = {"optimizer.name": kind}
    if kind != "sgd":
        flat["optimizer.beta1"] = native("adam_beta1")
        flat["optimizer.beta2"] = native("adam_beta2")
        flat["optimizer.eps"] = native("adam_eps")
    else:
        flat["optimizer.momentum"] = native("sgd_momentum")
    return flat


def _write_optimizer(spec: SpecView, sink: Sink) -> None:
    kind = spec("optimizer.name")
    words = {neutral: native for native, neutral in _OPTIMIZERS.items()}
    if kind == "muon" and _version(sink.version) < (0, 18) and spec("parallel.data.sharding", "none") != "none":
        kind = "dist_muon"
        sink.short("optimizer.name", Entry.ADAPTED, "Muon that shares its states out is called dist_muon here")
    if kind == "adam":
        sink.short(
            "optimizer.name",
            Entry.APPROXIMATED,
            "Adam here decouples its weight decay (AdamW); L2 regularisation is not offered",
        )
        kind = "adamw"
    if kind is not None and not (kind in words and sink.put("optimizer", words[kind])):
        sink.short("optimizer.name", Entry.UNSUPPORTED, f"no optimizer {kind}; Adam is in force")
    for leaf, option in (
        ("beta1", "adam_beta1"),
        ("beta2", "adam_beta2"),
        ("eps", "adam_eps"),
        ("momentum", "sgd_momentum"),
    ):
        if spec(f"optimizer.{leaf}") is not None:
            sink.put(option, spec(f"optimizer.{leaf}"))


def _write_offload(spec: SpecView, sink: Sink) -> None:
    if spec("optimizer.offload_fraction") is not None and sink.get("optimizer_cpu_offload"):
        sink.put("optimizer_offload_fraction", spec("optimizer.offload_fraction"))


def _write_offloading(spec: SpecView, sink: Sink) -> None:
    if not spec("optimizer.offload"):
        return
    # arguments.py:1665 (0.18.0): the offloaded optimizer reuses the precision-aware one, which shards its states.
    adam = spec("optimizer.name", "adamw") in ("adamw", "adam")
    if adam and spec("parallel.data.sharding", "none") != "none" and sink.put("optimizer_cpu_offload", True):
        sink.put("use_precision_aware_optimizer", True, "--optimizer-cpu-offload needs it")
        return
    for leaf in ("offload", "offload_fraction"):
        sink.short(f"optimizer.{leaf}", Entry.UNSUPPORTED, "only a distributed Adam runs on the host")


def _read_decay(native: NativeView) -> Mapping[str, Any]:
    start, end = native("start_weight_decay"), native("end_weight_decay")
    shape = native("weight_decay_incr_style")
    plain = native("weight_decay")
    start = plain if start is None or shape == "constant" else start
    return {
        "optimizer.weight_decay": start,
        "optimizer.weight_decay_end": start if shape == "constant" or end is None else end,
        "optimizer.weight_decay_shape": shape,
        "optimizer.decay_scope": (
            "matrices_and_qk_norm"
            if native("apply_wd_to_qk_layernorm") or native("no_weight_decay_cond_type") == "apply_wd_to_qk_layernorm"
            else "matrices"
        ),
    }


def _write_decay(spec: SpecView, sink: Sink) -> None:
    start, shape = spec("optimizer.weight_decay"), spec("optimizer.weight_decay_shape", "constant")
    if start is not None:
        sink.put("weight_decay", start)
    if shape != "constant":
        sink.put("weight_decay_incr_style", shape)
        sink.put("start_weight_decay", start)
        sink.put("end_weight_decay", spec("optimizer.weight_decay_end", start))
    scope = spec("optimizer.decay_scope")
    if scope == "matrices_and_qk_norm":
        if not (
            sink.put("apply_wd_to_qk_layernorm", True)
            or sink.put("no_weight_decay_cond_type", "apply_wd_to_qk_layernorm")
        ):
            sink.short(
                "optimizer.decay_scope", Entry.APPROXIMATED, "norms of queries and keys do not decay in this version"
            )
    elif scope in ("all", "custom"):
        sink.short(
            "optimizer.decay_scope",
            Entry.APPROXIMATED,
            "biases and one-dimensional parameters (norms) never decay in Megatron-LM; all matrices do",
        )


def _read_recompute(native: NativeView) -> Mapping[str, Any]:
    mode = native("recompute_granularity") or "none"
    flat: dict[str, Any] = {"recompute.mode": mode}
    if mode == "full":
        flat["recompute.method"] = native("recompute_method")
        flat["recompute.layers"] = native("recompute_num_layers")
    elif mode == "selective":
        flat["recompute.method"] = "modules"
        modules = native("recompute_modules")
        flat["recompute.modules"] = sorted(modules) if modules else ["core_attn"]
    flat["recompute.distribute"] = bool(native("distribute_saved_activations")) if mode == "full" else None
    return flat


def _write_recompute(spec: SpecView, sink: Sink) -> None:
    mode, method = spec("recompute.mode", "none"), spec("recompute.method")
    if mode == "full":
        sink.put("recompute_granularity", "full")
        sink.put("recompute_method", method if method in ("uniform", "block") else "uniform")
        sink.put("recompute_num_layers", spec("recompute.layers", 1))
        if spec("recompute.distribute") and spec("parallel.tensor", 1) > 1 and not spec("parallel.sequence_parallel"):
            sink.put("distribute_saved_activations", True)
        elif spec("recompute.distribute"):
            why = "saved activations are split over tensor ranks only without sequence parallelism, which splits them"
            sink.short("recompute.distribute", Entry.IRRELEVANT, why)
    elif mode == "selective" and method == "modules":
        sink.put("recompute_granularity", "selective")
        modules = spec("recompute.modules")
        if modules and modules != ["core_attn"] and not sink.put("recompute_modules", modules):
            sink.short("recompute.modules", Entry.APPROXIMATED, "this version recomputes core attention only")
    elif mode == "selective":
        _nearest_recompute(spec, sink, method)


def _nearest_recompute(spec: SpecView, sink: Sink, method: str | None) -> None:
    layers = spec("model.layers")
    if method == "every_nth" and layers:
        stages = spec("parallel.pipeline.degree", 1) * spec("parallel.pipeline.stages_per_rank", 1)
        every = spec("recompute.layers", 2)
        count = max(1, layers // every // stages)
        sink.put("recompute_granularity", "full")
        sink.put("recompute_method", "block")
        sink.put("recompute_num_layers", count)
        why = f"the first {count} layers of each stage are recomputed, instead of one layer in {every}"
    else:
        sink.put("recompute_granularity", "selective")
        why = "only core attention is recomputed; other saved results stay in memory"
    for leaf in ("mode", "method", "layers", "modules", "memory_budget"):
        sink.short(f"recompute.{leaf}", Entry.APPROXIMATED, why)


def _read_clip(native: NativeView) -> Mapping[str, Any]:
    """No norm is above infinity, so that it clips nothing; 0 turns clipping off."""
    bound = native("clip_grad")
    return {"optimizer.clip_grad_norm": 0.0 if bound == math.inf else bound}


def _write_nan_check(spec: SpecView, sink: Sink) -> None:
    wanted = spec("loss.cpu_check_nan")
    if wanted and spec("precision.compute") == "fp16" and not spec("precision.loss_scale"):
        why = "dynamic loss scaling skips such steps instead of stopping (arguments.py:1169, 0.18.0)"
        sink.short("loss.cpu_check_nan", Entry.APPROXIMATED, why)
    elif wanted is not None:
        sink.put("check_for_nan_in_loss_and_grad", wanted)


ROWS: tuple[Row, ...] = (
    linked(
        ["micro_batch_size", "global_batch_size", "rampup_batch_size", "step_batch_size_schedule"],
        ["batch.micro_batch", "batch.global_batch", "batch.accumulation", "batch.ramp_up", "batch.steps"],
        read=_read_batch,
        write=_write_batch,
        influences={
            "micro_batch_size": ("batch.micro_batch", "batch.accumulation"),
            "global_batch_size": ("batch.global_batch", "batch.accumulation"),
            "rampup_batch_size": ("batch.ramp_up",),
            "step_batch_size_schedule": ("batch.steps",),
        },
    ),
    same("seq_length", "batch.seq_len"),
    linked(
        [
            "bf16",
            "fp16",
            "accumulate_allreduce_grads_in_fp32",
            "grad_reduce_in_bf16",
            "main_grads_dtype",
            "main_params_dtype",
            "exp_avg_dtype",
            "exp_avg_sq_dtype",
            "use_precision_aware_optimizer",
            *_SCALES,
        ],
        [
            "precision.compute",
            "precision.parameters",
            "precision.master",
            "precision.grad_accumulate",
            "precision.grad_reduce",
            "precision.first_moment",
            "precision.second_moment",
            *_SCALES.values(),
        ],
        read=_read_precision,
        write=_write_precision,
        influences={
            "bf16": ("precision.compute", "precision.parameters"),
            "fp16": ("precision.compute", "precision.parameters"),
            "accumulate_allreduce_grads_in_fp32": ("precision.grad_accumulate", "precision.grad_reduce"),
            "grad_reduce_in_bf16": ("precision.grad_accumulate", "precision.grad_reduce"),
            "main_grads_dtype": ("precision.grad_accumulate",),
            "main_params_dtype": ("precision.master",),
            "exp_avg_dtype": ("precision.first_moment",),
            "exp_avg_sq_dtype": ("precision.second_moment",),
            "use_precision_aware_optimizer": ("precision.master", "precision.first_moment", "precision.second_moment"),
            **{option: (leaf,) for option, leaf in _SCALES.items()},
        },
    ),
    linked(
        ["fp8", "fp8_recipe", "fp8_param_gather", "fp4"],
        [
            "precision.fp8",
            "precision.fp8_recipe",
            "precision.fp8_parameters",
            "precision.fp8_skip",
            "precision.fp8_experts",
            "precision.fp4",
        ],
        read=_read_fp8,
        write=_write_fp8,
        influences={
            "fp8": ("precision.fp8", "precision.fp8_skip", "precision.fp8_experts"),
            "fp8_recipe": ("precision.fp8_recipe",),
            "fp8_param_gather": ("precision.fp8_parameters",),
            "fp4": ("precision.fp4",),
        },
    ),
    own(
        ["attention_softmax_in_fp32"],
        Touches.NOTHING,
        "softmax precision of the unfused attention; fused kernels always use fp32",
    ),
    linked(
        ["optimizer", "adam_beta1", "adam_beta2", "adam_eps", "sgd_momentum"],
        ["optimizer.name", "optimizer.beta1", "optimizer.beta2", "optimizer.eps", "optimizer.momentum"],
        read=_read_optimizer,
        write=_write_optimizer,
        influences={
            "optimizer": ("optimizer.name",),
            "adam_beta1": ("optimizer.beta1",),
            "adam_beta2": ("optimizer.beta2",),
            "adam_eps": ("optimizer.eps",),
            "sgd_momentum": ("optimizer.momentum",),
        },
    ),
    same("lr", "optimizer.lr"),
    linked(
        [
            "weight_decay",
            "start_weight_decay",
            "end_weight_decay",
            "weight_decay_incr_style",
            "no_weight_decay_cond_type",
            "apply_wd_to_qk_layernorm",
        ],
        [
            "optimizer.weight_decay",
            "optimizer.weight_decay_end",
            "optimizer.weight_decay_shape",
            "optimizer.decay_scope",
        ],
        read=_read_decay,
        write=_write_decay,
        influences={
            "weight_decay": ("optimizer.weight_decay",),
            "start_weight_decay": ("optimizer.weight_decay",),
            "end_weight_decay": ("optimizer.weight_decay_end",),
            "weight_decay_incr_style": ("optimizer.weight_decay_shape",),
            "no_weight_decay_cond_type": ("optimizer.decay_scope",),
            "apply_wd_to_qk_layernorm": ("optimizer.decay_scope",),
        },
    ),
    replace(same("clip_grad", "optimizer.clip_grad_norm"), read=_read_clip),
    same("decoupled_lr", "optimizer.embedding_lr"),
    same("decoupled_min_lr", "optimizer.embedding_min_lr"),
    implied("optimizer.implementation", "fused", "Megatron-LM always updates with a fused kernel"),
    replace(switch("optimizer_cpu_offload", "optimizer.offload"), write=_write_offloading),
    linked(
        ["optimizer_offload_fraction"],
        ["optimizer.offload_fraction"],
        read=lambda native: {
            "optimizer.offload_fraction": native("optimizer_offload_fraction")
            if native("optimizer_cpu_offload")
            else None
        },
        write=_write_offload,
    ),
    linked(
        [
            "recompute_activations",
            "recompute_granularity",
            "recompute_method",
            "recompute_num_layers",
            "recompute_modules",
            "distribute_saved_activations",
        ],
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
        influences={
            "recompute_activations": ("recompute.mode", "recompute.method", "recompute.modules"),
            "recompute_granularity": ("recompute.mode",),
            "recompute_method": ("recompute.method",),
            "recompute_num_layers": ("recompute.layers",),
            "recompute_modules": ("recompute.modules",),
            "distribute_saved_activations": ("recompute.distribute",),
        },
    ),
    choice("calculate_per_token_loss", "loss.normalization", {True: "global_tokens", False: "micro_batch_mean"}),
    switch("cross_entropy_loss_fusion", "loss.fused_cross_entropy"),
    implied("loss.chunks", 1, "logits of a micro batch are computed at once"),
    replace(switch("check_for_nan_in_loss_and_grad", "loss.cpu_check_nan"), write=_write_nan_check),
)
