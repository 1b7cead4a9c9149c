"""Asks the real torchtitan 0.2.2 which collectives a small Llama runs through, on a CPU. See ``serving``.

``collectives`` builds a Llama of ``layers`` blocks as rank 0 of ``replicate`` x ``data`` x ``tensor`` ranks, lays the
real tensor parallelism, checkpointing and FSDP over it, and runs ``micro_batches`` forward and backward passes.
``calls`` lists every collective that was dispatched: operation, ranks of its group, and bytes of the whole as
``translator.communication.Operation`` counts them.

What stands in: a process group that does nothing; attention's kernel is torch's for CPUs.
"""

# ruff: noqa: E402 (what is imported depends on what was put in place before)
from __future__ import annotations

from typing import Any

import serving
import titan
import torch
from recording import Recorder
from serving import real

titan.leave_out_triton()

from torch.distributed.device_mesh import init_device_mesh
from torchtitan.components.loss import cross_entropy_loss
from torchtitan.config.job_config import ActivationCheckpoint
from torchtitan.distributed.activation_checkpoint import apply_ac
from torchtitan.distributed.utils import get_train_context
from torchtitan.models.llama3.infra import parallelize
from torchtitan.models.llama3.model.args import TransformerModelArgs
from torchtitan.models.llama3.model.model import Transformer


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
