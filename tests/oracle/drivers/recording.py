"""Notes the collectives that code runs through, by torch's dispatcher; shared by the drivers that count them."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
import torch.distributed
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

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
# Those that take several at a time -> operation, and which argument holds the wholes.
COALESCED = {
    "c10d::allgather_into_tensor_coalesced_": ("all-gather", 0),
    "c10d::reduce_scatter_tensor_coalesced_": ("reduce-scatter", 1),
    "c10d::allreduce_coalesced_": ("all-reduce", 0),
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
        several = COALESCED.get(function.name().partition(".")[0])
        if several is not None:
            for tensor in arguments[several[1]]:
                size = tensor.numel() * tensor.element_size()
                self.calls.append({"operation": several[0], "bytes": size, **_group(arguments)})
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
