"""Rows of low-precision matrix products: converters that rewrite the model's tree before it is built.

Their lists of names are matched as substrings. Float8 skips what it lists, MXFP8 and NVFP4 convert what they list, and
everything where they list nothing (``components/quantization/float8.py:57``, ``mx.py:52``). Neutral names of modules
are those of the TOML versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from translator.frameworks.torchtitan import addresses, model_names
from translator.ledger import Entry
from translator.mapping.rows import Row, linked
from translator.mapping.views import NativeView, Sink, SpecView

CONVERTERS = "model_spec.converters"
HEAD = "lm_head"
_HERE = {"output": HEAD, "wq": "wqkv", "wk": "wqkv", "wv": "wqkv"}
_FUSED = ("wq", "wk", "wv")


def native_name(name: str) -> str:
    """A module of the TOML versions by its name in 0.3.0: the head was renamed, the projections were fused."""
    prefix, _, last = name.rpartition(".")
    here = _HERE.get(last, last)
    if last in _FUSED and prefix:
        prefix = f"{prefix}.qkv_linear"
    return f"{prefix}.{here}" if prefix else here


def neutral_name(name: str) -> str:
    """The inverse as far as there is one."""
    return "output" if name == HEAD else name


def allow_list(skip: Iterable[str], linears: Sequence[str], layers: int) -> list[str]:
    """Substrings that match every linear of the model but those that one in ``skip`` matches; empty for all.

    Raises `LookupError` when nothing is left to convert, for an empty list would mean everything.
    """
    skipped = list(skip)
    if not skipped:
        return []

    def is_skipped(name: str) -> bool:
        return any(part in name for part in skipped)

    kept = [tuple(name for name in linears if not is_skipped(f"layers.{index}.{name}")) for index in range(layers)]
    head = [] if is_skipped(HEAD) else [HEAD]
    if not head and not any(kept):
        raise LookupError("no linear is left")
    if all(names == tuple(linears) for names in kept):
        return ["layers", *head]
    if len(set(kept)) == 1:
        return [*kept[0], *head]
    found: list[str] = []
    for index, names in enumerate(kept):
        whole = names == tuple(linears)
        found += [f"layers.{index}."] if whole else [f"layers.{index}.{name}" for name in names]
    return [*found, *head]


def skip_list(allowed: Sequence[str], linears: Sequence[str], layers: int) -> list[str]:
    """The modules that an allow list leaves out, as briefly as `allow_list` would have been asked."""
    if not allowed:
        return []

    def converted(name: str) -> bool:
        return any(part in name for part in allowed)

    found = [] if converted(HEAD) else [HEAD]
    per_name = {name: [index for index in range(layers) if not converted(f"layers.{index}.{name}")] for name in linears}
    found += [name for name, missing in per_name.items() if len(missing) == layers]
    everywhere = set(found)
    rest = {name: missing for name, missing in per_name.items() if missing and len(missing) < layers}
    for index in range(layers):
        missing_here = [name for name, missing in rest.items() if index in missing]
        if missing_here and len(missing_here) == len(set(linears) - everywhere):
            found.append(f"layers.{index}.")
        else:
            found += [f"layers.{index}.{name}" for name in missing_here]
    return found


def _items(native: NativeView) -> list[Mapping[str, Any]]:
    stated = native(CONVERTERS)
    return [item for item in stated if isinstance(item, Mapping)] if isinstance(stated, list) else []


def _read(native: NativeView) -> Mapping[str, Any]:
    flat: dict[str, Any] = {"precision.fp8": "none", "precision.fp4": "none"}
    found = {str(item.get("class")): item for item in _items(native)}
    linears = model_names.linears(lambda leaf: native(f"{addresses.MODEL}{leaf}"))
    layers = native(f"{addresses.MODEL}layers") or 0
    if "NVFP4LinearConverter" in found:
        flat["precision.fp4"] = "e2m1"
    if "Float8LinearConverter" in found:
        skipped = found["Float8LinearConverter"].get("filter_fqns") or []
        flat |= {"precision.fp8": "e4m3", "precision.fp8_recipe": "rowwise"}
        flat["precision.fp8_skip"] = sorted(neutral_name(str(name)) for name in skipped)
    elif "MXFP8LinearConverter" in found:
        allowed = [str(name) for name in found["MXFP8LinearConverter"].get("fqns") or []]
        flat |= {"precision.fp8": "e4m3", "precision.fp8_recipe": "mxfp8"}
        flat["precision.fp8_skip"] = sorted(map(neutral_name, skip_list(allowed, linears, layers)))
    if flat["precision.fp8"] != "none":
        flat["precision.fp8_parameters"] = False
        if native(f"{addresses.MODEL}moe.experts"):
            flat["precision.fp8_experts"] = bool(
                {"Float8GroupedExpertsConverter", "MXFP8GroupedExpertsConverter"} & set(found)
            )
    return flat


def _write(spec: SpecView, sink: Sink) -> None:
    kind, recipe = spec("precision.fp8", "none"), spec("precision.fp8_recipe")
    if spec("precision.fp4", "none") != "none":
        sink.short("precision.fp4", Entry.UNSUPPORTED, "the fp4 recipe of torchao is not that of the source")
    if kind == "none":
        return
    skip = [native_name(name) for name in spec("precision.fp8_skip") or []]
    compiled = {"model_compile_enabled": True} if spec("launch.compile") else {}
    family = "MXFP8" if recipe == "mxfp8" else "Float8"
    linear: dict[str, Any] = {"class": f"{family}LinearConverter", **compiled}
    if family == "Float8":
        if skip:
            linear["filter_fqns"] = list(dict.fromkeys(skip))
    else:
        _allow(linear, skip, spec, sink)
    converters = [linear]
    if spec("precision.fp8_experts"):
        converters.append({"class": f"{family}GroupedExpertsConverter", **compiled})
    sink.put(CONVERTERS, converters)
    why = "row by row, with e4m3 throughout, is the only recipe left besides mxfp8"
    for leaf in ("fp8", "fp8_recipe"):
        sink.short(f"precision.{leaf}", Entry.APPROXIMATED, why)
    why = "queries, keys and values are one linear, which is left out as a whole; the head is called lm_head"
    sink.short("precision.fp8_skip", Entry.APPROXIMATED, why)
    sink.short("precision.fp8_parameters", Entry.UNSUPPORTED, "parameters are gathered in the compute format")
    sink.short("precision.fp8_experts", Entry.APPROXIMATED, "experts run in fp8 exactly where a converter says so")


def _allow(linear: dict[str, Any], skip: list[str], spec: SpecView, sink: Sink) -> None:
    names = model_names.linears(lambda leaf: spec(f"model.{leaf}"))
    try:
        allowed = allow_list(skip, names, spec("model.layers", 0))
    except LookupError:
        sink.short("precision.fp8", Entry.APPROXIMATED, "no linear is left to convert")
        return
    if allowed:
        linear["fqns"] = allowed


ROWS: tuple[Row, ...] = (
    linked(
        [CONVERTERS],
        [
            "precision.fp8",
            "precision.fp8_recipe",
            "precision.fp8_parameters",
            "precision.fp8_skip",
            "precision.fp8_experts",
            "precision.fp4",
        ],
        read=_read,
        write=_write,
    ),
)
