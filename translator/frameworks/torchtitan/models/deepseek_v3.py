"""DeepSeek V2 and V3: latent attention, some dense layers first, then a mixture of experts.

0.2.2, ``models/deepseek_v3/model/model.py``: queries are compressed unless ``q_lora_rank`` is 0 (:214-221); the
latents have an RMSNorm (:218, :225); no linear has a bias; the first ``n_dense_layers`` layers are dense (:356);
rotary pairs are neighbours (:192). Yarn works only when ``training.seq_len``, which replaces ``max_seq_len``
(args.py:90), is longer than ``original_seq_len`` (:94, :233); its scale then enters the softmax squared (:234-235).
The final norm has no epsilon of its own and takes the number format's (:425). The optimizer updates the balancing bias
(``models/deepseek_v3/__init__.py:165``).
"""

from __future__ import annotations

from collections.abc import Mapping

from translator.frameworks.torchtitan.models.base import (
    Family,
    Inexpressible,
    Row,
    all_fixed,
    attention_rows,
    fixed,
    integer,
    link,
)
from translator.frameworks.torchtitan.models.parts import GATED_SILU, NO_BIAS, PLAIN_BLOCK, moe_rows, shared_experts

MODEL = "models/deepseek_v3/model/model.py"
_YARN = {
    "rope_factor": "rope.scaling_factor",
    "original_seq_len": "rope.original_max_positions",
    "beta_fast": "rope.beta_fast",
    "beta_slow": "rope.beta_slow",
}


def _yarn() -> Row:
    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        longer = integer(arguments["max_seq_len"]) > integer(arguments["original_seq_len"])
        if not longer or arguments["rope_factor"] == 1:
            return {"rope.scaling": "none"}
        scale = arguments["mscale"]
        values = {leaf: arguments[name] for name, leaf in _YARN.items()}
        return {"rope.scaling": "yarn", **values, "mla.mscale": scale, "mla.mscale_all_dim": scale}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get("rope.scaling")
        if wanted in {None, "none"}:
            return {"rope_factor": 1.0}
        if wanted != "yarn":
            raise Inexpressible("rope.scaling", f"only yarn is known, not {wanted} ({MODEL}:94)")
        found = {name: leaves[leaf] for name, leaf in _YARN.items() if leaves.get(leaf) is not None}
        scale, all_dim = leaves.get("mla.mscale"), leaves.get("mla.mscale_all_dim")
        if all_dim is not None and scale is not None and all_dim != scale:
            raise Inexpressible("mla.mscale", f"one scale enters the softmax, and none the rotation ({MODEL}:234)")
        return found if scale is None else {**found, "mscale": scale}

    leaves = ("rope.scaling", *_YARN.values(), "mla.mscale", "mla.mscale_all_dim")
    return Row((*_YARN, "mscale"), leaves, read, write)


def _dense_layers() -> Row:
    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        dense = integer(arguments["n_dense_layers"])
        if dense >= integer(arguments["n_layers"]):
            return {"ffn": arguments["inter_dim"], "moe.experts": 0}
        width = {"ffn": arguments["inter_dim"]} if dense else {}
        return {"moe.dense_layers": list(range(dense)), **width}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get("moe.dense_layers") or []
        width = {} if leaves.get("ffn") is None else {"inter_dim": leaves["ffn"]}
        if not leaves.get("moe.experts"):
            return {"n_dense_layers": integer(leaves.get("layers")), **width}
        count = len(wanted) if isinstance(wanted, list) else 0
        if wanted != list(range(count)):
            raise Inexpressible("moe.dense_layers", f"dense layers come first, then MoE ({MODEL}:356)")
        return {"n_dense_layers": count, **width}

    return Row(("n_dense_layers", "inter_dim"), ("moe.dense_layers", "ffn"), read, write)


def _heads() -> Row:
    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        heads, kv_heads = leaves.get("heads"), leaves.get("kv_heads")
        if kv_heads is not None and kv_heads != heads:
            raise Inexpressible("kv_heads", "latent attention has no grouped heads")
        return {} if heads is None else {"n_heads": heads}

    return Row(
        ("n_heads",),
        ("heads", "kv_heads"),
        lambda arguments: {"heads": arguments["n_heads"], "kv_heads": arguments["n_heads"]},
        write,
    )


def _query_rank() -> Row:
    return Row(
        ("q_lora_rank",),
        ("mla.q_rank",),
        lambda arguments: {"mla.q_rank": arguments["q_lora_rank"] or None},
        lambda leaves: {"q_lora_rank": integer(leaves.get("mla.q_rank"))},
    )


ROWS: tuple[Row, ...] = (
    link("dim", "hidden"),
    link("n_layers", "layers"),
    _heads(),
    link("vocab_size", "vocab"),
    link("norm_eps", "norm_eps"),
    link("rope_theta", "rope_base"),
    link("max_seq_len", "max_positions"),
    link("moe_inter_dim", "moe.ffn"),
    fixed("mla.enabled", True, f"{MODEL}:197"),
    _query_rank(),
    link("kv_lora_rank", "mla.kv_rank"),
    link("qk_nope_head_dim", "mla.qk_nope_dim"),
    link("qk_rope_head_dim", "mla.qk_rope_dim"),
    link("v_head_dim", "mla.v_dim"),
    _yarn(),
    *attention_rows(f"{MODEL}:456", {"sdpa": "sdpa", "flex": "flex"}),
    *all_fixed({**PLAIN_BLOCK, **GATED_SILU, **NO_BIAS}, MODEL),
    *all_fixed(
        {
            "rope.interleaved": True,
            "rope.skip_layers": None,
            "qk_norm": "rmsnorm",
            "tied_embeddings": False,
            "attention_window": None,
            "attention_softmax": "vanilla",
            "init_output_scaling": "layer_index",
            "moe.expert_bias_linear": False,
        },
        MODEL,
    ),
    *moe_rows("moe_args", trains_bias=True),
    shared_experts("moe_args", lambda arguments: integer(arguments["moe_inter_dim"]), "models/moe/moe.py:445"),
    _dense_layers(),
)

FAMILIES = {
    "0.2.2": Family(
        name="deepseek_v3",
        rows=ROWS,
        table="deepseekv3_args",
        module="torchtitan.models.deepseek_v3",
        arguments_class="DeepSeekV3ModelArgs",
        nested={"moe_args": ("MoEArgs", "torchtitan.models.moe")},
        unused=frozenset({"max_batch_size", "expert_parallel_comm_backend", "moe_args.gate_bias"}),
        wraps_experts=True,
    ),
}
