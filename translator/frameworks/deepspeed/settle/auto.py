"""Who fills "auto" in, and with what.

transformers replaces it by its TrainingArguments (``integrations/deepspeed.py:138-268`` at 5.24.0), accelerate by what
it was given itself (``accelerator.py:2223`` at 1.15.0). DeepSpeed alone drops it inside strict sections, so that the
default holds (``runtime/config_utils.py:56`` at 0.19.2), and fails on it elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from translator.findings import Level
from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed import arguments
from translator.frameworks.deepspeed.settle.state import WORLD_SUPPLY, State
from translator.frameworks.deepspeed.values import STRICT_ACTIONS
from translator.native import Missing, Native

TRANSFORMERS, ACCELERATE, DEEPSPEED = "transformers", "accelerate", "deepspeed"
_SOURCE = "transformers/integrations/deepspeed.py"
_MODEL = "--model config.json"
_ZERO = "zero_optimization"
REDUCE_BUCKET = f"{_ZERO}.reduce_bucket_size"
PREFETCH_BUCKET = f"{_ZERO}.stage3_prefetch_bucket_size"
PERSISTENCE = f"{_ZERO}.stage3_param_persistence_threshold"
# Arguments by the key they fill; a mismatch with a stated value is refused (line 245).
_PLAIN = {
    at.MICRO_BATCH: "per_device_train_batch_size",
    at.ACCUMULATION: "gradient_accumulation_steps",
    "gradient_clipping": "max_grad_norm",
    "optimizer.params.lr": "learning_rate",
    "optimizer.params.eps": "adam_epsilon",
    "optimizer.params.weight_decay": "weight_decay",
    "scheduler.params.warmup_max_lr": "learning_rate",
}
# All keys that it fills in (lines 141 to 260).
_FILLED = frozenset(_PLAIN) | {
    *(at.TRAIN_BATCH, "optimizer.params.betas", "scheduler.params.warmup_min_lr", "scheduler.params.total_num_steps"),
    *("scheduler.params.warmup_num_steps", at.FP16, at.BF16, REDUCE_BUCKET, PREFETCH_BUCKET, PERSISTENCE),
}


def trainer_of(native: Native) -> str:
    """Who completes the configuration: transformers where its arguments are in the files, accelerate for its own.

    A configuration with "auto" where transformers fills it in is somebody's for transformers; any other is DeepSpeed's.
    """
    if any(_is_argument(address) for address in native.given):
        return TRANSFORMERS
    if any(given.written.startswith(("deepspeed_config.", "accelerate's")) for given in native.given.values()):
        return ACCELERATE
    asked = any(str(given.value) == "auto" and given.address in _FILLED for given in native.given.values())
    return TRANSFORMERS if asked else DEEPSPEED


def _is_argument(address: str) -> bool:
    name = address.removeprefix(arguments.PREFIX)
    return name != address and (name in arguments.OLDER or _is_training(name))


def _is_training(name: str) -> bool:
    try:
        arguments.default_of(name)
    except KeyError:
        return False
    return True


def has_trainer_source(native: Native) -> bool:
    """Whether the files hold a trainer's arguments, so that those they leave out have their defaults."""
    return any(_is_argument(address) and given.place is not None for address, given in native.given.items())


def fill_arguments(state: State) -> None:
    """Defaults of TrainingArguments, where the files hold such arguments at all."""
    if state.trainer != TRANSFORMERS or not has_trainer_source(state.native):
        return
    for name in arguments.names():
        address = arguments.PREFIX + name
        if address in state.native.given or name in arguments.SCRIPT or name in arguments.OLDER:
            continue
        state.native.values.setdefault(address, arguments.default_of(name))


def argument(state: State, name: str) -> object:
    """The value of a trainer's argument, or a `Missing` that names it."""
    address = arguments.PREFIX + name
    if address in state.native.values:
        return state.native.values[address]
    return state.missing(address) or Missing(name, "an argument of the trainer", f"--set {name}=...")


def total_steps(state: State) -> object:
    """Optimizer steps of the run, as far as the arguments tell."""
    steps = argument(state, "max_steps")
    if isinstance(steps, int) and steps > 0:
        return steps
    reason = "it follows from the number of epochs and the size of the data"
    return Missing("max_steps", reason, "--set max_steps=...")


def warmup_steps(state: State, total: object) -> object:
    """Steps of warm-up (``training_args.py:2154``); a fraction of the run below 1, as `warmup_ratio` was before."""
    steps = argument(state, "warmup_steps")
    if isinstance(steps, int | float) and steps >= 1:
        return int(steps)
    ratio = state.get("hf.warmup_ratio") or steps
    if isinstance(ratio, int | float):
        if ratio == 0:
            return 0
        return math.ceil(total * ratio) if isinstance(total, int) else total
    return ratio


def resolve(state: State) -> None:
    """Fill in every "auto", or say what would."""
    open_keys = [address for address in state.native.given if state.is_auto(address)]
    if state.trainer == DEEPSPEED:
        _alone(state, open_keys)
        return
    fillers = _fillers(state) if state.trainer == TRANSFORMERS else _accelerate(state)
    left: list[str] = []
    for address in open_keys:
        fill = fillers.get(address)
        if fill is None:
            left.append(address)
            continue
        value = fill()
        if isinstance(value, Missing):
            state.lack(address, "auto", f"{state.trainer} takes {value.expression}: {value.reason}", value.supply)
        else:
            state.put(address, value, f'"auto", filled by {state.trainer}')
    _unfilled(state, left)
    _mixed_precision(state)
    lacking = [address for address in open_keys if state.missing(address) is not None]
    if lacking:
        supplies = dict.fromkeys(missing.supply for address in lacking if (missing := state.missing(address)))
        shown = ", ".join(lacking[:6]) + (" ..." if len(lacking) > 6 else "")
        message = f'{len(lacking)} values are "auto" and the files do not say what fills them: {shown}'
        state.say("R139", message, lacking[0], "; ".join(supplies), Level.WARNING)
    if state.trainer == TRANSFORMERS:
        _mismatches(state, fillers)


def _fillers(state: State) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {key: partial(argument, state, name) for key, name in _PLAIN.items()}
    found[at.TRAIN_BATCH] = lambda: _global_batch(state)
    found["optimizer.params.betas"] = lambda: _both(argument(state, "adam_beta1"), argument(state, "adam_beta2"))
    found["scheduler.params.warmup_min_lr"] = lambda: 0
    found["scheduler.params.total_num_steps"] = lambda: total_steps(state)
    found["scheduler.params.warmup_num_steps"] = lambda: _positive(warmup_steps(state, total_steps(state)))
    for name in ("fp16", "bf16"):
        found[f"{name}.enabled"] = partial(_either, state, name)
    found[REDUCE_BUCKET] = lambda: _from_hidden(state, lambda hidden: hidden * hidden)
    if state.zero_stage == 3:  # only then (line 227); elsewhere DeepSpeed drops the word
        found[PREFETCH_BUCKET] = lambda: _from_hidden(state, lambda hidden: int(0.9 * hidden * hidden))
        found[PERSISTENCE] = lambda: _from_hidden(state, lambda hidden: 10 * hidden)
    return found


def _accelerate(state: State) -> dict[str, Callable[[], object]]:
    micro = partial(argument, state, "per_device_train_batch_size")  # the batch size of the data loader
    steps = state.get(at.ACCUMULATION)
    return {
        at.MICRO_BATCH: micro,
        at.ACCUMULATION: lambda: 1,
        at.TRAIN_BATCH: lambda: _product(micro(), steps if isinstance(steps, int) else 1, state.world),
        "gradient_clipping": lambda: 1.0,
        f"{_ZERO}.stage3_gather_16bit_weights_on_model_save": lambda: False,
        "bf16.enabled": lambda: state.on("bf16.enabled"),
        "fp16.enabled": lambda: state.on("fp16.enabled"),
        "optimizer.params.lr": lambda: argument(state, "learning_rate"),
        "optimizer.params.weight_decay": lambda: argument(state, "weight_decay"),
        "scheduler.params.warmup_min_lr": lambda: 0,
        "scheduler.params.warmup_max_lr": lambda: argument(state, "learning_rate"),
        "scheduler.params.warmup_num_steps": lambda: warmup_steps(state, total_steps(state)),
        "scheduler.params.total_num_steps": lambda: total_steps(state),
        REDUCE_BUCKET: lambda: _from_hidden(state, lambda hidden: hidden * hidden),
        PREFETCH_BUCKET: lambda: _from_hidden(state, lambda hidden: int(0.9 * hidden * hidden)),
        PERSISTENCE: lambda: _from_hidden(state, lambda hidden: 10 * hidden),
    }


def _mixed_precision(state: State) -> None:
    """A precision that only the arguments ask for: accelerate adds its section (``utils/dataclasses.py:1422``)."""
    for name in ("fp16", "bf16"):
        if state.get(f"hf.{name}") is True and not state.section(name):
            reason = f"hf.{name}, for which accelerate adds the section (utils/dataclasses.py:1422 at 1.15.0)"
            state.put(f"{name}.enabled", True, reason)
            if name == "fp16":
                state.put("fp16.auto_cast", True, reason)


def _product(micro: object, steps: object, world: int | None) -> object:
    for part in (micro, steps):
        if isinstance(part, Missing):
            return part
    if world is None:
        return Missing("the world size", "the files do not say how many GPUs there are", WORLD_SUPPLY)
    return world * micro * steps if isinstance(micro, int) and isinstance(steps, int) else None


def _global_batch(state: State) -> object:
    """TrainingArguments' own product (line 146): all ranks count, whatever tensor parallelism there is."""
    return _product(
        argument(state, "per_device_train_batch_size"), argument(state, "gradient_accumulation_steps"), state.world
    )


def _both(left: object, right: object) -> object:
    if isinstance(left, Missing) or isinstance(right, Missing):
        return left if isinstance(left, Missing) else right
    return [left, right]


def _either(state: State, name: str) -> object:
    value = argument(state, name)
    return value if isinstance(value, Missing) else bool(value or state.get(f"hf.{name}_full_eval"))


def _positive(value: object) -> object:
    return max(1, value) if isinstance(value, int) else value


def _from_hidden(state: State, compute: Callable[[int], int]) -> object:
    """A size that follows from the model's width (line 199): its own, the widest of several, or its text part's."""
    inner = state.get("model_config.text_config")
    for config in ({name: state.get(f"model_config.{name}") for name in ("hidden_size", "hidden_sizes")}, inner):
        if isinstance(config, dict):
            hidden = config.get("hidden_size")
            several = config.get("hidden_sizes")
            if isinstance(hidden, int):
                return compute(hidden)
            if isinstance(several, list) and several and all(isinstance(item, int) for item in several):
                return compute(max(several))
    return Missing("hidden_size", "the width of the model", _MODEL)


def _alone(state: State, open_keys: list[str]) -> None:
    """DeepSpeed without a trainer."""
    for address in open_keys:
        if not _dropped(state, address):
            if address in {at.TRAIN_BATCH, at.MICRO_BATCH, at.ACCUMULATION}:
                state.say("S203", f'{address} is "auto", which DeepSpeed itself cannot compute with', address)
            else:
                state.say("S214", f'{address} is "auto", which DeepSpeed itself takes for a value', address)
            state.native.values[address] = "auto"


def _unfilled(state: State, left: list[str]) -> None:
    """What the trainer does not know stays "auto"."""
    for address in left:
        if _dropped(state, address):
            continue
        message = f'{state.trainer} fills no {address}, so DeepSpeed gets the word "auto"'
        state.say("S214", message, address, "write a value")
        state.native.values.pop(address, None)


def _dropped(state: State, address: str) -> bool:
    """Whether DeepSpeed drops the word, so that the default holds; then it is put."""
    from translator.catalogue import load

    catalogue = load("deepspeed", state.native.version)
    entry = catalogue.first(address)
    if entry.action not in STRICT_ACTIONS:
        return False
    state.put(address, entry.default, '"auto" is dropped in a strict section (runtime/config_utils.py:56)')
    return True


def _mismatches(state: State, fillers: dict[str, Callable[[], object]]) -> None:
    """Stated values that differ from the arguments; transformers refuses them (line 265)."""
    if not has_trainer_source(state.native):
        return
    for address, fill in fillers.items():
        stated = state.native.given.get(address)
        if address in {"scheduler.params.warmup_min_lr", REDUCE_BUCKET, PREFETCH_BUCKET, PERSISTENCE}:
            continue
        if stated is None or stated.missing or address in state.native.derived or stated.value is None:
            continue
        wanted = fill()
        if isinstance(wanted, Missing) or wanted is None or stated.value == wanted:
            continue
        message = (
            f"{address} is {stated.value}, but the trainer's arguments make it {wanted}: transformers refuses that"
        )
        state.say("S213", f"{message} ({_SOURCE}:265)", address, f'write "auto", or {wanted}')
        if (name := _PLAIN.get(address)) and address not in (at.MICRO_BATCH, at.ACCUMULATION):
            state.native.derived[f"hf.{name}"] = f"{address} of the JSON"
            state.native.values[f"hf.{name}"] = stated.value
