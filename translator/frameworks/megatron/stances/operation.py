"""Megatron-LM on data, checkpoints, evaluation and the environment."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.subject import Subject

_DATA = "megatron/core/datasets/gpt_dataset.py"
_TRAINING = "megatron/training/training.py"
_CHECKPOINTS = "megatron/training/checkpointing.py"
_ARGUMENTS = "megatron/training/arguments.py"


@stance("D348")
def overridden_environment(subject: Subject) -> Stance:
    """None, unless a folder for flight records is given."""
    source = "megatron/training/initialize.py:280 (core 0.18.0)"
    if subject.value("flight_recorder_dump_path"):
        says = "sets the flight recorder's variables that the launch leaves open"
        return Stance("leaves", says, source, "flight_recorder_dump_path")
    return Stance("leaves", "leaves the environment as the launch says", source)


@stance("D349")
def deterministic_mode(subject: Subject) -> Stance:
    """Deterministic kernels, and a variable that has to be there."""
    if not subject.leaf("data.deterministic"):
        return Stance("off", "takes the fastest kernels", f"{_ARGUMENTS}:1529 (core 0.18.0)", "deterministic_mode")
    says = "demands NCCL_ALGO, and neither fused cross entropy nor --use-flash-attn"
    return Stance("demands", says, f"{_ARGUMENTS}:1534 (core 0.18.0)", "deterministic_mode")


@stance("D365")
def seed(subject: Subject) -> Stance | None:
    """1234 unless told otherwise, with offsets per pipeline stage and tensor rank."""
    value = subject.leaf("data.seed")
    if value is None:
        return None
    how = "" if subject.stated("seed") else " unless told otherwise"
    says = f"seeds weights, dropout and data with {value}{how}, plus 100 per pipeline stage and 1 per tensor rank"
    ways = {"drawn": "draw a seed in the script and give it to --seed"}
    return Stance("by stage and tensor rank", says, "megatron/training/initialize.py:391 (core 0.18.0)", "seed", ways)


@stance("D366")
def data_order(subject: Subject) -> Stance | None:
    """Documents and samples are shuffled once, over all epochs."""
    kind = subject.value("dataloader_type")
    if kind == "cyclic":
        says = "shuffles samples anew in each epoch, within the share of each data-parallel rank"
        source = "megatron/training/datasets/data_samplers.py:374 (core 0.18.0)"
        return Stance("each epoch", says, source, "dataloader_type")
    if kind == "external" or subject.leaf("data.mock"):
        return None
    says = "shuffles documents, and samples cut from them, once for the whole run"
    return Stance("once", says, f"{_DATA}:496 (core 0.18.0)", "data_path")


@stance("D367")
def document_mask(subject: Subject) -> Stance:
    """All that precede, unless masks are reset."""
    source = f"{_DATA}:769 (core 0.18.0)"
    ways = {"own document": "add --reset-attention-mask", "all": "leave --reset-attention-mask out"}
    if subject.leaf("data.reset_attention") or subject.leaf("model.attention_mask") == "document":
        return Stance(
            "own document", "lets tokens see those of their own document", source, "reset_attention_mask", ways
        )
    says = "lets tokens see all that precede, whatever the document"
    return Stance("all", says, source, "reset_attention_mask", ways)


@stance("D368")
def end_of_document_loss(subject: Subject) -> Stance:
    """Every token counts, unless told otherwise."""
    source = f"{_DATA}:748 (core 0.18.0)"
    ways = {"counts": "leave --eod-mask-loss out", "left out": "add --eod-mask-loss"}
    if subject.leaf("data.mask_end_of_document"):
        says = "leaves out the prediction of what follows a document's end"
        return Stance("left out", says, source, "eod_mask_loss", ways)
    return Stance("counts", "counts every prediction", source, "eod_mask_loss", ways)


@stance("D369")
def sample_cut(subject: Subject) -> Stance | None:
    """Neighbouring samples share a token; special tokens come from the preparation."""
    if subject.leaf("data.mock"):
        return None
    says = "cuts samples that share one token with their neighbours, from documents tokenised beforehand"
    return Stance("shared token", says, f"{_DATA}:241 (core 0.18.0)", "data_path")


@stance("D370")
def data_resumption(subject: Subject) -> Stance:
    """By samples consumed."""
    _ = subject
    says = "goes on after the number of samples consumed, on any number of ranks"
    return Stance("samples", says, f"{_CHECKPOINTS}:1883 (core 0.18.0)", "load")


@stance("D371")
def checkpoint_layout(subject: Subject) -> Stance:
    """By format, and by how the distributed optimizer lays its states out."""
    fixed = subject.leaf("checkpoint.format")
    option = "ckpt_format"
    if fixed in ("torch", "zarr"):
        says = f"loads its {fixed} checkpoints into the same tensor and pipeline degrees alone"
        ways = {"any layout": "set --ckpt-format torch_dist"}
        return Stance("any data degree", says, f"{_CHECKPOINTS}:532 (core 0.18.0)", option, ways)
    partly = subject.version >= (0, 15) and not subject.value("dist_ckpt_optim_fully_reshardable")
    if fixed == "torch_dist" and subject.leaf("parallel.data.sharding") == "optimizer" and partly:
        says = "loads optimizer states into any data-parallel degree, at the same tensor and pipeline degrees"
        ways = {"any layout": "add --dist-ckpt-optim-fully-reshardable"}
        source = f"{_CHECKPOINTS}:450 (core 0.18.0)"
        return Stance("any data degree", says, source, "dist_ckpt_optim_fully_reshardable", ways)
    source = f"{_CHECKPOINTS}:447 (core 0.18.0)"
    if subject.version < (0, 15):
        source = f"{_CHECKPOINTS}:409 (core 0.12.0)"
    return Stance("any layout", "loads checkpoints into any layout", source, option)


@stance("D372")
def automatic_resumption(subject: Subject) -> Stance:
    """From the folder to load, which is the one saved to or another."""
    load, save = subject.leaf("checkpoint.load"), subject.leaf("checkpoint.save")
    source = f"{_CHECKPOINTS}:1342 (core 0.18.0)"
    ways = {"by itself": f"add --load {save}", "anew": "leave --load out"}
    if not load:
        return Stance("anew", "begins anew after a restart, since nothing is loaded", source, "load", ways)
    if load == save:
        says = "goes on from the newest checkpoint in the folder that it saves to, or begins where there is none"
        return Stance("by itself", says, source, "load", ways)
    return Stance("as named", f"goes back to {load} after a restart", source, "load", ways)


@stance("D373")
def schedule_on_resumption(subject: Subject) -> Stance:
    """It stops where they differ, unless one is preferred."""
    source = "megatron/core/optimizer_param_scheduler.py:318 (core 0.18.0)"
    ways = {
        "configuration": "add --override-opt_param-scheduler",
        "checkpoint": "add --use-checkpoint-opt_param-scheduler",
    }
    if subject.value("override_opt_param_scheduler"):
        says = "follows the schedule of the configuration, as told"
        return Stance("configuration", says, source, "override_opt_param_scheduler", ways)
    if subject.value("use_checkpoint_opt_param_scheduler"):
        says = "follows the schedule of the checkpoint, as told"
        return Stance("checkpoint", says, source, "use_checkpoint_opt_param_scheduler", ways)
    says = "stops where the schedule of the checkpoint is not that of the configuration"
    return Stance("stops", says, source, "override_opt_param_scheduler", ways)


@stance("D374")
def last_checkpoint(subject: Subject) -> Stance:
    """Everything, like all checkpoints."""
    source = f"{_TRAINING}:3546 (core 0.18.0)"
    if subject.value("no_save_optim"):
        return Stance("weights", "saves no optimizer states, at the end as before", source, "no_save_optim")
    return Stance("everything", "saves everything once more at the end", source, "save_interval")


@stance("D375")
def evaluation(subject: Subject) -> Stance | None:
    """So many global batches of the validation split."""
    option, source = "eval_iters", f"{_TRAINING}:3886 (core 0.18.0)"
    if not subject.leaf("logging.evaluate"):
        how = " unless --eval-interval is given" if subject.version >= (0, 16) else ""
        return Stance("none", f"evaluates nothing{how}", source, "eval_interval")
    batches, length = subject.value("eval_iters"), subject.leaf("batch.seq_len")
    batch = subject.value("eval_global_batch_size") or subject.leaf("batch.global_batch")
    if not (isinstance(batches, int) and batch and length):
        return None
    tokens = batches * batch * length
    says = f"evaluates {batches} global batches of the validation split, {tokens:,} tokens, at a time"
    return Stance(f"{tokens} tokens", says, source, option, {"none": "set --eval-iters 0"})


@stance("D376")
def logged_loss(subject: Subject) -> Stance:
    """The mean since the last line."""
    _ = subject
    says = "logs the mean over all steps since the last line"
    return Stance("mean", says, f"{_TRAINING}:2661 (core 0.18.0)", "log_interval")


@stance("D377")
def not_finite(subject: Subject) -> Stance:
    """Skipped under fp16; otherwise it stops, unless the check is off."""
    if subject.leaf("precision.compute") == "fp16":
        source = f"{_ARGUMENTS}:1169 (core 0.18.0)"
        return Stance("skips", "skips steps whose gradients are not finite", source, "fp16")
    option = "check_for_nan_in_loss_and_grad"
    ways = {"stops": "leave --no-check-for-nan-in-loss-and-grad out"}
    if subject.value(option):
        return Stance("stops", "stops at a loss that is not finite", "pretrain_gpt.py:151 (core 0.18.0)", option, ways)
    return Stance("goes on", "goes on, since the check is off", "pretrain_gpt.py:151 (core 0.18.0)", option, ways)


@stance("D378")
def collective_timeout(subject: Subject) -> Stance | None:
    """Minutes for the whole run, or seconds after the first step."""
    seconds = subject.leaf("launch.process_group_timeout_seconds")
    if seconds is None:
        return None
    later = subject.value("distributed_timeout_seconds_after_init")
    says = f"waits {later or seconds} seconds for a collective" + (" after the first step" if later else "")
    source = "megatron/training/initialize.py:320 (core 0.18.0)"
    return Stance(f"{later or seconds} s", says, source, "distributed_timeout_minutes")


@stance("D379")
def device_connections(subject: Subject) -> Stance | None:
    """1 for tensor and context parallelism, never for its FSDP."""
    if subject.leaf("parallel.data.sharding") == "full":
        says = "refuses CUDA_DEVICE_MAX_CONNECTIONS=1 for its FSDP"
        return Stance("several", says, f"{_ARGUMENTS}:1139 (core 0.18.0)", "@environment")
    if subject.size("parallel.tensor") > 1 or subject.size("parallel.context") > 1:
        says = "demands CUDA_DEVICE_MAX_CONNECTIONS=1 for tensor and context parallelism before Blackwell"
        return Stance("one", says, f"{_ARGUMENTS}:1422 (core 0.18.0)", "@environment")
    return None
