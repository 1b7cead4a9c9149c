"""Asks the real torchtitan 0.1.0 or 0.2.2 (TOML files), on a CPU. See ``serving`` for how it is called.

Every command takes ``file`` (a TOML file), or ``text`` (its content), with ``overrides`` (words of the command line)
and ``path`` (folders for the import path, where ``experimental.custom_import`` finds its module).

=========== ===========================================================================================================
resolve     ``config``: what ConfigManager makes of it
dims        ``dims`` and ``meshes`` of the real ParallelDims at ``world_size``; ``batch``, by the trainer's rule
stages      ``stages`` (names of the modules of each stage, in order), ``layers`` (their numbers), ``n_microbatches``
lr          ``lr`` of every optimizer step, or of the first ``steps``
nparams     ``total``, ``shapes`` of the model on the meta device, ``args`` of the flavor; 0.1.0 takes ``vocab_size``
parallelize ``local_total`` and shapes of what rank 0 holds after the real parallelize function (without pipeline)
flavors     ``flavors[model][flavor]``: the arguments of every named flavor; takes no file
=========== ===========================================================================================================

What stands in: a process group that does nothing, rank 0 of ``world_size``; the one module that needs triton; the
module split of the pipeline, from which the real stage names are taken. ``batch`` repeats the trainer's arithmetic,
which cannot run alone.
"""

# ruff: noqa: E402 (what is imported depends on what was put in place before)
from __future__ import annotations

import dataclasses
import importlib
import tempfile
import types
from collections.abc import Sequence
from typing import Any
from unittest import mock

import serving
import titan
import torch
from serving import plain, real

titan.leave_out_triton()
OLD = titan.VERSION == "0.1.0"

if OLD:
    from torchtitan.config_manager import ConfigManager
    from torchtitan.distributed import pipeline as pipeline_module
    from torchtitan.models.llama3.infra.pipeline import pipeline_llama_manual_split
else:
    from torchtitan.config import ConfigManager
    from torchtitan.distributed import pipeline_parallel as pipeline_module

from torchtitan.components.lr_scheduler import build_lr_schedulers
from torchtitan.components.optimizer import build_optimizers
from torchtitan.distributed import ParallelDims
from torchtitan.protocols.train_spec import get_train_spec

MODELS = ("llama3", "llama4") if OLD else ("llama3", "llama4", "deepseek_v3", "qwen3", "gpt_oss")
LLAMA3_VOCABULARY = 128256


def load(
    file: str | None = None, text: str | None = None, overrides: Sequence[str] = (), path: Sequence[str] = ()
) -> Any:
    """The configuration, as the trainer has it after it imported what the file asks for."""
    titan.use_folders(path)
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as written:
        written.write(text or "")
        written.flush()
        words = ["--job.config_file", written.name if file is None else file, *overrides]
        config = real("ConfigManager", ConfigManager().parse_args, words)
    if config.experimental.custom_import:
        real("custom_import", importlib.import_module, config.experimental.custom_import)
    return config


def resolve(**request: Any) -> dict[str, Any]:
    return {"config": plain(load(**request).to_dict())}


def parallel_dims(config: Any, world_size: int) -> Any:
    """The real ParallelDims, called as the trainer does."""
    asked = config.parallelism
    degrees = {
        "dp_shard": asked.data_parallel_shard_degree,
        "dp_replicate": asked.data_parallel_replicate_degree,
        "cp": asked.context_parallel_degree,
        "tp": asked.tensor_parallel_degree,
        "pp": asked.pipeline_parallel_degree,
        "world_size": world_size,
    }
    if OLD:
        degrees["enable_loss_parallel"] = not asked.disable_loss_parallel
    else:
        degrees |= {"ep": asked.expert_parallel_degree, "etp": asked.expert_tensor_parallel_degree}
    return real("ParallelDims", ParallelDims, **degrees)


def build_mesh(found: Any) -> Any:
    """The device mesh (0.1.0), or the meshes by name kept in the dims themselves."""
    titan.fake_processes(found.world_size)
    if OLD:
        return real("mesh", found.build_mesh, device_type="cpu")
    titan.on_cpu()
    return real("mesh", found.build_mesh)


def dims(world_size: int, **request: Any) -> dict[str, Any]:
    config = load(**request)
    found = parallel_dims(config, world_size)
    mesh = build_mesh(found)
    meshes = {name: mesh[name].size() for name in mesh.mesh_dim_names or ()} if OLD else sizes(found._meshes)
    degrees = {
        field.name: getattr(found, field.name) for field in dataclasses.fields(found) if not field.name.startswith("_")
    }
    training = config.training
    unit = training.local_batch_size * found.dp_replicate * found.dp_shard
    total = training.global_batch_size if training.global_batch_size > 0 else unit
    return {
        "dims": degrees,
        "meshes": meshes,
        "batch": {
            "data_parallel": found.dp_replicate * found.dp_shard,
            "global_batch_size": total,
            "divisible": total % unit == 0,
            "gradient_accumulation_steps": total // unit,
        },
        "seq_len_divisor": None if OLD else found.seq_len_divisor,
    }


def sizes(meshes: dict[str, Any]) -> dict[str, int]:
    """How many ranks each mesh spans."""
    return {name: mesh.size() for name, mesh in meshes.items()}


def stages(world_size: int, **request: Any) -> dict[str, Any]:
    config = load(**request)
    found = parallel_dims(config, world_size)
    arguments = model_arguments(config)
    names = real("stages", old_stages if OLD else new_stages, config, found, arguments)
    return {
        "stages": names,
        "layers": titan.layers_of(names),
        "n_microbatches": microbatches(config, len(names) // found.pp),
    }


def model_arguments(config: Any) -> Any:
    """The arguments of the flavor that the configuration names."""
    spec = real("train_spec", get_train_spec, config.model.name)
    flavors = spec.config if OLD else spec.model_args
    return real("flavor", lambda: flavors[config.model.flavor])


def new_stages(config: Any, found: Any, arguments: Any) -> Any:
    """The module names that pipeline_llm hands to the split."""

    def split(*positional: Any, **_: Any) -> None:
        raise titan.CapturedError(positional[4])

    with mock.patch.object(pipeline_module, "pipeline_module_split", split):
        spared = types.SimpleNamespace(pp=found.pp, get_mesh=lambda name: None)
        return titan.captured(
            pipeline_module.pipeline_llm,
            model=None,
            parallel_dims=spared,
            job_config=config,
            device=torch.device("cpu"),
            model_args=arguments,
            parallelize_fn=None,
            loss_fn=None,
        )


def old_stages(config: Any, found: Any, arguments: Any) -> list[list[str]]:
    """The modules that each stage keeps: the real split of a model that has only names, for every rank in turn."""
    import torchtitan.models.llama3.infra.pipeline as split_module

    class Model:
        """As much of a model as the split looks at."""

        def __init__(self) -> None:
            self.layers = {str(number): None for number in range(arguments.n_layers)}
            self.tok_embeddings = self.norm = self.output = True

    def kept(model: Any) -> list[str]:
        names = [f"layers.{number}" for number in model.layers]
        return [
            *(["tok_embeddings"] if model.tok_embeddings else []),
            *names,
            *(["norm", "output"] if model.norm else []),
        ]

    by_stage: dict[int, list[str]] = {}

    def stage(model: Any, index: int, *_: Any, **__: Any) -> None:
        by_stage[index] = kept(model)

    with mock.patch.object(split_module, "PipelineStage", stage):
        for rank in range(found.pp):
            mesh = types.SimpleNamespace(
                get_local_rank=lambda rank=rank: rank, size=lambda: found.pp, get_group=lambda name: None
            )
            pipeline_llama_manual_split(Model(), mesh, found, config, torch.device("cpu"), arguments)
    return [by_stage[index] for index in sorted(by_stage)]


def microbatches(config: Any, stages_per_rank: int) -> int:
    """How many micro batches the real code gives the schedule, after its own checks."""
    build = pipeline_module.build_pipeline_schedule
    with titan.recording_schedule(pipeline_module):
        return int(real("schedule", titan.captured, build, config, [None] * stages_per_rank, None))


def lr(steps: int | None = None, **request: Any) -> dict[str, Any]:
    config = load(**request)
    optimizer = dataclasses.replace(config.optimizer, implementation="for-loop")
    model = torch.nn.Linear(1, 1)
    total = config.training.steps
    if OLD:
        config.optimizer = optimizer
        none = types.SimpleNamespace(enabled=False)
        optimizers = real("optimizer", build_optimizers, [model], config, none)
        scheduler = real("lr_scheduler", build_lr_schedulers, optimizers, config)
    else:
        optimizers = real("optimizer", build_optimizers, [model], optimizer, ParallelDims(1, 1, 1, 1, 1, 1, 1, 1))
        scheduler = real("lr_scheduler", build_lr_schedulers, optimizers, config.lr_scheduler, total)
    return {"lr": real("lr_scheduler", titan.stepped, scheduler, optimizers, total if steps is None else steps)}


def build_model(config: Any, vocab_size: int) -> tuple[Any, Any, Any]:
    """The training specification, the arguments after the trainer's fix-ups, and the model without storage."""
    spec = real("train_spec", get_train_spec, config.model.name)
    arguments = model_arguments(config)
    if OLD:
        tokenizer = types.SimpleNamespace(n_words=vocab_size, eos_id=0)
        real("update_from_config", arguments.update_from_config, config, tokenizer)
    else:
        real("update_from_config", arguments.update_from_config, config)
    with torch.device("meta"):
        model = real("model", spec.cls if OLD else spec.model_cls, arguments)
    return spec, arguments, model


def nparams(vocab_size: int = LLAMA3_VOCABULARY, **request: Any) -> dict[str, Any]:
    config = load(**request)
    _, arguments, model = build_model(config, vocab_size)
    counted, flops = real("nparams", arguments.get_nparams_and_flops, model, config.training.seq_len)
    return {
        **titan.parameters(model),
        "counted": counted,
        "flops_per_token": flops,
        "args": plain(dataclasses.asdict(arguments)),
    }


def parallelize(world_size: int, vocab_size: int = LLAMA3_VOCABULARY, **request: Any) -> dict[str, Any]:
    config = load(**request)
    found = parallel_dims(config, world_size)
    mesh = build_mesh(found)
    spec, _, model = build_model(config, vocab_size)
    arguments = (model, mesh, found, config) if OLD else (model, found, config)
    return titan.local_parameters(real("parallelize", spec.parallelize_fn, *arguments))


def flavors() -> dict[str, Any]:
    table: dict[str, dict[str, Any]] = {}
    for name in MODELS:
        spec = real("train_spec", get_train_spec, name)
        named = spec.config if OLD else spec.model_args
        table[name] = {flavor: plain(dataclasses.asdict(arguments)) for flavor, arguments in named.items()}
    return {"flavors": table}


if __name__ == "__main__":
    serving.main(
        {function.__name__: function for function in (resolve, dims, stages, lr, nparams, parallelize, flavors)}
    )
