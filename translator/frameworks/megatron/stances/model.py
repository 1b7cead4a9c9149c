"""Megatron-LM on the model: built from what options say, with defaults of its own."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.subject import Subject

_CONFIG = "megatron/core/transformer/transformer_config.py"
_MOE = "megatron/core/transformer/moe/moe_utils.py"
_ROTARY = "megatron/core/models/common/embeddings"


@stance("D339")
def padded_vocabulary(subject: Subject) -> Stance:
    """Rounded up to a multiple of the divisor times the tensor-parallel degree."""
    rows, words = subject.leaf("model.vocab_padded"), subject.leaf("model.vocab")
    divisor = (subject.leaf("model.vocab_divisor") or 128) * subject.size("parallel.tensor")
    source = "megatron/core/tokenizers/utils/build_tokenizer.py:124 (core 0.18.0)"
    if not rows:
        says = f"rounds the tokenizer's vocabulary up to a multiple of {divisor}"
        return Stance(f"multiple of {divisor}", says, source, "make_vocab_size_divisible_by")
    says = f"has {rows:,} rows" + (f" for {words:,} words, a multiple of {divisor}" if words and words != rows else "")
    ways = {str(words): "set --make-vocab-size-divisible-by 1"} if words and divisor != 1 else {}
    return Stance(str(rows), says, source, "make_vocab_size_divisible_by", ways)


@stance("D346")
def first_weights(subject: Subject) -> Stance:
    """Random, or from a folder that is not the one saved to."""
    folder = subject.leaf("checkpoint.load")
    source = "megatron/training/checkpointing.py:1342 (core 0.18.0)"
    option = "pretrained_checkpoint" if subject.value("pretrained_checkpoint") else "load"
    if subject.value("pretrained_checkpoint"):
        return Stance("trained", f"loads the weights in {subject.value(option)}", source, option)
    if folder and (subject.value("finetune") or folder != subject.leaf("checkpoint.save")):
        return Stance("trained", f"loads the weights in {folder}", source, option)
    ways = {"trained": "convert the weights and give their folder to --load, with --finetune"}
    return Stance("random", "starts with random weights", source, option, ways)


@stance("D347")
def balancing_loss_scale(subject: Subject) -> Stance | None:
    """Each layer's loss, divided by the experts per token."""
    coefficients = subject.leaf("model.moe.aux_loss_coefficient") or ()
    if not any(coefficients):
        return None
    says = "adds up the balancing losses of the layers, each divided by the experts per token"
    return Stance("per layer", says, f"{_MOE}:140 (core 0.18.0)", "moe_aux_loss_coeff")


@stance("D350")
def rotary_frequencies(subject: Subject) -> Stance | None:
    """The base, stretched only when told."""
    if subject.leaf("model.positions") != "rope":
        return None
    base, factor = subject.leaf("model.rope_base"), subject.leaf("model.rope.scaling_factor")
    scaling = subject.leaf("model.rope.scaling") or "none"
    if scaling == "none":
        says = f"turns positions at base {base:g}, not stretched"
        ways = {_kind(base, "llama3", 8): "add --use-rope-scaling"}
        return Stance(
            _kind(base, scaling, None),
            says,
            f"{_ROTARY}/rotary_pos_embedding.py:92 (core 0.18.0)",
            "use_rope_scaling",
            ways,
        )
    says = f"turns positions at base {base:g}, stretched" + (f" by {factor:g}" if factor else "") + f" ({scaling})"
    option = "use_rope_scaling" if scaling == "llama3" else "rotary_scaling_factor"
    ways = {_kind(base, "none", None): "leave --use-rope-scaling out"} if scaling == "llama3" else {}
    return Stance(
        _kind(base, scaling, factor), says, f"{_ROTARY}/rotary_pos_embedding.py:92 (core 0.18.0)", option, ways
    )


def _kind(base: float | None, scaling: str, factor: float | None) -> str:
    return f"{base or 0:g} {scaling}" + (f" {factor:g}" if factor else "")


@stance("D351")
def rotary_pairs(subject: Subject) -> Stance | None:
    """Halves, or neighbours with a flag."""
    interleaved = subject.leaf("model.rope.interleaved")
    if interleaved is None:
        return None
    kind = "neighbours" if interleaved else "halves"
    ways = {"neighbours": "add --rotary-interleaved", "halves": "leave --rotary-interleaved out"}
    option = "rotary_interleaved"
    if subject.leaf("model.mla.enabled"):
        ways, option = {}, "multi_latent_attention"
    return Stance(kind, f"pairs {kind} of a head", f"{_ROTARY}/rope_utils.py:73 (core 0.18.0)", option, ways)


@stance("D352")
def residual_init(subject: Subject) -> Stance | None:
    """By depth, for the projections that write into the residual stream."""
    std, scaling = subject.leaf("model.init_std"), subject.leaf("model.init_output_scaling")
    if std is None or scaling is None:
        return None
    how = " and divides that of the output projections by the root of twice the layers" if scaling == "depth" else ""
    says = f"draws weights with {std:g}{how}"
    return Stance(f"{std:g} {scaling}", says, "megatron/core/utils.py:773 (core 0.18.0)", "init_method_std")


@stance("D353")
def embedding_init(subject: Subject) -> Stance | None:
    """As all weights, unless an own value is given."""
    own, std = subject.value("embedding_init_method_std"), subject.leaf("model.init_std")
    if own is None and std is None:
        return None
    used = own if own is not None else std
    source = f"{_CONFIG}:2014 (core 0.18.0)"
    if subject.version < (0, 14):
        says = f"draws embeddings with {used:g}, as all weights"
        return Stance(f"{used:g}", says, "megatron/core/models/gpt/gpt_model.py:201 (core 0.12.0)", "init_method_std")
    says = f"draws embeddings with {used:g}" + ("" if own is not None else ", as all weights")
    ways = {"1": "add --embedding-init-method-std 1.0", "0.02": "add --embedding-init-method-std 0.02"}
    return Stance(f"{used:g}", says, source, "embedding_init_method_std", ways)


@stance("D354")
def head_init(subject: Subject) -> Stance | None:
    """As all weights."""
    std = subject.leaf("model.init_std")
    if std is None:
        return None
    says = f"draws the output head with {std:g}, as all weights"
    return Stance(f"{std:g}", says, "megatron/core/models/gpt/gpt_model.py:262 (core 0.18.0)", "init_method_std")


@stance("D355")
def dropout(subject: Subject) -> Stance | None:
    """0.1 of both kinds unless told otherwise."""
    hidden, attention = subject.leaf("model.hidden_dropout"), subject.leaf("model.attention_dropout")
    if hidden is None or attention is None:
        return None
    how = "" if subject.stated("hidden_dropout") or hidden == 0 else " unless told otherwise"
    says = f"drops {hidden:g} of hidden states and {attention:g} of attention{how}"
    ways = {f"{0:g} {0:g}": "add --hidden-dropout 0 --attention-dropout 0"}
    return Stance(f"{hidden:g} {attention:g}", says, f"{_CONFIG}:165 (core 0.18.0)", "hidden_dropout", ways)


@stance("D357")
def routing_weights(subject: Subject) -> Stance | None:
    """A softmax over the chosen experts, which makes weights sum to 1, unless it comes before the choice."""
    score, normalised = subject.leaf("model.moe.router_score"), subject.leaf("model.moe.router_normalize")
    if score is None:
        return None
    factor = subject.leaf("model.moe.router_scaling") or 1.0
    how = "makes the weights of the chosen experts sum to 1" if normalised else "leaves the weights as they are"
    says = f"scores by {score} and {how}" + (f", times {factor:g}" if factor != 1 else "")
    ways = {
        f"{score} True {factor:g}": "leave --moe-router-pre-softmax out",
        f"{score} False {factor:g}": "add --moe-router-pre-softmax",
    }
    kind = f"{score} {normalised} {factor:g}"
    option = "moe_router_score_function"
    return Stance(kind, says, f"{_MOE}:793 (core 0.18.0)", option, ways if score == "softmax" else {})


@stance("D358")
def full_experts(subject: Subject) -> Stance | None:
    """No token is dropped without a capacity."""
    if not subject.leaf("model.moe.experts"):
        return None
    capacity, policy = subject.leaf("model.moe.capacity_factor"), subject.leaf("model.moe.drop_policy") or "probs"
    ways = {"no limit": "leave --moe-expert-capacity-factor out"}
    source = f"{_MOE}:905 (core 0.18.0)"
    if not capacity or capacity < 0:
        return Stance("no limit", "computes every token of every expert", source, "moe_expert_capacity_factor", ways)
    says = f"drops tokens beyond {capacity:g} times an expert's even share, by {policy}"
    return Stance(f"{capacity:g} {policy}", says, source, "moe_expert_capacity_factor", ways)


@stance("D359")
def balancing(subject: Subject) -> Stance | None:
    """A loss by its coefficient, a bias by its rate."""
    if not subject.leaf("model.moe.experts"):
        return None
    kinds, weights = subject.leaf("model.moe.balancing") or (), subject.leaf("model.moe.aux_loss_coefficient") or ()
    parts = [f"{kind} {weight:g}" for kind, weight in zip(kinds, weights, strict=False) if kind != "none" and weight]
    rate = subject.leaf("model.moe.router_bias_rate")
    if subject.leaf("model.moe.router_bias") and rate:
        parts.append(f"bias {rate:g}")
    source = "megatron/core/transformer/moe/router.py:264 (core 0.18.0)"
    if not parts:
        says = "has nothing to keep experts even"
        if any(kind != "none" for kind in kinds):
            says += f" (the coefficient of {', '.join(kinds)} is 0)"
        return Stance("none", says, source, "moe_router_load_balancing_type")
    says = f"keeps experts even by {' and '.join(parts)}"
    ways = {"none": "set --moe-router-load-balancing-type none, and no --moe-router-enable-expert-bias"}
    if len(parts) > 1:
        ways[parts[-1]] = "set --moe-router-load-balancing-type none"
    return Stance(", ".join(parts), says, source, "moe_router_load_balancing_type", ways)


@stance("D360")
def bias_step(subject: Subject) -> Stance | None:
    """The sign of the missing load times the rate."""
    if not (subject.leaf("model.moe.router_bias") and subject.leaf("model.moe.router_bias_rate")):
        return None
    says = "moves each expert's bias by the rate and leaves their mean free"
    return Stance("free", says, f"{_MOE}:1108 (core 0.18.0)", "moe_router_bias_update_rate")


@stance("D361")
def group_score(subject: Subject) -> Stance | None:
    """As many scores as there are experts per token and chosen group."""
    chosen, experts = subject.leaf("model.moe.router_group_top_k"), subject.leaf("model.moe.top_k")
    if not chosen or not experts:
        return None
    best = experts // chosen
    says = f"scores a group by the sum of its {best} best experts ({experts} experts of {chosen} groups)"
    return Stance(f"best {best}", says, f"{_MOE}:618 (core 0.18.0)", "moe_router_group_topk")


@stance("D362")
def router_precision(subject: Subject) -> Stance | None:
    """That of the model unless told otherwise."""
    dtype = subject.leaf("model.moe.router_dtype")
    if dtype is None:
        return None
    what = subject.leaf("precision.compute") or "the model's format" if dtype == "compute" else dtype
    ways = {"fp32": "add --moe-router-dtype fp32", "bf16": "leave --moe-router-dtype out"}
    source = "megatron/core/transformer/moe/router.py:102 (core 0.18.0)"
    return Stance(str(what), f"computes the router's logits in {what}", source, "moe_router_dtype", ways)


@stance("D363")
def extra_prediction(subject: Subject) -> Stance:
    """Modules on request, whose mean loss counts 0.1."""
    layers, scale = subject.leaf("model.mtp.layers") or 0, subject.leaf("model.mtp.loss_scaling")
    source = f"{_CONFIG}:74 (core 0.18.0)"
    if not layers:
        return Stance("none", "predicts the next token alone", source, "mtp_num_layers")
    says = f"adds {scale or 0.1:g} times the mean loss of {layers} further token{'s' if layers > 1 else ''}"
    return Stance(f"{layers} {scale}", says, source, "mtp_num_layers", {"none": "leave --mtp-num-layers out"})


@stance("D364")
def projection_layout(subject: Subject) -> Stance:
    """One matrix, group by group."""
    _ = subject
    says = "keeps query, key and value in one matrix, group by group"
    return Stance("by group", says, "megatron/core/transformer/attention.py:1556 (core 0.18.0)")
