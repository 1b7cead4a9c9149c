"""What the drivers of torchtitan's versions share: no GPU, no processes to talk to, no triton."""

# ruff: noqa: E402 (what is imported depends on what was put in place before)
from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import logging
import os
import re
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn
from unittest import mock

logging.basicConfig(stream=sys.stderr)
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import torch

VERSION = importlib.metadata.version("torchtitan")
# One module of each version imports triton, which CPU builds of torch come without, and importing torchtitan reaches
# it. ``triton`` itself is no good to pretend: torch looks for it to decide what it can compile.
NEEDS_TRITON = {
    "0.2.2": "torchtitan.models.moe.kernels",
    "0.3.0": "torchtitan.distributed.minimal_async_ep.kernels",
}


class CapturedError(Exception):
    """Carries what the real code had worked out out of it, just before it would need real processes."""

    def __init__(self, value: Any) -> None:
        super().__init__("captured")
        self.value = value


def captured(function: Any, *arguments: Any, **named: Any) -> Any:
    """What a patched part of the function got hold of."""
    try:
        function(*arguments, **named)
    except CapturedError as found:
        return found.value
    raise RuntimeError("the real code went past the part that was to be captured")


@contextlib.contextmanager
def recording_schedule(module: Any) -> Iterator[None]:
    """Let a torchtitan module build no schedule, but capture the number of micro batches that it would have had."""
    lookup = module.get_schedule_class

    def recorder(name: str) -> type:
        class Recorder(lookup(name)):  # type: ignore[misc]
            def __init__(self, *_: Any, n_microbatches: int, **__: Any) -> None:
                raise CapturedError(n_microbatches)

        return Recorder

    with mock.patch.object(module, "get_schedule_class", recorder):
        yield


def leave_out_triton() -> None:
    """Stand in for the module that needs triton; nothing of it is called before a model runs."""
    name = NEEDS_TRITON.get(VERSION)
    if name is None or importlib.util.find_spec("triton") is not None:
        return
    module = types.ModuleType(name)

    def missing(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)

        def absent(*_: object, **__: object) -> NoReturn:
            raise RuntimeError(f"{name}.{attribute} needs triton")

        return absent

    module.__getattr__ = missing  # type: ignore[method-assign]
    sys.modules[name] = module


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules in place of packages that are not installed: every name in them is an empty class."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(name for name in names if importlib.util.find_spec(name) is None)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname.partition(".")[0] not in self.names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        module = types.ModuleType(spec.name)

        def empty(attribute: str) -> Any:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            return type(attribute, (), {})

        module.__getattr__ = empty  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing in it."""


def leave_out_packages(names: Sequence[str]) -> None:
    """Stand in for packages that configurations import and do not use, where they are not installed."""
    sys.meta_path.append(_StandIns(names))


def fake_processes(world_size: int) -> None:
    """Be rank 0 of a world in which every collective does nothing."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())


def use_folders(folders: Sequence[str]) -> None:
    """Put folders on the import path, as PYTHONPATH does for a person's own modules."""
    sys.path[:0] = folders


def layers_of(stages: Sequence[Sequence[str]]) -> list[list[int]]:
    """The numbers of the transformer layers in each stage, from the names of its modules."""
    found = []
    for names in stages:
        numbers = [re.fullmatch(r"layers\.(\d+)", name) for name in names]
        found.append([int(match[1]) for match in numbers if match])
    return found


def stepped(scheduler: Any, optimizers: Any, steps: int) -> list[float]:
    """The learning rate that each optimizer step is run with: entry 0 is that of the first."""
    rates = []
    for _ in range(steps):
        rates.append(scheduler.schedulers[0].get_last_lr()[0])
        for optimizer in optimizers:
            optimizer.step()
        scheduler.step()
    return rates


def parameters(model: Any) -> dict[str, Any]:
    """How many parameters a model on the meta device has, and the shape of each kind."""
    shapes: dict[str, list[int]] = {}
    for name, parameter in model.named_parameters():
        shapes.setdefault(re.sub(r"\.\d+\.", ".N.", name), list(parameter.shape))
    every = list(model.parameters())
    return {"total": sum(parameter.numel() for parameter in every), "tensors": len(every), "shapes": shapes}


def local_parameters(model: Any) -> dict[str, Any]:
    """What rank 0 holds of a model to which the parallelism was applied."""
    from torch.distributed.tensor import DTensor

    total = 0
    by_name = {}
    for name, parameter in model.named_parameters():
        sharded = isinstance(parameter, DTensor)
        local = parameter.to_local() if sharded else parameter
        total += local.numel()
        by_name[name] = {
            "local": list(local.shape),
            "whole": list(parameter.shape),
            "dtype": str(parameter.dtype),
            "placements": [str(placement) for placement in parameter.placements] if sharded else None,
        }
    return {"local_total": total, "by_name": by_name}


def on_cpu() -> None:
    """Let torchtitan shard on the CPU: without a GPU it still names CUDA, and sharding asks for the current one."""
    from torchtitan.tools import utils

    utils.device_type, utils.device_module = "cpu", torch.cpu
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("torchtitan.") and getattr(module, "device_type", "cpu") != "cpu":
            module.device_type = "cpu"  # type: ignore[attr-defined]
