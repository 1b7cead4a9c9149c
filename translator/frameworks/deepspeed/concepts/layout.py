"""DeepSpeed on parallel axes, their ranks and what travels between them."""

from __future__ import annotations

from translator.comparison.registry import how

PACKAGES = {"transformers": "5.24.0", "torch": "2.13.0"}

_GROUPS = "deepspeed/utils/groups.py"
_TP = "deepspeed/module_inject/"
_PIPE = "deepspeed/runtime/pipe/"
_EP = f"{_TP}auto_ep_layer.py"

CONCEPTS = {
    "process-groups": how(
        "Groups come from the side that needs them: a mesh of data and sequence ranks, a tensor group, expert groups, "
        "or the topology of a pipeline, or an object that the program hands over. Tensor ranks are neighbours, then "
        "sequence ranks; pipeline ranks are furthest apart.",
        f"{_GROUPS}::_create_expert_and_data_parallel",
        f"{_PIPE}topology.py::PipeModelDataParallelTopology",
        "deepspeed/comm/comm.py::initialize_mesh_device",
        memory="Each group that communicates brings an NCCL communicator with buffers of its own.",
    ),
    "tensor-parallelism": how(
        "AutoTP cuts the linear layers of a model that knows nothing of it, by name, by a preset or by patterns. "
        "Row-cut layers all-reduce their output; the backward pass all-reduces the gradient of each column-cut "
        "layer's input, query, key, value, gate and up apart. Models that are parallel by themselves bring their own "
        "way.",
        f"{_TP}auto_tp.py::AutoTP",
        f"{_TP}layers.py::LinearAllreduce",
        f"{_TP}layers.py::ColumnParallel.backward",
        memory="Linear weights are cut; embedding, norms and activations between layers are not.",
        moves=("tensor",),
        options=("tensor_parallel.preset_model", "tensor_parallel.partition_config"),
    ),
    "sequence-parallelism": how(
        "None in the sense of this page: AutoTP keeps residuals and norms whole on every tensor rank. What DeepSpeed "
        "calls sequence parallelism is context parallelism here.",
        f"{_TP}layers.py::TensorParallel_Layer",
        memory="Residuals and inputs of norms are there once per tensor rank.",
    ),
    "vocabulary-parallelism": how(
        "AutoTP leaves embedding and output head of a model in training whole, and every rank computes all logits; "
        "from 0.19.8 on the head and the loss can be cut over the vocabulary. Ulysses programs have losses that work "
        "on shards of the sequence or of the vocabulary.",
        f"{_TP}replace_module.py::replace_transformer_layer",
        "deepspeed/sequence/cross_entropy.py::vocab_sequence_parallel_cross_entropy",
        memory="Logits are tokens x vocabulary on every rank, and embedding and head are whole.",
        moves=("vocabulary",),
    ),
    "context-parallelism": how(
        "Ulysses: every rank has a piece of the sequence for everything but attention, where all-to-alls exchange "
        "pieces of the sequence for heads. The degree may not exceed the heads; keys and values are copied where they "
        "are fewer. The Trainer registers it as an attention implementation; ZeRO shards over these ranks as well.",
        "deepspeed/runtime/sequence_parallel/ulysses_sp.py::UlyssesSPAttentionHF.forward",
        "deepspeed/sequence/layer.py::single_all_to_all",
        "deepspeed/sequence/layer.py::DistributedAttention",
        memory="Activations are cut by the degree; attention holds whole sequences of a share of the heads.",
        moves=("context",),
    ),
    "expert-parallelism": how(
        "AutoEP replaces the MoE layers of known models of transformers by layers of its own, with expert ranks taken "
        "from data ranks; programs can use DeepSpeed's MoE layer instead. Gradients of experts are reduced over the "
        "ranks that hold the same ones.",
        f"{_TP}auto_ep.py::AutoEP.replace_moe_layers",
        f"{_EP}::AutoEPMoELayer",
        "deepspeed/moe/layer.py::MoE",
        memory="Experts are cut by the expert degree, their optimizer states by the ranks that share them as well.",
        moves=("experts", "gradients"),
        options=("expert_parallel.preset_model", "expert_parallel.moe_layer_pattern"),
    ),
    "expert-tensor-parallelism": how(
        "Experts are whole in this version; in DeepSpeed's own MoE layer a switch cuts them like the rest of a model "
        "that is tensor-parallel by itself.",
        "deepspeed/moe/layer.py::MoE",
        f"{_TP}auto_ep_config.py::parse_autoep_config",
    ),
    "token-dispatch": how(
        "AutoEP sorts tokens by expert and exchanges them by all-to-all with uneven splits, without dropping any. The "
        "MoE layer fills fixed capacities, drops the rest or none, and exchanges equal pieces.",
        f"{_EP}::compute_split_plan",
        f"{_EP}::permute_by_local_expert",
        "deepspeed/moe/sharded_moe.py::MOELayer.forward",
        memory="A rank holds as many copies as its experts are sent; the MoE layer holds its capacity.",
        moves=("experts",),
        options=("expert_parallel.combine_impl", "expert_parallel.use_grouped_mm"),
    ),
    "routing": how(
        "AutoEP takes the router's weights over and computes scores by softmax or sigmoid, normalised or scaled as the "
        "model is. The auxiliary loss is that of the model, and a bias can balance load without a loss.",
        "deepspeed/moe/ep_router.py::TokenChoiceTopKRouter",
        "deepspeed/moe/sharded_moe.py::topkgating",
        options=("expert_parallel.load_balance_coeff", "expert_parallel.score_func", "expert_parallel.route_scale"),
    ),
    "pipeline-parallelism": how(
        "The program builds a PipelineModule from a list of layers; no key does. The engine then runs whole steps and "
        "sends tensors one by one, their shapes beforehand. With ZeRO only stage 1 is possible.",
        f"{_PIPE}module.py::PipelineModule",
        f"{_PIPE}engine.py::PipelineEngine.train_batch",
        f"{_PIPE}engine.py::PipelineEngine._exec_send_activations",
        memory="As many micro batches in flight as there are stages left.",
        moves=("pipeline",),
        options=("pipeline.pipe_partitioned", "pipeline.grad_partitioned"),
    ),
    "pipeline-schedules": how(
        "1F1B alone, as a generator of instructions; a class of one's own can say otherwise.",
        f"{_PIPE}schedule.py::TrainSchedule",
        f"{_PIPE}schedule.py::PipeSchedule",
        memory="Idle share: (stages - 1) / micro batches of the time of all passes.",
        moves=("pipeline",),
    ),
    "interleaving": how(
        "None: one stage per rank.",
        f"{_PIPE}schedule.py::TrainSchedule",
    ),
    "stage-split": how(
        "By number of parameters, evenly, or by layers whose class has a name, as the program says.",
        f"{_PIPE}module.py::PipelineModule._partition_layers",
        "deepspeed/runtime/utils.py::partition_balanced",
    ),
    "tied-embeddings": how(
        "A tied layer specification puts a copy on each stage that uses it and all-reduces the gradients; without a "
        "pipeline it is one parameter of the model.",
        f"{_PIPE}module.py::TiedLayerSpec",
        f"{_PIPE}module.py::PipelineModule.allreduce_tied_weight_gradients",
        memory="With a pipeline the matrix is there once per stage that uses it.",
    ),
}
