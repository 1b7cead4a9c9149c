"""What the forks say and Megatron-LM 0.12.0 has no words for: leaves that are set after its rows have read the rest."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from typing import Any

from translator.frameworks.deepspeed.megatron_fork import forks
from translator.frameworks.deepspeed.megatron_fork.words import MOST_LAYERS, Arguments

SCHEDULE = ("schedule.unit", "schedule.total", "schedule.warmup", "schedule.decay_start", "schedule.decay_length")
# What the forks' own loop does, whatever the arguments say.
FIXED: Mapping[str, Any] = {
    "launch.program": None,
    "loss.cpu_check_nan": False,
    "parallel.tensor_overlap": False,
    "model.moe.dispatcher": None,
    "model.moe.grouped_gemm": None,
}
_GLU = {"geglu": (True, "gelu")}
_LARGEST_SPLIT = 40_000_000


def adjusted(flat: Mapping[str, Any], fork: Arguments) -> dict[str, Any]:
    """The leaves that differ from what Megatron-LM's rows read."""
    found = {leaf: value for leaf, value in FIXED.items() if flat.get(leaf) is not None}
    if fork.get("position_embedding_type") == "alibi":
        found["model.positions"] = None
    gate = fork.get("glu_activation")
    if gate not in (None, "swiglu"):
        found["model.gated"], found["model.activation"] = _GLU.get(gate, (True, None))
    if flat.get("model.moe.experts") and flat.get("model.moe.top_k") == 1:
        # Random token selection (sharded_moe.py:234 at 0.19.2): neither the weight nor the position decides.
        found["model.moe.drop_policy"] = None
    found |= _split(flat, fork) | _length(flat, fork) | _tokens(flat, fork)
    return found


def _split(flat: Mapping[str, Any], fork: Arguments) -> dict[str, Any]:
    stages, layers = flat.get("parallel.pipeline.degree"), flat.get("model.layers")
    if not stages or stages == 1 or not layers:
        return {}
    method = fork.get("pp_partition_method", "type:transformer").strip("'\"").lower()
    counts = partition(layers, stages, method)
    if counts is None:
        return {"parallel.pipeline.layer_split": None}
    return {"parallel.pipeline.layer_split": counts, "parallel.pipeline.schedule": "1f1b"}


def partition(layers: int, stages: int, method: str) -> list[int] | None:
    """Transformer layers of each stage as PipelineModule places them; None for a method that is not known here.

    The modules in order are a cast, the embedding, the layers, a norm, the head and another cast
    (``model/gpt_model.py:336-440``); those whose class matches count 1 (``deepspeed/runtime/pipe/module.py:385`` and
    `partition_balanced`, ``deepspeed/runtime/utils.py:627``, at 0.19.2).
    """
    if not method.startswith("type:") or layers > MOST_LAYERS or stages > layers:
        return None
    try:
        wanted = re.compile(method.removeprefix("type:"), re.IGNORECASE)
    except re.error:
        return None
    names = ["cast", "EmbeddingPipe", *["ParallelTransformerLayerPipe"] * layers, "LayerNorm", "EmbeddingPipe", "cast"]
    weights = [1 if wanted.search(name) else 0 for name in names]
    counted = sum(weights)
    if counted == layers and layers % stages == 0:
        return [layers // stages] * stages
    if len(names) ** 2 * stages > _LARGEST_SPLIT or len(names) <= stages:
        return None
    parts = _balanced(weights, stages)
    return [sum(2 <= at < 2 + layers for at in range(start, end)) for start, end in itertools.pairwise(parts)]


def _balanced(weights: list[int], parts: int) -> list[int]:
    """Borders of the parts with the least difference between the heaviest and the lightest."""
    count, infinite = len(weights), math.inf
    sums = [0, *(sum(weights[: at + 1]) for at in range(count))]
    high = [[infinite] * (parts + 1) for _ in range(count + 1)]
    low = [[infinite] * (parts + 1) for _ in range(count + 1)]
    cost = [[infinite] * (parts + 1) for _ in range(count + 1)]
    cut = [[0] * (parts + 1) for _ in range(count + 1)]
    high[0][0] = cost[0][0] = 0
    for end in range(1, count + 1):
        for part in range(1, min(end, parts) + 1):
            for start in range(end):
                top = max(high[start][part - 1], sums[end] - sums[start])
                bottom = min(low[start][part - 1], sums[end] - sums[start])
                if cost[end][part] >= top - bottom:
                    cost[end][part], high[end][part], low[end][part] = top - bottom, top, bottom
                    cut[end][part] = start
    borders = [count]
    for part in range(parts, 0, -1):
        borders.append(cut[borders[-1]][part])
    return borders[::-1]


def _length(flat: Mapping[str, Any], fork: Arguments) -> dict[str, Any]:
    """Training stops at the first of iterations and tokens (``training.py:1249``)."""
    tokens, total, length = fork.get("train_tokens"), flat.get("schedule.total"), flat.get("batch.seq_len")
    batch = flat.get("batch.global_batch")
    if tokens is None or not total or not length:
        return {}
    each = length if flat.get("schedule.unit") == "samples" else length * batch if batch else None
    return {} if each is None else {"schedule.total": min(total, math.ceil(tokens / each))}


def _tokens(flat: Mapping[str, Any], fork: Arguments) -> dict[str, Any]:
    """A schedule in tokens (``optimizer_param_scheduler.py:86-150``).

    Tokens are counted after the step that they were trained in, and the scheduler runs before that: the rate is one
    step behind.
    """
    warmup, decay = fork.get("lr_warmup_tokens"), fork.get("lr_decay_tokens")
    batch, length = flat.get("batch.global_batch"), flat.get("batch.seq_len")
    if (warmup is None and decay is None) or not batch or not length:
        return {}
    each = length if flat.get("schedule.unit") == "samples" else length * batch
    total = _length(flat, fork).get("schedule.total", flat.get("schedule.total"))
    found: dict[str, Any] = {"schedule.unit": "tokens", "schedule.total": None if total is None else total * each}
    rises = float(warmup) if warmup is not None else float((flat.get("schedule.warmup") or 0) * each)
    found["schedule.warmup"] = rises
    behind = batch * length
    found["schedule.warmup_offset"] = -1 if warmup else 0
    if flat.get("schedule.decay") in (None, "constant"):
        return found
    if decay is not None:
        found["schedule.decay_start"], found["schedule.decay_length"] = rises + behind, float(decay) - rises
    else:
        # Only the warm-up counts tokens: the decay counts samples from the first on (:134).
        end = (flat.get("schedule.decay_start") or 0) + (flat.get("schedule.decay_length") or 0)
        found["schedule.decay_start"], found["schedule.decay_length"] = 0.0, float(end * each)
    end = found["schedule.decay_start"] + found["schedule.decay_length"]
    if found["schedule.total"] is not None and end < found["schedule.total"]:
        found["schedule.after_decay"] = "floor"
    return found


def unsaid(fork: Arguments) -> dict[str, str]:
    """Arguments whose value no leaf says, with what the result lacks."""
    found: dict[str, str] = {}
    if fork.get("position_embedding_type") == "alibi":
        found["position_embedding_type"] = "ALiBi weighs attention by distance, which no leaf says; set model.positions"
    gate = fork.get("glu_activation")
    if gate not in (None, "swiglu", *_GLU):
        found["glu_activation"] = f"a gate of kind {gate}, which no leaf says; set model.activation"
    experts = fork.get("num_experts")
    if isinstance(experts, list) and len(set(experts)) > 1:
        found["num_experts"] = (
            f"layers have {', '.join(map(str, sorted(set(experts))))} experts; {max(experts)} is read"
        )
    return {dest: note for dest, note in found.items() if fork.stated(dest) or dest != "num_experts"}


__all__ = ["FIXED", "SCHEDULE", "adjusted", "forks", "partition", "unsaid"]
