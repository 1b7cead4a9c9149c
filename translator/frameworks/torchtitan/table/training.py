"""Rows of batch, precision, optimizer, recomputation and loss (sources of torchtitan 0.2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.torchtitan import addresses
from translator.ledger import Entry
from translator.mapping.rows import Row, absent, choice, implied, linked, same
from translator.mapping.shared import accumulation_follows
from translator.mapping.views import NativeView, Sink, SpecView
from translator.spec.derive import accumulation

DTYPES = {"bfloat16": "bf16", "float32": "fp32"}
WORDS = {"bf16": "bfloat16", "fp32": "float32"}
MICRO = "parallelism.pipeline_parallel_microbatch_size"
CLIPPING_OFF = 1e9


def _read_batch(native: NativeView) -> Mapping[str, Any]:
    total, micro, degree = (
        native("training.global_batch_size"),
        native(addresses.MICRO_BATCH),
        native(addresses.DP_DEGREE),
    )
    total = total if isinstance(total, int) and total > 0 else None
    return {
        "batch.micro_batch": micro,
        "batch.global_batch": total,
        "batch.accumulation": accumulation(total, micro, degree),
    }


def _write_batch(spec: SpecView, sink: Sink) -> None:
    micro, total, degree = spec("batch.micro_batch"), spec("batch.global_batch"), spec("parallel.data.degree")
    if total is not None:
        sink.put("training.global_batch_size", total)
    elif spec("batch.steps"):
        sink.need("batch.global_batch", f"it changes along the run ({spec('batch.steps')}); set batch.global_batch=N")
    accumulation_follows(spec, sink)
    if spec("parallel.pipeline.degree", 1) == 1:
        if micro is not None:
            sink.put("training.local_batch_size", micro)
        return
    if micro is not None:
        sink.put(MICRO, micro)
    if total is not None and degree:
        sink.put(
            "training.local_batch_size", total // degree, "all micro batches of a step: one pipeline flush per step"
        )
    elif degree:
        sink.need("batch.accumulation", "the global batch is not known; set batch.global_batch=N")
    else:
        sink.need("batch.accumulation", "the data-parallel degree is not known; give --world-size N")


def read_precision(native: NativeView) -> Mapping[str, Any]:
    """Formats of parameters, products, gradients and moments."""
    stored = DTYPES.get(native("training.dtype", "float32"), "fp32")
    compute = native(addresses.COMPUTE_DTYPE) or native("training.mixed_precision_param")
    compute = DTYPES.get(compute, compute)
    return {
        "precision.compute": compute,
        "precision.parameters": compute,
        "precision.master": stored,
        "precision.grad_accumulate": stored,
        "precision.grad_reduce": DTYPES.get(native("training.mixed_precision_reduce"), "fp32"),
        "precision.first_moment": stored,
        "precision.second_moment": stored,
    }


def _write_precision(spec: SpecView, sink: Sink) -> None:
    compute = spec("precision.compute")
    if compute in WORDS:
        sink.put("training.mixed_precision_param", WORDS[compute])
    elif compute is not None:
        sink.put("training.mixed_precision_param", "bfloat16")
        why = f"no {compute} and no loss scaling; bfloat16 is written"
        sink.short("precision.compute", Entry.APPROXIMATED, why)
        sink.short("precision.parameters", Entry.APPROXIMATED, why)
    master = spec("precision.master")
    moments = {spec("precision.first_moment", master), spec("precision.second_moment", master)}
    if master == "bf16":
        if not sink.put("training.dtype", "bfloat16"):
            sink.short("precision.master", Entry.UNSUPPORTED, "this version keeps fp32 parameters")
    elif master not in (None, "fp32"):
        sink.short("precision.master", Entry.UNSUPPORTED, "the optimizer keeps fp32 parameters")
    if moments != {master}:
        why = "Adam's moments have the format of the stored parameters"
        sink.short("precision.first_moment", Entry.UNSUPPORTED, why)
        sink.short("precision.second_moment", Entry.UNSUPPORTED, why)
    sink.short("precision.first_moment", Entry.UNSUPPORTED, "this version keeps fp32 moments")
    sink.short("precision.second_moment", Entry.UNSUPPORTED, "this version keeps fp32 moments")
    sink.short(
        "precision.grad_reduce", Entry.APPROXIMATED, "gradients are reduced in fp32, more exactly than the source"
    )
    sink.short(
        "precision.grad_accumulate", Entry.APPROXIMATED, "gradients are added up in the format of the stored parameters"
    )
    why = "tensor or pipeline parallelism without FSDP trains in fp32 (distributed/utils.py:250)"
    sink.short("precision.compute", Entry.APPROXIMATED, why)
    sink.short("precision.parameters", Entry.APPROXIMATED, why)
    for leaf in ("loss_scale", "initial_loss_scale", "min_loss_scale", "loss_scale_window", "loss_scale_hysteresis"):
        if spec(f"precision.{leaf}") is not None:
            sink.short(f"precision.{leaf}", Entry.UNSUPPORTED, "no loss scaling")


_FLOAT8, _MX = "quantize.linear.float8", "quantize.linear.mx"
_CONVERTERS = {"float8": _FLOAT8, "mx": _MX, _FLOAT8: _FLOAT8, _MX: _MX}
_FP8_OPTIONS = (
    "model.converters",
    f"{_FLOAT8}.recipe_name",
    f"{_FLOAT8}.enable_fsdp_float8_all_gather",
    f"{_FLOAT8}.filter_fqns",
    f"{_MX}.recipe_name",
    f"{_MX}.filter_fqns",
    "quantize.grouped_mm.float8.fqns",
    "quantize.grouped_mm.mx.fqns",
)
# torchao: tensorwise uses e4m3 forward and e5m2 for gradients; row-wise recipes use e4m3 throughout.
_RECIPES = {None: ("hybrid", "tensorwise"), "tensorwise": ("hybrid", "tensorwise")}


def _read_fp8(native: NativeView) -> Mapping[str, Any]:
    names = {_CONVERTERS.get(str(name), str(name)) for name in native("model.converters") or []}
    flat: dict[str, Any] = {"precision.fp8": "none", "precision.fp4": "none"}
    if _FLOAT8 in names:
        recipe = native(f"{_FLOAT8}.recipe_name")
        flat["precision.fp8"], flat["precision.fp8_recipe"] = _RECIPES.get(recipe, ("e4m3", "rowwise"))
        flat["precision.fp8_parameters"] = bool(native(f"{_FLOAT8}.enable_fsdp_float8_all_gather"))
        flat["precision.fp8_skip"] = sorted(native(f"{_FLOAT8}.filter_fqns") or [])
    elif _MX in names:
        flat["precision.fp8"], flat["precision.fp8_recipe"] = "e4m3", "mxfp8"
        flat["precision.fp8_parameters"] = False
        flat["precision.fp8_skip"] = sorted(native(f"{_MX}.filter_fqns") or [])
    if flat["precision.fp8"] != "none" and native(f"{addresses.MODEL}moe.experts"):
        flat["precision.fp8_experts"] = bool({"quantize.grouped_mm.float8", "quantize.grouped_mm.mx"} & names)
    return flat


def _write_fp8(spec: SpecView, sink: Sink) -> None:
    if spec("precision.fp4", "none") != "none":
        sink.short("precision.fp4", Entry.UNSUPPORTED, "no fp4 in this version")
    kind, recipe = spec("precision.fp8", "none"), spec("precision.fp8_recipe")
    if kind == "none":
        return
    skip = list(spec("precision.fp8_skip") or [])
    old = not sink.has(f"{_MX}.filter_fqns") or sink.version == "0.1.0"
    # train.py refuses mxfp8 in a compiled model under tensor parallelism.
    compiled = spec("launch.compile") and spec("parallel.tensor", 1) > 1
    section = _MX if recipe == "mxfp8" and not compiled else _FLOAT8
    sink.put("model.converters", [section.removeprefix("quantize.linear.") if old else section])
    sink.put(f"{section}.filter_fqns", skip)
    by_row = recipe in ("rowwise", "blockwise") or kind == "e4m3"
    why = "scales are found per tensor at each step"
    if recipe == "blockwise":
        why = "scales per row instead of per block"
    elif by_row:
        why = "e4m3 for gradients as well goes with scales per row"
    if section == _FLOAT8:
        sink.put(f"{_FLOAT8}.recipe_name", "rowwise" if by_row else "tensorwise")
        if spec("precision.fp8_parameters") and not by_row:
            sink.put(f"{_FLOAT8}.enable_fsdp_float8_all_gather", True)
            # The recipe by name excludes it (components/quantization/float8.py:66).
            sink.values.pop(sink.names.get(f"{_FLOAT8}.recipe_name", f"{_FLOAT8}.recipe_name"), None)
    for leaf in ("fp8", "fp8_recipe"):
        sink.short(f"precision.{leaf}", Entry.APPROXIMATED, f"nearest recipe of torchao: {why}")
    sink.short(
        "precision.fp8_parameters", Entry.UNSUPPORTED, "fp8 parameters are gathered under per-tensor scaling only"
    )
    _write_fp8_experts(spec, sink, section, old=old)


def _write_fp8_experts(spec: SpecView, sink: Sink, section: str, *, old: bool) -> None:
    if not spec("precision.fp8_experts") or old:
        sink.short("precision.fp8_experts", Entry.UNSUPPORTED, "experts stay in the compute format")
        return
    kind = section.rpartition(".")[2]
    if kind == "float8" and (spec("parallel.pipeline.degree", 1) > 1 or spec("parallel.context", 1) > 1):
        why = "float8 experts refuse pipeline and context parallelism (components/quantization/float8.py:193)"
        sink.short("precision.fp8_experts", Entry.UNSUPPORTED, why)
        return
    sink.values["model.converters"] = [*sink.values["model.converters"], f"quantize.grouped_mm.{kind}"]
    sink.put(f"quantize.grouped_mm.{kind}.fqns", ["experts"])


def _read_decay(native: NativeView) -> Mapping[str, Any]:
    rate = native("optimizer.weight_decay")
    return {
        "optimizer.weight_decay": rate,
        "optimizer.weight_decay_end": rate,
        "optimizer.weight_decay_shape": "constant",
    }


def _write_decay(spec: SpecView, sink: Sink) -> None:
    rate = spec("optimizer.weight_decay")
    if rate is not None:
        sink.put("optimizer.weight_decay", rate)
    if spec("optimizer.weight_decay_shape", "constant") != "constant":
        for leaf in ("weight_decay_end", "weight_decay_shape"):
            sink.short(
                f"optimizer.{leaf}", Entry.APPROXIMATED, "weight decay is constant; the starting value is written"
            )


def _read_clip(native: NativeView) -> Mapping[str, Any]:
    bound = native("training.max_norm")
    return {"optimizer.clip_grad_norm": 0.0 if bound is not None and bound >= CLIPPING_OFF else bound}


def _write_clip(spec: SpecView, sink: Sink) -> None:
    bound = spec("optimizer.clip_grad_norm")
    if bound is not None:
        sink.put(
            "training.max_norm", bound or CLIPPING_OFF, "" if bound else "no clipping: 0 would erase the gradients"
        )


_AC = "activation_checkpoint."


def _read_recompute(native: NativeView) -> Mapping[str, Any]:
    mode, option = native(f"{_AC}mode"), str(native(f"{_AC}selective_ac_option"))
    if mode == "full":
        return {
            "recompute.mode": "full",
            "recompute.method": "uniform",
            "recompute.layers": 1,
            "recompute.distribute": False,
        }
    if mode == "memory_budget":
        return {
            "recompute.mode": "selective",
            "recompute.method": "memory_budget",
            "recompute.memory_budget": native(f"{_AC}memory_budget"),
        }
    if mode == "selective" and option == "op":
        return {"recompute.mode": "selective", "recompute.method": "operators"}
    if mode == "selective":
        layers = int(option) if option.isdigit() else None
        return {"recompute.mode": "selective", "recompute.method": "every_nth", "recompute.layers": layers}
    return {"recompute.mode": "none"}


def _write_recompute(spec: SpecView, sink: Sink) -> None:
    mode, method = spec("recompute.mode", "none"), spec("recompute.method")
    if mode == "none":
        sink.put(f"{_AC}mode", "none")
    elif mode == "full":
        every = _one_in(spec) if method == "block" else 1
        sink.put(f"{_AC}mode", "full" if every == 1 else "selective")
        why = "every layer is recomputed on its own"
        if every > 1:
            sink.put(f"{_AC}selective_ac_option", str(every))
            why = f"one layer in {every} is recomputed, instead of the first {spec('recompute.layers')} of each stage"
            sink.short("recompute.mode", Entry.APPROXIMATED, why)
        for leaf in ("method", "layers", "distribute"):
            sink.short(f"recompute.{leaf}", Entry.APPROXIMATED, why)
    elif method == "operators":
        sink.put(f"{_AC}mode", "selective")
        sink.put(f"{_AC}selective_ac_option", "op")
    elif method == "every_nth":
        sink.put(f"{_AC}mode", "selective")
        sink.put(f"{_AC}selective_ac_option", str(spec("recompute.layers", 2)))
    elif method == "memory_budget" and _put_budget(spec, sink):
        sink.put(f"{_AC}mode", "memory_budget")
    else:
        _nearest_recompute(spec, sink)


def _put_budget(spec: SpecView, sink: Sink) -> bool:
    """A memory budget needs a compiled model (distributed/activation_checkpoint.py)."""
    return bool(spec("launch.compile")) and sink.put(f"{_AC}memory_budget", spec("recompute.memory_budget"))


def _one_in(spec: SpecView) -> int:
    """One layer in how many is as much as the first ``recompute.layers`` of every pipeline stage."""
    layers, count = spec("model.layers"), spec("recompute.layers")
    if not layers or not count:
        return 1
    stages = spec("parallel.pipeline.degree", 1) * spec("parallel.pipeline.stages_per_rank", 1)
    return max(1, round(float(layers / stages / count)))


def _nearest_recompute(spec: SpecView, sink: Sink) -> None:
    modules = spec("recompute.modules") or ["core_attn"]
    if modules == ["core_attn"]:
        sink.put(f"{_AC}mode", "none")
        why = "fused attention keeps no attention matrix, which is all that the source recomputes"
    else:
        sink.put(f"{_AC}mode", "selective")
        sink.put(f"{_AC}selective_ac_option", "op")
        why = f"modules cannot be chosen ({', '.join(modules)}); operators are, which recomputes more"
    for leaf in ("mode", "method", "modules", "memory_budget"):
        sink.short(f"recompute.{leaf}", Entry.APPROXIMATED, why)


def _loss_row() -> Row:
    """How the loss is normalised.

    0.1.0 averages micro-batch means (components/loss.py:18, :33); 0.2.2 divides by the global token count
    (train.py:560).
    """

    def read(native: NativeView) -> Mapping[str, Any]:
        return {"loss.normalization": "micro_batch_mean" if native.version == "0.1.0" else "global_tokens"}

    def write(spec: SpecView, sink: Sink) -> None:
        why = (
            "each micro batch's mean counts alike"
            if sink.version == "0.1.0"
            else "the sum over tokens is divided by all valid tokens of the step"
        )
        same_if = "the same numbers when every sequence has equally many unmasked tokens"
        sink.short("loss.normalization", Entry.APPROXIMATED, f"{why}; {same_if}")

    return linked((), ["loss.normalization"], read=read, write=write)


# What 0.3.0 says under the same names, with the same meaning.
SHARED: tuple[Row, ...] = (
    linked(
        ["training.local_batch_size", "training.global_batch_size", MICRO],
        ["batch.micro_batch", "batch.global_batch", "batch.accumulation"],
        read=_read_batch,
        write=_write_batch,
    ),
    same("training.seq_len", "batch.seq_len"),
    absent("batch.ramp_up", "the global batch is constant"),
    absent("batch.steps", "the global batch is constant"),
    linked(["training.max_norm"], ["optimizer.clip_grad_norm"], read=_read_clip, write=_write_clip),
    implied("optimizer.offload", False, "training.enable_cpu_offload moves parameters, gradients and states together"),
    absent("optimizer.offload_fraction", "no partial offload"),
    implied("loss.fused_cross_entropy", False, "the cross entropy is fused only when compiled"),
    absent("loss.cpu_check_nan", "the loss is not checked for NaN", Entry.UNSUPPORTED),
)

# What only the TOML versions say so.
TOML: tuple[Row, ...] = (
    linked(
        ["training.dtype", "training.mixed_precision_param", "training.mixed_precision_reduce"],
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
        ],
        read=read_precision,
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
        },
    ),
    linked(
        _FP8_OPTIONS,
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
            "model.converters": ("precision.fp8", "precision.fp8_recipe", "precision.fp8_experts"),
            f"{_FLOAT8}.recipe_name": ("precision.fp8", "precision.fp8_recipe"),
            f"{_FLOAT8}.enable_fsdp_float8_all_gather": ("precision.fp8_parameters",),
            f"{_FLOAT8}.filter_fqns": ("precision.fp8_skip",),
            f"{_MX}.recipe_name": ("precision.fp8_recipe",),
            f"{_MX}.filter_fqns": ("precision.fp8_skip",),
            "quantize.grouped_mm.float8.fqns": ("precision.fp8_experts",),
            "quantize.grouped_mm.mx.fqns": ("precision.fp8_experts",),
        },
    ),
    choice(
        "optimizer.name",
        "optimizer.name",
        {"AdamW": "adamw", "Adam": "adam"},
        nearest={
            "sgd": ("AdamW", "only Adam and AdamW are offered; AdamW is written"),
            "lion": ("AdamW", "only Adam and AdamW are offered; AdamW is written"),
            "muon": ("AdamW", "only Adam and AdamW are offered; AdamW is written"),
            "dist_muon": ("AdamW", "only Adam and AdamW are offered; AdamW is written"),
            "soap": ("AdamW", "only Adam and AdamW are offered; AdamW is written"),
            "other": ("AdamW", "only Adam and AdamW are offered; AdamW is written"),
        },
    ),
    same("optimizer.lr", "optimizer.lr"),
    same("optimizer.beta1", "optimizer.beta1"),
    same("optimizer.beta2", "optimizer.beta2"),
    same("optimizer.eps", "optimizer.eps"),
    absent("optimizer.momentum", "no SGD"),
    linked(
        ["optimizer.weight_decay"],
        ["optimizer.weight_decay", "optimizer.weight_decay_end", "optimizer.weight_decay_shape"],
        read=_read_decay,
        write=_write_decay,
    ),
    linked(
        (),
        ["optimizer.decay_scope"],
        read=lambda _: {"optimizer.decay_scope": "all"},
        write=lambda _, sink: sink.short(
            "optimizer.decay_scope",
            Entry.APPROXIMATED,
            "one parameter group: norms and biases decay too (components/optimizer.py:303); "
            "0.3.0 can leave them out with optimizer.param_groups",
        ),
    ),
    absent("optimizer.embedding_lr", "one learning rate for all parameters"),
    absent("optimizer.embedding_min_lr", "one learning rate for all parameters"),
    choice(
        "optimizer.implementation",
        "optimizer.implementation",
        {"fused": "fused", "foreach": "foreach", "for-loop": "for_loop"},
    ),
    linked(
        [f"{_AC}mode", f"{_AC}selective_ac_option", f"{_AC}memory_budget"],
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
        influences={f"{_AC}memory_budget": ("recompute.memory_budget",)},
    ),
    _loss_row(),
    implied("loss.chunks", 1, "logits of a micro batch are computed at once"),
)

ROWS: tuple[Row, ...] = (*SHARED, *TOML)
