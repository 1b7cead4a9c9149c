"""Asks the real DeepSpeed 0.19.2 and transformers 5.24.0 about memory. See ``serving`` for how it is called.

======== ==============================================================================================================
estimate ``gpu_bytes`` and ``cpu_bytes`` of DeepSpeed's estimates of model states: ``stage`` (2 or 3), ``parameters``,
         ``largest_layer`` (elements, for stage 3), ``gpus_per_node``, ``nodes`` and ``offload`` (of the optimizer)
saved    ``kept``: every storage that autograd holds after the forward pass of the model that ``config`` (fields of a
         configuration of transformers) describes, on a CPU in bf16, with its loss where ``loss`` is true. Parameters
         and buffers are not counted
======== ==============================================================================================================
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from typing import Any

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("DEEPSPEED_LOG_LEVEL", "error")

import serving
from serving import real

with contextlib.redirect_stdout(sys.stderr):  # it reports what it finds, which is no answer
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs


def estimate(
    *,
    stage: int,
    parameters: int,
    gpus_per_node: int,
    nodes: int = 1,
    largest_layer: int = 0,
    offload: bool = False,
) -> dict[str, Any]:
    if stage == 3:
        cpu, gpu, _ = real(
            "zero3",
            estimate_zero3_model_states_mem_needs,
            parameters,
            largest_layer,
            gpus_per_node,
            nodes,
            cpu_offload=offload,
            cpu_offload_params=False,
        )
    else:
        cpu, gpu = real(
            "zero2", estimate_zero2_model_states_mem_needs, parameters, gpus_per_node, nodes, cpu_offload=offload
        )
    return {"cpu_bytes": cpu, "gpu_bytes": gpu}


class Held:
    """A tensor that autograd keeps; it is gone as soon as autograd lets go of it."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def saved(
    *, config: dict[str, Any], tokens: int, micro_batch: int = 1, checkpointing: bool = False, loss: bool = False
) -> dict[str, Any]:
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    fields = dict(config)
    described = AutoConfig.for_model(fields.pop("model_type"), **fields)
    described._attn_implementation = fields.get("attn_implementation", "sdpa")
    kind = AutoModelForCausalLM if loss else AutoModel
    model = real("model", kind.from_config, described).to(torch.bfloat16).train()
    if checkpointing:
        model.gradient_checkpointing_enable()
    held: weakref.WeakSet[Held] = weakref.WeakSet()

    def hold(tensor: Any) -> Held:
        found = Held(tensor)
        held.add(found)
        return found

    def address(tensor: Any) -> int:
        return int(tensor.untyped_storage().data_ptr())

    words = torch.zeros(micro_batch, tokens, dtype=torch.long)
    with torch.autograd.graph.saved_tensors_hooks(hold, lambda found: found.tensor):
        out = model(words, use_cache=False, **({"labels": words} if loss else {}))
    assert out is not None
    own = {address(tensor) for tensor in (*model.parameters(), *model.buffers(), words)}
    kept = {address(found.tensor): found.tensor for found in held}
    return {
        "kept": [
            {"bytes": tensor.untyped_storage().nbytes(), "type": str(tensor.dtype), "shape": list(tensor.shape)}
            for key, tensor in kept.items()
            if key not in own
        ]
    }


if __name__ == "__main__":
    serving.main({"estimate": estimate, "saved": saved})
