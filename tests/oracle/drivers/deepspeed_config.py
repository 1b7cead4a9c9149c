"""Asks the real DeepSpeed about a JSON configuration, on a CPU. See ``serving`` for how it is called.

======== ==============================================================================================================
resolve  ``config``: every attribute of DeepSpeedConfig at ``world_size`` ranks, for a ``file`` or a ``text``; ``dp`` is
         the data-parallel size that a model-parallel unit tells, ``sp`` the sequence-parallel size that one tells
lr       ``lr``: what each of the first ``steps`` optimizer steps uses, in the engine's order, for a ``scheduler``
         ({type, params}) over an optimizer with learning rate ``rate``
trainer  ``lr``: the same for transformers' schedule ``kind``, with ``warmup``, ``total`` and its ``options``
auto     ``config``: the ``text`` after transformers filled its "auto" values from ``arguments`` (TrainingArguments) at
         ``world_size`` ranks, a model with ``hidden_size``, and ``total_steps``
======== ==============================================================================================================

What stands in: the world size and rank of ``torch.distributed``; for ``auto`` the world size of TrainingArguments, and
a model that has only a ``hidden_size``.
"""

from __future__ import annotations

import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("DEEPSPEED_LOG_LEVEL", "error")

import contextlib
import enum
import json
import math
import sys
import tempfile
import types
from collections.abc import Mapping
from typing import Any
from unittest import mock

import serving
from serving import real

with contextlib.redirect_stdout(sys.stderr):  # it reports what it finds, which is no answer
    import hjson
    import torch
    from deepspeed import comm
    from deepspeed.runtime import config as runtime
    from deepspeed.runtime import lr_schedules
    from deepspeed.runtime.config_utils import DeepSpeedConfigModel
    from deepspeed.runtime.tensor_parallel.init_utils import load_ds_config

DEPTH = 8


def values(item: Any, depth: int = 0) -> Any:
    """A configuration object as JSON: models and plain objects by their attributes, enumerations by value."""
    if isinstance(item, enum.Enum):
        return item.value
    if isinstance(item, bool | str | None):
        return item
    if isinstance(item, int):
        return int(item)
    if isinstance(item, float):
        return item if math.isfinite(item) else str(item)
    if isinstance(item, Mapping):
        return {str(key): values(inner, depth + 1) for key, inner in item.items()}
    if isinstance(item, list | tuple | set):
        return [values(inner, depth + 1) for inner in item]
    if isinstance(item, DeepSpeedConfigModel):
        return {name: values(getattr(item, name, None), depth + 1) for name in type(item).model_fields}
    if hasattr(item, "__dict__") and depth < DEPTH and not isinstance(item, torch.dtype):
        return {name: values(inner, depth + 1) for name, inner in vars(item).items() if not name.startswith("_")}
    return None if type(item) is object else str(item)  # a bare object marks what nobody set


class DataParallel:
    """The model-parallel unit of a caller with tensor or pipeline parallelism."""

    def __init__(self, size: int) -> None:
        self.size = size

    def get_data_parallel_world_size(self) -> int:
        return self.size


class SequenceParallel:
    """The unit that Ulysses passes: it knows no data-parallel size."""

    def __init__(self, size: int) -> None:
        self.size = size

    def get_sequence_parallel_world_size(self) -> int:
        return self.size


def resolve(
    file: str | None = None, text: str | None = None, world_size: int = 1, dp: int | None = None, sp: int | None = None
) -> dict[str, Any]:
    unit = DataParallel(dp) if dp else SequenceParallel(sp) if sp else None
    with (
        mock.patch.object(comm, "get_world_size", return_value=world_size),
        mock.patch.object(comm, "get_rank", return_value=0),
        tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as written,
    ):
        written.write(text or "")
        written.flush()
        loaded = real("load", load_ds_config, file or written.name)  # as deepspeed.initialize does
        config = real("DeepSpeedConfig", runtime.DeepSpeedConfig, loaded, mpu=unit)
    return {"config": {name: values(item) for name, item in vars(config).items() if name != "_param_dict"}}


def lr(scheduler: dict[str, Any], steps: int, rate: float = 1e-3) -> dict[str, Any]:
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=rate)
    name = scheduler["type"]
    kind = getattr(lr_schedules, name, None) or getattr(torch.optim.lr_scheduler, name)
    running = real("scheduler", kind, optimizer, **scheduler.get("params", {}))
    found: list[float] = []
    for _ in range(steps):
        found.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        real("step", running.step)
    return {"lr": found}


def trainer(
    kind: str, steps: int, warmup: int, total: int, options: dict[str, Any], rate: float = 1e-3
) -> dict[str, Any]:
    from transformers import get_scheduler

    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=rate)
    running = real("scheduler", get_scheduler, kind, optimizer, warmup, total, scheduler_specific_kwargs=options)
    found: list[float] = []
    for _ in range(steps):
        found.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        running.step()
    return {"lr": found}


def auto(
    text: str, arguments: dict[str, Any], world_size: int, hidden_size: int | None, total_steps: int
) -> dict[str, Any]:
    from transformers import TrainingArguments
    from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig

    given = TrainingArguments(output_dir=tempfile.gettempdir(), use_cpu=True, **arguments)
    filled = real("read", HfTrainerDeepSpeedConfig, json.loads(json.dumps(hjson.loads(text))))
    sizes = {} if hidden_size is None else {"hidden_size": hidden_size}
    model = types.SimpleNamespace(config=types.SimpleNamespace(**sizes))
    with mock.patch.object(TrainingArguments, "world_size", world_size):
        real("process", filled.trainer_config_process, given)
        real("finalize", filled.trainer_config_finalize, given, model, total_steps)
    return {"config": filled.config}


if __name__ == "__main__":
    serving.main({"resolve": resolve, "lr": lr, "trainer": trainer, "auto": auto})
