"""Batch sizes, training length, learning rate, data: what ``validate_args`` derives and refuses.

Source: ``megatron/training/arguments.py`` (core 0.18.0) and ``megatron/core/num_microbatches_calculator.py``.
"""

from __future__ import annotations

from typing import Any

from translator.findings import Level
from translator.frameworks.megatron.settle.engine import Rules, Settling, because

# Whether the global batch is one micro batch of every replica, however many those are.
ONE_MICRO_BATCH = "@one_micro_batch"
BATCH = Rules()
TRAINING = Rules()
MICROBATCHES = Rules()
CALCULATOR = "megatron/core/num_microbatches_calculator.py"
LEGACY_SPLIT = "969, 30, 1"
SUFFIXES = {"T": 10**12, "B": 10**9, "M": 10**6, "K": 10**3}
# From this version on nothing hands the ramp-up to the calculator.
RAMPUP_DROPPED = (0, 18)
NULL_TOKENIZER_WITHOUT_EOD = (0, 18)


@BATCH.rule("split")
def legacy_split(state: Settling) -> None:
    """A data path without a split gets the old default."""
    if state["data_path"] is not None and state["split"] is None:
        state.put("split", LEGACY_SPLIT, because("the old default for --data-path without --split", 670))


@BATCH.rule("phase_transition_iterations", since="0.16")
def phases(state: Settling) -> None:
    """Iteration numbers in order."""
    text = state["phase_transition_iterations"]
    if not text or not isinstance(text, str):
        return
    try:
        numbers = sorted(int(item.strip()) for item in text.split(","))
    except ValueError:
        message = f"--phase-transition-iterations takes iterations with commas between, not {text!r}"
        state.refuse("S112", message, "phase_transition_iterations")
        return
    state.put("phase_transition_iterations", numbers, because("sorted", 687))


@BATCH.rule("global_batch_size")
def global_batch(state: Settling) -> None:
    """One micro batch per replica, unless a global batch is stated."""
    micro = state["micro_batch_size"]
    if micro is None:
        state.refuse("S113", "--micro-batch-size is required", None, "give --micro-batch-size")
    if state["step_batch_size_schedule"] is not None and state["global_batch_size"] is not None:
        message = "--step-batch-size-schedule and --global-batch-size exclude each other"
        state.refuse("S101", message, "step_batch_size_schedule")
    if state["global_batch_size"] is None:
        state.recode(ONE_MICRO_BATCH, True)
        value = state.need("micro_batch_size") * state.need("data_parallel_size")
        state.put("global_batch_size", value, because("micro batch x data parallel size", 701))


@BATCH.rule("eval_global_batch_size", "eval_micro_batch_size", since="0.18")
def evaluation_batch(state: Settling) -> None:
    """Evaluation uses the training batch, unless told otherwise."""
    if state["eval_micro_batch_size"] is None:
        state.put("eval_micro_batch_size", state.need("micro_batch_size"), because("the micro batch", 709))
    if state["eval_global_batch_size"] is None:
        state.put("eval_global_batch_size", state.need("global_batch_size"), because("the global batch", 707))


@BATCH.rule()
def batches_divide(state: Settling) -> None:
    """Global batches are whole numbers of micro batches on every replica."""
    if not state["decrease_batch_size_if_needed"] and state["step_batch_size_schedule"] is None:
        _check_product(state, "global_batch_size", "micro_batch_size")
    if state["eval_global_batch_size"] is not None:
        _check_product(state, "eval_global_batch_size", "eval_micro_batch_size")


def _check_product(state: Settling, whole: str, part: str) -> None:
    product = state.need(part) * state.need("data_parallel_size")
    batch = state.need(whole)
    if batch < 1 or batch % product:
        name = whole.replace("_", " ").replace(" size", "")
        message = f"{name} ({batch}) is not a multiple of micro batch ({state[part]}) x data parallel size "
        message += f"({state['data_parallel_size']})"
        known = [message.message for message in state.native.findings if message.code == "S101"]
        if not any(message.split("(", 1)[1] in text for text in known):
            state.refuse("S101", message, whole if whole in state.native.given else "global_batch_size")


@TRAINING.rule("dataloader_type")
def dataloader(state: Settling) -> None:
    """Data are read once, in order."""
    if state["dataloader_type"] is None:
        state.put("dataloader_type", "single", because("the default loader", 1206))


@TRAINING.rule()
def counters(state: Settling) -> None:
    """Counters that a fresh run starts with."""
    for address in ("consumed_train_samples", "skipped_train_samples", "consumed_valid_samples"):
        state.recode(address, 0)
    if state["rl_use_sequence_packing"]:
        state.recode("consumed_train_bins", 0)
    state.recode("variable_seq_lengths", False)


@TRAINING.rule()
def training_length(state: Settling) -> None:
    """Iterations and samples do not mix; a warm-up is a length or a fraction."""
    if state["skip_train"] and state.version >= (0, 16):
        return
    for unit, other in (("iters", "samples"), ("samples", "iters")):
        if not state[f"train_{unit}"]:
            continue
        for address in (f"train_{other}", f"lr_decay_{other}", f"lr_warmup_{other}"):
            if state[address] or (state[address] == 0 and not address.startswith("lr_warmup")):
                message = f"training counts {unit}, --{address.replace('_', '-')} does not"
                state.refuse("S112", message, address)
        if state["lr_warmup_fraction"] is not None and state[f"lr_warmup_{unit}"]:
            message = f"--lr-warmup-fraction and --lr-warmup-{unit} exclude each other"
            state.refuse("S112", message, "lr_warmup_fraction")
    if state["train_iters"] and state["rampup_batch_size"] is not None and state.version < RAMPUP_DROPPED:
        state.refuse("S112", "a batch size ramp-up needs training by --train-samples", "rampup_batch_size")


@TRAINING.rule()
def learning_rate(state: Settling) -> None:
    """The floor is not above the peak."""
    if state["lr"] is not None and state["min_lr"] is not None and state["min_lr"] > state["lr"]:
        state.refuse("S114", f"--min-lr ({state['min_lr']}) is above --lr ({state['lr']})", "min_lr")


@TRAINING.rule()
def schedule(state: Settling) -> None:
    """What the scheduler refuses when it is built (``core/optimizer_param_scheduler.py:154-167``)."""
    unit = next((unit for unit in ("iters", "samples") if state[f"train_{unit}"]), None)
    if unit is None or state["skip_train"]:
        return
    decay, fraction = state[f"lr_decay_{unit}"] or state[f"train_{unit}"], state["lr_warmup_fraction"]
    warmup = fraction * decay if fraction is not None else state[f"lr_warmup_{unit}"]
    if warmup and warmup >= decay:
        message = f"the warm-up ({warmup:g} {unit}) is not shorter than the decay ({decay})"
        state.refuse("S114", message, f"lr_warmup_{unit}" if fraction is None else "lr_warmup_fraction")
    if state["lr"] is not None and state["lr_warmup_init"] > state["lr"]:
        state.refuse("S114", f"--lr-warmup-init ({state['lr_warmup_init']}) is above --lr", "lr_warmup_init")
    if state["lr_decay_style"] == "WSD" and state[f"lr_wsd_decay_{unit}"] is None:
        state.refuse("S114", f"a decay of style WSD needs --lr-wsd-decay-{unit}", "lr_decay_style")


@TRAINING.rule("apply_wd_to_qk_layernorm", "no_weight_decay_cond_type", since="0.16")
def decay_condition(state: Settling) -> None:
    """The old spelling of which norms decay."""
    kind = state["no_weight_decay_cond_type"]
    if kind is None:
        return
    if kind == "apply_wd_to_qk_layernorm":
        reason = because("--no-weight-decay-cond-type is its old spelling", 1333)
        state.put("apply_wd_to_qk_layernorm", True, reason)
        state.put("no_weight_decay_cond_type", None, reason)
    else:
        state.refuse("S114", f"unknown --no-weight-decay-cond-type {kind}", "no_weight_decay_cond_type")


@TRAINING.rule("start_weight_decay", "end_weight_decay")
def weight_decay_range(state: Settling) -> None:
    """A constant weight decay starts and ends at the same value."""
    ends = (state["start_weight_decay"], state["end_weight_decay"])
    if state["weight_decay_incr_style"] != "constant":
        if None in ends:
            state.refuse("S114", "a growing weight decay needs --start-weight-decay and --end-weight-decay")
        return
    if ends != (None, None):
        state.refuse("S114", "a constant weight decay has no start and end", "start_weight_decay")
    reason = because("the constant weight decay", 1341)
    state.put("start_weight_decay", state["weight_decay"], reason)
    state.put("end_weight_decay", state["weight_decay"], reason)


@TRAINING.rule()
def data_sources(state: Settling) -> None:
    """One source of data."""
    per_split = [state[name] for name in ("train_data_path", "valid_data_path", "test_data_path")]
    if bool(state["mock_data"]) + bool(state["data_path"]) + any(per_split) > 1:
        message = "--mock-data, --data-path and the paths per split exclude each other"
        state.refuse("S115", message, "mock_data" if state["mock_data"] else "data_path")
    if state["data_path"] is not None and state["data_args_path"] is not None:
        state.refuse("S115", "--data-path and --data-args-path exclude each other", "data_args_path")


@MICROBATCHES.rule("padded_vocab_size")
def padded_vocabulary(state: Settling) -> None:
    """The vocabulary rounded up so that each tensor parallel rank holds whole multiples.

    Upstream does this when it builds the tokenizer, whose size counts; ``--vocab-size`` stands for it here.
    """
    if state["padded_vocab_size"] is not None or state["pad_vocab_size"] is False:
        return
    size = state["vocab_size"]
    if size is None or size < 1:
        return
    # Before 0.18 the null tokenizer appended an end-of-document token of its own.
    null = str(state["tokenizer_type"] or "").startswith("Null")
    size += null and state.version < NULL_TOKENIZER_WITHOUT_EOD
    multiple = state.need("make_vocab_size_divisible_by") * state.need("tensor_model_parallel_size")
    reason = because(f"rounded up to a multiple of {multiple}", 59, "megatron/training/vocab_utils.py")
    state.put("padded_vocab_size", -(-size // multiple) * multiple, reason)


@MICROBATCHES.rule("batch_size_rampup")
def rampup(state: Settling) -> None:
    """The ramp-up that is in force: ``[start, step, samples]`` or none."""
    given = state["rampup_batch_size"]
    if given is not None and state.version >= RAMPUP_DROPPED:
        reason = because("has no effect, the batch size is constant", 127, "megatron/training/global_vars.py")
        state.native.derived["rampup_batch_size"] = reason
        state.recode("batch_size_rampup", None)
        message = "--rampup-batch-size has no effect since 0.18.0: the global batch is constant"
        state.refuse("S122", message, "rampup_batch_size", "use --step-batch-size-schedule", Level.WARNING)
        return
    try:
        # Until 0.15 the parser left the three as text, and the calculator converted them.
        state.recode("batch_size_rampup", None if given is None else [int(item) for item in given])
    except ValueError:
        state.refuse("S112", "--rampup-batch-size takes three integers", "rampup_batch_size")


@MICROBATCHES.rule("num_microbatches")
def microbatches(state: Settling) -> None:
    """Micro batches per replica in the first step."""
    per_step = state.need("micro_batch_size") * state.need("data_parallel_size")
    batch: Any = state.need("global_batch_size")
    if state["step_batch_size_schedule"] is not None:
        schedule = parse_batch_schedule(state["step_batch_size_schedule"], state["seq_length"])
        if schedule is None:
            message = "--step-batch-size-schedule takes THRESHOLD:BATCH pairs, the first one at 0"
            state.refuse("S101", message, "step_batch_size_schedule")
            state.forget(("num_microbatches",))
            return
        batch = schedule[0][1]
    elif state["batch_size_rampup"]:
        batch = state["batch_size_rampup"][0]
    reason = because("global batch / (micro batch x data parallel size)", 388, CALCULATOR)
    state.put("num_microbatches", batch // per_step, reason)


def parse_batch_schedule(text: str, seq_length: int | None) -> list[tuple[int, int]] | None:
    """``[(first sample, global batch), ...]`` of a batch size schedule, None when upstream refuses it.

    Thresholds count tokens when ``seq_length`` is given, samples otherwise; K, M, B and T are powers of 1000. Source:
    ``megatron/core/num_microbatches_calculator.py:502`` (core 0.18.0).
    """
    try:
        pairs = [entry.split(":", 1) for entry in text.replace(",", " ").split()]
        steps = [(_quantity(start), _quantity(batch)) for start, batch in pairs]
    except (ValueError, OverflowError):
        return None
    if seq_length:
        steps = [(start // seq_length, batch) for start, batch in steps]
    steps.sort(key=lambda step: step[0])
    starts = [start for start, _ in steps]
    if not steps or starts[0] != 0 or len(set(starts)) < len(starts) or any(batch < 1 for _, batch in steps):
        return None
    return steps


def _quantity(text: str) -> int:
    text = text.strip().upper()
    factor = SUFFIXES.get(text[-1:], 1)
    return int(float(text[:-1] if factor > 1 else text) * factor)
