"""The gradients that the real torchtitan's pipeline leaves, over those of the mean of the cross entropy.

One process, one stage, a tiny model: prints a JSON object with ``ratio`` and the number of ``tokens``. CPU builds of
torch come without triton, so the module of kernels for experts, and 0.2.2's overlap for them, are placeholders.
"""

from __future__ import annotations

import json
import os
import sys
import types
from importlib import import_module
from types import SimpleNamespace

for name, attribute in (
    ("torchtitan.models.moe.kernels", "generate_permute_indices"),
    ("torchtitan.distributed.dual_pipe_v", "overlap_callback"),
):
    sys.modules[name] = types.ModuleType(name)
    setattr(sys.modules[name], attribute, None)

import torch  # noqa: E402
from torch import distributed, nn  # noqa: E402
from torch.distributed.pipelining import PipelineStage  # noqa: E402

os.environ.update(RANK="0", WORLD_SIZE="1")
distributed.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=0, world_size=1)
pipeline = import_module(f"torchtitan.distributed.{sys.argv[1]}")
loss = import_module("torchtitan.components.loss").cross_entropy_loss

BATCH, LENGTH, VOCABULARY = 4, 6, 11
torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(VOCABULARY, 8), nn.Linear(8, VOCABULARY))
tokens, labels = (torch.randint(0, VOCABULARY, (BATCH, LENGTH)) for _ in range(2))
nn.functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten()).backward()
mean = model[1].weight.grad.clone()
model.zero_grad()
config = SimpleNamespace(
    parallelism=SimpleNamespace(
        pipeline_parallel_schedule_csv="",
        pipeline_parallel_schedule="1F1B",
        pipeline_parallel_microbatch_size=1,
        pipeline_parallel_degree=1,
        pipeline_parallel_expert_parallel_overlap=False,
    ),
    training=SimpleNamespace(local_batch_size=BATCH),
)
schedule = pipeline.build_pipeline_schedule(config, [PipelineStage(model, 0, 1, torch.device("cpu"))], loss)
schedule.step(tokens, target=labels, losses=[])
print(json.dumps({"ratio": float((model[1].weight.grad / mean).median()), "tokens": BATCH * LENGTH}))
