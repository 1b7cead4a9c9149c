"""DeepSpeed, with its trainer, on batch, loss and accumulation."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.differences.wording import Whatever
from translator.frameworks.deepspeed import addresses
from translator.subject import Subject

ENGINE = "runtime/engine.py"
_TRAINER = "transformers/trainer.py"
_MIXTRAL = "transformers/models/mixtral/modeling_mixtral.py"


def at(place: str, version: str = "0.19.2") -> str:
    """A line of DeepSpeed with its version."""
    return f"deepspeed/{place} at {version}"


def each(subject: Subject, old: str, middle: str, new: str) -> str:
    """The line in 0.16.9, 0.19.2 or 0.19.8, whichever is in force."""
    version = subject.reading.version
    return at({"0.16.9": old, "0.19.2": middle}.get(version, new), version)


def trainer(file: str, line: int) -> str:
    """A line of transformers with its version."""
    return f"{file}:{line} at transformers 5.24.0"


def trains_by_transformers(subject: Subject) -> bool:
    """Whether transformers' Trainer runs the steps."""
    return bool(subject.value(addresses.TRAINER) == "transformers")


@stance("D300")
def loss(subject: Subject) -> Stance | None:
    """The engine averages micro batches; the trainer hands it a loss over the tokens of the step, or of a rank."""
    kind = subject.leaf("loss.normalization")
    option = "hf.average_tokens_across_devices"
    if kind == "global_tokens":
        says = "is handed a loss over all tokens of the step by transformers' Trainer"
        ways = {"micro batch means": "write a training loop of your own around engine.backward"}
        return Stance("global tokens", says, trainer(_TRAINER, 2214), option, ways)
    if kind != "micro_batch_mean":
        return None
    way = "divide the summed loss by all tokens of the step in the training program"
    ways = {"global tokens": "set average_tokens_across_devices" if trains_by_transformers(subject) else way}
    if trains_by_transformers(subject) and subject.leaf("batch.accumulation") != 1:
        says = "is handed a loss over a rank's tokens of the step by transformers' Trainer, and averages ranks"
        return Stance("rank means", says, trainer(_TRAINER, 2343), option, ways)
    says = "divides each micro batch's mean by the accumulation steps"
    source = each(subject, f"{ENGINE}:2129", f"{ENGINE}:2877", f"{ENGINE}:3413")
    return Stance("micro batch means", says, source, None, ways)


@stance("D301")
def passes(subject: Subject) -> Stance | None:
    """No configuration names a pipeline; ``PipelineModule`` takes all micro batches of a step in one pass."""
    if subject.size("parallel.pipeline.degree") == 1:
        return None
    says = "takes train_micro_batch_size_per_gpu as one micro batch of the pipeline, and all of a step in one pass"
    return Stance("1", says, at("runtime/pipe/engine.py:99"), addresses.MICRO_BATCH)


@stance("D302")
def ranks(subject: Subject) -> Stance:
    """All ranks that the engine knows of, those included that work on the samples of another."""
    counted, seen = subject.value(addresses.DP), subject.value(addresses.DATA_PARALLEL)
    known = isinstance(counted, int) and isinstance(seen, int) and seen > 0
    together = counted // seen if known else subject.size("parallel.tensor")
    source = each(subject, "runtime/config.py:731", "runtime/config.py:692", "runtime/config.py:471")
    if together > 1:
        size = subject.value(addresses.TRAIN_BATCH)
        shown = f" {size}" if isinstance(size, int) else ""
        says = f"counts in train_batch_size{shown} all ranks, also the {together} that work on the same samples"
        return Stance("all ranks", says, source, addresses.TRAIN_BATCH)
    return Stance("data-parallel ranks", "counts data-parallel ranks", source, addresses.TRAIN_BATCH)


@stance("D303")
def growth(subject: Subject) -> Stance:
    """Constant, unless the program grows it."""
    source = each(subject, "runtime/config.py:933", "runtime/config.py:901", "runtime/config.py:602")
    ramp = subject.leaf("batch.ramp_up")
    if ramp:
        first, increment, samples = ramp
        says = f"is handed a batch that grows from {first} by {increment} over {samples:,} samples by the program"
        return Stance(f"ramp {first} {increment} {samples}", says, source)
    return Stance("constant", "trains with one batch size throughout", source, addresses.TRAIN_BATCH)


@stance("D304")
def scale(subject: Subject) -> Stance:
    """The mean: over accumulation steps and ranks."""
    says = "takes the gradients of the mean, divided by the ranks before they are reduced"
    if subject.value("zero_optimization.stage") in (0, None):
        return Stance("mean", "takes the gradients of the mean, divided by the ranks", at(f"{ENGINE}:3286"))
    return Stance("mean", says, at("runtime/zero/stage_1_and_2.py:1302"))


@stance("D314")
def balance(subject: Subject) -> Stance | None:
    """transformers adds the term to a loss that is no longer divided by micro batches, nor by ranks."""
    if not subject.leaf("model.moe.experts"):
        return None
    ways = Whatever("divide router_aux_loss_coef by the micro batches of a step (on all ranks)")
    if not trains_by_transformers(subject):
        source = each(subject, f"{ENGINE}:2129", f"{ENGINE}:2877", f"{ENGINE}:3413")
        return Stance("mean", "averages it over micro batches and ranks", source)
    if subject.leaf("loss.normalization") == "global_tokens":
        says = "adds it up over the micro batches of all ranks: transformers' Trainer multiplies the loss by the ranks"
        return Stance("sum over all ranks", says, trainer(_TRAINER, 2215), None, ways)
    says = "adds it up over the micro batches of a rank: transformers' Trainer no longer divides the loss by them"
    return Stance("sum", says, trainer(_TRAINER, 2116), None, ways)


@stance("D306")
def z_loss(subject: Subject) -> Stance | None:
    """transformers' models have none."""
    if not subject.leaf("model.moe.experts") or not trains_by_transformers(subject):
        return None
    return Stance("none", "has no z-loss in the models of transformers", trainer(_MIXTRAL, 633))
