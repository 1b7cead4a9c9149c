"""Names of parameters and linears of 0.3.0's models, as parameter groups and converters see them.

One layer of each kind stands for all: ``layers.0`` is dense where there are dense layers. The names are those of
``named_parameters`` and of ``Config.traverse``; a tied embedding has no head of its own among the parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Leaf = Callable[[str], Any]

_GATED = ("w1", "w2", "w3")
NORM, QK_NORM, BIAS, MATRIX, EMBEDDING = "norm", "qk_norm", "bias", "matrix", "embedding"


def _attention(leaf: Leaf) -> tuple[str, ...]:
    if not leaf("mla.enabled"):
        return ("qkv_linear.wqkv", "wo")
    return (*(("wq_a", "wq_b") if leaf("mla.q_rank") else ("wq",)), "wkv_a", "wkv_b", "wo")


def _kinds_of_layers(leaf: Leaf) -> tuple[bool, bool]:
    """Whether there are dense layers, and MoE layers."""
    sparse, dense = bool(leaf("moe.experts")), leaf("moe.dense_layers")
    return not sparse or bool(dense), sparse


def linears(leaf: Leaf) -> tuple[str, ...]:
    """The linears inside a layer, without the layer's own name; the head comes on top as ``lm_head``."""
    dense, sparse = _kinds_of_layers(leaf)
    names = [f"attention.{name}" for name in _attention(leaf)]
    if dense:
        names += [f"feed_forward.{name}" for name in _GATED]
    if sparse:
        names.append("moe.router.gate")
        names += [f"moe.shared_experts.{name}" for name in _GATED] if leaf("moe.shared_ffn") else []
    return tuple(names)


def parameters(leaf: Leaf) -> dict[str, str]:
    """Names of parameters -> what they are; ``leaf`` gives a leaf of the model without its prefix."""
    found = {"tok_embeddings.weight": EMBEDDING, "norm.weight": NORM}
    if not leaf("tied_embeddings"):
        found["lm_head.weight"] = EMBEDDING
    layer = "layers.0."
    found |= {f"{layer}attention_norm.weight": NORM, f"{layer}ffn_norm.weight": NORM}
    found |= {f"{layer}{name}.weight": MATRIX for name in linears(leaf)}
    if leaf("mla.enabled"):
        found[f"{layer}attention.kv_norm.weight"] = NORM
        if leaf("mla.q_rank"):
            found[f"{layer}attention.q_norm.weight"] = QK_NORM
    elif leaf("qk_norm") == "rmsnorm":
        found |= {f"{layer}attention.{name}.weight": QK_NORM for name in ("q_norm", "k_norm")}
    if leaf("attention_softmax") == "learnable":
        found[f"{layer}attention.sinks"] = BIAS
    if leaf("bias_qkv"):
        found[f"{layer}attention.qkv_linear.wqkv.bias"] = BIAS
    if leaf("bias_linear"):
        found[f"{layer}attention.wo.bias"] = BIAS
    if leaf("moe.experts"):
        inner = f"{layer}moe.routed_experts.inner_experts."
        if leaf("moe.expert_bias_linear"):
            found |= {f"{inner}mlp1_weight_EGD": MATRIX, f"{inner}mlp2_weight_EDF": MATRIX}
            found |= {f"{inner}mlp1_bias_EG": BIAS, f"{inner}mlp2_bias_ED": BIAS, f"{layer}moe.router.gate.bias": BIAS}
        else:
            found |= {f"{inner}{name}": MATRIX for name in ("w1_EFD", "w2_EDF", "w3_EFD")}
    return found
