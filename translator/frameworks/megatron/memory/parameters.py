"""Parameters of one rank, in elements: what tensor and expert parallelism split, and what they leave whole.

Source, unless a line says otherwise: ``megatron/core/models/gpt/gpt_layer_specs.py`` and the modules that it names
(core 0.18.0). Column- and row-parallel weights are split; norms, routers, latent down-projections and the biases of
row-parallel layers are on every tensor rank.
"""

from __future__ import annotations

from typing import Any

from translator.memory.sizes import Array, Job, Model
from translator.memory.stages import Stages


def norm(model: Model) -> int:
    """One norm over the hidden size; a layer norm has a bias."""
    return model.hidden * (2 if model.layer_norm else 1)


def attention(job: Job) -> Any:
    """Attention of one layer, its norm included."""
    model, tensor = job.model, job.layout.tensor
    hidden = model.hidden
    if model.mla is not None:
        return _latent(job) + norm(model)
    kv = 2 * model.kv_heads * model.head_dim
    fused = model.query_width * (2 if model.attention_gate else 1) + kv
    split = hidden * fused + model.value_width * hidden + (fused if model.bias or model.bias_qkv else 0)
    whole = norm(model) + (hidden if model.bias else 0)
    if model.qk_norm in ("rmsnorm", "layernorm"):
        whole += 2 * model.head_dim * (2 if model.qk_norm == "layernorm" else 1)
    return split / tensor + whole + (model.heads / tensor if model.sinks else 0)


def _latent(job: Job) -> Any:
    """Multi-head latent attention: ``megatron/core/transformer/multi_latent_attention.py`` (core 0.18.0).

    TransformerEngine's down-projections are whole on every tensor rank (line 523), Megatron-LM's own are split.
    """
    model, tensor = job.model, job.layout.tensor
    mla = model.mla
    assert mla is not None
    hidden, heads = model.hidden, model.heads
    width = heads * (mla.nope + mla.rope)
    down = hidden * (mla.q_rank + mla.kv_rank + mla.rope)
    whole = (mla.q_rank + mla.kv_rank) * (2 if model.layer_norm else 1) if model.qk_norm != "none" else 0
    split = (mla.q_rank or hidden) * width + mla.kv_rank * heads * (mla.nope + mla.value) + heads * mla.value * hidden
    if job.values.get("transformer_impl") == "local":
        split += down
    else:
        whole += down
    return whole + split / tensor


def dense_feed_forward(job: Job) -> Any:
    """The feed-forward of a dense layer, its norm included."""
    model = job.model
    split, whole = _feed_forward(model, model.ffn, bias=model.bias)
    return split / job.layout.tensor + whole + norm(model)


def _feed_forward(model: Model, width: int, *, bias: bool) -> tuple[int, int]:
    """Elements that are split and elements that are whole."""
    first = width * (2 if model.gated else 1)
    split = model.hidden * (first + width)
    return (split + first, model.hidden) if bias else (split, 0)


def routed_experts(job: Job) -> Any:
    """The routed experts of a layer that one rank holds."""
    model, layout = job.model, job.layout
    if model.moe is None:
        return 0
    split, whole = _feed_forward(model, model.moe.ffn, bias=model.moe.bias)
    return model.moe.experts / layout.expert * (split / layout.expert_tensor + whole)


def around_experts(job: Job) -> Any:
    """What a MoE layer holds besides its routed experts: norm, router, shared experts."""
    model = job.model
    moe = model.moe
    if moe is None:
        return 0
    total: Any = norm(model) + model.hidden * moe.experts
    if moe.shared_ffn:
        split, whole = _feed_forward(model, moe.shared_ffn, bias=model.bias)
        total = total + split / job.layout.tensor + whole + (model.hidden if moe.shared_gate else 0)
    return total


def embedding(job: Job) -> Any:
    """Word embedding, or output layer: rows are split over the tensor ranks."""
    return job.model.vocab * job.model.hidden / job.layout.tensor


def prediction_depth(job: Job) -> tuple[Any, Any]:
    """One multi-token-prediction depth without its transformer layer: dense elements, and 0 expert elements.

    Source: ``megatron/core/transformer/multi_token_prediction.py`` (core 0.18.0): two norms in, one out, a projection.
    """
    model = job.model
    return 3 * norm(model) + 2 * model.hidden * model.hidden / job.layout.tensor, 0


def per_rank(job: Job, stages: Stages) -> tuple[Array, Array]:
    """Dense and expert elements of each rank of the pipeline, each of shape (layouts, stages)."""
    model, layout = job.model, job.layout
    dense = stages.dense * (attention(job) + dense_feed_forward(job))
    dense = dense + stages.moe * (attention(job) + around_experts(job))
    experts = stages.moe * routed_experts(job)
    dense = dense + stages.last * norm(model) + stages.first * embedding(job)
    if model.learned_positions:
        dense = dense + stages.first * model.max_positions * model.hidden
    # A tied output layer is the embedding itself where one rank has both, and a copy of it where not.
    apart = layout.pipeline > 1
    dense = dense + stages.last * embedding(job) * ((not model.tied) | apart)
    if model.mtp_layers:
        extra, _ = prediction_depth(job)
        moe = model.moe is not None and model.layers - 1 not in model.dense
        layer = attention(job) + (around_experts(job) if moe else dense_feed_forward(job))
        copied = embedding(job) * (apart & (not model.tied))
        dense = dense + stages.last * (model.mtp_layers * (extra + layer) + copied)
        experts = experts + stages.last * model.mtp_layers * (routed_experts(job) if moe else 0)
    return dense * stages.present, experts * stages.present
