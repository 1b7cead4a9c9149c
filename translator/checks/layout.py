"""Layouts that run and waste: bubbles, slow links, padding."""

from __future__ import annotations

from collections.abc import Iterator

from translator.checks.registry import rule
from translator.findings import Level
from translator.subject import Remark, Subject

_PIPELINE = "parallel.pipeline.degree"
# Share of a step that a pipeline may idle before it is worth a word; a quarter is what 1F1B loses at 3 * (stages - 1)
# micro batches.
_IDLE = 0.25


@rule("P500")
def pipeline_idles(subject: Subject) -> Iterator[Remark]:
    """Few micro batches for a deep pipeline.

    Under 1F1B with v model chunks per rank each rank idles (p - 1) / v of the m micro batches' time: the share
    (p - 1) / (v * m + p - 1) of the step (Narayanan et al. 2021, section 2.2, arXiv:2104.04473).

    Why: the cards of a pipeline that is filled with too few micro batches wait for one another.
    Example: pipeline degree 8 and 8 micro batches per step idle 47 % of the time.
    Fix: a smaller micro batch or a larger global batch, more chunks per rank (interleaving), or fewer stages.
    Source: megatron/core/pipeline_parallel/schedules.py:2193 (core 0.18.0) warms up with p - rank - 1 micro batches.
    """
    degree = subject.size(_PIPELINE)
    micro_batches = subject.leaf("batch.accumulation")
    if degree < 2 or not isinstance(micro_batches, int) or micro_batches < 1:
        return
    chunks = max(subject.size("parallel.pipeline.stages_per_rank"), 1)
    idle = (degree - 1) / (chunks * micro_batches + degree - 1)
    schedule = subject.leaf("parallel.pipeline.schedule")
    if idle < _IDLE or (isinstance(schedule, str) and schedule.startswith(("zero", "zb", "dual"))):
        return
    message = (
        f"{micro_batches} micro batches per step in {degree} pipeline stages: each rank idles {idle:.0%} of the time"
    )
    yield Remark(
        message, "smaller micro batches, a larger global batch, interleaving, or fewer stages", field=_PIPELINE
    )


@rule("P501", Level.NOTE)
def no_sequence_parallel(subject: Subject) -> Iterator[Remark]:
    """Tensor parallelism without sequence parallelism.

    Norms, dropouts and residuals are then held in full on every rank of the tensor group. Splitting them along the
    sequence costs no extra communication (Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2).

    Why: memory for activations that the ranks hold more than once.
    Example: tensor degree 8 without sequence parallelism.
    Fix: switch sequence parallelism on.
    Source: megatron/core/tensor_parallel/layers.py:445 (core 0.18.0) gathers the sequence in front of a layer.
    """
    if subject.size("parallel.tensor") > 1 and subject.leaf("parallel.sequence_parallel") is False:
        message = f"tensor degree {subject.size('parallel.tensor')} without sequence parallelism"
        yield Remark(message, "switch sequence parallelism on; it costs no communication", field="parallel.tensor")


@rule("P502")
def tensor_group_leaves_the_node(subject: Subject) -> Iterator[Remark]:
    """A tensor-parallel group that spans nodes.

    Two to four collectives per layer and direction then cross the network between nodes, an order of magnitude slower
    than the links inside one (Narayanan et al. 2021, section 3.2, arXiv:2104.04473).

    Why: tensor parallelism communicates in the middle of every layer and cannot hide most of it.
    Example: tensor degree 16 on nodes of 8 cards.
    Fix: at most as many tensor ranks as a node has cards; pipeline or data parallelism across nodes.
    Source: megatron/core/parallel_state.py:561 (core 0.18.0) orders ranks tensor first, so that the group stays inside.
    """
    cards = subject.leaf("launch.gpus_per_node")
    tensor = subject.size("parallel.tensor")
    if isinstance(cards, int) and 0 < cards < tensor:
        message = f"tensor degree {tensor} on nodes of {cards} cards: its collectives cross the network in every layer"
        yield Remark(message, f"a tensor degree of {cards} or less", field="parallel.tensor")


@rule("P503")
def sharding_over_one_rank(subject: Subject) -> Iterator[Remark]:
    """Sharded state over a data-parallel group of one.

    Why: nothing is sharded, so the memory that the setting promises is not saved, and its buffers still cost some.
    Example: a distributed optimizer, ZeRO or FSDP where tensor and pipeline degree use all ranks.
    Fix: fewer model-parallel ranks, more ranks, or leave it out.
    Source: megatron/core/optimizer/distrib_optimizer.py:206 (core 0.18.0) divides its buffers by the size of the group.
    """
    sharding = subject.leaf("parallel.data.sharding")
    world = subject.leaf("parallel.world_size")
    group = _product(subject, "parallel.data.degree", "parallel.context")
    if sharding in (None, "none") or group != 1 or not isinstance(world, int) or world < 2:
        return
    message = f"{sharding.replace('_', ' and ')} state is to be sharded over a data-parallel group of one rank"
    yield Remark(message, "fewer model-parallel ranks, or no sharding", field="parallel.data.sharding")


@rule("P504", Level.NOTE)
def key_value_heads_are_copied(subject: Subject) -> Iterator[Remark]:
    """Fewer key-value heads than tensor-parallel ranks.

    Why: ranks hold copies of the same heads, so that their share of keys and values shrinks no further, and the copies'
    gradients must be kept equal.
    Example: 8 key-value heads under tensor degree 16.
    Fix: a tensor degree of at most the number of key-value heads.
    Source: megatron/core/transformer/attention.py:338 (core 0.18.0): then every rank works on one group.
    """
    heads, tensor = subject.leaf("model.kv_heads"), subject.size("parallel.tensor")
    if isinstance(heads, int) and 0 < heads < tensor and not subject.leaf("model.mla.enabled"):
        message = f"{heads} key-value heads for {tensor} tensor-parallel ranks: some ranks hold copies"
        yield Remark(message, f"a tensor degree of {heads} or less", field="parallel.tensor")


@rule("P505")
def more_expert_ranks_than_experts(subject: Subject) -> Iterator[Remark]:
    """More expert-parallel ranks than experts, or than data ranks to take them from.

    Why: a rank without an expert has nothing to do, and frameworks refuse the layout late, when the model is built.
    Example: expert degree 16 for 8 experts.
    Fix: an expert degree that divides the number of experts.
    Source: megatron/core/transformer/moe/moe_layer.py:185 (core 0.18.0): the experts must divide by the degree.
    """
    expert, experts = subject.size("parallel.expert"), subject.leaf("model.moe.experts")
    if expert > 1 and isinstance(experts, int) and experts and experts % expert:
        message = f"expert degree {expert} does not divide {experts} experts"
        yield Remark(message, "an expert degree that divides the number of experts", field="parallel.expert")


@rule("P506", Level.NOTE)
def stages_are_uneven(subject: Subject) -> Iterator[Remark]:
    """Pipeline stages with unequal numbers of layers.

    Why: the slowest stage sets the pace of all, and the one with most layers the memory.
    Example: 30 layers in 4 stages: two stages hold 8, two hold 7.
    Fix: a degree that divides the layers, or a split that takes embedding and output layer into account.
    Source: torchtitan/distributed/pipeline_parallel.py:276 (0.2.2) gives the first stages one layer more.
    """
    split = subject.leaf("parallel.pipeline.layer_split")
    if isinstance(split, list) and len(split) > 1 and all(isinstance(count, int) for count in split):
        inner = split[1:-1] or split
        if max(split) > max(min(split), 1) * 1.25 and max(inner) - min(inner) > 1:
            message = f"pipeline stages hold {', '.join(map(str, split))} layers"
            yield Remark(message, "stages of equal work", field="parallel.pipeline.layer_split")


@rule("P507", Level.NOTE)
def tied_embeddings_in_a_pipeline(subject: Subject) -> Iterator[Remark]:
    """Tied embeddings in a pipeline.

    Why: first and last stage both hold the matrix, and its gradient is summed between them after every step.
    Example: a vocabulary of 256,000 by 8,192 in bf16 is 4.2 GB on both stages, before tensor parallelism.
    Fix: nothing, where the model is to stay the same; untie the embeddings for a new model.
    Source: megatron/core/distributed/finalize_model_grads.py:164 (core 0.18.0) all-reduces the embedding's gradients.
    """
    degree = subject.size("parallel.pipeline.degree")
    if degree > 1 and subject.leaf("model.tied_embeddings"):
        size = _product(subject, "model.hidden", "model.vocab")
        share = f" ({size / subject.size('parallel.tensor') * 2 / 2**30:.1f} GiB in bf16 each)" if size else ""
        message = f"first and last of {degree} stages both hold the tied embedding{share}"
        yield Remark(message, "nothing, if the model is to stay the same", field="model.tied_embeddings")


@rule("P508", Level.NOTE)
def heads_of_an_odd_size(subject: Subject) -> Iterator[Remark]:
    """A head size that attention kernels do not like.

    Why: flash attention pads to multiples of 8 and stops at 256; beyond that a slower, memory-hungry kernel runs.
    Example: hidden size 5,000 with 40 heads gives 125 per head.
    Fix: sizes with 64, 128 or 256 per head.
    Source: flash-attn csrc/flash_attn/flash_api.cpp (2.7): head dimension at most 256, a multiple of 8.
    """
    size = subject.leaf("model.head_dim")
    if isinstance(size, int) and size > 0 and (size % 8 or size > 256):
        message = f"{size} per attention head is {'over 256' if size > 256 else 'no multiple of 8'}"
        yield Remark(message, "64, 128 or 256 per head", field="model.head_dim")


def _product(subject: Subject, *names: str) -> int:
    """The product of leaves that hold whole numbers; 0 where one is not known."""
    product = 1
    for name in names:
        product *= subject.size(name, 0)
    return product
