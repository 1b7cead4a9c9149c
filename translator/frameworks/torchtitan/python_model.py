"""The plain facts of a model that a Python configuration builds from Config classes, in the shape of a flavor's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from translator.catalogue.classes import Classes
from translator.errors import SourceError
from translator.findings import Place
from translator.pyconfig.values import MISSING, Call, Node, Partial, Unknown

Facts = dict[str, object]
_BACKENDS = {"VarlenAttention": "varlen"}
_DISPATCHERS = {
    "DeepEPTokenDispatcher": "deepep",
    "HybridEPTokenDispatcher": "hybridep",
    "MinimalAsyncEPTokenDispatcher": "minimal_async_ep",
}
# Where the standard deviation of ordinary weights stands, and that of weights that write to the residual stream.
_INPUT = ("qkv_linear.wqkv", "qkv_linear.wq", "wq", "wq_a")
_OUTPUT = ("attention.wo", "feed_forward.w2", "moe.shared_experts.w2")


class CannotReadError(Exception):
    """A model whose facts are not known; ``place`` is where the reason stands."""

    def __init__(self, reason: str, place: Place | None = None) -> None:
        super().__init__(reason)
        self.place = place


class ModelView:
    """A configuration tree with the defaults of its classes."""

    def __init__(self, facts: Classes) -> None:
        self.facts = facts

    def read(self, node: Node, name: str) -> object:
        """A field: what is stated, else its default. Raises `CannotReadError` for a value that is open."""
        found = node.fields[name] if name in node.fields else self._default(node, name)
        if isinstance(found, Unknown):
            raise CannotReadError(found.reason, found.place)
        if isinstance(found, Call):
            raise CannotReadError(f"{found.callee} is not known", found.place)
        return found

    def _default(self, node: Node, name: str) -> object:
        return next(
            (value for cls in (node.cls, *node.bases) if (value := self.facts.default(cls, name)) is not MISSING),
            MISSING,
        )

    def class_name(self, node: Node) -> str:
        """The short name of a node's class."""
        return self.facts.component(node.cls)

    def at(self, node: object, path: str) -> object:
        """A field at a dotted path; None where the path ends."""
        for name in path.split("."):
            if not isinstance(node, Node):
                return None
            node = self.read(node, name)
        return node


def model_facts(facts: Classes, model: Node) -> tuple[Facts, str | None, str | None]:
    """Facts, attention backend and dispatcher of a model. Raises `CannotReadError` when parts of it are open."""
    from translator.frameworks.torchtitan.extract_flavors_python import model_facts as reduced

    view = ModelView(facts)
    layers = view.read(model, "layers")
    if not isinstance(layers, list) or not layers or not all(isinstance(item, Node) for item in layers):
        raise CannotReadError("its layers are not known", model.place)
    try:
        found: Facts = dict(reduced(view, model))
    except SourceError as error:
        raise CannotReadError(error.message, model.place) from error
    if not isinstance(found.get("dim"), int) or not isinstance(found.get("vocab_size"), int):
        raise CannotReadError("its dimensions are not known", model.place)
    blocks = [item for item in layers if isinstance(item, Node)]
    if "sliding_window_size" not in found and _may_slide(view, blocks[0]):
        found.update(sliding_window_size=None, full_layers=list(range(len(blocks))))
    found.update(_initial(view, blocks))
    return found, _backend(view, blocks), _dispatcher(view, blocks)


def _may_slide(view: ModelView, block: Node) -> bool:
    """Whether the attention has a window at all, which here is none: a flavor of its family has one by default."""
    attention = view.at(block, "attention")
    return isinstance(attention, Node) and view.read(attention, "sliding_window_size") is not MISSING


def _backend(view: ModelView, blocks: list[Node]) -> str | None:
    inner = view.at(blocks[0], "attention.inner_attention")
    if not isinstance(inner, Node):
        return None
    options = view.read(inner, "kernel_options")
    if isinstance(options, Mapping) and options.get("BACKEND") == "FLASH":
        return "flex_flash"
    return _BACKENDS.get(view.class_name(inner), "flex")


def _dispatcher(view: ModelView, blocks: list[Node]) -> str | None:
    for block in blocks:
        found = view.at(block, "moe.routed_experts.token_dispatcher")
        if isinstance(found, Node):
            return _DISPATCHERS.get(view.class_name(found), "standard")
    return None


def _initial(view: ModelView, blocks: list[Node]) -> Facts:
    """Initial scales: that of ordinary weights, and how that of the others falls with depth."""
    base = next(_stds(view, blocks[0], "attention", _INPUT), None)
    first = next(_stds(view, blocks[0], "", _OUTPUT), None)
    last = next(_stds(view, blocks[-1], "", _OUTPUT), None)
    count = len(blocks)
    if first is None or last is None:
        return {} if base is None else {"init_std": base}
    if count > 1 and math.isclose(first, last * count**0.5):
        std = first * 2**0.5
        return {"init_std": base if base is not None and not _near(base, first) else _tidy(std), **_kind("layer_index")}
    if base is None:
        return {}
    by_depth = (2 * count) ** 0.5
    if _near(first, base):
        # In a family that scales all weights the scaled value stands everywhere; the shorter number was meant.
        whole = _tidy(first * by_depth)
        if len(repr(whole)) < len(repr(first)):
            return {"init_std": whole, **_kind("depth")}
        return {"init_std": base, **_kind("none")}
    return {"init_std": base, **(_kind("depth") if math.isclose(first, base / by_depth) else {})}


def _kind(name: str) -> Facts:
    return {"output_init": name}


def _near(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=1e-9)


def _tidy(value: float) -> float:
    """A root squared back: the short number that it came from."""
    return float(f"{value:.12g}")


def _stds(view: ModelView, block: Node, prefix: str, paths: tuple[str, ...]) -> Iterator[float]:
    for path in paths:
        node = view.at(block, f"{prefix}.{path}" if prefix else path)
        init = view.read(node, "param_init") if isinstance(node, Node) else None
        weight = init.get("weight") if isinstance(init, Mapping) else None
        std = weight.kwargs.get("std") if isinstance(weight, Partial) else None
        if isinstance(std, int | float) and not isinstance(std, bool):
            yield float(std)
