"""Qwen 3: grouped heads of free width, normalised queries and keys, dense or MoE throughout.

0.2.2, ``models/qwen3/model/model.py``: the head width is an argument (:167); queries and keys have an RMSNorm each
where ``qk_norm`` says so (:172-181); no linear has a bias (:183-190, :326-328); the feed-forward width is given as it
is (:364); either all layers are MoE or none (:356); rotary halves (:55), never stretched (:36); the head may share the
embedding's weights (:466). It cannot be split into pipeline stages (``models/qwen3/__init__.py:197``), and its
optimizer does not update the balancing bias (:198).
"""

from __future__ import annotations

from collections.abc import Mapping

from translator.frameworks.torchtitan.models.base import (
    Family,
    Inexpressible,
    Row,
    all_fixed,
    attention_rows,
    choice,
    fixed,
    integer,
    link,
)
from translator.frameworks.torchtitan.models.parts import (
    GATED_SILU,
    NO_BIAS,
    PLAIN_BLOCK,
    depth_init,
    moe_rows,
    shared_experts,
)

MODEL = "models/qwen3/model/model.py"


def _only_with_experts(row: Row) -> Row:
    """A row of the MoE layer, which is absent unless ``moe_enabled``."""

    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        return row.read(arguments) if arguments.get("moe_enabled") else {}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        return row.write(leaves) if leaves.get("moe.experts") else {}

    return Row(row.arguments, row.leaves, read, write)


def _kind() -> Row:
    """Whether all layers are MoE."""

    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        if arguments["moe_enabled"]:
            return {"moe.ffn": arguments["moe_inter_dim"], "moe.dense_layers": []}
        return {"ffn": arguments["hidden_dim"], "moe.experts": 0}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted: dict[str, object] = {}
        if leaves.get("ffn") is not None:
            wanted["hidden_dim"] = leaves["ffn"]
        if not leaves.get("moe.experts"):
            return wanted
        if leaves.get("moe.dense_layers"):
            raise Inexpressible("moe.dense_layers", f"all layers are MoE or none ({MODEL}:356)")
        width = leaves.get("moe.ffn")
        return {**wanted, "moe_enabled": True, **({} if width is None else {"moe_inter_dim": width})}

    return Row(("moe_enabled", "moe_inter_dim", "hidden_dim"), ("ffn", "moe.ffn", "moe.dense_layers"), read, write)


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
    link("enable_weight_tying", "tied_embeddings"),
    choice("qk_norm", "qk_norm", {True: "rmsnorm", False: "none"}, f"{MODEL}:172"),
    depth_init(f"{MODEL}:380"),
    *attention_rows(f"{MODEL}:524", {"sdpa": "sdpa", "flex": "flex", "varlen": "varlen"}),
    *all_fixed({**PLAIN_BLOCK, **GATED_SILU, **NO_BIAS}, MODEL),
    *all_fixed(
        {
            "rope.scaling": "none",
            "rope.interleaved": False,
            "rope.skip_layers": None,
            "attention_window": None,
            "attention_softmax": "vanilla",
            "mla.enabled": False,
        },
        MODEL,
    ),
    *(_only_with_experts(row) for row in moe_rows("moe_args", trains_bias=False)),
    _only_with_experts(
        shared_experts("moe_args", lambda arguments: integer(arguments["moe_inter_dim"]), "models/moe/moe.py:445")
    ),
    _only_with_experts(fixed("moe.expert_bias_linear", False, "models/moe/moe.py:142")),
    _kind(),
)

FAMILIES = {
    "0.2.2": Family(
        name="qwen3",
        rows=ROWS,
        table="qwen3_args",
        module="torchtitan.models.qwen3",
        arguments_class="Qwen3ModelArgs",
        nested={"moe_args": ("MoEArgs", "torchtitan.models.moe")},
        unused=frozenset({"eos_id", "moe_args.gate_bias"}),
        pipeline=False,
    ),
}
