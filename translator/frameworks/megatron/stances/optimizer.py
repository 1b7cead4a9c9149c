"""Megatron-LM on optimizer and clipping."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.differences.wording import Whatever, number
from translator.frameworks.megatron.stances.training import at
from translator.subject import Subject

_OPTIMIZER = "megatron/core/optimizer/__init__.py"
_STEP = "megatron/core/optimizer/optimizer.py"
_SCHEDULER = "megatron/core/optimizer_param_scheduler.py"
_ADAMS = ("adam", "adamw")


@stance("D307")
def decay_scope(subject: Subject) -> Stance | None:
    """Parameters with one dimension and biases never decay."""
    kind = subject.leaf("optimizer.decay_scope")
    if kind == "matrices_and_qk_norm":
        says = "spares biases and one-dimensional parameters, but not the norms of queries and keys"
        return Stance(kind, says, at(_OPTIMIZER, 105), "apply_wd_to_qk_layernorm")
    ways = {"matrices_and_qk_norm": "add --apply-wd-to-qk-layernorm"}
    says = "spares biases and one-dimensional parameters (norms)"
    return Stance(kind or "matrices", says, at(_OPTIMIZER, 113), "weight_decay", ways)


@stance("D308")
def decay_course(subject: Subject) -> Stance | None:
    """Constant, or a line or cosine between two values."""
    shape, start, end = (subject.leaf(f"optimizer.weight_decay{part}") for part in ("_shape", "", "_end"))
    if start is None:
        return None
    if shape in (None, "constant") or start == end:
        return Stance("constant", f"decays by {number(start)} throughout", at(_SCHEDULER, 200), "weight_decay")
    says = f"takes weight decay from {number(start)} to {number(end)} ({shape})"
    ways = {"constant": "leave --weight-decay-incr-style out, and give --weight-decay"}
    return Stance(f"{shape} {start} {end}", says, at(_SCHEDULER, 209), "weight_decay_incr_style", ways)


@stance("D309")
def update_rule(subject: Subject) -> Stance | None:
    """Adam is AdamW."""
    if subject.leaf("optimizer.name") not in _ADAMS:
        return None
    says = "means AdamW by --optimizer adam: decay is decoupled, and no option couples it"
    return Stance("adamw", says, at(_OPTIMIZER, 559), "optimizer")


@stance("D310")
def constants(subject: Subject) -> Stance | None:
    """Betas and epsilon; the bias is always corrected."""
    if subject.leaf("optimizer.name") not in _ADAMS:
        return None
    first, second, eps = (subject.leaf(f"optimizer.{leaf}") for leaf in ("beta1", "beta2", "eps"))
    if None in (first, second, eps):
        return None
    kind = f"betas {number(first)} and {number(second)}, eps {number(eps)}"
    ways = Whatever("state --adam-beta1, --adam-beta2 and --adam-eps: {kind}", unless="uncorrected")
    return Stance(kind, f"takes {kind}, corrected", at(_OPTIMIZER, 549), "adam_beta2", ways)


@stance("D311")
def buffers(subject: Subject) -> Stance | None:
    """Rotary frequencies are an attribute that no cast reaches."""
    if subject.leaf("model.rope_base") is None or subject.leaf("precision.compute") not in ("bf16", "fp16"):
        return None
    source = at("megatron/core/models/common/embeddings/rotary_pos_embedding.py", 79)
    return Stance("fp32", "keeps rotary frequencies in fp32, outside the cast of the model", source)


@stance("D312")
def embedding_rate(subject: Subject) -> Stance | None:
    """One of their own under ``--decoupled-lr``."""
    rate, peak = subject.leaf("optimizer.embedding_lr"), subject.leaf("optimizer.lr")
    if rate is None or rate == peak:
        return Stance("same", "trains embedding and output layer at the common rate", at(_OPTIMIZER, 120))
    ways = {"same": "leave --decoupled-lr and --decoupled-min-lr out"}
    says = f"trains embedding and output layer at {number(rate)}"
    return Stance(number(rate), says, at(_OPTIMIZER, 121), "decoupled_lr", ways)


@stance("D313")
def clip_bound(subject: Subject) -> Stance | None:
    """0 turns it off; 1 when nothing is said."""
    bound = subject.value("clip_grad")
    if bound is None:
        return None
    ways = Whatever("set --clip-grad to the bound of the other side; 0 turns clipping off", unless="everything")
    if not bound > 0:
        return Stance("off", "does not clip, for --clip-grad is 0", at(_STEP, 634), "clip_grad", ways)
    kind = f"bound {number(bound)}"
    return Stance(kind, f"clips the norm at {number(bound)}", at(_STEP, 635), "clip_grad", ways)
