"""Asks the real DeepSpeed 0.19.2 and transformers 5.24.0 about memory. See ``serving`` for how it is called.

======== ==============================================================================================================
estimate ``gpu_bytes`` and ``cpu_bytes`` of DeepSpeed's estimates of model states: ``stage`` (2 or 3), ``parameters``,
         ``largest_layer`` (elements, for stage 3), ``gpus_per_node``, ``nodes`` and ``offload`` (of the optimizer)
saved    ``kept``: every storage that autograd holds after the forward pass of the model that ``config`` (fields of a
         configuration of transformers) describes, on a CPU in bf16, with its loss where ``loss`` is true. Parameters
         and buffers are not counted
held     bytes of all tensors, by type, that a rank of ``world_size`` holds after the backward pass of a micro batch:
         ``within``, more of the step to come, and ``last``, none; and ``between`` steps. For a ``text`` of DeepSpeed,
         with torch's AdamW and a fake process group, after the first step. The model's buffers are not counted
======== ==============================================================================================================
"""

from __future__ import annotations

import contextlib
import gc
import json
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


SMALL_BYTES = 256


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


def held(*, text: str, world_size: int, config: dict[str, Any], tokens: int) -> dict[str, Any]:
    import deepspeed
    import deepspeed_engine
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from transformers import AutoConfig, AutoModelForCausalLM

    deepspeed_engine.stand_in()
    os.environ.update({"WORLD_SIZE": str(world_size), "RANK": "0"})
    torch.distributed.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())
    fields = dict(config)
    torch.manual_seed(0)
    before = storages()
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(fields.pop("model_type"), **fields))
    before.update({address(buffer): buffer.untyped_storage().nbytes() for buffer in model.buffers()})
    parameters = list(model.parameters())
    engine, *_ = real(
        "initialize",
        deepspeed.initialize,
        model=model,
        model_parameters=parameters,
        config=json.loads(text),
        optimizer=torch.optim.AdamW(parameters),
    )
    words = torch.zeros(1, tokens, dtype=torch.long)
    found: dict[str, dict[str, int]] = {}

    def backward(name: str, last: bool) -> None:
        engine.set_gradient_accumulation_boundary(last)
        engine.backward(engine(words, labels=words, use_cache=False).loss)
        found[name] = by_type(before)
        engine.step()

    backward("first", True)
    found["between"] = by_type(before)
    backward("within", False)
    backward("last", True)
    return found


def address(tensor: Any) -> int:
    """Where the storage of a tensor begins."""
    return int(tensor.untyped_storage().data_ptr())


def storages() -> dict[int, int]:
    """Storages of all tensors that there are: address -> bytes."""
    return {address(tensor): tensor.untyped_storage().nbytes() for tensor in tensors()}


def tensors() -> list[Any]:
    """All tensors with memory of their own, gradients that only autograd knows included."""
    import torch

    gc.collect()
    found = [item for item in gc.get_objects() if type(item) in (torch.Tensor, torch.nn.Parameter)]
    found += [item.grad for item in found if item.is_leaf and item.grad is not None]
    return [item for item in found if address(item)]


def by_type(before: dict[int, int]) -> dict[str, int]:
    """Bytes of what was not there before, by type of the tensors; small ones are left out."""
    counted = set(before)
    found: dict[str, int] = {}
    for tensor in tensors():
        size = tensor.untyped_storage().nbytes()
        if address(tensor) in counted or size < SMALL_BYTES or not tensor.is_floating_point():
            continue
        counted.add(address(tensor))
        found[str(tensor.dtype)] = found.get(str(tensor.dtype), 0) + size
    return found


if __name__ == "__main__":
    serving.main({"estimate": estimate, "held": held, "saved": saved})
