"""DeepSpeed, with the models of transformers, on how a model is built."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.frameworks.deepspeed.stances.programs import of_transformers
from translator.subject import Subject

_INIT = "transformers/modeling_utils.py"
_FUSED = ("gpt2",)  # model types with one matrix for query, key and value, all queries first


def _type(subject: Subject) -> str:
    return str(subject.value("model_config.model_type") or "")


@stance("D339")
@of_transformers
def padded_vocabulary(subject: Subject) -> Stance | None:
    """What the model's configuration states."""
    rows = subject.leaf("model.vocab_padded") or subject.leaf("model.vocab")
    if not rows:
        return None
    says = f"has {rows:,} rows, as the model's vocab_size states"
    source = "transformers/models/llama/configuration_llama.py:63 (5.24.0)"
    return Stance(str(rows), says, source, "model_config.vocab_size")


@stance("D346")
@of_transformers
def first_weights(subject: Subject) -> Stance | None:
    """Those of a model by name or path, else random ones."""
    if subject.value("@trainer") != "transformers":
        return None
    name, option = subject.value("hf.model_name_or_path"), "hf.model_name_or_path"
    source = f"{_INIT}:2305 (transformers 5.24.0)"
    if name:
        return Stance(
            "trained", f"is given a model by name, {name}, whose trained weights programs load", source, option
        )
    ways = {"trained": "set model_name_or_path to converted weights"}
    return Stance("random", "is given dimensions alone, so that weights are random", source, option, ways)


@stance("D347")
@of_transformers
def balancing_loss_scale(subject: Subject) -> Stance | None:
    """One loss over all layers' tokens, not divided by the experts per token."""
    if not any(subject.leaf("model.moe.aux_loss_coefficient") or ()):
        return None
    says = "computes one balancing loss over the tokens of all layers, not divided by the experts per token"
    source = "transformers/models/mixtral/modeling_mixtral.py:475 (5.24.0)"
    return Stance("all layers at once", says, source, "model_config.router_aux_loss_coef")


@stance("D350")
@of_transformers
def rotary_frequencies(subject: Subject) -> Stance | None:
    """What rope_theta and rope_scaling state."""
    if subject.leaf("model.positions") != "rope":
        return None
    base, factor = subject.leaf("model.rope_base"), subject.leaf("model.rope.scaling_factor")
    scaling = subject.leaf("model.rope.scaling") or "none"
    option = "model_config.rope_scaling"
    source = "transformers/modeling_rope_utils.py:581 (5.24.0)"
    if scaling == "none":
        says = f"turns positions at base {base or 0:g}, not stretched"
        return Stance(f"{base or 0:g} none", says, source, option)
    says = f"turns positions at base {base or 0:g}, stretched by {factor or 1:g} ({scaling})"
    ways = {f"{base or 0:g} none": f"leave {option.partition('.')[2]} out"}
    return Stance(f"{base or 0:g} {scaling} {factor or 1:g}", says, source, option, ways)


@stance("D351")
@of_transformers
def rotary_pairs(subject: Subject) -> Stance | None:
    """Halves, in nearly all models."""
    interleaved = subject.leaf("model.rope.interleaved")
    if interleaved is None:
        return None
    kind = "neighbours" if interleaved else "halves"
    return Stance(kind, f"pairs {kind} of a head", "transformers/models/llama/modeling_llama.py:119 (5.24.0)")


@stance("D352")
@of_transformers
def residual_init(subject: Subject) -> Stance | None:
    """One width for all, save for GPT-2's output projections."""
    std, scaling = subject.leaf("model.init_std"), subject.leaf("model.init_output_scaling")
    if std is None or scaling is None:
        return None
    source, says = f"{_INIT}:2322 (transformers 5.24.0)", f"draws all weights with {std:g}"
    if scaling == "depth":
        says = f"draws weights with {std:g} and divides that of the output projections by the root of twice the layers"
        source = "transformers/models/gpt2/modeling_gpt2.py:448 (5.24.0)"
    return Stance(f"{std:g} {scaling}", says, source, "model_config.initializer_range")


@stance("D353")
@of_transformers
def embedding_init(subject: Subject) -> Stance | None:
    """As all weights."""
    std = subject.leaf("model.init_std")
    if std is None:
        return None
    says = f"draws embeddings with {std:g}, as all weights"
    return Stance(f"{std:g}", says, f"{_INIT}:2332 (transformers 5.24.0)", "model_config.initializer_range")


@stance("D354")
@of_transformers
def head_init(subject: Subject) -> Stance | None:
    """As all weights."""
    std = subject.leaf("model.init_std")
    if std is None:
        return None
    says = f"draws the output head with {std:g}, as all weights"
    return Stance(f"{std:g}", says, f"{_INIT}:2322 (transformers 5.24.0)", "model_config.initializer_range")


@stance("D355")
@of_transformers
def dropout(subject: Subject) -> Stance | None:
    """What the model's configuration states: 0.1 in GPT-2, none in Llama."""
    hidden, attention = subject.leaf("model.hidden_dropout"), subject.leaf("model.attention_dropout")
    if hidden is None or attention is None:
        return None
    says = f"drops {hidden:g} of hidden states and {attention:g} of attention, as the model's configuration states"
    ways = {"0 0": "set attention_dropout (attn_pdrop, resid_pdrop and embd_pdrop in GPT-2) to 0"}
    option = "model_config.attention_dropout" if _type(subject) != "gpt2" else "model_config.resid_pdrop"
    return Stance(
        f"{hidden:g} {attention:g}", says, "transformers/models/gpt2/configuration_gpt2.py:84 (5.24.0)", option, ways
    )


@stance("D357")
@of_transformers
def routing_weights(subject: Subject) -> Stance | None:
    """As the model's code and norm_topk_prob say."""
    score, normalised = subject.leaf("model.moe.router_score"), subject.leaf("model.moe.router_normalize")
    if score is None:
        return None
    factor = subject.leaf("model.moe.router_scaling") or 1.0
    how = "makes the weights of the chosen experts sum to 1" if normalised else "leaves the weights as they are"
    says = f"scores by {score} and {how}" + (f", times {factor:g}" if factor != 1 else "")
    source = "transformers/models/qwen3_moe/modeling_qwen3_moe.py:262 (5.24.0)"
    return Stance(f"{score} {normalised} {factor:g}", says, source, "model_config.norm_topk_prob")


@stance("D358")
@of_transformers
def full_experts(subject: Subject) -> Stance | None:
    """The models have no capacity."""
    if not subject.leaf("model.moe.experts"):
        return None
    says = "computes every token of every expert"
    return Stance("no limit", says, "transformers/models/mixtral/modeling_mixtral.py:79 (5.24.0)")


@stance("D359")
@of_transformers
def balancing(subject: Subject) -> Stance | None:
    """A loss where router logits are asked for; biases never move."""
    if not subject.leaf("model.moe.experts"):
        return None
    kinds, weights = subject.leaf("model.moe.balancing") or (), subject.leaf("model.moe.aux_loss_coefficient") or ()
    parts = [f"{kind} {weight:g}" for kind, weight in zip(kinds, weights, strict=False) if kind != "none" and weight]
    if parts:
        says = f"keeps experts even by {' and '.join(parts)}"
        source = "transformers/models/mixtral/modeling_mixtral.py:625 (5.24.0)"
        return Stance(", ".join(parts), says, source, "model_config.output_router_logits")
    says = "has nothing to keep experts even: a loss needs output_router_logits"
    source = "transformers/models/mixtral/modeling_mixtral.py:625 (5.24.0)"
    if _type(subject) == "deepseek_v3":
        says = "has nothing to keep experts even: the bias of the scores is never moved"
        source = "transformers/models/deepseek_v3/modeling_deepseek_v3.py:131 (5.24.0)"
    return Stance("none", says, source, "model_config.output_router_logits")


@stance("D361")
@of_transformers
def group_score(subject: Subject) -> Stance | None:
    """The two best of a group."""
    if not subject.leaf("model.moe.router_group_top_k"):
        return None
    says = "scores a group by the sum of its 2 best experts"
    return Stance("best 2", says, "transformers/models/deepseek_v3/modeling_deepseek_v3.py:140 (5.24.0)")


@stance("D362")
@of_transformers
def router_precision(subject: Subject) -> Stance | None:
    """That of the model's products, fp32 in DeepSeek-V3."""
    dtype = subject.leaf("model.moe.router_dtype")
    if dtype is None:
        return None
    what = subject.leaf("precision.compute") or "the model's format" if dtype == "compute" else dtype
    source = "transformers/models/mixtral/modeling_mixtral.py:107 (5.24.0)"
    if _type(subject) == "deepseek_v3":
        source = "transformers/models/deepseek_v3/modeling_deepseek_v3.py:135 (5.24.0)"
    return Stance(str(what), f"computes the router's logits in {what}", source)


@stance("D363")
@of_transformers
def extra_prediction(subject: Subject) -> Stance:
    """The models of transformers leave these modules out."""
    _ = subject
    says = "predicts the next token alone"
    return Stance("none", says, "transformers/models/deepseek_v3/modeling_deepseek_v3.py:552 (5.24.0)")


@stance("D364")
@of_transformers
def projection_layout(subject: Subject) -> Stance:
    """Three matrices; one in GPT-2."""
    if _type(subject) in _FUSED:
        says = "saves query, key and value as one matrix, all queries first"
        return Stance("queries first", says, "transformers/models/gpt2/modeling_gpt2.py:107 (5.24.0)")
    says = "saves query, key and value as three matrices"
    return Stance("three", says, "transformers/models/llama/modeling_llama.py:219 (5.24.0)")
