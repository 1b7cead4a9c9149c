"""Single values that torchtitan or torch refuses: numbers out of range, intervals of nothing, names of datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from translator.findings import Level
from translator.frameworks.torchtitan import addresses as at
from translator.frameworks.torchtitan import groups
from translator.frameworks.torchtitan.state import State

# hf_datasets/text_datasets.py:36-52 (0.2.2), :38-54 (0.3.0); datasets/hf_datasets.py:41-50 (0.1.0).
DATASETS = ("c4", "c4_test", "c4_validation")
_OLD_DATASETS = ("c4", "c4_test")
# Families of 0.2.2 that read text; flux and vlm have datasets of their own.
_TEXT_FAMILIES = frozenset({"llama3", "llama3_ft", "llama4", "deepseek_v3", "qwen3", "gpt_oss"})
_TEXT_LOADERS = frozenset({"HuggingFaceTextDataLoader"})
_ADAM = "torch/optim/adam.py:58-67"  # torch 2.13
_SEED_LIMIT = 2**63
_STATES = frozenset({"model", "optimizer", "dataloader", "lr_scheduler", "train_state"})


class Names(NamedTuple):
    """What the two syntaxes call the same options."""

    dataset: str
    validation: str
    validation_dataset: str
    profiling: str
    states_source: str
    gc_source: str
    profiling_source: str


_TOML = Names(
    "training.dataset",
    "validation",
    "validation.dataset",
    "profiling",
    "components/checkpoint.py:768",
    "tools/utils.py:48",
    "tools/profiling.py:65",
)
_PYTHON = Names(
    "dataloader.dataset",
    "validator",
    "validator.dataloader.dataset",
    "profiler",
    "components/checkpointer/dcp.py:737",
    "tools/utils.py:103",
    "tools/profiler.py:328",
)


def check(state: State) -> None:
    """Values of a TOML configuration."""
    _optimizer(state)
    _common(
        state, _TOML, text=state.text("model.name") in _TEXT_FAMILIES and not state.text("experimental.custom_import")
    )


def check_python(state: State) -> None:
    """Values of a Python configuration."""
    found = state.get("optimizer.param_groups")
    for group in found if isinstance(found, list) else ():
        if isinstance(group, Mapping) and group.get("optimizer_name") in {"Adam", "AdamW"}:
            addresses = dict.fromkeys(("lr", "eps", "weight_decay"), "optimizer.param_groups")
            # torch looks at its own defaults only, not at groups: such numbers spoil the run instead of stopping it.
            _adam(state, groups.options(group), addresses, Level.WARNING)
    _common(state, _PYTHON, text=state.text("dataloader") in _TEXT_LOADERS)


def _common(state: State, names: Names, *, text: bool) -> None:
    _seed(state)
    _workers(state, names.dataset.rpartition(".")[0] + (".dataloader" if names is _TOML else ""))
    _datasets(state, names, text=text)
    _intervals(state, names)
    _states(state, names)
    _decay(state)


def _optimizer(state: State) -> None:
    if state.text("optimizer.name") not in {"Adam", "AdamW"}:
        return
    values = {name: state.get(f"optimizer.{name}") for name in ("lr", "eps", "weight_decay", "beta1", "beta2")}
    # 0.1.0 has betas and eps fixed.
    stated = {name: value for name, value in values.items() if value is not None}
    betas = (stated.pop("beta1", 0.9), stated.pop("beta2", 0.95))
    _adam(state, {**stated, "betas": betas}, {name: f"optimizer.{name}" for name in (*stated, "beta1", "beta2")})


def _adam(state: State, values: Mapping[str, object], addresses: Mapping[str, str], level: Level = Level.ERROR) -> None:
    """The checks of torch's Adam and AdamW."""
    for name in ("lr", "eps", "weight_decay"):
        value = values.get(name)
        if isinstance(value, (int, float)) and value < 0:
            message = f"{name} is {value:g}, and Adam takes none below 0 ({_ADAM})"
            state.say("S141", message, addresses[name], f"{name} of 0 or more", level)
    betas = values.get("betas")
    for number, beta in enumerate(betas if isinstance(betas, (list, tuple)) else (), 1):
        if isinstance(beta, (int, float)) and not 0 <= beta < 1:
            address = addresses.get(f"beta{number}", addresses["lr"])
            message = f"beta{number} is {beta:g}, and Adam takes 0 up to, but not, 1 ({_ADAM})"
            state.say("S141", message, address, f"beta{number} below 1, such as {0.9 if number == 1 else 0.95}", level)


def _seed(state: State) -> None:
    seed = state.number("debug.seed")
    if not -_SEED_LIMIT <= seed < 2 * _SEED_LIMIT:
        state.say("S141", f"the seed {seed} does not fit 64 bits", "debug.seed", "a smaller one, such as 42")


def _workers(state: State, loader: str) -> None:
    """The checks of torch's DataLoader (torch/utils/data/dataloader.py of 2.13)."""
    workers = state.number(f"{loader}.num_workers")
    if workers < 0:
        state.say("S141", f"num_workers is {workers}, and a data loader takes 0 or more", f"{loader}.num_workers", "0")


def _datasets(state: State, names: Names, *, text: bool) -> None:
    known = DATASETS if state.new else _OLD_DATASETS
    used = [names.dataset] if text else []
    if state.get(f"{names.validation}.enable") and (text or names is _PYTHON):
        loader = state.text("validator.dataloader")
        used += [names.validation_dataset] if names is _TOML or loader in _TEXT_LOADERS else []
    for address in used:
        name = state.get(address)
        if isinstance(name, str) and name not in known:
            message = f"there is no dataset {name!r} (hf_datasets/text_datasets.py:59)"
            fix = f"{', '.join(known)}; local files are the dataset_path of one of them"
            state.say("S140", message, address, fix)


def _intervals(state: State, names: Names) -> None:
    zero = "no step is a multiple of 0, and the run ends in a ZeroDivisionError"
    if state.number("training.gc_freq", 1) < 1:
        state.say("S142", f"gc_freq must be positive ({names.gc_source})", "training.gc_freq", "50, the default")
    wanted = [("metrics.log_freq", True)]
    wanted.append(("checkpoint.interval", bool(state.get("checkpoint.enable")) and names is _TOML))
    wanted.append((f"{names.validation}.freq", bool(state.get(f"{names.validation}.enable"))))
    for address, used in wanted:
        if used and state.get(address) == 0 and isinstance(state.get(address), int):
            state.say("S142", f"{address} is 0: {zero}", address, "a number of steps")
    steps = state.get(f"{names.validation}.steps")
    if isinstance(steps, int) and steps < 1 and steps != -1:
        message = f"{names.validation}.steps is {steps}: the steps of an evaluation are 1 or more, or -1 for all data"
        state.say("S142", message, f"{names.validation}.steps", "-1, or a number of steps")
    if state.get(f"{names.profiling}.enable_profiling"):
        _profiling(state, names)


def _profiling(state: State, names: Names) -> None:
    each, warmup, active = (
        state.number(f"{names.profiling}.{name}") for name in ("profile_freq", "profiler_warmup", "profiler_active")
    )
    if each < warmup + active:
        message = f"profile_freq {each} has no room for {warmup} steps of warm-up and {active} active ones"
        fix = f"{warmup + active} or more"
        state.say("S142", f"{message} ({names.profiling_source})", f"{names.profiling}.profile_freq", fix)


def _states(state: State, names: Names) -> None:
    if not state.get("checkpoint.enable"):
        return
    for name in state.names("checkpoint.exclude_from_loading"):
        if name not in _STATES:
            message = f"a checkpoint holds no {name!r} ({names.states_source})"
            state.say("S143", message, "checkpoint.exclude_from_loading", ", ".join(sorted(_STATES - {"model"})))


def _decay(state: State) -> None:
    """Steps beyond a schedule that does not decay: the code asserts that there is a decay."""
    total, steps = state.number(at.TOTAL_STEPS), state.number("training.steps")
    if steps > total and state.get(at.DECAY_STEPS) == 0:
        message = f"the schedule ends after {total} of {steps} steps and has no decay to go on with"
        source = (
            "components/optimizer/lr_scheduler.py:168"
            if state.native.version == "0.3.0"
            else "components/lr_scheduler.py:177"
        )
        state.say("S144", f"{message} ({source})", "lr_scheduler.total_steps", "leave total_steps out")
