"""What a Megatron-LM rank holds: parameters, gradients in contiguous buffers, fp32 masters and moments beside them."""

from __future__ import annotations

from translator.errors import SourceError
from translator.frameworks.megatron.memory import activations as activations
from translator.frameworks.megatron.memory import output as output
from translator.frameworks.megatron.memory.assumed import assumed as assumed
from translator.frameworks.megatron.memory.state import host, step, terms
from translator.memory.outside import context_and_communicators
from translator.memory.sizes import Job
from translator.memory.stages import Stages
from translator.memory.terms import Account

# Options that bring layers of another kind.
_OTHER_LAYERS = (
    "hybrid_layer_pattern",
    "hybrid_override_pattern",
    "is_hybrid_model",
    "heterogeneous_layers_config_path",
)


def account(job: Job, stages: Stages) -> Account:
    """All terms of a job. Source: the modules of this folder name it term by term.

    Raises SourceError for layers that are not modelled.
    """
    if any(job.values.get(address) for address in _OTHER_LAYERS):
        raise SourceError("memory of hybrid (Mamba) layers is not modelled")
    kept = activations.saved(job, stages)
    return Account(
        state=[*terms(job, stages), *output.buffers(job, stages), *output.placeholders(job, stages)],
        phases={
            "loss of the last micro batch": [*kept, *output.loss(job, stages)],
            "backward pass of the output layer": [*kept, *output.backward(job, stages)],
            "backward pass of a layer": [*kept, *activations.backward(job, stages)],
            "optimizer step": step(job, stages),
        },
        outside=context_and_communicators(job, stages),
        host=host(job, stages),
    )
