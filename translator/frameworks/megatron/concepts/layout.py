"""Megatron-LM on parallel axes, their ranks and what travels between them."""

from __future__ import annotations

from translator.comparison.registry import how

_CORE = "megatron/core/"
_GROUPS = f"{_CORE}parallel_state.py"
_LAYERS = f"{_CORE}tensor_parallel/layers.py"
_MOE = f"{_CORE}transformer/moe/"
_SCHEDULES = f"{_CORE}pipeline_parallel/schedules.py"

CONCEPTS = {
    "process-groups": how(
        "All groups are made once, globally, from an order of axes: tensor ranks are neighbours, then context, expert "
        "and data ranks, and pipeline ranks are furthest apart; one option swaps data and pipeline. Experts have a "
        "second division of the same ranks, in which expert tensor and expert ranks stand where tensor and context "
        "ranks do. The data-parallel degree is what is left of the number of ranks.",
        f"{_GROUPS}::initialize_model_parallel",
        f"{_GROUPS}::RankGenerator.get_ranks",
        memory="Each group that communicates brings an NCCL communicator with buffers of its own.",
    ),
    "tensor-parallelism": how(
        "Column-parallel layers (query-key-value, first feed-forward matrix) are followed by row-parallel ones "
        "(output projection, second matrix), so that a sublayer communicates twice. TransformerEngine's layers do the "
        "same as the modules of core. Communication can be fused with the products by user buffers of "
        "TransformerEngine.",
        f"{_LAYERS}::ColumnParallelLinear",
        f"{_LAYERS}::RowParallelLinear",
        f"{_LAYERS}::LinearWithGradAccumulationAndAsyncCommunication.backward",
        memory="Matrices, their gradients and optimizer states are cut by the degree; what stays whole (norms, "
        "routers) is small.",
        moves=("tensor",),
    ),
    "sequence-parallelism": how(
        "Optional, and demanded for experts with tensor parallelism. All-reduces become an all-gather in front of "
        "column-parallel and a reduce-scatter behind row-parallel layers; the backward pass gathers the saved shard of "
        "the input a second time. Gradients of norms are all-reduced over the tensor ranks at the end of the step.",
        f"{_CORE}tensor_parallel/mappings.py::_ReduceScatterToSequenceParallelRegion",
        f"{_CORE}distributed/finalize_model_grads.py::_allreduce_non_tensor_model_parallel_grads",
        memory="Residuals and inputs of norms are cut by the tensor degree; without it every tensor rank holds them "
        "whole.",
        moves=("tensor", "norm_gradients"),
    ),
    "vocabulary-parallelism": how(
        "Embedding, output layer and cross entropy are always cut over the vocabulary when there are tensor ranks, and "
        "the loss is computed from the pieces. The vocabulary is padded to a multiple of a divisor times the tensor "
        "degree, so the shape of the embedding depends on the layout.",
        f"{_LAYERS}::VocabParallelEmbedding.forward",
        f"{_CORE}tensor_parallel/cross_entropy.py::vocab_parallel_cross_entropy",
        "megatron/training/vocab_utils.py::calculate_padded_vocab_size",
        memory="Logits are tokens x vocabulary / tensor ranks, in the compute type and once more in fp32.",
        moves=("vocabulary",),
    ),
    "context-parallelism": how(
        "Each rank takes two pieces of the sequence, one from either end, so that causal work is even. "
        "TransformerEngine's attention exchanges keys and values around a ring, by all-gather, by all-to-all over "
        "heads, or by all-to-all inside and a ring outside of groups; the way can differ by layer. Context ranks "
        "count as data-parallel ones for gradients and the distributed optimizer.",
        f"{_CORE}utils.py::get_batch_on_this_cp_rank",
        f"{_CORE}transformer/transformer_config.py::TransformerConfig",
        memory="Activations are cut by the degree; the ring holds a second buffer of keys and values.",
        moves=("context",),
    ),
    "expert-parallelism": how(
        "Expert ranks are taken from the ranks of a pipeline stage, tensor and context ranks included: the same ranks "
        "are divided anew into expert tensor, expert and expert data ranks. Gradients of experts are reduced "
        "over the last of these alone.",
        f"{_GROUPS}::initialize_model_parallel",
        f"{_MOE}moe_layer.py::MoELayer",
        memory="Experts, their gradients and states are cut by expert times expert tensor degree; states once more "
        "over the expert data ranks with the distributed optimizer.",
        moves=("experts",),
    ),
    "expert-tensor-parallelism": how(
        "A degree of its own, equal to the tensor degree unless stated. With 1, each expert is whole and tensor ranks "
        "serve as further expert ranks, which is what the documentation advises for small experts.",
        f"{_MOE}token_dispatcher.py::MoEAlltoAllTokenDispatcher.dispatch_postprocess",
        "megatron/training/arguments.py::validate_args",
        moves=("experts",),
    ),
    "token-dispatch": how(
        "Three dispatchers: all-gather of all tokens, all-to-all of sorted copies, and flex, which hands over to "
        "DeepEP or HybridEP and sends a token once to each rank that needs it. Without a capacity factor no token is "
        "dropped; with one, the least probable or the last go. Shared experts can run beside the exchange.",
        f"{_MOE}token_dispatcher.py::MoEAlltoAllTokenDispatcher.token_dispatch",
        f"{_MOE}token_dispatcher.py::MoEFlexTokenDispatcher",
        f"{_MOE}moe_utils.py::apply_router_token_dropping",
        memory="What arrives depends on the routing: without dropping a rank holds as many copies as its experts are "
        "sent.",
        moves=("experts",),
    ),
    "routing": how(
        "Scores by softmax or sigmoid, before or after the choice of the best; the choice may be limited to groups of "
        "experts. Load is balanced by an auxiliary loss (per micro batch, per sequence or over the global batch), by "
        "Sinkhorn, or without a loss by a bias that moves with the counts of each step.",
        f"{_MOE}router.py::TopKRouter.routing",
        f"{_MOE}moe_utils.py::topk_routing_with_score_function",
        f"{_MOE}moe_utils.py::get_updated_expert_bias",
        memory="Scores are tokens x experts, in fp32 where the router is told so.",
    ),
    "pipeline-parallelism": how(
        "Point-to-point sends between neighbouring stages within one process group, batched or not, with shapes that "
        "both sides know. Under sequence parallelism each tensor rank sends its part alone. Outputs that were sent "
        "are freed down to a pseudo tensor.",
        f"{_CORE}pipeline_parallel/p2p_communication.py::P2PCommunicator",
        f"{_SCHEDULES}::get_tensor_shapes",
        f"{_SCHEDULES}::deallocate_output_tensor",
        memory="The first stage holds as many micro batches in flight as there are stages, the last one.",
        moves=("pipeline",),
    ),
    "pipeline-schedules": how(
        "1F1B without interleaving, and interleaved 1F1B with several model chunks. Weight gradients can be put off, "
        "and for experts a forward pass can run beside a backward pass to hide all-to-alls; neither is a schedule "
        "with a name.",
        f"{_SCHEDULES}::forward_backward_pipelining_without_interleaving",
        f"{_SCHEDULES}::forward_backward_pipelining_with_interleaving",
        f"{_CORE}pipeline_parallel/combined_1f1b.py::combined_1f1b_schedule_for_no_pipelining",
        memory="Idle share: (stages - 1) / (micro batches x chunks) of the time of all passes.",
        moves=("pipeline",),
    ),
    "interleaving": how(
        "The layers of a rank are cut into virtual stages by layers per stage or by stages per rank; micro batches go "
        "round in groups. Sends run beside computation unless switched off.",
        f"{_SCHEDULES}::get_schedule_table",
        f"{_SCHEDULES}::forward_backward_pipelining_with_interleaving",
        memory="The first rank holds more in flight: about (chunks - 1) x group + 2 x (stages - 1) + 1 chunks of "
        "layers.",
        moves=("pipeline",),
    ),
    "stage-split": how(
        "Evenly, with numbers of layers for the first and the last stage, with embedding or loss counted as a "
        "layer, or by a layout string that lists every stage, the extra prediction depths included.",
        f"{_CORE}transformer/transformer_block.py::get_num_layers_to_build",
        f"{_CORE}transformer/pipeline_parallel_layer_layout.py::PipelineParallelLayerLayout.from_str",
    ),
    "tied-embeddings": how(
        "Tied unless told otherwise. Under a pipeline the last stage holds a copy, and both copies' gradients are "
        "all-reduced at the end of the step.",
        f"{_CORE}distributed/finalize_model_grads.py::_allreduce_word_embedding_grads",
        f"{_CORE}models/gpt/gpt_model.py::GPTModel",
        memory="With a pipeline the matrix is there twice, like untied ones.",
        moves=("tied_gradients",),
    ),
}
