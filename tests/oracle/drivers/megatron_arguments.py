"""Asks the real Megatron-LM (core 0.18.0) argument code, on a CPU. See ``serving`` for how it is called.

Every command takes ``argv`` (a list of words) and ``world_size``; and ``rank`` (0), ``arch`` (major compute
capability of the GPU it shall believe in, 9), ``vocab_size`` (unpadded, as a tokenizer would give it) and
``assume_te`` (whether TransformerEngine shall count as installed in a recent version).

========= ===========================================================================================================
resolve   ``args`` after parse_args and validate_args, ``num_microbatches``
config    ``config``: the fields of TransformerConfig after its own checks
lr        ``lr``, ``weight_decay`` of every optimizer step, or of ``steps`` (0-based): what the step is run with
stages    ``layers[pipeline rank][chunk]``: how many decoder layers; ``first``: the first one's number
params    ``total``, ``by_name``: a real GPTModel on the meta device, all parallelism collapsed to one process
memory    Megatron's own theoretical report for the fullest rank, in MiB
parser    every action of the argument parser: flags, dest, default, choices, nargs
========= ===========================================================================================================

What stands in for hardware or packages that are not there: the compute capability of the GPU; TransformerEngine's
version check with ``assume_te``; ``apply_rope_fusion`` is off outside ``resolve``; for ``params`` Megatron's own
layers instead of TransformerEngine's. ``CUDA_DEVICE_MAX_CONNECTIONS`` is 1 unless the request's ``environment`` says
otherwise, as launch scripts have it. Nothing in the argument code itself is replaced.
"""

# ruff: noqa: E402 (what is imported depends on what was put in place before)
from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import sys
import types
import typing
from argparse import Namespace
from collections.abc import Sequence
from typing import Any, NoReturn

import serving
import typing_extensions
from serving import plain, real

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
if not hasattr(typing, "override"):  # the package asks for Python 3.12 only because of this name
    typing.override = typing_extensions.override

if source := os.environ.get("TTX_ORACLE_MEGATRON_SRC"):
    sys.path.insert(0, source)


def leave_out(name: str) -> None:
    """Stand in for one module of the package that imports triton, which CPU builds of torch come without.

    ``triton`` itself is no good to pretend: torch looks for it to decide what it can compile.
    """
    module = types.ModuleType(name)

    def missing(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)

        def absent(*_: object, **__: object) -> NoReturn:
            raise RuntimeError(f"{name}.{attribute} needs triton")

        return absent

    module.__getattr__ = missing  # type: ignore[method-assign]
    sys.modules[name] = module


if importlib.util.find_spec("triton") is None:
    leave_out("megatron.core.transformer.moe.paged_stash")

import torch
from megatron.core import num_microbatches_calculator
from megatron.training import arguments, training
from megatron.training.vocab_utils import calculate_padded_vocab_size

GPU_MEMORY_BYTES = 80 * 2**30


def resolved(
    *,
    argv: Sequence[str],
    world_size: int,
    rank: int = 0,
    arch: int = 9,
    vocab_size: int | None = None,
    assume_te: bool = False,
) -> Namespace:
    """The arguments as the training script has them before it builds a model."""
    os.environ.update(WORLD_SIZE=str(world_size), RANK=str(rank), LOCAL_RANK="0")
    pretend_gpu(arch)
    if assume_te:
        arguments.is_te_min_version = lambda *_, **__: True
        arguments.is_flashinfer_min_version = lambda *_, **__: True
    sys.argv = ["pretrain_gpt.py", *argv]
    args = real("parse_args", arguments.parse_args)
    args = real("validate_args", arguments.validate_args, args, {"tokenizer_type": "GPT2BPETokenizer"}) or args
    vocab_size = vocab_size or args.vocab_size
    if args.padded_vocab_size is None and vocab_size:
        args.padded_vocab_size = calculate_padded_vocab_size(
            vocab_size, args.make_vocab_size_divisible_by, args.tensor_model_parallel_size, logging_enabled=False
        )
    real(
        "num_microbatches",
        num_microbatches_calculator.init_num_microbatches_calculator,
        rank=args.rank,
        global_batch_size=args.global_batch_size,
        micro_batch_size=args.micro_batch_size,
        data_parallel_size=args.data_parallel_size,
        decrease_batch_size_if_needed=args.decrease_batch_size_if_needed,
        step_batch_size_schedule=args.step_batch_size_schedule,
        seq_length=args.seq_length,
    )
    return typing.cast(Namespace, args)


def pretend_gpu(arch: int) -> None:
    """Let the argument code see a GPU of this generation, which it asks for some of its checks."""

    class Properties:
        major = arch
        minor = 0
        total_memory = GPU_MEMORY_BYTES
        name = "none"

    torch.cuda.get_device_capability = lambda *_, **__: (arch, 0)
    torch.cuda.get_device_properties = lambda *_, **__: Properties


def transformer_config(args: Namespace) -> Any:
    """The model's configuration object, without the fused rope, which asks for TransformerEngine itself."""
    args.apply_rope_fusion = False
    return real("TransformerConfig", arguments.core_transformer_config_from_args, args)


def resolve(**request: Any) -> dict[str, Any]:
    args = resolved(**request)
    return {
        "num_microbatches": num_microbatches_calculator.get_num_microbatches(),
        "args": {key: plain(value) for key, value in vars(args).items()},
    }


def config(**request: Any) -> dict[str, Any]:
    found = transformer_config(resolved(**request))
    return {"config": {key: plain(value) for key, value in vars(found).items()}}


class Optimizer:
    """As much of an optimizer as the scheduler looks at: a group with weight decay and one without."""

    def __init__(self) -> None:
        self.param_groups: list[dict[str, Any]] = [
            {"params": [], "default_config": True},
            {"params": [], "wd_mult": 0.0},
        ]


def lr(steps: Sequence[int] | None = None, **request: Any) -> dict[str, Any]:
    args = resolved(**request)
    training.get_args = lambda: args
    optimizer = Optimizer()
    scheduler = real("scheduler", training.get_optimizer_param_scheduler, optimizer)
    wanted = range(args.train_iters) if steps is None else sorted(steps)
    decayed, undecayed = optimizer.param_groups
    rates: list[float] = []
    decays: list[float] = []
    last = 0
    for step in wanted:
        if step > last:  # the scheduler counts samples; constant batches, as everywhere but with a batch schedule
            scheduler.step((step - last) * args.global_batch_size)
            last = step
        rates.append(decayed["lr"])
        decays.append(decayed["weight_decay"])
    return {
        "steps": list(wanted),
        "lr": rates,
        "weight_decay": decays,
        "undecayed_weight_decay": undecayed["weight_decay"],
        "train_iters": args.train_iters,
        "warmup_samples": scheduler.lr_warmup_steps,
        "decay_samples": scheduler.lr_decay_steps,
        "wsd_decay_samples": scheduler.wsd_decay_steps,
    }


def stages(**request: Any) -> dict[str, Any]:
    from megatron.core import parallel_state
    from megatron.core.transformer.transformer_block import get_num_layers_to_build
    from megatron.core.transformer.transformer_layer import get_transformer_layer_offset

    found = transformer_config(resolved(**request))
    chunks = found.virtual_pipeline_model_parallel_size
    # A hand-written layout looks the rank and the number of chunks up in the process groups, which are not there.
    parallel_state.set_virtual_pipeline_model_parallel_world_size(chunks)

    def ask(function: Any) -> list[list[int]]:
        rows = []
        for rank in range(found.pipeline_model_parallel_size):
            parallel_state.set_pipeline_model_parallel_rank(rank)
            parts = range(chunks) if chunks else [None]
            rows.append([real("stages", function, found, vp_stage=part, pp_rank=rank) for part in parts])
        return rows

    return {
        "pipeline": found.pipeline_model_parallel_size,
        "virtual": chunks,
        "layers": ask(get_num_layers_to_build),
        "first": ask(get_transformer_layer_offset),
    }


# One process holds the whole model, and its kernels are torch's own.
COLLAPSED: dict[str, Any] = {
    "tensor_model_parallel_size": 1,
    "pipeline_model_parallel_size": 1,
    "virtual_pipeline_model_parallel_size": None,
    "context_parallel_size": 1,
    "expert_model_parallel_size": 1,
    "expert_tensor_parallel_size": 1,
    "sequence_parallel": False,
    "transformer_impl": "local",
    "num_layers_in_first_pipeline_stage": None,
    "num_layers_in_last_pipeline_stage": None,
    "account_for_embedding_in_pipeline_split": False,
    "account_for_loss_in_pipeline_split": False,
    "pipeline_model_parallel_layout": None,
    "gradient_accumulation_fusion": False,
    "use_cpu_initialization": True,
    "perform_initialization": False,
    "bias_dropout_fusion": False,
    "masked_softmax_fusion": False,
    "persist_layer_norm": False,
    "apply_rope_fusion": False,
    "cp_comm_type": None,
}


def params(**request: Any) -> dict[str, Any]:
    args = resolved(**request)
    found = transformer_config(args)
    for name, value in COLLAPSED.items():
        setattr(found, name, value)
    model = real("GPTModel", build_model, args, found)
    by_name: dict[str, dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        entry = by_name.setdefault(re.sub(r"\.\d+\.", ".N.", name), {"total": 0, "tensors": 0, "shape": []})
        entry["total"] += parameter.numel()
        entry["tensors"] += 1
        entry["shape"] = list(parameter.shape)
    return {
        "total": sum(parameter.numel() for parameter in model.parameters()),
        "weight_decayed": weight_decayed(model),
        "padded_vocab_size": args.padded_vocab_size,
        "by_name": by_name,
    }


def build_model(args: Namespace, found: Any) -> Any:
    """A GPTModel whose parameters have shapes but no storage."""
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_layer_local_spec
    from megatron.core.tensor_parallel.random import get_cuda_rng_tracker

    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    parallel_state.initialize_model_parallel(1, 1)
    type(get_cuda_rng_tracker()).fork = lambda *_, **__: contextlib.nullcontext()
    torch.cuda.current_device = lambda: "meta"
    if args.num_experts:
        spec = get_gpt_decoder_block_spec(found, use_transformer_engine=False, normalization=args.normalization)
    else:
        spec = get_gpt_layer_local_spec(
            args.num_experts,
            args.moe_grouped_gemm,
            args.qk_layernorm,
            args.multi_latent_attention,
            normalization=args.normalization,
        )
    with torch.device("meta"):
        return GPTModel(
            config=found,
            transformer_layer_spec=spec,
            vocab_size=args.padded_vocab_size,
            max_sequence_length=args.max_position_embeddings,
            share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
            position_embedding_type=args.position_embedding_type,
            rotary_percent=args.rotary_percent,
            rotary_base=args.rotary_base,
        )


def weight_decayed(model: Any) -> int:
    """How many parameters the optimizer's standard rule gives weight decay."""
    from megatron.core.optimizer import OptimizerConfig, get_standard_config_overrides

    overrides = get_standard_config_overrides(OptimizerConfig(lr=1e-3, weight_decay=0.1))
    return sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        if not any(key.matches(parameter, name) for key in overrides)
    )


def memory(**request: Any) -> dict[str, Any]:
    from megatron.training import theoretical_memory_usage

    args = resolved(**request)
    theoretical_memory_usage.print_rank_0 = print
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        weights, activations, total = real(
            "theoretical_memory",
            theoretical_memory_usage.report_theoretical_memory,
            args,
            num_microbatches=num_microbatches_calculator.get_num_microbatches(),
            verbose=True,
        )
    return {
        "weights_and_optimizer_mib": weights,
        "activations_mib": activations,
        "total_mib": total,
        "text": text.getvalue().splitlines(),
    }


def parser() -> dict[str, Any]:
    import argparse

    found = arguments.add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))
    return {
        "actions": [
            {
                "flags": list(action.option_strings),
                "dest": action.dest,
                "action": type(action).__name__,
                "default": plain(action.default),
                "nargs": plain(action.nargs),
                "choices": None if action.choices is None else [plain(choice) for choice in action.choices],
                "type": getattr(action.type, "__name__", None),
            }
            for action in found._actions
        ]
    }


if __name__ == "__main__":
    serving.main({function.__name__: function for function in (resolve, config, lr, stages, params, memory, parser)})
