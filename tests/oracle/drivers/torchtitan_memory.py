"""Asks the real torchtitan 0.3.0 what a rank holds: shards of parameters, and what blocks save for their backward pass.

======= ===============================================================================================================
shards  ``total`` elements and ``bytes`` of all parameter shards of ``rank`` of ``world_size`` after the real pipeline
        split and parallelize function; ``by_name`` has their shapes
orders  ``orders`` of a pipeline schedule: the passes of each rank in order, as kind (F, B, I, W), stage, micro batch
saved   ``saved`` bytes of the unique storages that a block of ``layer`` keeps for its backward pass, and those that
        selective checkpointing's ``cached`` holds; parameters and the model's tables are not counted
======= ===============================================================================================================

The request is as for ``torchtitan_python``. What stands in for processes does nothing, as there.
"""

from __future__ import annotations

import types
from typing import Any

import serving
import titan
import torch
import torchtitan_python as base
from serving import real
from torch.distributed.tensor import DTensor
from torchtitan.distributed import pipeline_parallel
from torchtitan.distributed import utils as distributed_utils

KINDS = {"FORWARD": "F", "FULL_BACKWARD": "B", "BACKWARD_INPUT": "I", "BACKWARD_WEIGHT": "W"}


def be_rank(rank: int, world_size: int) -> None:
    """Be one rank of a world in which every collective does nothing."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=rank, world_size=world_size, store=FakeStore())


def shards(world_size: int, rank: int = 0, **request: Any) -> dict[str, Any]:
    config = base.load(**request)
    found = base.parallel_dims(config, world_size)
    be_rank(rank, world_size)
    titan.on_cpu()
    real("mesh", found.build_mesh)
    distributed_utils.set_spmd_backend(config.parallelism.spmd_backend)
    model = base.build_model(config)
    common = {
        "parallel_dims": found,
        "training": config.training,
        "parallelism": config.parallelism,
        "compile_config": config.compile,
        "ac_config": config.activation_checkpoint,
        "dump_folder": ".",
    }
    parallelize_fn = config.model_spec.parallelize_fn
    if found.pp > 1:
        _, parts, first, last = real(
            "pipeline",
            pipeline_parallel.pipeline_llm,
            model,
            device=torch.device("cpu"),
            model_config=config.model_spec.model,
            parallelize_fn=parallelize_fn,
            loss_fn=lambda *_, **__: None,
            **common,
        )
    else:
        parts, first, last = [real("parallelize", parallelize_fn, model, **common)], True, True
    total, size = 0, 0
    by_name: dict[str, list[int]] = {}
    for part in parts:
        if part.enable_weight_tying:  # as initialization does after it (models/common/decoder.py:221)
            part.tok_embeddings.weight = part.lm_head.weight
        for name, parameter in part.named_parameters():
            local = parameter.to_local() if isinstance(parameter, DTensor) else parameter
            total += local.numel()
            size += local.numel() * local.element_size()
            by_name[name] = list(local.shape)
    return {"total": total, "bytes": size, "by_name": by_name, "first": first, "last": last}


def orders(schedule: str, ranks: int, stages_per_rank: int, n_microbatches: int) -> dict[str, Any]:
    from torch.distributed.pipelining import schedules

    number = ranks * stages_per_rank
    stages = [
        types.SimpleNamespace(
            num_stages=number,
            group_size=ranks,
            group_rank=0,
            stage_index=index * ranks,
            is_first=index == 0,
            is_last=False,
            has_backward=True,
            submod=torch.nn.Identity(),
        )
        for index in range(stages_per_rank)
    ]
    single = issubclass(schedules.get_schedule_class(schedule), schedules.PipelineScheduleSingle)
    found = real(
        "schedule",
        schedules.get_schedule_class(schedule),
        stages[0] if single else stages,
        n_microbatches=n_microbatches,
        loss_fn=lambda *_: None,
    )
    made = found._get_pipeline_order() if single else found.pipeline_order
    return {"orders": [[word for action in made[rank] for word in passes(action)] for rank in range(ranks)]}


def passes(action: Any) -> list[list[Any]]:
    """An action's passes; an overlapped pair is two."""
    if action is None:
        return []
    if action.sub_actions:
        return [word for part in action.sub_actions for word in passes(part)]
    kind = KINDS.get(action.computation_type.name)
    return [[kind, action.stage_index, action.microbatch_index]] if kind else []


if __name__ == "__main__":
    serving.main({function.__name__: function for function in (shards, orders)})
