"""The forks' arguments in the words of Megatron-LM core 0.12.0, whose settling and rows then read them.

The forks left Megatron-LM between 2021 and 2023; 0.12.0 is the supported version that is nearest to them. Line numbers
are of deepspeedai's fork (``2025.7``) unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from translator.catalogue import load
from translator.frameworks.deepspeed.megatron_fork import forks
from translator.native import LAUNCH_ADDRESSES, Given, Missing, Native

MEGATRON, BASE = "megatron", "0.12.0"
# Arguments with the name and meaning that they have in Megatron-LM.
SAME = frozenset(
    [
        "num_layers",
        "encoder_num_layers",
        "hidden_size",
        "ffn_hidden_size",
        "num_attention_heads",
        "kv_channels",
        "max_position_embeddings",
        "rotary_percent",
        "make_vocab_size_divisible_by",
        "apply_layernorm_1p",
        "apply_residual_connection_post_layernorm",
        "squared_relu",
        "add_bias_linear",
        "untie_embeddings_and_output_weights",
        "attention_dropout",
        "hidden_dropout",
        "fp32_residual_connection",
        "init_method_std",
        "weight_decay",
        "start_weight_decay",
        "end_weight_decay",
        "weight_decay_incr_style",
        "adam_beta1",
        "adam_beta2",
        "adam_eps",
        "sgd_momentum",
        "optimizer",
        "micro_batch_size",
        "global_batch_size",
        "seq_length",
        "encoder_seq_length",
        "train_iters",
        "train_samples",
        "lr",
        "lr_decay_style",
        "lr_decay_iters",
        "lr_decay_samples",
        "lr_warmup_fraction",
        "lr_warmup_iters",
        "lr_warmup_samples",
        "min_lr",
        "override_opt_param_scheduler",
        "bf16",
        "fp16",
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "sequence_parallel",
        "distributed_timeout_minutes",
        "eval_iters",
        "eval_interval",
        "split",
        "data_path",
        "vocab_size",
        "num_workers",
        "seed",
        "reset_position_ids",
        "reset_attention_mask",
        "eod_mask_loss",
        "save",
        "save_interval",
        "load",
        "finetune",
        "tokenizer_model",
        "log_interval",
        "tensorboard_dir",
        "wandb_project",
    ]
)
RENAMED = {
    "layernorm_epsilon": "norm_epsilon",
    "rope_theta": "rotary_base",
    "override_lr_scheduler": "override_opt_param_scheduler",
    "tokenizer_name_or_path": "tokenizer_model",
    "pad_vocab_size_to": "padded_vocab_size",
    "ds_sequence_parallel_size": "context_parallel_size",
}
# Where a list has an entry for each layer: no model has more.
MOST_LAYERS = 100_000
LAYERS = frozenset({"num_layers", "encoder_num_layers"})
_NORMS = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}
_POSITIONS = {"rotary": "rope", "absolute": "learned_absolute", "alibi": "none"}
_TOKENIZERS = {"HFTokenizer": "HuggingFaceTokenizer", "PretrainedFromHF": "HuggingFaceTokenizer"}
FLASH = ("use_flash_attn_v1", "use_flash_attn_v2", "use_flash_attn_triton", "use_flash_attn_builder")


class OpenError(Exception):
    """A value that is asked for is not known; the argument that lacks it is ``given``."""

    def __init__(self, given: Given) -> None:
        super().__init__(given.written)
        self.given = given


class Arguments:
    """A fork's arguments as they are in force: what is given, else the fork's default."""

    __slots__ = ("fork", "native")

    def __init__(self, native: Native) -> None:
        self.native = native
        self.fork = str(native.values[forks.FORK])

    def __getitem__(self, dest: str) -> Any:
        """The value; None for an argument that this fork does not have. Raises `OpenError` when it is not known."""
        stated = self.native.given.get(forks.address(dest))
        if stated is not None and stated.missing is not None:
            raise OpenError(stated)
        return self.native.values.get(forks.address(dest))

    def get(self, dest: str, default: Any = None) -> Any:
        """The value, or a default where it is not known or there is none."""
        try:
            value = self[dest]
        except OpenError:
            return default
        return default if value is None else value

    def stated(self, dest: str) -> Given | None:
        """What the script says about an argument."""
        return self.native.given.get(forks.address(dest))

    @property
    def pipelined(self) -> bool:
        """Whether the model is a PipelineModule (``pretrain_gpt.py:51``), as it always is in bigscience's fork."""
        return self.fork == forks.BIGSCIENCE or not self.get("no_pipeline_parallel", False)

    @property
    def experts(self) -> int:
        """Experts of the layers that have the most; 1 for a dense model."""
        listed = self["num_experts"]
        return max(listed) if isinstance(listed, list) and listed else 1


@dataclass(frozen=True, slots=True)
class Group:
    """Arguments that only make sense together, the Megatron-LM options that they decide, and how."""

    reads: tuple[str, ...]
    decides: tuple[str, ...]
    make: Callable[[Arguments], Mapping[str, Any]]


def _heads(fork: Arguments) -> Mapping[str, Any]:
    groups = fork["num_key_value_heads"]
    return {} if groups is None else {"group_query_attention": True, "num_query_groups": groups}


def _positions(fork: Arguments) -> Mapping[str, Any]:
    if fork.fork == forks.BIGSCIENCE:
        return {"position_embedding_type": _POSITIONS.get(fork["position_embedding_type"], "none")}
    rotary, absolute = fork["use_rotary_position_embeddings"], fork["add_position_embedding"]
    return {"position_embedding_type": "rope" if rotary else "learned_absolute" if absolute else "none"}


def _norm(fork: Arguments) -> Mapping[str, Any]:
    return {"normalization": _NORMS.get(fork["normalization"] or "layernorm", "LayerNorm")}


def _gate(fork: Arguments) -> Mapping[str, Any]:
    return {"swiglu": bool(fork["swiglu"] or fork["glu_activation"] == "swiglu")}


def _attention(fork: Arguments) -> Mapping[str, Any]:
    return {"attention_backend": "flash" if any(fork[name] for name in FLASH) else "unfused"}


def _sequence(fork: Arguments) -> Mapping[str, Any]:
    return {"cp_comm_type": ["a2a"]} if (fork["ds_sequence_parallel_size"] or 1) > 1 else {}


def _tokenizer(fork: Arguments) -> Mapping[str, Any]:
    kind = fork["tokenizer_type"]
    return {} if kind is None else {"tokenizer_type": _TOKENIZERS.get(kind, kind)}


def ramp_up(value: object) -> list[int] | None:
    """The three numbers of a ramp-up; None for anything else."""
    if not isinstance(value, list) or len(value) != len(("start", "step", "samples")):
        return None
    try:
        return [int(item) for item in value]
    except ValueError:
        return None


def _ramp_up(fork: Arguments) -> Mapping[str, Any]:
    numbers = ramp_up(fork["rampup_batch_size"])
    return {} if numbers is None else {"rampup_batch_size": numbers}


def _profile(fork: Arguments) -> Mapping[str, Any]:
    return {"profile": bool(fork["profile"])}


def _fp8(fork: Arguments) -> Mapping[str, Any]:
    kind = "e4m3" if fork["fp8_e4m3"] else "hybrid" if fork["fp8_hybrid"] else None
    return {} if kind is None else {"fp8": kind}


def _experts(fork: Arguments) -> Mapping[str, Any]:
    """DeepSpeed's MoE layer (``model/transformer.py:1069``, gate of ``deepspeed/moe/sharded_moe.py`` at 0.19.2)."""
    experts, top_k, every, layers = fork.experts, fork["topk"], fork["expert_interval"], fork["num_layers"]
    if experts <= 1:
        return {}
    tensor = fork["tensor_model_parallel_size"] if fork["enable_expert_tensor_parallelism"] else 1
    found: dict[str, Any] = {
        "num_experts": experts,
        "moe_router_topk": top_k,
        "moe_router_load_balancing_type": "aux_loss",
        "moe_aux_loss_coeff": fork["moe_loss_coeff"],
        # A single expert keeps the weight that the softmax over all gives it; several are normalised (:357, :430).
        "moe_router_pre_softmax": top_k == 1,
        "moe_router_dtype": "fp32",
        "expert_model_parallel_size": fork["moe_expert_parallel_size"],
        "expert_tensor_parallel_size": tensor,
        "moe_token_dispatcher_type": "alltoall",
    }
    if layers is not None and every and 0 < layers <= MOST_LAYERS:
        # `get_num_experts_per_layer` (:1650): every n-th layer, counted from 1.
        found["moe_layer_freq"] = [1 if (layer + 1) % every == 0 else 0 for layer in range(layers)]
    if fork["moe_token_dropping"]:
        found["moe_expert_capacity_factor"] = fork["moe_train_capacity_factor"]
        found["moe_pad_expert_input_to_capacity"] = True
        found["moe_token_drop_policy"] = "probs" if top_k > 2 else "position"
    return found


def _recompute(fork: Arguments) -> Mapping[str, Any]:
    """Both ways to build the model (``model/gpt_model.py:446``, ``model/transformer.py:1910-1990, 2082``)."""
    old, every = fork["checkpoint_activations"], fork["checkpoint_num_layers"]
    kind, method, layers = fork["recompute_granularity"], fork["recompute_method"], fork["recompute_num_layers"]
    kind = "selective" if fork["recompute_activations"] else kind
    engine = fork["deepspeed_activation_checkpointing"]
    whole = {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": every}
    found: dict[str, Any] = {}
    if fork.pipelined and old:
        found = dict(whole)
    elif fork.pipelined and kind == "full":
        # The pipeline knows no blocks: nothing is recomputed then.
        found = {**whole, "recompute_num_layers": layers} if method == "uniform" else {}
    elif (old or kind == "full") and engine:
        found = dict(whole)
    elif old or kind == "full":
        found = {**whole, "recompute_method": method, "recompute_num_layers": layers} if method else {}
    elif kind == "selective":
        found = {"recompute_granularity": "selective"}
    if found.get("recompute_granularity") == "full":
        split = fork["partition_activations"] if engine else fork["distribute_saved_activations"]
        found["distribute_saved_activations"] = bool(split)
    return found


GROUPS = (
    Group(("num_key_value_heads",), ("group_query_attention", "num_query_groups"), _heads),
    Group(
        ("use_rotary_position_embeddings", "add_position_embedding", "position_embedding_type"),
        ("position_embedding_type",),
        _positions,
    ),
    Group(("normalization",), ("normalization",), _norm),
    Group(("swiglu", "glu_activation"), ("swiglu",), _gate),
    Group(FLASH, ("attention_backend",), _attention),
    Group((), ("cp_comm_type",), _sequence),
    Group(("tokenizer_type",), ("tokenizer_type",), _tokenizer),
    Group(("rampup_batch_size",), ("rampup_batch_size",), _ramp_up),
    Group(("profile",), ("profile",), _profile),
    Group(("fp8_e4m3", "fp8_hybrid"), ("fp8",), _fp8),
    Group(
        (
            "num_experts",
            "topk",
            "expert_interval",
            "moe_loss_coeff",
            "moe_train_capacity_factor",
            "moe_token_dropping",
            "moe_expert_parallel_size",
            "enable_expert_tensor_parallelism",
        ),
        ("num_experts", "moe_router_topk", "moe_layer_freq", "moe_aux_loss_coeff", "moe_expert_capacity_factor"),
        _experts,
    ),
    Group(
        (
            "checkpoint_activations",
            "checkpoint_num_layers",
            "recompute_activations",
            "recompute_granularity",
            "recompute_method",
            "recompute_num_layers",
            "distribute_saved_activations",
            "deepspeed_activation_checkpointing",
            "partition_activations",
        ),
        ("recompute_granularity", "recompute_method", "recompute_num_layers"),
        _recompute,
    ),
)


def to_megatron(native: Native) -> Native:
    """The script as a settled configuration of Megatron-LM 0.12.0; its findings are another program's, and left out."""
    from translator.frameworks.megatron.settle import settle

    fork = Arguments(native)
    found = Native(MEGATRON, BASE)
    for address in LAUNCH_ADDRESSES:
        if address in native.given:
            found.given[address] = native.given[address]
    for dest in forks.catalogue(fork.fork).addresses():
        target = dest if dest in SAME else RENAMED.get(dest)
        if target is None:
            continue
        try:
            value = fork[dest]
        except OpenError as error:
            found.given[target] = Given(target, error.given.value, error.given.written)
            continue
        if value is not None and not (dest in LAYERS and value > MOST_LAYERS):
            found.given[target] = Given(target, value, dest)
    for group in GROUPS:
        _join(group, fork, found)
    settle(found, load(MEGATRON, BASE))
    return found


def _join(group: Group, fork: Arguments, found: Native) -> None:
    try:
        made = group.make(fork)
    except OpenError as error:
        missing = error.given.value
        assert isinstance(missing, Missing)
        made = dict.fromkeys(group.decides, missing)
    for target, value in made.items():
        found.given[target] = Given(target, value, target)
