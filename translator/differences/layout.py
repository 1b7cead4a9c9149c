"""Layouts: who holds which part of which state, and when it is gathered."""

from __future__ import annotations

from translator.differences.registry import Pair, difference
from translator.findings import Level
from translator.subject import Subject

_GIB = 2**30


def _ranks(subject: Subject) -> int:
    """Ranks that could share the sharded state."""
    return subject.size("parallel.data.degree") * subject.size("parallel.context")


def _both_above_one(pair: Pair, leaf: str) -> bool:
    return pair.left.size(leaf) > 1 and pair.right.size(leaf) > 1


def _either_above_one(pair: Pair, leaf: str) -> bool:
    return pair.left.size(leaf) > 1 or pair.right.size(leaf) > 1


@difference("D330", "parallel.data.sharding", Level.NOTE)
def sharded_state(pair: Pair) -> str | None:
    """What is sharded over data-parallel ranks, and when parameters are gathered.

    "Distributed optimizer", "ZeRO stage" and "FSDP" name different shares of the state: the optimizer's alone, the
    gradients as well, or the parameters too. Sharded parameters are gathered layer by layer and freed after the
    forward pass, or kept until the backward pass, or (under a pipeline) for the whole step.

    Why: the results are the same; memory and traffic are not, and a layout that fits on one side may not on the other.
    Example: ZeRO-3 keeps 1/N of the bf16 parameters on a rank, a distributed optimizer all of them.
    Fix: choose the same stage; where there is none, expect other peaks.
    """
    if _ranks(pair.left) == 1 or _ranks(pair.right) == 1:
        return None
    return "memory and traffic, not results"


@difference("D331", "parallel.data.sharding", Level.NOTE)
def gradient_reduction(pair: Pair) -> str | None:
    """How often gradients are reduced, and what a rank keeps of them meanwhile.

    While micro batches accumulate, a rank either adds up whole gradients and reduces them once at the end of the step,
    or reduces every micro batch and keeps its own share only.

    Why: the first needs a whole gradient buffer (4 bytes a parameter in fp32), the second one reduction per micro
    batch; with slow links and much accumulation that decides the speed.
    Example: 32 micro batches under FSDP without a pipeline are 32 reduce-scatters of the whole model in each step.
    Fix: larger micro batches and less accumulation where every micro batch is reduced.
    """
    if _ranks(pair.left) == 1 or _ranks(pair.right) == 1:
        return None
    steps = max(pair.left.size("batch.accumulation"), pair.right.size("batch.accumulation"))
    return f"up to {steps} reductions a step instead of one" if steps > 1 else "memory only: one micro batch a step"


@difference("D332", "parallel.data.bucket_elements", Level.NOTE)
def bucket_unit(pair: Pair) -> str | None:
    """What one gradient reduction holds.

    Gradients travel in buckets of so many elements (not bytes), or one transformer layer at a time, or all at once.

    Why: a bucket is a buffer in memory as well, and its size decides how well communication hides behind compute; a
    number copied as bytes is off by the width of the format.
    Example: a bucket of 5e8 elements in bf16 takes 1 GB, and two of them are alive when reduction overlaps.
    Fix: set the size in the target's own unit; where layers are the unit, there is nothing to set.
    """
    if _ranks(pair.left) == 1 or _ranks(pair.right) == 1:
        return None
    sizes = [_bucket_bytes(side) for side in (pair.left, pair.right)]
    told = [f"{size / _GIB:.2f} GiB" for size in sizes if size]
    return f"a bucket takes {' against '.join(told)}" if told else ""


def _bucket_bytes(subject: Subject) -> int:
    width = 2 if subject.leaf("precision.grad_reduce") in ("bf16", "fp16") else 4
    return subject.size("parallel.data.bucket_elements", 0) * width


@difference("D333", "parallel.data.replicate", Level.NOTE)
def replicas(pair: Pair) -> str | None:
    """What replicas of a sharded group share.

    With hybrid sharding the state is sharded inside a group and kept once per group; gradients are summed over the
    groups. Some variants still shard the optimizer states over all ranks and keep only parameters per group.

    Why: memory per rank grows with the number of groups, and traffic between nodes shrinks.
    Example: 64 ranks in 8 groups keep 8 copies of the optimizer states; sharded over all there is one.
    Fix: give both the same group size, or none.
    """
    if not _either_above_one(pair, "parallel.data.replicate"):
        return None
    if "none" in (pair.left.leaf("parallel.data.sharding"), pair.right.leaf("parallel.data.sharding")):
        return None  # said by what is sharded
    copies = [side.size("parallel.data.replicate") for side in (pair.left, pair.right)]
    return f"{copies[0]} against {copies[1]} replicas" if copies[0] != copies[1] else "memory and traffic, not results"


@difference("D334", "recompute.mode", Level.NOTE)
def recomputation(pair: Pair) -> str | None:
    """What recomputation drops and computes again.

    "Selective" is a list of modules for one framework, a choice of operators or every n-th layer for another; "full"
    is every layer, or the first layers of a stage.

    Why: results are the same; peak memory and speed are not (full recomputation costs about a third more compute).
    Example: dropping core attention alone saves nothing where a flash kernel never stores it.
    Fix: choose full recomputation on both sides, or none, when memory must be comparable.
    """
    _ = pair
    return "memory and speed, not results"


@difference("D335", "parallel.sequence_parallel", Level.NOTE)
def sequence_parallelism(pair: Pair) -> str | None:
    """Whether the sequence is split between tensor-parallel layers.

    Between the layers that tensor parallelism splits, norms and residuals either hold the whole sequence on every rank
    or 1/T of it each. One framework must be told, one always splits, one never does.

    Why: whole sequences cost T times the memory of these activations; splitting asks for a divisible sequence length.
    Example: at tensor parallel 8 the residual stream of each layer is kept eight times without it.
    Fix: switch it on wherever tensor parallel is above 1.
    """
    if not _both_above_one(pair, "parallel.tensor"):
        return None
    degree = max(pair.left.size("parallel.tensor"), pair.right.size("parallel.tensor"))
    return f"activations between the layers take {degree} times the memory where they are whole"


@difference("D336", "parallel.context_method", Level.NOTE)
def context_exchange(pair: Pair) -> str | None:
    """How the ranks of one sequence exchange keys and values.

    A ring passes blocks from rank to rank, an all-gather fetches all of them, all-to-all hands whole sequences of some
    heads to each rank. With a causal mask the sequence is cut so that every rank has as much work, or in plain pieces.

    Why: memory (an all-gather holds the keys and values of the whole sequence), speed, and what must divide what:
    all-to-all needs heads to divide by the degree, balanced cuts need sequences to divide by twice the degree.
    Example: 8 key-value heads let all-to-all go no further than degree 8 without copies.
    Fix: choose the same method where there is one.
    """
    return "memory and speed, not results" if _both_above_one(pair, "parallel.context") else None


@difference("D337", "parallel.expert", Level.NOTE)
def expert_ranks(pair: Pair) -> str | None:
    """Which ranks expert parallelism is made of.

    It never multiplies the world size: its ranks are data-parallel ones, or context- and tensor-parallel ones as well
    where experts are not cut by tensor parallelism; and they may have to lie within one replica of the sharded group.

    Why: the largest possible degree and the number of copies of each expert follow from it, and with them memory and
    which links the tokens travel over.
    Example: 64 ranks at tensor 8 have 8 data-parallel ranks, yet 64 ranks for experts that tensor parallelism leaves
    whole.
    Fix: keep the degree within the smaller of both limits.
    """
    return "memory and traffic, not results" if _both_above_one(pair, "parallel.expert") else None


@difference("D338", "parallel.expert_tensor", Level.NOTE)
def expert_tensor(pair: Pair) -> str | None:
    """Whether tensor parallelism cuts each expert.

    Left unset, the tensor-parallel degree of the experts is that of the model in one framework and 1 in another.

    Why: small experts that are cut once more run inefficient products; experts left whole need the memory.
    Example: tensor 4 and expert 8 without a word more: each expert is cut into 4 here, whole there.
    Fix: state the degree on both sides.
    """
    if not (pair.left.leaf("model.moe.experts") and _either_above_one(pair, "parallel.tensor")):
        return None
    return "memory and speed, not results" if _both_above_one(pair, "parallel.tensor") else None


@difference("D340", "parallel.pipeline.layer_split", Level.NOTE)
def stage_split(pair: Pair) -> str | None:
    """How layers are dealt to pipeline stages.

    Evenly, or with the embedding and the output head each counted as a layer, or by the number of parameters.

    Why: the fullest stage decides memory and speed; a checkpoint per stage has other contents.
    Example: 32 layers on 4 stages are 8, 8, 8, 8 on one side and 8, 9, 8, 7 on the other.
    Fix: state the split on both sides.
    """
    if not _both_above_one(pair, "parallel.pipeline.degree"):
        return None
    fullest = [max(side.leaf("parallel.pipeline.layer_split") or [0]) for side in (pair.left, pair.right)]
    return f"the fullest stage has {fullest[0]} against {fullest[1]} layers"


@difference("D341", "parallel.pipeline.schedule", Level.NOTE)
def pipeline_schedule(pair: Pair) -> str | None:
    """What a pipeline schedule's name means.

    "1F1B" with several chunks per rank is an interleaved schedule under one name, and needs another name elsewhere;
    an interleaved name alone means two chunks per rank.

    Why: bubbles and activation memory: interleaving V chunks cuts the bubble by V and holds more activations.
    Example: Interleaved1F1B without a number of layers per stage is two stages per rank, whatever the source had.
    Fix: state schedule and chunks per rank on both sides.
    """
    if not _both_above_one(pair, "parallel.pipeline.degree"):
        return None
    chunks = [side.size("parallel.pipeline.stages_per_rank") for side in (pair.left, pair.right)]
    if chunks[0] == chunks[1]:
        return "bubbles and activation memory, not results"
    bubbles = [round((side.size("parallel.pipeline.degree") - 1) / n, 1) for side, n in _with(pair, chunks)]
    return f"the bubble is about {bubbles[0]:g} against {bubbles[1]:g} micro batches long"


def _with(pair: Pair, chunks: list[int]) -> list[tuple[Subject, int]]:
    return [(pair.left, chunks[0]), (pair.right, chunks[1])]


@difference("D342", "model.tied_embeddings", Level.NOTE)
def tied_across_stages(pair: Pair) -> str | None:
    """One matrix for input and output on two pipeline stages.

    Each end of the pipeline has a copy and the gradients of both are added, or the combination is refused.

    Why: refused, the run ends at its start; with copies, first and last stage hold and reduce one matrix more.
    Example: a 0.6B model with tied embeddings starts at pipeline 2 in one framework and raises in another.
    Fix: do without the pipeline (small models are the tied ones), or untie.
    """
    sides = (pair.left, pair.right)
    if not any(side.leaf("model.tied_embeddings") and side.size("parallel.pipeline.degree") > 1 for side in sides):
        return None
    return "" if _both_above_one(pair, "parallel.pipeline.degree") else None


@difference("D343", "parallel.rank_order", Level.NOTE)
def rank_order(pair: Pair) -> str | None:
    """Which parallel axis has neighbouring ranks.

    The innermost axis lies within a node, the outermost across nodes.

    Why: the speed of each kind of traffic; and ranks in logs or per-rank checkpoints mean other shards.
    Example: with data parallelism outermost, pipeline ranks are closer together than replicas, and the other way round.
    Fix: choose the same order where there is a choice.
    """
    orders = [
        [axis for axis in str(side.leaf("parallel.rank_order")).split("-") if _size_of_axis(side, axis) > 1]
        for side in (pair.left, pair.right)
    ]
    common = set(orders[0]) & set(orders[1])
    inner = [[axis for axis in order if axis in common] for order in orders]
    return None if inner[0] == inner[1] else "speed, not results"


def _size_of_axis(subject: Subject, axis: str) -> int:
    leaf = {"tp": "tensor", "cp": "context", "ep": "expert", "dp": "data.degree", "pp": "pipeline.degree"}.get(axis)
    return subject.size(f"parallel.{leaf}") if leaf else 1


@difference("D344", "parallel.loss_parallel", Level.NOTE)
def vocabulary_split(pair: Pair) -> str | None:
    """Whether tensor parallelism splits embedding, output head and loss.

    Every rank holds a slice of the vocabulary and the loss is computed on slices, or the logits are gathered first, or
    embedding and head stay whole, so that each rank computes all logits.

    Why: logits are the largest activation: micro batch times sequence times vocabulary in fp32.
    Example: 8,192 tokens and 128,256 words are 3.9 GiB of fp32 logits, on each rank or divided by its degree.
    Fix: leave parallel loss on; expect more memory at the head where it does not exist.
    """
    if not _both_above_one(pair, "parallel.tensor"):
        return None
    side = pair.left
    sizes = [side.leaf(name) for name in ("batch.micro_batch", "batch.seq_len", "model.vocab")]
    if not all(isinstance(size, int) and size for size in sizes):
        return "memory, not results"
    return f"whole fp32 logits of a micro batch take {sizes[0] * sizes[1] * sizes[2] * 4 / _GIB:.1f} GiB"


@difference("D345", "optimizer.offload", Level.NOTE)
def offloaded_state(pair: Pair) -> str | None:
    """What offloading moves to the host, and where the update runs.

    Optimizer states alone with the update on the CPU, or parameters and gradients as well, or a share of them.

    Why: GPU memory and step time: an update on the CPU takes seconds for billions of parameters, and its optimizer is
    another implementation than the GPU's.
    Example: "CPU offload" keeps parameters on the GPU in one framework and moves them too in another.
    Fix: choose the same device for the same state.
    """
    _ = pair
    return "memory and speed, not results"
