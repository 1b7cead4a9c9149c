"""DeepSpeed, with its trainer, on optimizer and clipping."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.differences.wording import Whatever, number
from translator.frameworks.deepspeed import addresses
from translator.frameworks.deepspeed.stances.training import ENGINE, at, each, trainer, trains_by_transformers
from translator.subject import Subject

_PARAMS = "optimizer.params."
_CLIP = "gradient_clipping"
_CHECK = "bf16.check_grad_overflow"
_LOW = ("bf16", "fp16")


@stance("D307")
def decay_scope(subject: Subject) -> Stance | None:
    """An optimizer of the JSON decays all; the trainer's own spares norms and biases."""
    kind = subject.leaf("optimizer.decay_scope")
    if kind is None:
        return None
    source = each(subject, f"{ENGINE}:1428", f"{ENGINE}:1772", f"{ENGINE}:2476")
    if kind != "all" and trains_by_transformers(subject):
        says = "spares biases and norms, by transformers' Trainer"
        return Stance(str(kind), says, trainer("transformers/trainer.py", 1416), "hf.weight_decay")
    if kind != "all":
        return Stance(str(kind), "takes the parameter groups of the program, which spare biases and norms", source)
    ways = {}
    if trains_by_transformers(subject):
        ways["matrices"] = "leave the optimizer section out: transformers' own AdamW spares norms and biases"
    return Stance("all", "decays every parameter, norms and biases too", source, f"{_PARAMS}weight_decay", ways)


@stance("D308")
def decay_course(subject: Subject) -> Stance | None:
    """Constant, unless the program moves it."""
    shape, start, end = (subject.leaf(f"optimizer.weight_decay{part}") for part in ("_shape", "", "_end"))
    if start is None:
        return None
    source = at("ops/adam/fused_adam.py:89")
    if shape not in (None, "constant") and start != end:
        says = f"is handed a weight decay from {number(start)} to {number(end)} ({shape}) by the program"
        return Stance(f"{shape} {start} {end}", says, source)
    return Stance("constant", f"decays by {number(start)} throughout", source, f"{_PARAMS}weight_decay")


@stance("D309")
def update_rule(subject: Subject) -> Stance | None:
    """Adam is AdamW unless ``adam_w_mode`` is false."""
    name = subject.leaf("optimizer.name")
    if name not in ("adam", "adamw"):
        return None
    source = each(subject, f"{ENGINE}:1443", f"{ENGINE}:1787", f"{ENGINE}:2409")
    if name == "adam":
        ways = {"adamw": "leave adam_w_mode out, or write AdamW"}
        says = "adds the decay to the gradient (L2), for adam_w_mode is false"
        return Stance("adam", says, source, f"{_PARAMS}adam_w_mode", ways)
    ways = {"adam": "write Adam with adam_w_mode false"}
    says = "decouples the decay, for Adam and AdamW alike"
    return Stance("adamw", says, source, "optimizer.type", ways)


@stance("D310")
def constants(subject: Subject) -> Stance | None:
    """Betas, epsilon and the correction, which can be switched off."""
    if subject.leaf("optimizer.name") not in ("adam", "adamw"):
        return None
    first, second, eps = (subject.leaf(f"optimizer.{leaf}") for leaf in ("beta1", "beta2", "eps"))
    if None in (first, second, eps):
        return None
    kind = f"betas {number(first)} and {number(second)}, eps {number(eps)}"
    source = at("ops/adam/fused_adam.py:89")
    if subject.value(f"{_PARAMS}bias_correction") is False:
        ways = Whatever("leave bias_correction out")
        return Stance(f"{kind}, uncorrected", f"takes {kind}, uncorrected", source, f"{_PARAMS}bias_correction", ways)
    ways = Whatever("state betas and eps: {kind}")
    return Stance(kind, f"takes {kind}, corrected", source, f"{_PARAMS}betas", ways)


@stance("D311")
def buffers(subject: Subject) -> Stance | None:
    """0.16.9 casts buffers with the model; later versions leave them."""
    compute = subject.leaf("precision.compute")
    known = subject.leaf("model.rope_base") is not None and trains_by_transformers(subject)
    if not known or compute not in _LOW:
        return None
    asked = subject.value("data_types.buffer_dtype")
    if subject.version < (0, 17):
        source = at(f"{ENGINE}:{1254 if compute == 'bf16' else 1250}", "0.16.9")
        says = f"casts the whole model to {compute}, rotary frequencies (a buffer) too"
        return Stance(str(compute), says, source, f"{compute}.enabled", {"fp32": "take DeepSpeed 0.19.2 or later"})
    if asked in ("bf16", "bfloat16", "fp16", "float16"):
        says = f"casts buffers, rotary frequencies among them, to {asked}, as data_types.buffer_dtype says"
        kind = "bf16" if asked.startswith("b") else "fp16"
        ways = {"fp32": "leave data_types.buffer_dtype out"}
        return Stance(kind, says, at(f"{ENGINE}:1359"), "data_types.buffer_dtype", ways)
    source = each(subject, "", f"{ENGINE}:1371", f"{ENGINE}:1862")
    return Stance("fp32", "casts parameters alone, so that rotary frequencies stay in fp32", source)


@stance("D312")
def embedding_rate(subject: Subject) -> Stance:
    """One rate for all, unless the program makes groups."""
    source = each(subject, f"{ENGINE}:1428", f"{ENGINE}:1772", f"{ENGINE}:2476")
    rate = subject.leaf("optimizer.embedding_lr")
    if rate is not None and rate != subject.leaf("optimizer.lr"):
        return Stance(number(rate), f"is handed a group for embedding and output layer at {number(rate)}", source)
    says = "trains embedding and output layer at the common rate, unless the program makes parameter groups"
    return Stance("same", says, source, f"{_PARAMS}lr")


@stance("D313")
def clip_bound(subject: Subject) -> Stance | None:
    """0 is off; an absent key is off up to 0.19.2, and 1 in 0.19.8."""
    bound = subject.value(addresses.CLIP)
    if not isinstance(bound, int | float) or isinstance(bound, bool):
        return None
    stated = subject.given(_CLIP) is not None
    source = (
        each(subject, f"{ENGINE}:2273", f"{ENGINE}:2955", f"{ENGINE}:3506")
        if stated
        else each(subject, "runtime/constants.py:215", "runtime/constants.py:254", "runtime/constants.py:203")
    )
    absent = "" if stated else f", for {_CLIP} is not stated"
    ways = Whatever(f"set {_CLIP} to the bound of the other side; 0 turns clipping off", unless="everything")
    if not bound > 0:
        return Stance("off", f"does not clip{absent or f', for {_CLIP} is 0'}", source, _CLIP, ways)
    says = f"clips the norm at {number(bound)}{absent}"
    return Stance(f"bound {number(bound)}", says, source, _CLIP, ways)


def by_wrapper(subject: Subject) -> tuple[str, str]:
    """What a gradient that is not finite does outside fp16, by the optimizer wrapper that the engine picks.

    Returns the upstream line, and ``skips``, ``stops`` or ``goes on``.
    """
    compute = subject.leaf("precision.compute")
    wrapper, stage = subject.value(addresses.ENGINE_OPTIMIZER), subject.value(addresses.STAGE)
    old, new = subject.version < (0, 17), subject.version >= (0, 19, 8)
    if wrapper == "BF16_Optimizer":
        source = each(subject, *(f"runtime/bf16_optimizer.py:{line}" for line in (290, 310, 403)))
        return source, "skips" if new else "stops"
    if wrapper == "BF16":
        source = each(subject, *(f"runtime/fp16/fused_optimizer.py:{line}" for line in (263, 263, 274)))
        return source, "skips" if old or new else "goes on"
    if wrapper != "ZeRO":
        return each(subject, f"{ENGINE}:2270", f"{ENGINE}:2952", f"{ENGINE}:3503"), "goes on"
    if stage == 3:
        source = each(subject, *(f"runtime/zero/stage3.py:{line}" for line in (2043, 2370, 2889)))
        return source, "skips" if new else "goes on"
    source = each(subject, *(f"runtime/zero/stage_1_and_2.py:{line}" for line in (1844, 2149, 3043)))
    checked = not old and compute == "bf16" and bool(subject.value(_CHECK))
    return source, "skips" if checked or (new and compute == "fp32") else "goes on"
