"""What a Megatron-LM rank holds: parameters, gradients in contiguous buffers, fp32 masters and moments beside them."""

from __future__ import annotations

from translator.frameworks.megatron.memory import activations as activations
from translator.frameworks.megatron.memory import output as output
from translator.frameworks.megatron.memory.state import host, step, terms
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Account


def account(job: Job, stages: Stages) -> Account:
    """All terms of a job. Source: the modules of this folder name it term by term."""
    kept = activations.saved(job, stages)
    return Account(
        state=[*terms(job, stages), *output.buffers(job, stages), *output.placeholders(job, stages)],
        phases={
            "loss of the last micro batch": [*kept, *output.loss(job, stages)],
            "backward pass of the output layer": [*kept, *output.backward(job, stages)],
            "backward pass of a layer": [*kept, *activations.backward(job, stages)],
            "optimizer step": step(job, stages),
        },
        outside=output.outside(job, stages),
        host=host(job, stages),
    )
