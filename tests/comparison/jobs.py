"""Jobs with round numbers: a model of 2 layers, hidden 8, and whatever a test sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translator.communication import Axis, Transfer, communication_of
from translator.memory.sizes import Job, job_of

DENSE: Mapping[str, Any] = {
    "model.layers": 2,
    "model.hidden": 8,
    "model.ffn": 32,
    "model.heads": 4,
    "model.kv_heads": 2,
    "model.vocab": 100,
    "model.gated": True,
    "model.norm": "rmsnorm",
    "model.positions": "rope",
    "batch.micro_batch": 1,
    "batch.seq_len": 16,
    "precision.compute": "bf16",
    "precision.parameters": "bf16",
    "precision.grad_reduce": "fp32",
    "precision.master": "fp32",
}
EXPERTS: Mapping[str, Any] = {
    "model.moe.experts": 4,
    "model.moe.top_k": 2,
    "model.moe.ffn": 16,
    "model.moe.dense_layers": [],
}
# Elements of the dense model, by hand: query and output 8 x 8, key and value 8 x 4 each, gate, up and down 3 x 8 x 32,
# two norms; embedding and output layer of 100 x 8 each, and the last norm.
BLOCK = 2 * 64 + 2 * 32 + 3 * 256
NORMS = 16
ENDS = 2 * 800 + 8
DENSE_ELEMENTS = 2 * (BLOCK + NORMS) + ENDS


def job(framework: str, version: str, values: Mapping[str, Any] | None = None, /, **fields: Any) -> Job:
    """A job of the dense model; a field's dots are written as two underscores."""
    stated = {name.replace("__", "."): value for name, value in fields.items()}
    ranks = {"parallel.data.degree": 1, "batch.accumulation": 1}
    return job_of(framework, version, {**DENSE, **ranks, **stated}, values or {})


def sent(found: list[Transfer], name: str, stage: int = 0) -> float:
    """Bytes that a rank of a stage sends for the transfers whose name begins so."""
    return float(sum(transfer.sent_bytes[0, stage] for transfer in found if transfer.name.startswith(name)))


def on_axis(found: list[Transfer], axis: Axis, stage: int = 0) -> float:
    """Bytes that a rank of a stage sends on an axis."""
    return float(sum(transfer.sent_bytes[0, stage] for transfer in found if transfer.axis is axis))


def calls(found: list[Transfer], name: str, stage: int = 0) -> float:
    """Calls of the transfers whose name begins so."""
    import numpy as np

    chosen = (transfer for transfer in found if transfer.name.startswith(name))
    return float(sum(np.broadcast_to(one.calls, one.sent_bytes.shape)[0, stage] for one in chosen))


def transfers(
    framework: str, version: str, values: Mapping[str, Any] | None = None, /, **fields: Any
) -> list[Transfer]:
    """What a job sends."""
    return communication_of(job(framework, version, values, **fields))
