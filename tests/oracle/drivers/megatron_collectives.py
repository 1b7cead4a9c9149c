"""Asks the real Megatron-LM (core 0.18.0) which collectives a small GPT runs through, on a CPU. See ``serving``.

``collectives`` builds a GPT of ``layers`` layers from core's own modules as rank 0 of ``tensor`` x ``data`` ranks, and
runs ``micro_batches`` forward and backward passes, then what finalizes gradients across tensor ranks. ``calls`` lists
every collective that was dispatched: operation, ranks of its group, and bytes of the whole as
``translator.communication.Operation`` counts them.

What stands in: process groups that do nothing, the CPU where CUDA's device and random states are asked for, and
torch's norms.
"""

from __future__ import annotations

import contextlib
from typing import Any

import megatron_arguments as _stand_ins  # what is not installed
import serving
import torch
import torch.distributed
from megatron.core import parallel_state
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
    finalize_model_grads,
)
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.tensor_parallel import random
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.torch_norm import WrappedTorchNorm
from recording import Recorder
from serving import real
from torch.testing._internal.distributed.fake_pg import FakeStore


def on_cpu() -> None:
    """What lets the modules run where there is no GPU; nothing of it communicates."""
    torch.cuda.current_device = lambda: "cpu"  # type: ignore[assignment]
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[method-assign]
    type(random.get_cuda_rng_tracker()).fork = lambda *_, **__: contextlib.nullcontext()  # type: ignore[method-assign]
    WrappedTorchNorm.__new__ = norm  # type: ignore[method-assign]
    random._get_all_rng_states = lambda: ()
    random._set_all_rng_states = lambda *_: None


def norm(_: Any, config: Any, hidden_size: int, eps: float = 1e-5, **__: Any) -> torch.nn.Module:
    """In place of fused norms: torch's, with the mark by which gradients of norms are found."""
    made = torch.nn.RMSNorm(hidden_size, eps)
    made.weight.sequence_parallel = config.sequence_parallel  # type: ignore[attr-defined]
    return made


def collectives(
    layers: int,
    tensor: int,
    tokens: int,
    hidden: int,
    heads: int,
    vocab: int,
    ffn: int,
    sequence_parallel: bool = True,
    micro_batches: int = 1,
    data: int = 1,
    distributed_optimizer: bool = False,
    **options: Any,
) -> dict[str, Any]:
    torch.distributed.init_process_group("fake", rank=0, world_size=tensor * data, store=FakeStore())
    expert = options.get("expert_model_parallel_size", 1)
    degrees = {"tensor_model_parallel_size": tensor, "expert_model_parallel_size": expert}
    if options.get("num_moe_experts"):
        degrees["expert_tensor_parallel_size"] = options.get("expert_tensor_parallel_size", tensor)
    real("groups", parallel_state.initialize_model_parallel, create_gloo_process_groups=False, **degrees)
    on_cpu()
    config = real(
        "config",
        TransformerConfig,
        num_layers=layers,
        hidden_size=hidden,
        num_attention_heads=heads,
        ffn_hidden_size=ffn,
        tensor_model_parallel_size=tensor,
        sequence_parallel=sequence_parallel,
        use_cpu_initialization=True,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        gated_linear_unit=True,
        add_bias_linear=False,
        normalization="RMSNorm",
        bias_dropout_fusion=False,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        **options,
    )
    spec = get_gpt_layer_local_spec(
        num_experts=options.get("num_moe_experts"), moe_grouped_gemm=False, normalization="RMSNorm"
    )
    model = real(
        "model",
        GPTModel,
        config=config,
        transformer_layer_spec=spec,
        vocab_size=vocab,
        max_sequence_length=tokens,
        share_embeddings_and_output_weights=False,
        position_embedding_type="rope",
    )
    choices = DistributedDataParallelConfig(
        grad_reduce_in_fp32=True, use_distributed_optimizer=distributed_optimizer, overlap_grad_reduce=False
    )
    wrapped = real("wrap", DistributedDataParallel, config, choices, model)
    words = torch.zeros(1, tokens, dtype=torch.long)
    mask = torch.ones(1, 1, tokens, tokens, dtype=torch.bool).triu(1)
    recorder = Recorder()
    with recorder:
        for _ in range(micro_batches):
            real("step", lambda: wrapped(words, torch.arange(tokens)[None], mask, labels=words).sum().backward())
        real("finalize", finalize_model_grads, [wrapped])
        if distributed_optimizer:
            real("gather", wrapped.start_param_sync)
    return {"calls": recorder.calls}


_ = _stand_ins

if __name__ == "__main__":
    serving.main({"collectives": collectives})
