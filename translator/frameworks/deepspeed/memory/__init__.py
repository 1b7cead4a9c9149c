"""What a DeepSpeed rank holds: a model in the compute type, partitions by ZeRO stage, buckets counted in elements."""

from __future__ import annotations

from translator.frameworks.deepspeed.memory import activations as _activations
from translator.frameworks.deepspeed.memory import state as _state
from translator.memory.outside import context_and_communicators
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Account

# The allocator holds more than it hands out, the more so under stage 3, whose gathers come and go in many sizes.
GROWTH = (0.0, 0.05, 0.15)
GROWTH_GATHERED = (0.0, 0.08, 0.2)


def account(job: Job, stages: Stages) -> Account:
    """All terms of a job. Source: the modules of this folder name it term by term."""
    kept = _activations.saved(job, stages)
    on_the_way = _state.on_the_way(job, stages)
    stays = _state.bucket(job, stages) if _state.stage(job) == 3 else []
    return Account(
        state=[*_state.terms(job, stages), *stays, *_activations.buffers(job, stages)],
        phases={
            "loss of the last micro batch": [*kept, *on_the_way, *_activations.loss(job, stages)],
            "backward pass of a layer": [*kept, *on_the_way, *_activations.backward(job, stages)],
            "optimizer step": _state.step(job, stages),
        },
        outside=context_and_communicators(job, stages),
        host=_state.host(job, stages),
        growth=GROWTH_GATHERED if _state.stage(job) == 3 else GROWTH,
    )
