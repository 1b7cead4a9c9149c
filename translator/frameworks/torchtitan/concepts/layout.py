"""torchtitan on parallel axes, their ranks and what travels between them."""

from __future__ import annotations

from translator.comparison.registry import how

PACKAGES = {"torch": "2.13.0"}

_DIMS = "torchtitan/distributed/parallel_dims.py"
_DENSE = "torchtitan/models/llama3/infra/parallelize.py"
_MOE = "torchtitan/models/llama4/infra/parallelize.py"
_EXPERTS = "torchtitan/distributed/expert_parallel.py"
_PIPELINE = "torchtitan/distributed/pipeline_parallel.py"
_SCHEDULES = "torch/distributed/pipelining/schedules.py"
_CONTEXT = "torch/distributed/tensor/experimental/_context_parallel/_attention.py"

CONCEPTS = {
    "process-groups": how(
        "Three device meshes over the same ranks: one for loading data, one for dense parameters and one for experts. "
        "Pipeline ranks are outermost, then replicas, shards, context and tensor ranks; the order cannot be changed. A "
        "shard degree of -1 takes the ranks that are left.",
        f"{_DIMS}::ParallelDims.build_mesh",
        f"{_DIMS}::ParallelDims.get_mesh",
        memory="Dimensions of size 1 get no communicator.",
    ),
    "tensor-parallelism": how(
        "DTensor styles are laid over the modules of a block by a plan for each family of models: column-wise, then "
        "row-wise. Redistribution happens at the bounds of modules. With compilation, products and communication can "
        "be run piece by piece through symmetric memory.",
        f"{_DENSE}::apply_tp",
        "torchtitan/distributed/tensor_parallel.py::maybe_enable_async_tp",
        "torch/distributed/tensor/parallel/style.py::ColwiseParallel",
        memory="Matrices are cut by the degree, then by FSDP along their first dimension.",
        moves=("tensor",),
    ),
    "sequence-parallelism": how(
        "Part of every plan in this version: norms work on the shard, the inputs of attention and feed-forward are "
        "gathered and their outputs scattered. The gathered input is kept for the weight gradient, so the backward "
        "pass does not gather it again.",
        f"{_DENSE}::apply_tp",
        "torch/distributed/tensor/parallel/style.py::SequenceParallel",
        "torch/distributed/tensor/parallel/style.py::PrepareModuleInput",
        memory="Residuals are cut by the tensor degree; inputs of attention and feed-forward are whole.",
        moves=("tensor", "norm_gradients"),
    ),
    "vocabulary-parallelism": how(
        "The embedding is cut over the vocabulary and hands on shards of the sequence; the output layer is cut over "
        "the vocabulary. The loss works on the pieces unless parallel loss is switched off, which gathers the logits. "
        "Nothing is padded: the vocabulary is that of the model's flavor.",
        f"{_DENSE}::apply_tp",
        "torch/distributed/tensor/parallel/loss.py::loss_parallel",
        "torchtitan/distributed/utils.py::get_train_context",
        memory="Logits are tokens x vocabulary / tensor ranks with parallel loss, tokens x vocabulary without.",
        moves=("vocabulary",),
    ),
    "context-parallelism": how(
        "The batch is cut along the sequence before the model runs, in balanced pairs by default, and attention is "
        "replaced by torch's context-parallel one. Keys and values are all-gathered and their gradients go round "
        "a ring. Context ranks are part of the FSDP mesh.",
        "torchtitan/distributed/context_parallel.py::prepare_context_parallel_input",
        "torchtitan/distributed/context_parallel.py::apply_cp_to_attention_module",
        f"{_CONTEXT}::_templated_ring_attention",
        f"{_CONTEXT}::_templated_ring_attention_backward",
        memory="Activations are cut by the degree; each layer's keys and values are whole while its attention runs.",
        moves=("context",),
        options=("parallelism.context_parallel_load_balancer",),
    ),
    "expert-parallelism": how(
        "Expert ranks are borrowed from shard, context and, with an expert tensor degree of 1, tensor ranks, within "
        "one replica. Experts are a stacked tensor cut along its first dimension, and FSDP shards what is left over "
        "the ranks that hold the same experts.",
        f"{_DIMS}::ParallelDims",
        f"{_EXPERTS}::ExpertParallel",
        f"{_MOE}::apply_moe_ep_tp",
        memory="Experts and their states are cut by expert and expert data ranks together.",
        moves=("experts", "gradients"),
    ),
    "expert-tensor-parallelism": how(
        "Either 1 or the tensor degree. With 1, tensor ranks are expert ranks too and tokens are split over them; with "
        "the tensor degree each expert is cut and tokens are whole.",
        f"{_EXPERTS}::ExpertTensorParallel",
        f"{_EXPERTS}::ReordererSequenceParallel",
        moves=("experts",),
    ),
    "token-dispatch": how(
        "Tokens are sorted by expert and exchanged by all-to-all, with the counts beforehand; DeepEP can "
        "take over. No token is ever dropped. Under DualPipeV the exchange of one micro batch can run beside another's "
        "computation.",
        f"{_EXPERTS}::ExpertParallel._token_dispatch",
        f"{_EXPERTS}::DeepEPExpertParallel",
        "torchtitan/models/moe/moe.py::TokenReorderer",
        memory="A rank holds as many copies as its experts are sent, padded to the alignment of the grouped product.",
        moves=("experts",),
        options=("parallelism.expert_parallel_comm_backend", "parallelism.pipeline_parallel_expert_parallel_overlap"),
    ),
    "routing": how(
        "Scores by softmax or sigmoid, with an optional limit to groups of experts. Load is balanced without a loss: a "
        "bias per expert moves by a fixed step against the sign of its surplus, with counts summed over ranks in a "
        "hook of the optimizer. There is no auxiliary loss.",
        "torchtitan/models/moe/moe.py::TokenChoiceTopKRouter",
        "torchtitan/components/optimizer.py::build_optimizers_with_moe_load_balancing",
        options=("debug.moe_force_load_balance",),
    ),
    "pipeline-parallelism": how(
        "The model is built on the meta device for every stage, modules that do not belong are removed, and torch's "
        "pipelining runs the schedule over the local batch. Shapes are found by a first run. FSDP and tensor "
        "parallelism apply to each part.",
        f"{_PIPELINE}::pipeline_llm",
        f"{_PIPELINE}::pipeline_module_split",
        "torch/distributed/pipelining/stage.py::PipelineStage",
        memory="Gathered parameters stay whole by default, and unsharded gradients until the last micro batch.",
        moves=("pipeline", "parameters", "gradients"),
    ),
    "pipeline-schedules": how(
        "Every schedule of torch by its name: 1F1B, GPipe, interleaved 1F1B, looped BFS, interleaved zero bubble, ZBV "
        "and DualPipeV, or one read from a CSV file.",
        f"{_PIPELINE}::build_pipeline_schedule",
        f"{_SCHEDULES}::get_schedule_class",
        f"{_SCHEDULES}::ScheduleInterleavedZeroBubble",
        memory="Zero-bubble schedules keep the inputs of weight gradients longer.",
        moves=("pipeline",),
    ),
    "interleaving": how(
        "The schedule decides: single-stage ones have one stage per rank, the others two or more, by layers per stage "
        "where that is stated. V-shaped schedules have two stages per rank, the second in reverse order.",
        f"{_PIPELINE}::pipeline_llm",
        f"{_SCHEDULES}::ScheduleInterleaved1F1B",
        f"{_SCHEDULES}::ScheduleZBVZeroBubble",
        moves=("pipeline",),
    ),
    "stage-split": how(
        "Evenly, with embedding and output layer counted as so many layers, or by a list of module names for each "
        "part.",
        f"{_PIPELINE}::generate_llm_fqn_per_model_part",
        f"{_PIPELINE}::pipeline_module_split",
    ),
    "tied-embeddings": how(
        "Only some families tie them (qwen3's small flavors), by one parameter with two names; under a pipeline that "
        "is not supported.",
        "torchtitan/models/qwen3/model/model.py::Qwen3Model",
    ),
}
