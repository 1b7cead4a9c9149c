"""torchtitan on who holds what, and when it is gathered."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.subject import Subject

_RESHARD = "parallelism.fsdp_reshard_after_forward"


def _old(subject: Subject) -> bool:
    """Whether the version has TOML and the older modules."""
    return subject.version < (0, 3)


def _at(subject: Subject, old: str, new: str) -> str:
    """The upstream line of the older or the newer modules."""
    return f"{old} (torchtitan 0.2.2)" if _old(subject) else f"{new} (torchtitan 0.3.0)"


@stance("D330")
def sharded_state(subject: Subject) -> Stance | None:
    """Everything; parameters are kept longer under a pipeline."""
    sharding = subject.leaf("parallel.data.sharding")
    if sharding == "none":
        says = "keeps parameters, gradients and optimizer states whole on every rank"
        ways = dict.fromkeys(("full, freed", "full, kept"), "set parallelism.data_parallel_shard_degree = -1")
        return Stance("none", says, "models/llama3/infra/parallelize.py:149 (torchtitan 0.2.2)", None, ways)
    if sharding != "full":
        return None
    source = _at(subject, "models/llama3/infra/parallelize.py:319", "distributed/fsdp.py:54")
    if subject.leaf("parallel.data.reshard_after_forward"):
        says = "shards everything and gathers a layer's parameters for its forward and again for its backward pass"
        ways = {"full, kept": f'set {_RESHARD} = "never"'}
        return Stance("full, freed", says, source, _RESHARD, ways)
    says = "shards everything between steps, and keeps a layer's parameters from its first forward pass on"
    ways = {"full, freed": f'set {_RESHARD} = "always" (without a pipeline it is the default)'}
    return Stance("full, kept", says, source, _RESHARD, ways)


@stance("D331")
def gradient_reduction(subject: Subject) -> Stance:
    """Every micro batch; once a step under a pipeline."""
    if subject.size("parallel.pipeline.degree") > 1:
        says = "adds up whole gradients of its stages and reduces them with the last pipeline micro batch"
        return Stance("once a step", says, "torch/distributed/pipelining/stage.py:846 (torch 2.13)")
    says = "reduces the gradients of every micro batch and keeps its share (there is no way to put it off)"
    if subject.leaf("parallel.data.sharding") == "none":
        says = "reduces the whole gradients of every micro batch"
    source = _at(subject, "models/llama3/infra/parallelize.py:335", "distributed/fsdp.py:188")
    return Stance("every micro batch", says, source)


@stance("D332")
def bucket_unit(subject: Subject) -> Stance:
    """A transformer layer, or DDP's buckets."""
    if subject.leaf("parallel.data.sharding") == "none":
        says = "fills buckets of 100 MB"
        return Stance("bytes", says, "models/llama3/infra/parallelize.py:372 (torchtitan 0.2.2)")
    says = "reduces the gradients of one transformer layer at a time"
    return Stance("layers", says, _at(subject, "models/llama3/infra/parallelize.py:342", "distributed/fsdp.py:195"))


@stance("D333")
def replicas(subject: Subject) -> Stance:
    """All state is sharded within a replica."""
    if subject.size("parallel.data.replicate") == 1:
        says = "shards over all data-parallel ranks, without replicas"
        ways = {"in each replica": "set parallelism.data_parallel_replicate_degree"}
        return Stance("over all ranks", says, _at(subject, "distributed/parallel_dims.py:98", _MESH), None, ways)
    if subject.leaf("parallel.data.sharding") == "none":
        says, kind = "keeps all state on every rank", "on every rank"
    else:
        says, kind = "shards all state inside each replica and sums gradients over the replicas", "in each replica"
    source = _at(subject, "distributed/parallel_dims.py:98", _MESH)
    return Stance(kind, says, source, "parallelism.data_parallel_replicate_degree")


_MESH = "distributed/parallel_dims.py:239"


@stance("D334")
def recomputation(subject: Subject) -> Stance | None:
    """By operator, by every n-th layer, by a budget, or every layer."""
    mode, method = subject.leaf("recompute.mode"), subject.leaf("recompute.method")
    option = "activation_checkpoint.mode" if _old(subject) else "activation_checkpoint"
    source = _at(subject, "distributed/activation_checkpoint.py:173", "distributed/activation_checkpoint.py:166")
    if _old(subject):
        ways = {
            "none": 'set activation_checkpoint.mode = "none"',
            "every 1 layers": 'set activation_checkpoint.mode = "full"',
        }
    else:
        ways = {"none": "set activation_checkpoint=None", "every 1 layers": "set activation_checkpoint=FullAC.Config()"}
    if mode == "none":
        return Stance("none", "recomputes nothing", source, option, ways)
    if mode == "full":
        says = "recomputes every layer and stores the input of every layer"
        return Stance("every 1 layers", says, source, option, ways)
    if method == "every_nth":
        nth = subject.leaf("recompute.layers")
        says = f"recomputes one layer in {nth} and stores the others"
        where = "distributed/activation_checkpoint.py:39 (torchtitan 0.2.2)"
        return Stance(f"each {nth}th", says, where, "activation_checkpoint.selective_ac_option", ways)
    if method == "operators":
        says = "recomputes by operator in every layer: attention and every other matrix product are stored"
        if not _old(subject):
            says = "recomputes by operator in every layer: a list of costly operators is stored"
        where = _at(subject, "distributed/activation_checkpoint.py:114", "distributed/activation_checkpoint.py:31")
        return Stance("operators", says, where, option, ways)
    if method == "memory_budget":
        says = "lets the compiler choose what to recompute within a memory budget"
        return Stance("budget", says, source, option, ways)
    return None


@stance("D335")
def sequence_parallelism(subject: Subject) -> Stance:
    """Always with tensor parallelism, until a switch came with 0.3.0."""
    if _old(subject):
        says = "always splits the sequence between tensor-parallel layers"
        return Stance("split", says, "models/llama3/infra/parallelize.py:169 (torchtitan 0.2.2)")
    option = "parallelism.enable_sequence_parallel"
    ways = {"split": f"set {option}=True", "whole": f"set {option}=False"}
    if subject.leaf("parallel.sequence_parallel"):
        says = "splits the sequence between tensor-parallel layers unless told not to"
        return Stance("split", says, "config/configs.py:160 (torchtitan 0.3.0)", option, ways)
    says = "keeps the whole sequence on every tensor-parallel rank, as told"
    return Stance("whole", says, "config/configs.py:160 (torchtitan 0.3.0)", option, ways)


@stance("D336")
def context_exchange(subject: Subject) -> Stance | None:
    """All-gather; the rotate method changes nothing in training."""
    method = subject.leaf("parallel.context_method")
    if method is None:
        return None
    option = "parallelism.context_parallel_load_balancer"
    balancer = subject.value(option, "headtail")
    cut = "balanced" if balancer else "plain"
    says = f"gathers all keys and values, with the sequence cut in {'balanced pairs' if balancer else 'plain pieces'}"
    source = _at(subject, "distributed/context_parallel.py:142", "distributed/context_parallel/api.py:170")
    return Stance(f"{method}, {cut}", says, source, option)


@stance("D337")
def expert_ranks(subject: Subject) -> Stance:
    """Data, context and tensor ranks of one replica."""
    source = _at(subject, "distributed/parallel_dims.py:138", "distributed/parallel_dims.py:279")
    where = ", within a replica" if subject.size("parallel.data.replicate") > 1 else ""
    option = "parallelism.expert_parallel_degree"
    if subject.size("parallel.tensor") > 1 and subject.leaf("parallel.expert_tensor") == 1:
        says = f"takes expert ranks from data, context and tensor ranks{where}"
        return Stance(f"tensor ranks too{where}", says, source, option)
    says = f"takes expert ranks from data and context ranks{where}"
    return Stance(f"data ranks{where}", says, source, option)


@stance("D338")
def expert_tensor(subject: Subject) -> Stance | None:
    """1 unless told otherwise; no option at all from 0.3.0 on."""
    degree = subject.leaf("parallel.expert_tensor")
    if degree is None:
        return None
    option = "parallelism.expert_tensor_parallel_degree"
    if degree == 1:
        how = ", unless told otherwise" if _old(subject) and not subject.stated(option) else ""
        source = _at(subject, "distributed/parallel_dims.py:59", "distributed/parallel_dims.py:239")
        ways = {f"cut into {n}": f"set {option} = {n}" for n in (2, 4, 8)} if _old(subject) else {}
        return Stance("whole", f"leaves each expert whole{how}", source, option, ways)
    says = f"cuts each expert into {degree}"
    if subject.version < (0, 2):
        says += ", since tensor parallelism splits them"
        return Stance(f"cut into {degree}", says, "experiments/llama4/infra/parallelize.py:173 (torchtitan 0.1.0)")
    return Stance(f"cut into {degree}", says, "distributed/parallel_dims.py:59 (torchtitan 0.2.2)", option)


@stance("D340")
def stage_split(subject: Subject) -> Stance | None:
    """Embedding and head count as layers unless told otherwise."""
    split = subject.leaf("parallel.pipeline.layer_split")
    if not split:
        return None
    first, last = (
        subject.value(f"parallelism.pipeline_parallel_{end}_stage_less_layers", 1) for end in ("first", "last")
    )
    how = f", counting the embedding as {first} and the head as {last} layers"
    if subject.value("parallelism.module_fqns_per_model_part"):
        how = ", as listed by module"
    says = f"gives its stages {', '.join(map(str, split))} layers{how}"
    source = _at(subject, "distributed/pipeline_parallel.py:267", "distributed/pipeline_parallel.py:84")
    if subject.version < (0, 2):
        says = f"gives its stages {', '.join(map(str, split))} layers, counting the embedding and the head as one each"
        source = "distributed/pipeline.py:99 (torchtitan 0.1.0)"
    option = "parallelism.pipeline_parallel_first_stage_less_layers"
    return Stance(str(split), says, source, option, {"other": f"set {option} and its twin for the last stage"})


@stance("D341")
def pipeline_schedule(subject: Subject) -> Stance | None:
    """The schedule by its torch name; two stages per rank unless told otherwise."""
    chunks = subject.leaf("parallel.pipeline.stages_per_rank")
    schedule = subject.leaf("parallel.pipeline.schedule")
    if schedule is None or chunks is None:
        return None
    name = subject.value("parallelism.pipeline_parallel_schedule", schedule)
    says = f"runs {name} with {chunks} stage{'s' if chunks > 1 else ''} per rank"
    ways = {
        f"interleaved_1f1b {n}": 'set pipeline_parallel_schedule = "Interleaved1F1B" and the layers per stage'
        for n in range(2, 17)
    }
    source = _at(subject, "distributed/pipeline_parallel.py:58", "distributed/pipeline_parallel.py:206")
    return Stance(f"{schedule} {chunks}", says, source, "parallelism.pipeline_parallel_schedule", ways)


@stance("D342")
def tied_across_stages(subject: Subject) -> Stance:
    """Tied embeddings and a pipeline do not go together."""
    if not subject.leaf("model.tied_embeddings"):
        source = _at(subject, "models/llama3/model/model.py:479", "models/common/decoder.py:206")
        return Stance("two matrices", "has a matrix of its own at each end", source)
    says = "fails when the weights are initialised" if _old(subject) else "refuses tied embeddings under a pipeline"
    source = _at(subject, "models/qwen3/model/model.py:500", "models/common/decoder.py:139")
    return Stance("refused", says, source, "parallelism.pipeline_parallel_degree")


@stance("D343")
def rank_order(subject: Subject) -> Stance | None:
    """Fixed: tensor innermost, pipeline outermost."""
    order = subject.leaf("parallel.rank_order")
    if order is None:
        return None
    says = "always puts pipeline parallelism outermost"
    return Stance(order, says, _at(subject, "distributed/parallel_dims.py:98", _MESH))


@stance("D344")
def vocabulary_split(subject: Subject) -> Stance:
    """Split; the loss is gathered first where parallel loss is off."""
    option = "parallelism.disable_loss_parallel"
    source = _at(subject, "models/llama3/infra/parallelize.py:184", "components/loss.py:69")
    if subject.leaf("parallel.loss_parallel") is False:
        says = "splits embedding and output head and gathers the logits for the loss"
        return Stance("logits gathered", says, source, option, {"split": f"set {option} = false"})
    return Stance("split", "splits embedding, output head and loss over the vocabulary", source, option)


@stance("D345")
def offloaded_state(subject: Subject) -> Stance:
    """Parameters, gradients and optimizer states together."""
    option = "training.enable_cpu_offload"
    source = _at(subject, "models/llama3/infra/parallelize.py:317", "distributed/fsdp.py:174")
    if not subject.value(option):
        ways = {"everything": f"set {option} = true", "optimizer": f"set {option} = true (parameters go as well)"}
        return Stance("nothing", "keeps all state on the GPU", source, None, ways)
    says = "moves parameters, gradients and optimizer states to the host and updates them there"
    return Stance("everything", says, source, option, {"nothing": f"set {option} = false"})
