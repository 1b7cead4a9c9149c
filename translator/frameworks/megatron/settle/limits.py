"""What ``validate_args`` refuses and nothing follows from: intervals, numbers, and options that need others.

Source: ``megatron/training/arguments.py`` (core 0.18.0).
"""

from __future__ import annotations

from translator.frameworks.megatron.settle.engine import Rules, Settling

LIMITS = Rules()

FIM_TOKENS = ("prefix", "middle", "suffix", "pad", "eod")
INFERENCE_SCOPES = {
    "none": ("none",),
    "local": ("layer", "block"),
    "transformer_engine": ("none",),
    "full_iteration": ("none",),
}


@LIMITS.rule()
def intervals(state: Settling) -> None:
    """Intervals that are multiples of others (:1308-1316), and numbers of threads (:1209)."""
    save, retain = state["save_interval"], state["save_retain_interval"]
    if state["save"] is not None and retain is not None and (retain < 1 or (save and retain % save)):
        message = f"--save-retain-interval ({retain}) is not a multiple of --save-interval ({save})"
        state.refuse("S119", message, "save_retain_interval")
    if state["save"] is not None and state["save_params_interval"] is not None and state["overlap_param_gather"]:
        state.refuse("S119", "--save-params-interval does not go with --overlap-param-gather", "save_params_interval")
    memory, log = state["log_memory_interval"], state["log_interval"]
    if memory is not None and log and memory % log and state.version >= (0, 16):
        message = f"--log-memory-interval ({memory}) is not a multiple of --log-interval ({log})"
        state.refuse("S125", message, "log_memory_interval")
    threads = state["num_dataset_builder_threads"]
    if threads is not None and threads < 1:
        state.refuse("S125", f"--num-dataset-builder-threads is {threads}", "num_dataset_builder_threads")


@LIMITS.rule(since="0.16")
def clipping_of_scores(state: Settling) -> None:
    """Factors of the query-key clip (:1446-1450)."""
    if not state["qk_clip"]:
        return
    alpha, threshold = state["qk_clip_alpha"], state["qk_clip_threshold"]
    wrong = [
        (alpha is not None and not 0 < alpha < 1, "qk_clip_alpha", f"--qk-clip-alpha ({alpha}) is not between 0 and 1"),
        (threshold is not None and threshold <= 0, "qk_clip_threshold", f"--qk-clip-threshold is {threshold}"),
    ]
    state.refuse_where("S125", wrong)


@LIMITS.rule()
def attention_kinds(state: Settling) -> None:
    """Kernels and positions that a kind of layer does not have (:429, :1467, :1753)."""
    local = state["attention_backend"] == "local"
    spec = state["spec"]
    wrong = [
        (
            local and not (spec and spec[0] == "local"),
            "attention_backend",
            "--attention-backend local needs --spec local",
        ),
        (
            state["position_embedding_type"] == "relative" and state["transformer_impl"] == "local",
            "position_embedding_type",
            "relative positions need --transformer-impl transformer_engine",
        ),
        (
            state["mla_down_proj_fusion"] and not state["multi_latent_attention"],
            "mla_down_proj_fusion",
            "--mla-down-proj-fusion needs --multi-latent-attention",
        ),
    ]
    state.refuse_where("S124", wrong)


@LIMITS.rule()
def latent_experts(state: Settling) -> None:
    """The latent size of experts is a size (:1758)."""
    size = state["moe_latent_size"]
    if size is not None and size < 1:
        state.refuse("S107", f"--moe-latent-size is {size}", "moe_latent_size", "give a size of at least 1")


@LIMITS.rule()
def checkpoints(state: Settling) -> None:
    """Checkpoints that need a path or another option (:402, :1493, :1573, :1640, :1669)."""
    convert = state["ckpt_convert_format"] is not None
    gloo = state["use_gloo_process_groups"] if state.version >= (0, 17) else state["enable_gloo_process_groups"]
    dcp = state["ckpt_format"] == "torch_dcp"
    wrong = [
        (
            convert and state["ckpt_convert_save"] is None,
            "ckpt_convert_format",
            "a conversion needs --ckpt-convert-save",
        ),
        (convert and state["load"] is None, "ckpt_convert_format", "a conversion needs --load"),
        (
            gloo is False and state["use_distributed_optimizer"] and not state["use_dist_ckpt"],
            "ckpt_format",
            "--ckpt-format torch with the distributed optimizer needs Gloo process groups",
        ),
        (state["moe_use_upcycling"] and state["save"] is None, "moe_use_upcycling", "--moe-use-upcycling needs --save"),
        (
            state["non_persistent_ckpt_type"] == "local" and state["non_persistent_local_ckpt_dir"] is None,
            "non_persistent_ckpt_type",
            "--non-persistent-ckpt-type local needs --non-persistent-local-ckpt-dir",
        ),
        (
            state["replication"] and state["replication_jump"] is None,
            "replication",
            "--replication needs --replication-jump",
        ),
        (
            state["replication"] and state["non_persistent_ckpt_type"] != "local",
            "replication",
            "--replication needs --non-persistent-ckpt-type local",
        ),
        (
            dcp and state["tensor_model_parallel_size"] > 1,
            "ckpt_format",
            "torch_dcp does not go with tensor parallelism",
        ),
        (dcp and state["pipeline_model_parallel_size"] > 1, "ckpt_format", "torch_dcp does not go with a pipeline"),
    ]
    state.refuse_where("S119", wrong)


@LIMITS.rule()
def sharded_data(state: Settling) -> None:
    """What Megatron-FSDP needs of its own options (:1137-1158)."""
    fsdp, strategy = state["use_megatron_fsdp"], state["data_parallel_sharding_strategy"]
    registered = state["fsdp_manual_registration"]
    hashes = "check_weight_hash_across_dp_replicas_interval"
    wrong = [
        (registered and not fsdp, "fsdp_manual_registration", "--fsdp-manual-registration needs --use-megatron-fsdp"),
        (
            registered and not state["nccl_ub"],
            "fsdp_manual_registration",
            "--fsdp-manual-registration needs --use-nccl-ub",
        ),
        (
            fsdp and state["init_model_with_meta_device"] and strategy == "no_shard",
            "init_model_with_meta_device",
            "--init-model-with-meta-device does not go with --data-parallel-sharding-strategy no_shard",
        ),
        (
            fsdp and strategy == "optim_grads_params" and state[hashes] is not None,
            hashes,
            f"--{hashes.replace('_', '-')} needs whole parameters on each rank",
        ),
    ]
    state.refuse_where("S110", wrong)


@LIMITS.rule()
def filling(state: Settling) -> None:
    """Fill-in-the-middle data need rates and tokens (:1517)."""
    if not state["fim_data"]:
        return
    missing = [f"--fim-{name}-token" for name in FIM_TOKENS if state[f"fim_{name}_token"] is None]
    wrong = [
        (state["mock_data"], "fim_data", "--fim-data does not go with --mock-data"),
        (not state["fim_rate"], "fim_data", "--fim-data needs --fim-rate"),
        (not state["fim_spm_rate"], "fim_data", "--fim-data needs --fim-spm-rate"),
        (missing, "fim_data", f"--fim-data needs {' '.join(missing)}"),
    ]
    state.refuse_where("S115", wrong)


@LIMITS.rule()
def data_files(state: Settling) -> None:
    """A list of paths per split is a file or options (:680)."""
    paths = any(state[name] is not None for name in ("train_data_path", "valid_data_path", "test_data_path"))
    if paths and state["per_split_data_args_path"] is not None:
        message = "a path per split and --per-split-data-args-path exclude each other"
        state.refuse("S115", message, "per_split_data_args_path")


@LIMITS.rule()
def machinery(state: Settling) -> None:
    """Inference, offload and process groups (:1577, :1635, :1668, :1683)."""
    graphs = state["cuda_graph_impl"] or "none"
    threshold = state["inference_batch_times_seqlen_threshold"]
    if threshold is not None and threshold > -1:
        option, flag = "inference_batch_times_seqlen_threshold", "--inference-batch-times-seqlen-threshold"
        wrong = [
            (state["pipeline_model_parallel_size"] == 1, option, f"{flag} needs a pipeline"),
            (graphs != "none", option, f"{flag} does not go with CUDA graphs"),
        ]
        state.refuse_where("S125", wrong)
    if state["optimizer_cpu_offload"] and state["fp8_param_gather"] and state["fp8_recipe"] != "delayed":
        message = "--optimizer-cpu-offload with --fp8-param-gather needs --fp8-recipe delayed"
        state.refuse("S109", message, "optimizer_cpu_offload")
    if state["fake_process_group"] and state["moe_token_dispatcher_type"] == "flex":
        state.refuse("S107", "--fake-process-group does not go with the flex dispatcher", "fake_process_group")
    if state["delay_wgrad_compute"] and state["transformer_impl"] != "transformer_engine":
        message = "--delay-wgrad-compute needs --transformer-impl transformer_engine"
        state.refuse("S129", message, "delay_wgrad_compute")


@LIMITS.rule(since="0.18")
def inference_graphs(state: Settling) -> None:
    """Graphs of inference follow those of training (:646, :1190-1204)."""
    kind, scope = state["cuda_graph_impl"], state["inference_cuda_graph_scope"]
    allowed = INFERENCE_SCOPES.get(kind)
    if allowed is not None and scope not in allowed:
        message = f"--inference-cuda-graph-scope {scope} does not go with --cuda-graph-impl {kind}"
        state.refuse("S116", message, "inference_cuda_graph_scope")
    if scope == "block" and state["fp8"] and state["transformer_impl"] != "inference_optimized":
        message = "--inference-cuda-graph-scope block with fp8 needs --transformer-impl inference_optimized"
        state.refuse("S116", message, "inference_cuda_graph_scope")
    number = state["inference_dynamic_batching_num_cuda_graphs"]
    if kind == "local" and isinstance(number, int) and number < 1 and number != -1:
        message = f"--inference-dynamic-batching-num-cuda-graphs is {number}, not -1 or at least 1"
        state.refuse("S116", message, "inference_dynamic_batching_num_cuda_graphs")
