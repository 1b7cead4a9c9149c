"""DeepSpeed on who holds what, and when it is gathered."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.frameworks.deepspeed.stances.programs import of_transformers
from translator.subject import Subject

_ZERO = "zero_optimization."
_STAGE = f"{_ZERO}stage"
_STAGE_12 = "deepspeed/runtime/zero/stage_1_and_2.py"
_ETP = "deepspeed/module_inject/auto_ep_config.py:50 (0.19.8)"
_STAGES = {
    "none": f"set {_STAGE} to 0",
    "optimizer": f"set {_STAGE} to 1",
    "optimizer_gradients": f"set {_STAGE} to 2",
    "full, freed": f"set {_STAGE} to 3",
}


@stance("D330")
def sharded_state(subject: Subject) -> Stance | None:
    """What the ZeRO stage says."""
    sharding = subject.leaf("parallel.data.sharding")
    if sharding == "none":
        says = "keeps parameters, gradients and optimizer states whole on every rank (stage 0)"
        return Stance("none", says, "deepspeed/runtime/engine.py:2579 (0.19.2)", _STAGE, _STAGES)
    if sharding == "optimizer":
        says = "shards the optimizer states alone and gathers whole parameters after each step (ZeRO-1)"
        return Stance("optimizer", says, f"{_STAGE_12}:2255 (0.19.2)", _STAGE, _STAGES)
    if sharding == "optimizer_gradients":
        says = "shards gradients and optimizer states and gathers whole parameters after each step (ZeRO-2)"
        return Stance("optimizer_gradients", says, f"{_STAGE_12}:2255 (0.19.2)", _STAGE, _STAGES)
    if sharding != "full":
        return None
    says = "shards everything and gathers parameters for the forward and again for the backward pass (ZeRO-3)"
    source = "deepspeed/runtime/zero/partitioned_param_coordinator.py:473 (0.19.2)"
    return Stance("full, freed", says, source, _STAGE, _STAGES)


@stance("D331")
def gradient_reduction(subject: Subject) -> Stance | None:
    """Once a step up to stage 1, every micro batch from stage 2 on."""
    sharding = subject.leaf("parallel.data.sharding")
    if sharding is None:
        return None
    ways = {"every micro batch": f"set {_STAGE} to 2 or 3", "once a step": f"set {_STAGE} to 0 or 1"}
    source = "deepspeed/runtime/engine.py:2574 (0.19.2)"
    if sharding in ("optimizer_gradients", "full"):
        says = "reduces the gradients of every micro batch and keeps its share"
        return Stance("every micro batch", says, source, _STAGE, ways)
    says = "adds up whole gradients and reduces them with the last micro batch"
    return Stance("once a step", says, source, _STAGE, ways)


@stance("D332")
def bucket_unit(subject: Subject) -> Stance | None:
    """Elements, a number that may also be written as 5e8."""
    elements = subject.value(f"{_ZERO}reduce_bucket_size")
    if not isinstance(elements, int | float):
        return None
    says = f"fills buckets of {int(elements):,} elements"
    option = f"{_ZERO}reduce_bucket_size"
    return Stance(f"{int(elements)} elements", says, "deepspeed/runtime/zero/config.py:113 (0.19.2)", option)


@stance("D333")
def replicas(subject: Subject) -> Stance:
    """MiCS shards inside a group; hpZ keeps a second copy of the parameters per group."""
    group, second = subject.value(f"{_ZERO}mics_shard_size", -1), subject.value(f"{_ZERO}zero_hpz_partition_size", 1)
    if isinstance(group, int) and group > 0:
        says = f"shards all state inside groups of {group} ranks (MiCS)"
        source = "deepspeed/runtime/zero/mics.py:63 (0.19.2)"
        return Stance("in each replica", says, source, f"{_ZERO}mics_shard_size")
    if isinstance(second, int) and second > 1:
        says = f"shards all state over all ranks and keeps a second copy of the parameters per {second} ranks (hpZ)"
        source = "deepspeed/runtime/zero/config.py:309 (0.19.2)"
        return Stance("second copy of parameters", says, source, f"{_ZERO}zero_hpz_partition_size")
    if subject.leaf("parallel.data.sharding") == "none":
        says = "keeps all state on every rank"
        return Stance("on every rank", says, "deepspeed/runtime/engine.py:2579 (0.19.2)", _STAGE)
    says = "shards over all data-parallel ranks, without replicas"
    ways = {"in each replica": f"set {_ZERO}mics_shard_size and initialise with deepspeed.zero.MiCS_Init"}
    if subject.version >= (0, 19, 8):
        ways = {}
    return Stance("over all ranks", says, "deepspeed/runtime/zero/config.py:309 (0.19.2)", None, ways)


@stance("D334")
@of_transformers
def recomputation(subject: Subject) -> Stance | None:
    """The model's own checkpointing of every layer; the section of the JSON switches nothing on."""
    mode = subject.leaf("recompute.mode")
    option = "hf.gradient_checkpointing"
    source = "transformers/trainer.py:1524 (5.24.0)"
    ways = {"none": "set gradient_checkpointing to false", "every 1 layers": "set gradient_checkpointing to true"}
    if mode == "none":
        says = "recomputes nothing"
        if subject.stated("activation_checkpointing.partition_activations"):
            says += ": the section activation_checkpointing alone switches nothing on"
        return Stance("none", says, source, option, ways)
    if mode == "full":
        says = "recomputes every layer and stores the input of every layer"
        return Stance(f"every {subject.leaf('recompute.layers') or 1} layers", says, source, option, ways)
    return None


@stance("D335")
@of_transformers
def sequence_parallelism(subject: Subject) -> Stance:
    """Never with AutoTP."""
    _ = subject
    says = "keeps the whole sequence on every tensor-parallel rank (AutoTP splits linear layers alone)"
    return Stance("whole", says, "deepspeed/module_inject/auto_tp.py:389 (0.19.2)", "tensor_parallel.autotp_size")


@stance("D336")
def context_exchange(subject: Subject) -> Stance | None:
    """All-to-all over heads."""
    method = subject.leaf("parallel.context_method")
    if method is None:
        return None
    says = "hands whole sequences of some heads to each rank by all-to-all (Ulysses)"
    return Stance(f"{method}, by heads", says, "deepspeed/sequence/layer.py:221 (0.19.2)")


@stance("D337")
def expert_ranks(subject: Subject) -> Stance:
    """Data-parallel ranks of one pipeline stage."""
    _ = subject
    says = "takes expert ranks from data-parallel ranks"
    return Stance("data ranks", says, "deepspeed/utils/groups.py:240 (0.19.2)", "expert_parallel.autoep_size")


@stance("D338")
def expert_tensor(subject: Subject) -> Stance | None:
    """Experts are left whole unless the newest versions are told otherwise."""
    degree = subject.leaf("parallel.expert_tensor")
    if degree is None:
        return None
    option = "expert_parallel.expert_tensor_parallel_size"
    if degree == 1:
        says = "leaves each expert whole"
        return Stance("whole", says, "deepspeed/moe/layer.py:52 (0.19.2)", option)
    return Stance(f"cut into {degree}", f"cuts each expert into {degree}", _ETP, option)


@stance("D340")
def stage_split(subject: Subject) -> Stance | None:
    """By the number of parameters, unless the program says otherwise."""
    split = subject.leaf("parallel.pipeline.layer_split")
    if not split:
        return None
    says = f"gives its stages {', '.join(map(str, split))} layers (by parameters unless the program says otherwise)"
    return Stance(str(split), says, "deepspeed/runtime/pipe/module.py:133 (0.19.2)")


@stance("D341")
def pipeline_schedule(subject: Subject) -> Stance | None:
    """1F1B with one stage per rank."""
    schedule, chunks = subject.leaf("parallel.pipeline.schedule"), subject.leaf("parallel.pipeline.stages_per_rank")
    if schedule is None or chunks is None:
        return None
    says = "runs 1F1B with one stage per rank and has no other schedule"
    return Stance(f"{schedule} {chunks}", says, "deepspeed/runtime/pipe/schedule.py:189 (0.19.2)")


@stance("D342")
def tied_across_stages(subject: Subject) -> Stance:
    """Copies whose gradients are added."""
    if not subject.leaf("model.tied_embeddings"):
        return Stance(
            "two matrices", "has a matrix of its own at each end", "deepspeed/runtime/pipe/module.py:77 (0.19.2)"
        )
    says = "keeps a copy on each stage that uses the matrix and adds their gradients"
    return Stance("two copies", says, "deepspeed/runtime/pipe/engine.py:152 (0.19.2)")


@stance("D343")
def rank_order(subject: Subject) -> Stance | None:
    """Tensor innermost, pipeline outermost."""
    order = subject.leaf("parallel.rank_order")
    if order is None:
        return None
    says = "puts pipeline parallelism outermost and tensor parallelism innermost"
    return Stance(order, says, "deepspeed/runtime/pipe/topology.py:248 (0.19.2)")


@stance("D344")
@of_transformers
def vocabulary_split(subject: Subject) -> Stance:
    """AutoTP leaves the embedding and, in training, the head whole."""
    option = "tensor_parallel.vocab_parallel_lm_head"
    if subject.value(option):
        says = "leaves the embedding whole and splits output head and loss over the vocabulary"
        return Stance("head split", says, "deepspeed/runtime/engine.py:1057 (0.19.8)", option)
    says = "leaves embedding and output head whole, so that every rank computes all logits"
    source = "deepspeed/module_inject/auto_tp.py:391 (0.19.2)"
    return Stance("whole", says, source, "tensor_parallel.autotp_size")


@stance("D345")
def offloaded_state(subject: Subject) -> Stance:
    """Optimizer states, or parameters as well."""
    optimizer = subject.value(f"{_ZERO}offload_optimizer.device", "none")
    parameters = subject.value(f"{_ZERO}offload_param.device", "none")
    source = f"{_STAGE_12}:178 (0.19.2)"
    if optimizer in (None, "none") and parameters in (None, "none"):
        ways = {
            "optimizer": f'set {_ZERO}offload_optimizer to {{"device": "cpu"}}',
            "everything": f"set {_ZERO}offload_optimizer and {_ZERO}offload_param at stage 3",
        }
        return Stance("nothing", "keeps all state on the GPU", source, None, ways)
    if parameters in (None, "none"):
        says = f"moves gradients and optimizer states to {_device(optimizer)} and updates them on the CPU"
        return Stance("optimizer", says, source, f"{_ZERO}offload_optimizer.device")
    if optimizer in (None, "none"):
        says = f"moves parameters to {_device(parameters)} and keeps optimizer states on the GPU"
        return Stance("parameters", says, source, f"{_ZERO}offload_param.device")
    says = "moves parameters, gradients and optimizer states off the GPU and updates them on the CPU"
    return Stance("everything", says, source, f"{_ZERO}offload_param.device")


def _device(name: object) -> str:
    return "NVMe" if str(name) == "nvme" else "the host"
