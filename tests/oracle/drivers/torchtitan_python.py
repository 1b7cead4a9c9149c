"""Asks the real torchtitan 0.3.0 (Python configurations), on a CPU. See ``serving`` for how it is called.

Every command takes ``module`` and ``config`` (a module and the name of a function in it), or ``text`` (the content of
such a module) and ``config``; with ``overrides`` (words of the command line) and ``path`` (folders for the import
path).

=========== ===========================================================================================================
resolve     ``config``: what ConfigManager makes of it; ``model``: the model's own configuration
effective   ``values``: the same by dotted path; ``model``, and the ``converters`` that it was put through
dims        ``dims`` and ``meshes`` of the real ParallelDims at ``world_size``; ``batch``, by the trainer's rule
stages      ``stages`` (names of the modules of each stage, in order), ``layers`` (their numbers), ``n_microbatches``
lr          ``lr`` of every optimizer step, or of the first ``steps``, for the last parameter group
nparams     ``total``, ``shapes`` of the model on the meta device after the real checks of the model against the rest
parallelize ``local_total`` and shapes of what rank 0 holds after the real parallelize function (without pipeline)
flavors     ``flavors[model][flavor]``: the number of parameters of every named flavor; takes no configuration
=========== ===========================================================================================================

What stands in: a process group that does nothing, rank 0 of ``world_size``; the one module that needs triton; the
module split of the pipeline, from which the real stage names are taken. ``batch`` and the sequence divisor repeat the
trainer's arithmetic, which cannot run alone. ``parallelize`` works with ``--parallelism.spmd_backend
partial_dtensor`` only.
"""

# ruff: noqa: E402 (what is imported depends on what was put in place before)
from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import tempfile
import types
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import serving
import titan
import torch
from serving import plain, real

titan.leave_out_triton()

from torchtitan.components.optimizer import OptimizersContainer
from torchtitan.config import ConfigManager, Configurable
from torchtitan.distributed import ParallelDims, pipeline_parallel
from torchtitan.distributed import utils as distributed_utils
from torchtitan.protocols.model import ModelConfigConverter

MODELS = ("llama3", "qwen3", "deepseek_v3", "gpt_oss")
for model_name in MODELS:  # once, before the children fork
    importlib.import_module(f"torchtitan.models.{model_name}.config_registry")
TEXT_MODULE = "ttx_oracle_configuration"


def load(
    config: str,
    module: str | None = None,
    text: str | None = None,
    overrides: Sequence[str] = (),
    path: Sequence[str] = (),
) -> Any:
    """The configuration as the trainer has it."""
    with tempfile.TemporaryDirectory() as folder:
        if text is not None:
            with open(os.path.join(folder, f"{TEXT_MODULE}.py"), "w", encoding="utf-8") as file:
                file.write(text)
        titan.use_folders([folder, *path])
        words = ["--module", module or TEXT_MODULE, "--config", config, *overrides]
        return real("ConfigManager", ConfigManager().parse_args, words)


def resolve(**request: Any) -> dict[str, Any]:
    found = load(**request)
    return {"config": plain(found.to_dict()), "model": plain(dataclasses.asdict(found.model_spec.model))}


def effective(**request: Any) -> dict[str, Any]:
    """Every field by its dotted path; a component's configuration is its component's name, its fields below it.

    Converters, which need packages and GPUs of their own, are noted instead of applied.
    """
    titan.leave_out_packages(("torchvision", "fla", "transformers", "einops", "PIL"))
    converters: list[Any] = []
    build = Configurable.Config.build

    def noted(config: Any, **keywords: Any) -> Any:
        if not isinstance(config, ModelConfigConverter.Config):
            return build(config, **keywords)
        converters.append(as_data(config))
        return types.SimpleNamespace(convert=lambda model: model)

    with (
        mock.patch.object(Configurable.Config, "build", noted),
        mock.patch("torchtitan.tools.utils.has_cuda_capability", return_value=True),
    ):
        found = load(**request)
    values = dict(flat(found, ""))
    spec = found.model_spec
    model = {name: getattr(spec.model, name, None) for name in ("dim", "vocab_size")}
    return {
        "values": values,
        "model": {"name": spec.name, "flavor": spec.flavor, "layers": len(getattr(spec.model, "layers", ())), **model},
        "converters": converters,
    }


def flat(node: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """The fields of a configuration object, below a prefix."""
    for field in dataclasses.fields(node):
        value, path = getattr(node, field.name), f"{prefix}{field.name}"
        if path == "model_spec":
            continue
        if dataclasses.is_dataclass(value):
            if isinstance(value, Configurable.Config):
                yield path, component(value)
            yield from flat(value, f"{path}.")
        else:
            yield path, as_data(value)


def component(value: Any) -> str:
    """The short name of a configuration's component."""
    return str(type(value).__qualname__.removesuffix(".Config").rpartition(".")[2])


def as_data(value: Any) -> Any:
    """A value as JSON has it; a function is its name, an object in a list its class and fields."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: as_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"class": component(value), **fields}
    if isinstance(value, dict):
        return {str(key): as_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_data(item) for item in value]
    if callable(value):
        return {"function": value.__name__}
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def parallel_dims(config: Any, world_size: int) -> Any:
    """The real ParallelDims."""
    return real("ParallelDims", ParallelDims.from_config, config.parallelism, world_size)


def build_mesh(found: Any) -> None:
    """The meshes by name, kept in the dims themselves."""
    titan.fake_processes(found.world_size)
    titan.on_cpu()
    real("mesh", found.build_mesh)


def dims(world_size: int, **request: Any) -> dict[str, Any]:
    config = load(**request)
    found = parallel_dims(config, world_size)
    build_mesh(found)
    degrees = {
        field.name: plain(getattr(found, field.name))
        for field in dataclasses.fields(found)
        if not field.name.startswith("_")
    }
    training = config.training
    unit = training.local_batch_size * found.dp_replicate * found.dp_shard
    total = training.global_batch_size if training.global_batch_size > 0 else unit
    sequence = found.tp if config.parallelism.enable_sequence_parallel else 1
    return {
        "dims": degrees,
        "meshes": {name: mesh.size() for name, mesh in found._single_axis_meshes.items()},
        "batch": {
            "data_parallel": found.dp_replicate * found.dp_shard,
            "global_batch_size": total,
            "divisible": total % unit == 0,
            "gradient_accumulation_steps": total // unit,
        },
        "seq_len_divisor": sequence * (2 * found.cp if found.cp > 1 else 1),
    }


def stages(world_size: int, **request: Any) -> dict[str, Any]:
    config = load(**request)
    found = parallel_dims(config, world_size)

    def split(*positional: Any, **_: Any) -> None:
        raise titan.CapturedError(positional[4])

    spared = types.SimpleNamespace(pp=found.pp, get_mesh=lambda name: None)
    with mock.patch.multiple(
        pipeline_parallel, _pipeline_module_split=split, _build_get_mesh_callback=lambda dims: None
    ):
        names = real(
            "stages",
            titan.captured,
            pipeline_parallel.pipeline_llm,
            None,
            parallel_dims=spared,
            training=config.training,
            parallelism=config.parallelism,
            compile_config=config.compile,
            ac_config=config.activation_checkpoint,
            dump_folder=".",
            device=torch.device("cpu"),
            model_config=config.model_spec.model,
            parallelize_fn=None,
            loss_fn=None,
        )
    return {
        "stages": names,
        "layers": titan.layers_of(names),
        "n_microbatches": microbatches(config, len(names) // found.pp),
    }


def microbatches(config: Any, stages_per_rank: int) -> int:
    """How many micro batches the real code gives the schedule, after its own checks."""
    with titan.recording_schedule(pipeline_parallel):
        return int(
            real(
                "schedule",
                titan.captured,
                pipeline_parallel._build_pipeline_schedule,
                parallelism=config.parallelism,
                local_batch_size=config.training.local_batch_size,
                stages=[None] * stages_per_rank,
                loss_fn=None,
            )
        )


def lr(steps: int | None = None, **request: Any) -> dict[str, Any]:
    config = load(**request)
    # The groups choose parameters by name; a model of one layer has only the last group's, which takes what is left.
    groups = [dataclasses.replace(group, pattern=".*") for group in config.optimizer.param_groups[-1:]]
    asked = OptimizersContainer.Config(param_groups=groups, implementation="for-loop")
    optimizers = real("optimizer", asked.build, model_parts=[torch.nn.Linear(1, 1)])
    total = config.training.steps
    scheduler = real("lr_scheduler", config.lr_scheduler.build, optimizers=optimizers, training_steps=total)
    return {"lr": real("lr_scheduler", titan.stepped, scheduler, optimizers, total if steps is None else steps)}


def build_model(config: Any) -> Any:
    """The model without storage, after the checks of its configuration against the rest of the run's."""
    found = config.model_spec.model
    real("update_from_config", found.update_from_config, config=config)
    with torch.device("meta"):
        return real("model", found.build)


def nparams(**request: Any) -> dict[str, Any]:
    config = load(**request)
    model = build_model(config)
    counted, flops = real("nparams", config.model_spec.model.get_nparams_and_flops, model, config.training.seq_len)
    return {**titan.parameters(model), "counted": counted, "flops_per_token": flops}


def parallelize(world_size: int, **request: Any) -> dict[str, Any]:
    config = load(**request)
    found = parallel_dims(config, world_size)
    build_mesh(found)
    distributed_utils.set_spmd_backend(config.parallelism.spmd_backend)
    model = real(
        "parallelize",
        config.model_spec.parallelize_fn,
        build_model(config),
        parallel_dims=found,
        training=config.training,
        parallelism=config.parallelism,
        compile_config=config.compile,
        ac_config=config.activation_checkpoint,
        dump_folder=".",
    )
    return titan.local_parameters(model)


def flavors() -> dict[str, Any]:
    table: dict[str, dict[str, Any]] = {}
    for name in MODELS:
        module = importlib.import_module(f"torchtitan.models.{name}")
        named = next(
            value for key, value in vars(module).items() if key.endswith("_configs") and isinstance(value, dict)
        )
        table[name] = {}
        for flavor in named:
            with contextlib.redirect_stdout(None), torch.device("meta"):
                table[name][flavor] = titan.parameters(module.model_registry(flavor).model.build())["total"]
    return {"flavors": table}


if __name__ == "__main__":
    commands = (resolve, effective, dims, stages, lr, nparams, parallelize, flavors)
    serving.main({function.__name__: function for function in commands})
