"""Values that script and JSON both state: which one is in force, and what neither takes."""

from __future__ import annotations

from translator.findings import Level
from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.megatron_fork import forks
from translator.frameworks.deepspeed.megatron_fork.words import MOST_LAYERS, Arguments, ramp_up
from translator.frameworks.deepspeed.settle.state import State
from translator.native import Native

TRAINING = "megatron/training.py"
ARGUMENTS = "megatron/arguments.py"
_SCALES = {
    "loss_scale": "fp16.loss_scale",
    "initial_loss_scale": "fp16.initial_scale_power",
    "min_loss_scale": "fp16.min_loss_scale",
    "loss_scale_window": "fp16.loss_scale_window",
    "hysteresis": "fp16.hysteresis",
}
_GRADIENTS = 2  # the ZeRO stage from which on gradients are sharded


def check(state: State, fork: Arguments, megatron: Native) -> None:
    """Everything that is said about a pair of script and JSON."""
    _switch(state, fork)
    _layout(state, fork, megatron)
    _pipeline(state, fork)
    _training(state, fork)
    if state.missing(forks.address("deepspeed_config")):
        return
    _batch(state, fork, megatron)
    _precision(state, fork)
    _scales(state, fork)
    _clip(state, fork)
    _stage(state, fork)
    _overruled(state)
    _offload(state, fork)
    _recompute(state, fork)


def _flag(dest: str) -> str:
    return forks.entry_of(dest)[0][0]


def _say(  # noqa: PLR0917
    state: State, code: str, message: str, dest: str, fix: str = "", level: Level = Level.ERROR
) -> None:
    state.say(code, message, forks.address(dest), fix, level)


def _switch(state: State, fork: Arguments) -> None:
    stated = fork.stated("deepspeed_config")
    if fork.get("deepspeed"):
        return
    if stated is None or stated.place is None:
        message = "the program gets no --deepspeed, though the script mentions it: it trains without DeepSpeed"
        _say(state, "S227", message, "deepspeed", "let it get --deepspeed, or read the script with --from megatron")
    else:
        message = "--deepspeed_config without --deepspeed does nothing: the script trains without DeepSpeed"
        _say(state, "S227", message, "deepspeed_config", "add --deepspeed")


def _layout(state: State, fork: Arguments, megatron: Native) -> None:
    tensor, pipeline, sequence = (state.whole(name, 1) for name in (at.TENSOR, at.PIPELINE, at.SEQUENCE))
    world, product = state.world, tensor * pipeline * sequence
    if world is not None and product and world % product:
        message = f"{world} ranks are not a multiple of tensor {tensor} x pipeline {pipeline} x sequence {sequence}"
        _say(state, "S227", f"{message} ({ARGUMENTS}:110)", "tensor_model_parallel_size", "change a degree")
    if fork.get("no_pipeline_parallel") and pipeline > 1:
        message = f"--no-pipeline-parallel does not go with {pipeline} pipeline stages ({ARGUMENTS}:100)"
        _say(state, "S227", message, "no_pipeline_parallel", "drop one of them")
    if fork.pipelined and sequence > 1:
        message = "the pipeline's grid has no place for --ds-sequence-parallel-size (model/gpt_model.py:454)"
        _say(state, "S227", message, "ds_sequence_parallel_size", "add --no-pipeline-parallel")
    heads = megatron.values.get("num_attention_heads")
    if isinstance(heads, int) and sequence > 1 and heads % sequence:
        message = f"{heads} attention heads do not divide over {sequence} ranks (model/transformer.py:619)"
        _say(state, "S227", message, "ds_sequence_parallel_size", "choose a degree that divides the heads")


def _pipeline(state: State, fork: Arguments) -> None:
    if fork.pipelined and state.zero_stage >= _GRADIENTS:
        message = f"ZeRO stage {state.zero_stage} does not go with the pipeline's engine, which runs even one stage"
        fix = "add --no-pipeline-parallel, or use stage 1" if fork.fork == forks.DEEPSPEEDAI else "use stage 1 or 0"
        state.say("S227", f"{message} (deepspeed/runtime/pipe/engine.py:76)", at.STAGE, fix)


def _training(state: State, fork: Arguments) -> None:
    """What ``validate_args`` asserts about length and rates (``arguments.py:248-277, 315``)."""
    for unit, other in (("iters", "samples"), ("samples", "iters")):
        if not fork.get(f"train_{unit}"):
            continue
        for dest in (f"train_{other}", f"lr_decay_{other}", f"lr_warmup_{other}"):
            if fork.get(dest):
                message = f"training counts {unit}, {_flag(dest)} counts {other} ({ARGUMENTS}:248)"
                _say(state, "S228", message, dest, f"use --{dest.replace('_', '-').replace(other, unit)}")
        if fork.get("lr_warmup_fraction") is not None and fork.get(f"lr_warmup_{unit}"):
            message = f"--lr-warmup-fraction and --lr-warmup-{unit} exclude each other ({ARGUMENTS}:257)"
            _say(state, "S228", message, "lr_warmup_fraction", "drop one")
    if fork.get("train_iters") and fork.get("rampup_batch_size"):
        message = f"a batch size ramp-up needs training by --train-samples ({ARGUMENTS}:255)"
        _say(state, "S228", message, "rampup_batch_size", "count samples")
    layers = fork.get("num_layers")
    if isinstance(layers, int) and layers > MOST_LAYERS:
        _say(state, "S228", f"--num-layers {layers} is more than any machine holds", "num_layers", "write fewer")
    ramp = fork.get("rampup_batch_size")
    if ramp is not None and ramp_up(ramp) is None:
        message = "--rampup-batch-size takes three integers (megatron/microbatches.py:23)"
        _say(state, "S228", message, "rampup_batch_size", "write start, step and samples")
    peak, floor = fork.get("lr"), fork.get("min_lr")
    if isinstance(peak, float) and isinstance(floor, float) and floor > peak:
        _say(state, "S228", f"--min-lr {floor} is above --lr {peak} ({ARGUMENTS}:315)", "min_lr", "lower it")
    positions, length = fork.get("max_position_embeddings"), fork.get("seq_length")
    if isinstance(positions, int) and isinstance(length, int) and positions < length:
        message = f"--max-position-embeddings {positions} is below --seq-length {length} ({ARGUMENTS}:308)"
        _say(state, "S228", message, "max_position_embeddings", f"write {length}")


def _batch(state: State, fork: Arguments, megatron: Native) -> None:
    """The loop sets the global batch before each step (``training.py:1253``); micro batches are the script's own."""
    micro, stated = megatron.values.get("micro_batch_size"), state.number(at.MICRO_BATCH)
    if isinstance(micro, int) and stated is not None and stated != micro:
        what = "a step runs another number of them" if fork.pipelined else "the loss is divided by another number"
        message = (
            f"--micro-batch-size is {micro}, the JSON's {at.MICRO_BATCH} {stated:g}: micro batches have {micro} "
            f"sequences, the engine counts steps with {stated:g}, so {what} ({TRAINING}:1258)"
        )
        _say(state, "S215", message, "micro_batch_size", f"make {at.MICRO_BATCH} {micro}")
        return
    total, whole = megatron.values.get("global_batch_size"), state.number(at.TRAIN_BATCH)
    if isinstance(total, int) and whole is not None and whole != total and state.given(at.TRAIN_BATCH):
        message = (
            f"the JSON's {at.TRAIN_BATCH} is {whole:g}, the script's global batch {total}, which is set before each "
            f"step and is in force ({TRAINING}:1258)"
        )
        level = Level.WARNING
        state.say("S215", message, at.TRAIN_BATCH, f"write {total}", level)


def _precision(state: State, fork: Arguments) -> None:
    """The engine casts the model to the JSON's type; the script builds it, and casts between, in its own."""
    script = "fp16" if fork.get("fp16") else "bf16" if fork.get("bf16") else "fp32"
    engine = state.text(at.PARAM_DTYPE)
    if not engine or engine == script:
        return
    strict = fork.fork == forks.BIGSCIENCE
    where = f"{TRAINING}:432 of {forks.FORKS[forks.BIGSCIENCE]}" if strict else "deepspeed/runtime/engine.py:1573"
    message = f"the script trains in {script}, the JSON in {engine}, which is in force ({where})"
    dest = script if script != "fp32" else engine
    level = Level.ERROR if strict or script != "fp32" else Level.WARNING
    fix = f"{'add' if script == 'fp32' else 'write'} --{engine}" if engine != "fp32" else f"enable {script} in the JSON"
    if level is Level.ERROR:
        message += "; it stops, or casts between the two"
    _say(state, "S219", message, dest, fix, level)


def _scales(state: State, fork: Arguments) -> None:
    if not state.on(at.FP16):
        return
    differ: list[str] = []
    for dest, key in _SCALES.items():
        if fork.stated(dest) is None or fork.get(dest) is None:
            continue
        value, engine = fork.get(dest), state.number(key)
        if engine is not None and dest == "initial_loss_scale":
            engine = 2**engine if engine < 1024 else engine
        if engine is not None and engine != value:
            differ.append(f"{_flag(dest)} {value:g} ({key} means {engine:g})")
    if differ:
        message = f"the JSON's loss scaling is in force, not {', '.join(differ)} (megatron/optimizer/__init__.py:118)"
        first = next(dest for dest in _SCALES if fork.stated(dest))
        _say(state, "S223", message, first, "state them in the JSON", Level.WARNING)


def _clip(state: State, fork: Arguments) -> None:
    script, engine = fork.get("clip_grad"), state.number(at.CLIP)
    if not isinstance(script, int | float) or engine is None or float(script) == float(engine):
        return
    says = f"{engine:g}" + (", which is off" if not engine else "")
    where = "gradient_clipping" if state.given("gradient_clipping") else "without gradient_clipping"
    default = "" if fork.stated("clip_grad") else " (the default)"
    message = (
        f"--clip-grad {script:g}{default} is not in force: the engine clips by the JSON, where the bound is {says} "
        f"({where}; megatron/optimizer/__init__.py:118)"
    )
    _say(state, "S223", message, "clip_grad", f'write "gradient_clipping": {script:g} in the JSON', Level.WARNING)


def _stage(state: State, fork: Arguments) -> None:
    script, engine = fork.get("zero_stage"), state.zero_stage
    if state.missing(at.STAGE) or not isinstance(script, int | float):
        return
    if fork.stated("zero_stage") is not None and script != engine:
        message = f"--zero-stage is {script:g}, the JSON's stage {engine}, which is in force"
        more = "" if 3 not in {script, engine} else ": --zero-stage 3 alone builds the model in shards"
        _say(state, "S223", f"{message}{more} (pretrain_gpt.py:49)", "zero_stage", f"write {engine}", Level.WARNING)
    elif engine == 3 and script != engine:
        message = (
            "without --zero-stage 3 every rank builds the whole model before ZeRO-3 shards it (pretrain_gpt.py:49)"
        )
        _say(state, "S223", message, "zero_stage", "add --zero-stage 3", Level.WARNING)


def _overruled(state: State) -> None:
    """The script brings optimizer and scheduler (``training.py:617``), and the engine takes those."""
    for section, where in (("optimizer", 1720), ("scheduler", 1386)):
        first = next((key for key in state.native.given if key.startswith(f"{section}.")), None)
        if first is not None:
            message = f"the JSON's {section} is not used: the script hands its own to deepspeed.initialize"
            where_ = f"{TRAINING}:617, deepspeed/runtime/engine.py:{where}"
            state.say("S226", f"{message} ({where_})", first, "drop the section", Level.WARNING)


def _offload(state: State, fork: Arguments) -> None:
    offloaded = state.text("zero_optimization.offload_optimizer.device") in {"cpu", "nvme"} and state.zero_stage
    forced = state.get("zero_force_ds_cpu_optimizer", True) is not False
    if offloaded and forced and not (fork.get("cpu_optimizer") and not fork.get("cpu_torch_adam")):
        message = "an offloaded optimizer must be DeepSpeed's CPU Adam (deepspeed/runtime/engine.py:1733)"
        _say(state, "S227", message, "cpu_optimizer", "add --cpu-optimizer")
    if fork.get("cpu_optimizer") and not offloaded:
        message = "--cpu-optimizer updates on the host, and nothing in the JSON offloads the states to it"
        _say(state, "S227", message, "cpu_optimizer", "add zero_optimization.offload_optimizer", Level.WARNING)
    if fork.get("optimizer") == "sgd" and state.zero_stage and not state.on("zero_allow_untested_optimizer"):
        message = "ZeRO takes SGD only with zero_allow_untested_optimizer (deepspeed/runtime/engine.py:1683)"
        _say(state, "S216", message, "optimizer", "set it in the JSON")


def _recompute(state: State, fork: Arguments) -> None:
    old, kind, engine = (
        fork.get(dest)
        for dest in ("checkpoint_activations", "recompute_granularity", "deepspeed_activation_checkpointing")
    )
    if engine and not old and not kind and not fork.get("recompute_activations"):
        message = "--deepspeed-activation-checkpointing alone recomputes nothing (model/transformer.py:2082)"
        fix = "add --checkpoint-activations"
        _say(state, "S244", message, "deepspeed_activation_checkpointing", fix, Level.WARNING)
    if fork.pipelined and kind == "full" and not old and fork.get("recompute_method") != "uniform":
        message = "the pipeline recomputes by --recompute-method uniform only: nothing is recomputed (gpt_model.py:448)"
        _say(state, "S244", message, "recompute_granularity", "add --recompute-method uniform", Level.WARNING)
    elif not fork.pipelined and (old or kind == "full") and not engine and not fork.get("recompute_method"):
        dest = "checkpoint_activations" if old else "recompute_granularity"
        message = f"{_flag(dest)} needs --deepspeed-activation-checkpointing or --recompute-method"
        _say(state, "S228", f"{message} (model/transformer.py:1989)", dest, "add one of them")
