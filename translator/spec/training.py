"""Sections on the numbers of training: batch, precision, optimizer, schedule, recompute, loss."""

from __future__ import annotations

from typing import Literal

from translator.spec.base import MEMORY, SPEED, Section, leaf

Dtype = Literal["fp32", "bf16", "fp16", "fp8", "fp4"]
DecayShape = Literal["constant", "linear", "cosine", "sqrt", "inverse_sqrt", "exponential", "log", "one_cycle"]


# No training has such a number; what is above it is a mistake or infinite.
FINITE = 1e9


class Batch(Section):
    """How many sequences go where."""

    micro_batch: int | None = leaf("sequences in one forward pass of one model replica", MEMORY, ge=1)
    global_batch: int | None = leaf("sequences per optimizer step", ge=1)
    seq_len: int | None = leaf("tokens per sequence", ge=1)
    accumulation: int | None = leaf("micro batches per replica and optimizer step", SPEED, ge=1)
    ramp_up: list[int] | None = leaf("batch ramp-up: first global batch, increment, samples over which it grows")
    steps: str | None = leaf("global batch by threshold, as THRESHOLD:BATCH pairs")


class Precision(Section):
    """Number formats."""

    compute: Dtype | None = leaf("format of matrix products outside fp8")
    parameters: Dtype | None = leaf("format in which a rank keeps the parameters it computes with", MEMORY)
    master: Dtype | None = leaf("format of the optimizer's copy of the parameters")
    grad_accumulate: Dtype | None = leaf("format in which gradients of micro batches are added up")
    grad_reduce: Dtype | None = leaf("format in which gradients are reduced over data-parallel ranks")
    first_moment: Dtype | None = leaf("format of Adam's first moment")
    second_moment: Dtype | None = leaf("format of Adam's second moment")
    fp8: Literal["none", "e4m3", "hybrid"] | None = leaf("fp8 formats of matrix products")
    fp8_recipe: Literal["delayed", "tensorwise", "rowwise", "mxfp8", "blockwise", "custom"] | None = leaf(
        "how fp8 scales are found"
    )
    fp8_parameters: bool | None = leaf("parameters are gathered, or kept, in fp8", MEMORY)
    fp8_skip: list[str] | None = leaf("modules left out of fp8")
    fp8_experts: bool | None = leaf("the experts' matrix products run in fp8 too")
    fp4: Literal["none", "e2m1"] | None = leaf("fp4 format of matrix products")
    loss_scale: float | None = leaf("static loss scale; None is dynamic under fp16 and absent otherwise")
    initial_loss_scale: float | None = leaf("first dynamic loss scale")
    min_loss_scale: float | None = leaf("smallest dynamic loss scale")
    loss_scale_window: float | None = leaf("steps without overflow before the scale grows")
    loss_scale_hysteresis: int | None = leaf("overflows before the scale shrinks")


class Optimizer(Section):
    """The optimizer and its regularisation."""

    name: Literal["adamw", "adam", "sgd", "lion", "muon", "dist_muon", "soap", "other"] | None = leaf("the update rule")
    lr: float | None = leaf("peak learning rate", ge=0, le=FINITE)
    beta1: float | None = leaf("decay of the first moment", ge=0, le=1)
    beta2: float | None = leaf("decay of the second moment", ge=0, le=1)
    eps: float | None = leaf("Adam's epsilon", ge=0, le=FINITE)
    momentum: float | None = leaf("momentum of SGD")
    weight_decay: float | None = leaf("weight decay at the start", ge=0, le=FINITE)
    weight_decay_end: float | None = leaf("weight decay at the end; equal to the start when constant", ge=0, le=FINITE)
    weight_decay_shape: Literal["constant", "linear", "cosine"] | None = leaf("how weight decay moves between the two")
    decay_scope: Literal["all", "matrices", "matrices_and_qk_norm", "custom"] | None = leaf(
        "which parameters decay: all, or only those with two dimensions or more that are no bias"
    )
    clip_grad_norm: float | None = leaf("bound on the global L2 norm of the gradients; 0 for none", ge=0)
    embedding_lr: float | None = leaf("separate peak learning rate of embedding and output layer")
    embedding_min_lr: float | None = leaf("separate floor of embedding and output layer")
    implementation: Literal["fused", "foreach", "for_loop"] | None = leaf("kernel of the update", SPEED)
    offload: bool | None = leaf("the optimizer step runs on the host", MEMORY)
    offload_fraction: float | None = leaf("share of the optimizer states that is offloaded", MEMORY)


class Schedule(Section):
    """The learning rate as a function of the optimizer step ``s``, which counts from 0.

    It rises from ``warmup_start_lr`` to the peak over ``warmup`` (at ``s`` the share
    ``(s + warmup_offset) / warmup`` is done), holds until ``decay_start``, then falls towards ``min_lr`` over
    ``decay_length`` by the shape ``decay``; at ``s = decay_start`` nothing of the decay is done yet.
    `translator.schedules` evaluates it.
    """

    unit: Literal["steps", "samples", "tokens"] | None = leaf("unit of the lengths below")
    total: int | None = leaf("length of training", ge=0)
    warmup: float | None = leaf("length of the warm-up", ge=0)
    warmup_start_lr: float | None = leaf("learning rate at the start of the warm-up", ge=0)
    warmup_offset: int | None = leaf(
        "0 when the first step uses the start of the warm-up, 1 when it is one step on, -1 when the second does as well"
    )
    warmup_shape: Literal["linear", "log", "cosine"] | None = leaf("shape of the warm-up")
    decay: DecayShape | None = leaf("shape of the decay")
    decay_start: float | None = leaf("step after which the rate falls")
    decay_length: float | None = leaf("how long the decay takes")
    min_lr: float | None = leaf("learning rate that the decay approaches, absolute", ge=0)
    after_decay: Literal["floor", "continue"] | None = leaf(
        "where training outlasts the decay: the floor, or on along the formula of the decay"
    )


class Recompute(Section):
    """Activation recomputation."""

    mode: Literal["none", "selective", "full"] | None = leaf("what is recomputed in the backward pass", MEMORY)
    method: Literal["uniform", "block", "every_nth", "operators", "modules", "memory_budget"] | None = leaf(
        "how the recomputed part is chosen", MEMORY
    )
    layers: int | None = leaf(
        "layers per recomputed unit (uniform), recomputed per stage (block), or n (every_nth)", MEMORY
    )
    modules: list[str] | None = leaf("modules that selective recomputation covers", MEMORY)
    distribute: bool | None = leaf("saved activations are split over the tensor ranks", MEMORY)
    memory_budget: float | None = leaf("share of activation memory that may be kept", MEMORY)


class Loss(Section):
    """The loss and its normalisation."""

    normalization: Literal["global_tokens", "micro_batch_mean"] | None = leaf(
        "the sum over tokens is divided by all valid tokens of the step, or per micro batch and then averaged"
    )
    fused_cross_entropy: bool | None = leaf("cross entropy runs as one fused kernel", SPEED)
    chunks: int | None = leaf("pieces of the sequence in which logits and loss are computed; 1 for none", MEMORY, ge=1)
    cpu_check_nan: bool | None = leaf("the run stops when the loss is NaN", SPEED)
