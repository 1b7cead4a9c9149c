"""Rows of batch, precision, optimizer, recomputation and loss (sources of DeepSpeed 0.19.2, transformers 5.24.0)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.sections import MOMENTUM
from translator.frameworks.deepspeed.table.layout import SHARDS_BF16, plan
from translator.ledger import Entry
from translator.mapping.rows import Row, absent, implied, linked
from translator.mapping.views import NativeView, Sink, SpecView

LENGTHS = (
    "block_size",
    "max_seq_length",
    "max_seq_len",
    "sequence_len",
    "cutoff_len",
    "model_max_length",
    "max_length",
)
_MICRO, _STEPS = "hf.per_device_train_batch_size", "hf.gradient_accumulation_steps"


def _read_batch(native: NativeView) -> Mapping[str, Any]:
    micro, steps, total = native(at.MICRO_BATCH), native(at.ACCUMULATION), native(at.GLOBAL_BATCH)
    if total is None and native(at.DP) is None and (native(at.TENSOR) or 1) == 1:
        total = native(at.TRAIN_BATCH)
    whole = {"batch.micro_batch": micro, "batch.accumulation": steps, "batch.global_batch": total}
    return {leaf: value if isinstance(value, int) and value > 0 else None for leaf, value in whole.items()}


def _write_batch(spec: SpecView, sink: Sink) -> None:
    layout, total = plan(spec, sink.version), spec("batch.global_batch")
    if "batch.micro_batch" in layout.why:
        sink.short("batch.micro_batch", Entry.APPROXIMATED, layout.why["batch.micro_batch"])
    if layout.micro is not None:
        sink.put(at.MICRO_BATCH, layout.micro)
        sink.put(_MICRO, layout.micro)
    if layout.accumulation is not None and (layout.world or total is None):
        sink.put(at.ACCUMULATION, layout.accumulation)
        sink.put(_STEPS, layout.accumulation)
    counted = (layout.micro or 0) * (layout.world or 0) * (layout.accumulation or 0)
    if counted and layout.sequence == 1:
        # All ranks count, also those of a tensor group that work on the same samples (runtime/config.py:693).
        note = "" if layout.tensor == 1 else f"{layout.tensor} tensor ranks are counted each, as DeepSpeed does"
        sink.put(at.TRAIN_BATCH, counted, note)
    elif not counted and total is not None and layout.tensor > 1:
        sink.need("batch.global_batch", "its key counts every tensor rank too; give --world-size N")
    elif not counted and total is not None:
        sink.put(at.TRAIN_BATCH, total)
    why = "micro batches follow from the global batch and the ranks that see samples of their own"
    if not layout.divides and counted:
        ranks = layout.ranks or 1
        made = (layout.micro or 0) * (layout.accumulation or 0) * ranks
        why = (
            f"{total} sequences do not divide into micro batches of {layout.micro} on {ranks} ranks; {made} are written"
        )
        sink.short("batch.global_batch", Entry.APPROXIMATED, why)
    sink.short("batch.accumulation", Entry.ADAPTED, why)
    if not layout.world:
        sink.need("batch.accumulation", "it follows from the number of ranks; give --world-size N")


def _read_length(native: NativeView) -> Mapping[str, Any]:
    found = (native(f"hf.{name}") for name in LENGTHS)
    return {"batch.seq_len": next((value for value in found if isinstance(value, int) and value > 0), None)}


def _write_length(spec: SpecView, sink: Sink) -> None:
    if spec("batch.seq_len") is not None:
        sink.put(f"hf.{LENGTHS[0]}", spec("batch.seq_len"), "an argument of the training program")
        sink.short("batch.seq_len", Entry.ADAPTED, "an argument of the training program, in launch.sh")


_LOW_MASTER = {"bf16": "bf16.bf16_master_weights_and_grads", "fp16": "fp16.fp16_master_weights_and_grads"}
_LOW_STATES = "bf16.bf16_optimizer_states"
_GRAD, _COMM, _SEQUENCE_COMM = (
    "data_types.grad_accum_dtype",
    "communication_data_type",
    "seq_parallel_communication_data_type",
)


def _read_precision(native: NativeView) -> Mapping[str, Any]:
    compute, master = native(at.COMPUTE_DTYPE), native(at.MASTER_DTYPE)
    if compute is None:
        return {}
    states = "bf16" if native(_LOW_STATES) else "fp32"
    known = ("fp32", "bf16", "fp16")
    flat: dict[str, Any] = {
        "precision.compute": compute,
        "precision.parameters": native(at.PARAM_DTYPE),
        "precision.master": master or "fp32",
        "precision.grad_accumulate": native(at.GRAD_DTYPE),
        "precision.grad_reduce": native(at.REDUCE_DTYPE),
        "precision.first_moment": states,
        "precision.second_moment": states,
    }
    flat = {leaf: value if value in known else None for leaf, value in flat.items()}
    if native(at.FP16):
        fixed = native("fp16.loss_scale") or 0
        flat["precision.loss_scale"] = float(fixed) if fixed else None
        if not fixed:
            power = native("fp16.initial_scale_power")
            flat["precision.initial_loss_scale"] = None if power is None else float(2.0**power)
            flat["precision.min_loss_scale"] = float(native("fp16.min_loss_scale") or 0)
            flat["precision.loss_scale_window"] = float(native("fp16.loss_scale_window") or 0)
            flat["precision.loss_scale_hysteresis"] = native("fp16.hysteresis")
    return flat


_SCALES = {
    "precision.loss_scale": "fp16.loss_scale",
    "precision.initial_loss_scale": "fp16.initial_scale_power",
    "precision.min_loss_scale": "fp16.min_loss_scale",
    "precision.loss_scale_window": "fp16.loss_scale_window",
    "precision.loss_scale_hysteresis": "fp16.hysteresis",
}


def _write_precision(spec: SpecView, sink: Sink) -> None:
    compute = spec("precision.compute", "bf16")
    if compute not in ("fp32", "bf16", "fp16"):
        sink.short("precision.compute", Entry.UNSUPPORTED, f"no {compute}; bf16 is written")
        compute = "bf16"
    for name in ("bf16", "fp16"):
        sink.put(f"{name}.enabled", compute == name)
        sink.put(f"hf.{name}", compute == name)
    if compute == "bf16":
        # Stated, for versions disagree about the defaults.
        sink.put("bf16.check_grad_overflow", False, "the default differs between versions")
        sink.put("bf16.immediate_grad_update", False, "the default differs between versions")
    sink.short("precision.parameters", Entry.UNSUPPORTED, "the model is cast to the compute format (engine.py:1575)")
    stage = plan(spec, sink.version).stage
    _write_master(spec, sink, compute, stage)
    _write_gradients(spec, sink, compute, stage)
    _write_scales(spec, sink, compute)


def _write_master(spec: SpecView, sink: Sink, compute: str, stage: int) -> None:
    states = {spec("precision.first_moment", "fp32"), spec("precision.second_moment", "fp32")}
    low = spec("precision.master") == compute != "fp32"
    low = low and _takes_low_master(spec, compute, states, sink.version, stage)
    low = low and sink.put(_LOW_MASTER[compute], True)
    if low and compute == "bf16" and states == {"bf16"}:
        sink.put(_LOW_STATES, True)
    why = "master weights and states are fp32; in the compute format only all together, under ZeRO"
    for leaf in ("master", "first_moment", "second_moment"):
        sink.short(f"precision.{leaf}", Entry.UNSUPPORTED, why)


def _takes_low_master(spec: SpecView, compute: str, states: set[object], version: str, stage: int) -> bool:
    """Under ZeRO, and with fp32 states for an Adam on the host (runtime/base_optimizer.py:493 at 0.19.2).

    0.16.9 takes them at stage 2 alone (runtime/config.py:1023).
    """
    if version == SHARDS_BF16:
        return stage == 2
    if not stage:
        return False
    offloaded = bool(spec("optimizer.offload") or spec("parallel.data.offload_parameters"))
    if offloaded:
        return spec("optimizer.name") in ("adam", "adamw")
    return compute == "bf16" and states == {"bf16"}


def _write_gradients(spec: SpecView, sink: Sink, compute: str, stage: int) -> None:
    accumulate, reduce = spec("precision.grad_accumulate"), spec("precision.grad_reduce")
    if sink.get(_LOW_MASTER.get(compute, "")):
        sink.short("precision.grad_accumulate", Entry.UNSUPPORTED, "gradients are in the format of the master weights")
    elif accumulate == compute == "bf16" and not stage and sink.version == SHARDS_BF16:
        why = "without ZeRO this version adds bf16 gradients up in fp32 (engine.py:1041)"
        sink.short("precision.grad_accumulate", Entry.APPROXIMATED, why)
    elif accumulate in ("fp32", "bf16", "fp16") and (accumulate == compute or stage):
        sink.put(_GRAD, accumulate)
    why = "without ZeRO gradients are added up in the compute format (engine.py:1715)"
    sink.short("precision.grad_accumulate", Entry.UNSUPPORTED, why)
    if reduce in ("fp32", "bf16", "fp16"):
        sink.put(_COMM, reduce)
        if plan(spec, sink.version).sequence > 1:
            sink.put(_SEQUENCE_COMM, reduce)
    sink.short("precision.grad_reduce", Entry.UNSUPPORTED, "gradients are reduced in fp32, bf16 or fp16")


def _write_scales(spec: SpecView, sink: Sink, compute: str) -> None:
    for leaf, option in _SCALES.items():
        value = spec(leaf)
        if value is None:
            continue
        if compute != "fp16":
            sink.short(leaf, Entry.IRRELEVANT, "only fp16 scales its loss")
        elif leaf == "precision.initial_loss_scale":
            sink.put(option, max(0, round(math.log2(value))) if value > 0 else 0)
            sink.short(leaf, Entry.APPROXIMATED, "the first scale is a power of two")
        elif leaf == "precision.loss_scale":
            sink.put(option, value)
        else:
            sink.put(option, max(0, round(value)))
            sink.short(leaf, Entry.APPROXIMATED, "a whole number")


_O = "optimizer.params."
_TYPES = {"adamw": "AdamW", "adam": "Adam", "sgd": "SGD", "lion": "Lion", "muon": "Muon", "dist_muon": "Muon"}
_NAMES = {"adamw": "adamw", "adam": "adam", "sgd": "sgd", "lion": "lion", "muon": "muon"}
_ADAMS = ("adamw", "adam")


def _read_optimizer(native: NativeView) -> Mapping[str, Any]:
    kind = native(at.OPTIMIZER)
    if kind is None:
        return {}
    name = _NAMES.get(str(kind), "other")
    rate = native(f"{at.OPTIMIZER}.weight_decay")
    flat: dict[str, Any] = {
        "optimizer.name": name,
        "optimizer.weight_decay": rate,
        "optimizer.weight_decay_end": rate,
        "optimizer.weight_decay_shape": None if rate is None else "constant",
        "optimizer.implementation": "fused" if not native(f"{_O}torch_adam") else "foreach",
    }
    if native.has(at.DECAY_ALL):
        flat["optimizer.decay_scope"] = "all" if native(at.DECAY_ALL) else "matrices"
    if name == "sgd":
        flat["optimizer.momentum"] = native(MOMENTUM, 0.0)
    else:
        for leaf in ("beta1", "beta2", "eps"):
            flat[f"optimizer.{leaf}"] = native(f"{at.OPTIMIZER}.{leaf}")
    return flat


def _write_optimizer(spec: SpecView, sink: Sink) -> None:
    name = spec("optimizer.name")
    if name is None:
        return
    kind = _TYPES.get(name, "AdamW")
    if name not in _TYPES:
        sink.short("optimizer.name", Entry.UNSUPPORTED, f"no {name}; AdamW is written")
    sink.short("optimizer.name", Entry.ADAPTED, "Muon shares its states out as ZeRO does")
    sink.put("optimizer.type", kind)
    if name == "adam":
        sink.put(f"{_O}adam_w_mode", False, "without this Adam is AdamW (engine.py:1787)")
    if kind == "SGD":
        sink.put("zero_allow_untested_optimizer", True, "ZeRO takes torch's own optimizers only with it")
        if spec("optimizer.momentum") is not None:
            sink.put(MOMENTUM, spec("optimizer.momentum"))
    sink.short("optimizer.momentum", Entry.IRRELEVANT, "momentum is of SGD alone")
    _write_moments(spec, sink, kind)
    rate = spec("optimizer.weight_decay")
    if rate is not None:
        sink.put(f"{_O}weight_decay", rate)
        sink.put("hf.weight_decay", rate)
    for leaf in ("weight_decay_end", "weight_decay_shape"):
        sink.short(f"optimizer.{leaf}", Entry.APPROXIMATED, "weight decay is constant; the starting value is written")
    sink.short(
        "optimizer.decay_scope",
        Entry.APPROXIMATED,
        "an optimizer of the JSON decays every parameter, norms and biases too; without that section transformers "
        "makes its own AdamW from training_args.yaml, which spares them",
    )
    sink.short("optimizer.implementation", Entry.APPROXIMATED, "DeepSpeed's own fused kernel")


def _write_moments(spec: SpecView, sink: Sink, kind: str) -> None:
    first, second, eps = (spec(f"optimizer.{leaf}") for leaf in ("beta1", "beta2", "eps"))
    if kind == "SGD":
        for leaf in ("beta1", "beta2", "eps"):
            sink.short(f"optimizer.{leaf}", Entry.IRRELEVANT, "SGD has none")
        return
    if first is not None and second is not None:
        sink.put(f"{_O}betas", [first, second])
        sink.put("hf.adam_beta1", first)
        sink.put("hf.adam_beta2", second)
    if eps is not None and kind in ("AdamW", "Adam"):
        sink.put(f"{_O}eps", eps)
        sink.put("hf.adam_epsilon", eps)
    sink.short("optimizer.eps", Entry.IRRELEVANT, f"{kind} has none")
    for leaf in ("beta1", "beta2"):
        sink.short(f"optimizer.{leaf}", Entry.UNSUPPORTED, f"{kind} has its own moments")


def _write_clip(spec: SpecView, sink: Sink) -> None:
    bound = spec("optimizer.clip_grad_norm")
    if bound is not None:
        sink.put("gradient_clipping", float(bound), "the default differs between versions")
        sink.put("hf.max_grad_norm", float(bound))


def _read_recompute(native: NativeView) -> Mapping[str, Any]:
    wanted = native("hf.gradient_checkpointing")
    if not native.has("hf.gradient_checkpointing"):
        return {}
    if not wanted:
        return {"recompute.mode": "none"}
    return {
        "recompute.mode": "full",
        "recompute.method": "uniform",
        "recompute.layers": 1,
        "recompute.distribute": False,
    }


def _write_recompute(spec: SpecView, sink: Sink) -> None:
    mode, method, modules = spec("recompute.mode"), spec("recompute.method"), spec("recompute.modules")
    if mode is None:
        return
    leaves = ("mode", "method", "layers", "modules", "distribute", "memory_budget")
    if mode == "selective" and (method != "modules" or modules in (None, ["core_attn"])) and method != "every_nth":
        sink.put("hf.gradient_checkpointing", False)
        why = "fused attention keeps no attention matrix, which is all that the source recomputes"
        why = why if method == "modules" else "layers are recomputed as a whole or not at all; none is: more memory"
    else:
        sink.put("hf.gradient_checkpointing", mode != "none")
        why = "every layer is recomputed on its own, as transformers does"
    for leaf in leaves:
        sink.short(f"recompute.{leaf}", Entry.APPROXIMATED, why)


_AVERAGE = "hf.average_tokens_across_devices"


def _read_loss(native: NativeView) -> Mapping[str, Any]:
    # trainer.py:2347: the sum over the step's tokens on all ranks; the engine alone averages means of micro batches.
    wanted = native(_AVERAGE) if native.has(_AVERAGE) else native(at.TRAINER) == "transformers"
    if wanted:
        return {"loss.normalization": "global_tokens"}
    return {"loss.normalization": "micro_batch_mean"}


def _write_loss(spec: SpecView, sink: Sink) -> None:
    wanted = spec("loss.normalization")
    if wanted is not None:
        sink.put(_AVERAGE, wanted == "global_tokens")
    if wanted == "micro_batch_mean":
        why = "the mean over a rank's tokens of the step, averaged over ranks; the same for sequences of equal length"
        sink.short("loss.normalization", Entry.APPROXIMATED, why)


def _write_fp8(spec: SpecView, sink: Sink) -> None:
    for leaf in ("fp8", "fp8_recipe", "fp8_parameters", "fp8_skip", "fp8_experts", "fp4"):
        if spec(f"precision.{leaf}") not in (None, "none"):
            sink.short(f"precision.{leaf}", Entry.UNSUPPORTED, "no fp8 and no fp4 in training")


def _fused_loss() -> Row:
    """Liger's kernels fuse the cross entropy with the last linear, in chunks."""

    def read(native: NativeView) -> Mapping[str, Any]:
        known = native.has("hf.use_liger_kernel")
        return {"loss.fused_cross_entropy": bool(native("hf.use_liger_kernel")) if known else None}

    def write(spec: SpecView, sink: Sink) -> None:
        if spec("loss.fused_cross_entropy") is False:
            sink.put("hf.use_liger_kernel", False)
        sink.short(
            "loss.fused_cross_entropy", Entry.UNSUPPORTED, "use_liger_kernel: true has one, if Liger is installed"
        )

    return linked(["hf.use_liger_kernel"], ["loss.fused_cross_entropy"], read=read, write=write)


_PRECISION = ("compute", "parameters", "master", "grad_accumulate", "grad_reduce", "first_moment", "second_moment")
_COMPUTES = ("precision.compute", "precision.parameters")
_GRADIENTS = ("precision.grad_accumulate",)
_DECAYS = ("optimizer.weight_decay", "optimizer.weight_decay_end", "optimizer.weight_decay_shape")

ROWS: tuple[Row, ...] = (
    linked(
        [at.TRAIN_BATCH, at.MICRO_BATCH, at.ACCUMULATION, _MICRO, _STEPS],
        ["batch.micro_batch", "batch.global_batch", "batch.accumulation"],
        read=_read_batch,
        write=_write_batch,
        influences={
            at.TRAIN_BATCH: ("batch.global_batch",),
            at.MICRO_BATCH: ("batch.micro_batch",),
            at.ACCUMULATION: ("batch.accumulation",),
            _MICRO: ("batch.micro_batch",),
            _STEPS: ("batch.accumulation",),
        },
    ),
    linked([f"hf.{name}" for name in LENGTHS], ["batch.seq_len"], read=_read_length, write=_write_length),
    absent("batch.ramp_up", "the global batch is constant"),
    absent("batch.steps", "the global batch is constant"),
    linked(
        [
            "bf16.enabled",
            "fp16.enabled",
            "hf.bf16",
            "hf.fp16",
            "torch_autocast.enabled",
            "torch_autocast.dtype",
            *_LOW_MASTER.values(),
            _LOW_STATES,
            _GRAD,
            _COMM,
            _SEQUENCE_COMM,
            "bf16.check_grad_overflow",
            "bf16.immediate_grad_update",
            *_SCALES.values(),
        ],
        [*(f"precision.{name}" for name in _PRECISION), *_SCALES],
        read=_read_precision,
        write=_write_precision,
        influences={
            **dict.fromkeys(("bf16.enabled", "fp16.enabled", "hf.bf16", "hf.fp16"), _COMPUTES),
            "torch_autocast.enabled": ("precision.compute",),
            "torch_autocast.dtype": ("precision.compute",),
            **dict.fromkeys(_LOW_MASTER.values(), ("precision.master", "precision.grad_accumulate")),
            _LOW_STATES: ("precision.first_moment", "precision.second_moment"),
            _GRAD: _GRADIENTS,
            _COMM: ("precision.grad_reduce",),
            _SEQUENCE_COMM: ("precision.grad_reduce",),
            "bf16.check_grad_overflow": (),
            "bf16.immediate_grad_update": (),
            **{option: (leaf,) for leaf, option in _SCALES.items()},
        },
    ),
    linked(
        (),
        [f"precision.{leaf}" for leaf in ("fp8", "fp8_recipe", "fp8_parameters", "fp8_skip", "fp8_experts", "fp4")],
        read=lambda _: {"precision.fp8": "none", "precision.fp4": "none"},
        write=_write_fp8,
    ),
    linked(
        [
            "optimizer.type",
            f"{_O}betas",
            f"{_O}eps",
            f"{_O}weight_decay",
            f"{_O}adam_w_mode",
            f"{_O}torch_adam",
            MOMENTUM,
            "zero_allow_untested_optimizer",
            "hf.optim",
            "hf.adafactor",
            "hf.adam_beta1",
            "hf.adam_beta2",
            "hf.adam_epsilon",
            "hf.weight_decay",
            at.OPTIMIZER,
            *(f"{at.OPTIMIZER}.{name}" for name in ("beta1", "beta2", "eps", "weight_decay")),
        ],
        [
            "optimizer.name",
            "optimizer.beta1",
            "optimizer.beta2",
            "optimizer.eps",
            *_DECAYS,
            "optimizer.decay_scope",
            "optimizer.implementation",
            "optimizer.momentum",
        ],
        read=_read_optimizer,
        write=_write_optimizer,
        influences={
            "optimizer.type": ("optimizer.name", "optimizer.decay_scope", "optimizer.implementation"),
            f"{_O}betas": ("optimizer.beta1", "optimizer.beta2"),
            f"{_O}eps": ("optimizer.eps",),
            f"{_O}weight_decay": _DECAYS,
            f"{_O}adam_w_mode": ("optimizer.name",),
            f"{_O}torch_adam": ("optimizer.implementation",),
            MOMENTUM: ("optimizer.momentum",),
            "zero_allow_untested_optimizer": (),
            "hf.optim": ("optimizer.name",),
            "hf.adafactor": ("optimizer.name",),
            "hf.adam_beta1": ("optimizer.beta1",),
            "hf.adam_beta2": ("optimizer.beta2",),
            "hf.adam_epsilon": ("optimizer.eps",),
            "hf.weight_decay": _DECAYS,
            at.OPTIMIZER: ("optimizer.name",),
            f"{at.OPTIMIZER}.beta1": ("optimizer.beta1",),
            f"{at.OPTIMIZER}.beta2": ("optimizer.beta2",),
            f"{at.OPTIMIZER}.eps": ("optimizer.eps",),
            f"{at.OPTIMIZER}.weight_decay": _DECAYS,
        },
    ),
    linked(
        ["gradient_clipping", "hf.max_grad_norm", at.CLIP],
        ["optimizer.clip_grad_norm"],
        read=lambda native: {"optimizer.clip_grad_norm": native(at.CLIP)},
        write=_write_clip,
    ),
    absent("optimizer.embedding_lr", "one learning rate for all parameters"),
    absent("optimizer.embedding_min_lr", "one learning rate for all parameters"),
    linked(
        ["hf.gradient_checkpointing"],
        [f"recompute.{leaf}" for leaf in ("mode", "method", "layers", "modules", "distribute", "memory_budget")],
        read=_read_recompute,
        write=_write_recompute,
    ),
    linked([_AVERAGE], ["loss.normalization"], read=_read_loss, write=_write_loss),
    _fused_loss(),
    implied("loss.chunks", 1, "logits of a micro batch are computed at once"),
    absent("loss.cpu_check_nan", "the loss is not checked for NaN", Entry.UNSUPPORTED),
)
