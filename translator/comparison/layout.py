"""Concepts about who computes what: parallel axes, their ranks and what travels between them."""

from __future__ import annotations

from translator.comparison.registry import Concept

TITLE = "Layout"
CONCEPTS = (
    Concept(
        "process-groups",
        "Process groups and rank order",
        "Which ranks form the groups of each parallel axis, and which axis has neighbours on one node.",
        ("parallel.world_size", "parallel.rank_order", "launch.nodes", "launch.gpus_per_node"),
    ),
    Concept(
        "tensor-parallelism",
        "Tensor parallelism",
        "The matrices of one layer are cut over ranks, which exchange activations in every layer.",
        ("parallel.tensor", "parallel.tensor_overlap"),
    ),
    Concept(
        "sequence-parallelism",
        "Sequence parallelism",
        "Norms, dropouts and residuals between tensor-parallel layers are cut along the sequence as well.",
        ("parallel.sequence_parallel",),
    ),
    Concept(
        "vocabulary-parallelism",
        "Embedding, output head and parallel loss",
        "The matrices at both ends and the loss, cut over the vocabulary, and the padding that this takes.",
        ("parallel.loss_parallel", "model.vocab_padded", "model.vocab_divisor"),
    ),
    Concept(
        "context-parallelism",
        "Context parallelism",
        "The ranks of a group share each sequence through the whole model; attention has to exchange keys and values.",
        ("parallel.context", "parallel.context_method"),
    ),
    Concept(
        "expert-parallelism",
        "Expert parallelism",
        "The experts of a layer are dealt out to ranks, which hand tokens to each other.",
        ("parallel.expert",),
    ),
    Concept(
        "expert-tensor-parallelism",
        "Tensor parallelism inside experts",
        "Whether the matrices of one expert are cut as well, and over how many ranks.",
        ("parallel.expert_tensor",),
    ),
    Concept(
        "token-dispatch",
        "Token dispatch",
        "How tokens reach their experts and come back, and what happens to those that do not fit.",
        (
            "model.moe.dispatcher",
            "model.moe.capacity_factor",
            "model.moe.capacity_padding",
            "model.moe.drop_policy",
            "model.moe.grouped_gemm",
            "model.moe.scores_on_input",
        ),
    ),
    Concept(
        "routing",
        "Routing and load balancing",
        "How a token chooses its experts, and what keeps the load of experts even.",
        (
            "model.moe.top_k",
            "model.moe.router_score",
            "model.moe.router_normalize",
            "model.moe.router_scaling",
            "model.moe.router_groups",
            "model.moe.router_group_top_k",
            "model.moe.router_dtype",
            "model.moe.router_bias",
            "model.moe.router_bias_rate",
            "model.moe.balancing",
            "model.moe.aux_loss_coefficient",
            "model.moe.z_loss_coefficient",
        ),
    ),
    Concept(
        "pipeline-parallelism",
        "Pipeline parallelism",
        "Consecutive layers live on different ranks, through which micro batches pass.",
        ("parallel.pipeline.degree", "parallel.pipeline.overlap_p2p"),
    ),
    Concept(
        "pipeline-schedules",
        "Pipeline schedules",
        "The order of forward and backward passes on each stage, which decides the idle share and what is in flight.",
        ("parallel.pipeline.schedule",),
    ),
    Concept(
        "interleaving",
        "Interleaved stages",
        "Several pieces of the model on each pipeline rank: less idle time, more sends.",
        ("parallel.pipeline.stages_per_rank",),
    ),
    Concept(
        "stage-split",
        "Which stage has which layers",
        "How layers, embedding and output head are dealt to pipeline stages.",
        ("parallel.pipeline.layer_split",),
    ),
    Concept(
        "tied-embeddings",
        "Tied embeddings",
        "One matrix for input and output: what happens when its two uses stand on different stages.",
        ("model.tied_embeddings",),
    ),
)
