"""Asks the real DeepSpeed 0.19.2 which collectives a small Llama of transformers runs through. See ``serving``.

``collectives`` initializes the engine with ``config`` as rank 0 of ``world_size`` ranks and runs one optimizer step.
``calls`` lists every collective that was dispatched: operation, ranks of its group, and bytes of the whole as
``translator.communication.Operation`` counts them. ``head`` is the shape of the output head.

What stands in: process groups that do nothing, and the check that tensor ranks were given the same batch.
"""

from __future__ import annotations

import os
from typing import Any
from unittest import mock

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import serving
import torch
import torch.distributed
from recording import Recorder
from serving import real
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import LlamaConfig, LlamaForCausalLM


def collectives(config: dict[str, Any], world_size: int, tokens: int, **sizes: int) -> dict[str, Any]:
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(world_size), MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    torch.distributed.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())
    model = LlamaForCausalLM(LlamaConfig(**sizes))
    optimizer = {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}}
    engine, *_ = real("initialize", deepspeed.initialize, model=model, config={**config, "optimizer": optimizer})
    words = torch.zeros(1, tokens, dtype=torch.long)
    recorder = Recorder()
    with recorder, mock.patch.object(torch, "equal", return_value=True):
        for _ in range(config.get("gradient_accumulation_steps", 1)):
            real("step", lambda: engine.backward(engine(input_ids=words, labels=words).loss))
            real("step", engine.step)
    return {"calls": recorder.calls, "head": list(engine.module.lm_head.weight.shape)}


if __name__ == "__main__":
    serving.main({"collectives": collectives})
