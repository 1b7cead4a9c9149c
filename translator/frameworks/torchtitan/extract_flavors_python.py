"""Extracts the named models of torchtitan's Python versions (0.3.0 on): evaluated statically, reduced to plain facts.

A flavor is a function that builds a tree of Config objects (``torchtitan/models/llama3/__init__.py:359`` at 0.3.0).
Kept of the tree are dimensions and choices, under the names of upstream's builders; a value is what is in force,
defaults included. What a tree does not have is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from translator.catalogue.python_tree import PythonTree
from translator.catalogue.source_tree import SourceTree
from translator.errors import SourceError
from translator.frameworks.torchtitan.extract_python import MODEL_PARENT, as_json
from translator.pyconfig.values import MISSING, Function, Node

Facts = dict[str, Any]
REGISTRY = "model_registry"
SKIPPED = frozenset({"common", "flux"})
ROPE_PLAIN = ("dim", "max_seq_len", "theta", "scaling")
ROPE_STRETCH = {
    "llama": ("scaling_factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": ("rope_factor", "beta_fast", "beta_slow", "original_seq_len", "truncate"),
}
LATENT = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "mscale")
ROUTER = ("top_k", "score_func", "route_norm", "route_scale", "num_expert_groups", "num_limited_groups")
PER_LAYER = "layer_kinds"


class Tree(Protocol):
    """Answers about the parts of a model: of the evaluated source, or of a configuration of one's own."""

    def read(self, node: Node, name: str) -> object:
        """A field of a node: what was stated, else its default; `MISSING` where there is none."""

    def class_name(self, node: Node) -> str:
        """The short name of a node's class."""


def extract_flavors(tree: SourceTree) -> tuple[dict[str, Any], dict[str, str]]:
    """The flavors of every model family: ``{family: {flavor: {"args_class", "args"}}}``, and no aliases.

    Raises `SourceError` when the tree has no model registry.
    """
    python = PythonTree(tree.root)
    families: dict[str, Any] = {}
    for folder in sorted(Path(tree.root, *MODEL_PARENT.split(".")).iterdir()):
        if folder.name not in SKIPPED and (folder / "__init__.py").is_file():
            found = _family(python, f"{MODEL_PARENT}.{folder.name}")
            if found:
                families[folder.name] = found
    if not families:
        raise SourceError(f"{tree.root} has no model registry")
    return families, {}


def _family(tree: PythonTree, package: str) -> dict[str, Any]:
    module = tree.load(package)
    if not isinstance(tree.member(module, REGISTRY), Function):
        return {}
    tables = [item for name, item in module.frame.names.items() if name.endswith("_configs") and isinstance(item, dict)]
    found: dict[str, Any] = {}
    for flavor in tables[0] if tables else ():
        spec = tree.call_function(f"{package}.{REGISTRY}", flavor)
        model = tree.read(spec, "model") if isinstance(spec, Node) else None
        if isinstance(model, Node):
            found[str(flavor)] = {"args_class": model.cls, "args": model_facts(tree, model)}
    return found


def model_facts(tree: Tree, model: Node) -> Facts:
    """The plain facts of one model's tree."""
    layers = tree.read(model, "layers")
    blocks = [item for item in layers if isinstance(item, Node)] if isinstance(layers, list) else []
    facts = _picked(tree, model, ("dim", "vocab_size", "enable_weight_tying"))
    facts["n_layers"] = len(blocks)
    norm = tree.read(model, "norm")
    if isinstance(norm, Node):
        facts.update({"norm_eps": tree.read(norm, "eps")} if tree.read(norm, "eps") is not MISSING else {})
    facts.update(_layers(tree, blocks))
    vision = tree.read(model, "vision_encoder")
    if isinstance(vision, Node):
        facts["vision"] = _vision(tree, vision)
    return facts


def _layers(tree: Tree, blocks: Sequence[Node]) -> Facts:
    """What all layers share; which are dense and which see a window; by kind of layer what else differs."""
    attention = [_attention(tree, block) for block in blocks]
    windows = [item.pop("sliding_window_size", None) for item in attention]
    feed = [_feed_forward(tree, block) for block in blocks]
    facts: Facts = {}
    if any(windows):
        facts["sliding_window_size"] = next(item for item in windows if item)
        facts["full_layers"] = [index for index, item in enumerate(windows) if not item]
    dense = [index for index, item in enumerate(feed) if "hidden_dim" in item]
    if dense and len(dense) < len(blocks):
        first = dense == list(range(len(dense)))
        facts.update({"n_dense_layers": len(dense)} if first else {"dense_layers": dense})
    for item in feed:
        for name, value in item.items():
            if facts.setdefault(name, value) != value:
                raise SourceError(f"layers differ in {name}: {facts[name]} and {value}")
    shared = {
        name: value
        for name, value in (attention[0] if attention else {}).items()
        if all(name in item and item[name] == value for item in attention)
    }
    rest = [{name: value for name, value in item.items() if name not in shared} for item in attention]
    facts.update(shared)
    if any(rest):
        kinds: list[Facts] = []
        for index, item in enumerate(rest):
            same = next((kind for kind in kinds if {**kind, "layers": 0} == {"layers": 0, **item}), None)
            if same is None:
                kinds.append({"layers": [index], **item})
            else:
                same["layers"].append(index)
        facts[PER_LAYER] = kinds
    return facts


def _picked(tree: Tree, node: Node, names: Sequence[str]) -> Facts:
    """Some fields, those that the class has."""
    found = {name: tree.read(node, name) for name in names}
    return {name: as_json(value) for name, value in found.items() if value is not MISSING}


def _vision(tree: Tree, encoder: Node) -> Facts:
    """An encoder's class, every field of it with a plain value, and the inner width of its blocks."""
    facts: Facts = {"class": encoder.cls}
    facts.update({name: as_json(value) for name, value in encoder.fields.items() if _is_plain(value)})
    inner: object = encoder
    for name in ("block", "mlp", "fc1"):
        inner = tree.read(inner, name) if isinstance(inner, Node) else None
    if isinstance(inner, Node):
        facts["hidden_dim"] = tree.read(inner, "out_features")
    return facts


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | float)


def _attention(tree: Tree, block: Node) -> Facts:
    """The facts of a block's attention, or of what it has in its place."""
    attention = tree.read(block, "attention")
    facts: Facts = {}
    if not isinstance(attention, Node):
        other = tree.read(block, "delta_net")
        return {"attention": None, "delta_net": _delta_net(tree, other)} if isinstance(other, Node) else facts
    heads, kv_heads, width = (tree.read(attention, name) for name in ("n_heads", "n_kv_heads", "head_dim"))
    facts["n_heads"] = heads
    latent = _picked(tree, attention, LATENT)
    if "kv_lora_rank" in latent:
        facts.update(latent)
    elif isinstance(heads, int):
        dim = tree.read(attention, "dim")
        facts["n_kv_heads"] = kv_heads if isinstance(kv_heads, int) else heads
        facts["head_dim"] = width if isinstance(width, int) else dim // heads if isinstance(dim, int) else None
        has_norm = isinstance(tree.read(attention, "qk_norm"), Node) or "q_norm" in attention.fields
        facts["qk_norm"] = "rmsnorm" if has_norm else "none"
    facts.update(_projections(tree, attention))
    window = tree.read(attention, "sliding_window_size")
    if window is MISSING:
        window = tree.read(attention, "window_size")
    facts["sliding_window_size"] = window if isinstance(window, int) else None
    own = _picked(tree, attention, ("use_rope", "rotary_dim", "scale_query_by"))
    facts.update(own)
    if isinstance(tree.read(attention, "o_gate"), Node):
        facts["output_gate"] = True
    param_init = attention.fields.get("param_init")
    if isinstance(param_init, Mapping) and "sinks" in param_init:
        facts["sinks"] = True
    rope = tree.read(attention, "rope")
    if isinstance(rope, Node):
        facts["rope"] = _rope(tree, rope)
    return facts


def _projections(tree: Tree, attention: Node) -> Facts:
    """Whether query, key and value are one projection, and whether the projections have biases."""
    facts: Facts = {}
    linear = tree.read(attention, "qkv_linear")
    first: object = tree.read(attention, "wq")
    if isinstance(linear, Node):
        fused = tree.read(linear, "wqkv")
        facts["fuse_qkv"] = isinstance(fused, Node)
        first = fused if isinstance(fused, Node) else tree.read(linear, "wq")
    out = tree.read(attention, "wo")
    biased = [isinstance(item, Node) and tree.read(item, "bias") is True for item in (first, out)]
    return {**facts, **({"qkv_bias": biased[0], "wo_bias": biased[1]} if any(biased) else {})}


def _rope(tree: Tree, rope: Node) -> Facts:
    facts: Facts = {"class": tree.class_name(rope), **_picked(tree, rope, ROPE_PLAIN)}
    facts.update(_picked(tree, rope, ROPE_STRETCH.get(str(facts.get("scaling")), ())))
    facts.update(_picked(tree, rope, ("mrope_section",)))
    return facts


def _delta_net(tree: Tree, node: Node) -> Facts:
    facts = _picked(tree, node, ("key_head_dim", "value_head_dim", "conv_kernel_size"))
    for name, field in (("key_dim", "in_proj_k"), ("value_dim", "in_proj_v"), ("n_value_heads", "in_proj_a")):
        linear = tree.read(node, field)
        if isinstance(linear, Node):
            facts[name] = tree.read(linear, "out_features")
    return facts


def _width(tree: Tree, feed_forward: object) -> object:
    """The inner width of a gated feed-forward."""
    first = tree.read(feed_forward, "w1") if isinstance(feed_forward, Node) else None
    return tree.read(first, "out_features") if isinstance(first, Node) else None


def _feed_forward(tree: Tree, block: Node) -> Facts:
    """The facts of a block's feed-forward or experts."""
    dense, moe = tree.read(block, "feed_forward"), tree.read(block, "moe")
    if not isinstance(moe, Node):
        return {"hidden_dim": _width(tree, dense)} if isinstance(dense, Node) else {}
    facts = _picked(tree, moe, ("num_experts", "load_balance_coeff"))
    router = tree.read(moe, "router")
    if isinstance(router, Node):
        facts.update(_picked(tree, router, ROUTER))
        gate = tree.read(router, "gate")
        if isinstance(gate, Node) and tree.read(gate, "bias") is True:
            facts["router_bias"] = True
    routed = tree.read(moe, "routed_experts")
    experts = tree.read(routed, "inner_experts") if isinstance(routed, Node) else None
    if isinstance(experts, Node):
        facts["moe_hidden_dim"] = tree.read(experts, "hidden_dim")
        facts["experts_class"] = tree.class_name(experts)
        facts.update(_picked(tree, experts, ("swiglu_limit",)))
    shared = tree.read(moe, "shared_experts")
    if isinstance(shared, Node):
        facts["shared_hidden_dim"] = _width(tree, shared)
        if isinstance(tree.read(shared, "gate"), Node):
            facts["shared_gate"] = True
    return facts
