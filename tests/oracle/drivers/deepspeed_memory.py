"""Asks the real DeepSpeed 0.19.2 for its estimates of model states. See ``serving`` for how it is called.

One command, ``estimate``: ``stage`` (2 or 3), ``parameters``, ``largest_layer`` (elements, for stage 3),
``gpus_per_node``, ``nodes`` and ``offload`` (of the optimizer). The answer has ``gpu_bytes`` and ``cpu_bytes``.
"""

from __future__ import annotations

import contextlib
import os
import sys
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


if __name__ == "__main__":
    serving.main({"estimate": estimate})
