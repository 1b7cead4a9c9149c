"""Asks the real torchtitan 0.2.2 which collectives a small Llama runs through, on a CPU. See ``serving``.

``collectives`` builds a Llama of ``layers`` blocks as rank 0 of ``replicate`` x ``data`` x ``tensor`` ranks, lays the
real tensor parallelism, checkpointing and FSDP over it, and runs ``micro_batches`` forward and backward passes.
``calls`` lists every collective that was dispatched: operation, ranks of its group, and bytes of the whole as
``translator.communication.Operation`` counts them.

What stands in: a process group that does nothing; attention's kernel is torch's for CPUs.
"""

# ruff: noqa: E402 (what is imported depends on what was put in place before)
from __future__ import annotations

import contextlib
from typing import Any

import serving
import titan
import torch
from serving import real

titan.leave_out_triton()

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torchtitan.components.loss import cross_entropy_loss
from torchtitan.config.job_config import ActivationCheckpoint
from torchtitan.distributed.activation_checkpoint import apply_ac
from torchtitan.distributed.utils import get_train_context
from torchtitan.models.llama3.infra import parallelize
from torchtitan.models.llama3.model.args import TransformerModelArgs
from torchtitan.models.llama3.model.model import Transformer

# Operation of torch -> (what it is called here, whether its message is its result, else its argument).
KINDS = {
    "_c10d_functional::all_gather_into_tensor": ("all-gather", True),
    "_c10d_functional::reduce_scatter_tensor": ("reduce-scatter", False),
    "_c10d_functional::all_reduce": ("all-reduce", False),
    "_c10d_functional::all_reduce_": ("all-reduce", False),
    "_c10d_functional::all_to_all_single": ("all-to-all", False),
    "c10d::_allgather_base_": ("all-gather", None),
    "c10d::_reduce_scatter_base_": ("reduce-scatter", None),
    "c10d::allreduce_": ("all-reduce", None),
}


class Recorder(TorchDispatchMode):
    """Notes every collective."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[dict[str, Any]] = []

    def __torch_dispatch__(self, function: Any, kinds: Any, arguments: Any = (), named: Any = None) -> Any:
        if DTensor in kinds:
            return NotImplemented  # it takes itself apart; what it does to its parts comes here again
        result = function(*arguments, **(named or {}))
        kind = KINDS.get(function.name().partition(".")[0])
        if kind is not None:
            self.calls.append({"operation": kind[0], "bytes": _message(kind, arguments, result), **_group(arguments)})
        return result


def _message(kind: tuple[str, bool | None], arguments: Any, result: Any) -> int:
    if kind[1] is None:
        tensors = [value for value in torch.utils._pytree.tree_leaves(arguments) if isinstance(value, torch.Tensor)]
        return max(tensor.numel() * tensor.element_size() for tensor in tensors)
    tensor = result if kind[1] else arguments[0]
    return int(tensor.numel() * tensor.element_size())


def _group(arguments: Any) -> dict[str, Any]:
    """Ranks of the group: functional collectives name it, the others hand it over."""
    for value in reversed(torch.utils._pytree.tree_leaves(arguments)):
        if isinstance(value, str):
            group = torch.distributed.distributed_c10d._resolve_process_group(value)
            if isinstance(group, torch.distributed.ProcessGroup):
                return {"ranks": group.size()}
        if isinstance(value, torch.ScriptObject):
            with contextlib.suppress(RuntimeError):  # another kind of object
                return {"ranks": torch.distributed.ProcessGroup.unbox(value).size()}
    return {"ranks": 0}


def collectives(
    layers: int,
    tensor: int,
    data: int,
    tokens: int,
    replicate: int = 1,
    micro_batches: int = 1,
    mode: str = "none",
    option: str = "op",
    loss_parallel: bool = True,
    reshard: str = "default",
    **sizes: int,
) -> dict[str, Any]:
    titan.fake_processes(replicate * data * tensor)
    mesh = init_device_mesh("cpu", (replicate, data, tensor), mesh_dim_names=("dp_replicate", "fsdp", "tp"))
    model = Transformer(TransformerModelArgs(n_layers=layers, max_seq_len=tokens, **sizes))
    with torch.no_grad():
        model.init_weights()
    if tensor > 1:
        real("apply_tp", parallelize.apply_tp, model, mesh["tp"], loss_parallel, False)
    if mode != "none":
        checkpoint = ActivationCheckpoint(mode=mode, selective_ac_option=option)
        real("apply_ac", apply_ac, model, checkpoint, op_sac_save_list=parallelize._op_sac_save_list)
    if data > 1:
        types = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32}
        common = {**types, "pp_enabled": False, "reshard_after_forward_policy": reshard}
        shared = mesh["dp_replicate", "fsdp"] if replicate > 1 else mesh["fsdp"]
        real("apply_fsdp", parallelize.apply_fsdp, model, shared, **common)
    words = torch.zeros(1, tokens, dtype=torch.long)
    recorder = Recorder()
    with recorder:
        for _ in range(micro_batches):
            with get_train_context(loss_parallel and tensor > 1)():
                real("step", lambda: cross_entropy_loss(model(words), words).backward())
    return {"calls": recorder.calls, "ffn": model.layers["0"].feed_forward.w1.weight.shape[0]}


if __name__ == "__main__":
    serving.main({"collectives": collectives})
