"""What ``TransformerConfig`` makes of the settled arguments.

The argument namespace keeps what ``validate_args`` left there; the model is built from a ``TransformerConfig``, which
is changed once more. Where it differs from the argument of the same name, or has no argument, its value stands under
``config.<field>``. Source: ``core_transformer_config_from_args``, ``megatron/training/argument_utils.py:272``, and
``TransformerConfig.__post_init__``, ``megatron/core/transformer/transformer_config.py:1166`` (core 0.18.0).
"""

from __future__ import annotations

from translator.frameworks.megatron.settle.engine import TRANSFORMER_CONFIG, Rules, Settling, because
from translator.frameworks.megatron.settle.layout import layers_per_stage, parse_layout

CONFIG = Rules()
FROM_ARGS = "megatron/training/argument_utils.py"
PARALLEL_CONFIG = "megatron/core/model_parallel_config.py"


def _reason(text: str, line: int) -> str:
    return because(text, line, TRANSFORMER_CONFIG)


@CONFIG.rule("config.num_query_groups")
def query_groups(state: Settling) -> None:
    """Grouped query attention needs its switch; without it there are as many groups as heads."""
    heads, tensor = state.need("num_attention_heads"), state.need("tensor_model_parallel_size")
    groups = state["num_query_groups"] if state["group_query_attention"] else heads
    if groups is None:
        groups = heads
    state.field("num_query_groups", groups, because("all heads unless --group-query-attention", 325, FROM_ARGS))
    if heads % tensor:
        message = f"{heads} attention heads do not divide over the tensor parallel size ({tensor})"
        state.refuse("S106", message, "num_attention_heads")
    elif groups % tensor and tensor % groups:
        message = f"{groups} query groups are neither multiple nor divisor of the tensor parallel size ({tensor})"
        state.refuse("S106", message, "num_query_groups")


@CONFIG.rule("config.activation_func", "config.gated_linear_unit", "config.bias_activation_fusion")
def activation(state: Settling) -> None:
    """Three switches name the activation."""
    kind, gated = "gelu", False
    fusion = state["bias_swiglu_fusion"] if state["swiglu"] else state["bias_gelu_fusion"]
    if state["swiglu"]:
        kind, gated = "silu", True
    if state["squared_relu"]:
        kind = "squared_relu"
    elif state["quick_geglu"]:
        kind, gated = "quick_gelu", True
    reason = because("from the activation switches", 309, FROM_ARGS)
    state.field("activation_func", kind, reason)
    state.field("gated_linear_unit", gated, reason)
    state.field("bias_activation_fusion", fusion, reason)


@CONFIG.rule("config.pipeline_dtype", "config.batch_p2p_comm", "config.persist_layer_norm", "config.cp_comm_type")
def renamed(state: Settling) -> None:
    """Fields that stand for an argument of another name."""
    reason = because("from the arguments", 299, FROM_ARGS)
    residual = state["fp32_residual_connection"] and state.version >= (0, 17)
    dtype = "torch.float32" if residual else state["params_dtype"]
    state.field("pipeline_dtype", dtype, reason)
    state.field("batch_p2p_comm", not state["overlap_p2p_comm"], reason)
    state.field("persist_layer_norm", not state["no_persist_layer_norm"], reason)
    kinds = state["cp_comm_type"]
    state.field("cp_comm_type", kinds[0] if isinstance(kinds, list) and len(kinds) == 1 else kinds, reason)


@CONFIG.rule("config.rope_type")
def rope_type(state: Settling) -> None:
    """Multi-latent attention scales its rotary embeddings by YaRN unless told otherwise."""
    kind = state["rope_type"]
    if kind is None:
        kind = "yarn" if state["multi_latent_attention"] else "rope"
    elif kind != "rope" and not state["multi_latent_attention"]:
        state.refuse("S121", f"--rope-type {kind} needs --multi-latent-attention", "rope_type")
    state.field("rope_type", kind, _reason("the default of the attention", 2598))


@CONFIG.rule("config.microbatch_group_size_per_vp_stage")
def group_size(state: Settling) -> None:
    """Micro batches that go through a virtual stage in a row."""
    value = state["microbatch_group_size_per_vp_stage"]
    if value is None:
        value = state.need("pipeline_model_parallel_size")
    reason = because("the pipeline parallel size", 454, PARALLEL_CONFIG)
    state.field("microbatch_group_size_per_vp_stage", value, reason)


@CONFIG.rule("config.recompute_granularity", "config.recompute_modules")
def recompute(state: Settling) -> None:
    """Which modules selective recomputation takes, and what full needs."""
    granularity, modules = state["recompute_granularity"], state["recompute_modules"]
    modules = ["core_attn"] if modules is None else list(modules)
    if state["moe_layer_recompute"]:
        if granularity == "full":
            message = "--moe-layer-recompute does not go with full recomputation"
            state.refuse("S108", message, "moe_layer_recompute")
        granularity = "selective"
        if "moe" not in modules:
            modules.append("moe")
    state.field("recompute_granularity", granularity, _reason("--moe-layer-recompute", 1645))
    state.field("recompute_modules", modules, _reason("core attention unless told otherwise", 1584))
    if granularity == "full" and state["recompute_method"] is None:
        message = "full recomputation needs --recompute-method (uniform or block)"
        state.refuse("S108", message, "recompute_granularity", "add --recompute-method uniform")
    if granularity == "full" and state["recompute_num_layers"] is None:
        message = "full recomputation needs --recompute-num-layers"
        state.refuse("S108", message, "recompute_granularity", "add --recompute-num-layers 1")
    if granularity == "selective" and state["recompute_num_layers"] is not None:
        state.refuse("S108", "selective recomputation takes no --recompute-num-layers", "recompute_num_layers")
    if state["distribute_saved_activations"] and state["sequence_parallel"]:
        message = "--distribute-saved-activations does not go with sequence parallelism"
        state.refuse("S108", message, "distribute_saved_activations")


@CONFIG.rule("config.moe_expert_capacity_factor", "config.moe_router_padding_for_quantization")
def experts(state: Settling) -> None:
    """A negative capacity is none; fp8 padding is the old name of quantisation padding."""
    factor = state["moe_expert_capacity_factor"]
    factor = None if factor is not None and factor < 0 else factor
    state.field("moe_expert_capacity_factor", factor, _reason("a negative factor is none", 1485))
    padding = bool(state["moe_router_padding_for_quantization"] or state["moe_router_padding_for_fp8"])
    reason = _reason("--moe-router-padding-for-fp8 is its old spelling", 2090)
    state.field("moe_router_padding_for_quantization", padding, reason)
    single = state["moe_router_topk"] == 1 and not state["moe_router_pre_softmax"]
    softmax = state["moe_router_score_function"] in (None, "softmax")
    if single and softmax and state["moe_router_load_balancing_type"] != "sinkhorn":
        state.refuse("S107", "top-1 routing needs --moe-router-pre-softmax", "moe_router_topk")
    if state["num_experts"] is None:
        return
    if state["add_bias_linear"] and state["expert_tensor_parallel_size"] != 1:
        message = (
            f"experts with biases need an expert tensor parallel size of 1, not {state['expert_tensor_parallel_size']}"
        )
        state.refuse("S107", message, "num_experts", "add --disable-bias-linear")


@CONFIG.rule("config.moe_flex_dispatcher_backend", since="0.16")
def dispatcher(state: Settling) -> None:
    """DeepEP by its old switch."""
    backend = "deepep" if state["moe_enable_deepep"] else state["moe_flex_dispatcher_backend"]
    state.field("moe_flex_dispatcher_backend", backend, _reason("--moe-enable-deepep is its old spelling", 1445))
    if state["moe_enable_deepep"] and state["moe_token_dispatcher_type"] != "flex":
        state.refuse("S107", "--moe-enable-deepep needs --moe-token-dispatcher-type flex", "moe_enable_deepep")


@CONFIG.rule("config.no_rope_freq", since="0.14")
def no_rope(state: Settling) -> None:
    """A ratio becomes one entry per layer."""
    ratio, layers = state["no_rope_freq"], state.need("num_layers")
    if isinstance(ratio, int) and 0 < ratio <= layers <= 100_000:
        ratio = ([0] * (ratio - 1) + [1]) * (layers // ratio)
    state.field("no_rope_freq", ratio, _reason("the ratio, layer by layer", 2528))


@CONFIG.rule("config.embedding_init_method_std", since="0.15")
def embedding_init(state: Settling) -> None:
    """Embeddings start as wide as the rest."""
    std = state["embedding_init_method_std"]
    std = state["init_method_std"] if std is None else std
    state.field("embedding_init_method_std", std, _reason("--init-method-std", 2016))


@CONFIG.rule(
    "config.softmax_scale",
    "config.mup_base_hidden_size",
    "config.mup_width_mult",
    "config.mup_output_mult",
    since="0.17",
)
def width_transfer(state: Settling) -> None:
    """Maximal update parametrisation scales attention, logits and initial widths."""
    if not state["use_mup"]:
        return
    hidden, base = state.need("hidden_size"), state["mup_base_hidden_size"]
    base = hidden if base is None else base
    width = hidden / base
    state.field("mup_base_hidden_size", base, _reason("the hidden size", 1976))
    state.field("mup_width_mult", width, _reason("hidden size / base hidden size", 1979))
    scale = state["softmax_scale"]
    if scale is None:
        head = state["mup_base_head_dim"]
        power = state["mup_attn_scale_power"]
        scale = (1.0 if head is None else head**0.5) / (state.need("kv_channels") ** (1.0 if power is None else power))
    state.field("softmax_scale", scale, _reason("1 / head dimension", 1986))
    factor = state["mup_output_mult"]
    if factor == 1.0 and width != 1.0:
        factor = 1.0 / width
    state.field("mup_output_mult", factor, _reason("1 / width", 1991))


@CONFIG.rule("layers_per_stage")
def stages(state: Settling) -> None:
    """Whether the layers can be split as the options say."""
    for address in ("num_layers", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size"):
        if state[address] is None and address != "virtual_pipeline_model_parallel_size":
            return
    uneven = (
        state["decoder_first_pipeline_num_layers"] is not None or state["decoder_last_pipeline_num_layers"] is not None
    )
    counted = state["account_for_embedding_in_pipeline_split"] or state["account_for_loss_in_pipeline_split"]
    layout = state["pipeline_model_parallel_layout"]
    if (uneven and counted) or (layout is not None and (uneven or counted)):
        message = "first and last stage, counted embedding or loss, and a layout exclude each other"
        state.refuse("S102", message, "pipeline_model_parallel_layout" if layout is not None else None)
    for address in ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"):
        count = state[address]
        if layout is None and count is not None and count < 1:
            state.refuse("S102", f"--{address.replace('_', '-')} is {count}", address, "give at least 1")
    split = layers_per_stage(state.values)
    known = any(finding.code in ("S102", "S103", "S113", "S117") for finding in state.native.findings)
    if not split and not known:
        message = f"{state['num_layers']} layers cannot be split over the pipeline stages as stated"
        state.refuse("S102", message, "pipeline_model_parallel_size")
    total = sum(sum(rank) for rank in split)
    if split and layout is not None:
        if total != state["num_layers"]:
            message = f"the layout has {total} decoder layers, --num-layers says {state['num_layers']}"
            state.refuse("S102", message, "pipeline_model_parallel_layout")
        _check_layout(state, parse_layout(layout))


def _check_layout(state: Settling, stages: list[str]) -> None:
    """Where embedding, prediction and loss may stand (``pipeline_parallel_layer_layout.py:85``, core 0.18.0)."""
    flat, depth = "".join(stages), state["mtp_num_layers"] or 0
    pipeline, predicting = state["pipeline_model_parallel_size"], [stage for stage in stages if "m" in stage]
    early = stages[:-pipeline] if len(stages) > pipeline else []
    wrong = [
        (not flat.startswith("E") or flat.count("E") != 1, "begins with the embedding (E), which stands once"),
        (not flat.endswith("L") or flat.count("L") != 1, "ends with the loss (L), which stands once"),
        (flat.count("m") != depth, f"has as many m as --mtp-num-layers says ({depth})"),
        ("t" in flat.partition("m")[2], "has no decoder layer (t) after multi-token prediction (m)"),
        (len(predicting) > 1 or any("m" in stage for stage in early), "has all m on one of the last stages"),
    ]
    for bad, rule in wrong:
        if bad:
            state.refuse("S102", f"a pipeline layout {rule}", "pipeline_model_parallel_layout")
