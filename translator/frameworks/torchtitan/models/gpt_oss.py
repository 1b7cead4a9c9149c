"""gpt-oss: grouped heads with a learned sink, a window in every second layer, all layers MoE, biases everywhere.

0.2.2, ``models/gpt_oss/model``: the four attention linears have biases (model.py:174-193); a learned logit per head
takes part in the softmax (model.py:194, :253); the layers 0, 2, 4 ... see a window (model.py:274); yarn always works
for a factor above 1 (model.py:64), with its scale on queries and keys; rotary halves (model.py:103); experts have
biases and a clamped x * sigmoid(1.702 x) gate with an offset of 1 on the other branch (moe.py:71-78); the router may
have a bias on its logits. It cannot be split into pipeline stages (``models/gpt_oss/__init__.py:85``), nor run context
parallel (args.py:98).
"""

from __future__ import annotations

from collections.abc import Mapping

from translator.frameworks.torchtitan.models.base import (
    Family,
    Inexpressible,
    Row,
    all_fixed,
    attention_rows,
    integer,
    link,
)
from translator.frameworks.torchtitan.models.parts import PLAIN_BLOCK, moe_rows, shared_experts

MODEL = "models/gpt_oss/model/model.py"
_YARN = {
    "rope_factor": "rope.scaling_factor",
    "original_seq_len": "rope.original_max_positions",
    "ntk_beta": "rope.beta_fast",
    "ntk_alpha": "rope.beta_slow",
}


def _yarn() -> Row:
    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        factor = arguments["rope_factor"]
        if not isinstance(factor, (int, float)) or factor <= 1:
            return {"rope.scaling": "none"}
        return {"rope.scaling": "yarn", **{leaf: arguments[name] for name, leaf in _YARN.items()}}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get("rope.scaling")
        if wanted in {None, "none"}:
            return {"rope_factor": 1.0}
        if wanted != "yarn":
            raise Inexpressible("rope.scaling", f"only yarn is known, not {wanted} ({MODEL}:64)")
        return {name: leaves[leaf] for name, leaf in _YARN.items() if leaves.get(leaf) is not None}

    return Row(tuple(_YARN), ("rope.scaling", *_YARN.values()), read, write)


def _window() -> Row:
    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        full = list(range(1, integer(arguments["n_layers"]), 2))
        return {"attention_window": arguments["sliding_window_size"], "attention_window_pattern": full}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        window, pattern = leaves.get("attention_window"), leaves.get("attention_window_pattern")
        if not window:
            raise Inexpressible("attention_window", f"every second layer sees a window ({MODEL}:274)")
        if pattern is not None and pattern != list(range(1, integer(leaves.get("layers")), 2)):
            raise Inexpressible("attention_window_pattern", f"the layers 0, 2, 4 ... see the window ({MODEL}:274)")
        return {"sliding_window_size": window}

    return Row(("sliding_window_size",), ("attention_window", "attention_window_pattern"), read, write)


def _all_moe() -> Row:
    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        if leaves.get("moe.dense_layers"):
            raise Inexpressible("moe.dense_layers", f"all layers are MoE ({MODEL}:279)")
        if not leaves.get("moe.experts"):
            raise Inexpressible("moe.experts", f"all layers are MoE ({MODEL}:279)")
        return {}

    return Row((), ("moe.dense_layers",), lambda _: {"moe.dense_layers": []}, write)


ROWS: tuple[Row, ...] = (
    link("dim", "hidden"),
    link("n_layers", "layers"),
    link("n_heads", "heads"),
    link("n_kv_heads", "kv_heads"),
    link("head_dim", "head_dim"),
    link("vocab_size", "vocab"),
    link("norm_eps", "norm_eps"),
    link("rope_theta", "rope_base"),
    link("max_seq_len", "max_positions"),
    link("moe_inter_dim", "moe.ffn"),
    link("swiglu_limit", "activation_clamp"),
    _yarn(),
    _window(),
    _all_moe(),
    *attention_rows(f"{MODEL}:400", {"flex": "flex"}),
    *all_fixed(PLAIN_BLOCK, MODEL),
    *all_fixed(
        {
            "activation": "quick_gelu",
            "gated": True,
            "bias_linear": True,
            "bias_qkv": True,
            "rope.interleaved": False,
            "rope.skip_layers": None,
            "qk_norm": "none",
            "tied_embeddings": False,
            "attention_softmax": "learnable",
            "init_output_scaling": "layer_index",
            "mla.enabled": False,
            "moe.expert_bias_linear": True,
        },
        MODEL,
    ),
    *moe_rows("moe_args", trains_bias=True),
    Row(("moe_args.gate_bias",), (), lambda _: {}, lambda _: {"moe_args.gate_bias": True}),
    shared_experts("moe_args", lambda arguments: integer(arguments["moe_inter_dim"]), "models/moe/moe.py:445"),
)

FAMILIES = {
    "0.2.2": Family(
        name="gpt_oss",
        rows=ROWS,
        table="gptoss_configs",
        module="torchtitan.models.gpt_oss",
        arguments_class="GptOssModelArgs",
        nested={"moe_args": ("MoEArgs", "torchtitan.models.moe")},
        unused=frozenset({"max_batch_size", "dtype"}),
        pipeline=False,
        context=frozenset(),
        wraps_experts=True,
    ),
}
