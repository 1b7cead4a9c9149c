"""Counts the parameters that each pipeline rank of the real Megatron-LM (core 0.18.0) builds.

One command, ``shards``, with the parameters of ``megatron_verdict``. Every rank's chunks are built on the meta device,
split over the tensor and expert groups of its first member; the answer has per pipeline rank ``dense`` and ``experts``,
in elements.
"""

from __future__ import annotations

import contextlib
from argparse import Namespace
from typing import Any

import megatron_arguments as real_arguments
import megatron_verdict as verdict
import serving
import torch
from megatron.core import parallel_state
from megatron.training import arguments
from serving import real


def stand_ins() -> None:
    """What lets a model be built where there is no GPU; the shapes are not touched."""
    from megatron.core.models.common.embeddings import rotary_pos_embedding, yarn_rotary_pos_embedding
    from megatron.core.tensor_parallel.random import get_cuda_rng_tracker
    from megatron.core.transformer.dot_product_attention import DotProductAttention
    from megatron.core.transformer.moe import token_dispatcher

    type(get_cuda_rng_tracker()).fork = lambda *_, **__: contextlib.nullcontext()
    torch.cuda.current_device = lambda: "meta"
    torch.cuda.Stream = verdict.present
    for module in (rotary_pos_embedding, yarn_rotary_pos_embedding):
        module.get_pos_emb_on_this_cp_rank = lambda embedding, *_, **__: embedding
    torch.Tensor.cuda = lambda self, *_, **__: self
    for name in ("fused_dispatch", "set_deepep_num_sms", "hybrid_ep_dispatch"):
        setattr(token_dispatcher, name, verdict.present)
    verdict.accept_head_dimensions(DotProductAttention)


def chunk(args: Namespace, found: Any, rank: int, virtual: int | None) -> Any:
    """One model chunk of a pipeline rank."""
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_layer_local_spec
    from megatron.core.transformer import transformer_block

    # The fake group always answers as its first member; what a stage builds is decided by these two questions.
    transformer_block.get_pg_rank = lambda _: rank
    GPTModel.setup_embeddings_and_output_layer = lambda _: None
    last = found.pipeline_model_parallel_size - 1
    chunks = found.virtual_pipeline_model_parallel_size or 1
    position = virtual or 0
    with torch.device("meta"):
        if args.num_experts:
            spec = get_gpt_decoder_block_spec(
                found, use_transformer_engine=False, normalization=args.normalization, vp_stage=virtual, pp_rank=rank
            )
        else:
            spec = get_gpt_layer_local_spec(
                None, False, args.qk_layernorm, args.multi_latent_attention, normalization=args.normalization
            )
        return GPTModel(
            config=found,
            transformer_layer_spec=spec,
            vocab_size=args.padded_vocab_size,
            max_sequence_length=args.max_position_embeddings,
            pre_process=rank == 0 and position == 0,
            post_process=rank == last and position == chunks - 1,
            share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
            position_embedding_type=args.position_embedding_type,
            rotary_percent=args.rotary_percent,
            rotary_base=args.rotary_base,
            rope_scaling=args.use_rope_scaling,
            vp_stage=virtual,
        )


def shards(**request: Any) -> dict[str, Any]:
    """Elements of dense parameters and of experts on every pipeline rank."""
    verdict.pretend_engine()
    args = real_arguments.resolved(assume_te=True, **request)
    real("parallel_state", verdict.groups, args)
    found = real("config", arguments.core_transformer_config_from_args, args)
    stand_ins()
    for name, value in verdict.ON_CPU.items():
        setattr(found, name, value)
    virtual = found.virtual_pipeline_model_parallel_size
    counted = []
    for rank in range(found.pipeline_model_parallel_size):
        parallel_state.set_pipeline_model_parallel_rank(rank)
        parts = [chunk(args, found, rank, index) for index in (range(virtual) if virtual else [None])]
        named = [item for part in parts for item in part.named_parameters()]
        experts = sum(parameter.numel() for name, parameter in named if ".experts." in name)
        counted.append({"dense": sum(parameter.numel() for _, parameter in named) - experts, "experts": experts})
    return {"ranks": counted}


if __name__ == "__main__":
    verdict.warm()
    serving.main({"shards": shards})
