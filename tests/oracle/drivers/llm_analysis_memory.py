"""Asks the real llm-analysis 0.2.2 for the memory of one training configuration. See ``serving`` for how it is called.

One command, ``memory``: ``model`` (fields of its ModelConfig), ``parallel`` (of its ParallelismConfig), ``training``
(parameters of its ``training``; ``recompute`` and ``zero`` by the names of its enumerations). The answer has ``bytes``
for one GPU: weights, gradients, optimizer state and activations.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import sys
from typing import Any

import serving
from serving import real

with contextlib.redirect_stdout(sys.stderr):
    from llm_analysis import analysis, config

# A card that nothing is too large for: it refuses what it believes not to fit.
CARD_GB = 10_000.0

analysis.logger.setLevel(logging.ERROR)


def memory(
    *, model: dict[str, Any], parallel: dict[str, int], training: dict[str, Any], recompute: str, zero: str
) -> dict[str, Any]:
    described = real("model", lambda: config.ModelConfig(name="model", **model))
    spread = real("parallel", lambda: config.ParallelismConfig(**parallel))
    card = dataclasses.replace(config.gpu_configs["h100-sxm-80gb"], mem_per_GPU_in_GB=CARD_GB)
    asked = real("analysis", analysis.LLMAnalysis, described, card, parallelism_config=spread)
    summary = real(
        "training",
        asked.training,
        activation_recomputation=analysis.ActivationRecomputation[recompute],
        ds_zero=analysis.DSZeRO[zero],
        **training,
    )
    return {"bytes": summary["(weight+op_state+grad+act)_memory_per_gpu"]}


if __name__ == "__main__":
    serving.main({"memory": memory})
