"""What ``TransformerConfig`` and the layers refuse of a mixture of experts, and of the graphs over it.

Nothing is derived here. Source: ``megatron/core/transformer/transformer_config.py:1370`` and after, and
``megatron/core/models/gpt/gpt_layer_specs.py:640`` (core 0.18.0).
"""

from __future__ import annotations

from translator.frameworks.megatron.settle.engine import Rules, Settling

EXPERTS = Rules()

# Kinds of load balancing under which tokens may be dropped.
DROPPING = frozenset({"aux_loss", "seq_aux_loss", "global_aux_loss", "none"})


@EXPERTS.rule()
def counts(state: Settling) -> None:
    """Sizes of experts, and layers that have some."""
    count, pattern = state["num_experts"], state["moe_layer_freq"]
    if count is not None and count < 1:
        state.refuse("S107", f"--num-experts is {count}", "num_experts", "give at least 1")
    mixed = (isinstance(pattern, list) and 0 in pattern) or (isinstance(pattern, int) and pattern > 1)
    if count is None and state["moe_ffn_hidden_size"] is not None and not mixed and state.version >= (0, 18):
        state.refuse("S107", "--moe-ffn-hidden-size needs --num-experts", "moe_ffn_hidden_size")
    shared = state["moe_shared_expert_intermediate_size"]
    if shared is not None and shared <= 0:
        message = f"--moe-shared-expert-intermediate-size is {shared}; it is the width of all shared experts together"
        state.refuse("S107", message, "moe_shared_expert_intermediate_size")
    if shared is not None and count is not None and state["add_bias_linear"]:
        message = "shared experts have no biases"
        state.refuse("S107", message, "moe_shared_expert_intermediate_size", "add --disable-bias-linear")
    overlap = shared is not None and state["moe_shared_expert_overlap"]
    if overlap and state["moe_token_dispatcher_type"] not in ("alltoall", "flex"):
        message = "--moe-shared-expert-overlap needs --moe-token-dispatcher-type alltoall or flex"
        state.refuse("S107", message, "moe_shared_expert_overlap")


@EXPERTS.rule()
def layer_pattern(state: Settling) -> None:
    """A pattern of expert layers has an entry for each layer."""
    pattern, layers = state["moe_layer_freq"], state.need("num_layers")
    if state["num_experts"] is None or state["hybrid_layer_pattern"] is not None:
        return
    if isinstance(pattern, list) and (len(pattern) != layers or not set(pattern) <= {0, 1}):
        message = f"--moe-layer-freq has {len(pattern)} entries for {layers} layers"
        if len(pattern) == layers:
            message = "--moe-layer-freq has entries besides 0 (dense) and 1 (experts)"
        state.refuse("S107", message, "moe_layer_freq")


@EXPERTS.rule()
def balancing(state: Settling) -> None:
    """Losses have a coefficient each; tokens are dropped under few of them."""
    kinds, weights = state["moe_router_load_balancing_type"], state["moe_aux_loss_coeff"]
    if isinstance(kinds, list) and (not isinstance(weights, list) or len(weights) != len(kinds)):
        message = f"{len(kinds)} kinds of load balancing need as many --moe-aux-loss-coeff"
        state.refuse("S107", message, "moe_router_load_balancing_type")
    capacity = state["moe_expert_capacity_factor"]
    others = set(kinds if isinstance(kinds, list) else [kinds]) - DROPPING
    if capacity is not None and others and others != {None}:
        message = f"--moe-expert-capacity-factor does not go with {' '.join(sorted(map(str, others)))} load balancing"
        state.refuse("S107", message, "moe_expert_capacity_factor")
    if state["moe_pad_expert_input_to_capacity"] and (capacity is None or capacity < 0):
        message = "--moe-pad-expert-input-to-capacity needs --moe-expert-capacity-factor"
        state.refuse("S107", message, "moe_pad_expert_input_to_capacity")


@EXPERTS.rule()
def routing(state: Settling) -> None:
    """Scores, biases and groups of the router."""
    score, count = state["moe_router_score_function"], state["num_experts"]
    if state["moe_router_enable_expert_bias"] and score not in (None, "sigmoid", "sqrtsoftplus"):
        message = f"--moe-router-enable-expert-bias needs --moe-router-score-function sigmoid, not {score}"
        state.refuse("S107", message, "moe_router_enable_expert_bias")
    chosen, groups = state["moe_router_group_topk"], state["moe_router_num_groups"]
    if not chosen:
        return
    if not groups:
        state.refuse("S107", "--moe-router-group-topk needs --moe-router-num-groups", "moe_router_group_topk")
    elif count is None:
        state.refuse("S107", "--moe-router-group-topk needs --num-experts", "moe_router_group_topk")
    elif count % groups:
        message = f"{count} experts do not divide into {groups} groups"
        state.refuse("S107", message, "moe_router_num_groups")
    elif chosen > groups:
        message = f"--moe-router-group-topk ({chosen}) exceeds --moe-router-num-groups ({groups})"
        state.refuse("S107", message, "moe_router_group_topk")


@EXPERTS.rule()
def dispatch(state: Settling) -> None:
    """Dispatchers and padding that exclude each other."""
    kind = state["moe_token_dispatcher_type"]
    deepep = state.version < (0, 18) or state["config.moe_flex_dispatcher_backend"] == "deepep"
    alone = (state["expert_tensor_parallel_size"] or 1) * (state["expert_model_parallel_size"] or 1) == 1
    flex = kind == "flex" and deepep
    wrong = [
        (
            flex and state["moe_pad_expert_input_to_capacity"],
            "moe_token_dispatcher_type",
            "the flex dispatcher does not go with --moe-pad-expert-input-to-capacity",
        ),
        (
            flex and alone and state["num_experts"],
            "moe_token_dispatcher_type",
            "the flex dispatcher needs expert parallelism, or expert tensor parallelism",
        ),
    ]
    state.refuse_where("S107", wrong)
    if not state["config.moe_router_padding_for_quantization"]:
        return
    option = "moe_router_padding_for_quantization"
    if option not in state.native.given:
        option = "moe_router_padding_for_fp8"
    flag = "--" + option.replace("_", "-")
    wrong = [
        (state["fp8"] is None and state["fp4"] is None, option, f"{flag} needs fp8 or fp4"),
        (kind in ("allgather", "alltoall_seq"), option, f"{flag} does not go with the {kind} dispatcher"),
    ]
    state.refuse_where("S107", wrong)


@EXPERTS.rule()
def sequence_parallelism(state: Settling) -> None:
    """Experts are trained under tensor parallelism with sequence parallelism only (``moe/moe_layer.py:620``).

    Refused in the first forward pass.
    """
    trains = (state["train_iters"] or state["train_samples"]) and not state["skip_train"]
    if state["num_experts"] and trains and state["tensor_model_parallel_size"] > 1 and not state["sequence_parallel"]:
        message = "training experts under tensor parallelism needs --sequence-parallel"
        state.refuse("S107", message, "tensor_model_parallel_size", "add --sequence-parallel")


@EXPERTS.rule(since="0.18", until="0.19")
def grouped(state: Settling) -> None:
    """Weights of experts in one tensor, and capacities per rank."""
    single = state["moe_single_grouped_weight"] or state["moe_single_grouped_bias"]
    option = "moe_single_grouped_weight" if state["moe_single_grouped_weight"] else "moe_single_grouped_bias"
    mxfp8 = state["fp8"] and state["fp8_recipe"] == "mxfp8" and not state["fp4"]
    rank = state["moe_expert_rank_capacity_factor"] is not None
    wrong = [
        (single and not state["moe_grouped_gemm"], option, "grouped weights need --moe-grouped-gemm"),
        (
            state["moe_single_grouped_weight"] and not mxfp8,
            option,
            "--moe-single-grouped-weight needs fp8 with --fp8-recipe mxfp8",
        ),
        (state["moe_single_grouped_bias"] and not state["add_bias_linear"], option, "grouped biases need biases"),
        (
            rank and not state["use_transformer_engine_op_fuser"],
            "moe_expert_rank_capacity_factor",
            "--moe-expert-rank-capacity-factor needs --use-transformer-engine-op-fuser",
        ),
        (
            rank and state["moe_flex_dispatcher_backend"] != "hybridep",
            "moe_expert_rank_capacity_factor",
            "--moe-expert-rank-capacity-factor needs --moe-flex-dispatcher-backend hybridep",
        ),
    ]
    state.refuse_where("S107", wrong)


@EXPERTS.rule(since="0.18")
def graphs(state: Settling) -> None:
    """What a graph of single layers cannot capture."""
    kind, modules = state["cuda_graph_impl"], set(state["cuda_graph_modules"] or ())
    if kind not in ("local", "transformer_engine"):
        return
    if kind == "local" and modules & {"moe_router", "moe_preprocess"}:
        modules |= {"moe_router", "moe_preprocess"}
    count, pattern = state["num_experts"] or 0, state["moe_layer_freq"]
    only_experts = count > 1 and (pattern == 1 or (isinstance(pattern, list) and 0 not in pattern))
    padded = state["config.moe_expert_capacity_factor"] is not None and state["moe_pad_expert_input_to_capacity"]
    wrong = [
        ({"moe", "moe_router"} <= modules, "moe and moe_router exclude each other"),
        ("moe_preprocess" in modules and "moe_router" not in modules, "moe_preprocess needs moe_router"),
        (count <= 1 and modules & {"moe", "moe_router"}, "the model has no experts"),
        (only_experts and "mlp" in modules, "the model has no dense layers for mlp"),
        (count > 1 and not padded and "moe" in modules, "moe needs experts padded to a capacity"),
    ]
    option = "cuda_graph_modules"
    state.refuse_where("S116", [(bad, option, f"--cuda-graph-modules: {what}") for bad, what in wrong])


@EXPERTS.rule(since="0.18")
def graphs_and_recomputation(state: Settling) -> None:
    """Recomputation inside a graph must not draw random numbers, nor take more than the graph."""
    kind, granularity = state["cuda_graph_impl"], state["config.recompute_granularity"]
    if kind in (None, "none") or not granularity:
        return
    if granularity == "full":
        if kind != "full_iteration":
            message = "full recomputation does not go with CUDA graphs of single layers"
            state.refuse("S116", message, "cuda_graph_impl")
        return
    modules, recomputed = set(state["cuda_graph_modules"] or ()), set(state["config.recompute_modules"] or ())
    everything = kind == "full_iteration" or not modules
    attention = (everything or "attn" in modules) and "core_attn" in recomputed
    dense = (everything or "mlp" in modules) and "mlp" in recomputed
    experts = (everything or "moe" in modules) and "moe" in recomputed
    wrong = [
        (
            attention and state["attention_dropout"] != 0.0,
            "recomputing core_attn inside a CUDA graph needs --attention-dropout 0",
        ),
        (
            (dense or experts) and state["hidden_dropout"] != 0.0,
            "recomputing mlp or moe inside a CUDA graph needs --hidden-dropout 0",
        ),
        (
            kind == "transformer_engine" and "moe" in recomputed and "moe_router" in modules,
            "recomputing moe does not go with the module moe_router",
        ),
        (experts and state["moe_input_jitter_eps"] is not None, "recomputing moe needs no --moe-input-jitter-eps"),
    ]
    state.refuse_where("S116", [(bad, "cuda_graph_impl", message) for bad, message in wrong])
