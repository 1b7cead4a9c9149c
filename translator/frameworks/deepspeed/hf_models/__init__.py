"""Hugging Face model configurations: ``config.json`` to leaves of the spec's section ``model`` and back.

A family is a table (`base.Family`); writing picks the family whose configuration reads back nearest to the leaves.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from translator.frameworks.deepspeed.hf_models.base import Family
from translator.spec.derive import classify

MODULES = ("llama", "qwen", "mistral", "deepseek", "gpt", "gpt_oss", "gemma")
# Model types whose configuration holds that of the language model.
NESTED = {"gemma3": "gemma3_text"}
PREFIX = "model."
# What only says something about storage, generation or the version: no leaf, and no loss.
IRRELEVANT = frozenset(
    {
        "architectures",
        "model_type",
        "torch_dtype",
        "dtype",
        "transformers_version",
        "use_cache",
        "bos_token_id",
        "eos_token_id",
        "pad_token_id",
        "unk_token_id",
        "pretraining_tp",
        "_name_or_path",
        "name_or_path",
        "auto_map",
        "cache_implementation",
        "quantization_config",
        "output_attentions",
        "output_hidden_states",
        "return_dict",
        "is_decoder",
        "summary_type",
        "summary_use_proj",
        "summary_activation",
        "summary_proj_to_labels",
        "summary_first_dropout",
        "task_specific_params",
        "n_ctx",
        "use_mtp",
        "num_nextn_predict_layers",
        "num_mtp_layers",
        "ep_size",
        "aux_loss_alpha",
        "seq_aux",
        "scoring_func",
        "topk_method",
        "moe_layer_freq",
        "classifier_dropout",
        "experts_per_token",
        "initial_context_length",
        "swiglu_alpha",
        "boi_token_index",
        "eoi_token_index",
        "image_token_index",
        "scale_attn_weights",
        "id2label",
        "label2id",
        "gradient_checkpointing",
        "reorder_and_upcast_attn",
    }
)


@cache
def families() -> dict[str, Family]:
    """All families by model type, the plainest first."""
    found = (family for name in MODULES for family in import_module(f"{__name__}.{name}").FAMILIES)
    return {family.model_type: family for family in found}


@cache
def keys() -> tuple[str, ...]:
    """Every entry that some family knows."""
    return tuple(sorted({key for family in families().values() for key in family.keys}))


class Read(NamedTuple):
    """Leaves that a ``config.json`` means (with their prefix), and the family that read it; None for an unknown one.

    ``stated`` are entries that no row of the family reads.
    """

    leaves: dict[str, Any]
    family: Family | None
    strangers: tuple[str, ...]


def read(config: Mapping[str, Any]) -> Read:
    """Read a configuration; of an unknown model type the entries that most of them share."""
    config, family = _family(config)
    if family is None:
        return Read(
            _generic(config), None, tuple(key for key in config if key not in {*keys(), *_GENERIC, *IRRELEVANT})
        )
    leaves = {f"{PREFIX}{leaf}": value for leaf, value in family.read(config).items()}
    _tidy(leaves, config)
    known = {*family.keys, *family.defaults, *IRRELEVANT}
    return Read(leaves, family, tuple(key for key in config if key not in known and config[key] is not None))


def _family(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Family | None]:
    """The configuration of the language model, and its family; None for an unknown one."""
    kind = config.get("model_type")
    if not isinstance(kind, str):
        return config, None
    if kind in NESTED and isinstance(config.get("text_config"), Mapping):
        kind = NESTED[kind]
        config = {**config["text_config"], "model_type": kind}
    return config, families().get(kind)


def misfits(config: Mapping[str, Any]) -> dict[str, str]:
    """Entries whose value is of another type than the class has it, or no word that is known, and what is expected.

    The classes check the types of their entries (huggingface_hub's ``strict``, transformers 5).
    """
    config, family = _family(config)
    if family is None:
        return {}
    choices = {row.keys[0]: row.choices for row in family.rows if row.choices}
    found: dict[str, str] = {}
    for key, value in config.items():
        default = family.defaults.get(key)
        if value is None:
            continue
        if key in choices:
            if not isinstance(value, Hashable) or value not in choices[key]:
                found[key] = f"one of {', '.join(map(str, choices[key]))} is known"
        elif isinstance(default, bool):
            if not isinstance(value, bool):
                found[key] = "true or false is expected"
        elif isinstance(default, int | float) or key in _NUMBERS:
            if isinstance(value, bool) or not isinstance(value, int | float):
                found[key] = "a number is expected"
        elif key in _MAPPINGS and not isinstance(value, Mapping):
            found[key] = "an object is expected"
    return found


# Entries that are absent or null by default.
_NUMBERS = frozenset({"rope_theta", "num_key_value_heads", "head_dim", "n_inner"})
_MAPPINGS = frozenset({"rope_scaling", "rope_parameters"})


def _tidy(leaves: dict[str, Any], config: Mapping[str, Any]) -> None:
    """Leaves that follow from others, and those without meaning in this model."""
    experts = leaves.get(f"{PREFIX}moe.experts")
    if not experts:
        leaves.update({leaf: None for leaf in leaves if leaf.startswith(f"{PREFIX}moe.")})
    if leaves.get(f"{PREFIX}positions") != "rope":
        leaves.update({leaf: None for leaf in leaves if leaf.startswith((f"{PREFIX}rope.", f"{PREFIX}rope_base"))})
    name = config.get("_name_or_path")
    if isinstance(name, str) and name:
        leaves[f"{PREFIX}name"] = name
    leaves[f"{PREFIX}family"] = classify(
        norm=leaves.get(f"{PREFIX}norm"),
        positions=leaves.get(f"{PREFIX}positions"),
        gated=leaves.get(f"{PREFIX}gated"),
        activation=leaves.get(f"{PREFIX}activation"),
        experts=experts,
        mla=bool(leaves.get(f"{PREFIX}mla.enabled")),
        sinks=leaves.get(f"{PREFIX}attention_softmax") == "learnable",
    )


_GENERIC = {
    "num_hidden_layers": "layers", "n_layer": "layers", "num_layers": "layers",
    "hidden_size": "hidden", "n_embd": "hidden", "d_model": "hidden",
    "intermediate_size": "ffn", "ffn_dim": "ffn", "n_inner": "ffn",
    "num_attention_heads": "heads", "n_head": "heads", "n_heads": "heads",
    "num_key_value_heads": "kv_heads", "head_dim": "head_dim",
    "vocab_size": "vocab", "max_position_embeddings": "max_positions", "n_positions": "max_positions",
    "rms_norm_eps": "norm_eps", "layer_norm_eps": "norm_eps", "layer_norm_epsilon": "norm_eps",
    "rope_theta": "rope_base", "tie_word_embeddings": "tied_embeddings", "attention_dropout": "attention_dropout",
    "initializer_range": "init_std", "num_local_experts": "moe.experts", "num_experts": "moe.experts",
    "n_routed_experts": "moe.experts", "num_experts_per_tok": "moe.top_k", "moe_intermediate_size": "moe.ffn",
}  # fmt: skip
_WHOLE = frozenset(
    {"layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab", "max_positions"}
    | {"moe.experts", "moe.top_k", "moe.ffn"}
)


def _generic(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the usual names say, without a default for anything."""
    leaves: dict[str, Any] = {}
    for key, leaf in _GENERIC.items():
        value = config.get(key)
        if value is None or f"{PREFIX}{leaf}" in leaves:
            continue
        if leaf in _WHOLE:
            sound = isinstance(value, int) and not isinstance(value, bool) and value > 0
        elif leaf == "tied_embeddings":
            sound = isinstance(value, bool)
        else:
            sound = isinstance(value, int | float) and not isinstance(value, bool)
            value = float(value) if sound else value
        if sound:
            leaves[f"{PREFIX}{leaf}"] = value
    return leaves


class Written(NamedTuple):
    """A configuration for wanted leaves, its family, and the leaves that it does not meet, with why."""

    config: dict[str, Any]
    family: Family
    missed: dict[str, str]


# A leaf of the second kind decides nothing: it changes no number, or another place says it.
LIGHT = frozenset(
    {"name", "family", "vocab_padded", "vocab_divisor", "attention_kernel", "moe.dispatcher", "moe.grouped_gemm"}
    | {"init_std", "init_output_scaling", "attention_dropout", "hidden_dropout", "moe.router_dtype", "residual_fp32"}
)
# What no family can stand in for.
_HEAVY = frozenset({"moe.experts", "mla.enabled", "positions", "norm", "gated", "attention_softmax", "norm_placement"})


def write(leaves: Mapping[str, Any], *, prefer: str | None = None) -> Written:
    """The family and configuration nearest to the leaves (with their prefix); ``prefer`` breaks ties.

    A leaf that is None is not wanted.
    """
    wanted = {leaf.removeprefix(PREFIX): value for leaf, value in leaves.items() if leaf.startswith(PREFIX)}
    if prefer is None and wanted.get("bias_qkv") and not wanted.get("bias_linear"):
        prefer = "qwen2"  # llama's entry would give the output projection a bias as well
    ranked: list[tuple[int, int, Written]] = []
    for position, family in enumerate(families().values()):
        written = _attempt(family, wanted)
        cost = sum(100 if leaf in _HEAVY else 1 if leaf in LIGHT else 10 for leaf in written.missed)
        ranked.append((cost, -1 if family.model_type == prefer else position, written))
    return min(ranked, key=lambda entry: entry[:2])[2]


def _attempt(family: Family, wanted: Mapping[str, Any]) -> Written:
    from translator.compare import equal

    config = family.write(wanted)
    found = read(config).leaves
    notes = family.notes()
    missed: dict[str, str] = {}
    for leaf, value in wanted.items():
        if value is None or leaf in ("name", "family", "vocab_divisor") or _nothing(leaf, value):
            continue
        if not equal(value, found.get(f"{PREFIX}{leaf}")):
            missed[leaf] = notes.get(leaf) or f"{leaf}: no entry in a configuration of {family.model_type}"
    return Written(config, family, missed)


def _nothing(leaf: str, value: Any) -> bool:
    """Whether a leaf says that something is not there, which an absent entry says as well."""
    return leaf in {"moe.experts", "mtp.layers", "attention_window"} and not value


@cache
def entries() -> tuple[str, ...]:
    """Every entry that a configuration may have and that something is known about."""
    defaults = {key for family in families().values() for key in family.defaults}
    return tuple(sorted({*keys(), *defaults, *_GENERIC, *IRRELEVANT, "text_config"}))


@cache
def influences(prefix: str) -> dict[str, tuple[str, ...]]:
    """Per entry, with ``prefix``, the leaves that it may feed in one family or another."""
    found: dict[str, dict[str, None]] = {key: {} for key in entries()}
    for family in families().values():
        for row in family.rows:
            for key in row.keys:
                found[key].update(dict.fromkeys(f"{PREFIX}{leaf}" for leaf in row.leaves))
    for key, leaf in _GENERIC.items():
        found[key].setdefault(f"{PREFIX}{leaf}")
    found["model_type"].setdefault(f"{PREFIX}family")
    return {f"{prefix}{key}": tuple(leaves) for key, leaves in found.items()}


@cache
def _floats() -> frozenset[str]:
    found = {
        key for family in families().values() for key, value in family.defaults.items() if isinstance(value, float)
    }
    return frozenset({*found, "rope_theta", "rotary_pct"})


def is_float(key: str) -> bool:
    """Whether an entry is a float; classes of transformers 5 check the types of their entries."""
    return key in _floats()
