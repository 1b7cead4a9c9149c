"""What a torchtitan rank holds: fp32 shards that are the master weights, gathered in bf16 block by block."""

from __future__ import annotations

from translator.frameworks.torchtitan.memory import activations as _activations
from translator.frameworks.torchtitan.memory import output as _output
from translator.frameworks.torchtitan.memory import state as _state
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Account

# The caching allocator holds a few percent more than it hands out, because gathered parameters and activations of many
# sizes take turns.
GROWTH = (0.0, 0.05, 0.14)


def account(job: Job, stages: Stages) -> Account:
    """All terms of a job. Source: the modules of this folder name it term by term."""
    kept = _activations.saved(job, stages)
    gathered = _state.gathered(job, stages)
    return Account(
        state=[*_state.terms(job, stages), *_output.buffers(job, stages)],
        phases={
            "loss of the last micro batch": [*kept, *gathered, *_output.loss(job, stages)],
            "backward pass of a block": [*kept, *gathered, *_activations.backward(job, stages)],
            "backward pass of the output layer": [*kept, *gathered, *_output.backward(job, stages)],
            "optimizer step": _state.step(job, stages),
        },
        outside=_output.outside(job, stages),
        host=_state.host(job, stages),
        growth=GROWTH,
    )
