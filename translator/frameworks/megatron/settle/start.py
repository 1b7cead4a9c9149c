"""What stops a run before its first step besides the configuration of the model.

Process groups (``megatron/core/parallel_state.py``), seed, schedule (``megatron/core/optimizer_param_scheduler.py``),
optimizer and gradient buffers (``megatron/core/optimizer/optimizer_config.py``,
``megatron/core/distributed/distributed_data_parallel_config.py``), data
(``megatron/core/datasets/blended_megatron_dataset_config.py``), and the layers that each rank builds. Nothing is
derived here. Lines are those of core 0.18.0.
"""

from __future__ import annotations

import re

from translator.frameworks.megatron.settle.engine import Rules, Settling
from translator.native import PROGRAM

START = Rules()

TRAINING_PROGRAMS = ("pretrain", "train")
STATES = ("main_grads_dtype", "main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype")
FLOAT32 = "torch.float32"
SPLITS = 3


@START.rule()
def group_options(state: Settling) -> None:
    """Groups within the data parallel group (``parallel_state.py:827``, ``:1247``, ``:718``)."""
    if state["sharp_enabled_group"] is not None and not state["use_sharp"]:
        state.refuse("S127", "--sharp-enabled-group needs --use-sharp", "sharp_enabled_group")
    instances = state["num_distributed_optimizer_instances"]
    if state["sharp_enabled_group"] == "dp_replica" and state["use_sharp"] and instances == 1:
        message = "--sharp-enabled-group dp_replica needs --num-distributed-optimizer-instances above 1"
        state.refuse("S127", message, "sharp_enabled_group")
    ranks = state.need("data_parallel_size") * state.need("context_parallel_size")
    if not isinstance(instances, int) or instances < 1:
        return
    if ranks % instances:
        message = f"data x context parallel size ({ranks}) is not a multiple of "
        message += f"--num-distributed-optimizer-instances ({instances})"
        state.refuse("S127", message, "num_distributed_optimizer_instances")
    elif state.need("expert_data_parallel_size") % instances:
        message = f"the data parallel size of experts ({state['expert_data_parallel_size']}) is not a multiple of "
        message += f"--num-distributed-optimizer-instances ({instances})"
        state.refuse("S127", message, "num_distributed_optimizer_instances")


@START.rule(since="0.14")
def pipeline_order(state: Settling) -> None:
    """Pipeline ranks of attention and experts are the same (``parallel_state.py:803``)."""
    if not state["use_tp_pp_dp_mapping"] or state["pipeline_model_parallel_size"] == 1:
        return
    dense, expert = state.need("data_parallel_size"), state.need("expert_data_parallel_size")
    if dense != expert:
        message = f"--use-tp-pp-dp-mapping needs one data parallel size, not {dense} and, for experts, {expert}"
        state.refuse("S127", message, "use_tp_pp_dp_mapping")


@START.rule()
def seed(state: Settling) -> None:
    """Random numbers start from a positive number (``megatron/training/initialize.py:389``)."""
    number = state["seed"]
    if isinstance(number, int) and number <= 0:
        state.refuse("S130", f"--seed is {number}, and must be positive", "seed", "give a seed of at least 1")


@START.rule()
def length(state: Settling) -> None:
    """A run has a length and a learning rate (``megatron/training/training.py:1832-1862``)."""
    given = state.native.given.get(PROGRAM)
    program = str(given.value).rsplit("/", 1)[-1] if given and given.missing is None else ""
    if state["skip_train"] or not program.startswith(TRAINING_PROGRAMS):
        return
    if not state["train_iters"] and not state["train_samples"]:
        option = next((name for name in ("train_iters", "train_samples") if name in state.native.given), None)
        message = "training needs --train-iters or --train-samples"
        state.refuse("S130", message, option, "give --train-iters")
    if state["lr"] is None:
        state.refuse("S130", "training needs --lr", None, "give --lr")


@START.rule()
def schedule_ends(state: Settling) -> None:
    """Ends of the learning rate and the weight decay (``optimizer_param_scheduler.py:145-175``)."""
    if state["skip_train"]:
        return
    if state["min_lr"] is not None and state["min_lr"] < 0:
        state.refuse("S114", f"--min-lr is {state['min_lr']}", "min_lr", "give 0 or more")
    first, last = state["start_weight_decay"], state["end_weight_decay"]
    if first is not None and last is not None and not 0 <= first <= last:
        option = "end_weight_decay" if "end_weight_decay" in state.native.given else "weight_decay"
        message = f"the weight decay goes from {first} to {last}; it must not fall, nor be negative"
        state.refuse("S114", message, option)
    if state["override_opt_param_scheduler"] and state["use_checkpoint_opt_param_scheduler"]:
        message = "--override-opt_param-scheduler and --use-checkpoint-opt_param-scheduler exclude each other"
        state.refuse("S114", message, "override_opt_param_scheduler")


@START.rule()
def precise_states(state: Settling) -> None:
    """States in other types need the optimizer that takes them (``optimizer_config.py:424-475``)."""
    if state["skip_train"]:
        return
    if state["use_precision_aware_optimizer"]:
        option = "use_precision_aware_optimizer"
        wrong = [
            (state["optimizer"] != "adam", option, "--use-precision-aware-optimizer needs --optimizer adam"),
            (
                not state["use_distributed_optimizer"],
                option,
                "--use-precision-aware-optimizer needs --use-distributed-optimizer",
            ),
        ]
        state.refuse_where("S109", wrong)
        return
    for address in STATES:
        value = state[address]
        if value not in (None, FLOAT32):
            flag = "--" + address.replace("_", "-")
            state.refuse("S109", f"{flag} other than fp32 needs --use-precision-aware-optimizer", address)


@START.rule()
def buffers(state: Settling) -> None:
    """Gradient buffers (``distributed_data_parallel_config.py:244-262``)."""
    if state["skip_train"] or state["use_torch_fsdp2"]:
        return
    wrong = [
        (
            state["ddp_num_buckets"] is not None and state["ddp_bucket_size"] is not None,
            "ddp_num_buckets",
            "--ddp-num-buckets and --ddp-bucket-size exclude each other",
        ),
        (
            (state["ddp_num_buckets"] or 1) < 1,
            "ddp_num_buckets",
            f"--ddp-num-buckets is {state['ddp_num_buckets']}",
        ),
        (
            state["reuse_grad_buf_for_mxfp8_param_ag"] and not state["fp8_param_gather"],
            "reuse_grad_buf_for_mxfp8_param_ag",
            "--reuse-grad-buf-for-mxfp8-param-ag needs --fp8-param-gather",
        ),
    ]
    state.refuse_where("S109", wrong)


@START.rule()
def layers_fit_their_groups(state: Settling) -> None:
    """Each rank holds a whole part of every matrix (``megatron/core/tensor_parallel/layers.py``, ``utils.py:501``)."""
    if state["hybrid_layer_pattern"] is not None or state["heterogeneous_layers_config_path"] is not None:
        return
    tensor, expert = state.need("tensor_model_parallel_size"), state["expert_tensor_parallel_size"] or 1
    count, pattern = state["num_experts"], state["moe_layer_freq"]
    dense = count is None or (pattern not in (None, 1) and not (isinstance(pattern, list) and 0 not in pattern))
    parts = [
        (dense, "ffn_hidden_size", tensor, "tensor"),
        (count is not None, "moe_ffn_hidden_size", expert, "expert tensor"),
        (count is not None, "moe_shared_expert_intermediate_size", tensor, "tensor"),
        ("padded_vocab_size" in state.native.given, "padded_vocab_size", tensor, "tensor"),
    ]
    for used, address, size, kind in parts:
        whole = state[address] if used else None
        if isinstance(whole, int) and whole % size:
            flag = "--" + address.replace("_", "-")
            state.refuse("S128", f"{flag} ({whole}) does not divide over the {kind} parallel size ({size})", address)


@START.rule()
def attention_fits(state: Settling) -> None:
    """Heads of a rank are whole groups of queries (``megatron/core/transformer/attention.py:352``)."""
    heads, groups = state.need("num_attention_heads"), state.need("config.num_query_groups")
    if state["multi_latent_attention"] or groups < 1 or heads % groups == 0:
        return
    message = f"{heads} attention heads are no multiple of {groups} query groups"
    state.refuse("S106", message, "num_query_groups")


@START.rule()
def split_of_the_data(state: Settling) -> None:
    """A blend has a split, paths per split have none (``blended_megatron_dataset_config.py:99-151``)."""
    per_split = [state[name] for name in ("train_data_path", "valid_data_path", "test_data_path")]
    text = state["split"]
    blend = state["data_path"]
    if any(per_split) and not blend:
        if text is not None:
            state.refuse("S115", "--split does not go with a path per split", "split")
        return
    if blend and isinstance(text, str):
        numbers = re.findall(r"[.0-9]+", text)
        if len(numbers) > SPLITS:
            state.refuse("S115", f"--split {text} has more than train, validation and test", "split")


@START.rule(since="0.16")
def cached_data(state: Settling) -> None:
    """Caches of the data need a folder (``blended_megatron_dataset_config.py:101-113``)."""
    for address in ("dataloader_fast_cache_load", "dataloader_defer_npy_index_mmap"):
        if state[address] and state["data_cache_path"] is None:
            flag = "--" + address.replace("_", "-")
            state.refuse("S115", f"{flag} needs --data-cache-path", address)
    if state["dataloader_fast_cache_load"] and state["data_path"]:
        message = "--dataloader-fast-cache-load does not go with --data-path; give a path per split"
        state.refuse("S115", message, "dataloader_fast_cache_load")
