"""Asks what a transformer layer of the real Megatron-LM (core 0.18.0) keeps for its backward pass, on a CPU.

One command, ``saved``, with the parameters of ``megatron_verdict``: a layer of Megatron's own modules
(``--transformer-impl local``) is built on one rank and run forward. ``layer`` counts from 0. The answer has ``kept``:
every storage that autograd holds, once, as bytes, type and shape of a tensor in it. Parameters, tables of the rotary
embedding and the causal mask, which layers share, are not counted.

What stands in: fused kernels of Apex and of torch.compile are off (``TORCH_COMPILE_DISABLE``), and the generators of
random numbers are torch's own. Two kernels keep other tensors on a CPU than on a GPU, so that what the GPU's keep is
kept here: a dropout its mask as one byte per element (not in the compute type), an RMS norm its input and one fp32
number per row (not copies in fp32).
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Any

os.environ.setdefault("TORCH_COMPILE_DISABLE", "1")

import megatron_arguments as real_arguments
import megatron_verdict as verdict
import serving
import torch
from megatron.training import arguments
from serving import real

# Fusions that need no GPU stay as configured; these need Apex, or TransformerEngine.
OFF = {
    name: value
    for name, value in verdict.ON_CPU.items()
    if name not in ("bias_dropout_fusion", "transformer_impl", "perform_initialization")
}


def on_cpu() -> None:
    """Let the layer's tensors lie in the memory of the machine."""
    from megatron.core.models.common.embeddings import rotary_pos_embedding
    from megatron.core.tensor_parallel import random as generators
    from megatron.core.transformer.dot_product_attention import DotProductAttention
    from megatron.core.transformer.moe import token_dispatcher

    type(generators.get_cuda_rng_tracker()).fork = lambda *_, **__: contextlib.nullcontext()
    generators._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()
    verdict.accept_head_dimensions(DotProductAttention)
    torch.cuda.current_device = lambda: "cpu"
    torch.Tensor.cuda = lambda self, *_, **__: self
    torch.cuda.Stream = verdict.present
    rotary_pos_embedding.get_pos_emb_on_this_cp_rank = lambda embedding, *_, **__: embedding
    torch.nn.functional.dropout = dropout
    torch.nn.RMSNorm.forward = rms_norm
    for name in ("fused_dispatch", "set_deepep_num_sms", "hybrid_ep_dispatch"):
        setattr(token_dispatcher, name, verdict.present)


def dropout(tensor: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    """The dropout of a GPU, which keeps a mask of booleans."""
    assert not inplace
    return torch.native_dropout(tensor, p, training)[0] if p and training else tensor


class RmsNorm(torch.autograd.Function):
    """The RMS norm of a GPU (``aten::_fused_rms_norm``): it keeps its input and the reciprocal root of each row."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        root = torch.rsqrt(tensor.float().square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(tensor, weight, root)
        return (tensor.float() * root).to(tensor.dtype) * weight

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        raise NotImplementedError


def rms_norm(self: torch.nn.RMSNorm, tensor: torch.Tensor) -> torch.Tensor:
    return RmsNorm.apply(tensor, self.weight, self.eps)  # type: ignore[no-any-return]


def saved(layer: int = 0, **request: Any) -> dict[str, Any]:
    verdict.pretend_engine()
    args = real_arguments.resolved(assume_te=True, **request)
    real("parallel_state", verdict.groups, args)
    found = real("config", arguments.core_transformer_config_from_args, args)
    on_cpu()
    for name, value in OFF.items():
        setattr(found, name, value)
    return {"kept": real("layer", run, args, found, layer)}


class Held:
    """A tensor that autograd keeps; it is gone as soon as autograd lets go of it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def run(args: Any, found: Any, layer: int) -> list[dict[str, Any]]:
    """Forward of one layer; what autograd holds of it then."""
    from megatron.core.models.common.embeddings.rotary_pos_embedding import RotaryEmbedding
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec
    from megatron.core.transformer.transformer_block import TransformerBlock

    spec = get_gpt_decoder_block_spec(found, use_transformer_engine=False, normalization=args.normalization)
    spec.layer_specs = [spec.layer_specs[layer]]
    found.num_layers = 1
    block = TransformerBlock(found, spec, post_layer_norm=False, post_process=False).to(args.params_dtype)
    block.train()
    shape = (args.seq_length, args.micro_batch_size, args.hidden_size)
    hidden = torch.randn(shape, dtype=args.params_dtype, requires_grad=True)
    tables = None
    if args.position_embedding_type == "rope" and not args.multi_latent_attention:
        tables = RotaryEmbedding(found.kv_channels, args.rotary_percent, use_cpu_initialization=True)(args.seq_length)
    mask = torch.ones(1, 1, args.seq_length, args.seq_length, dtype=torch.bool).triu(1)
    not_counted = {address(tensor) for tensor in (*block.parameters(), *block.buffers(), mask)}
    if tables is not None:
        not_counted.add(address(tables))
    held: weakref.WeakSet[Held] = weakref.WeakSet()

    def hold(tensor: torch.Tensor) -> Held:
        found = Held(tensor)
        held.add(found)
        return found

    with torch.autograd.graph.saved_tensors_hooks(hold, lambda found: found.tensor):
        out = block(hidden, mask, rotary_pos_emb=tables)
    assert out.shape == hidden.shape
    kept = {address(found.tensor): found.tensor for found in held if found.tensor.untyped_storage().nbytes()}
    return [
        {"bytes": tensor.untyped_storage().nbytes(), "type": str(tensor.dtype), "shape": list(tensor.shape)}
        for key, tensor in kept.items()
        if key not in not_counted
    ]


def address(tensor: torch.Tensor) -> int:
    """Where the storage of a tensor begins."""
    return int(tensor.untyped_storage().data_ptr())


if __name__ == "__main__":
    verdict.warm()
    serving.main({"saved": saved})
