"""Which layers stand on which pipeline stage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Bounds against layouts that are legal text and would unroll to more than any model has.
MAX_LAYOUT_CHARACTERS = 100_000
MAX_STAGES = 100_000
LAYER_CHARACTERS = frozenset("EtmL")
DECODER = "t"


class LayoutError(ValueError):
    """A layout that the framework would refuse."""


def parse_layout(text: str) -> list[str]:
    """The stages of a ``--pipeline-model-parallel-layout``, each a string of layer characters.

    ``Et|(tt|)*2L`` gives ``["Et", "tt", "tt", "L"]``: E embedding, t decoder layer, m multi-token prediction, L loss.
    Raises `LayoutError`. Source: ``parse_str_to_list``,
    ``megatron/core/transformer/pipeline_parallel_layer_layout.py:283`` (core 0.18.0).
    """
    unrolled = text.replace(",", "")
    for pattern in (r"\(([^)]+)\)\*(\d+)", r"(.)\*(\d+)"):
        unrolled = _unroll(pattern, unrolled)
    wrong = set(unrolled) - LAYER_CHARACTERS - {"|"}
    if wrong:
        raise LayoutError(f"the pipeline layout has the unknown layer {min(wrong)!r}; known are E, t, m and L")
    return unrolled.split("|")


def _unroll(pattern: str, text: str) -> str:
    def repeat(match: re.Match[str]) -> str:
        count = int(match[2]) if len(match[2]) < 7 else MAX_LAYOUT_CHARACTERS + 1
        if count * len(match[1]) > MAX_LAYOUT_CHARACTERS:
            raise LayoutError("the pipeline layout unrolls to more layers than any model has")
        return match[1] * count

    if len(text) > MAX_LAYOUT_CHARACTERS:
        raise LayoutError("the pipeline layout is longer than any model needs")
    return re.sub(pattern, repeat, text)


def layers_per_stage(values: Mapping[str, Any]) -> list[list[int]]:
    """Decoder layers built per pipeline rank and, within it, per virtual stage.

    ``values`` are settled values; empty when they give no split, or none that the framework would build. Source:
    ``get_num_layers_to_build``, ``megatron/core/transformer/transformer_block.py:69`` (core 0.18.0), and for hybrid
    models ``select_pipeline_segment``, ``megatron/core/models/hybrid/hybrid_layer_allocation.py:330``.
    """
    pipeline = values.get("pipeline_model_parallel_size")
    virtual = values.get("virtual_pipeline_model_parallel_size") or 1
    layers = values.get("num_layers")
    if not isinstance(pipeline, int) or pipeline < 1 or virtual < 1 or pipeline * virtual > MAX_STAGES:
        return []
    if "virtual_pipeline_model_parallel_size" not in values or not isinstance(layers, int) or layers < 0:
        return []
    counts = _explicit_stages(values)
    if counts is not None:
        if len(counts) != pipeline * virtual:
            return []
        return [[counts[chunk * pipeline + rank] for chunk in range(virtual)] for rank in range(pipeline)]
    per_rank = _layers_per_rank(values, pipeline, layers)
    if per_rank is None or any(count % virtual for count in per_rank):
        return []
    split = [[count // virtual] * virtual for count in per_rank]
    split[0][0] -= bool(values.get("account_for_embedding_in_pipeline_split"))
    split[-1][-1] -= bool(values.get("account_for_loss_in_pipeline_split"))
    return [] if any(count < 0 for rank in split for count in rank) else split


def _explicit_stages(values: Mapping[str, Any]) -> list[int] | None:
    """Layers per stage, in the order of the model, where a layout or a hybrid pattern states them."""
    layout = values.get("pipeline_model_parallel_layout")
    if layout is not None:
        try:
            return [stage.count(DECODER) for stage in parse_layout(layout)]
        except LayoutError:
            return []
    pattern = values.get("hybrid_layer_pattern")
    main = pattern.split("/")[0] if pattern else ""
    return [len(segment) for segment in main.split("|")] if "|" in main else None


def _layers_per_rank(values: Mapping[str, Any], pipeline: int, layers: int) -> list[int] | None:
    first = values.get("decoder_first_pipeline_num_layers")
    last = values.get("decoder_last_pipeline_num_layers")
    if first is None and last is None:
        layers += bool(values.get("account_for_embedding_in_pipeline_split"))
        layers += bool(values.get("account_for_loss_in_pipeline_split"))
        return None if layers % pipeline else [layers // pipeline] * pipeline
    left = layers - (first or 0) - (last or 0)
    stages = pipeline - (first is not None) - (last is not None)
    if stages < 0 or left < 0 or (stages == 0) != (left == 0) or (stages and left % stages):
        return None
    head = [] if first is None else [first]
    tail = [] if last is None else [last]
    return head + [left // stages if stages else 0] * stages + tail
