"""What lies on the card outside the allocator, whatever the framework."""

from __future__ import annotations

import numpy as np

from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Kind, Term

MIB = 2**20
# Round figures of experience, held against no measurement: a context with the kernels of PyTorch loaded, and the
# buffers that NCCL takes for one communicator over 8 ranks.
CONTEXT_BYTES = 520 * MIB
COMMUNICATOR_BYTES = 160 * MIB


def context_and_communicators(job: Job, stages: Stages) -> list[Term]:
    """CUDA context and NCCL's buffers, one set per group with more than one rank."""
    layout = job.layout
    axes = (layout.tensor, layout.pipeline, layout.context, layout.data, layout.expert)
    groups = sum(np.where(np.asarray(ranks) > 1, 1, 0) for ranks in axes)
    return [
        Term("CUDA context", Kind.OUTSIDE, stages.present * CONTEXT_BYTES),
        Term("NCCL buffers", Kind.OUTSIDE, stages.present * groups * COMMUNICATOR_BYTES),
    ]
