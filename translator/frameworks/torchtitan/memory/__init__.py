"""What a torchtitan rank holds: fp32 shards that are the master weights, gathered in bf16 block by block."""

from __future__ import annotations

from translator.frameworks.torchtitan.memory import activations as _activations
from translator.frameworks.torchtitan.memory import gathers as _gathers
from translator.frameworks.torchtitan.memory import output as _output
from translator.frameworks.torchtitan.memory import pipeline as _pipeline
from translator.frameworks.torchtitan.memory import state as _state
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Account

# What the caching allocator holds beyond pools and holes that are counted: blocks are rounded, and the order in which
# they come and go leaves gaps. torchtitan's launcher asks for expandable segments, so the share is small.
GROWTH = (0.0, 0.03, 0.14)
LOSS, OUTPUT, BLOCK, STEP = (
    "loss of the last micro batch",
    "backward pass of the output layer",
    "backward pass of a block",
    "optimizer step",
)


def account(job: Job, stages: Stages) -> Account:
    """All terms of a job. Source: the modules of this folder name it term by term."""
    groups = _gathers.Groups(job, stages)
    kept = [*_activations.saved(job, stages), *_output.outputs(job, stages), *_state.casts(job, stages)]
    gradients = _state.gradients(job, stages)
    kept_and_summed = [*kept, *_state.earlier(job, gradients)]
    return Account(
        state=[*_state.terms(job, stages), *_output.buffers(job, stages), *_pipeline.exchanged(job, stages)],
        phases={
            "start of the forward pass": _gathers.forward(groups),
            LOSS: [*kept_and_summed, *_gathers.at_loss(groups), *_output.loss(job, stages)],
            OUTPUT: [*kept_and_summed, *_gathers.at_output(groups), *_output.backward(job, stages)],
            BLOCK: [
                *kept,
                *gradients,
                *_state.added(job, groups),
                *_gathers.in_backward(groups),
                *_activations.backward(job, stages),
            ],
            STEP: [*gradients, *_state.step(job, stages)],
        },
        outside=_output.outside(job, stages),
        host=_state.host(job, stages),
        growth=GROWTH,
        fragments={LOSS: [*_output.hole(job, stages), *_activations.left_free(job, stages)]},
    )
