"""Parameters of a model from the leaves of the spec alone, to compare with counts of real models."""

from __future__ import annotations

from typing import Any


def attention_parameters(m: dict[str, Any]) -> int:
    hidden, heads = m["hidden"], m["heads"]
    if m["mla.enabled"]:
        width = m["mla.qk_nope_dim"] + m["mla.qk_rope_dim"]
        rank, q_rank = m["mla.kv_rank"], m["mla.q_rank"]
        query = hidden * q_rank + q_rank + q_rank * heads * width if q_rank else hidden * heads * width
        latent = hidden * (rank + m["mla.qk_rope_dim"]) + rank
        return query + latent + rank * heads * (m["mla.qk_nope_dim"] + m["mla.v_dim"]) + heads * m["mla.v_dim"] * hidden
    width, kv_heads = m["head_dim"], m["kv_heads"]
    projected = (heads + 2 * kv_heads) * width
    total = hidden * projected + heads * width * hidden
    total += projected if m["bias_qkv"] else 0
    total += hidden if m["bias_linear"] else 0
    total += 2 * width if m["qk_norm"] == "rmsnorm" else 0
    return total + (heads if m["attention_softmax"] == "learnable" else 0)


def expert_parameters(m: dict[str, Any]) -> int:
    hidden, experts, width = m["hidden"], m["moe.experts"], m["moe.ffn"]
    total = experts * 3 * hidden * width + hidden * experts + 3 * hidden * m["moe.shared_ffn"]
    if m["moe.expert_bias_linear"]:  # biases of both expert linears, and of the router's logits
        total += experts * (2 * width + hidden) + experts
    return total


def parameter_count(leaves: dict[str, object]) -> int:
    """Parameters of a model from its neutral leaves alone."""
    m: dict[str, Any] = {leaf.removeprefix("model."): value for leaf, value in leaves.items()}
    hidden = m["hidden"]
    dense = m["moe.dense_layers"] if m["moe.experts"] else range(m["layers"])
    total = m["vocab"] * hidden * (1 if m["tied_embeddings"] else 2) + hidden
    for layer in range(m["layers"]):
        total += attention_parameters(m) + 2 * hidden
        total += 3 * hidden * m["ffn"] if layer in dense else expert_parameters(m)
    return total
