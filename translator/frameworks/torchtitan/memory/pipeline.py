"""What a pipeline stage holds for its neighbours: buffers to receive in, and outputs until their backward pass."""

from __future__ import annotations

import numpy as np

from translator.frameworks.torchtitan.memory.layer import Widths
from translator.memory.in_flight import in_flight
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term


def exchanged(job: Job, stages: Stages) -> list[Term]:
    """Tensors between stages: one of the residual stream's size per micro batch and model chunk.

    Buffers for inputs and for their gradients are there for every micro batch from the first step on; an input in
    flight is its buffer. A stage's output is kept with its graph until its backward pass
    (``torch/distributed/pipelining/stage.py``, ``_prepare_forward_infra``, ``fwd_cache``; torch 2.13).
    """
    layout = job.layout
    apart = np.asarray(layout.pipeline) > 1
    if not np.any(apart):
        return []
    w = Widths(job)
    every = layout.micro_batches * apart * stages.present
    flying = in_flight(layout, stages.count) * apart * stages.present
    chunks = np.asarray(layout.chunks)
    # The first chunk of the first rank receives no input, the last chunk of the last rank no gradient.
    inputs, gradients = chunks - stages.first, chunks - stages.last
    return [
        Term("buffers for inputs to come", Kind.WORKSPACE, (every - flying) * inputs * w.residual()),
        Term("buffers for gradients of outputs", Kind.WORKSPACE, every * gradients * w.residual()),
        Term("outputs of the stage", Kind.ACTIVATIONS, flying * gradients * w.residual()),
    ]
