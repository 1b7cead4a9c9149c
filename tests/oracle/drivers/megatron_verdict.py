"""Asks the real Megatron-LM (core 0.18.0) whether it would start a run, as far as that shows on a CPU.

One command, ``judge``, with the parameters of ``megatron_arguments`` (``argv``, ``world_size``, ``environment``). It
goes through what a run does before its first step, in the run's order, and stops where the real code does:

=========== =========================================================================================================
parse_args, validate_args, num_microbatches   as in ``megatron_arguments``
parallel_state   all process groups, of rank 0, over torch's fake backend
seed             ``_set_random_seed``
config           ``core_transformer_config_from_args`` with every ``__post_init__``
stages           how many layers each rank and virtual stage builds
model            rank 0's part of the model on the meta device, split over its tensor and expert groups
optimizer        ``OptimizerConfig`` and the configuration of the gradient buffers
scheduler        ``get_optimizer_param_scheduler``
data             the blend and the split of ``GPTDatasetConfig``
=========== =========================================================================================================

What stands in: torch's fake process groups for NCCL, and a present TransformerEngine for the places that ask whether
there is one; the layers themselves are Megatron's own (``--transformer-impl local``), without kernels of Triton or
Apex. With ``hybrid`` patterns, T5 and BERT nothing is built.
"""

from __future__ import annotations

import contextlib
import sys
import types
from argparse import Namespace
from typing import Any

import megatron_arguments as real_arguments
import serving
import torch
import torch.distributed
from megatron.core import parallel_state, utils
from megatron.core.datasets import blended_megatron_dataset_config as dataset_config
from megatron.core.transformer import transformer_config
from megatron.training import arguments, initialize, training
from serving import RefusalError, real
from torch.testing._internal.distributed.fake_pg import FakeStore

# What GPTModel needs to be built where there are no GPU and no TransformerEngine; nothing of it is a size.
ON_CPU: dict[str, Any] = {
    "transformer_impl": "local",
    "gradient_accumulation_fusion": False,
    "use_cpu_initialization": True,
    "perform_initialization": False,
    "bias_dropout_fusion": False,
    "masked_softmax_fusion": False,
    "persist_layer_norm": False,
    "apply_rope_fusion": False,
    "moe_permute_fusion": False,
    "moe_grouped_gemm": False,
    "cp_comm_type": None,
    "fp8": None,
    "fp4": None,
    "cuda_graph_impl": "none",
    "tp_comm_overlap": False,
    "sequence_parallel": False,
    "context_parallel_size": 1,
    "cpu_offloading": False,
    "layernorm_zero_centered_gamma": False,
}


def pretend_engine() -> None:
    """Let every check for TransformerEngine and its fused kernels find a recent one."""
    from megatron.core.models.common.embeddings import rope_utils
    from megatron.core.transformer.moe import moe_utils

    for module in (arguments, transformer_config, utils):
        module.is_te_min_version = lambda *_, **__: True
    arguments.is_flashinfer_min_version = lambda *_, **__: True
    rope_utils.fused_apply_rotary_pos_emb = rope_utils.fused_apply_rotary_pos_emb_thd = present
    for name in (
        "permute",
        "permute_with_probs",
        "sort_chunks_by_index",
        "sort_chunks_by_index_with_probs",
        "unpermute",
    ):
        setattr(moe_utils, f"fused_{name}", present)


def present(*_: object, **__: object) -> None:
    """Stands for a kernel that is there and never called."""


def engine_optimizer() -> None:
    """A FusedAdam that takes what the precision-aware optimizer asks it for."""

    class FusedAdam:
        def __init__(
            self,
            master_weight_dtype: Any = None,
            exp_avg_dtype: Any = None,
            exp_avg_sq_dtype: Any = None,
            use_decoupled_grad: Any = None,
        ) -> None: ...

    for name in ("transformer_engine", "transformer_engine.pytorch", "transformer_engine.pytorch.optimizers"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["transformer_engine.pytorch.optimizers"].FusedAdam = FusedAdam  # type: ignore[attr-defined]


def groups(args: Namespace) -> None:
    """All process groups, as ``_initialize_distributed`` makes them, of a fake backend."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=args.world_size)
    parallel_state.initialize_model_parallel(
        args.tensor_model_parallel_size,
        args.pipeline_model_parallel_size,
        args.virtual_pipeline_model_parallel_size,
        use_sharp=args.use_sharp,
        context_parallel_size=args.context_parallel_size,
        hierarchical_context_parallel_sizes=args.hierarchical_context_parallel_sizes,
        expert_model_parallel_size=args.expert_model_parallel_size,
        num_distributed_optimizer_instances=args.num_distributed_optimizer_instances,
        expert_tensor_parallel_size=args.expert_tensor_parallel_size,
        distributed_timeout_minutes=args.distributed_timeout_minutes,
        order="tp-cp-ep-pp-dp" if args.use_tp_pp_dp_mapping else "tp-cp-ep-dp-pp",
        create_gloo_process_groups=False,
        sharp_enabled_group=args.sharp_enabled_group,
    )


def stages(found: Any) -> None:
    """Count the layers of every rank and virtual stage."""
    from megatron.core.transformer.transformer_block import get_num_layers_to_build

    chunks = found.virtual_pipeline_model_parallel_size
    for rank in range(found.pipeline_model_parallel_size):
        parallel_state.set_pipeline_model_parallel_rank(rank)
        for chunk in range(chunks) if chunks else [None]:
            get_num_layers_to_build(found, vp_stage=chunk, pp_rank=rank)
    parallel_state.set_pipeline_model_parallel_rank(0)


def model(args: Namespace, found: Any) -> None:
    """Rank 0's first chunk of the model: shapes without storage, with the embedding and, alone, the output layer."""
    from megatron.core.models.common.embeddings import rotary_pos_embedding, yarn_rotary_pos_embedding
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_layer_local_spec
    from megatron.core.tensor_parallel.random import get_cuda_rng_tracker
    from megatron.core.transformer.dot_product_attention import DotProductAttention
    from megatron.core.transformer.moe import token_dispatcher

    type(get_cuda_rng_tracker()).fork = lambda *_, **__: contextlib.nullcontext()
    torch.cuda.current_device = lambda: "meta"
    torch.cuda.Stream = present
    for module in (rotary_pos_embedding, yarn_rotary_pos_embedding):
        module.get_pos_emb_on_this_cp_rank = lambda embedding, *_, **__: embedding
    torch.Tensor.cuda = lambda self, *_, **__: self
    for name in ("fused_dispatch", "set_deepep_num_sms", "hybrid_ep_dispatch"):
        setattr(token_dispatcher, name, present)
    accept_head_dimensions(DotProductAttention)
    for name, value in ON_CPU.items():
        setattr(found, name, value)
    chunk = None if found.virtual_pipeline_model_parallel_size is None else 0
    with torch.device("meta"):
        if args.num_experts:
            spec = get_gpt_decoder_block_spec(
                found, use_transformer_engine=False, normalization=args.normalization, vp_stage=chunk
            )
        else:
            spec = get_gpt_layer_local_spec(
                None, False, args.qk_layernorm, args.multi_latent_attention, normalization=args.normalization
            )
        GPTModel(
            config=found,
            transformer_layer_spec=spec,
            vocab_size=args.padded_vocab_size or 1024 * args.tensor_model_parallel_size,
            max_sequence_length=args.max_position_embeddings,
            pre_process=True,
            post_process=found.pipeline_model_parallel_size == 1,
            share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
            position_embedding_type=args.position_embedding_type,
            rotary_percent=args.rotary_percent,
            rotary_base=args.rotary_base,
            rope_scaling=args.use_rope_scaling,
            vp_stage=chunk,
        )


def accept_head_dimensions(attention: Any) -> None:
    """Let the local attention be told the head dimensions of latent attention, as TransformerEngine's is."""
    original = attention.__init__

    def initialise(self: Any, *words: Any, k_channels: Any = None, v_channels: Any = None, **named: Any) -> None:
        original(self, *words, **named)

    attention.__init__ = initialise


def optimizer(args: Namespace) -> None:
    """What the optimizer and the gradient buffers refuse of their options."""
    engine_optimizer()
    training.get_megatron_optimizer_config(args)
    training.get_megatron_ddp_config(args)


def scheduler(args: Namespace) -> None:
    """The learning-rate and weight-decay schedule."""
    training.get_args = lambda: args
    training.get_optimizer_param_scheduler(real_arguments.Optimizer())


def data(args: Namespace) -> None:
    """The split of the data and the blend, as far as no file is read."""
    paths = [args.train_data_path, args.valid_data_path, args.test_data_path]
    blend, per_split = None, None
    if args.data_path:
        blend = dataset_config_blend(args.data_path)
    elif any(path is not None for path in paths):
        per_split = [dataset_config_blend(path) for path in paths]
    dataset_config.BlendedMegatronDatasetConfig(
        random_seed=args.seed,
        sequence_length=args.seq_length,
        blend=blend,
        blend_per_split=per_split,
        split=args.split,
        path_to_cache=args.data_cache_path,
        fast_cache_load=args.dataloader_fast_cache_load,
        defer_npy_index_mmap=args.dataloader_defer_npy_index_mmap,
    )


def dataset_config_blend(paths: Any) -> Any:
    """Prefixes and weights of a list of both."""
    from megatron.core.datasets.utils import get_blend_from_list

    return get_blend_from_list(paths)


def judge(*, build: bool = True, **request: Any) -> dict[str, Any]:
    """Go through the start of a run; RefusalError where the real code stops."""
    pretend_engine()
    args = real_arguments.resolved(assume_te=True, **request)
    real("parallel_state", groups, args)
    real("seed", initialize._set_random_seed, args.seed, args.data_parallel_random_init)
    found = real("config", arguments.core_transformer_config_from_args, args)
    plain_decoder = args.hybrid_layer_pattern is None and args.heterogeneous_layers_config_path is None
    if plain_decoder:
        real("stages", stages, found)
    if not args.skip_train:
        real("optimizer", optimizer, args)
        real("scheduler", scheduler, args)
    real("data", data, args)
    built = build and plain_decoder and args.experimental_attention_variant is None and args.spec is None
    if built:
        real("model", model, args, found)
    return {"built": built}


__all__ = ["RefusalError", "judge"]


def warm() -> None:
    """Do once, before a child is forked for each request, what every one of them would do again."""
    import functools

    import megatron.core.models.gpt  # noqa: F401 (so that no child has to)
    from megatron.training.argument_utils import ArgumentGroupFactory

    # Only the help texts come from the docstrings; reading them takes most of a parser's time.
    documented, holder = ArgumentGroupFactory._get_field_docstrings, Namespace()
    holder._get_field_docstrings = functools.cache(functools.partial(documented, holder))
    ArgumentGroupFactory._get_field_docstrings = lambda _, source: holder._get_field_docstrings(source)
    real_arguments.parser()


if __name__ == "__main__":
    warm()
    serving.main({"judge": judge})
