"""Llama 4: the blocks of Llama 3 with a mixture of experts in every n-th layer.

0.2.2, ``models/llama4/model/model.py``: layer i is MoE when (i + 1) divides by ``interleave_moe_layer_step`` (:387);
the width of an expert is the dense one, divided by active experts where ``auto_scale_hidden_dim`` says so, then
rounded (:388-402); rotary frequencies are stretched only when ``rope_scaling_args`` is given (:64); with
``every_n_layers_nope`` the layers 0, n, 2n ... have no positions (:379). The optimizer updates the balancing bias
(``models/llama4/__init__.py:116``).

0.1.0, ``experiments/llama4``: arguments of the MoE layer are flat, routing is always a sigmoid whose score multiplies
the expert's input (``model/moe.py:199``), there is one shared expert or none, frequencies are not stretched.
"""

from __future__ import annotations

from collections.abc import Mapping

from translator.frameworks.torchtitan.models import llama3
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
from translator.frameworks.torchtitan.models.parts import moe_rows, rounded_width, shared_experts, width_arguments

MODEL = "models/llama4/model/model.py"


def _active(arguments: Mapping[str, object]) -> int:
    """Experts that one token passes through, by which the width of an expert is divided."""
    if not arguments.get("auto_scale_hidden_dim"):
        return 1
    top_k = arguments.get("moe_args.top_k", arguments.get("top_k"))
    shared = arguments.get("moe_args.num_shared_experts", arguments.get("use_shared_expert"))
    return integer(top_k) + integer(shared)


def _expert_width(arguments: Mapping[str, object]) -> int:
    hidden, multiple = integer(arguments["dim"]), integer(arguments["multiple_of"])
    return rounded_width(hidden, arguments.get("ffn_dim_multiplier"), multiple, _active(arguments))


def _dense(layers: int, step: int) -> list[int]:
    return [layer for layer in range(layers) if (layer + 1) % step]


def _widths() -> Row:
    """Widths of dense feed-forward and expert, which share one multiplier and one rounding."""

    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        hidden, multiple = integer(arguments["dim"]), integer(arguments["multiple_of"])
        widths: dict[str, object] = {"moe.ffn": _expert_width(arguments)}
        if integer(arguments["interleave_moe_layer_step"]) > 1:
            widths["ffn"] = rounded_width(hidden, arguments.get("ffn_dim_multiplier"), multiple)
        return widths

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        hidden, expert = integer(leaves.get("hidden")), integer(leaves.get("moe.ffn"))
        if not hidden or not expert:
            return {}
        dense = integer(leaves.get("ffn")) if leaves.get("moe.dense_layers") else 0
        active = integer(leaves.get("moe.top_k")) + integer(leaves.get("moe.shared_ffn")) // expert
        for scaled in (False, True):
            divisor = active if scaled else 1
            if not divisor:
                continue

            def fits(multiplier: object, multiple: int, divisor: int = divisor) -> bool:
                return rounded_width(hidden, multiplier, multiple, divisor) == expert and (
                    not dense or rounded_width(hidden, multiplier, multiple) == dense
                )

            found = width_arguments(hidden, fits, dense or expert * divisor)
            if found is not None:
                return {**found, "auto_scale_hidden_dim": scaled}
        raise Inexpressible("moe.ffn", f"no multiplier gives experts of width {expert} and a dense width of {dense}")

    arguments = ("ffn_dim_multiplier", "multiple_of", "auto_scale_hidden_dim")
    return Row(arguments, ("ffn", "moe.ffn"), read, write)


def _interleaving(source: str) -> Row:
    """Which layers are dense."""
    name = "interleave_moe_layer_step"

    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        return {"moe.dense_layers": _dense(integer(arguments["n_layers"]), integer(arguments[name]))}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted, layers = leaves.get("moe.dense_layers") or [], integer(leaves.get("layers"))
        for step in range(1, layers + 1):
            if wanted == _dense(layers, step):
                return {name: step}
        raise Inexpressible("moe.dense_layers", f"every n-th layer is MoE, no other pattern ({source})")

    return Row((name,), ("moe.dense_layers",), read, write)


def _positionless(source: str) -> Row:
    """Layers without rotary positions."""
    name = "every_n_layers_nope"

    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        every = integer(arguments.get(name))
        return {"rope.skip_layers": list(range(0, integer(arguments["n_layers"]), every)) if every else None}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted, layers = leaves.get("rope.skip_layers"), integer(leaves.get("layers"))
        if not wanted:
            return {}
        for every in range(2, layers + 1):
            if wanted == list(range(0, layers, every)):
                return {name: every}
        raise Inexpressible("rope.skip_layers", f"the layers 0, n, 2n ... go without positions, no others ({source})")

    return Row((name,), ("rope.skip_layers",), read, write)


_REPLACED = {"ffn", "rope.skip_layers"}
BLOCK: tuple[Row, ...] = (
    *(row for row in llama3.COMMON if not _REPLACED.intersection(row.leaves)),
    _widths(),
    _interleaving(f"{MODEL}:387"),
    _positionless(f"{MODEL}:379"),
    fixed("moe.expert_bias_linear", False, "models/moe/moe.py:142"),
)

ROWS_022: tuple[Row, ...] = (
    *BLOCK,
    link("vocab_size", "vocab"),
    llama3.rope_scaling(optional=True),
    *attention_rows(f"{MODEL}:545", {"sdpa": "sdpa", "flex": "flex"}),
    *moe_rows("moe_args", trains_bias=True),
    shared_experts("moe_args", _expert_width, "models/moe/moe.py:445"),
)


def _old_shared() -> Row:
    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        return {"moe.shared_ffn": _expert_width(arguments) if arguments["use_shared_expert"] else 0}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        shared = integer(leaves.get("moe.shared_ffn"))
        if shared and shared != leaves.get("moe.ffn"):
            raise Inexpressible("moe.shared_ffn", "there is one shared expert as wide as a routed one, or none")
        return {"use_shared_expert": bool(shared)}

    return Row(("use_shared_expert",), ("moe.shared_ffn",), read, write)


def _old_bias() -> Row:
    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        rate = arguments.get("load_balance_coeff")
        return {"moe.router_bias": bool(rate), "moe.router_bias_rate": rate or None}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        rate = leaves.get("moe.router_bias_rate")
        if not leaves.get("moe.router_bias"):
            return {"load_balance_coeff": None}
        return {} if rate is None else {"load_balance_coeff": rate}

    return Row(("load_balance_coeff",), ("moe.router_bias", "moe.router_bias_rate"), read, write)


ROWS_010: tuple[Row, ...] = (
    *BLOCK,
    fixed("rope.scaling", "none", "experiments/llama4/model/model.py:20"),
    llama3.old_attention("models/attention.py:29"),
    link("num_experts", "moe.experts"),
    link("top_k", "moe.top_k"),
    link("use_grouped_mm", "moe.grouped_gemm"),
    _old_shared(),
    _old_bias(),
    *all_fixed(
        {
            "moe.router_score": "sigmoid",
            "moe.router_normalize": False,
            "moe.router_scaling": 1.0,
            "moe.router_groups": 0,
            "moe.router_dtype": "compute",
            "moe.balancing": ["none"],
            "moe.z_loss_coefficient": None,
            "moe.capacity_factor": None,
            "moe.scores_on_input": True,
        },
        "experiments/llama4/model/moe.py:97",
    ),
)

FAMILIES = {
    "0.2.2": Family(
        name="llama4",
        rows=ROWS_022,
        table="llama4_args",
        module="torchtitan.models.llama4",
        arguments_class="TransformerModelArgs",
        nested={
            llama3.SCALING: ("RoPEScalingArgs", "torchtitan.models.llama4.model.args"),
            "moe_args": ("MoEArgs", "torchtitan.models.moe"),
        },
        unused=frozenset({"fixed_attn_block_size", "moe_args.gate_bias"}),
        wraps_experts=True,
    ),
    "0.1.0": Family(
        name="llama4",
        rows=ROWS_010,
        table="llama4_configs",
        module="torchtitan.experiments.llama4",
        arguments_class="TransformerModelArgs",
        nested={},
        unused=frozenset({"eos_id", "vocab_size", "fixed_attn_block_size", "moe_enabled"}),
    ),
}
