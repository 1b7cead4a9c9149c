"""Section ``model``: the architecture, down to what changes a parameter count or a logit."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from translator.spec.base import MEMORY, NOTHING, OPERATION, SPEED, Section, leaf
from translator.spec.limits import MOST_LAYERS

Positions = Literal["rope", "learned", "yarn", "mrope", "relative", "none"]
RopeScaling = Literal["none", "linear", "llama3", "yarn"]
Norm = Literal["rmsnorm", "layernorm"]
QkNorm = Literal["none", "rmsnorm", "layernorm", "l2"]


class Moe(Section):
    """Mixture of experts; ``experts`` None or 0 means a dense model."""

    experts: int | None = leaf("routed experts per MoE layer", ge=0)
    top_k: int | None = leaf("experts that each token is sent to", ge=1)
    ffn: int | None = leaf("hidden width of one routed expert", ge=1)
    shared_ffn: int | None = leaf("total hidden width of the shared experts; 0 for none", ge=0)
    shared_gate: bool | None = leaf("whether a learned gate scales the shared experts")
    dense_layers: list[int] | None = leaf("indices of the layers that have a dense feed-forward instead")
    router_score: Literal["softmax", "sigmoid", "sqrtsoftplus"] | None = leaf("function from router logits to scores")
    router_normalize: bool | None = leaf("the scores of the chosen experts are normalised to sum 1")
    router_scaling: float | None = leaf("factor on the routing weights")
    router_groups: int | None = leaf("expert groups for group-limited routing", ge=0)
    router_group_top_k: int | None = leaf("groups that each token may use", ge=0)
    router_bias: bool | None = leaf(
        "experts carry a bias, updated from load, used for choosing only (loss-free balancing)"
    )
    router_bias_rate: float | None = leaf("step of the loss-free balancing bias")
    router_dtype: Literal["fp32", "fp64", "compute"] | None = leaf("precision of the router")
    router_jitter: float | None = leaf("noise on the router input")
    balancing: list[str] | None = leaf(
        "load-balancing methods: none, aux_loss, seq_aux_loss, global_aux_loss, sinkhorn"
    )
    aux_loss_coefficient: list[float] | None = leaf("weight of each balancing loss")
    z_loss_coefficient: float | None = leaf("weight of the router z-loss")
    capacity_factor: float | None = leaf("tokens an expert takes, as a multiple of the even share; None drops no token")
    capacity_padding: bool | None = leaf("experts are padded to their capacity")
    drop_policy: Literal["probs", "position"] | None = leaf("which tokens go when an expert is full")
    scores_on_input: bool | None = leaf("the routing weight multiplies the expert's input, not its output")
    expert_bias_linear: bool | None = leaf("expert linears carry biases")
    dispatcher: str | None = leaf("how tokens travel to experts (allgather, alltoall, flex ...)", SPEED)
    grouped_gemm: bool | None = leaf("experts of one rank run as one grouped matrix product", SPEED)


class Mla(Section):
    """Multi-head latent attention; ``enabled`` false or None means ordinary attention."""

    enabled: bool | None = leaf("keys and values come from a compressed latent")
    q_rank: int | None = leaf("rank of the query compression; None or 0 for a full projection", ge=0)
    kv_rank: int | None = leaf("rank of the key-value compression", ge=1)
    qk_nope_dim: int | None = leaf("query and key width per head without position", ge=1)
    qk_rope_dim: int | None = leaf("query and key width per head with rotary position", ge=0)
    v_dim: int | None = leaf("value width per head", ge=1)
    mscale: float | None = leaf("yarn attention scale")
    mscale_all_dim: float | None = leaf("yarn attention scale over all dimensions")


class Mtp(Section):
    """Multi-token prediction heads."""

    layers: int | None = leaf("extra prediction depths; None or 0 for none", ge=0)
    loss_scaling: float | None = leaf("weight of the extra losses")


class Rope(Section):
    """Rotary position embedding, beyond its base."""

    fraction: float | None = leaf("share of each head's width that is rotated")
    interleaved: bool | None = leaf("neighbouring pairs are rotated (else halves): a permutation of weights", OPERATION)
    scaling: RopeScaling | None = leaf("how frequencies are stretched for long contexts")
    scaling_factor: float | None = leaf("how far the context is stretched")
    low_freq_factor: float | None = leaf("llama3 scaling: lower bound of the blend")
    high_freq_factor: float | None = leaf("llama3 scaling: upper bound of the blend")
    original_max_positions: int | None = leaf("context length before stretching")
    beta_fast: float | None = leaf("yarn: upper rotation bound")
    beta_slow: float | None = leaf("yarn: lower rotation bound")
    skip_layers: list[int] | None = leaf("layers without rotary positions")


class Model(Section):
    """The architecture."""

    name: str | None = leaf("a name for the architecture, such as llama3/8B", NOTHING)
    family: str | None = leaf(
        "class of architecture: llama, gpt, moe, mla, gpt_oss ... (derived from the other leaves)", NOTHING
    )
    layers: int | None = leaf("transformer layers", ge=1, le=MOST_LAYERS)
    hidden: int | None = leaf("width of the residual stream", ge=1)
    ffn: int | None = leaf("hidden width of a dense feed-forward (of one branch when gated)", ge=1)
    heads: int | None = leaf("attention heads", ge=1)
    kv_heads: int | None = leaf("key-value heads; equal to heads without grouping", ge=1)
    head_dim: int | None = leaf("width of one head", ge=1)
    vocab: int | None = leaf("vocabulary of the tokenizer", ge=1)
    vocab_padded: int | None = leaf("rows of the embedding as trained", MEMORY, ge=1)
    vocab_divisor: int | None = leaf(
        "the padded vocabulary is a multiple of this times the tensor degree", MEMORY, ge=1
    )
    max_positions: int | None = leaf("longest sequence that the positions are built for", ge=1)
    positions: Positions | None = leaf("kind of position embedding")
    rope_base: float | None = leaf("rotary base")
    rope: Rope = Field(default_factory=Rope)
    norm: Norm | None = leaf("kind of normalisation")
    norm_eps: float | None = leaf("epsilon of the normalisation")
    norm_one_plus: bool | None = leaf("the norm's weight is stored as an offset from 1")
    norm_placement: Literal["pre", "post", "sandwich"] | None = leaf("where the norm stands around a sublayer")
    qk_norm: QkNorm | None = leaf("normalisation of queries and keys")
    activation: str | None = leaf("activation of the feed-forward: gelu, silu, squared_relu, quick_gelu ...")
    activation_clamp: float | None = leaf("bound on the activation's inputs")
    gated: bool | None = leaf("the feed-forward has a gate branch (SwiGLU, GeGLU)")
    bias_linear: bool | None = leaf("linears carry biases")
    bias_qkv: bool | None = leaf("the query-key-value projection carries a bias")
    tied_embeddings: bool | None = leaf("input and output embeddings share their weights")
    hidden_dropout: float | None = leaf("dropout after embeddings and sublayers", ge=0, le=1)
    attention_dropout: float | None = leaf("dropout on attention probabilities", ge=0, le=1)
    attention_window: int | None = leaf("sliding window in tokens; None for full attention")
    attention_window_pattern: list[int] | None = leaf("layers with full attention where others use a window")
    attention_softmax: Literal["vanilla", "off_by_one", "learnable"] | None = leaf(
        "softmax of attention; learnable adds a sink logit"
    )
    attention_output_gate: bool | None = leaf("attention output is gated")
    attention_kernel: str | None = leaf("attention implementation: auto, flash, sdpa, flex, fused ...", SPEED)
    attention_mask: Literal["causal", "document", "bidirectional"] | None = leaf("which tokens attend to which")
    residual_fp32: bool | None = leaf("the residual stream is kept in fp32")
    init_std: float | None = leaf("standard deviation of the initial weights")
    init_output_scaling: Literal["depth", "none", "layer_index"] | None = leaf(
        "how the last linear of a sublayer is initialised: by 1/sqrt(2 layers), unscaled, or by its own layer index"
    )
    moe: Moe = Field(default_factory=Moe)
    mla: Mla = Field(default_factory=Mla)
    mtp: Mtp = Field(default_factory=Mtp)
