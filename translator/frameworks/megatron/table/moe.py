"""Rows of mixture of experts, latent attention and multi-token prediction (sources of core 0.18.0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.ledger import Entry
from translator.mapping.rows import Row, linked
from translator.mapping.views import NativeView, Sink, SpecView
from translator.spec.limits import MOST_LAYERS

_DIRECT = {
    "moe_router_topk": "top_k",
    "moe_router_bias_update_rate": "router_bias_rate",
    "moe_input_jitter_eps": "router_jitter",
    "moe_z_loss_coeff": "z_loss_coefficient",
    "moe_expert_capacity_factor": "capacity_factor",
    "moe_pad_expert_input_to_capacity": "capacity_padding",
    "moe_token_drop_policy": "drop_policy",
    "moe_apply_probs_on_input": "scores_on_input",
    "moe_token_dispatcher_type": "dispatcher",
    "moe_grouped_gemm": "grouped_gemm",
    "moe_router_score_function": "router_score",
    "moe_router_enable_expert_bias": "router_bias",
    "moe_shared_expert_gate": "shared_gate",
    "moe_ffn_hidden_size": "ffn",
}
_BALANCING = {
    "global_aux_loss": "global_aux_loss",
    "seq_aux_loss": "seq_aux_loss",
    "aux_loss": "aux_loss",
    "sinkhorn": "sinkhorn",
    "none": "none",
}


def _listed(value: Any) -> list[Any] | None:
    if value is None:
        return None
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _read_moe(native: NativeView) -> Mapping[str, Any]:
    experts = native("num_experts")
    if not experts:
        return {"model.moe.experts": None}
    flat: dict[str, Any] = {"model.moe.experts": experts}
    for option, name in _DIRECT.items():
        flat[f"model.moe.{name}"] = native(option)
    flat["model.moe.shared_ffn"] = native("moe_shared_expert_intermediate_size") or 0
    flat["model.moe.shared_gate"] = bool(native("moe_shared_expert_gate"))
    flat["model.moe.dense_layers"] = _dense_layers(native("moe_layer_freq"), native("num_layers"))
    score, top_k = native("moe_router_score_function", "softmax"), native("moe_router_topk")
    flat["model.moe.router_score"] = score
    # moe_utils.py:793: softmax over the chosen logits equals softmax over all, renormalised; sigmoid scores are
    # divided by their sum when more than one is chosen.
    flat["model.moe.router_normalize"] = (
        not native("moe_router_pre_softmax") if score == "softmax" else bool(top_k and top_k > 1)
    )
    flat["model.moe.router_scaling"] = native("moe_router_topk_scaling_factor") or 1.0
    flat["model.moe.router_groups"] = native("moe_router_num_groups") or 0
    flat["model.moe.router_group_top_k"] = native("moe_router_group_topk") or 0
    flat["model.moe.router_bias"] = bool(native("moe_router_enable_expert_bias"))
    flat["model.moe.router_dtype"] = native("moe_router_dtype") or "compute"
    flat["model.moe.scores_on_input"] = bool(native("moe_apply_probs_on_input"))
    flat["model.moe.router_bias_rate"] = (
        native("moe_router_bias_update_rate") if flat["model.moe.router_bias"] else None
    )
    balancing = [
        _BALANCING.get(str(kind), str(kind)) for kind in _listed(native("moe_router_load_balancing_type")) or []
    ]
    coefficients = [float(value) for value in _listed(native("moe_aux_loss_coeff")) or []]
    if not any(coefficients) and all("aux" in kind for kind in balancing):
        balancing, coefficients = ["none"], []
    flat["model.moe.balancing"] = balancing
    flat["model.moe.aux_loss_coefficient"] = coefficients if balancing != ["none"] else None
    flat["model.moe.expert_bias_linear"] = bool(native("add_bias_linear"))
    if flat["model.moe.capacity_factor"] is None:
        flat["model.moe.drop_policy"] = None
        flat["model.moe.capacity_padding"] = None
    return flat


def _dense_layers(freq: Any, layers: Any) -> list[int] | None:
    if not isinstance(layers, int) or layers > MOST_LAYERS:
        return None
    if isinstance(freq, int) and freq > 0:
        return [i for i in range(layers) if i % freq != 0]
    if isinstance(freq, (list, tuple)):
        return [i for i, sparse in enumerate(freq) if not sparse]
    return []


def _write_moe(spec: SpecView, sink: Sink) -> None:
    if not spec("model.moe.experts"):
        return
    sink.put("num_experts", spec("model.moe.experts"))
    for option, name in _DIRECT.items():
        value = spec(f"model.moe.{name}")
        if value is not None and not sink.put(option, value) and value:
            sink.short(f"model.moe.{name}", Entry.UNSUPPORTED, "not an option of this version")
    if spec("model.moe.shared_ffn"):
        sink.put("moe_shared_expert_intermediate_size", spec("model.moe.shared_ffn"))
    _write_frequency(spec, sink)
    _write_router(spec, sink)
    balancing = spec("model.moe.balancing")
    if balancing == ["none"]:
        sink.put("moe_router_load_balancing_type", ["none"] if _takes_list(sink) else "none")
    elif balancing:
        _write_balancing(spec, sink, balancing)
    biased = spec("model.moe.expert_bias_linear")
    if biased is not None and biased != bool(spec("model.bias_linear")):
        sink.short(
            "model.moe.expert_bias_linear", Entry.UNSUPPORTED, "experts have biases exactly when other linears do"
        )


def _write_balancing(spec: SpecView, sink: Sink, balancing: list[str]) -> None:
    coefficients = spec("model.moe.aux_loss_coefficient")
    one = not _takes_list(sink)
    if not sink.put("moe_router_load_balancing_type", balancing[0] if one else balancing):
        why = f"no balancing loss {', '.join(balancing)} in this version"
        sink.put("moe_router_load_balancing_type", "none" if one else ["none"])
        coefficients = None
    elif one and len(balancing) > 1:
        why = f"one balancing loss in this version; {balancing[0]} is written"
    else:
        why = ""
    if why:
        sink.short("model.moe.balancing", Entry.UNSUPPORTED, why)
        sink.short("model.moe.aux_loss_coefficient", Entry.UNSUPPORTED, why)
    if coefficients:
        sink.put("moe_aux_loss_coeff", coefficients[0] if one else coefficients)


def _takes_list(sink: Sink) -> bool:
    """Several balancing losses at once came with core 0.14."""
    return sink.version != "0.12.0"


def _write_frequency(spec: SpecView, sink: Sink) -> None:
    dense, layers = spec("model.moe.dense_layers"), spec("model.layers")
    if not dense or not layers:
        return
    sparse = [i for i in range(layers) if i not in dense]
    for freq in range(2, layers + 1):
        if sparse == list(range(0, layers, freq)):
            sink.put("moe_layer_freq", freq)
            return
    sink.put("moe_layer_freq", [0 if i in dense else 1 for i in range(layers)])


def _write_router(spec: SpecView, sink: Sink) -> None:
    score, normalize, top_k = (
        spec("model.moe.router_score"),
        spec("model.moe.router_normalize"),
        spec("model.moe.top_k"),
    )
    if score == "softmax":
        # TC:1490: one expert with its weight normalised would always have weight 1, which is refused.
        alone = top_k == 1 and spec("model.moe.balancing") != ["sinkhorn"]
        sink.put("moe_router_pre_softmax", normalize is False or alone)
        if normalize and alone:
            why = "the weight of a single expert is not normalised: it would always be 1"
            sink.short("model.moe.router_normalize", Entry.UNSUPPORTED, why)
    elif score is not None and normalize is not None and normalize != bool(top_k and top_k > 1):
        sink.short(
            "model.moe.router_normalize",
            Entry.UNSUPPORTED,
            f"{score} scores are divided by their sum exactly when more than one expert is chosen",
        )
    scaling = spec("model.moe.router_scaling")
    if scaling not in (None, 1.0):
        sink.put("moe_router_topk_scaling_factor", scaling)
    for name, option in (("router_groups", "moe_router_num_groups"), ("router_group_top_k", "moe_router_group_topk")):
        if spec(f"model.moe.{name}"):
            sink.put(option, spec(f"model.moe.{name}"))
    dtype = spec("model.moe.router_dtype")
    if dtype in ("fp32", "fp64"):
        sink.put("moe_router_dtype", dtype)


_MOE_OPTIONS = (
    "num_experts", *_DIRECT, "moe_shared_expert_intermediate_size", "moe_layer_freq", "moe_router_pre_softmax",
    "moe_router_topk_scaling_factor", "moe_router_num_groups", "moe_router_group_topk", "moe_router_dtype",
    "moe_router_load_balancing_type", "moe_aux_loss_coeff",
)  # fmt: skip
_MOE_FIELDS = (
    "experts", *_DIRECT.values(), "shared_ffn", "dense_layers", "router_normalize", "router_scaling", "router_groups",
    "router_group_top_k", "router_dtype", "balancing", "aux_loss_coefficient", "expert_bias_linear",
)  # fmt: skip
_MOE_INFLUENCES = {
    "num_experts": ("model.moe.experts", "model.moe.expert_bias_linear"),
    **{option: (f"model.moe.{name}",) for option, name in _DIRECT.items()},
    "moe_router_score_function": ("model.moe.router_score", "model.moe.router_normalize"),
    "moe_shared_expert_intermediate_size": ("model.moe.shared_ffn",),
    "moe_layer_freq": ("model.moe.dense_layers",),
    "moe_router_pre_softmax": ("model.moe.router_normalize",),
    "moe_router_topk_scaling_factor": ("model.moe.router_scaling",),
    "moe_router_num_groups": ("model.moe.router_groups",),
    "moe_router_group_topk": ("model.moe.router_group_top_k",),
    "moe_router_dtype": ("model.moe.router_dtype",),
    "moe_router_load_balancing_type": ("model.moe.balancing",),
    "moe_aux_loss_coeff": ("model.moe.aux_loss_coefficient", "model.moe.balancing"),
}

_MLA = {
    "q_lora_rank": "q_rank",
    "kv_lora_rank": "kv_rank",
    "qk_head_dim": "qk_nope_dim",
    "qk_pos_emb_head_dim": "qk_rope_dim",
    "v_head_dim": "v_dim",
    "mscale": "mscale",
    "mscale_all_dim": "mscale_all_dim",
}


def stretches(native: NativeView) -> bool:
    """Whether the yarn of latent attention does anything.

    With a factor of 1 all frequencies and scales are those without it
    (``core/models/common/embeddings/yarn_rotary_pos_embedding.py:79-88, :253`` at 0.18.0).
    """
    return bool(native("rope_type") != "rope" and native("rotary_scaling_factor", 40.0) != 1)


def _read_mla(native: NativeView) -> Mapping[str, Any]:
    if not native("multi_latent_attention"):
        return {"model.mla.enabled": False}
    flat: dict[str, Any] = {"model.mla.enabled": True}
    for option, name in _MLA.items():
        flat[f"model.mla.{name}"] = native(option)
    flat["model.mla.q_rank"] = native("q_lora_rank") or 0
    if not stretches(native):
        flat["model.mla.mscale"] = flat["model.mla.mscale_all_dim"] = None
    return flat


def _write_mla(spec: SpecView, sink: Sink) -> None:
    if not spec("model.mla.enabled"):
        return
    sink.put("multi_latent_attention", True)
    for option, name in _MLA.items():
        value = spec(f"model.mla.{name}")
        if value is not None and not (name == "q_rank" and not value):
            sink.put(option, value)


def _read_mtp(native: NativeView) -> Mapping[str, Any]:
    layers = native("mtp_num_layers") or 0
    return {"model.mtp.layers": layers, "model.mtp.loss_scaling": native("mtp_loss_scaling_factor") if layers else None}


def _write_mtp(spec: SpecView, sink: Sink) -> None:
    layers = spec("model.mtp.layers")
    if not layers:
        return
    if sink.get("position_embedding_type") == "yarn":
        why = "multi-token prediction does not go with yarn positions"
        sink.short("model.mtp.layers", Entry.UNSUPPORTED, why)
        sink.short("model.mtp.loss_scaling", Entry.UNSUPPORTED, why)
        return
    if not sink.put("mtp_num_layers", layers):
        sink.short("model.mtp.loss_scaling", Entry.UNSUPPORTED, "this version has no multi-token prediction")
        sink.short("model.mtp.layers", Entry.UNSUPPORTED, "this version has no multi-token prediction")
        return
    if spec("model.mtp.loss_scaling") is not None:
        sink.put("mtp_loss_scaling_factor", spec("model.mtp.loss_scaling"))


ROWS: tuple[Row, ...] = (
    linked(
        _MOE_OPTIONS,
        tuple(f"model.moe.{name}" for name in _MOE_FIELDS),
        read=_read_moe,
        write=_write_moe,
        influences=_MOE_INFLUENCES,
    ),
    linked(
        ("multi_latent_attention", *_MLA),
        ("model.mla.enabled", *(f"model.mla.{name}" for name in _MLA.values())),
        read=_read_mla,
        write=_write_mla,
        influences={
            "multi_latent_attention": ("model.mla.enabled",),
            **{option: (f"model.mla.{name}",) for option, name in _MLA.items()},
        },
    ),
    linked(
        ("mtp_num_layers", "mtp_loss_scaling_factor"),
        ("model.mtp.layers", "model.mtp.loss_scaling"),
        read=_read_mtp,
        write=_write_mtp,
        influences={
            "mtp_num_layers": ("model.mtp.layers",),
            "mtp_loss_scaling_factor": ("model.mtp.loss_scaling",),
        },
    ),
)
