"""Checkpoints, optimizer machinery, defaults of the entry point, reinforcement learning.

Source: ``validate_args``, ``megatron/training/arguments.py`` (core 0.18.0).
"""

from __future__ import annotations

from translator.findings import Level
from translator.frameworks.megatron.settle.engine import Rules, Settling, because
from translator.native import PROGRAM

EARLY = Rules()
REINFORCEMENT = Rules()
RETIRED = Rules()
RECOMPUTE = Rules()
OPTIMIZER = Rules()
CHECKPOINT = Rules()

# What each entry point hands to `validate_args`, in force where the option has no value (`pretrain_gpt.py:397`, core
# 0.18.0).
GPT_DEFAULTS: dict[str, object] = {"tokenizer_type": "GPT2BPETokenizer"}
BERT_DEFAULTS: dict[str, object] = {"tokenizer_type": "BertWordPieceLowerCase"}
VISION_DEFAULTS: dict[str, object] = {"dataloader_type": "cyclic", "vision_pretraining": True}
PROGRAM_DEFAULTS: dict[str, dict[str, object]] = {
    "pretrain_bert.py": BERT_DEFAULTS,
    "pretrain_ict.py": BERT_DEFAULTS,
    "pretrain_t5.py": BERT_DEFAULTS,
    "pretrain_vision_classify.py": VISION_DEFAULTS,
    "pretrain_vision_dino.py": VISION_DEFAULTS,
    "pretrain_vision_inpaint.py": VISION_DEFAULTS,
    "train_rl.py": {},
}
RETIRED_OPTIONS = {
    "batch_size": "--micro-batch-size",
    "warmup": "--lr-warmup-fraction",
    "model_parallel_size": "--tensor-model-parallel-size",
}
GENERATION_TASKS = 512


@EARLY.rule("exit_on_missing_checkpoint", since="0.18")
def conversion(state: Settling) -> None:
    """A conversion run needs the checkpoint that it converts."""
    if state["ckpt_convert_format"] is not None:
        state.put("exit_on_missing_checkpoint", True, because("--ckpt-convert-format needs one", 405))


@EARLY.rule("use_dist_ckpt")
def checkpoint_kind(state: Settling) -> None:
    """Every format but the oldest is distributed."""
    state.recode("use_dist_ckpt", state["ckpt_format"] != "torch")


@EARLY.rule("enable_msc", since="0.18")
def storage_client(state: Settling) -> None:
    """The old switch wins over the new one."""
    if state["disable_msc_deprecated"]:
        state.put("enable_msc", False, because("--disable-msc wins", 165))


@REINFORCEMENT.rule("rl_num_parallel_generations", "rl_parallel_generation_tasks", since="0.17", until="0.19")
def generations(state: Settling) -> None:
    """How many generations run side by side, from whichever option states it."""
    if not state["perform_rl_step"]:
        return
    group, batches = state["grpo_group_size"], state["rl_num_parallel_generation_batches"]
    reason = because("follows the other generation options", 526)
    size = state["rl_generation_batch_size"]
    if state["rl_parallel_generation_tasks"] is not None:
        state.put("rl_num_parallel_generations", state["rl_parallel_generation_tasks"] * group, reason)
    parallel = state["rl_num_parallel_generations"]
    if size is None:
        size = state["grpo_prompts_per_step"] if parallel is None and batches is not None else 1
        state.put("rl_generation_batch_size", size, reason)
    if parallel is not None:
        tasks = parallel // group
    elif batches is not None:
        tasks = batches * size
    else:
        tasks = GENERATION_TASKS
    state.put("rl_parallel_generation_tasks", tasks, reason)
    state.recode("rl_enforce_generation_order", size > 1)


@REINFORCEMENT.rule("grpo_samples_per_iteration", since="0.15")
def samples_per_iteration(state: Settling) -> None:
    """Prompts times answers."""
    if state["perform_rl_step"]:
        value = state["grpo_prompts_per_step"] * state["grpo_group_size"]
        state.put("grpo_samples_per_iteration", value, because("prompts per step x group size", 559))


@RETIRED.rule()
def retired(state: Settling) -> None:
    """Options that the parser knows only to refuse them."""
    for address, instead in RETIRED_OPTIONS.items():
        if state.values.get(address) is not None:
            flag = "--" + address.replace("_", "-")
            state.refuse("S118", f"{flag} is no longer valid", address, f"use {instead}")
    if state.values.get("checkpoint_activations"):
        message = "--checkpoint-activations is no longer valid"
        state.refuse("S118", message, "checkpoint_activations", "use --recompute-granularity")


@RETIRED.rule("recompute_granularity")
def recompute_switch(state: Settling) -> None:
    """The short switch means selective."""
    if state["recompute_activations"]:
        state.put("recompute_granularity", "selective", because("--recompute-activations", 606))


@RETIRED.rule("tokenizer_type")
def program_defaults(state: Settling) -> None:
    """Defaults that the entry point adds."""
    given = state.native.given.get(PROGRAM)
    program = str(given.value).rsplit("/", 1)[-1] if given and given.missing is None else ""
    for address, value in PROGRAM_DEFAULTS.get(program, GPT_DEFAULTS).items():
        if address not in state.missing and state[address] is None:
            state.put(address, value, because("the default of the entry point", 397, program or "pretrain_gpt.py"))


@RECOMPUTE.rule()
def recompute(state: Settling) -> None:
    """Selective recomputation has no method; distributed activations need full."""
    if state["distribute_saved_activations"]:
        needs = [
            (state["tensor_model_parallel_size"] > 1, "tensor parallelism"),
            (state["recompute_granularity"] == "full", "--recompute-granularity full"),
            (state["recompute_method"] is not None, "--recompute-method"),
        ]
        for met, what in needs:
            if not met:
                state.refuse("S108", f"--distribute-saved-activations needs {what}", "distribute_saved_activations")
    if state["recompute_granularity"] == "selective" and state["recompute_method"] is not None:
        state.refuse("S108", "selective recomputation takes no --recompute-method", "recompute_method")


@OPTIMIZER.rule("use_layer_wise_distributed_optimizer", "use_distributed_optimizer", "optimizer", since="0.18")
def emerging(state: Settling) -> None:
    """Optimizers besides Adam and SGD are distributed by layers."""
    state.recode("use_layer_wise_distributed_optimizer", False)
    name = state["optimizer"]
    if name in ("sgd", "adam"):
        return
    layer_wise = because("layers are distributed instead", 1559)
    if name == "dist_muon":
        state.put("optimizer", "muon", because("dist_muon is its old name", 1558))
        state.put("use_layer_wise_distributed_optimizer", True, layer_wise)
    if state["use_distributed_optimizer"]:
        state.put("use_layer_wise_distributed_optimizer", True, layer_wise)
        state.put("use_distributed_optimizer", False, layer_wise)
    for address in ("use_torch_fsdp2", "use_megatron_fsdp"):
        if state[address]:
            state.refuse("S110", f"--optimizer {name} does not go with FSDP", address)
    if state["ckpt_format"] not in ("torch", "torch_dist"):
        message = f"--optimizer {name} does not go with --ckpt-format {state['ckpt_format']}"
        state.refuse("S119", message, "ckpt_format")


@OPTIMIZER.rule("check_for_nan_in_loss_and_grad", since="0.16")
def fake_groups(state: Settling) -> None:
    """A run without communication checks no NaN."""
    if not state["fake_process_group"]:
        return
    reason = because("off under --fake-process-group", 1582)
    state.put("check_for_nan_in_loss_and_grad", False, reason)
    gloo = "use_gloo_process_groups" if state.version >= (0, 17) else "enable_gloo_process_groups"
    state.put(gloo, False, reason)


@OPTIMIZER.rule()
def offload(state: Settling) -> None:
    """An optimizer on the CPU reuses the precision-aware one."""
    if state["optimizer_cpu_offload"] and not state["use_precision_aware_optimizer"]:
        message = "--optimizer-cpu-offload needs --use-precision-aware-optimizer"
        state.refuse("S109", message, "optimizer_cpu_offload", "add --use-precision-aware-optimizer")


@CHECKPOINT.rule()
def saving(state: Settling) -> None:
    """A path to save to needs an interval."""
    if state["save"] is not None and not state["save_interval"]:
        state.refuse("S119", "--save needs --save-interval", "save")
    kind, fsdp2 = state["ckpt_format"], state["use_torch_fsdp2"]
    if kind == "torch_dcp" and not fsdp2:
        state.refuse("S119", "--ckpt-format torch_dcp needs --use-torch-fsdp2", "ckpt_format")
    if kind == "fsdp_dtensor" and not state["use_megatron_fsdp"]:
        state.refuse("S119", "--ckpt-format fsdp_dtensor needs --use-megatron-fsdp", "ckpt_format")
    if state["load_main_params_from_ckpt"] and not state["no_load_optim"]:
        state.refuse("S119", "--load-main-params-from-ckpt needs --no-load-optim", "load_main_params_from_ckpt")


@CHECKPOINT.rule("async_save", since="0.16")
def async_save(state: Settling) -> None:
    """Saving in the background needs the persistent worker."""
    if state["use_dist_ckpt"] and state["async_save"] and not state["use_persistent_ckpt_worker"]:
        state.put("async_save", False, because("off without --use-persistent-ckpt-worker", 1627))


@CHECKPOINT.rule("async_strategy", since="0.18")
def async_strategy(state: Settling) -> None:
    """Without saving in the background there is one strategy."""
    if not state["async_save"]:
        state.put("async_strategy", "mcore", because("--async-save is off", 1630))


@CHECKPOINT.rule("use_distributed_optimizer", "overlap_param_gather", since="0.19")
def frozen(state: Settling) -> None:
    """A frozen model has no optimizer to shard."""
    if state["freeze_all_layers"]:
        reason = because("off: all layers are frozen", 1758, version="0.19.0")
        state.put("use_distributed_optimizer", False, reason)
        state.put("overlap_param_gather", False, reason)


@CHECKPOINT.rule("no_load_optim", "no_load_rng")
def not_loaded(state: Settling) -> None:
    """What upcycling and a run without training do not load."""
    if state["moe_use_upcycling"]:
        reason = because("upcycling does not load it", 1646)
        state.put("no_load_optim", True, reason)
        state.put("no_load_rng", True, reason)
    if state["skip_train"] and not state["perform_rl_step"] and state.version >= (0, 16):
        state.put("no_load_optim", True, because("a run without training does not load it", 1656))


@CHECKPOINT.rule("replication_jump")
def replication(state: Settling) -> None:
    """A jump without replication is ignored."""
    if not state["replication"] and state["replication_jump"]:
        state.put("replication_jump", None, because("ignored without --replication", 1681))


@CHECKPOINT.rule("cpu_offloading", since="0.16")
def cpu_offloading(state: Settling) -> None:
    """A number of offloaded layers switches offloading on."""
    if (state["cpu_offloading_num_layers"] or 0) > 0:
        state.put("cpu_offloading", True, because("implied by --cpu-offloading-num-layers", 1731))


@CHECKPOINT.rule("create_attention_mask_in_dataloader", "stream_ckpt_dequant", since="0.19")
def loaders(state: Settling) -> None:
    """Masks between documents are built elsewhere; tensor-wise fp8 is dequantised at once."""
    if state["dataloader_inter_document_masking"]:
        reason = because("off: the dataset leaves it out", 1304, version="0.19.0")
        state.put("create_attention_mask_in_dataloader", False, reason)
    if state["fp8"] and state["fp8_recipe"] == "tensorwise" and state["stream_ckpt_dequant"]:
        state.put("stream_ckpt_dequant", False, because("off with tensorwise fp8", 1098, version="0.19.0"))


@CHECKPOINT.rule("tokenizer_special_tokens", since="0.16", until="0.18")
def special_tokens(state: Settling) -> None:
    """The old option of the tiktoken tokenizer."""
    if state["tiktoken_special_tokens"] and not state["tokenizer_special_tokens"]:
        reason = because("--tiktoken-special-tokens is its old spelling", 1601, version="0.17.0")
        state.put("tokenizer_special_tokens", state["tiktoken_special_tokens"], reason)


@CHECKPOINT.rule()
def deterministic(state: Settling) -> None:
    """Determinism excludes two kernels and needs a fixed reduction."""
    if not state["deterministic_mode"]:
        return
    for address, what in (("use_flash_attn", "flash attention"), ("cross_entropy_loss_fusion", "fused cross entropy")):
        if state[address]:
            state.refuse("S120", f"--deterministic-mode does not go with {what}", address)
    algorithms = ("Tree", "Ring", "CollnetDirect", "CollnetChain", "^NVLS")
    if state.environment is None or state.version >= (0, 19):
        return
    value = state.environment.get("NCCL_ALGO")
    if value not in algorithms:
        message = f"--deterministic-mode needs NCCL_ALGO to be one of {', '.join(algorithms)}"
        # What the files do not set may still be set outside of them.
        level = Level.WARNING if value is None else Level.ERROR
        state.refuse("S120", message, "deterministic_mode", "export NCCL_ALGO=Ring", level)
