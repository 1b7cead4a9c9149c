"""Asks the real torchtitan 0.2.2 or 0.3.0 whether it starts with a configuration, on a CPU. See ``serving``.

``judge`` parses with the real ConfigManager, runs the real ``Trainer.__init__`` as rank 0 of ``world_size``, and after
that asks of its parts what the first steps of the loop ask. It takes what the driver of the version takes (``text`` or
``file``, ``config``, ``module``, ``overrides``, ``path``). ``stage`` of a refusal is ConfigManager, Trainer, or a part
of the first step: ``loop``, ``balance``, ``dispatch``, ``loss``, ``forward``.

What stands in: a process group that does nothing; storage and initial weights of the model, which stays on the meta
device; tokenizer and dataset, which are files (the names of datasets are looked up by the real code); torchao, which is
not installed, below torchtitan's own checks; the GPU's memory monitor, its capability and the loggers; attention and
experts in the forward pass, which runs for dense models with SDPA only; sharding of parameters at 0.3.0.
"""

# ruff: noqa: E402 (what is imported depends on what was put in place before)
from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import sys
import tempfile
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import serving
import titan
import torch
from serving import real

titan.leave_out_triton()
os.environ.update({"LOCAL_RANK": "0", "RANK": "0"})
PYTHON = titan.VERSION == "0.3.0"
if PYTHON:
    import torchtitan_python as version_driver
    from torchtitan import trainer as train
else:
    import torchtitan_toml as version_driver
    from torchtitan import train

for imported_late in ("torch._dynamo", "torch._inductor", "torch.testing._internal.distributed.fake_pg"):
    importlib.import_module(imported_late)  # once, before the children fork

from torch.distributed.pipelining.schedules import PipelineScheduleMulti
from torchtitan.components import metrics
from torchtitan.distributed import context_parallel
from torchtitan.distributed import utils as distributed_utils
from torchtitan.hf_datasets import text_datasets

ABSENT = ("torchao", "torchft", "deep_ep", "wandb", "tensorboard")
QUANTIZATION = "torchtitan.components.quantization"


class _Anything:
    """Takes the place of parts that are files, devices or services."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


class _AnyKind(type(mock.MagicMock)):  # type: ignore[misc]
    """A class with whatever members are asked for, which make instances of it."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_, **__: cls()

    def __getitem__(cls, name: Any) -> Any:
        return cls()


class _StandIn(types.ModuleType):
    """A package that is not installed: every name in it is a class of mocks."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _AnyKind(name, (mock.MagicMock,), {})
        setattr(self, name, made)
        return made


class _StandIns(titan._StandIns):
    def create_module(self, spec: Any) -> types.ModuleType:
        return _StandIn(spec.name)


sys.meta_path.append(_StandIns(ABSENT))
TOKENIZER = _Anything(eos_id=0, bos_id=1, get_vocab_size=lambda: 2048)


def monitor(*_: Any) -> Any:
    """In place of the monitor of a GPU's memory."""
    stats = types.SimpleNamespace(max_reserved_gib=0.0, max_reserved_pct=0.0)
    return _Anything(device_name="NVIDIA H100", get_peak_stats=lambda: stats)


@contextlib.contextmanager
def stand_ins(world_size: int) -> Iterator[None]:
    """Everything that a CPU has not."""
    os.environ["WORLD_SIZE"] = str(world_size)
    titan.on_cpu()
    make_group = torch.distributed.new_group

    def communicate(*_: Any, **__: Any) -> int:
        titan.fake_processes(world_size)
        return world_size

    def fake_group(*positional: Any, **named: Any) -> Any:
        return make_group(*positional, **{**named, "backend": "fake"})

    swaps: list[tuple[Any, str, Any]] = [
        (distributed_utils, "init_distributed", communicate),
        (metrics, "build_device_memory_monitor", monitor),
        (torch.nn.Module, "to_empty", lambda self, **_: self),
        (torch.cpu, "set_device", lambda *_: None),
        (torch.distributed, "new_group", fake_group),
        (text_datasets, "split_dataset_by_node", lambda dataset, *_: dataset),
    ]
    for name in ("float8", "mx", "nvfp4"):
        with contextlib.suppress(ImportError):
            swaps.append((importlib.import_module(f"{QUANTIZATION}.{name}"), "has_cuda_capability", lambda *_: True))
    for name in ("torch.optim.optimizer", "torch.optim.adam", "torch.optim.adamw"):
        module = importlib.import_module(name)
        lookups = ("_get_fused_kernels_supported_devices", "_get_foreach_kernels_supported_devices")
        swaps.extend((module, lookup, lambda: ["cpu", "cuda", "meta"]) for lookup in lookups)
    for known in text_datasets.DATASETS.values():
        object.__setattr__(known, "loader", lambda _: [])
    with contextlib.ExitStack() as stack:
        for target, name, value in swaps:
            if hasattr(target, name):
                stack.enter_context(mock.patch.object(target, name, value))
        yield


def judge(world_size: int, **request: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        config = version_driver.load(**request)
        with stand_ins(world_size):
            trainer = python_trainer(config) if PYTHON else toml_trainer(config)
            real("loop", loop, trainer, config)
            real("balance", balance, trainer, config)
            real("dispatch", python_dispatch if PYTHON else dispatch, trainer)
            if PYTHON:
                real("loss", chunked_loss, trainer, config)
            else:
                first_forward(trainer, config)
    return {}


def toml_trainer(config: Any) -> Any:
    """A trainer of 0.2.2."""
    found = real("train_spec", train.train_spec_module.get_train_spec, config.model.name)
    reads_text = getattr(found.build_dataloader_fn, "__name__", "") == "build_text_dataloader"
    found.model_cls.init_weights = lambda self, **_: None
    spec = dataclasses.replace(
        found,
        build_tokenizer_fn=lambda _: TOKENIZER,
        build_dataloader_fn=found.build_dataloader_fn if reads_text else lambda **_: _Anything(),
    )
    with mock.patch.object(train.train_spec_module, "get_train_spec", return_value=spec):
        return real("Trainer", train.Trainer, config)


def without_shards(*_: Any, pp_enabled: bool = False, reshard_after_forward_policy: str = "default", **__: Any) -> None:
    """As much of sharded data parallelism as torch's CPU build of today does with types of 0.3.0."""
    fsdp = importlib.import_module("torchtitan.distributed.fsdp")
    fsdp.get_fsdp_reshard_after_forward_policy(reshard_after_forward_policy, pp_enabled)


def python_trainer(config: Any) -> Any:
    """A trainer of 0.3.0."""
    from torchtitan.components import tokenizer
    from torchtitan.protocols import BaseModel

    text = isinstance(config.dataloader, text_datasets.HuggingFaceTextDataLoader.Config)
    swaps: list[tuple[Any, str, Any]] = [
        (BaseModel, "init_weights", lambda self, **_: None),
        (tokenizer.HuggingFaceTokenizer.Config, "build", lambda *_, **__: TOKENIZER),
    ]
    loaded = [module for name, module in sys.modules.items() if name.startswith("torchtitan.")]
    shards = "apply_fsdp_to_decoder"
    swaps += [(module, shards, without_shards) for module in loaded if hasattr(module, shards)]
    if not text:
        swaps.append((type(config.dataloader), "build", lambda *_, **__: _Anything()))
    with contextlib.ExitStack() as stack:
        for target, name, value in swaps:
            stack.enter_context(mock.patch.object(target, name, value))
        return real("Trainer", train.Trainer, config)


def loop(trainer: Any, config: Any) -> None:
    """What the training loop asks in the first and the last steps, apart from the model itself."""
    last = config.training.steps
    for schedulers in trainer.lr_schedulers.schedulers:
        for function in schedulers.lr_lambdas:
            for step in sorted({*range(min(last, 50)), *(last * part // 97 for part in range(98))}):
                function(step)
    schedule = getattr(trainer, "pp_schedule", None)
    if isinstance(schedule, PipelineScheduleMulti):
        schedule.pipeline_order[schedule.rank]
    if config.checkpoint.enable:
        trainer.checkpointer._states_to_load(False)
    evaluated = config.validator if PYTHON else config.validation
    for step in (1, 2, last):
        trainer.gc_handler.run(step)
        trainer.metrics_processor.should_log(step)
        trainer.checkpointer._should_save(step, last_step=step == last)
        if evaluated.enable:
            trainer.validator.should_validate(step)
    if PYTHON and evaluated.enable:
        ranks = {"dp_world_size": 1, "dp_rank": 0, "tokenizer": TOKENIZER}
        trainer.validator.dl_config.build(**ranks, seq_len=config.training.seq_len, local_batch_size=1)
    with mock.patch.object(torch.profiler, "profile", mock.MagicMock()), profiled(config):
        pass


def profiled(config: Any) -> Any:
    """The context of the profiler."""
    if PYTHON:
        return config.profiler.build(global_step=0, base_folder=".")
    from torchtitan.tools import profiling

    return profiling.maybe_enable_profiling(config.profiling, base_folder=".")


def attention_kind(trainer: Any) -> str:
    """The kernel of attention (0.2.2)."""
    return str(getattr(trainer.model_args, "attn_type", "sdpa"))


def balance(trainer: Any, config: Any) -> None:
    """The sequence of a first micro batch, dealt out to the ranks of context parallelism."""
    if not trainer.parallel_dims.cp_enabled or PYTHON or attention_kind(trainer) != "sdpa":
        return
    tokens = torch.zeros((1, config.training.seq_len), dtype=torch.int64)
    mesh, balancer = trainer.parallel_dims.get_mesh("cp"), config.parallelism.context_parallel_load_balancer
    context_parallel.prepare_context_parallel_input(tokens, tokens, {}, mesh, torch.device("cpu"), balancer)


def experts_of(trainer: Any) -> int:
    """The number of experts, 0 for a dense model (0.2.2)."""
    if not getattr(trainer.model_args, "moe_enabled", True):
        return 0
    return int(getattr(getattr(trainer.model_args, "moe_args", None), "num_experts", 0))


def dispatch(trainer: Any) -> None:
    """The tokens of a first micro batch, on their way to the experts of other ranks (0.2.2)."""
    from torchtitan.distributed import expert_parallel

    dims, experts = trainer.parallel_dims, experts_of(trainer)
    if not dims.ep_enabled or not experts:
        return

    def reached(*_: Any, **__: Any) -> None:
        raise titan.CapturedError(None)

    counts, tokens = torch.zeros(experts, dtype=torch.int64), torch.zeros(0, 8)
    send = expert_parallel.ExpertParallel()._token_dispatch
    with mock.patch.object(expert_parallel, "_permute", reached):
        titan.captured(send, None, (tokens, counts), dims.get_mesh("ep"))


def python_dispatch(trainer: Any) -> None:
    """The same for 0.3.0: the count of tokens of each expert, as it is cut into the ranks' parts."""
    from torchtitan.models.common import token_dispatcher

    def reached(*_: Any, **__: Any) -> None:
        raise titan.CapturedError(None)

    dims = trainer.parallel_dims
    found = [module for part in trainer.model_parts for module in part.modules() if hasattr(module, "token_dispatcher")]
    kind = token_dispatcher.AllToAllTokenDispatcher
    exact = [module for module in found if type(module.token_dispatcher) is kind]
    if not dims.ep_enabled or not exact:
        return
    counts = torch.zeros(exact[0].inner_experts.num_experts, dtype=torch.int64)
    count = exact[0].token_dispatcher._token_count_exchange
    with (
        mock.patch.object(token_dispatcher, "all_to_all_single", reached),
        mock.patch.object(token_dispatcher.spmd, "all_to_all", reached),
    ):
        titan.captured(count, counts, None, dims.ep)


def chunked_loss(trainer: Any, config: Any) -> None:
    """The sequence as the loss cuts it (0.3.0)."""
    if type(trainer.loss_fn).__name__ != "ChunkedLossWrapper" or trainer.parallel_dims.pp_enabled:
        return

    def reached(*_: Any, **__: Any) -> None:
        raise titan.CapturedError(None)

    length = config.training.seq_len // trainer.parallel_dims.cp
    tokens, hidden = torch.zeros((1, length), dtype=torch.int64), torch.zeros((1, length, 1))
    with mock.patch.object(torch, "split", reached):
        titan.captured(trainer.loss_fn, hidden, tokens, torch.tensor(1.0))


def first_forward(trainer: Any, config: Any) -> None:
    """The forward pass under tensor parallelism, of dense models with SDPA (0.2.2)."""
    dims = trainer.parallel_dims
    if dims.tp_enabled and not dims.pp_enabled and not experts_of(trainer) and attention_kind(trainer) == "sdpa":
        real("forward", forward, trainer, config)


def attend(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> Any:
    """As much of attention as shapes need."""
    _ = key
    return query.new_empty(*query.shape[:-1], value.shape[-1])


def forward(trainer: Any, config: Any) -> None:
    """The first micro batch without storage, sharded data parallelism and kernels of a GPU."""
    family = importlib.import_module(f"torchtitan.models.{config.model.name}.infra.parallelize")
    spec = train.train_spec_module.get_train_spec(config.model.name)
    with torch.device("meta"):
        model = spec.model_cls(trainer.model_args)
    left_out = ("apply_fsdp", "apply_ac", "apply_cp_to_attention_module", "apply_compile")
    plain = {name: lambda *_, **__: None for name in left_out if hasattr(family, name)}
    with mock.patch.multiple(family, **plain):
        model = spec.parallelize_fn(model, trainer.parallel_dims, config)
    tokens = torch.zeros((1, config.training.seq_len), dtype=torch.int64, device="meta")
    with trainer.train_context(), mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", attend):
        model(tokens)


if __name__ == "__main__":
    if PYTHON:
        version_driver.load(config="llama3_debugmodel", module="llama3")
    else:
        version_driver.load(text="")  # fills the parser's caches, once, before the children fork
    serving.main({function.__name__: function for function in (judge,)})
