"""torchtitan on the model: built by a family's own code, or by a configuration's from 0.3.0 on."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.subject import Subject

_FIRST_MOE = "experiments/llama4/model/moe.py"
_SCALED_BRANCH = ("llama3", "deepseek_v3")  # families that scale w3 as they do w2; before 0.3.0 there were more
_NARROW = ("qwen3", "gpt_oss")  # families whose embeddings start as narrow as their other weights since 0.3.0


def _old(subject: Subject) -> bool:
    return subject.version < (0, 3)


def _at(subject: Subject, old: str, new: str, first: str = "") -> str:
    """The upstream line of the older or the newer modules, or of the first where they are others still."""
    if first and subject.version < (0, 2):
        return f"{first} (torchtitan 0.1.0)"
    return f"{old} (torchtitan 0.2.2)" if _old(subject) else f"{new} (torchtitan 0.3.0)"


def _family(subject: Subject) -> str:
    return str(subject.leaf("model.name") or "llama3").partition("/")[0]


@stance("D339")
def padded_vocabulary(subject: Subject) -> Stance | None:
    """What the model states, shards uneven if need be."""
    rows = subject.leaf("model.vocab_padded") or subject.leaf("model.vocab")
    if not rows:
        return None
    says = f"has {rows:,} rows, as the model states, and lets shards be uneven"
    return Stance(str(rows), says, _at(subject, "models/llama3/model/model.py:479", "models/llama3/__init__.py:50"))


@stance("D346")
def first_weights(subject: Subject) -> Stance:
    """Random, unless a first load is asked for."""
    option = "checkpoint.initial_load_path"
    source = _at(subject, "components/checkpoint.py:595", "components/checkpointer/base.py:235")
    if subject.version < (0, 2):
        source = "components/checkpoint.py:426 (torchtitan 0.1.0)"
    enabled = subject.value("checkpoint.enable", subject.value("checkpoint.enable_checkpoint"))
    if enabled and (subject.value(option) or subject.value("checkpoint.initial_load_in_hf")):
        where = subject.value(option) or "the folder of the tokenizer"
        return Stance("trained", f"loads the weights in {where}", source, option)
    ways = {
        "trained": "set checkpoint.enable and checkpoint.initial_load_path (and initial_load_in_hf for safetensors)"
    }
    return Stance("random", "starts with random weights", source, option, ways)


@stance("D350")
def rotary_frequencies(subject: Subject) -> Stance | None:
    """Fixed by the model; Llama 3 is always stretched since 0.2, never before."""
    if subject.leaf("model.positions") != "rope":
        return None
    base, factor = subject.leaf("model.rope_base"), subject.leaf("model.rope.scaling_factor")
    scaling = subject.leaf("model.rope.scaling") or "none"
    source = _at(subject, "models/llama3/model/model.py:67", "models/llama3/__init__.py:140")
    if subject.version < (0, 2):
        source = "models/llama3/model/model.py:36 (torchtitan 0.1.0)"
    if scaling == "none":
        says = f"turns positions at base {base or 0:g}, not stretched"
        return Stance(f"{base or 0:g} none", says, source, "model.flavor")
    says = f"turns positions at base {base or 0:g}, stretched by {factor or 1:g} ({scaling}) whatever the length"
    return Stance(f"{base or 0:g} {scaling} {factor or 1:g}", says, source, "model.flavor")


@stance("D351")
def rotary_pairs(subject: Subject) -> Stance | None:
    """Neighbours as complex numbers, halves in some families."""
    interleaved = subject.leaf("model.rope.interleaved")
    if interleaved is None:
        return None
    if interleaved:
        source = _at(subject, "models/llama3/model/model.py:164", "models/common/rope.py:261")
        return Stance("neighbours", "pairs neighbours of a head, as complex numbers", source)
    return Stance(
        "halves", "pairs halves of a head", _at(subject, "models/qwen3/model/model.py:55", "models/common/rope.py:268")
    )


@stance("D352")
def residual_init(subject: Subject) -> Stance | None:
    """By the layer's index, and the second branch of the gate as well."""
    std, scaling = subject.leaf("model.init_std"), subject.leaf("model.init_output_scaling")
    if std is None or scaling is None:
        return None
    how = {
        "layer_index": " and divides that of layer i's output projections{} by the root of 2(i + 1)",
        "depth": " and divides that of the output projections{} by the root of twice the layers",
    }.get(scaling, "")
    families = (*_SCALED_BRANCH, "qwen3", "llama4") if _old(subject) else _SCALED_BRANCH
    branch = bool(how and subject.leaf("model.gated") and _family(subject) in families)
    how = how.format(" and of the feed-forward's ungated branch" if branch else "")
    source = _at(subject, "models/llama3/model/model.py:386", "models/common/param_init.py:28")
    kind = f"{std:g} {scaling} branch" if branch else f"{std:g} {scaling}"
    return Stance(kind, f"draws weights with {std:g}{how}", source)


@stance("D353")
def embedding_init(subject: Subject) -> Stance:
    """1, save for some families since 0.3.0."""
    family = _family(subject)
    if not _old(subject) and family in _NARROW:
        line = {"qwen3": 57, "gpt_oss": 51}[family]
        return Stance("0.02", "draws embeddings with 0.02", f"models/{family}/__init__.py:{line} (torchtitan 0.3.0)")
    source = _at(subject, "models/llama3/model/model.py:479", "models/llama3/__init__.py:50")
    return Stance("1", "draws embeddings with 1", source)


@stance("D354")
def head_init(subject: Subject) -> Stance | None:
    """One over the root of the width, cut off at three times that."""
    hidden = subject.leaf("model.hidden")
    if not hidden:
        return None
    if not _old(subject) and _family(subject) == "qwen3":
        source = "models/qwen3/__init__.py:212 (torchtitan 0.3.0)"
        return Stance("0.02", "draws the output head with 0.02, as all weights", source)
    std = hidden**-0.5
    says = f"draws the output head with {std:.3g}, one over the root of the width, cut off at three times that"
    source = _at(subject, "models/llama3/model/model.py:485", "models/llama3/__init__.py:57")
    return Stance(f"{std:.3g} cut", says, source)


@stance("D355")
def dropout(subject: Subject) -> Stance:
    """There is none."""
    says = "has no dropout"
    return Stance("0 0", says, _at(subject, "models/llama3/model/args.py:36", "models/llama3/__init__.py:46"))


@stance("D357")
def routing_weights(subject: Subject) -> Stance | None:
    """Scores over all experts, made to sum to 1 where the model says so."""
    score, normalised = subject.leaf("model.moe.router_score"), subject.leaf("model.moe.router_normalize")
    if score is None:
        return None
    factor = subject.leaf("model.moe.router_scaling") or 1.0
    how = "makes the weights of the chosen experts sum to 1" if normalised else "leaves the weights as they are"
    says = f"scores by {score} and {how}" + (f", times {factor:g}" if factor != 1 else "")
    kind = f"{score} {normalised} {factor:g}"
    return Stance(kind, says, _at(subject, "models/moe/moe.py:342", "models/common/moe.py:333", f"{_FIRST_MOE}:141"))


@stance("D358")
def full_experts(subject: Subject) -> Stance | None:
    """There is no capacity."""
    if not subject.leaf("model.moe.experts"):
        return None
    says = "computes every token of every expert"
    return Stance(
        "no limit", says, _at(subject, "models/moe/moe.py:123", "models/common/moe.py:208", f"{_FIRST_MOE}:149")
    )


@stance("D359")
def balancing(subject: Subject) -> Stance | None:
    """A bias; there is no balancing loss."""
    if not subject.leaf("model.moe.experts"):
        return None
    rate = subject.leaf("model.moe.router_bias_rate")
    source = _at(subject, "components/optimizer.py:429", "components/optimizer/optimizer.py:512", f"{_FIRST_MOE}:123")
    if subject.leaf("model.moe.router_bias") and rate:
        return Stance(f"bias {rate:g}", f"keeps experts even by bias {rate:g} alone", source)
    return Stance("none", "has nothing to keep experts even", source)


@stance("D360")
def bias_step(subject: Subject) -> Stance | None:
    """The mean of the steps is subtracted; at 0.1.0 the bias moved with every backward pass."""
    if not (subject.leaf("model.moe.router_bias") and subject.leaf("model.moe.router_bias_rate")):
        return None
    if subject.version < (0, 2):
        says = "moves each expert's bias by the rate after every backward pass"
        return Stance("every pass", says, f"{_FIRST_MOE}:233 (torchtitan 0.1.0)")
    says = "moves each expert's bias by the rate and keeps their mean where it is"
    return Stance("centred", says, _at(subject, "components/optimizer.py:432", "components/optimizer/optimizer.py:515"))


@stance("D361")
def group_score(subject: Subject) -> Stance | None:
    """The two best of a group."""
    if not subject.leaf("model.moe.router_group_top_k"):
        return None
    says = "scores a group by the sum of its 2 best experts"
    return Stance("best 2", says, _at(subject, "models/moe/moe.py:279", "models/common/moe.py:270"))


@stance("D362")
def router_precision(subject: Subject) -> Stance | None:
    """That of the other products until 0.3.0, fp32 since."""
    dtype = subject.leaf("model.moe.router_dtype")
    if dtype is None:
        return None
    what = subject.leaf("precision.compute") or "the model's format" if dtype == "compute" else dtype
    source = _at(subject, "models/moe/moe.py:312", "models/common/moe.py:297", f"{_FIRST_MOE}:138")
    return Stance(str(what), f"computes the router's logits in {what}", source)


@stance("D363")
def extra_prediction(subject: Subject) -> Stance:
    """There is none."""
    says = "predicts the next token alone"
    return Stance(
        "none", says, _at(subject, "models/deepseek_v3/model/model.py:439", "models/deepseek_v3/__init__.py:57")
    )


@stance("D364")
def projection_layout(subject: Subject) -> Stance:
    """Three matrices in checkpoints; fused ones are taken apart when they are saved."""
    source = _at(subject, "models/llama3/model/state_dict_adapter.py:30", "models/common/attention.py:873")
    return Stance("three", "saves query, key and value as three matrices", source)
