"""Asks the real DeepSpeed whether it starts training with a JSON configuration, on a CPU. See ``serving``.

======= ===============================================================================================================
judge   ``batch`` and ``optimizer`` of the engine that ``deepspeed.initialize`` makes of the ``text`` at ``world_size``
        ranks for a tiny model, after one step of training unless ``trains`` is false. With ``fill`` its "auto" values
        are those of transformers' TrainingArguments. Refused at stage ``transformers``, ``initialize`` or ``step``
======= ===============================================================================================================

What stands in: the other ranks, which torch's fake process group acts; the compiled kernels of optimizers, which are
first built for minutes (their Python classes are the real ones, and check their arguments); the accelerator's word on
what it can compute with; and, where the JSON has no optimizer, torch's AdamW or DeepSpeed's own for offloading, as a
trainer brings it.
"""

from __future__ import annotations

import os

os.environ.update(
    {
        "CROSS_RANK": "0",
        "CROSS_SIZE": "1",
        "DEEPSPEED_LOG_LEVEL": "error",
        "DS_ACCELERATOR": "cpu",
        "LOCAL_RANK": "0",
        "LOCAL_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",
        "RANK": "0",
        "TORCHDYNAMO_DISABLE": "1",
    }
)

import contextlib
import json
import sys
import tempfile
import types
from typing import Any
from unittest import mock

import serving
from serving import real

with contextlib.redirect_stdout(sys.stderr):  # it reports what it finds, which is no answer
    import deepspeed
    import hjson
    import torch
    from deepspeed.accelerator import get_accelerator
    from deepspeed.ops import op_builder
    from deepspeed.ops.adam import DeepSpeedCPUAdam, cpu_adam
    from torch.testing._internal.distributed.fake_pg import FakeStore

# Values that the JSON states and TrainingArguments differ from: the right arguments would agree with the file.
IGNORED = property(lambda _self: [], lambda _self, _value: None)
HIDDEN = 16
TOKENS = 8
VOCABULARY = 32


class Block(torch.nn.Module):
    """A layer of a transformer in outline."""

    def __init__(self) -> None:
        super().__init__()
        self.input_layernorm = torch.nn.LayerNorm(HIDDEN)
        self.up_proj = torch.nn.Linear(HIDDEN, 2 * HIDDEN)
        self.down_proj = torch.nn.Linear(2 * HIDDEN, HIDDEN)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden + self.down_proj(torch.nn.functional.gelu(self.up_proj(self.input_layernorm(hidden))))


class Model(torch.nn.Module):
    """A language model of two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = torch.nn.ModuleList([Block(), Block()])
        self.lm_head = torch.nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor, **_others: Any) -> torch.Tensor:
        hidden = self.embed_tokens(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return torch.nn.functional.cross_entropy(self.lm_head(hidden).float().flatten(0, 1), tokens.flatten())


class Kernels:
    """Compiled functions: they do nothing, but refuse what is no number where the real ones do."""

    def __getattr__(self, name: str) -> Any:
        return self.run

    @staticmethod
    def run(*arguments: Any, **_named: Any) -> mock.MagicMock:
        """One call. Raises TypeError, as pybind does."""
        for given in arguments[1:]:
            tensors = isinstance(given, list) and all(isinstance(item, list | torch.Tensor) for item in given)
            if not tensors and not isinstance(given, bool | int | float | torch.Tensor | torch.dtype):
                raise TypeError(f"incompatible function arguments: {given!r}")
        return mock.MagicMock()


def stand_in() -> None:
    """Kernels that need a compiler or a card, and what the machine says it can."""
    kernels: dict[str, Any] = {
        name: kind for name, kind in vars(op_builder).items() if name.endswith("Builder") and name != "OpBuilder"
    }
    for kind in kernels.values():
        kind.load = lambda self, verbose=True: Kernels()
    machine = type(get_accelerator())
    machine.is_fp16_supported = machine.is_bf16_supported = lambda self: True
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    cpu_adam.get_cpu_info = dict  # it takes a second to say whose processor this is


def optimizer_of(config: dict[str, Any], parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """What a trainer brings where the JSON has no optimizer."""
    section = config.get("zero_optimization")
    offload = section.get("offload_optimizer") if isinstance(section, dict) else None
    device = offload.get("device") if isinstance(offload, dict) else None
    if device in {"cpu", "nvme"} or (isinstance(section, dict) and section.get("cpu_offload") is True):
        return DeepSpeedCPUAdam(parameters)
    return torch.optim.AdamW(parameters)


def sizes(text: str, world_size: int) -> dict[str, int]:
    """Batch sizes of TrainingArguments that agree with those of the file, as far as any do."""
    stated = hjson.loads(text)
    train, micro, steps = (
        size if isinstance(size := stated.get(key), int) and size > 0 else None
        for key in ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    )
    if train and micro and not steps:
        steps = train // (micro * world_size)
    if train and not micro:
        micro = train // (world_size * (steps or 1))
    return {"per_device_train_batch_size": micro or 8, "gradient_accumulation_steps": steps or 1}


def filled(text: str, arguments: dict[str, Any], world_size: int) -> dict[str, Any]:
    """The configuration after transformers filled its "auto" values in."""
    from transformers import TrainingArguments
    from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig

    given = TrainingArguments(output_dir=tempfile.gettempdir(), use_cpu=True, **sizes(text, world_size), **arguments)
    config = real("transformers", HfTrainerDeepSpeedConfig, json.loads(text))
    model = types.SimpleNamespace(config=types.SimpleNamespace(hidden_size=HIDDEN))
    with (
        mock.patch.object(TrainingArguments, "world_size", world_size),
        mock.patch.object(HfTrainerDeepSpeedConfig, "mismatches", IGNORED, create=True),
    ):
        real("transformers", config.trainer_config_process, given)
        real("transformers", config.trainer_config_finalize, given, model, 100)
    return config.config  # type: ignore[no-any-return]


def step(engine: Any) -> None:
    """One micro batch, taken for the last of its step, and all that follows at the end of one."""
    engine.set_gradient_accumulation_boundary(True)
    tokens = torch.randint(0, VOCABULARY, (1, TOKENS))
    engine.backward(engine(tokens))
    engine.step()


def judge(
    text: str, world_size: int, trains: bool = True, fill: bool = False, arguments: dict[str, Any] | None = None
) -> dict[str, Any]:
    rank = 0 if trains else world_size - 1
    os.environ.update({"WORLD_SIZE": str(world_size), "RANK": str(rank)})
    torch.distributed.init_process_group("fake", rank=rank, world_size=world_size, store=FakeStore())
    config: Any = filled(text, arguments or {}, world_size) if fill else hjson.loads(text)
    model = Model()
    section = config.get("optimizer") if isinstance(config, dict) else None
    has_optimizer = not isinstance(section, dict | None) or (
        isinstance(section, dict) and section.get("type") is not None
    )
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as written:
        written.write(json.dumps(config) if fill else text)
        written.flush()
        parameters = list(model.parameters())
        engine, *_ = real(
            "initialize",
            deepspeed.initialize,
            model=model,
            model_parameters=parameters,
            config=written.name,
            optimizer=None if has_optimizer or not isinstance(config, dict) else optimizer_of(config, parameters),
        )
    if trains:
        real("step", step, engine)
    return {"batch": real("batch", engine.train_batch_size), "optimizer": type(engine.optimizer).__name__}


if __name__ == "__main__":
    stand_in()
    serving.main({"judge": judge})
