"""Sizes of a model and of its layout, taken from the fields of the spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from translator.mapping.table import Table

# A whole number, or an array of shape (layouts, 1) with one per candidate layout.
Count = Any
Array = NDArray[np.float64]

# Bytes of one element by the spec's name of its type.
BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "fp4": 0.5}


class UnknownSizeError(Exception):
    """A field that an estimate needs is not known; ``field`` names it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.field = name


@dataclass(frozen=True, slots=True)
class Experts:
    """The mixture of experts of a layer; widths in elements."""

    experts: int
    top_k: int
    ffn: int
    shared_ffn: int
    bias: bool
    shared_gate: bool


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention; ranks and widths per head in elements. ``q_rank`` 0 is a full query projection."""

    q_rank: int
    kv_rank: int
    nope: int
    rope: int
    value: int


@dataclass(frozen=True, slots=True)
class Model:
    """Dimensions of one architecture, in elements.

    ``dense`` are the layers (of ``layers``) whose feed-forward has no experts; ``vocab`` is padded as trained.
    """

    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    max_positions: int
    gated: bool
    bias: bool
    bias_qkv: bool
    tied: bool
    learned_positions: bool
    rope: bool
    rope_fraction: float
    layer_norm: bool
    qk_norm: str
    activation: str
    hidden_dropout: float
    attention_dropout: float
    dense: frozenset[int]
    moe: Experts | None
    mla: Latent | None
    mtp_layers: int
    attention_gate: bool = False
    sinks: bool = False

    @property
    def query_width(self) -> int:
        """All heads of the query: heads times width."""
        return self.heads * (self.mla.nope + self.mla.rope if self.mla else self.head_dim)

    @property
    def value_width(self) -> int:
        """What attention puts out, over all heads."""
        return self.heads * (self.mla.value if self.mla else self.head_dim)


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees and batch of one layout, or of many: every count may be an array of shape (layouts, 1).

    ``shard`` and ``replicate`` are data-parallel ranks, context-parallel ones not counted. ``chunks`` are model chunks
    per rank; ``micro_batches`` those of one step.
    """

    tensor: Count
    pipeline: Count
    chunks: Count
    context: Count
    expert: Count
    expert_tensor: Count
    replicate: Count
    shard: Count
    micro_batch: Count
    micro_batches: Count
    seq_len: Count
    sequence_parallel: Any
    schedule: str | None = None
    split: tuple[int, ...] | None = None

    @property
    def data(self) -> Count:
        """Data-parallel ranks."""
        return self.replicate * self.shard

    @property
    def tokens(self) -> Count:
        """Tokens of one micro batch on one rank of the context group."""
        return self.micro_batch * self.seq_len / self.context

    @property
    def sequence_ranks(self) -> Count:
        """Over how many ranks norms and residuals are split along the sequence, besides context parallelism."""
        return np.where(self.sequence_parallel, self.tensor, 1)

    @property
    def expert_data(self) -> Count:
        """Ranks that hold the same shard of the experts: those of data, context and tensor that are left over."""
        return np.maximum(self.data * self.context * self.tensor // (self.expert * self.expert_tensor), 1)


@dataclass(frozen=True, slots=True)
class Job:
    """What an estimate is about: the model, the layout, and everything else that the configuration says.

    ``flat`` are the fields of the spec in force, ``values`` the framework's own options by address, and ``table`` what
    leads from one to the other, where the configuration has one.
    """

    framework: str
    version: str
    model: Model
    layout: Layout
    flat: Mapping[str, Any] = field(repr=False)
    values: Mapping[str, Any] = field(repr=False)
    table: Table | None = field(default=None, repr=False, compare=False)

    def bytes_of(self, leaf: str, default: str) -> float:
        """Bytes of one element of the type that a leaf names, such as ``precision.parameters``."""
        return BYTES.get(self.flat.get(leaf) or default, 4)

    def number(self, address: str, default: float) -> float:
        """An option of the framework that holds a number, by address."""
        value = self.values.get(address)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default

    def with_layouts(self, **degrees: Any) -> Job:
        """The same job under candidate layouts: arrays of one length, by the names of `Layout`'s fields.

        An array of n candidates is given in the shape (n,); the split of layers follows anew from the degrees.
        """
        shaped: dict[str, Any] = {name: np.asarray(value).reshape(-1, 1) for name, value in degrees.items()}
        return replace(self, layout=replace(self.layout, split=None, **shaped))


def job_of(framework: str, version: str, flat: Mapping[str, Any], values: Mapping[str, Any]) -> Job:
    """The job of a configuration. Raises `UnknownSizeError` naming the field that is missing."""
    return Job(framework, version, model_of(flat), layout_of(flat), flat, values)


def model_of(flat: Mapping[str, Any]) -> Model:
    """The dimensions of the model. Raises `UnknownSizeError`."""
    hidden, heads, layers = (_need(flat, f"model.{name}") for name in ("hidden", "heads", "layers"))
    mla = _latent(flat)
    moe = _experts(flat)
    dense = flat.get("model.moe.dense_layers") or () if moe else range(layers)
    return Model(
        layers=layers,
        hidden=hidden,
        ffn=flat.get("model.ffn") or (0 if moe and not dense else _need(flat, "model.ffn")),
        heads=heads,
        kv_heads=flat.get("model.kv_heads") or heads,
        head_dim=flat.get("model.head_dim") or hidden // heads,
        vocab=flat.get("model.vocab_padded") or _need(flat, "model.vocab"),
        max_positions=flat.get("model.max_positions") or 0,
        gated=bool(flat.get("model.gated")),
        bias=bool(flat.get("model.bias_linear")),
        bias_qkv=bool(flat.get("model.bias_qkv")),
        tied=bool(flat.get("model.tied_embeddings")),
        learned_positions=flat.get("model.positions") == "learned",
        rope=flat.get("model.positions") in ("rope", "yarn", "mrope"),
        rope_fraction=flat.get("model.rope.fraction") or 1.0,
        layer_norm=flat.get("model.norm") == "layernorm",
        qk_norm=flat.get("model.qk_norm") or "none",
        activation=flat.get("model.activation") or "silu",
        hidden_dropout=flat.get("model.hidden_dropout") or 0.0,
        attention_dropout=flat.get("model.attention_dropout") or 0.0,
        dense=frozenset(layer for layer in dense if layer < layers),
        moe=moe,
        mla=mla,
        mtp_layers=flat.get("model.mtp.layers") or 0,
        attention_gate=bool(flat.get("model.attention_output_gate")),
        sinks=flat.get("model.attention_softmax") == "learnable",
    )


def _latent(flat: Mapping[str, Any]) -> Latent | None:
    if not flat.get("model.mla.enabled"):
        return None
    kv_rank, nope, value = (_need(flat, f"model.mla.{name}") for name in ("kv_rank", "qk_nope_dim", "v_dim"))
    return Latent(flat.get("model.mla.q_rank") or 0, kv_rank, nope, flat.get("model.mla.qk_rope_dim") or 0, value)


def _experts(flat: Mapping[str, Any]) -> Experts | None:
    experts = flat.get("model.moe.experts")
    if not experts:
        return None
    return Experts(
        experts=experts,
        top_k=_need(flat, "model.moe.top_k"),
        ffn=_need(flat, "model.moe.ffn"),
        shared_ffn=flat.get("model.moe.shared_ffn") or 0,
        bias=bool(flat.get("model.moe.expert_bias_linear")),
        shared_gate=bool(flat.get("model.moe.shared_gate")),
    )


def layout_of(flat: Mapping[str, Any]) -> Layout:
    """The layout. Raises `UnknownSizeError`."""

    def degree(name: str) -> int:
        value = flat.get(f"parallel.{name}")
        return value if isinstance(value, int) and value > 0 else 1

    tensor, pipeline, context = degree("tensor"), degree("pipeline.degree"), degree("context")
    world = flat.get("parallel.world_size")
    data = flat.get("parallel.data.degree")
    if not data:
        data = max((world or _need(flat, "parallel.data.degree")) // (tensor * pipeline * context), 1)
    replicate = min(degree("data.replicate"), data)
    shard = data // replicate if flat.get("parallel.data.shard") is None else degree("data.shard")
    micro_batch, seq_len = _need(flat, "batch.micro_batch"), _need(flat, "batch.seq_len")
    micro_batches = flat.get("batch.accumulation")
    if not micro_batches:
        total = flat.get("batch.global_batch")
        micro_batches = max(total // (micro_batch * data), 1) if isinstance(total, int) else 1
    split = flat.get("parallel.pipeline.layer_split")
    return Layout(
        tensor=tensor,
        pipeline=pipeline,
        chunks=degree("pipeline.stages_per_rank"),
        context=context,
        expert=degree("expert"),
        expert_tensor=degree("expert_tensor"),
        replicate=replicate,
        shard=shard,
        micro_batch=micro_batch,
        micro_batches=micro_batches,
        seq_len=seq_len,
        sequence_parallel=bool(flat.get("parallel.sequence_parallel")) and tensor > 1,
        schedule=flat.get("parallel.pipeline.schedule"),
        split=tuple(split) if split else None,
    )


def _need(flat: Mapping[str, Any], name: str) -> int:
    value = flat.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UnknownSizeError(name)
    return value
