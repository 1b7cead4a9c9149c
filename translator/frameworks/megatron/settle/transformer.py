"""What ``TransformerConfig`` refuses of attention, activation, numbers and overlaps.

Nothing is derived here. Source: ``megatron/core/transformer/transformer_config.py:1166`` with
``megatron/core/model_parallel_config.py:410``, and ``core_transformer_config_from_args``,
``megatron/training/argument_utils.py:272`` (core 0.18.0). A rule holds from the first version that has the check.
"""

from __future__ import annotations

from translator.frameworks.megatron.settle.engine import Rules, Settling

TRANSFORMER = Rules()

SELECTIVE_MODULES = frozenset({"core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"})
OFFLOAD_MODULES = frozenset({"core_attn", "attn_proj", "expert_fc1", "moe_act", "attn_norm", "mlp_norm", "qkv_linear"})
DELTA_NET = (
    "linear_attention_freq",
    "linear_conv_kernel_dim",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_num_key_heads",
    "linear_num_value_heads",
)


@TRANSFORMER.rule()
def activation(state: Settling) -> None:
    """One activation, and a fused kernel that exists for it."""
    swiglu, relu, geglu = state["swiglu"], state["squared_relu"], state["quick_geglu"]
    if swiglu and (relu or geglu):
        other = "squared_relu" if relu else "quick_geglu"
        state.refuse("S124", f"--swiglu and --{other.replace('_', '-')} exclude each other", other)
        return
    fused = state["bias_swiglu_fusion"] if swiglu else state["bias_gelu_fusion"]
    engine = state["use_te_activation_func"]
    if fused:
        wrong = [
            (relu, "squared_relu", "--squared-relu has no fused kernel; add --no-bias-gelu-fusion"),
            (
                engine,
                "use_te_activation_func",
                "--use-te-activation-func does not go with the fused activation; add "
                + ("--no-bias-swiglu-fusion" if swiglu else "--no-bias-gelu-fusion"),
            ),
            (
                state["glu_linear_offset"] and (not geglu or relu),
                "glu_linear_offset",
                "--glu-linear-offset needs --quick-geglu, or no fused activation",
            ),
        ]
        state.refuse_where("S124", wrong)
    elif engine and (relu or geglu):
        state.refuse("S124", "TransformerEngine has no such activation", "use_te_activation_func")


@TRANSFORMER.rule()
def attention(state: Settling) -> None:
    """Rotary embeddings, latent attention and kernels that exclude each other."""
    latent = state["multi_latent_attention"]
    fused = state["apply_rope_fusion"]
    wrong = [
        (latent and state["rotary_interleaved"], "rotary_interleaved", "--rotary-interleaved needs plain attention"),
        (
            latent and fused and state["rope_type"] == "rope",
            "rope_type",
            "latent attention with --rope-type rope needs --no-rope-fusion",
        ),
        (
            latent and state["attention_output_gate"],
            "attention_output_gate",
            "--attention-output-gate needs plain attention",
        ),
        (
            latent and fused and state["cache_mla_latents"],
            "cache_mla_latents",
            "--cache-mla-latents needs --no-rope-fusion",
        ),
        (
            state["batch_invariant_mode"] and state["attention_backend"] != "flash",
            "batch_invariant_mode",
            "--batch-invariant-mode needs --attention-backend flash",
        ),
        (
            state["fused_residual_rmsnorm"] and state["normalization"] != "RMSNorm",
            "fused_residual_rmsnorm",
            "--fused-residual-rmsnorm needs --normalization RMSNorm",
        ),
    ]
    state.refuse_where("S124", wrong)


@TRANSFORMER.rule(since="0.16", until="0.19")
def sparse_attention(state: Settling) -> None:
    """Sparse attention excludes context parallelism and the fused rope."""
    if state["experimental_attention_variant"] == "dsa":
        wrong = [
            (
                state["context_parallel_size"] > 1,
                "context_parallel_size",
                "sparse attention needs no context parallelism",
            ),
            (state["apply_rope_fusion"], "experimental_attention_variant", "sparse attention needs --no-rope-fusion"),
        ]
        state.refuse_where("S124", wrong)


@TRANSFORMER.rule(since="0.17")
def delta_net(state: Settling) -> None:
    """Gated delta nets need all their sizes."""
    if state["experimental_attention_variant"] != "gated_delta_net":
        return
    for address in DELTA_NET:
        if state[address] is None:
            flag = "--" + address.replace("_", "-")
            state.refuse("S124", f"gated delta nets need {flag}", "experimental_attention_variant", f"give {flag}")
    keys, ranks = state.need("linear_num_key_heads"), state["tensor_model_parallel_size"]
    ranks *= state["context_parallel_size"]
    for address in ("linear_num_key_heads", "linear_num_value_heads"):
        heads = state.need(address)
        if heads % ranks:
            state.refuse("S106", f"{heads} linear attention heads do not divide over {ranks} ranks", address)
    if state.need("linear_num_value_heads") % keys:
        state.refuse("S106", "the linear value heads are no multiple of the key heads", "linear_num_value_heads")


@TRANSFORMER.rule(since="0.14")
def no_rope(state: Settling) -> None:
    """Layers without positions: a ratio that divides the layers, or an entry for each."""
    ratio, layers = state["no_rope_freq"], state.need("num_layers")
    if not ratio:
        return
    if state["flash_decode"]:
        state.refuse("S121", "--flash-decode does not go with --no-rope-freq", "no_rope_freq")
    if isinstance(ratio, int) and layers % ratio:
        state.refuse("S121", f"--no-rope-freq ({ratio}) does not divide the {layers} layers", "no_rope_freq")
    if isinstance(ratio, list) and len(ratio) != layers:
        message = f"--no-rope-freq has {len(ratio)} entries for {layers} layers"
        state.refuse("S121", message, "no_rope_freq")


@TRANSFORMER.rule()
def context_kinds(state: Settling) -> None:
    """A kind of context communication for all layers, or one for each."""
    kinds = state["cp_comm_type"]
    if (
        state["context_parallel_size"] > 1
        and isinstance(kinds, list)
        and len(kinds) not in (1, state.need("num_layers"))
    ):
        message = f"--cp-comm-type has {len(kinds)} entries for {state['num_layers']} layers"
        state.refuse("S104", message, "cp_comm_type")


@TRANSFORMER.rule(since="0.14")
def quantization(state: Settling) -> None:
    """What fp8 and fp4 recipes need."""
    fp8, recipe = state["fp8"], state["fp8_recipe"]
    custom = "custom"
    wrong = [
        (state["fp8_param_gather"] and not fp8, "fp8_param_gather", "--fp8-param-gather needs --fp8-format"),
        (state["fp8_output_proj"] and not fp8, "fp8_output_proj", "--fp8-output-proj needs --fp8-format"),
        (
            state["fp8_output_proj"] and fp8 and recipe != "mxfp8",
            "fp8_output_proj",
            "--fp8-output-proj needs --fp8-recipe mxfp8",
        ),
        (
            fp8 and recipe == custom and not state["fp8_quantizer_factory"],
            "fp8_recipe",
            "--fp8-recipe custom needs --fp8-quantizer-factory",
        ),
        (
            state["fp4"] and state["fp4_recipe"] == custom and not state["fp4_quantizer_factory"],
            "fp4_recipe",
            "--fp4-recipe custom needs --fp4-quantizer-factory",
        ),
    ]
    state.refuse_where("S105", wrong)


@TRANSFORMER.rule()
def bf16_ends(state: Settling) -> None:
    """First and last layers in bf16: not with delayed scaling, and not more than a stage has."""
    if not (state["fp8"] and state["first_last_layers_bf16"]):
        return
    if state["fp8_recipe"] == "delayed":
        message = "--first-last-layers-bf16 does not go with --fp8-recipe delayed, the default"
        state.refuse("S105", message, "first_last_layers_bf16", "use --fp8-recipe tensorwise")
    most = state.need("num_layers") // state["pipeline_model_parallel_size"]
    for address in ("num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16"):
        count = state.need(address)
        if not 0 <= count <= most:
            flag = "--" + address.replace("_", "-")
            state.refuse("S105", f"{flag} ({count}) is not between 0 and the layers of a stage ({most})", address)


@TRANSFORMER.rule()
def recompute_modules(state: Settling) -> None:
    """Modules that selective recomputation knows and the model has."""
    if state["config.recompute_granularity"] != "selective":
        return
    modules = state["config.recompute_modules"] or []
    known = SELECTIVE_MODULES | ({"gdn_norm_out"} if state.version >= (0, 19) else set())
    unknown = sorted(set(modules) - known)
    delayed = state["fp8"] and state["fp8_recipe"] == "delayed" and state.version >= (0, 14)
    wrong = [
        (unknown, f"unknown --recompute-modules {' '.join(unknown)}; known are {' '.join(sorted(known))}"),
        ("moe_act" in modules and not state["moe_grouped_gemm"], "recomputing moe_act needs --moe-grouped-gemm"),
        (
            "mla_up_proj" in modules and not state["multi_latent_attention"],
            "recomputing mla_up_proj needs --multi-latent-attention",
        ),
        (
            "shared_experts" in modules
            and state["moe_shared_expert_intermediate_size"] is not None
            and state["moe_shared_expert_overlap"],
            "recomputing shared_experts does not go with --moe-shared-expert-overlap",
        ),
        (
            delayed and {"moe_act", "layernorm"} & set(modules),
            "recomputing moe_act or layernorm does not go with --fp8-recipe delayed",
        ),
    ]
    # The old switch for the experts is looked at after the modules have been.
    given = state["recompute_granularity"] == "selective"
    state.refuse_where("S108", [(holds and given, "recompute_modules", message) for holds, message in wrong])


@TRANSFORMER.rule()
def offloading(state: Settling) -> None:
    """Activations on the CPU: fewer than all layers, no pipeline, no recomputation."""
    count = state["cpu_offloading_num_layers"] or 0
    if state.version < (0, 16) or count <= 0:
        return
    option = "cpu_offloading_num_layers"
    layers, graphs = state.need("num_layers"), state["cuda_graph_impl"]
    wrong = [
        (
            count >= layers,
            option,
            f"--cpu-offloading-num-layers ({count}) is not below the number of layers ({layers})",
        ),
        (
            state["pipeline_model_parallel_size"] > 1,
            option,
            "--cpu-offloading-num-layers does not go with pipeline parallelism",
        ),
        (
            state["recompute_granularity"] is not None,
            option,
            "--cpu-offloading-num-layers does not go with activation recomputation",
        ),
        (
            graphs not in (None, "none", "full_iteration"),
            option,
            "--cpu-offloading-num-layers does not go with CUDA graphs of layers",
        ),
    ]
    state.refuse_where("S126", wrong)


@TRANSFORMER.rule(since="0.16")
def fine_offloading(state: Settling) -> None:
    """Modules whose activations go to the CPU."""
    if not state["fine_grained_activation_offloading"]:
        return
    option, modules = "fine_grained_activation_offloading", state["offload_modules"] or []
    known = OFFLOAD_MODULES | ({"fused_group_mlp"} if state.version >= (0, 19) else set())
    unknown = sorted(set(modules) - known)
    wrong = [
        (state["transformer_impl"] != "transformer_engine", option, "it needs --transformer-impl transformer_engine"),
        ((state["cpu_offloading_num_layers"] or 0) > 0, option, "it does not go with --cpu-offloading-num-layers"),
        (not modules, option, "it needs --offload-modules"),
        (unknown, "offload_modules", f"unknown --offload-modules {' '.join(unknown)}"),
        (
            "attn_proj" in modules and "core_attn" not in modules,
            "offload_modules",
            "--offload-modules attn_proj needs core_attn, whose output it reads",
        ),
        (
            state["cuda_graph_impl"] == "local" and state.version >= (0, 18),
            option,
            "it does not go with --cuda-graph-impl local",
        ),
    ]
    state.refuse_where("S126", [(bad, at, f"fine-grained offloading: {message}") for bad, at, message in wrong])


@TRANSFORMER.rule()
def pipeline_overlaps(state: Settling) -> None:
    """Weight gradients and warm-up that overlap with the pipeline's communication."""
    option = "defer_embedding_wgrad_compute"
    if state[option]:
        wrong = [
            (state["pipeline_model_parallel_size"] == 1, option, "--defer-embedding-wgrad-compute needs a pipeline"),
            (
                not state["gradient_accumulation_fusion"],
                option,
                "--defer-embedding-wgrad-compute needs gradient accumulation fusion",
            ),
        ]
        state.refuse_where("S129", wrong)
    if state["overlap_p2p_comm_warmup_flush"] and not state["overlap_p2p_comm"]:
        message = "overlap in warm-up and flush needs p2p overlap, which an interleaved pipeline has"
        state.refuse("S129", message, "overlap_p2p_comm_warmup_flush")


@TRANSFORMER.rule(since="0.14")
def expert_overlaps(state: Settling) -> None:
    """Communication of experts behind computation."""
    option = "overlap_moe_expert_parallel_comm"
    if not state[option]:
        wrong = [
            (state["delay_wgrad_compute"], "delay_wgrad_compute"),
            (state["ep_overlap_early_attn_memory_release"], "ep_overlap_early_attn_memory_release"),
        ]
        for bad, address in wrong:
            if bad:
                flag = "--" + address.replace("_", "-")
                state.refuse("S129", f"{flag} needs --overlap-moe-expert-parallel-comm", address)
        return
    pipeline, virtual = state["pipeline_model_parallel_size"], state["virtual_pipeline_model_parallel_size"]
    modules = state["config.recompute_modules"] or []
    depth = state["mtp_num_layers"]
    needs = [
        (pipeline > 1 and virtual is None, "virtual pipeline stages"),
        (state["expert_model_parallel_size"] <= 1, "expert parallelism"),
        (
            state["moe_token_dispatcher_type"] not in ("alltoall", "flex"),
            "--moe-token-dispatcher-type alltoall or flex",
        ),
        (state["recompute_granularity"] == "full", "no full recomputation"),
        (state["recompute_method"] is not None, "no --recompute-method"),
        (state["recompute_num_layers"] is not None, "no --recompute-num-layers"),
        ("moe" in modules, "no recomputation of moe"),
        (not (state["bf16"] or state["fp16"]), "--bf16 or --fp16"),
        (state["moe_shared_expert_overlap"], "no --moe-shared-expert-overlap"),
        (depth is not None and depth != 1, "at most one layer of multi-token prediction"),
    ]
    message = "--overlap-moe-expert-parallel-comm needs "
    state.refuse_where("S129", [(bad, option, message + what) for bad, what in needs])


@TRANSFORMER.rule(since="0.18")
def inference_layers(state: Settling) -> None:
    """Layers made for inference have few forms."""
    if state["transformer_impl"] != "inference_optimized":
        return
    forms = [
        (state["normalization"] != "RMSNorm", "LayerNorm"),
        (state["layernorm_zero_centered_gamma"], "--apply-layernorm-1p"),
        (state["add_bias_linear"], "biases; add --disable-bias-linear"),
        (state["add_qkv_bias"], "--add-qkv-bias"),
        (state["num_experts"] and state["swiglu"], "experts with gated activations"),
        (state["num_experts"] and state["moe_router_dtype"] != "fp32", "--moe-router-dtype other than fp32"),
        (
            state["num_experts"] and (state["expert_tensor_parallel_size"] or 1) > 1,
            "expert tensor parallelism",
        ),
    ]
    option = "transformer_impl"
    message = "--transformer-impl inference_optimized does not go with "
    state.refuse_where("S124", [(bad, option, message + what) for bad, what in forms])


@TRANSFORMER.rule(since="0.17")
def width_transfer(state: Settling) -> None:
    """The base of maximal update parametrisation is a size."""
    base = state["mup_base_hidden_size"]
    if state["use_mup"] and base is not None and base < 1:
        state.refuse("S113", f"--mup-base-hidden-size is {base}", "mup_base_hidden_size", "give a size of at least 1")
