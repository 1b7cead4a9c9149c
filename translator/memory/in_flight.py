"""Micro batches whose activations a pipeline rank holds at its worst moment, by schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from translator.memory.sizes import Array, Layout

Counted = Callable[[Any, Any, Any, Any], Any]


def in_flight(layout: Layout, stages: int) -> Array:
    """Micro batches in flight per rank, counted in whole passes through all chunks of the rank.

    An array of shape (layouts, stages). With v chunks a pass through one chunk counts 1/v. Raises KeyError for a
    schedule that is not known.
    """
    rank = np.arange(stages)
    degree = np.atleast_1d(np.asarray(layout.pipeline)).reshape(-1, 1)
    chunks = np.atleast_1d(np.asarray(layout.chunks)).reshape(-1, 1)
    micro_batches = np.atleast_1d(np.asarray(layout.micro_batches)).reshape(-1, 1)
    schedule = layout.schedule or "1f1b"
    if schedule == "1f1b" and bool(np.any(chunks > 1)):
        schedule = "interleaved_1f1b"
    held = SCHEDULES[schedule](rank, degree, chunks, micro_batches)
    return np.broadcast_to(np.where(degree > 1, held, 1.0), np.broadcast_shapes(held.shape, (len(degree), stages)))


def one_forward_one_backward(rank: Any, degree: Any, chunks: Any, micro_batches: Any) -> Any:
    """1F1B: a rank runs ahead by the ranks behind it.

    Source: ``megatron/core/pipeline_parallel/schedules.py:2193`` (core 0.18.0); ``schedules.py:1020`` (torch 2.13).
    """
    _ = chunks
    return np.minimum(degree - rank, micro_batches) * 1.0


def all_forward(rank: Any, degree: Any, chunks: Any, micro_batches: Any) -> Any:
    """GPipe and looped breadth-first: every forward pass before the first backward pass."""
    _ = degree, chunks
    return micro_batches * 1.0 + 0 * rank


def interleaved(rank: Any, degree: Any, chunks: Any, micro_batches: Any) -> Any:
    """Interleaved 1F1B: 2 (p - rank - 1) + (v - 1) p chunk passes of warm-up, and the one that runs.

    Source: ``megatron/core/pipeline_parallel/schedules.py:857`` (core 0.18.0).
    """
    ahead = (degree - rank - 1) * 2 + (chunks - 1) * degree + 1
    return np.where(
        chunks > 1,
        np.minimum(ahead, micro_batches * chunks) / chunks,
        one_forward_one_backward(rank, degree, chunks, micro_batches),
    )


def level(rank: Any, degree: Any, chunks: Any, micro_batches: Any) -> Any:
    """Zero-bubble schedules, interleaved or in a V: every rank holds as much as 1F1B's first.

    A pass counts until the gradients of its weights are computed. Source: ``ScheduleInterleavedZeroBubble`` and
    ``ScheduleZBVZeroBubble`` in ``torch/distributed/pipelining/schedules.py`` (torch 2.13); Qi et al. 2024
    (arXiv:2405.15362), section 4.
    """
    _ = chunks
    return np.minimum(degree, micro_batches) * 1.0 + 0 * rank


def overlapped(rank: Any, degree: Any, chunks: Any, micro_batches: Any) -> Any:
    """DualPipeV: one more chunk's pass, as the forward pass of an overlapped pair begins before the backward pass ends.

    Source: ``ScheduleDualPipeV`` in ``torch/distributed/pipelining/schedules.py`` (torch 2.13).
    """
    return np.minimum(degree * chunks + 1, micro_batches * chunks) / chunks + 0 * rank


SCHEDULES: dict[str, Counted] = {
    "1f1b": one_forward_one_backward,
    "gpipe": all_forward,
    "looped_bfs": all_forward,
    "interleaved_1f1b": interleaved,
    "interleaved_zero_bubble": level,
    "zbv_zero_bubble": level,
    "dual_pipe_v": overlapped,
    "custom": one_forward_one_backward,
}
