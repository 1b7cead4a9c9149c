"""DeepSpeed, with its trainer, on data, checkpoints, evaluation and the environment."""

from __future__ import annotations

from translator.differences.registry import Stance, stance
from translator.frameworks.deepspeed.stances.optimizer import by_wrapper
from translator.frameworks.deepspeed.stances.programs import of_transformers, trained
from translator.subject import Subject

_TRAINER = "transformers/trainer.py"


@stance("D348")
@of_transformers
def overridden_environment(subject: Subject) -> Stance:
    """None."""
    _ = subject
    return Stance("leaves", "leaves the environment as the launch says", "deepspeed/comm/comm.py:884 (0.19.2)")


@stance("D349")
def deterministic_mode(subject: Subject) -> Stance | None:
    """Deterministic kernels, launched one by one."""
    if not trained(subject):
        return None
    source, option = "transformers/trainer_utils.py:154 (5.24.0)", "hf.full_determinism"
    if not subject.leaf("data.deterministic"):
        return Stance("off", "takes the fastest kernels", source, option)
    says = "sets CUBLAS_WORKSPACE_CONFIG and FLASH_ATTENTION_DETERMINISTIC itself and launches kernels one by one"
    return Stance("one by one", says, source, option)


@stance("D365")
def seed(subject: Subject) -> Stance | None:
    """42 unless told otherwise, on every rank alike."""
    value = subject.leaf("data.seed")
    if not trained(subject) or value is None:
        return None
    how = "" if subject.stated("hf.seed") else " unless told otherwise"
    says = f"seeds weights, dropout and data with {value}{how} on every rank alike"
    return Stance("alike", says, "transformers/trainer_utils.py:180 (5.24.0)", "hf.seed")


@stance("D366")
def data_order(subject: Subject) -> Stance | None:
    """Shuffled anew in each epoch, or in order."""
    if not trained(subject):
        return None
    option = "hf.train_sampling_strategy"
    if subject.value(option) == "sequential":
        says = "reads samples in the data set's own order"
        return Stance("own order", says, f"{_TRAINER}:1143 (5.24.0)", option)
    says = "shuffles samples anew in each epoch (data sets that are streamed: as they come)"
    ways = {"own order": "set train_sampling_strategy to sequential"}
    return Stance("each epoch", says, f"{_TRAINER}:1145 (5.24.0)", option, ways)


@stance("D367")
def document_mask(subject: Subject) -> Stance | None:
    """A causal mask; documents only where a collator packs them."""
    mask = subject.leaf("model.attention_mask")
    if not trained(subject) or mask is None:
        return None
    source = "transformers/models/llama/modeling_llama.py:382 (5.24.0)"
    if mask == "document" or subject.leaf("data.reset_attention"):
        return Stance("own document", "lets tokens see those of their own document", source)
    says = "lets tokens see all that precede, unless a collator marks documents in a sequence"
    return Stance("all", says, source)


@stance("D368")
def end_of_document_loss(subject: Subject) -> Stance | None:
    """What the labels say; -100 does not count."""
    if not trained(subject):
        return None
    return Stance("counts", "counts every label that is not -100", "transformers/loss/loss_utils.py:38 (5.24.0)")


@stance("D370")
def data_resumption(subject: Subject) -> Stance | None:
    """By skipping what was seen."""
    if not trained(subject):
        return None
    option = "hf.ignore_data_skip"
    if subject.value(option):
        says = "begins the data anew after a restart, as told"
        return Stance("anew", says, f"{_TRAINER}:1851 (5.24.0)", option)
    says = "skips the batches of the epoch that were seen, at the same batch size and number of ranks"
    return Stance("skips batches", says, f"{_TRAINER}:1851 (5.24.0)", option)


@stance("D371")
def checkpoint_layout(subject: Subject) -> Stance:
    """Exactly the same, unless it is a universal checkpoint."""
    option = "checkpoint.load_universal"
    if subject.value(option):
        says = "loads universal checkpoints into any layout"
        return Stance("any layout", says, "deepspeed/runtime/engine.py:3979 (0.19.2)", option)
    says = "loads optimizer states into the same data-parallel degree alone"
    convert = "convert with ds_to_universal.py and set checkpoint.load_universal to true before a restart elsewhere"
    ways = {"any layout": convert, "any data degree": convert}
    return Stance("the same layout", says, "deepspeed/runtime/engine.py:3984 (0.19.2)", option, ways)


@stance("D372")
def automatic_resumption(subject: Subject) -> Stance | None:
    """Only when the program is told to."""
    if not trained(subject):
        return None
    option = "hf.resume_from_checkpoint"
    wanted = subject.value(option)
    source = f"{_TRAINER}:1554 (5.24.0)"
    ways = {"by itself": "pass resume_from_checkpoint=True to train() once there is a checkpoint"}
    if not wanted:
        return Stance(
            "anew", "begins anew after a restart unless the program asks for a checkpoint", source, option, ways
        )
    if wanted is True or str(wanted).lower() == "true":
        says = "goes on from the newest checkpoint, and stops where there is none"
        return Stance("by itself", says, source, option, ways)
    says = f"loads the one checkpoint {wanted}, and stops where it is none"
    return Stance("as named", says, "transformers/integrations/deepspeed.py:687 (5.24.0)", option, ways)


@stance("D373")
def schedule_on_resumption(subject: Subject) -> Stance | None:
    """Schedulers of the JSON keep a step alone; the trainer's keep the peak as well."""
    if subject.value("scheduler.type"):
        says = "takes the step from the checkpoint and the schedule from the configuration"
        return Stance("configuration", says, "deepspeed/runtime/lr_schedules.py:708 (0.19.2)", "scheduler.type")
    if not trained(subject):
        return None
    says = "takes the peak from the checkpoint and the shape from the configuration"
    source = "torch/optim/lr_scheduler.py:398 (torch 2.13)"
    return Stance("peak of the checkpoint", says, source, "hf.lr_scheduler_type")


@stance("D374")
def last_checkpoint(subject: Subject) -> Stance | None:
    """As all checkpoints, where steps decide."""
    if not trained(subject) or subject.value("hf.save_strategy") == "no":
        return None
    option = "hf.save_only_model"
    source = "transformers/trainer_callback.py:603 (5.24.0)"
    ways = {"weights": "set save_only_model to true", "everything": "set save_only_model to false"}
    if subject.value(option):
        return Stance("weights", "saves the weights alone, at the end as before", source, option, ways)
    return Stance("everything", "saves everything once more at the end", source, option, ways)


@stance("D375")
def evaluation(subject: Subject) -> Stance | None:
    """The whole evaluation set."""
    if not trained(subject):
        return None
    option = "hf.eval_strategy"
    source = f"{_TRAINER}:2805 (5.24.0)"
    if not subject.leaf("logging.evaluate"):
        return Stance("none", "evaluates nothing", source, option)
    return Stance(
        "all", "evaluates the whole evaluation set each time", source, option, {"none": "set eval_strategy to no"}
    )


@stance("D376")
def logged_loss(subject: Subject) -> Stance | None:
    """The mean since the last line."""
    if not trained(subject):
        return None
    says = "logs the mean over all steps since the last line"
    if subject.value("hf.logging_nan_inf_filter"):
        says += ", leaving out what is not finite"
    return Stance("mean", says, f"{_TRAINER}:2262 (5.24.0)", "hf.logging_steps")


@stance("D377")
def not_finite(subject: Subject) -> Stance:
    """Skipped under fp16; under bf16 it depends on the version, the wrapper, and a check (on since 0.19.8)."""
    option, stage = "bf16.check_grad_overflow", subject.value("zero_optimization.stage")
    if subject.leaf("precision.compute") == "fp16":
        source = "deepspeed/runtime/engine.py:2055 (0.19.2)"
        return Stance("skips", "skips steps whose gradients are not finite", source, "fp16.enabled")
    source, kind = by_wrapper(subject)
    if kind == "skips":
        return Stance("skips", "skips steps whose gradients are not finite", source, option)
    if kind == "stops":
        return Stance("stops", "stops at a gradient that is no number, at an assertion on its norm", source, option)
    ways = {"skips": f"set {option} to true"} if stage in (1, 2) and subject.version >= (0, 19) else {}
    return Stance("goes on", "goes on, and the weights are lost", source, option, ways)


@stance("D378")
def collective_timeout(subject: Subject) -> Stance | None:
    """Half an hour unless told otherwise."""
    seconds = subject.leaf("launch.process_group_timeout_seconds")
    if not trained(subject) or seconds is None:
        return None
    says = f"waits {seconds} seconds for a collective"
    return Stance(f"{seconds} s", says, "transformers/training_args.py:1438 (5.24.0)", "hf.ddp_timeout")


@stance("D379")
@of_transformers
def device_connections(subject: Subject) -> Stance:
    """It sets and needs nothing."""
    _ = subject
    says = "sets no CUDA_DEVICE_MAX_CONNECTIONS and needs none"
    return Stance("several", says, "deepspeed/runtime/zero/stage_1_and_2.py:622 (0.19.2)", "@environment")
