"""DeepSeek V2 and V3: latent attention, some dense layers first, then a mixture of experts with shared ones.

transformers trains neither the balancing bias nor the extra prediction heads, and has no balancing loss for these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.frameworks.deepspeed.hf_models.base import Config, Leaves, Row, all_fixed, family, link, words
from translator.frameworks.deepspeed.hf_models.parts import (
    EXPERTS,
    NO_WINDOW,
    PRE_NORM,
    activation,
    attention_bias,
    decoder,
    integer,
    rope,
)

_V2 = "models/deepseek_v2/modeling_deepseek_v2.py"
_V3 = "models/deepseek_v3/modeling_deepseek_v3.py"
_COMMON: Mapping[str, Any] = {
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}


def _heads() -> Row:
    def read(config: Config) -> Mapping[str, Any]:
        count = config.get("num_attention_heads")
        return {"heads": count, "kv_heads": count, "head_dim": None, "mla.enabled": True}

    def write(leaves: Leaves) -> Mapping[str, Any]:
        count = leaves.get("heads")
        return {} if count is None else {"num_attention_heads": count, "num_key_value_heads": count}

    keys = ("num_attention_heads", "num_key_value_heads")
    return Row(
        keys, ("heads", "kv_heads", "head_dim", "mla.enabled"), read, write, "latent attention, without grouping"
    )


def _query_rank() -> Row:
    return Row(
        ("q_lora_rank",),
        ("mla.q_rank",),
        lambda config: {"mla.q_rank": config.get("q_lora_rank") or 0},
        lambda leaves: {"q_lora_rank": leaves.get("mla.q_rank") or None},
    )


def _layers() -> Row:
    """The first ``first_k_dense_replace`` layers are dense; the shared experts are as wide as so many routed ones."""

    def read(config: Config) -> Mapping[str, Any]:
        dense = min(integer(config.get("first_k_dense_replace")), integer(config.get("num_hidden_layers")))
        width = integer(config.get("moe_intermediate_size"))
        return {
            "moe.dense_layers": list(range(dense)),
            "moe.ffn": width or None,
            "moe.shared_ffn": width * integer(config.get("n_shared_experts")),
            "ffn": config.get("intermediate_size"),
        }

    def write(leaves: Leaves) -> Mapping[str, Any]:
        dense, width = leaves.get("moe.dense_layers") or [], integer(leaves.get("moe.ffn"))
        if not leaves.get("moe.experts"):
            dense = range(integer(leaves.get("layers")))
        found: dict[str, Any] = {"first_k_dense_replace": len(dense)}
        if width:
            found["moe_intermediate_size"] = width
            found["n_shared_experts"] = integer(leaves.get("moe.shared_ffn")) // width
        if leaves.get("ffn") is not None:
            found["intermediate_size"] = leaves["ffn"]
        return found

    keys = ("first_k_dense_replace", "moe_intermediate_size", "n_shared_experts", "intermediate_size")
    names = ("moe.dense_layers", "moe.ffn", "moe.shared_ffn", "ffn")
    return Row(
        keys, names, read, write, "dense layers come first; shared experts are a multiple of a routed one's width"
    )


def _router(*, score: str, bias: bool, dtype: str) -> tuple[Row, ...]:
    pairs = {
        "n_routed_experts": "moe.experts",
        "num_experts_per_tok": "moe.top_k",
        "routed_scaling_factor": "moe.router_scaling",
        "n_group": "moe.router_groups",
        "topk_group": "moe.router_group_top_k",
        "norm_topk_prob": "moe.router_normalize",
    }

    def read(config: Config) -> Mapping[str, Any]:
        found = {leaf: config.get(key) for key, leaf in pairs.items()}
        grouped = integer(found["moe.router_groups"]) > 1 and config.get("topk_method") not in {"greedy"}
        for leaf in ("moe.router_groups", "moe.router_group_top_k"):
            found[leaf] = (found[leaf] or 0) if grouped else 0
        scaling = found["moe.router_scaling"]
        found["moe.router_scaling"] = 1.0 if scaling is None else float(scaling)
        # modeling_deepseek_v2.py scales and never divides by the sum.
        found["moe.router_normalize"] = bool(found["moe.router_normalize"]) and bias
        return found

    def write(leaves: Leaves) -> Mapping[str, Any]:
        groups = integer(leaves.get("moe.router_groups"))
        found: dict[str, Any] = {
            "n_routed_experts": leaves.get("moe.experts") or 1,
            "num_experts_per_tok": leaves.get("moe.top_k"),
            "routed_scaling_factor": leaves.get("moe.router_scaling") or 1.0,
            "n_group": groups or 1,
            "topk_group": integer(leaves.get("moe.router_group_top_k")) or 1,
            "norm_topk_prob": bool(leaves.get("moe.router_normalize")),
        }
        if not bias:
            found["topk_method"] = "group_limited_greedy" if groups > 1 else "greedy"
        return found

    keys = (*pairs, *(() if bias else ("topk_method",)))
    fixed = {
        **EXPERTS,
        "moe.router_score": score,
        "moe.router_bias": False,
        "moe.router_bias_rate": None,
        "moe.router_dtype": dtype,
        "moe.balancing": ["none"],
        "moe.aux_loss_coefficient": None,
        "moe.expert_bias_linear": False,
    }
    source = _V3 if bias else _V2
    return (Row(keys, tuple(pairs.values()), read, write), *all_fixed(fixed, source))


def _rows(model: str) -> tuple[Row, ...]:
    return (
        *decoder(model),
        _heads(),
        _query_rank(),
        link("kv_lora_rank", "mla.kv_rank"),
        link("qk_nope_head_dim", "mla.qk_nope_dim"),
        link("qk_rope_head_dim", "mla.qk_rope_dim"),
        link("v_head_dim", "mla.v_dim"),
        _layers(),
        rope(latent=True),
        activation("hidden_act", model),
        attention_bias("attention_bias", model),
        *all_fixed({**PRE_NORM, **NO_WINDOW, "bias_linear": False, "qk_norm": "rmsnorm"}, model),
    )


DEEPSEEK_V3 = family(
    "deepseek_v3",
    "DeepseekV3ForCausalLM",
    "models/deepseek_v3/configuration_deepseek_v3.py",
    {
        **_COMMON,
        "vocab_size": 129280,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "n_shared_experts": 1,
        "n_routed_experts": 256,
        "routed_scaling_factor": 2.5,
        "n_group": 8,
        "topk_group": 4,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "norm_topk_prob": True,
        "max_position_embeddings": 4096,
        "rope_interleave": True,
    },
    (
        *_rows(_V3),
        words("rope_interleave", "rope.interleaved", {True: True, False: False}, _V3),
        *_router(score="sigmoid", bias=True, dtype="fp32"),
    ),
)
DEEPSEEK_V2 = family(
    "deepseek_v2",
    "DeepseekV2ForCausalLM",
    "models/deepseek_v2/configuration_deepseek_v2.py",
    {
        **_COMMON,
        "vocab_size": 102400,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "max_position_embeddings": 2048,
        "first_k_dense_replace": 0,
        "n_group": None,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "routed_scaling_factor": 1.0,
        "topk_group": None,
        "topk_method": "greedy",
        "norm_topk_prob": False,
        "num_experts_per_tok": None,
        "moe_intermediate_size": 1407,
    },
    (
        *_rows(_V2),
        *all_fixed({"rope.interleaved": True}, _V2),
        *_router(score="softmax", bias=False, dtype="fp32"),
    ),
)
FAMILIES = (DEEPSEEK_V3, DEEPSEEK_V2)
