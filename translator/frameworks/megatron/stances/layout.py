"""Megatron-LM on who holds what, and when it is gathered."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.subject import Subject

_DDP = "megatron/core/distributed/distributed_data_parallel.py"
_BUFFERS = "megatron/core/distributed/param_and_grad_buffer.py"
_FSDP = "megatron/core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py"
_GROUPS = "megatron/core/parallel_state.py"
_CONFIG = "megatron/core/transformer/transformer_config.py"
_WITHOUT_SHARDING = {
    "optimizer": "add --use-distributed-optimizer",
    "full, freed": "add --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params",
    "optimizer_gradients": "add --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads",
}


@stance("D330")
def sharded_state(subject: Subject) -> Stance | None:
    """The distributed optimizer shards its own states; its FSDP whatever the strategy names."""
    sharding = subject.leaf("parallel.data.sharding")
    if sharding == "none":
        says = "keeps parameters, gradients and optimizer states whole on every rank"
        option = "use_distributed_optimizer"
        return Stance("none", says, f"{_DDP}:69 (core 0.18.0)", option, _WITHOUT_SHARDING)
    if sharding == "optimizer":
        says = "shards the optimizer states alone and gathers whole parameters after each step"
        option = "use_distributed_optimizer"
        return Stance("optimizer", says, f"{_BUFFERS}:351 (core 0.18.0)", option, _WITHOUT_SHARDING)
    option = "data_parallel_sharding_strategy"
    if sharding == "optimizer_gradients":
        says = "shards gradients and optimizer states and keeps parameters whole"
        return Stance("optimizer_gradients", says, f"{_FSDP}:322 (core 0.18.0)", option, _WITHOUT_SHARDING)
    if sharding != "full":
        return None
    if subject.leaf("parallel.data.reshard_after_forward") is False:
        says = "shards everything and keeps a layer's parameters from its forward to its backward pass"
        source = "megatron/core/distributed/torch_fully_sharded_data_parallel.py:84 (core 0.18.0)"
        return Stance("full, kept", says, source, "torch_fsdp2_reshard_after_forward", _WITHOUT_SHARDING)
    says = "shards everything and gathers a layer's parameters for its forward and again for its backward pass"
    return Stance("full, freed", says, f"{_FSDP}:556 (core 0.18.0)", option, _WITHOUT_SHARDING)


@stance("D331")
def gradient_reduction(subject: Subject) -> Stance | None:
    """Once a step, unless gradients themselves are sharded."""
    sharding = subject.leaf("parallel.data.sharding")
    if sharding is None:
        return None
    if sharding in ("optimizer_gradients", "full"):
        says = "reduces the gradients of every micro batch and keeps its share"
        return Stance("every micro batch", says, f"{_FSDP}:716 (core 0.18.0)", "data_parallel_sharding_strategy")
    says = "adds up whole gradients in a buffer and reduces them with the last micro batch"
    return Stance("once a step", says, f"{_DDP}:480 (core 0.18.0)", "use_distributed_optimizer")


@stance("D332")
def bucket_unit(subject: Subject) -> Stance | None:
    """Elements; everything at once where reduction does not overlap; units of its FSDP by layer."""
    if subject.leaf("parallel.data.sharding") == "full":
        says = "reduces the gradients of one transformer layer at a time"
        return Stance("layers", says, f"{_FSDP}:544 (core 0.18.0)", "use_megatron_fsdp")
    if not subject.value("overlap_grad_reduce"):
        says = "reduces everything in one bucket, since reduction does not overlap (--ddp-bucket-size is ignored)"
        ways = {"elements": "add --overlap-grad-reduce and --ddp-bucket-size"}
        return Stance("all at once", says, f"{_DDP}:70 (core 0.18.0)", "overlap_grad_reduce", ways)
    elements = subject.value("ddp_bucket_size")
    if not elements:
        ranks = subject.size("parallel.data.degree") * subject.size("parallel.context")
        elements = max(40_000_000, 1_000_000 * ranks)
    says = f"fills buckets of {elements:,} elements"
    return Stance(f"{elements} elements", says, f"{_DDP}:69 (core 0.18.0)", "ddp_bucket_size")


@stance("D333")
def replicas(subject: Subject) -> Stance | None:
    """Optimizer states are kept per instance, or over all instances by an outer sharding."""
    if subject.size("parallel.data.replicate") == 1:
        says = "shards over all data-parallel ranks, without replicas"
        ways = {"in each replica": "set --num-distributed-optimizer-instances"}
        return Stance("over all ranks", says, f"{_GROUPS}:829 (core 0.18.0)", None, ways)
    if subject.leaf("parallel.data.sharding") == "none":
        says = "keeps all state on every rank"
        return Stance("on every rank", says, f"{_DDP}:69 (core 0.18.0)", "use_distributed_optimizer")
    if subject.value("outer_dp_sharding_strategy") == "optim":
        says = "shards parameters in each replica and optimizer states over all replicas as well"
        source = "megatron/core/distributed/distributed_data_parallel_config.py:162 (core 0.18.0)"
        return Stance("optimizer over all ranks", says, source, "outer_dp_sharding_strategy")
    says = "shards inside each instance of the optimizer and sums gradients over the instances"
    option = "num_distributed_optimizer_instances"
    return Stance("in each replica", says, f"{_GROUPS}:833 (core 0.18.0)", option)


@stance("D334")
def recomputation(subject: Subject) -> Stance | None:
    """Nothing, modules by name, or whole layers."""
    mode, layers = subject.leaf("recompute.mode"), subject.leaf("recompute.layers")
    ways = {
        "none": "leave --recompute-granularity out",
        "every 1 layers": "use --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
    }
    option = "recompute_granularity"
    if mode == "none":
        return Stance("none", "recomputes nothing", f"{_CONFIG}:472 (core 0.18.0)", None, ways)
    if mode == "selective":
        modules = ", ".join(subject.leaf("recompute.modules") or ["core_attn"])
        says = f"recomputes these modules of every layer: {modules}"
        return Stance(f"modules {modules}", says, f"{_CONFIG}:1583 (core 0.18.0)", "recompute_modules", ways)
    if mode == "full" and subject.leaf("recompute.method") == "block":
        says = f"recomputes the first {layers} layers of each pipeline stage"
        return Stance(f"first {layers}", says, f"{_CONFIG}:483 (core 0.18.0)", option, ways)
    if mode == "full":
        says = f"recomputes every layer and stores the input of every {_nth(layers)}"
        return Stance(f"every {layers} layers", says, f"{_CONFIG}:483 (core 0.18.0)", option, ways)
    return None


def _nth(layers: object) -> str:
    return "layer" if layers == 1 else f"{layers} layers"


@stance("D335")
def sequence_parallelism(subject: Subject) -> Stance:
    """Only when it is asked for."""
    ways = {"split": "add --sequence-parallel", "whole": "leave --sequence-parallel out"}
    source = "megatron/training/arguments.py:1377 (core 0.18.0)"
    if subject.leaf("parallel.sequence_parallel"):
        return Stance("split", "splits the sequence between the layers, as told", source, "sequence_parallel", ways)
    says = "keeps the whole sequence on every tensor-parallel rank, since --sequence-parallel is not given"
    return Stance("whole", says, source, "sequence_parallel", ways)


@stance("D336")
def context_exchange(subject: Subject) -> Stance | None:
    """A ring unless told otherwise, always in balanced cuts."""
    method = subject.leaf("parallel.context_method")
    if method is None:
        return None
    ways = {
        "all_gather, balanced": "set --cp-comm-type all_gather",
        "all_to_all, by heads": "set --cp-comm-type a2a",
        "ring, balanced": "set --cp-comm-type p2p",
    }
    says = f"exchanges keys and values by {str(method).replace('_', '-')}, with the sequence cut in balanced pairs"
    kind = f"{method}, by heads" if method == "all_to_all" else f"{method}, balanced"
    return Stance(kind, says, "megatron/core/utils.py:2311 (core 0.18.0)", "cp_comm_type", ways)


@stance("D337")
def expert_ranks(subject: Subject) -> Stance:
    """Whatever expert tensor and pipeline parallelism leave of the world, across replicas."""
    source = f"{_GROUPS}:783 (core 0.18.0)"
    replicated = subject.size("parallel.data.replicate") > 1 and subject.leaf("parallel.data.sharding") != "none"
    where = ", across replicas" if replicated else ""
    if subject.size("parallel.tensor") > 1 and subject.leaf("parallel.expert_tensor") == 1:
        says = f"takes expert ranks from data, context and tensor ranks{where}"
        return Stance(f"tensor ranks too{where}", says, source, "expert_model_parallel_size")
    says = f"takes expert ranks from data and context ranks{where}"
    return Stance(f"data ranks{where}", says, source, "expert_model_parallel_size")


@stance("D338")
def expert_tensor(subject: Subject) -> Stance | None:
    """The model's degree unless another is given."""
    degree = subject.leaf("parallel.expert_tensor")
    if degree is None:
        return None
    source = "megatron/training/arguments.py:585 (core 0.18.0)"
    ways = {"whole": "set --expert-tensor-parallel-size 1"}
    if degree == 1:
        return Stance("whole", "leaves each expert whole", source, "expert_tensor_parallel_size", ways)
    stated = subject.stated("expert_tensor_parallel_size")
    says = f"cuts each expert into {degree}" + ("" if stated else ", the tensor-parallel degree, unless told otherwise")
    return Stance(f"cut into {degree}", says, source, "expert_tensor_parallel_size", ways)


@stance("D340")
def stage_split(subject: Subject) -> Stance | None:
    """Evenly, unless the ends are given another number of layers."""
    split = subject.leaf("parallel.pipeline.layer_split")
    if not split:
        return None
    says = f"gives its stages {', '.join(map(str, split))} layers"
    source = "megatron/core/transformer/transformer_block.py:69 (core 0.18.0)"
    ways = {"other": "set --pipeline-model-parallel-layout"}
    return Stance(str(split), says, source, "pipeline_model_parallel_size", ways)


@stance("D341")
def pipeline_schedule(subject: Subject) -> Stance | None:
    """1F1B, interleaved where there are chunks."""
    chunks = subject.leaf("parallel.pipeline.stages_per_rank")
    schedule = subject.leaf("parallel.pipeline.schedule")
    if schedule is None or chunks is None:
        return None
    option = "num_layers_per_virtual_pipeline_stage"
    if chunks == 1:
        source = "megatron/core/pipeline_parallel/schedules.py:2055 (core 0.18.0)"
        return Stance(f"{schedule} 1", "runs 1F1B with one chunk per rank", source, "pipeline_model_parallel_size")
    says = f"interleaves {chunks} chunks per rank in 1F1B order"
    return Stance(
        f"{schedule} {chunks}", says, "megatron/core/pipeline_parallel/schedules.py:912 (core 0.18.0)", option
    )


@stance("D342")
def tied_across_stages(subject: Subject) -> Stance:
    """Two copies whose gradients are added."""
    if not subject.leaf("model.tied_embeddings"):
        says = "has a matrix of its own at each end"
        source = "megatron/core/models/gpt/gpt_model.py:262 (core 0.18.0)"
        return Stance("two matrices", says, source, "untie_embeddings_and_output_weights")
    says = "keeps a copy on the first and on the last stage and adds their gradients"
    source = "megatron/core/distributed/finalize_model_grads.py:164 (core 0.18.0)"
    return Stance("two copies", says, source, "untie_embeddings_and_output_weights")


@stance("D343")
def rank_order(subject: Subject) -> Stance | None:
    """Pipeline outermost, or data with a flag."""
    order = subject.leaf("parallel.rank_order")
    if order is None:
        return None
    outer = "data" if order.endswith("dp") else "pipeline"
    ways = {"tp-cp-ep-dp-pp": "leave --use-tp-pp-dp-mapping out", "tp-cp-ep-pp-dp": "add --use-tp-pp-dp-mapping"}
    says = f"puts {outer} parallelism outermost, so that its ranks are farthest apart"
    source = "megatron/training/initialize.py:355 (core 0.18.0)"
    return Stance(order, says, source, "use_tp_pp_dp_mapping", ways)


@stance("D344")
def vocabulary_split(subject: Subject) -> Stance:
    """Embedding, head and loss are always split."""
    _ = subject
    says = "splits embedding, output head and loss over the vocabulary"
    return Stance("split", says, "megatron/core/tensor_parallel/cross_entropy.py:122 (core 0.18.0)")


@stance("D345")
def offloaded_state(subject: Subject) -> Stance:
    """A share of the optimizer states, updated on the CPU."""
    source = "megatron/core/optimizer/__init__.py:502 (core 0.18.0)"
    if not subject.leaf("optimizer.offload"):
        ways = {"optimizer": "add --optimizer-cpu-offload --use-precision-aware-optimizer"}
        return Stance("nothing", "keeps all state on the GPU", source, None, ways)
    share = subject.value("optimizer_offload_fraction", 1.0)
    says = f"moves {share:.0%} of the optimizer states to the host and updates them there"
    return Stance("optimizer", says, source, "optimizer_cpu_offload", {"nothing": "leave --optimizer-cpu-offload out"})
