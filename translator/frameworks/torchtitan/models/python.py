"""The families of 0.3.0, where a model is a tree of Config objects built by Python functions.

A flavor is known by plain facts: the dimensions that its function hands to the builders
(``models/llama3/__init__.py:70``, ``models/qwen3/__init__.py:91``, ``models/deepseek_v3/__init__.py:171``,
``models/gpt_oss/__init__.py:200``), and those of its rotary positions under ``rope``. What a function leaves to a
builder is a default here.

Every attention is masked by document (``models/common/config_utils.py:70``); scores are computed in fp32
(``models/common/moe.py:304``) and multiply the experts' outputs (``models/common/token_dispatcher.py:160``); fused
projections keep the parameter count. The sequence may not outgrow the rotary positions
(``models/common/decoder.py:169``).
"""

from __future__ import annotations

from collections.abc import Mapping

from translator.frameworks.torchtitan.models.base import Family, Inexpressible, Row, all_fixed, fixed, integer, same
from translator.frameworks.torchtitan.models.parts import GATED_SILU, NO_BIAS, PLAIN_BLOCK

BUILDERS = "models/common/config_utils.py"
BACKENDS = ("flex", "flex_flash", "varlen")
POSITIONS = "rope.max_seq_len"
OUTPUT_INITS = ("layer_index", "depth", "none")


def fact(name: str, leaf: str, default: object = None) -> Row:
    """A fact that is the leaf, and what it is where a flavor does not state it."""

    def read(facts: Mapping[str, object]) -> Mapping[str, object]:
        value = facts.get(name, default)
        return {} if value is None else {leaf: value}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get(leaf)
        return {} if wanted is None or same(wanted, default) else {name: wanted}

    return Row((name,), (leaf,), read, write)


def heads() -> tuple[Row, ...]:
    """Grouped heads of free width, ``dim / n_heads`` where none is given (``config_utils.py:196``)."""

    def read(facts: Mapping[str, object]) -> Mapping[str, object]:
        count, width = integer(facts.get("n_heads")), facts.get("head_dim")
        if not count:
            return {}
        width = width or integer(facts.get("dim")) // count
        return {"heads": count, "kv_heads": facts.get("n_kv_heads") or count, "head_dim": width}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        count, kv_heads, hidden = (integer(leaves.get(leaf)) for leaf in ("heads", "kv_heads", "hidden"))
        width = integer(leaves.get("head_dim"))
        if not count:
            return {}
        if kv_heads and count % kv_heads:
            raise Inexpressible("kv_heads", f"{count} heads do not divide into {kv_heads} groups (attention.py:809)")
        if not width and hidden % count:
            raise Inexpressible("heads", f"the width {hidden} does not divide into {count} heads")
        found: dict[str, object] = {"n_heads": count}
        if kv_heads and kv_heads != count:
            found["n_kv_heads"] = kv_heads
        if width and width * count != hidden:
            found["head_dim"] = width
        return found

    return (Row(("n_heads", "n_kv_heads", "head_dim"), ("heads", "kv_heads", "head_dim"), read, write),)


def attention(default: str) -> Row:
    """The attention implementation; the mask is always by document."""

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted, mask = leaves.get("attention_kernel"), leaves.get("attention_mask")
        if mask not in {None, "document"}:
            reason = f"attention is causal within each document of a sequence ({BUILDERS}:70)"
            raise Inexpressible("attention_mask", reason)
        return {"attn_backend": wanted} if wanted in BACKENDS and wanted != default else {}

    return Row(
        ("attn_backend",),
        ("attention_kernel", "attention_mask"),
        lambda facts: {"attention_kernel": facts.get("attn_backend") or default, "attention_mask": "document"},
        write,
    )


_LLAMA = {
    "rope.scaling_factor": ("rope.scaling_factor", 8.0),
    "rope.low_freq_factor": ("rope.low_freq_factor", 1.0),
    "rope.high_freq_factor": ("rope.high_freq_factor", 4.0),
    "rope.original_max_position_embeddings": ("rope.original_max_positions", 8192),
}
_YARN = {
    "rope.rope_factor": ("rope.scaling_factor", 1.0),
    "rope.beta_fast": ("rope.beta_fast", 32.0),
    "rope.beta_slow": ("rope.beta_slow", 1.0),
    "rope.original_seq_len": ("rope.original_max_positions", 4096),
}


def positions(*kinds: str) -> tuple[Row, ...]:
    """Rotary positions with the stretching that the family's attention takes (``models/common/rope.py:84``)."""

    def read(facts: Mapping[str, object]) -> Mapping[str, object]:
        kind = facts.get("rope.scaling") or "none"
        table = _LLAMA if kind == "llama" else _YARN
        if kind == "none" or (kind == "yarn" and not _above_one(facts.get("rope.rope_factor"))):
            return {"rope.scaling": "none"}
        values = {leaf: facts.get(name, default) for name, (leaf, default) in table.items()}
        return {"rope.scaling": "llama3" if kind == "llama" else kind, **values}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get("rope.scaling") or "none"
        if wanted == "none" or same(leaves.get("rope.scaling_factor"), 1):
            return {}
        if wanted not in kinds:
            raise Inexpressible("rope.scaling", f"only {' or '.join(kinds) or 'none'} is known, not {wanted}")
        table = _LLAMA if wanted == "llama3" else _YARN
        values = {name: leaves.get(leaf, default) for name, (leaf, default) in table.items()}
        return {"rope.scaling": "llama" if wanted == "llama3" else wanted, **values}

    stretched = ("rope.scaling", *dict.fromkeys(leaf for leaf, _ in (*_LLAMA.values(), *_YARN.values())))
    return (
        fact("rope.theta", "rope_base", 10000.0),
        fact(POSITIONS, "max_positions"),
        Row(("rope.scaling", *_LLAMA, *_YARN), stretched, read, write),
    )


def rotated_pairs(*, interleaved: bool) -> Row:
    """Which elements rotate together follows from the class (``models/common/rope.py:187``, ``:287``)."""

    def read(facts: Mapping[str, object]) -> Mapping[str, object]:
        stated = facts.get("rope.class")
        return {"rope.interleaved": interleaved if stated is None else stated == "ComplexRoPE"}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get("rope.interleaved")
        if wanted is not None and wanted is not interleaved:
            raise Inexpressible("rope.interleaved", "the family's weights are laid out for one kind of pairs")
        return {}

    return Row(("rope.class",), ("rope.interleaved",), read, write)


def _above_one(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 1


def initial(scaling: str, with_experts: str = "") -> tuple[Row, ...]:
    """Initial scales: a flavor has the family's own, a model built by hand what is wanted.

    ``with_experts`` is the scaling of the last linears where a family's MoE models have another one.
    """
    dense = choice_of("output_init", "init_output_scaling", scaling, OUTPUT_INITS)
    sparse = choice_of("output_init", "init_output_scaling", with_experts or scaling, OUTPUT_INITS)

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        row, usual = (sparse, with_experts or scaling) if leaves.get("moe.experts") else (dense, scaling)
        by_depth = {"layer_index", "depth"}
        # A single layer is the first and all of them.
        if leaves.get("layers") == 1 and usual in by_depth and leaves.get("init_output_scaling") in by_depth:
            return {}
        return row.write(leaves)

    def read(facts: Mapping[str, object]) -> Mapping[str, object]:
        return (sparse if facts.get("num_experts") else dense).read(facts)

    return (fact("init_std", "init_std", 0.02), Row(dense.arguments, dense.leaves, read, write))


def choice_of(name: str, leaf: str, default: object, values: tuple[object, ...]) -> Row:
    """A fact among a few."""
    row = fact(name, leaf, default)

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = leaves.get(leaf)
        if wanted is not None and wanted not in values:
            raise Inexpressible(leaf, f"{leaf} cannot be {wanted!r}: only {', '.join(map(str, values))}")
        return row.write(leaves)

    return Row(row.arguments, row.leaves, row.read, write)


def experts(*, score: str, normalize: bool) -> tuple[Row, ...]:
    """The common MoE layer, all of whose router is free (``config_utils.py:291-330``)."""

    def read_groups(facts: Mapping[str, object]) -> Mapping[str, object]:
        groups = facts.get("num_expert_groups") or 0
        return {
            "moe.router_groups": groups,
            "moe.router_group_top_k": (facts.get("num_limited_groups") or 0) if groups else 0,
        }

    def write_groups(leaves: Mapping[str, object]) -> Mapping[str, object]:
        groups, limited = integer(leaves.get("moe.router_groups")), integer(leaves.get("moe.router_group_top_k"))
        count = integer(leaves.get("moe.experts"))
        if groups < 2:
            return {}
        if not limited or count % groups or count // groups < 2:
            raise Inexpressible("moe.router_groups", "a group needs two experts, and a number of groups to choose from")
        return {"num_expert_groups": groups, "num_limited_groups": limited}

    def read_bias(facts: Mapping[str, object]) -> Mapping[str, object]:
        rate = facts.get("load_balance_coeff", 1e-3)
        return {"moe.router_bias": bool(rate), "moe.router_bias_rate": rate or None}

    def write_bias(leaves: Mapping[str, object]) -> Mapping[str, object]:
        if leaves.get("moe.router_bias") is False:
            return {"load_balance_coeff": None}
        rate = leaves.get("moe.router_bias_rate")
        return {} if rate in {None, 1e-3} else {"load_balance_coeff": rate}

    return (
        fact("num_experts", "moe.experts"),
        fact("top_k", "moe.top_k", 1),
        fact("moe_hidden_dim", "moe.ffn"),
        choice_of("score_func", "moe.router_score", score, ("softmax", "sigmoid")),
        fact("route_norm", "moe.router_normalize", normalize),
        fact("route_scale", "moe.router_scaling", 1.0),
        Row(
            ("num_expert_groups", "num_limited_groups"),
            ("moe.router_groups", "moe.router_group_top_k"),
            read_groups,
            write_groups,
        ),
        Row(("load_balance_coeff",), ("moe.router_bias", "moe.router_bias_rate"), read_bias, write_bias),
        *all_fixed(
            {
                "moe.scores_on_input": False,
                "moe.grouped_gemm": True,
                "moe.router_dtype": "fp32",
                "moe.router_jitter": None,
                "moe.balancing": ["none"],
                "moe.aux_loss_coefficient": None,
                "moe.z_loss_coefficient": None,
                "moe.capacity_factor": None,
                "moe.capacity_padding": False,
                "moe.shared_gate": False,
            },
            "models/common/moe.py:300-360",
        ),
    )


def shared_width() -> Row:
    """Shared experts: one feed-forward of any width; flavors state it as a number of routed experts."""

    def read(facts: Mapping[str, object]) -> Mapping[str, object]:
        width = facts.get("shared_hidden_dim")
        if width is None:
            width = integer(facts.get("moe_hidden_dim")) * integer(facts.get("num_shared_experts"))
        return {"moe.shared_ffn": width}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        wanted = integer(leaves.get("moe.shared_ffn"))
        return {"shared_hidden_dim": wanted} if wanted else {}

    return Row(("shared_hidden_dim", "num_shared_experts"), ("moe.shared_ffn",), read, write)


def dense_layers() -> Row:
    """Which layers have a dense feed-forward: any, for every block takes one or the other."""

    def read(facts: Mapping[str, object]) -> Mapping[str, object]:
        count = integer(facts.get("num_experts"))
        width = facts.get("hidden_dim")
        if not count:
            return {"moe.experts": 0, **({} if width is None else {"ffn": width})}
        dense = facts.get("dense_layers")
        if dense is None:
            dense = list(range(integer(facts.get("n_dense_layers"))))
        return {"moe.dense_layers": dense, **({"ffn": width} if dense and width is not None else {})}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        dense, width = leaves.get("moe.dense_layers") or [], leaves.get("ffn")
        found: dict[str, object] = {}
        if width is not None and (dense or not leaves.get("moe.experts")):
            found["hidden_dim"] = width
        if leaves.get("moe.experts") and isinstance(dense, list) and dense:
            first = dense == list(range(len(dense)))
            found["n_dense_layers" if first else "dense_layers"] = len(dense) if first else dense
        return found

    return Row(
        ("hidden_dim", "n_dense_layers", "dense_layers"), ("ffn", "moe.dense_layers", "moe.experts"), read, write
    )


def only_with_experts(row: Row) -> Row:
    """A row of the MoE layer, which a dense model does not have."""
    return Row(
        row.arguments,
        row.leaves,
        lambda facts: row.read(facts) if facts.get("num_experts") else {},
        lambda leaves: row.write(leaves) if leaves.get("moe.experts") else {},
    )


COMMON: tuple[Row, ...] = (
    fact("dim", "hidden"),
    fact("n_layers", "layers"),
    fact("vocab_size", "vocab"),
    *all_fixed({leaf: value for leaf, value in PLAIN_BLOCK.items() if leaf != "init_std"}, BUILDERS),
    fixed("rope.skip_layers", None, BUILDERS),
)
PLAIN_ATTENTION = {"attention_window": None, "attention_softmax": "vanilla", "mla.enabled": False}

LLAMA3: tuple[Row, ...] = (
    *COMMON,
    *heads(),
    fact("hidden_dim", "ffn"),
    fact("norm_eps", "norm_eps", 1e-5),
    fact("enable_weight_tying", "tied_embeddings", False),
    *positions("llama3"),
    attention("flex"),
    *initial("layer_index"),
    *all_fixed({**GATED_SILU, **NO_BIAS, **PLAIN_ATTENTION}, BUILDERS),
    # The builder takes norms of queries and keys, but whoever has them is a Qwen.
    choice_of("qk_norm", "qk_norm", "none", ("none",)),
    rotated_pairs(interleaved=True),
    fixed("moe.experts", 0, "models/llama3/model.py"),
)

QWEN3: tuple[Row, ...] = (
    *COMMON,
    *heads(),
    fact("norm_eps", "norm_eps", 1e-6),
    fact("enable_weight_tying", "tied_embeddings", False),
    choice_of("qk_norm", "qk_norm", "rmsnorm", ("rmsnorm", "none")),
    *positions(),
    attention("flex"),
    *initial("none", with_experts="depth"),
    *all_fixed({**GATED_SILU, **NO_BIAS, **PLAIN_ATTENTION}, BUILDERS),
    rotated_pairs(interleaved=False),
    *(only_with_experts(row) for row in experts(score="softmax", normalize=True)),
    only_with_experts(shared_width()),
    only_with_experts(fixed("moe.expert_bias_linear", False, "models/common/moe.py:44")),
    dense_layers(),
)


def _latent_heads() -> Row:
    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        count, kv_heads = leaves.get("heads"), leaves.get("kv_heads")
        if kv_heads is not None and kv_heads != count:
            raise Inexpressible("kv_heads", "latent attention has no grouped heads")
        return {} if count is None else {"n_heads": count}

    return Row(
        ("n_heads",),
        ("heads", "kv_heads"),
        lambda facts: {"heads": facts["n_heads"], "kv_heads": facts["n_heads"]} if "n_heads" in facts else {},
        write,
    )


def _latent_scale() -> Row:
    """The yarn scale enters the softmax squared (``models/deepseek_v3/model.py:84``)."""

    def read(facts: Mapping[str, object]) -> Mapping[str, object]:
        if facts.get("rope.scaling") != "yarn" or not _above_one(facts.get("rope.rope_factor")):
            return {}
        scale = facts.get("mscale", 1.0)
        return {"mla.mscale": scale, "mla.mscale_all_dim": scale}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        scale, all_dim = leaves.get("mla.mscale"), leaves.get("mla.mscale_all_dim")
        if scale is not None and all_dim is not None and scale != all_dim:
            reason = "one scale enters the softmax, and none the rotation (models/deepseek_v3/model.py:84)"
            raise Inexpressible("mla.mscale", reason)
        # Without yarn it has no effect.
        return {} if scale in {None, 1.0} or leaves.get("rope.scaling") != "yarn" else {"mscale": scale}

    return Row(("mscale",), ("mla.mscale", "mla.mscale_all_dim"), read, write)


DEEPSEEK_V3: tuple[Row, ...] = (
    *COMMON,
    _latent_heads(),
    fact("norm_eps", "norm_eps", 1e-5),
    fact("enable_weight_tying", "tied_embeddings", False),
    fixed("mla.enabled", True, "models/deepseek_v3/model.py:28"),
    Row(
        ("q_lora_rank",),
        ("mla.q_rank",),
        lambda facts: {"mla.q_rank": facts.get("q_lora_rank") or None},
        lambda leaves: {"q_lora_rank": integer(leaves.get("mla.q_rank"))},
    ),
    fact("kv_lora_rank", "mla.kv_rank"),
    fact("qk_nope_head_dim", "mla.qk_nope_dim"),
    fact("qk_rope_head_dim", "mla.qk_rope_dim"),
    fact("v_head_dim", "mla.v_dim"),
    *positions("yarn"),
    _latent_scale(),
    attention("flex"),
    *initial("layer_index"),
    *all_fixed({**GATED_SILU, **NO_BIAS}, BUILDERS),
    *all_fixed(
        {
            "qk_norm": "rmsnorm",
            "attention_window": None,
            "attention_softmax": "vanilla",
        },
        "models/deepseek_v3/model.py",
    ),
    rotated_pairs(interleaved=True),
    *(only_with_experts(row) for row in experts(score="sigmoid", normalize=False)),
    only_with_experts(shared_width()),
    only_with_experts(fixed("moe.expert_bias_linear", False, "models/common/moe.py:44")),
    dense_layers(),
)


def _window() -> Row:
    """Layers 0, 2, 4 ... of a flavor see a window; built by hand, any may (``models/gpt_oss/__init__.py:221``)."""

    def read(facts: Mapping[str, object]) -> Mapping[str, object]:
        full = facts.get("full_layers")
        if full is None:
            full = list(range(1, integer(facts.get("n_layers")), 2))
        return {"attention_window": facts.get("sliding_window_size", 128), "attention_window_pattern": full}

    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        window, pattern = integer(leaves.get("attention_window")), leaves.get("attention_window_pattern")
        layers = integer(leaves.get("layers"))
        if not window:
            return {"full_layers": list(range(layers)), "sliding_window_size": None}
        found: dict[str, object] = {} if window == 128 else {"sliding_window_size": window}
        if pattern is not None and pattern != list(range(1, layers, 2)):
            found["full_layers"] = pattern
        return found

    return Row(("sliding_window_size", "full_layers"), ("attention_window", "attention_window_pattern"), read, write)


def _all_moe() -> Row:
    def write(leaves: Mapping[str, object]) -> Mapping[str, object]:
        for leaf in ("moe.experts", "moe.dense_layers"):
            if bool(leaves.get(leaf)) is (leaf == "moe.dense_layers"):
                raise Inexpressible(leaf, "all layers are MoE (models/gpt_oss/model.py:141)")
        return {}

    def read(facts: Mapping[str, object]) -> Mapping[str, object]:
        # Without a number there are experts all the same: no dense model is near.
        unsaid = {} if facts.get("num_experts") else {"moe.experts": 1}
        return {"moe.dense_layers": [], **unsaid}

    return Row((), ("moe.dense_layers", "moe.experts"), read, write)


GPT_OSS: tuple[Row, ...] = (
    *COMMON,
    *heads(),
    fact("norm_eps", "norm_eps", 1e-5),
    fact("swiglu_limit", "activation_clamp", 7.0),
    *positions("yarn"),
    _window(),
    _all_moe(),
    attention("varlen"),
    *initial("layer_index"),
    *all_fixed(
        {
            "activation": "quick_gelu",
            "gated": True,
            "bias_linear": True,
            "bias_qkv": True,
            "qk_norm": "none",
            "tied_embeddings": False,
            "attention_softmax": "learnable",
            "mla.enabled": False,
            "moe.expert_bias_linear": True,
            "moe.shared_ffn": 0,
        },
        "models/gpt_oss/model.py",
    ),
    rotated_pairs(interleaved=False),
    *experts(score="softmax", normalize=True),
)


def _family(name: str, rows: tuple[Row, ...], context: tuple[str, ...], *, wraps_experts: bool) -> Family:
    return Family(
        name=name,
        rows=rows,
        table="",
        module=f"torchtitan.models.{name}",
        arguments_class="",
        nested={},
        unused=frozenset(),
        context=frozenset(context),
        wraps_experts=wraps_experts,
        positions=POSITIONS,
    )


# Context parallelism runs with flex attention only (distributed/full_dtensor.py:44).
_FLEX = ("flex", "flex_flash")
FAMILIES = {
    name: _family(name, rows, _FLEX, wraps_experts=moe)
    for name, rows, moe in (
        ("llama3", LLAMA3, False),
        ("qwen3", QWEN3, True),
        ("deepseek_v3", DEEPSEEK_V3, True),
        ("gpt_oss", GPT_OSS, True),
    )
}
