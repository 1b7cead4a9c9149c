"""Asks the real torchtitan 0.3.0 what a rank holds: shards of parameters, and what blocks save for their backward pass.

======= ===============================================================================================================
shards  ``total`` elements and ``bytes`` of all parameter shards of ``rank`` of ``world_size`` after the real pipeline
        split and parallelize function, and bytes of ``buffers``; ``by_name`` has shapes of the first shards
orders  ``orders`` of a pipeline schedule: the passes of each rank in order, as kind (F, B, I, W), stage, micro batch
saved   unique storages that the block ``layer`` keeps for its backward pass of ``tokens`` tokens in bf16: ``saved`` by
        autograd, and ``cached`` by selective checkpointing, each as address, bytes, type and shape of a tensor in it;
        parameters and the model's tables are not counted
======= ===============================================================================================================

The request is as for ``torchtitan_python``. What stands in for processes does nothing, as there.
For ``saved`` the kernel of attention is replaced by one that keeps the same tensors: queries, keys, values, its output
and the log of the softmax's sums.
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

SHOWN = 24
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
    total, size, buffers = 0, 0, 0
    by_name: dict[str, list[int]] = {}
    for part in parts:
        if part.enable_weight_tying:  # as initialization does after it (models/common/decoder.py:221)
            part.tok_embeddings.weight = part.lm_head.weight
        for name, parameter in part.named_parameters():
            local = parameter.to_local() if isinstance(parameter, DTensor) else parameter
            total += local.numel()
            size += local.numel() * local.element_size()
            if len(by_name) < SHOWN:
                by_name[name] = list(local.shape)
        buffers += sum(buffer.numel() * buffer.element_size() for buffer in part.buffers())
    return {"total": total, "bytes": size, "buffers": buffers, "by_name": by_name, "first": first, "last": last}


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


@torch.library.custom_op("ttx::attention", mutates_args=())
def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """In place of fused attention kernels, which need a GPU: the same inputs, outputs and saved tensors, no numbers."""
    batch, tokens, heads, _ = query.shape
    return query.new_ones(batch, tokens, heads, value.shape[-1]), query.new_ones(
        batch, heads, tokens, dtype=torch.float32
    )


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs, *output)


torch.library.register_autograd(
    "ttx::attention",
    lambda ctx, *_: tuple(torch.ones_like(tensor) for tensor in ctx.saved_tensors[:3]),
    setup_context=_keep,
)


class Kernel(torch.nn.Module):
    """Attention proper of a block, by the stand-in."""

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, out_transform: Any = None, **_: Any
    ) -> torch.Tensor:
        out, sums = attention(query, key, value)
        return out if out_transform is None else out_transform(out, sums.transpose(1, 2))


def saved(layer: int, tokens: int, checkpointed: bool = True, **request: Any) -> dict[str, Any]:
    config = base.load(**request)
    asked = config.model_spec.model.layers[layer]
    with torch.device("meta"):
        block = real("block", asked.build)
    # Zeros cost no memory until they are written, and what is saved does not depend on them; the tables do matter.
    for module in block.modules():
        for name, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
            if isinstance(tensor, torch.nn.Parameter):
                value = torch.nn.Parameter(torch.zeros(tensor.shape, dtype=torch.bfloat16))
            else:
                value = torch.zeros(tensor.shape, dtype=tensor.dtype)
            setattr(module, name, value)
    block.attention.rope = asked.attention.rope.build()
    block.attention.inner_attention = Kernel()
    known = {tensor.untyped_storage().data_ptr() for tensor in [*block.parameters(), *block.buffers()]}
    caches: list[dict[Any, Any]] = []
    if checkpointed:
        remember_caches(caches)
        policy = config.activation_checkpoint.build(dump_folder=".")
        if hasattr(policy, "get_save_ops"):
            operators = {*policy.get_save_ops(), torch.ops.ttx.attention.default}
            policy.get_save_ops = lambda: operators
        block = real("checkpointing", policy._wrap_block, block, base_fqn=f"layers.{layer}")
    packed: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor)
        return tensor

    stream = torch.randn(1, tokens, config.model_spec.model.dim, dtype=torch.bfloat16, requires_grad=True) * 1
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = real("forward", block, stream, None)
    cached = [tensor for cache in caches for tensor in tensors_in(list(cache.values()))]
    del out
    kept = unique(packed, known)
    return {"saved": kept, "cached": unique(cached, known | {address for address, *_ in kept})}


def remember_caches(caches: list[dict[Any, Any]]) -> None:
    """Note what selective checkpointing stores operators' outputs in."""
    from torch.utils import checkpoint

    class Noting(checkpoint._CachingTorchDispatchMode):  # type: ignore[misc]
        def __init__(self, policy: Any, storage: Any, *rest: Any, **named: Any) -> None:
            super().__init__(policy, storage, *rest, **named)
            caches.append(storage)

    checkpoint._CachingTorchDispatchMode = Noting


def tensors_in(value: Any) -> list[torch.Tensor]:
    """All tensors in nested containers and in selective checkpointing's wrappers."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_in(item)]
    return tensors_in(getattr(value, "val", None)) if hasattr(value, "val") else []


def unique(tensors: list[torch.Tensor], known: set[int]) -> list[list[Any]]:
    """Address, bytes, type and shape of every storage that is not known, once."""
    found: dict[int, list[Any]] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        if address not in known and storage.nbytes():
            found.setdefault(address, [address, storage.nbytes(), str(tensor.dtype), list(tensor.shape)])
    return list(found.values())


if __name__ == "__main__":
    serving.main({function.__name__: function for function in (shards, orders, saved)})
