"""torchtitan on optimizer and clipping."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.differences.wording import Whatever, number
from translator.frameworks.torchtitan.stances.training import at
from translator.frameworks.torchtitan.table.training import CLIPPING_OFF
from translator.subject import Subject

_GROUPS = "optimizer.param_groups"


def _option(subject: Subject, name: str) -> str:
    """Where the version holds an argument of the optimizer."""
    return _GROUPS if subject.version >= (0, 3) else f"optimizer.{name}"


def _classes(subject: Subject) -> str:
    return at(
        subject,
        "components/optimizer.py:292",
        "components/optimizer.py:316",
        "components/optimizer/optimizer.py:145",
    )


@stance("D307")
def decay_scope(subject: Subject) -> Stance | None:
    """One group for all, unless 0.3.0 is given more."""
    kind = subject.leaf("optimizer.decay_scope")
    if kind is None:
        return None
    source = at(
        subject, "components/optimizer.py:285", "components/optimizer.py:309", "components/optimizer/optimizer.py:168"
    )
    option = _option(subject, "weight_decay")
    if kind == "all":
        way = "take torchtitan 0.3.0 with a parameter group for norms and biases, weight_decay 0"
        says = "decays every parameter, norms and biases too"
        return Stance("all", says, source, option, {"matrices": way, "matrices_and_qk_norm": way})
    says = "decays the parameter groups that say so, " + (
        "not norms and biases" if kind == "matrices" else kind.replace("_", " ")
    )
    return Stance(str(kind), says, source, option)


@stance("D308")
def decay_course(subject: Subject) -> Stance | None:
    """Constant."""
    start = subject.leaf("optimizer.weight_decay")
    if start is None:
        return None
    source = at(
        subject, "components/optimizer.py:285", "components/optimizer.py:309", "components/optimizer/optimizer.py:394"
    )
    return Stance("constant", f"decays by {number(start)} throughout", source, _option(subject, "weight_decay"))


@stance("D309")
def update_rule(subject: Subject) -> Stance | None:
    """torch's own classes by their names."""
    name = subject.leaf("optimizer.name")
    if name not in ("adam", "adamw"):
        return None
    says = "takes AdamW, decoupled" if name == "adamw" else "takes Adam, which adds the decay to the gradient (L2)"
    return Stance(name, says, _classes(subject), _option(subject, "name"), {"adamw": "AdamW", "adam": "Adam"})


@stance("D310")
def constants(subject: Subject) -> Stance | None:
    """Betas and epsilon; torch always corrects."""
    if subject.leaf("optimizer.name") not in ("adam", "adamw"):
        return None
    first, second, eps = (subject.leaf(f"optimizer.{leaf}") for leaf in ("beta1", "beta2", "eps"))
    if None in (first, second, eps):
        return None
    kind = f"betas {number(first)} and {number(second)}, eps {number(eps)}"
    ways = Whatever("state beta1, beta2 and eps: {kind}", unless="uncorrected")
    return Stance(kind, f"takes {kind}, corrected", _classes(subject), _option(subject, "beta2"), ways)


@stance("D311")
def buffers(subject: Subject) -> Stance | None:
    """FSDP casts parameters only."""
    if subject.leaf("model.rope_base") is None or subject.leaf("precision.compute") not in ("bf16", "fp16"):
        return None
    source = at(
        subject, "models/llama3/model/model.py:39", "models/llama3/model/model.py:89", "models/common/rope.py:114"
    )
    return Stance("fp32", "keeps its table of rotary angles in fp32, for FSDP casts parameters alone", source)


@stance("D312")
def embedding_rate(subject: Subject) -> Stance | None:
    """One rate, unless 0.3.0 is given a group for embedding and head."""
    rate, peak = subject.leaf("optimizer.embedding_lr"), subject.leaf("optimizer.lr")
    if rate is not None and rate != peak:
        says = f"trains embedding and output layer at {number(rate)}, by a parameter group"
        return Stance(number(rate), says, _classes(subject), _option(subject, "lr"))
    way = "" if subject.version >= (0, 3) else "take torchtitan 0.3.0 with a parameter group for both"
    says = "trains embedding and output layer at the common rate"
    return Stance("same", says, _classes(subject), _option(subject, "lr"), Whatever(way))


@stance("D313")
def clip_bound(subject: Subject) -> Stance | None:
    """The norm is always clipped: 0 erases all gradients."""
    bound = subject.value("training.max_norm")
    if not isinstance(bound, int | float) or isinstance(bound, bool):
        return None
    source = at(subject, "distributed/utils.py:367", "distributed/utils.py:475", "distributed/utils.py:675")
    ways = Whatever(f"set max_norm to the bound of the other side; {CLIPPING_OFF:g} turns clipping off")
    if bound == 0:
        says = "multiplies every gradient by 0, for max_norm 0 is a bound like any other"
        return Stance("everything", says, source, "training.max_norm", ways)
    if bound >= CLIPPING_OFF:
        says = f"does not clip, for no norm is above {number(bound)}"
        return Stance("off", says, source, "training.max_norm", ways)
    return Stance(f"bound {number(bound)}", f"clips the norm at {number(bound)}", source, "training.max_norm", ways)
