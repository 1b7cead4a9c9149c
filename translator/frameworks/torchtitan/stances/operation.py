"""torchtitan on data, checkpoints, evaluation and the environment."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.subject import Subject

_TEXT = "hf_datasets/text_datasets.py"


def _old(subject: Subject) -> bool:
    return subject.version < (0, 3)


def _at(subject: Subject, first: str, old: str, new: str) -> str:
    """The upstream line at 0.1.0, 0.2.2 or 0.3.0."""
    if subject.version < (0, 2):
        return f"{first} (torchtitan 0.1.0)"
    return f"{old} (torchtitan 0.2.2)" if _old(subject) else f"{new} (torchtitan 0.3.0)"


def _checkpoints(subject: Subject) -> bool:
    return bool(subject.value("checkpoint.enable", subject.value("checkpoint.enable_checkpoint")))


@stance("D348")
def overridden_environment(subject: Subject) -> Stance:
    """Those of the watchdog and the flight recorder, from the section comm."""
    says = "sets TORCH_NCCL_ASYNC_ERROR_HANDLING to 3, and the flight recorder's variables from the section comm"
    source = _at(subject, "distributed/utils.py:258", "distributed/utils.py:346", "distributed/utils.py:532")
    ways = {"leaves": "set comm.trace_buf_size and comm.save_traces_folder to what the launch means"}
    return Stance("overrides", says, source, "comm.trace_buf_size", ways)


@stance("D349")
def deterministic_mode(subject: Subject) -> Stance:
    """Deterministic kernels, and a variable that it sets."""
    option = "training.deterministic" if subject.version < (0, 2) else "debug.deterministic"
    source = _at(subject, "distributed/utils.py:92", "distributed/utils.py:114", "distributed/utils.py:198")
    if not subject.leaf("data.deterministic"):
        return Stance("off", "takes the fastest kernels", source, option)
    return Stance("sets", "sets CUBLAS_WORKSPACE_CONFIG itself and leaves NCCL as it is", source, option)


@stance("D365")
def seed(subject: Subject) -> Stance:
    """Drawn unless given; one stream over all ranks of a pipeline stage; data are not shuffled by it."""
    option = "training.seed" if subject.version < (0, 2) else "debug.seed"
    source = _at(subject, "distributed/utils.py:102", "distributed/utils.py:144", "distributed/utils.py:258")
    value = subject.leaf("data.seed")
    if value is None:
        ways = {"by stage and tensor rank": f"set {option}", "alike": f"set {option}"}
        return Stance("drawn", "draws a seed at each start unless one is given", source, option, ways)
    says = f"seeds weights with {value} plus 1 per pipeline stage, as one stream over its ranks, and no data"
    return Stance("by stage", says, source, option)


@stance("D366")
def data_order(subject: Subject) -> Stance:
    """The files' own order; data sets in memory are shuffled from the second epoch on since 0.3.0."""
    says = "reads documents in the data set's own order, dealt out to data-parallel ranks"
    if not _old(subject):
        says += " (shuffled from the second epoch on where the set is not streamed)"
    return Stance("own order", says, _at(subject, "datasets/hf_datasets.py:91", f"{_TEXT}:91", f"{_TEXT}:95"))


@stance("D367")
def document_mask(subject: Subject) -> Stance | None:
    """By the attention of the model: flex masks by document, SDPA does not."""
    mask = subject.leaf("model.attention_mask")
    if mask is None:
        return None
    if mask == "document":
        source = _at(subject, "models/attention.py:39", "models/attention.py:217", "models/common/decoder.py:303")
        return Stance("own document", "lets tokens see those of their own document", source, "model.flavor")
    source = _at(subject, "models/attention.py:214", "models/llama3/model/args.py:46", "models/common/decoder.py:303")
    says = "lets tokens see all that precede, whatever the document"
    ways = {"own document": "take a flavor with flex attention (llama3: 8B_flex)"} if _old(subject) else {}
    return Stance("all", says, source, "model.flavor", ways)


@stance("D368")
def end_of_document_loss(subject: Subject) -> Stance:
    """Every token counts; since 0.3.0 labels are of the same document, and its end token is no input."""
    if not _old(subject):
        says = "predicts nothing after the token that ends a document"
        return Stance("left out", says, f"{_TEXT}:142 (torchtitan 0.3.0)")
    source = _at(subject, "components/loss.py:18", "components/loss.py:20", "")
    return Stance("counts", "counts every prediction", source)


@stance("D369")
def sample_cut(subject: Subject) -> Stance:
    """A beginning and an end token per document; samples share no token."""
    how = "cuts samples that share no token" if _old(subject) else "takes inputs and labels from one document"
    says = f"adds a beginning and an end token to each document and {how}"
    source = _at(subject, "datasets/hf_datasets.py:119", f"{_TEXT}:120", f"{_TEXT}:135")
    return Stance("own special tokens", says, source)


@stance("D370")
def data_resumption(subject: Subject) -> Stance:
    """By a state per data-parallel rank."""
    says = "goes on from a state per data-parallel rank and stops where their number has changed"
    place = "components/dataloader.py:"
    return Stance("state per rank", says, _at(subject, f"{place}92", f"{place}136", f"{place}161"))


@stance("D371")
def checkpoint_layout(subject: Subject) -> Stance:
    """Any; the data's state is another matter."""
    source = _at(
        subject, "components/checkpoint.py:404", "components/checkpoint.py:558", "components/checkpointer/dcp.py:498"
    )
    return Stance("any layout", "loads checkpoints into any layout", source)


@stance("D372")
def automatic_resumption(subject: Subject) -> Stance:
    """By itself, as soon as checkpoints are on."""
    option = "checkpoint.enable" if subject.version >= (0, 2) else "checkpoint.enable_checkpoint"
    source = _at(
        subject, "components/checkpoint.py:425", "components/checkpoint.py:581", "components/checkpointer/dcp.py:498"
    )
    if not _checkpoints(subject):
        ways = {"by itself": f"set {option} = true"}
        return Stance("anew", "saves and loads nothing, since checkpoints are off", source, option, ways)
    says = "goes on from the newest checkpoint in the folder that it saves to, or begins where there is none"
    ways = {"anew": "name another checkpoint.folder for each start"}
    return Stance("by itself", says, source, "checkpoint.folder", ways)


@stance("D373")
def schedule_on_resumption(subject: Subject) -> Stance:
    """The state of torch's LambdaLR holds the peak, not the shape; 0.3.0 saves the step alone."""
    if not _old(subject):
        says = "takes the step from the checkpoint and the schedule from the configuration"
        return Stance("configuration", says, _at(subject, "", "", "components/optimizer/lr_scheduler.py:243"))
    says = "takes the peak from the checkpoint and the shape from the configuration"
    place = "components/lr_scheduler.py:"
    source = _at(subject, f"{place}74", f"{place}74", "")
    ways = {
        "configuration": 'add "lr_scheduler" and "optimizer" to checkpoint.exclude_from_loading for the restart',
    }
    return Stance("peak of the checkpoint", says, source, "checkpoint.exclude_from_loading", ways)


@stance("D374")
def last_checkpoint(subject: Subject) -> Stance:
    """Weights alone since 0.2, unless told otherwise."""
    option = "checkpoint.last_save_model_only"
    if subject.version < (0, 2):
        option = "checkpoint.last_save_model_weights_only"
    source = _at(
        subject, "components/checkpoint.py:591", "components/checkpoint.py:787", "components/checkpointer/dcp.py:767"
    )
    ways = {"everything": f"set {option} = false", "weights": f"set {option} = true"}
    if subject.value(option):
        how = "" if subject.stated(option) else " unless told otherwise"
        says = f"saves the weights alone at the end{how}"
        return Stance("weights", says, source, option, ways)
    return Stance("everything", "saves everything once more at the end", source, option, ways)


@stance("D375")
def evaluation(subject: Subject) -> Stance | None:
    """So many steps of the validation loader, or the whole set."""
    section = "validation" if _old(subject) else "validator"
    option = f"{section}.steps"
    source = _at(subject, "train.py:426", "components/validate.py:177", "components/validate.py:255")
    if not subject.leaf("logging.evaluate"):
        return Stance("none", "evaluates nothing", source, f"{section}.enable")
    steps = subject.value(option)
    if steps == -1:
        return Stance("all", "evaluates the whole validation set unless told otherwise", source, option)
    batch = (
        subject.value("validation.local_batch_size") if _old(subject) else subject.value("training.local_batch_size")
    )
    length = subject.value("validation.seq_len") if _old(subject) else subject.value("training.seq_len")
    degree = subject.leaf("parallel.data.degree")
    if not (steps and batch and length and degree):
        return None
    tokens = steps * batch * degree * length
    says = f"evaluates {steps} steps of {batch} sequences of {length} tokens on each rank, {tokens:,} tokens, at a time"
    return Stance(f"{tokens} tokens", says, source, option, {"all": f"set {option} = -1"})


@stance("D376")
def logged_loss(subject: Subject) -> Stance:
    """That of the last step."""
    source = _at(subject, "train.py:459", "train.py:624", "trainer.py:976")
    return Stance("last step", "logs the loss of the last step alone", source, "metrics.log_freq")


@stance("D377")
def not_finite(subject: Subject) -> Stance:
    """Nothing happens until 0.3.0, where the run stops at a log line."""
    if _old(subject):
        says = "goes on, and the weights are lost"
        return Stance("goes on", says, _at(subject, "train.py:434", "train.py:592", ""), "training.max_norm")
    says = "stops at the next log line whose loss is not finite"
    return Stance("stops", says, "trainer.py:994 (torchtitan 0.3.0)", "metrics.log_freq")


@stance("D378")
def collective_timeout(subject: Subject) -> Stance | None:
    """One length for the first step, a shorter one after it."""
    first, later = subject.value("comm.init_timeout_seconds"), subject.value("comm.train_timeout_seconds")
    if later is None:
        return None
    how = f" ({first} in the first step)" if first != later else ""
    says = f"waits {later} seconds for a collective{how}"
    source = _at(subject, "train.py:511", "train.py:702", "trainer.py:1064")
    return Stance(f"{later} s", says, source, "comm.train_timeout_seconds")


@stance("D379")
def device_connections(subject: Subject) -> Stance:
    """It sets and needs nothing."""
    says = "sets no CUDA_DEVICE_MAX_CONNECTIONS and needs none"
    source = _at(subject, "distributed/utils.py:258", "distributed/utils.py:338", "distributed/utils.py:559")
    return Stance("several", says, source, "@environment")
