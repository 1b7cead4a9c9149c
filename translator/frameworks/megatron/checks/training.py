"""Precision, schedules and batches that Megatron-LM takes as they are, and their author would not."""

from __future__ import annotations

from collections.abc import Iterator

from translator.checks.registry import rule
from translator.findings import Level
from translator.subject import Remark, Subject

# Sizes from which a model is no toy, which may well be in fp32.
_REAL_HIDDEN = 1024
_LARGE_SCALE = 2**24


@rule("P530")
def full_precision(subject: Subject) -> Iterator[Remark]:
    """Training in fp32, because nothing else is stated.

    Why: parameters and matrix products are fp32 unless --bf16 or --fp16 is given: twice the memory and a fraction of
    the speed. fp8 and fp4 do not switch it on.
    Example: a launch without --bf16.
    Fix: --bf16.
    Source: megatron/training/arguments.py:1162 (core 0.18.0).
    """
    hidden = subject.value("hidden_size")
    if subject.value("bf16") or subject.value("fp16") or subject.value("skip_train"):
        return
    if subject.value("params_dtype") == "torch.float32" and isinstance(hidden, int) and hidden >= _REAL_HIDDEN:
        option = next((name for name in ("fp8", "fp4") if subject.stated(name)), None)
        message = "neither --bf16 nor --fp16: training runs in fp32"
        yield Remark(message, "add --bf16", option=option)


@rule("P531", Level.NOTE)
def first_scale(subject: Subject) -> Iterator[Remark]:
    """fp16 that begins with a loss scale of 2^32.

    Why: every step overflows and is left out until the scale has halved to what the gradients allow, some 16 times, and
    each time only after as many overflows as --hysteresis says.
    Example: --fp16 without --initial-loss-scale.
    Fix: --initial-loss-scale 65536, or --bf16.
    Source: megatron/training/arguments.py:2689 (core 0.18.0).
    """
    scale = subject.value("initial_loss_scale")
    if not subject.value("fp16") or subject.value("loss_scale") or not isinstance(scale, float | int):
        return
    if scale > _LARGE_SCALE:
        message = f"the loss scale begins at {scale:g}: the first steps overflow and train nothing"
        yield Remark(message, "--initial-loss-scale 65536", option="fp16")


@rule("P532")
def warmup_of_another_length(subject: Subject) -> Iterator[Remark]:
    """A warm-up fraction that is one of the decay, not of the run.

    Why: --lr-warmup-fraction counts in --lr-decay-iters (or samples) where they are stated. With a decay much longer
    than the run the warm-up is longer, too, and may fill it.
    Example: --train-iters 1000 --lr-decay-iters 100000 --lr-warmup-fraction 0.01 warms up for all of the run.
    Fix: state the warm-up in iterations (or samples), or a decay as long as the run.
    Source: megatron/training/training.py:1841 (core 0.18.0).
    """
    fraction = subject.value("lr_warmup_fraction")
    for unit in ("iters", "samples"):
        decay, run = subject.value(f"lr_decay_{unit}"), subject.value(f"train_{unit}")
        if not fraction or not isinstance(decay, int) or not isinstance(run, int) or not 0 < run != decay:
            continue
        message = f"the warm-up is {fraction:g} of the decay, {fraction * decay:g} {unit}, "
        message += f"not of the run, {fraction * run:g}"
        yield Remark(message, f"state --lr-warmup-{unit}", option="lr_warmup_fraction")


@rule("P533")
def decay_of_no_use(subject: Subject) -> Iterator[Remark]:
    """A length of the WSD decay that is not used, or longer than there is room for.

    Why: --lr-wsd-decay-iters counts for --lr-decay-style WSD only; and where it reaches back into the warm-up the rate
    drops from the peak before it has been held.
    Example: --lr-decay-style cosine --lr-wsd-decay-iters 1000.
    Fix: --lr-decay-style WSD, or leave the length out.
    Source: megatron/core/optimizer_param_scheduler.py:262 (core 0.18.0).
    """
    for unit in ("iters", "samples"):
        length = subject.value(f"lr_wsd_decay_{unit}")
        whole = subject.value(f"lr_decay_{unit}") or subject.value(f"train_{unit}")
        if not isinstance(length, int):
            continue
        option = f"lr_wsd_decay_{unit}"
        if subject.value("lr_decay_style") != "WSD":
            message = f"--lr-wsd-decay-{unit} is not used by --lr-decay-style {subject.value('lr_decay_style')}"
            yield Remark(message, "use --lr-decay-style WSD, or leave it out", option=option)
        elif isinstance(whole, int) and length > whole - (subject.value(f"lr_warmup_{unit}") or 0):
            message = f"a WSD decay of {length} {unit} does not fit behind the warm-up in {whole}"
            yield Remark(message, "shorten the decay", option=option)


@rule("P534")
def evaluation_that_never_comes(subject: Subject) -> Iterator[Remark]:
    """--eval-iters without --eval-interval.

    Why: since 0.16.0 there is no default interval, so that a script which relied on 1000 does not evaluate any more.
    Example: --eval-iters 10 alone.
    Fix: --eval-interval 1000.
    Source: megatron/training/config/training_config.py:120 and training.py:3679 (core 0.18.0).
    """
    stated = subject.stated("eval_iters") and subject.value("eval_iters")
    if subject.version >= (0, 16) and stated and subject.value("eval_interval") is None:
        message = "--eval-iters without --eval-interval: nothing is evaluated during training"
        yield Remark(message, "state --eval-interval", option="eval_iters")


@rule("P535")
def restart_from_scratch(subject: Subject) -> Iterator[Remark]:
    """A run that forgets its progress when it is started again.

    Why: --finetune begins at iteration 0 with a fresh optimizer and schedule, and --no-load-optim leaves the optimizer
    out. Where a run loads from the folder that it saves to, each restart of the job does so to its own checkpoint.
    Example: --load ckpt --save ckpt --finetune.
    Fix: load the first checkpoint from another folder, or from --pretrained-checkpoint.
    Source: megatron/training/checkpointing.py:1865 and :1919 (core 0.18.0).
    """
    save, load = subject.value("save"), subject.value("load")
    if not isinstance(save, str) or not isinstance(load, str) or save.rstrip("/") != load.rstrip("/"):
        return
    told = {"finetune": "begins at iteration 0", "no_load_optim": "leaves the optimizer's state behind"}
    for address, what in told.items():
        if subject.value(address) and subject.stated(address):
            flag = "--" + address.replace("_", "-")
            message = f"{flag} with --load and --save of the same folder: every restart {what}"
            yield Remark(message, "load from another folder than the one that is saved to", option=address)


@rule("P536", Level.NOTE)
def no_way_back(subject: Subject) -> Iterator[Remark]:
    """--save without --load.

    Why: a job that is started again after an interruption begins anew and writes over its own checkpoints.
    Example: --save ckpt --save-interval 500 without --load ckpt.
    Fix: --load of the same folder; a folder without a checkpoint is no error.
    Source: megatron/training/checkpointing.py:1342 (core 0.18.0).
    """
    loads = any(subject.given(name) is not None for name in ("load", "pretrained_checkpoint"))
    if isinstance(subject.value("save"), str) and not loads and not subject.value("skip_train"):
        message = f"saves to {subject.value('save')} and loads nothing: a restart begins anew"
        yield Remark(message, "add --load of the same folder", option="save")


@rule("P537")
def tokenizer_without_its_files(subject: Subject) -> Iterator[Remark]:
    """A tokenizer that is told no model.

    Why: the run stops when the tokenizer is built, after the queue.
    Example: --tokenizer-type HuggingFaceTokenizer without --tokenizer-model.
    Fix: --tokenizer-model with a path, or a name for HuggingFaceTokenizer.
    Source: megatron/core/tokenizers/utils/build_tokenizer.py:50-70 (core 0.18.0).
    """
    kind = subject.value("tokenizer_type")
    needing = ("HuggingFaceTokenizer", "SentencePieceTokenizer", "GPTSentencePieceTokenizer", "TikTokenizer")
    given = subject.given("tokenizer_model")
    if kind in (*needing, "Llama2Tokenizer") and given is None and not subject.value("use_checkpoint_args"):
        yield Remark(f"--tokenizer-type {kind} without --tokenizer-model", "state it", option="tokenizer_type")


@rule("P538")
def null_tokenizer_without_size(subject: Subject) -> Iterator[Remark]:
    """The null tokenizer without a vocabulary size.

    Why: it has no vocabulary of its own, and the embedding needs a size.
    Example: --tokenizer-type NullTokenizer without --vocab-size.
    Fix: --vocab-size.
    Source: megatron/core/tokenizers/utils/build_tokenizer.py:92 (core 0.18.0).
    """
    null = subject.value("tokenizer_type") in ("NullTokenizer", "NullMultimodalTokenizer")
    if null and subject.given("vocab_size") is None and subject.given("padded_vocab_size") is None:
        message = f"--tokenizer-type {subject.value('tokenizer_type')} without --vocab-size"
        yield Remark(message, "state --vocab-size", option="tokenizer_type")


@rule("P539")
def split_without_validation(subject: Subject) -> Iterator[Remark]:
    """A split that leaves a part out unasked.

    Why: numbers are found in the text wherever they stand; one that is missing counts as 0, and a part of 0 is not
    built, so that evaluation has no data.
    Example: --split 100 trains on everything while --eval-interval asks for validation data.
    Fix: three numbers, such as --split 969,30,1; or no evaluation.
    Source: megatron/core/datasets/blended_megatron_dataset_config.py:164 (core 0.18.0).
    """
    split, interval = subject.value("split"), subject.value("eval_interval")
    if not isinstance(split, str) or not interval or not subject.value("data_path") or not subject.value("eval_iters"):
        return
    parts = [part.strip(" '\"") for part in split.split(",")]
    if len(parts) < 2 or not parts[1].strip("0."):
        message = f"--split {split} leaves no validation data, which --eval-interval {interval} asks for"
        yield Remark(message, "three numbers, such as 969,30,1", option="split")
