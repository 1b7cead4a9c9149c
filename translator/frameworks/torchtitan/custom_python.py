"""A model of 0.3.0 built from public names, for dimensions that are no named flavor.

The initial scales follow the families' own functions (``models/llama3/__init__.py:47-66``,
``models/qwen3/__init__.py:53-87``, ``models/deepseek_v3/__init__.py:55-85``, ``models/gpt_oss/__init__.py:49-63``),
with the wanted standard deviation. Every layer has Config objects of its own, for sharding is written into them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from translator.frameworks.torchtitan.models.base import flatten, integer
from translator.frameworks.torchtitan.python_text import Call, Code, literal

if TYPE_CHECKING:
    from jinja2 import Environment

_COMMON = "torchtitan.models.common"
_UTILS = f"{_COMMON}.config_utils"
_SCALED = {"layer_index": "depth_scaled_std(std, layer)", "depth": "std / (2 * n_layers) ** 0.5", "none": "std"}


@dataclass(frozen=True, slots=True)
class Style:
    """What distinguishes a family's builder: its template, classes, functions and initial scales."""

    template: str
    package: str
    model_class: str
    block_class: str
    adapter: str
    parallelize: str
    rope_class: str
    output_init: str
    distribution: str = "nn.init.trunc_normal_"
    embedding_std: float = 1.0
    head_by_width: bool = True
    norm_eps: float = 1e-5
    score: str = "softmax"
    normalize: bool = False
    third: str = "scaled"
    balances: bool = True
    qk_norm: str = "none"
    output_init_sparse: str = ""
    imports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_GQA = {_UTILS: ("get_attention_config", "make_ffn_config", "make_gqa_config")}
STYLES: Mapping[str, Style] = {
    "llama3": Style(
        "model_gqa",
        "llama3",
        "Llama3Model",
        "Llama3TransformerBlock",
        "Llama3StateDictAdapter",
        "parallelize_llama",
        "ComplexRoPE",
        "layer_index",
        balances=False,
        imports=_GQA,
    ),
    "qwen3": Style(
        "model_gqa",
        "qwen3",
        "Qwen3Model",
        "Qwen3TransformerBlock",
        "Qwen3StateDictAdapter",
        "parallelize_qwen3",
        "CosSinRoPE",
        "none",
        distribution="nn.init.normal_",
        embedding_std=0.02,
        head_by_width=False,
        qk_norm="rmsnorm",
        output_init_sparse="depth",
        norm_eps=1e-6,
        normalize=True,
        third="_linear(std)",
        imports=_GQA,
    ),
    "deepseek_v3": Style(
        "model_mla",
        "deepseek_v3",
        "DeepSeekV3Model",
        "DeepSeekV3TransformerBlock",
        "DeepSeekV3StateDictAdapter",
        "parallelize_deepseekv3",
        "ComplexRoPE",
        "layer_index",
        score="sigmoid",
        imports={_UTILS: (), "torchtitan.models.deepseek_v3": ("make_mla_attention_config",)},
    ),
    "gpt_oss": Style(
        "model_gpt_oss",
        "gpt_oss",
        "GptOssModel",
        "GptOssTransformerBlock",
        "GptOssStateDictAdapter",
        "parallelize_gptoss",
        "CosSinRoPE",
        "layer_index",
        embedding_std=0.02,
        normalize=True,
        imports={
            "dataclasses": ("replace",),
            _UTILS: ("get_attention_config", "make_router_config", "make_token_dispatcher_config"),
            _COMMON: ("FusedQKVLinear", "ScaledBiasRowwiseLinear"),
            f"{_COMMON}.moe": ("RoutedExperts",),
            "torchtitan.models.gpt_oss.model": ("Attention",),
            "torchtitan.models.gpt_oss.moe": ("GptOssGroupedExperts", "GptOssMoE"),
        },
    ),
}
_MOE = ("make_ffn_config", "make_moe_config", "make_routed_experts_config", "make_router_config")
_ROPE = {
    "llama": ("scaling_factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": ("rope_factor", "beta_fast", "beta_slow", "original_seq_len"),
}


@dataclass(frozen=True, slots=True)
class Built:
    """The functions that build a model, what they import, and the call that makes its specification."""

    text: str
    imports: dict[str, set[str]]
    specification: Call


def build(
    name: str,
    flavor: str,
    facts: Mapping[str, object],
    *,
    backend: str,
    comm_backend: str,
    environment: Environment,
) -> Built:
    """The model of a family by its facts. Raises `KeyError` for a family that cannot be built so."""
    style = STYLES[name]
    flat = flatten(facts)
    layers = integer(flat.get("n_layers"))
    sparse, dense = bool(flat.get("num_experts")), _dense(flat)
    tied = bool(flat.get("enable_weight_tying"))
    output_init = str(flat.get("output_init") or (sparse and style.output_init_sparse) or style.output_init)
    eps = flat.get("norm_eps", style.norm_eps)
    full = flat.get("full_layers")
    text = environment.get_template(f"torchtitan/{style.template}.py.j2").render(
        model_class=style.model_class,
        block_class=style.block_class,
        rope_class=style.rope_class,
        distribution=style.distribution,
        dimensions=_dimensions(name, flat, sparse=sparse, dense=bool(dense)),
        rope=[(key, literal(value)) for key, value in _rope(flat, name)],
        head_dim="qk_rope_head_dim" if name == "deepseek_v3" else "head_dim",
        eps=literal(eps),
        latent_eps=eps != 1e-5,
        scaled_std=_SCALED[output_init],
        backend=literal(backend),
        varlen=backend == "varlen",
        qk_norm=flat.get("qk_norm", style.qk_norm) != "none",
        index="layer" if output_init == "layer_index" or dense or style.template != "model_gqa" else "_",
        sparse=sparse,
        dense=_members(dense, layers),
        router=[(key, literal(value)) for key, value in _router(flat, style)],
        top_k=literal(flat.get("top_k", 1)),
        load_balance=literal(flat.get("load_balance_coeff", 1e-3)),
        third_init=style.third,
        gate_init=style.third,
        comm_backend=literal(comm_backend),
        shared=_shared(flat),
        tied=tied,
        embedding_std=literal(style.embedding_std),
        head_init="_linear(dim**-0.5, a=-3 * dim**-0.5, b=3 * dim**-0.5)" if style.head_by_width else "_linear(std)",
        latent=[(key, literal(flat.get(key))) for key in _LATENT] + [("mscale", literal(flat.get("mscale", 1.0)))],
        window=_window(flat.get("sliding_window_size", 128), full, layers),
        swiglu_limit=literal(flat["swiglu_limit"]) if "swiglu_limit" in flat else "",
    )
    imports = _imports(
        style, sparse=sparse, tied=tied, by_layer=output_init == "layer_index", varlen=backend == "varlen"
    )
    return Built(text.strip("\n"), imports, _specification(style, name, flavor, sparse))


_LATENT = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")


def _dimensions(name: str, flat: Mapping[str, object], *, sparse: bool, dense: bool) -> list[tuple[str, str]]:
    heads = integer(flat.get("n_heads"))
    found: dict[str, object] = {
        "dim": flat.get("dim"),
        "n_layers": flat.get("n_layers"),
        "n_heads": heads,
        "vocab_size": flat.get("vocab_size"),
        "std": flat.get("init_std", 0.02),
    }
    if name == "deepseek_v3":
        found["qk_rope_head_dim"] = flat.get("qk_rope_head_dim")
    else:
        found["n_kv_heads"] = flat.get("n_kv_heads") or heads
        found["head_dim"] = flat.get("head_dim") or integer(flat.get("dim")) // heads
    if not sparse or dense:
        found["hidden_dim"] = flat.get("hidden_dim")
    if sparse:
        found["num_experts"], found["moe_hidden_dim"] = flat.get("num_experts"), flat.get("moe_hidden_dim")
    return [(key, literal(value)) for key, value in found.items()]


def _rope(flat: Mapping[str, object], name: str) -> list[tuple[str, object]]:
    scaling = str(flat.get("rope.scaling") or "none")
    found: list[tuple[str, object]] = [
        ("max_seq_len", flat.get("rope.max_seq_len")),
        ("theta", flat.get("rope.theta", 10000.0)),
    ]
    if scaling in _ROPE:
        found += [
            ("scaling", scaling),
            *((key, flat[f"rope.{key}"]) for key in _ROPE[scaling] if f"rope.{key}" in flat),
        ]
        if scaling == "yarn" and name == "gpt_oss":
            found.append(("truncate", False))
    return found


def _router(flat: Mapping[str, object], style: Style) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = [
        ("top_k", flat.get("top_k", 1)),
        ("score_func", flat.get("score_func", style.score)),
        ("route_norm", flat.get("route_norm", style.normalize)),
    ]
    further = ("route_scale", "num_expert_groups", "num_limited_groups")
    return found + [(key, flat[key]) for key in further if flat.get(key) not in (None, 1.0)]


def _dense(flat: Mapping[str, object]) -> list[int]:
    stated = flat.get("dense_layers")
    if isinstance(stated, list):
        return [layer for layer in stated if isinstance(layer, int)]
    return list(range(integer(flat.get("n_dense_layers"))))


def _members(layers: Iterable[int], total: int) -> str:
    """A collection of layers as short as it can be said; empty for none."""
    found = sorted(set(layers))
    if not found:
        return ""
    step = found[1] - found[0] if len(found) > 1 else 1
    if found == list(range(found[0], found[-1] + 1, step)):
        bounds = f"{found[0]}, " if found[0] or step > 1 else ""
        end = total if step > 1 and found[-1] + step >= total else found[-1] + 1
        return f"range({bounds}{end}{f', {step}' if step > 1 else ''})"
    return "(" + ", ".join(map(str, found)) + ")"


def _window(size: object, full: object, layers: int) -> str:
    if not size:
        return "None"
    if full is None:
        return f"{size} if layer % 2 == 0 else None"
    listed = [layer for layer in full if isinstance(layer, int)] if isinstance(full, list) else []
    text = _members(listed, layers)
    return f"None if layer in {text} else {size}" if text else str(size)


def _shared(flat: Mapping[str, object]) -> str:
    width = flat.get("shared_hidden_dim")
    if width is None:
        width = integer(flat.get("num_shared_experts")) * integer(flat.get("moe_hidden_dim"))
    return literal(width) if width else ""


def _imports(style: Style, *, sparse: bool, tied: bool, by_layer: bool, varlen: bool) -> dict[str, set[str]]:
    package = f"torchtitan.models.{style.package}"
    found: dict[str, set[str]] = {
        "collections.abc": {"Callable"},
        "functools": {"partial"},
        "torch": {"nn"},
        _COMMON: {style.rope_class, "Embedding", "Linear", "RMSNorm", "TransformerBlock"},
        package: {style.model_class, style.parallelize},
        f"{package}.model": {style.block_class},
        f"{package}.state_dict_adapter": {style.adapter},
        "torchtitan.distributed.pipeline_parallel": {"pipeline_llm"},
        "torchtitan.protocols.model_spec": {"ModelSpec"},
    }
    for module, names in style.imports.items():
        found.setdefault(module, set()).update(names)
    initial = {*(["skip_param_init"] if tied else []), *(["depth_scaled_std"] if by_layer else [])}
    if initial:
        found[f"{_COMMON}.param_init"] = initial
    if style.template == "model_mla":
        found[_UTILS] |= set(_MOE) if sparse else {"make_ffn_config"}
    elif sparse and style.template == "model_gqa":
        found[_UTILS] |= set(_MOE)
    if varlen and style.template == "model_gpt_oss":
        found[_COMMON].add("VarlenAttention")
    if sparse and style.balances:
        found["torchtitan.components.optimizer"] = {"register_moe_load_balancing_hook"}
    return found


def _specification(style: Style, name: str, flavor: str, sparse: bool) -> Call:
    call = Call("ModelSpec")
    call.add("name", name)
    call.add("flavor", flavor)
    call.add("model", Code("_model()"))
    call.add("parallelize_fn", Code(style.parallelize))
    call.add("pipelining_fn", Code("pipeline_llm"))
    hook = Code("register_moe_load_balancing_hook") if sparse and style.balances else None
    call.add("post_optimizer_build_fn", hook)
    call.add("state_dict_adapter", Code(style.adapter))
    return call
