"""Data, seeds, checkpoints, evaluation and the environment."""

from __future__ import annotations

from translator.differences.registry import Pair, difference
from translator.findings import Level


def _saves(pair: Pair) -> bool:
    return bool(pair.left.leaf("checkpoint.save") and pair.right.leaf("checkpoint.save"))


def _synthetic(pair: Pair) -> bool:
    return bool(pair.left.leaf("data.mock") or pair.right.leaf("data.mock"))


@difference("D348", "launch.environment", Level.NOTE)
def overridden_environment(pair: Pair) -> str | None:
    """Which variables of the environment the program sets itself.

    One framework writes the variables of NCCL's watchdog and flight recorder from its own options, whatever the launch
    says; the others leave them as they are.

    Why: what a script exports to debug hangs, or to survive them, is silently another value.
    Example: TORCH_NCCL_ASYNC_ERROR_HANDLING=1 in a launch becomes 3.
    Fix: set the framework's own options instead.
    """
    names = [name for name in (pair.left.environment or {}) if name.startswith(("TORCH_NCCL_", "TORCH_FR_"))]
    return f"the launch states {', '.join(sorted(names))}" if names else None


@difference("D349", "data.deterministic", Level.NOTE)
def deterministic_mode(pair: Pair) -> str | None:
    """What deterministic training takes.

    All ask torch for deterministic kernels; beyond that one demands variables of the environment, another sets them
    itself, a third launches kernels one by one as well.

    Why: without the variables the run stops at its start, or repeats itself but for the order of reductions; speed
    falls by different shares.
    Example: NCCL_ALGO has to be named on one side and is not looked at on the other.
    Fix: export NCCL_ALGO and CUBLAS_WORKSPACE_CONFIG wherever a run has to repeat.
    """
    _ = pair
    return "" if pair.left.leaf("data.deterministic") else None


@difference("D365", "data.seed", Level.NOTE)
def seed(pair: Pair) -> str | None:
    """What the seed seeds.

    Weights, dropout and data order by offsets per pipeline stage and tensor rank; or the weights alone, with one
    stream over all ranks; or everything alike on every rank. Left out, it is a fixed number or drawn at each start.

    Why: no seed gives the same numbers in two frameworks, and one that is drawn does not even repeat a run.
    Example: seed 1234 at pipeline 2 is 1234 and 1334 on one side, 1234 and 1235 on the other.
    Fix: compare several seeds, not two runs; state a seed wherever there is none.
    """
    if "drawn" in (pair.source.kind, pair.target.kind):
        return "no run repeats another where it is drawn"
    return "curves agree in distribution, not number by number"


@difference("D366", "data.dataset")
def data_order(pair: Pair) -> str | None:
    """The order in which training data come.

    Documents and samples shuffled once for the whole run; samples shuffled anew in each epoch; or the files' own order.

    Why: text that is sorted by source or length, read in order, bends the loss curve and can spoil a model.
    Example: a dump ordered by web site, streamed unshuffled.
    Fix: shuffle the data itself before it is read in its own order.
    """
    return None if _synthetic(pair) else "loss curves are comparable in the mean alone"


@difference("D367", "model.attention_mask")
def document_mask(pair: Pair) -> str | None:
    """Whether documents that share a sequence attend to each other.

    Sequences are filled with several documents. Either a token sees all that precede it, or those of its own document.

    Why: losses of packed data differ, the more the shorter the documents; attention within documents is faster, too.
    Example: version 0.3.0 of one framework masks by default what 0.2.2 of it did not.
    Fix: choose an attention with or without document masks on both sides.
    """
    if _synthetic(pair):
        return None
    length = pair.left.leaf("batch.seq_len")
    return f"more the shorter documents are against {length:,} tokens" if length else ""


@difference("D368", "data.mask_end_of_document")
def end_of_document_loss(pair: Pair) -> str | None:
    """Whether the token that ends a document is an input whose prediction counts.

    One framework can leave out the prediction of what follows a document's end, another always does from a version on;
    elsewhere every token counts, save for padding and what the data masks.

    Why: the first token of the next document cannot be known; its loss of about the logarithm of the vocabulary is part
    of the mean or is not.
    Example: documents of 500 tokens add some 0.02 to the mean loss.
    Fix: count them on both sides, or mask these labels in the data where there is no option.
    """
    return None if _synthetic(pair) else "one prediction per document"


@difference("D369", "batch.seq_len", Level.NOTE)
def sample_cut(pair: Pair) -> str | None:
    """How a stream of tokens is cut into samples.

    Neighbouring samples share one token, so that each is once an input and once a label; or they share none, and a
    token per sample is never an input; and a beginning and an end token may be added to each document while reading.

    Why: with added tokens the model sees another text; the cut itself is one token in a sequence.
    Example: text that was tokenised beforehand has no beginning token unless its tokenizer put one there.
    Fix: prepare the data with the same special tokens.
    """
    return None if _synthetic(pair) else "a token or two per document and sequence"


@difference("D370", "checkpoint.save", Level.NOTE)
def data_resumption(pair: Pair) -> str | None:
    """Where the data go on after a restart.

    By the number of samples consumed, on any number of ranks; by a state per data-parallel rank, which wants as many
    of them as before; or by reading and discarding what was seen.

    Why: a restart on fewer nodes ends in an assertion, or repeats data, or reads for hours before the first step.
    Example: 16 replicas resumed as 12.
    Fix: keep the data-parallel degree over restarts wherever the state is per rank.
    """
    return "" if _saves(pair) else None


@difference("D371", "checkpoint.format", Level.NOTE)
def checkpoint_layout(pair: Pair) -> str | None:
    """Which layouts a checkpoint can be loaded into.

    Any, or any data-parallel degree at the same tensor and pipeline degrees, or exactly the one that saved it.

    Why: a run whose nodes fail cannot go on with fewer of them, or only after an offline conversion.
    Example: ZeRO states of 64 ranks refuse to load on 32 unless converted to a universal checkpoint.
    Fix: choose the reshardable format where there is one.
    """
    return "" if _saves(pair) else None


@difference("D372", "checkpoint.load", Level.NOTE)
def automatic_resumption(pair: Pair) -> str | None:
    """Whether a restarted run goes on by itself.

    From the newest checkpoint of the folder that it saves to, or from what it is told to load, or from the beginning.

    Why: a requeued job begins anew and overwrites, or a run that was to begin anew goes on from old checkpoints.
    Example: the same script started twice: one framework continues at the step of the last save, another at 0.
    Fix: load from the folder that is saved to; empty it where a run has to begin anew.
    """
    return "" if _saves(pair) else None


@difference("D373", "checkpoint.override_schedule", Level.NOTE)
def schedule_on_resumption(pair: Pair) -> str | None:
    """Which schedule a resumed run follows.

    The configuration's, the checkpoint's, the shape of the one with the peak of the other; or it stops when they are
    not equal.

    Why: a changed learning rate or length is taken, ignored or refused after a restart.
    Example: halving the learning rate in the configuration of a run that goes on has no effect where the peak comes
    from the checkpoint.
    Fix: state which one counts where there is an option; else begin a new run from the weights.
    """
    return "only where the schedule is changed over a restart" if _saves(pair) else None


@difference("D374", "checkpoint.interval", Level.NOTE)
def last_checkpoint(pair: Pair) -> str | None:
    """What is saved at the end of the run.

    Everything, or the weights alone (even where the intermediate checkpoints hold everything).

    Why: a finished run cannot be prolonged from weights alone: moments and data position are gone.
    Example: 1,000 steps that should have been 2,000 go on from the last but one checkpoint.
    Fix: ask for a full last checkpoint.
    """
    return "" if _saves(pair) else None


@difference("D375", "logging.eval_steps", Level.NOTE)
def evaluation(pair: Pair) -> str | None:
    """How much one evaluation covers.

    So many global batches of the validation split, so many steps, or the whole data set; or there is none unless an
    interval is given.

    Why: validation losses over other texts are not comparable, and a whole data set can take longer than training.
    Example: 100 iterations of 512 sequences are 51,200 sequences each time.
    Fix: make the validation set as long as wanted, and state its length wherever there is an option.
    """
    if not (pair.left.leaf("logging.evaluate") or pair.right.leaf("logging.evaluate")):
        return None
    return ""


@difference("D376", "logging.interval", Level.NOTE)
def logged_loss(pair: Pair) -> str | None:
    """What the loss of a log line is the mean of.

    All steps since the last line, or the last step alone.

    Why: curves of the last step are noisier, and spikes between the lines are invisible; means lag by half an interval.
    Example: at an interval of 10 the noise differs by a factor of 3.
    Fix: log every step, or smooth before comparing.
    """
    interval = max(pair.left.size("logging.interval"), pair.right.size("logging.interval"))
    return f"noise by a factor of {interval**0.5:.1f}" if interval > 1 else None


@difference("D377", "loss.cpu_check_nan", Level.NOTE)
def not_finite(pair: Pair) -> str | None:
    """What a loss or gradient that is not finite does.

    It stops the run, skips the step, or passes into the weights.

    Why: weights that are not numbers cost the compute up to the last good checkpoint; a filter on what is logged can
    hide it.
    Example: bf16 training with an overflow at step 30,000, seen at 30,010 or never.
    Fix: check for it wherever there is an option, and keep several checkpoints.
    """
    _ = pair
    return "only where something overflows"


@difference("D378", "launch.process_group_timeout_seconds", Level.NOTE)
def collective_timeout(pair: Pair) -> str | None:
    """How long a rank waits for the others.

    One length for the whole run, or one for the first step and a shorter one after it.

    Why: slow data, checkpoints on slow disks or a compilation in the middle end a run with a short one; a hang wastes
    the nodes with a long one.
    Example: saving 400 GB for two minutes under a limit of 100 seconds.
    Fix: set the limit above the slowest save.
    """
    _ = pair
    return ""


@difference("D379", "launch.environment", Level.NOTE)
def device_connections(pair: Pair) -> str | None:
    """What CUDA_DEVICE_MAX_CONNECTIONS has to be.

    1 keeps the order in which kernels are issued: one framework demands it for tensor and context parallelism before
    Blackwell, and refuses it for its FSDP; the others need none.

    Why: with one connection the collectives of FSDP wait behind compute; with several, tensor-parallel overlap is
    lost, or the run is refused.
    Example: an environment carried over from a tensor-parallel script slows a sharded run down.
    Fix: set it to 1 where it is demanded, and nowhere else.
    """
    sides = (pair.left, pair.right)
    carried = any("CUDA_DEVICE_MAX_CONNECTIONS" in (side.environment or {}) for side in sides)
    return "speed, and whether the run starts; not results" if carried else None
