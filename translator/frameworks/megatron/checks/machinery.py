"""Switches of the machinery that do nothing, or less than they could."""

from __future__ import annotations

from collections.abc import Iterator

from translator.checks.registry import rule
from translator.findings import Level
from translator.subject import Remark, Subject


@rule("P540", Level.NOTE)
def exposed_communication(subject: Subject) -> Iterator[Remark]:
    """The distributed optimizer without overlap.

    Why: gradients are reduced after the last backward pass and parameters gathered before the first forward pass, and
    nothing hides either.
    Example: --use-distributed-optimizer alone over 8 replicas.
    Fix: --overlap-grad-reduce --overlap-param-gather.
    Source: megatron/core/distributed/distributed_data_parallel.py:70 (core 0.18.0).
    """
    replicas = subject.value("data_parallel_size")
    if not subject.value("use_distributed_optimizer") or not isinstance(replicas, int) or replicas < 2:
        return
    if subject.value("use_megatron_fsdp") or subject.value("optimizer") != "adam":
        return
    flags = ("overlap_grad_reduce", "overlap_param_gather")
    missing = ["--" + name.replace("_", "-") for name in flags if not subject.value(name)]
    if missing:
        message = f"the distributed optimizer over {replicas} replicas without {' and '.join(missing)}"
        yield Remark(message, f"add {' '.join(missing)}", option="use_distributed_optimizer")


@rule("P541")
def bucket_of_no_use(subject: Subject) -> Iterator[Remark]:
    """A bucket size without overlap.

    Why: without --overlap-grad-reduce there is one bucket, however large a size is stated.
    Example: --ddp-bucket-size 40000000 without --overlap-grad-reduce.
    Fix: add --overlap-grad-reduce, or leave the size out.
    Source: megatron/core/distributed/distributed_data_parallel.py:70 (core 0.18.0).
    """
    option = next((name for name in ("ddp_bucket_size", "ddp_num_buckets") if subject.stated(name)), None)
    if option and not subject.value("overlap_grad_reduce") and not subject.value("use_megatron_fsdp"):
        flag = "--" + option.replace("_", "-")
        yield Remark(f"{flag} has no effect without --overlap-grad-reduce", "add it", option=option)


@rule("P542")
def sharding_strategy_of_no_use(subject: Subject) -> Iterator[Remark]:
    """A sharding strategy without Megatron-FSDP.

    Why: only Megatron-FSDP reads --data-parallel-sharding-strategy; without it every rank holds all parameters.
    Example: --data-parallel-sharding-strategy optim_grads_params --use-distributed-optimizer.
    Fix: --use-megatron-fsdp --ckpt-format fsdp_dtensor.
    Source: megatron/core/distributed/distributed_data_parallel_config.py:100 (core 0.18.0).
    """
    option = "data_parallel_sharding_strategy"
    fsdp = subject.value("use_megatron_fsdp") or subject.value("use_custom_fsdp")
    if subject.stated(option) and subject.value(option) != "no_shard" and not fsdp:
        message = f"--data-parallel-sharding-strategy {subject.value(option)} has no effect without --use-megatron-fsdp"
        yield Remark(message, "add --use-megatron-fsdp --ckpt-format fsdp_dtensor, or leave it out", option=option)


@rule("P543", Level.NOTE)
def recomputed_for_nothing(subject: Subject) -> Iterator[Remark]:
    """Selective recomputation of an attention that stores nothing.

    Why: the fused attention kernels of TransformerEngine keep no attention scores, which are what recomputing
    core_attn saves; it then costs time and saves nearly nothing.
    Example: --recompute-activations with the default --transformer-impl.
    Fix: --recompute-modules with what weighs more (layernorm, mlp, moe_act), or no recomputation.
    Source: megatron/core/transformer/transformer_config.py:1602 (core 0.18.0) warns of it.
    """
    if subject.value("config.recompute_granularity") != "selective":
        return
    fused = subject.value("attention_backend") in ("auto", "flash", "fused")
    engine = subject.value("transformer_impl") == "transformer_engine"
    if subject.value("config.recompute_modules") == ["core_attn"] and fused and engine:
        option = "recompute_activations" if subject.stated("recompute_activations") else "recompute_granularity"
        message = "selective recomputation of core_attn only, whose fused kernels store no scores"
        yield Remark(message, "--recompute-modules with what weighs more, or none", option=option)


@rule("P544")
def old_attention_switch(subject: Subject) -> Iterator[Remark]:
    """--use-flash-attn, which picks nothing any more.

    Why: only a check of the deterministic mode reads it; which kernel runs is said by --attention-backend.
    Example: --use-flash-attn, kept from an older script.
    Fix: --attention-backend flash.
    Source: megatron/training/arguments.py:1530 (core 0.18.0), the only place that reads it.
    """
    if subject.version >= (0, 18) and subject.value("use_flash_attn") and not subject.stated("attention_backend"):
        message = "--use-flash-attn picks no kernel at this version"
        yield Remark(message, "--attention-backend flash", option="use_flash_attn")


@rule("P545")
def asynchronous_saving_is_off(subject: Subject) -> Iterator[Remark]:
    """--async-save that is switched off.

    Why: without --use-persistent-ckpt-worker saving waits for the disk, after a warning in the log.
    Example: --async-save alone.
    Fix: --use-persistent-ckpt-worker.
    Source: megatron/training/arguments.py:1621 (core 0.18.0).
    """
    if subject.stated("async_save") and subject.version >= (0, 16) and subject.value("async_save") is False:
        message = "--async-save is switched off without --use-persistent-ckpt-worker"
        yield Remark(message, "add --use-persistent-ckpt-worker", option="async_save")


@rule("P546")
def sequence_parallelism_of_no_use(subject: Subject) -> Iterator[Remark]:
    """--sequence-parallel without tensor parallelism.

    Why: it is switched off, so memory is not what it was reckoned to be.
    Example: --sequence-parallel with --tensor-model-parallel-size 1.
    Fix: leave it out, or raise the tensor parallel size; --context-parallel-size splits the sequence, too.
    Source: megatron/training/arguments.py:1378 (core 0.18.0).
    """
    if subject.stated("sequence_parallel") and subject.value("sequence_parallel") is False:
        message = "--sequence-parallel is switched off: the tensor parallel size is 1"
        yield Remark(message, "leave it out", option="sequence_parallel")
