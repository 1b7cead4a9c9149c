"""torchtitan on batch, loss and accumulation."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.frameworks.torchtitan import addresses
from translator.subject import Subject

_LOCAL = "training.local_batch_size"
_MICRO = "parallelism.pipeline_parallel_microbatch_size"


def at(subject: Subject, old: str, middle: str, new: str) -> str:
    """The upstream line in 0.1.0, 0.2.2 or 0.3.0, whichever is in force."""
    place = {"0.1.0": old, "0.2.2": middle}.get(subject.reading.version, new)
    return f"torchtitan/{place} at {subject.reading.version}"


@stance("D300")
def loss(subject: Subject) -> Stance:
    """Since 0.2.2 every token of the global batch counts the same."""
    source = at(subject, "components/loss.py:20", "train.py:538", "components/loss.py:332")
    if subject.leaf("loss.normalization") == "global_tokens":
        return Stance("global tokens", "divides the summed loss by the tokens of the global batch that count", source)
    ways = {"global tokens": "take torchtitan 0.2.2 or later"}
    return Stance("micro batch means", "averages the means of the micro batches", source, None, ways)


@stance("D301")
def passes(subject: Subject) -> Stance | None:
    """A local batch is one pass; it is split into micro batches of ``pipeline_parallel_microbatch_size``."""
    if subject.size("parallel.pipeline.degree") == 1:
        return None
    batch, degree = subject.leaf("batch.global_batch"), subject.leaf("parallel.data.degree")
    local, micro = subject.value(_LOCAL), subject.value(_MICRO)
    if not all(isinstance(value, int) and value > 0 for value in (batch, degree, local, micro)):
        return None
    count = max(1, batch // (local * degree))
    says = (
        f"takes local_batch_size {local} as all micro batches of one pass, {local // micro} of {micro}, "
        f"and makes {count} {'pass' if count == 1 else 'passes'} per step"
    )
    ways = {"1": f"set local_batch_size to {batch // degree}, the global batch over the data-parallel degree"}
    source = at(subject, "distributed/pipeline.py:160", "distributed/pipeline_parallel.py:194", "trainer.py:434")
    return Stance(str(count), says, source, _LOCAL, ways)


@stance("D302")
def ranks(subject: Subject) -> Stance:
    """The batch mesh: replicas times shards."""
    says = "counts data-parallel ranks alone, replicate times shard degree"
    source = at(subject, "train.py:101", "train.py:100", "trainer.py:326")
    return Stance("data-parallel ranks", says, source, "training.global_batch_size")


@stance("D303")
def growth(subject: Subject) -> Stance:
    """Always constant."""
    source = at(subject, "train.py:207", "train.py:212", "trainer.py:430")
    return Stance("constant", "trains with one batch size throughout", source, "training.global_batch_size")


@stance("D304")
def scale(subject: Subject) -> Stance | None:
    """0.2.2 divides neither under a pipeline, nor by the right number under DDP."""
    if subject.reading.version != "0.2.2":
        source = at(subject, "components/loss.py:41", "", "components/loss.py:332")
        return Stance("mean", "takes the gradients of the mean over tokens", source)
    ways = {"mean": "take torchtitan 0.3.0, which divides before the backward pass"}
    if subject.size("parallel.pipeline.degree") > 1:
        says = (
            "divides the logged loss by the tokens of the step, but under a pipeline not the gradients, "
            "which stay sums over tokens"
        )
        return Stance(
            "sum", says, "torchtitan/train.py:523 and distributed/pipeline_parallel.py:209 at 0.2.2", None, ways
        )
    if subject.value(addresses.FSDP) is False and subject.size("parallel.data.replicate") > 1:
        says = "divides the loss by the tokens of all ranks, and DDP divides the gradients by the ranks once more"
        ways = {"mean": "shard instead of replicating (data_parallel_shard_degree), or take torchtitan 0.3.0"}
        return Stance(
            "mean divided twice", says, "torchtitan/models/llama3/infra/parallelize.py:372 at 0.2.2", None, ways
        )
    says = "takes the gradients of the mean over tokens; FSDP adds up without dividing"
    return Stance("mean", says, "torchtitan/models/llama3/infra/parallelize.py:284 at 0.2.2")


@stance("D314")
def balance(subject: Subject) -> Stance | None:
    """There is no balancing loss whose weight could be asked for."""
    _ = subject
    return None


@stance("D306")
def z_loss(subject: Subject) -> Stance | None:
    """None."""
    if not subject.leaf("model.moe.experts"):
        return None
    source = at(subject, "components/loss.py:20", "components/loss.py:22", "components/loss.py:60")
    return Stance("none", "has the cross entropy alone, and no z-loss", source)
