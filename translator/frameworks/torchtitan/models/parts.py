"""Rows that several families share: grouped heads, rounded feed-forward widths, the common MoE layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from translator.frameworks.torchtitan.models.base import (
    Inexpressible,
    Row,
    all_fixed,
    choice,
    integer,
    link,
)

# What every llama-like block of torchtitan has in common, whatever its arguments.
PLAIN_BLOCK: Mapping[str, object] = {
    "positions": "rope",
    "rope.fraction": 1.0,
    "norm": "rmsnorm",
    "norm_one_plus": False,
    "norm_placement": "pre",
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "attention_output_gate": False,
    "init_std": 0.02,
    "mtp.layers": 0,
}
GATED_SILU: Mapping[str, object] = {"activation": "silu", "gated": True, "activation_clamp": None}
NO_BIAS: Mapping[str, object] = {"bias_linear": False, "bias_qkv": False}


def depth_init(source: str) -> Row:
    """Initial scale of the last linear of a sublayer: by the layer's own index, or by the number of layers."""
    return choice("depth_init", "init_output_scaling", {True: "layer_index", False: "depth"}, source)


def derived_head_dim(source: str) -> tuple[Row, ...]:
    """Heads whose width is the residual width divided by their number; no key-value heads given means no grouping."""

    def read_heads(arguments: Mapping[str, object]) -> Mapping[str, object]:
        heads = integer(arguments["n_heads"])
        return {"heads": heads, "head_dim": integer(arguments["dim"]) // heads}

    def write_heads(leaves: Mapping[str, object]) -> Mapping[str, object]:
        heads, hidden, width = (integer(leaves.get(leaf)) for leaf in ("heads", "hidden", "head_dim"))
        if not heads:
            return {}
        if hidden % heads:
            raise Inexpressible("heads", f"the width {hidden} does not divide into {heads} heads ({source})")
        if width and width * heads != hidden:
            raise Inexpressible("head_dim", f"the width of a head is always {hidden} / {heads} ({source})")
        return {"n_heads": heads}

    def read_kv(arguments: Mapping[str, object]) -> Mapping[str, object]:
        return {"kv_heads": arguments.get("n_kv_heads") or arguments["n_heads"]}

    def write_kv(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get("kv_heads")
        return {} if wanted is None or wanted == leaves.get("heads") else {"n_kv_heads": wanted}

    return (
        Row(("n_heads",), ("heads", "head_dim"), read_heads, write_heads),
        Row(("n_kv_heads",), ("kv_heads",), read_kv, write_kv),
    )


def rounded_width(hidden: int, multiplier: object, multiple: int, divisor: int = 1) -> int:
    """Width of a feed-forward that is 8/3 of the residual width, scaled, divided and rounded up.

    ``models/llama3/model/model.py:332-336`` and ``models/llama4/model/model.py:388-402`` (0.2.2).
    """
    width = int(2 * (4 * hidden) / 3)
    if isinstance(multiplier, (int, float)):
        width = int(multiplier * width)
    width = int(width / divisor)
    return width + -width % multiple


def width_arguments(hidden: int, fits: Callable[[object, int], bool], wanted: int) -> Mapping[str, object] | None:
    """Multiplier and rounding that ``fits`` accepts, the plainest first, or None.

    ``wanted`` is the width to reach; every power of two that divides it is tried as the rounding, and multipliers with
    as few digits as possible.
    """
    if fits(None, 256):
        return {}
    base = int(2 * (4 * hidden) / 3)
    if not base:
        return None
    # The usual roundings first.
    powers = [2**power for power in (8, 9, 10, 11, 12, 7, 6, 5, 4, 3, 2, 1, 0) if wanted % 2**power == 0]
    for multiple in powers:
        if fits(None, multiple):
            return {"multiple_of": multiple}
    for digits in range(1, 17):
        for multiple in powers:
            for target in (wanted, wanted + 0.5, wanted - multiple / 2):
                multiplier = round(target / base, digits)
                if multiplier > 0 and fits(multiplier, multiple):
                    return {"ffn_dim_multiplier": multiplier, "multiple_of": multiple}
    return None


def moe_rows(group: str, *, trains_bias: bool) -> tuple[Row, ...]:
    """The common MoE layer: ``models/moe/moe.py:22`` (arguments), ``:188`` (router), ``:421`` (layer), all of 0.2.2.

    Scores are computed over all experts in fp32, after a gate in the compute format; no token is dropped; there is no
    auxiliary loss. ``trains_bias`` is whether the family's optimizer updates the balancing bias
    (``build_optimizers_with_moe_load_balancing``); without that the bias stays zero.
    """
    name = f"{group}.".__add__

    def read_shared(arguments: Mapping[str, object]) -> Mapping[str, object]:
        return {"router_groups": arguments.get(name("num_expert_groups")) or 0}

    def write_groups(leaves: Mapping[str, object]) -> Mapping[str, object]:
        groups, limited = integer(leaves.get("moe.router_groups")), integer(leaves.get("moe.router_group_top_k"))
        if not groups or groups == 1:
            return {}
        if not limited or integer(leaves.get("moe.experts")) // groups < 2:
            raise Inexpressible("moe.router_groups", "a group needs two experts, and a number of groups to choose from")
        return {name("num_expert_groups"): groups, name("num_limited_groups"): limited}

    def read_groups(arguments: Mapping[str, object]) -> Mapping[str, object]:
        groups = read_shared(arguments)["router_groups"]
        limited = arguments.get(name("num_limited_groups")) or 0
        return {"moe.router_groups": groups, "moe.router_group_top_k": limited if groups else 0}

    def read_bias(arguments: Mapping[str, object]) -> Mapping[str, object]:
        rate = arguments.get(name("load_balance_coeff"))
        active = trains_bias and bool(rate)
        return {"moe.router_bias": active, "moe.router_bias_rate": rate if active else None}

    def write_bias(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get("moe.router_bias")
        if wanted and not trains_bias:
            raise Inexpressible("moe.router_bias", "this family's optimizer never updates the balancing bias")
        if wanted:
            rate = leaves.get("moe.router_bias_rate")
            return {} if rate is None else {name("load_balance_coeff"): rate}
        return {name("load_balance_coeff"): None}

    return (
        link(name("num_experts"), "moe.experts"),
        link(name("top_k"), "moe.top_k"),
        choice(
            name("score_func"),
            "moe.router_score",
            {"softmax": "softmax", "sigmoid": "sigmoid"},
            "models/moe/moe.py:315",
        ),
        link(name("route_norm"), "moe.router_normalize"),
        link(name("route_scale"), "moe.router_scaling"),
        link(name("score_before_experts"), "moe.scores_on_input"),
        link(name("use_grouped_mm"), "moe.grouped_gemm"),
        Row(
            (name("num_expert_groups"), name("num_limited_groups")),
            ("moe.router_groups", "moe.router_group_top_k"),
            read_groups,
            write_groups,
        ),
        Row((name("load_balance_coeff"),), ("moe.router_bias", "moe.router_bias_rate"), read_bias, write_bias),
        *all_fixed(
            {
                "moe.router_dtype": "compute",
                "moe.router_jitter": None,
                "moe.balancing": ["none"],
                "moe.aux_loss_coefficient": None,
                "moe.z_loss_coefficient": None,
                "moe.capacity_factor": None,
                "moe.capacity_padding": False,
                "moe.shared_gate": False,
            },
            "models/moe/moe.py:297-350",
        ),
    )


def shared_experts(group: str, width: Callable[[Mapping[str, object]], int], source: str) -> Row:
    """Shared experts: one feed-forward as wide as a whole number of routed experts (``models/moe/moe.py:441-445``)."""
    count = f"{group}.num_shared_experts"

    def read(arguments: Mapping[str, object]) -> Mapping[str, object]:
        return {"moe.shared_ffn": width(arguments) * integer(arguments[count])}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        shared, routed = integer(leaves.get("moe.shared_ffn")), integer(leaves.get("moe.ffn"))
        if not shared:
            return {count: 0}
        if not routed or shared % routed:
            raise Inexpressible(
                "moe.shared_ffn", f"shared experts are a whole number of routed ones, {routed} wide each ({source})"
            )
        return {count: shared // routed}

    return Row((count,), ("moe.shared_ffn",), read, write)
