"""torchtitan 0.3.0's helper functions that configurations call, by what they return: configuration objects, as data.

The builders give trees with every dimension, and leave out what carries none (initial values come as they were given).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from translator.catalogue.classes import Classes
from translator.findings import Place
from translator.pyconfig.values import MISSING, NOT_KNOWN, Node, Symbol, Unknown, copied

METHOD = "torchtitan-method."
MODEL_SPEC = "torchtitan.protocols.model_spec.ModelSpec"
# Fields that no Python name reaches: what a registry was asked for, and the converters that were applied to a model.
ASKED, CONVERTED, FAMILY = "@asked", "@converted", "@family"
DECODER = "torchtitan.models.common.decoder.Decoder.Config"
_COMMON = "torchtitan.models.common"
_ATTENTION = f"{_COMMON}.attention"
_DISPATCHERS = {
    "standard": "AllToAllTokenDispatcher",
    "deepep": "DeepEPTokenDispatcher",
    "hybridep": "HybridEPTokenDispatcher",
    "minimal_async_ep": "MinimalAsyncEPTokenDispatcher",
}


def made(cls: str, place: Place, **fields: object) -> Node:
    """A configuration object; all of it stands where the call does."""
    return Node(cls, dict(fields), dict.fromkeys(fields, place), place)


def registry(facts: Classes, family: str, args: list[object], kwargs: dict[str, object], place: Place) -> object:
    """What a family's ``model_registry`` returns: name and flavor, what it was asked for, the model's dimensions."""
    try:
        names = [name for name in facts.parameters(f"torchtitan.models.{family}.model_registry") if name != "**"]
    except KeyError:
        names = ["flavor", "attn_backend", "converters"]
    asked = {**dict(zip(names, args, strict=False)), **kwargs}
    flavor = asked.pop("flavor", MISSING)
    if flavor is MISSING:
        return Unknown("model_registry needs a flavor", place, "model_registry(...)", "R125")
    asked = {name: value for name, value in asked.items() if not (name == "converters" and value is None)}
    spec = made(MODEL_SPEC, place, name=family, flavor=flavor)
    spec.fields[ASKED] = asked
    if isinstance(flavor, str):
        spec.fields["model"] = flavor_model(facts, family, flavor, place)
    return spec


def flavor_model(facts: Classes, family: str, flavor: str, place: Place) -> object:
    """The model of a named flavor, as far as its plain facts go."""
    from translator.frameworks.torchtitan.flavors import arguments

    known = arguments(family, flavor, facts.version)
    if known is None:
        return Unknown(f"the dimensions of {family}/{flavor} are not known", place, f"{family}/{flavor}", "R112")
    prefix = f"torchtitan.models.{family}."
    cls = next((name for name in facts.rows if name.startswith(prefix) and facts.is_subclass(name, DECODER)), DECODER)
    attention = made(f"{_ATTENTION}.BaseAttention.Config", place, **known)
    block = made(f"{_COMMON}.decoder.TransformerBlock.Config", place, attention=attention)
    count = known.get("n_layers")
    layers = [copied(block) for _ in range(count)] if isinstance(count, int) else []
    model = made(cls, place, dim=known.get("dim"), vocab_size=known.get("vocab_size"), layers=layers)
    vision = known.get("vision")
    if isinstance(vision, Mapping):
        fields = {str(name): value for name, value in vision.items() if name != "class"}
        model.fields["vision_encoder"] = made(str(vision.get("class")), place, **fields)
    model.fields[FAMILY] = f"{family}/{flavor}"
    return model


def _default_adamw(facts: Classes, place: Place, lr: object = 8e-4, **further: object) -> object:
    """One group of AdamW for everything (``components/optimizer/optimizer.py:378``)."""
    kwargs: dict[str, object] = {"lr": lr, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1, **further}
    base = "torchtitan.components.optimizer.optimizer"
    group = made(f"{base}.ParamGroupConfig", place, pattern=".*", optimizer_name="AdamW", optimizer_kwargs=kwargs)
    return made(f"{base}.OptimizersContainer.Config", place, param_groups=[group])


def _vocab_size(facts: Classes, place: Place, model_spec: object) -> object:
    model = model_spec.fields.get("model", MISSING) if isinstance(model_spec, Node) else model_spec
    if isinstance(model, Unknown):
        return model
    size = model.fields.get("vocab_size", MISSING) if isinstance(model, Node) else MISSING
    return NOT_KNOWN if size is MISSING else size


def _tail(facts: Classes, place: Place, num_layers: Any, bf16_tail_fraction: Any) -> object:
    """All layers but the last ones (``components/quantization/nvfp4.py:244``)."""
    leading = num_layers - math.ceil(num_layers * bf16_tail_fraction)
    if leading <= 0:
        return Unknown("no layer is left to convert", place, "nvfp4_bf16_tail_fqns", "R119")
    return [f"layers.{index}." for index in range(leading)]


def _ffn_width(
    facts: Classes, place: Place, dim: Any, *, multiple_of: Any = 1, ffn_dim_multiplier: Any = None
) -> object:
    """``models/common/feed_forward.py:18``."""
    width = int(8 * dim / 3)
    if ffn_dim_multiplier is not None:
        width = int(ffn_dim_multiplier * width)
    return multiple_of * -(-width // multiple_of)


def _depth_std(facts: Classes, place: Place, base_std: Any, layer_id: Any) -> object:
    return base_std / (2 * (layer_id + 1)) ** 0.5


def _linear(place: Place, width: object, out: object, init: object, **more: object) -> Node:
    fields = {"in_features": width, "out_features": out, "param_init": init, **more}
    return made(f"{_COMMON}.linear.Linear.Config", place, **fields)


def _inner_attention(facts: Classes, place: Place, backend: object) -> object:
    """``models/common/config_utils.py:62``; the flash kernels of flex attention need a GPU that is assumed."""
    if backend == "flex":
        return made(f"{_ATTENTION}.FlexAttention.Config", place)
    if backend == "flex_flash":
        options = {"BACKEND": "FLASH"}
        return made(f"{_ATTENTION}.FlexAttention.Config", place, block_size=(256, 128), kernel_options=options)
    if backend == "varlen":
        return made(f"{_ATTENTION}.VarlenAttention.Config", place)
    return Unknown(f"torchtitan has no attention backend {backend!r}", place, "get_attention_config", "R119")


def _rope(rope: object) -> object:
    return copied(rope)


def _gqa(
    facts: Classes,
    place: Place,
    *,
    dim: Any,
    n_heads: Any,
    inner_attention: object,
    rope: object,
    wqkv_param_init: object = None,
    wo_param_init: object = None,
    n_kv_heads: Any = None,
    head_dim: Any = None,
    fuse_qkv: bool = False,
    qk_norm: object = None,
    tp_gemm_backend: object = "default",
) -> object:
    """``models/common/config_utils.py:164``."""
    groups = n_heads if n_kv_heads is None else n_kv_heads
    width = dim // n_heads if head_dim is None else head_dim
    if fuse_qkv:
        wqkv = _linear(place, dim, (n_heads + 2 * groups) * width, wqkv_param_init)
        cls = f"{_ATTENTION}.FusedQKVLinear.Config"
        qkv = made(cls, place, head_dim=width, n_heads=n_heads, n_kv_heads=groups, wqkv=wqkv)
    else:
        wq = _linear(place, dim, n_heads * width, wqkv_param_init)
        wkv = _linear(place, dim, groups * width, wqkv_param_init)
        qkv = made(f"{_ATTENTION}.QKVLinear.Config", place, head_dim=width, wq=wq, wkv=wkv)
    return made(
        f"{_ATTENTION}.GQAttention.Config",
        place,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        dim=dim,
        qkv_linear=qkv,
        wo=_linear(place, n_heads * width, dim, wo_param_init),
        qk_norm=qk_norm,
        inner_attention=inner_attention,
        rope=_rope(rope),
    )


def _ffn(
    facts: Classes,
    place: Place,
    *,
    dim: Any,
    hidden_dim: Any,
    w1_param_init: object = None,
    w2w3_param_init: object = None,
    tp_gemm_backend: object = "default",
) -> object:
    """``models/common/config_utils.py:249``."""
    return made(
        f"{_COMMON}.feed_forward.FeedForward.Config",
        place,
        w1=_linear(place, dim, hidden_dim, w1_param_init),
        w2=_linear(place, hidden_dim, dim, w2w3_param_init),
        w3=_linear(place, dim, hidden_dim, w2w3_param_init),
    )


def _moe(
    facts: Classes,
    place: Place,
    *,
    router: object,
    routed_experts: object,
    num_experts: object = 8,
    shared_experts: object = None,
    load_balance_coeff: object = 1e-3,
) -> object:
    return made(
        f"{_COMMON}.moe.MoE.Config",
        place,
        num_experts=num_experts,
        load_balance_coeff=load_balance_coeff,
        router=router,
        routed_experts=routed_experts,
        shared_experts=shared_experts,
    )


def _router(
    facts: Classes,
    place: Place,
    *,
    dim: object,
    num_experts: object,
    gate_param_init: object = None,
    bias: object = False,
    **rest: object,
) -> object:
    """``models/common/config_utils.py:291``."""
    defaults = {
        "top_k": 1,
        "score_func": "sigmoid",
        "route_norm": False,
        "route_scale": 1.0,
        "num_expert_groups": None,
        "num_limited_groups": None,
    }
    gate = _linear(place, dim, num_experts, gate_param_init, bias=bias)
    fields = {"num_experts": num_experts, "gate": gate, **defaults, **rest}
    return made(f"{_COMMON}.moe.TokenChoiceTopKRouter.Config", place, **fields)


def _dispatcher(
    facts: Classes, place: Place, *, num_experts: object, top_k: object, comm_backend: object, **rest: object
) -> object:
    """``models/common/config_utils.py:322``."""
    name = _DISPATCHERS.get(str(comm_backend))
    if name is None:
        return Unknown(f"torchtitan has no dispatcher {comm_backend!r}", place, "make_token_dispatcher_config", "R119")
    cls = f"{_COMMON}.token_dispatcher.{name}.Config"
    kept = {field: value for field, value in rest.items() if field in facts.fields(cls)}
    return made(cls, place, num_experts=num_experts, top_k=top_k, **kept)


def _routed_experts(
    facts: Classes,
    place: Place,
    *,
    dim: object,
    hidden_dim: object,
    num_experts: object,
    top_k: object,
    param_init: object = None,
    comm_backend: object,
    **rest: object,
) -> object:
    """``models/common/config_utils.py:385``."""
    inner = made(
        f"{_COMMON}.moe.GroupedExperts.Config",
        place,
        dim=dim,
        hidden_dim=hidden_dim,
        num_experts=num_experts,
        param_init=param_init,
    )
    dispatcher = _dispatcher(
        facts, place, num_experts=num_experts, top_k=top_k, comm_backend=comm_backend, hidden_dim=dim, **rest
    )
    cls = f"{_COMMON}.moe.RoutedExperts.Config"
    return made(cls, place, inner_experts=inner, token_dispatcher=dispatcher)


def _mla(
    facts: Classes,
    place: Place,
    *,
    layer_id: object,
    dim: Any,
    n_heads: Any,
    q_lora_rank: Any,
    kv_lora_rank: Any,
    qk_nope_head_dim: Any,
    qk_rope_head_dim: Any,
    v_head_dim: Any,
    attn_backend: object,
    rope: object,
    mscale: object = 1.0,
    linear_init: object = None,
    norm_init: object = None,
    depth_init: object = None,
) -> object:
    """``models/deepseek_v3/__init__.py:82``; the output's initial values, which a function makes, are left out."""

    def norm(width: object) -> Node:
        return made(f"{_COMMON}.nn_modules.RMSNorm.Config", place, normalized_shape=width, param_init=norm_init)

    head = qk_nope_head_dim + qk_rope_head_dim
    queries: dict[str, object] = {"wq": None, "wq_a": None, "wq_b": None}
    if q_lora_rank:
        queries["wq_a"] = _linear(place, dim, q_lora_rank, linear_init)
        queries["wq_b"] = _linear(place, q_lora_rank, n_heads * head, linear_init)
    else:
        queries["wq"] = _linear(place, dim, n_heads * head, linear_init)
    return made(
        "torchtitan.models.deepseek_v3.model.Attention.Config",
        place,
        dim=dim,
        n_heads=n_heads,
        q_lora_rank=q_lora_rank,
        kv_lora_rank=kv_lora_rank,
        qk_nope_head_dim=qk_nope_head_dim,
        qk_rope_head_dim=qk_rope_head_dim,
        v_head_dim=v_head_dim,
        mscale=mscale,
        **queries,
        q_norm=norm(q_lora_rank or 1),
        wkv_a=_linear(place, dim, kv_lora_rank + qk_rope_head_dim, linear_init),
        kv_norm=norm(kv_lora_rank),
        wkv_b=_linear(place, kv_lora_rank, n_heads * (qk_nope_head_dim + v_head_dim), linear_init),
        wo=_linear(place, n_heads * v_head_dim, dim, Symbol("depth_init")),
        inner_attention=_inner_attention(facts, place, attn_backend),
        rope=_rope(rope),
    )


def _build(facts: Classes, place: Place, owner: object) -> object:
    """A component is what its configuration says, as far as a configuration may look at it."""
    return owner


def _convert(facts: Classes, place: Place, converter: object, model: object) -> object:
    """A model with one more converter applied."""
    if not isinstance(model, Node) or not isinstance(converter, Node):
        return NOT_KNOWN
    found = Node(model.cls, dict(model.fields), dict(model.places), model.place, model.bases)
    earlier = found.fields.get(CONVERTED)
    found.fields[CONVERTED] = [*(earlier if isinstance(earlier, list) else []), converter]
    return found


def _first_attention(owner: Node) -> object:
    """``models/common/decoder.py:86``."""
    layers = owner.fields.get("layers")
    for layer in layers if isinstance(layers, list) else ():
        found = layer.fields.get("attention") if isinstance(layer, Node) else None
        if isinstance(found, Node):
            return found
    return MISSING


Helper = Callable[..., object]
HELPERS: Mapping[str, Helper] = {
    "default_adamw": _default_adamw,
    "decoder_vocab_size": _vocab_size,
    "nvfp4_bf16_tail_fqns": _tail,
    "compute_ffn_hidden_dim": _ffn_width,
    "depth_scaled_std": _depth_std,
    "get_attention_config": _inner_attention,
    "make_gqa_config": _gqa,
    "make_ffn_config": _ffn,
    "make_moe_config": _moe,
    "make_router_config": _router,
    "make_token_dispatcher_config": _dispatcher,
    "make_routed_experts_config": _routed_experts,
    "make_mla_attention_config": _mla,
    "build": _build,
    "convert": _convert,
}
METHODS = frozenset({"build", "convert"})
PROPERTIES: Mapping[str, Callable[[Node], object]] = {"first_attention": _first_attention}
