"""Data types, FSDP, CUDA graphs and the other switches of the machinery.

Source: ``validate_args``, ``megatron/training/arguments.py`` (core 0.18.0).
"""

from __future__ import annotations

from translator.frameworks.megatron.settle.engine import Rules, Settling, because

OVERLAP = Rules()
DTYPES = Rules()
GRAPHS = Rules()
GRAPHS_LATE = Rules()

DTYPE_NAMES = {
    "fp32": "torch.float32",
    "bf16": "torch.bfloat16",
    "fp16": "torch.float16",
    "fp8": "torch.uint8",
    "auto": None,
    None: None,
}
DTYPE_ADDRESSES = (
    "main_grads_dtype",
    "main_params_dtype",
    "exp_avg_dtype",
    "exp_avg_sq_dtype",
    "mamba_inference_conv_states_dtype",
    "mamba_inference_ssm_states_dtype",
    "mamba_training_ssm_states_dtype",
    "megatron_fsdp_main_params_dtype",
    "megatron_fsdp_main_grads_dtype",
    "megatron_fsdp_grad_comm_dtype",
)
FLOAT32, BFLOAT16, FLOAT16 = "torch.float32", "torch.bfloat16", "torch.float16"


@OVERLAP.rule("overlap_grad_reduce", "overlap_param_gather", until="0.14")
def sharding_overlaps(state: Settling) -> None:
    """Sharded gradients or parameters imply their overlap."""
    strategy = state["data_parallel_sharding_strategy"]
    reason = because(f"implied by --data-parallel-sharding-strategy {strategy}", 496, version="0.12.0")
    if strategy == "optim_grads_params":
        state.put("overlap_param_gather", True, reason)
    if strategy in ("optim_grads_params", "optim_grads"):
        state.put("overlap_grad_reduce", True, reason)


@OVERLAP.rule()
def parameter_gather(state: Settling) -> None:
    """Gathering parameters early needs sharded ones, and gradients reduced early."""
    if not state["overlap_param_gather"]:
        return
    sharded = state["use_distributed_optimizer"] or state["use_megatron_fsdp"] or state["optimizer"] == "dist_muon"
    if not sharded:
        message = "--overlap-param-gather needs the distributed optimizer or Megatron-FSDP"
        state.refuse("S109", message, "overlap_param_gather", "add --use-distributed-optimizer")
    if not state["overlap_grad_reduce"]:
        message = "--overlap-param-gather needs --overlap-grad-reduce"
        state.refuse("S109", message, "overlap_param_gather", "add --overlap-grad-reduce")


@OVERLAP.rule()
def gather_with_step(state: Settling) -> None:
    """Gathering during the optimizer step needs virtual stages and the old checkpoint format."""
    if not state["overlap_param_gather_with_optimizer_step"]:
        return
    needs = [
        (state["use_distributed_optimizer"], "--use-distributed-optimizer"),
        (state["overlap_param_gather"], "--overlap-param-gather"),
        (state["virtual_pipeline_model_parallel_size"] is not None, "an interleaved pipeline"),
        (not state["use_dist_ckpt"], "--ckpt-format torch"),
    ]
    for met, what in needs:
        if not met:
            message = f"--overlap-param-gather-with-optimizer-step needs {what}"
            state.refuse("S109", message, "overlap_param_gather_with_optimizer_step")


@OVERLAP.rule("fp8_param_gather")
def torch_fsdp(state: Settling) -> None:
    """What torch's FSDP2 does not go with."""
    if not state["use_torch_fsdp2"]:
        return
    wrong = [
        (state["pipeline_model_parallel_size"] > 1, "pipeline parallelism"),
        (state["expert_model_parallel_size"] > 1, "expert parallelism"),
        (state["use_distributed_optimizer"], "the distributed optimizer"),
        (state["gradient_accumulation_fusion"], "gradient accumulation fusion, which is on by default"),
        (state["ckpt_format"] not in ("torch_dist", "torch_dcp"), f"--ckpt-format {state['ckpt_format']}"),
        (not state["untie_embeddings_and_output_weights"], "tied embeddings"),
        (state["fp16"], "fp16"),
    ]
    for bad, what in wrong:
        if bad:
            state.refuse("S110", f"--use-torch-fsdp2 does not go with {what}", "use_torch_fsdp2")
    if state["fp8_param_gather"] and state.version >= (0, 14):
        state.put("fp8_param_gather", False, because("off: FSDP2 gathers in bf16", 1031))


@DTYPES.rule(*DTYPE_ADDRESSES)
def dtypes(state: Settling) -> None:
    """The names of data types become torch's."""
    for address in DTYPE_ADDRESSES:
        value = state.values.get(address, state)
        if value in DTYPE_NAMES:
            state.recode(address, DTYPE_NAMES[value])


@DTYPES.rule("megatron_fsdp_grad_comm_dtype", since="0.17", until="0.19")
def fsdp_gradients(state: Settling) -> None:
    """Reduced precision of gradients holds for Megatron-FSDP, too."""
    if state["grad_reduce_in_bf16"]:
        state.put("megatron_fsdp_grad_comm_dtype", BFLOAT16, because("--grad-reduce-in-bf16", 1072))


@DTYPES.rule()
def low_precision(state: Settling) -> None:
    """fp8 and fp4 exclude each other; their parameters need them."""
    sharded = state["use_distributed_optimizer"] or state["use_torch_fsdp2"] or state["use_megatron_fsdp"]
    # Without gradients, in inference, nothing is sharded.
    trains = state["train_iters"] or state["train_samples"] or state["lr"] is not None
    if state["fp8_param_gather"] and not sharded and trains:
        state.refuse("S105", "--fp8-param-gather needs the distributed optimizer or FSDP", "fp8_param_gather")
    if state["fp4"] and state["fp8"]:
        state.refuse("S105", "--fp4-format and --fp8-format exclude each other", "fp4")
    if (state["fp4_param_gather"] or state["fp4_param"]) and not state["fp4"]:
        state.refuse("S105", "--fp4-param-gather needs --fp4-format", "fp4_param_gather")


@DTYPES.rule(
    "use_distributed_optimizer", "use_custom_fsdp", "fsdp_manual_registration", "fsdp_double_buffer", since="0.14"
)
def megatron_fsdp(state: Settling) -> None:
    """Megatron-FSDP brings the distributed optimizer along."""
    if not state["use_megatron_fsdp"]:
        return
    reason = because("Megatron-FSDP needs it", 1119)
    state.put("use_custom_fsdp", True, because("the old name of --use-megatron-fsdp", 1111))
    if state.version >= (0, 18):
        state.put("use_distributed_optimizer", True, reason)
        state.put("reuse_grad_buf_for_mxfp8_param_ag", False, because("not for Megatron-FSDP", 1121))
        if state["nccl_ub"]:
            state.put("fsdp_manual_registration", True, because("implied by --nccl-ub", 1148))
    elif state["fsdp_manual_registration"]:
        state.put("reuse_grad_buf_for_mxfp8_param_ag", False, because("not for Megatron-FSDP", 1121))
    if state.version >= (0, 19) and (state["nccl_ub"] or state["megatron_fsdp_max_pool_double_buffer"]):
        reason = because("implied by the registered buffers", 1153, version="0.19.0")
        state.put("fsdp_double_buffer", True, reason)
    wrong = [
        (state["optimizer"] not in ("sgd", "adam"), f"--optimizer {state['optimizer']}"),
        (state["ckpt_format"] != "fsdp_dtensor", f"--ckpt-format {state['ckpt_format']}; it needs fsdp_dtensor"),
    ]
    for bad, what in wrong:
        if bad:
            state.refuse("S110", f"--use-megatron-fsdp does not go with {what}", "use_megatron_fsdp")


@DTYPES.rule("params_dtype", "check_for_nan_in_loss_and_grad", "accumulate_allreduce_grads_in_fp32")
def parameters(state: Settling) -> None:
    """The type of parameters and what follows for gradients."""
    fp16, bf16 = state["fp16"], state["bf16"]
    if fp16 and bf16:
        state.refuse("S105", "--fp16 and --bf16 exclude each other", "fp16")
    kind = BFLOAT16 if bf16 else FLOAT16 if fp16 else FLOAT32
    state.put("params_dtype", kind, because("fp32 unless --bf16 or --fp16", 1162))
    if fp16 and not state["loss_scale"]:
        state.put("check_for_nan_in_loss_and_grad", False, because("off under dynamic loss scaling", 1169))
    if not bf16:
        return
    main = state["main_grads_dtype"]
    if state["accumulate_allreduce_grads_in_fp32"] and main != FLOAT32:
        message = "--accumulate-allreduce-grads-in-fp32 needs --main-grads-dtype fp32"
        state.refuse("S105", message, "main_grads_dtype")
    if state["grad_reduce_in_bf16"]:
        reason = because("off under --grad-reduce-in-bf16", 1182)
        state.put("accumulate_allreduce_grads_in_fp32", False, reason)
    elif main == FLOAT32:
        reason = because("bf16 accumulates and reduces gradients in fp32", 1184)
        state.put("accumulate_allreduce_grads_in_fp32", True, reason)


@DTYPES.rule()
def mixed_precision_needed(state: Settling) -> None:
    """Options that only mixed precision has."""
    if state["fp16_lm_cross_entropy"] and not state["fp16"]:
        state.refuse("S105", "--fp16-lm-cross-entropy needs --fp16", "fp16_lm_cross_entropy")
    if state["fp32_residual_connection"] and not (state["fp16"] or state["bf16"]):
        state.refuse("S105", "--fp32-residual-connection needs --fp16 or --bf16", "fp32_residual_connection")


@GRAPHS.rule("cuda_graph_impl", since="0.15")
def old_graph_flags(state: Settling) -> None:
    """The two old switches become an implementation."""
    both = state["enable_cuda_graph"] and state["external_cuda_graph"]
    if both or ((state["enable_cuda_graph"] or state["external_cuda_graph"]) and state["cuda_graph_impl"] != "none"):
        message = "--enable-cuda-graph, --external-cuda-graph and --cuda-graph-impl exclude each other"
        state.refuse("S116", message, "cuda_graph_impl")
    if state["enable_cuda_graph"]:
        state.put("cuda_graph_impl", "local", because("--enable-cuda-graph is its old spelling", 621))
    elif state["external_cuda_graph"]:
        reason = because("--external-cuda-graph is its old spelling", 628)
        state.put("cuda_graph_impl", "transformer_engine", reason)


@GRAPHS.rule("cuda_graph_modules", "inference_cuda_graph_scope", "cuda_graph_impl", since="0.18")
def graph_modules(state: Settling) -> None:
    """Old names of what a graph captures become the implementation and the modules."""
    old = state["cuda_graph_scope_deprecated"]
    modules = list(state["cuda_graph_modules"] or ())
    if old is not None:
        if modules:
            message = "--cuda-graph-scope and --cuda-graph-modules exclude each other"
            state.refuse("S116", message, "cuda_graph_scope_deprecated")
        modules = list(old)
    deprecated = [module for module in modules if module in ("full", "full_iteration", "full_iteration_inference")]
    if "full" in modules and modules != ["full"]:
        state.refuse("S116", "`full` does not go with other CUDA graph modules", "cuda_graph_modules")
    if "full_iteration" in deprecated:
        state.put("cuda_graph_impl", "full_iteration", because("the module full_iteration became one", 302))
    elif "full_iteration_inference" in deprecated and state["cuda_graph_impl"] != "none":
        reason = because("the module full_iteration_inference became one", 302)
        state.put("inference_cuda_graph_scope", "block", reason)
    kept = [module for module in modules if module not in deprecated]
    state.put("cuda_graph_modules", kept, because("in the new spelling", 304))
    if state["inference_cuda_graph_scope"] is None:
        scope = "layer" if state["cuda_graph_impl"] == "local" else "none"
        state.put("inference_cuda_graph_scope", scope, because("follows --cuda-graph-impl", 309))


@GRAPHS.rule("cuda_graph_scope", since="0.16", until="0.18")
def graph_scope(state: Settling) -> None:
    """``full`` is an empty list of modules."""
    scope = state["cuda_graph_scope"]
    if scope == "full" or (isinstance(scope, list) and "full" in scope):
        state.put("cuda_graph_scope", [], because("full means all of the layer", 1579, version="0.17.0"))


@GRAPHS_LATE.rule("te_rng_tracker", since="0.14")
def graph_random(state: Settling) -> None:
    """Graphs need TransformerEngine's random number tracker."""
    if state.version < (0, 15):
        graphs = state["enable_cuda_graph"] or state["external_cuda_graph"]
    else:
        graphs = state["cuda_graph_impl"] not in (None, "none")
    engines = [state["transformer_impl"]] + ([state["cuda_graph_impl"]] if state.version >= (0, 16) else [])
    if graphs and "transformer_engine" in engines and not state["te_rng_tracker"]:
        state.put("te_rng_tracker", True, because("CUDA graphs need it", 1739))
    if state["cuda_graph_impl"] == "full_iteration" and state["cuda_graph_modules"]:
        state.refuse("S116", "--cuda-graph-impl full_iteration captures everything", "cuda_graph_modules")
    if state["cuda_graph_impl"] == "full_iteration" and state["check_for_nan_in_loss_and_grad"]:
        message = "--cuda-graph-impl full_iteration needs --no-check-for-nan-in-loss-and-grad"
        state.refuse("S116", message, "cuda_graph_impl")
