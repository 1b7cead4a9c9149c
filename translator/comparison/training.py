"""Concepts about the numbers that the model sees: model, batch, loss, optimizer, schedule, data."""

from __future__ import annotations

from translator.comparison.registry import Concept

TITLE = "Model and training"
CONCEPTS = (
    Concept(
        "model-definition",
        "Model definition",
        "Where the architecture comes from: options, a named flavor, or code.",
        ("model.name", "model.layers", "model.hidden", "model.ffn", "model.heads", "model.kv_heads"),
    ),
    Concept(
        "attention",
        "Attention kernels and masks",
        "Which implementation of attention runs, and which tokens see each other.",
        ("model.attention_kernel", "model.attention_window", "model.attention_softmax"),
    ),
    Concept(
        "rope-scaling",
        "Rotary positions and long contexts",
        "How rotary frequencies are computed and stretched for contexts beyond the trained one.",
        (
            "model.positions",
            "model.rope_base",
            "model.rope.scaling",
            "model.rope.scaling_factor",
            "model.rope.interleaved",
        ),
    ),
    Concept(
        "multi-token-prediction",
        "Multi-token prediction",
        "Extra depths that predict tokens further ahead.",
        ("model.mtp.layers", "model.mtp.loss_scaling"),
    ),
    Concept(
        "initialisation",
        "Initialisation of weights",
        "How the first weights are drawn, and how that depends on depth and ranks.",
        ("model.init_std", "model.init_output_scaling"),
    ),
    Concept(
        "batch",
        "Batch sizes and their ramp-up",
        "How micro batch, global batch, data-parallel ranks and accumulation fit together, and change along the run.",
        ("batch.micro_batch", "batch.global_batch", "batch.accumulation", "batch.ramp_up", "batch.steps"),
    ),
    Concept(
        "loss-normalisation",
        "Normalisation of the loss",
        "By what the sum over tokens is divided, and where that happens when micro batches or ranks differ.",
        ("loss.normalization",),
    ),
    Concept(
        "cross-entropy",
        "Cross entropy",
        "How logits become a loss, fused or in pieces, and what that takes.",
        ("loss.fused_cross_entropy", "loss.chunks"),
    ),
    Concept(
        "gradient-clipping",
        "Gradient clipping",
        "How the norm of all gradients is found across ranks, and what is done when it is too large.",
        ("optimizer.clip_grad_norm",),
    ),
    Concept(
        "optimizers",
        "Optimizers",
        "Which update rules there are, and which kernels run them.",
        ("optimizer.name", "optimizer.beta1", "optimizer.beta2", "optimizer.eps", "optimizer.implementation"),
    ),
    Concept(
        "weight-decay",
        "Weight decay and its scope",
        "How large the decay is along the run, and which parameters it covers.",
        (
            "optimizer.weight_decay",
            "optimizer.weight_decay_end",
            "optimizer.weight_decay_shape",
            "optimizer.decay_scope",
        ),
    ),
    Concept(
        "learning-rate-schedules",
        "Learning-rate schedules",
        "Warm-up and decay: shapes, units, ends and conventions about the first and the last step.",
        (
            "optimizer.lr",
            "schedule.unit",
            "schedule.total",
            "schedule.warmup",
            "schedule.decay",
            "schedule.decay_length",
            "schedule.min_lr",
        ),
    ),
    Concept(
        "data-pipeline",
        "Data pipeline",
        "Where samples come from, how they are mixed and ordered, and how a restart finds its place.",
        ("data.dataset", "data.format", "data.split", "data.mock", "data.workers"),
    ),
    Concept(
        "packing",
        "Packing and document masks",
        "Several documents in one sequence: whether they see each other, and what their ends count.",
        ("model.attention_mask", "data.reset_positions", "data.reset_attention", "data.mask_end_of_document"),
    ),
    Concept(
        "tokenizer",
        "Tokenizer",
        "What turns text into tokens, and whether that happens before or during training.",
        ("data.tokenizer", "data.tokenizer_type", "model.vocab"),
    ),
    Concept(
        "seeds",
        "Seeds and determinism",
        "What a seed seeds on which rank, and what makes two runs equal bit by bit.",
        ("data.seed", "data.deterministic"),
    ),
)
