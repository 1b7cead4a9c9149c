"""Values that nothing checks when the file is read, and that stop the run where they are used.

Lines are of DeepSpeed 0.19.2.
"""

from __future__ import annotations

from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.settle.state import CONFIG, ENGINE, State

_Z = "zero_optimization."
_CURRICULUM = ("min_difficulty", "max_difficulty", "schedule_type", "schedule_config")
_CURRICULUM_FILE = "runtime/data_pipeline/curriculum_scheduler.py:15"
_SCHEDULES: dict[str, tuple[str, ...]] = {
    "fixed_discrete": ("difficulty", "max_step"),
    "fixed_linear": ("total_curriculum_step", "difficulty_step"),
    "fixed_root": ("total_curriculum_step", "difficulty_step", "root_degree"),
    "custom": (),
}
_LTD = ("total_layer_num", "random_ltd_layer_num", "random_ltd_schedule")
_LTD_FILE = "runtime/data_pipeline/data_routing/scheduler.py:42"
_SPARSE = ("dense", "fixed", "variable", "bigbird", "bslongformer")
# Techniques of compression: what each group's params need, and the methods.
_COMPRESSION: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "weight_quantization": (("start_bits", "target_bits"), ()),
    "activation_quantization": (("bits",), ()),
    "sparse_pruning": (("dense_ratio",), ("l1", "topk", "snip_momentum")),
    "row_pruning": (("dense_ratio",), ("l1", "topk")),
    "head_pruning": (("dense_ratio",), ("l1", "topk")),
    "channel_pruning": (("dense_ratio",), ("l1", "topk")),
}
_COMPRESSION_FILE = "compression/config.py:74"


def check(state: State) -> None:
    """Say what stops the engine, or its first step."""
    _timers(state)
    _numbers(state)
    _curriculum(state)
    _token_dropping(state)
    _layer_drop(state)
    _sparse(state)
    _compression(state)


def _say(state: State, address: str, why: str, fix: str) -> None:
    state.say("S229", f"{address} cannot be {state.get(address)!r}: {why}", address, fix)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _timers(state: State) -> None:
    """``wall_clock_breakdown | flops_profiler.enabled`` needs two bools."""
    for address in ("wall_clock_breakdown", "flops_profiler.enabled"):
        if state.given(address) and not state.missing(address) and not isinstance(state.get(address), int):
            _say(state, address, f"it is combined with | when the file is read ({CONFIG}:821)", "write true or false")


def _numbers(state: State) -> None:
    steps = state.get("steps_per_print")
    stated = state.given("steps_per_print") and not state.missing("steps_per_print")
    if stated and steps is not None and (not _is_number(steps) or steps == 0):
        _say(state, "steps_per_print", f"steps are divided by it ({ENGINE}:3020)", "write a number of steps, or null")
    vocabulary = state.get("vocabulary_size")
    if isinstance(vocabulary, str) and vocabulary and not state.missing("vocabulary_size"):
        _say(state, "vocabulary_size", f"it is divided by 8 ({CONFIG}:1011)", "write a number")
    if state.zero_stage and state.number(f"{_Z}reduce_bucket_size") == 0:
        _say(state, f"{_Z}reduce_bucket_size", "no gradient fits into such a bucket", "write 5e8, or leave it out")
    if state.on(f"{_Z}legacy_stage1"):
        why = "the old stage 1 is gone since 0.5.9, and the engine stops"
        _say(state, f"{_Z}legacy_stage1", why, "drop the key")


def _curriculum(state: State) -> None:
    """The older section, which the engine takes apart; that of data_efficiency goes to the program's sampler."""
    found = state.get("curriculum_learning")
    if not isinstance(found, dict) or not found.get("enabled") or state.since("0.19.8"):
        return
    for name in _CURRICULUM[:3]:
        if name not in found:
            message = f"curriculum_learning is on and has no {name} ({_CURRICULUM_FILE})"
            state.say("S222", message, "curriculum_learning", f"write {name}")
            return
    kind, settings = found["schedule_type"], found.get("schedule_config")
    needed = _SCHEDULES.get(kind) if isinstance(kind, str) else None
    if needed is None:
        message = f"curriculum_learning.schedule_type cannot be {kind!r} ({_CURRICULUM_FILE})"
        state.say("S222", message, "curriculum_learning", f"write one of {', '.join(_SCHEDULES)}")
        return
    lacking = [name for name in needed if not isinstance(settings, dict) or name not in settings]
    if lacking:
        message = f"curriculum_learning.schedule_config of {kind} needs {', '.join(lacking)} ({_CURRICULUM_FILE})"
        state.say("S222", message, "curriculum_learning", f"write {', '.join(lacking)}")
    elif kind == "fixed_discrete" and isinstance(settings, dict):
        difficulties, steps = settings["difficulty"], settings["max_step"]
        lists = isinstance(difficulties, list) and isinstance(steps, list)
        if not lists or not steps or len(difficulties) != len(steps) + 1:
            message = f"curriculum_learning needs one max_step less than there are difficulties ({_CURRICULUM_FILE})"
            state.say("S222", message, "curriculum_learning", "make the lists fit")


def _token_dropping(state: State) -> None:
    found = state.get("data_efficiency.data_routing.random_ltd")
    on = state.on("data_efficiency.enabled") and state.on("data_efficiency.data_routing.enabled")
    if not on or not isinstance(found, dict) or not found.get("enabled"):
        return
    lacking = [name for name in _LTD if name not in found]
    if lacking:
        message = f"random_ltd is on and has no {', '.join(lacking)} ({_LTD_FILE})"
        state.say("S222", message, "data_efficiency.data_routing.random_ltd", f"write {', '.join(lacking)}")


def _layer_drop(state: State) -> None:
    found = state.get("progressive_layer_drop")
    if not isinstance(found, dict) or not found.get("enabled") or state.since("0.19.8"):
        return
    lacking = [name for name in ("theta", "gamma") if name not in found]
    if lacking:
        message = f"progressive_layer_drop is on and has no {' and no '.join(lacking)} ({ENGINE}:860)"
        state.say("S222", message, "progressive_layer_drop", f"write {', '.join(lacking)}")


def _sparse(state: State) -> None:
    found = state.get("sparse_attention")
    if isinstance(found, dict) and "mode" in found and found["mode"] not in _SPARSE and not state.since("0.19.8"):
        message = f"sparse_attention.mode cannot be {found['mode']!r} ({CONFIG}:266)"
        state.say("S222", message, "sparse_attention", f"write one of {', '.join(_SPARSE)}")


def _compression(state: State) -> None:
    found = state.get("compression_training")
    if not isinstance(found, dict) or state.since("0.19.8"):
        return
    for name, (needed, methods) in _COMPRESSION.items():
        technique = found.get(name)
        if isinstance(technique, dict) and (problem := _technique(state, name, technique, needed, methods)):
            message = f"compression_training.{name} {problem} ({_COMPRESSION_FILE})"
            state.say("S222", message, "compression_training", "write what is missing, or turn it off")
            return


def _technique(
    state: State, name: str, technique: dict[str, object], needed: tuple[str, ...], methods: tuple[str, ...]
) -> str:
    """What is wrong with one technique; empty when nothing is."""
    shared, groups = technique.get("shared_parameters"), technique.get("different_groups")
    settings = shared if isinstance(shared, dict) else {}
    on = settings.get("enabled") is True
    if groups is None:
        return "is on and has no different_groups" if on else "has no different_groups"
    method = settings.get("method")
    if methods and method is not None and method not in methods:
        return f"cannot have the method {method!r}, only {', '.join(methods)}"
    for group, entry in groups.items() if isinstance(groups, dict) else ():
        given = entry.get("params") if isinstance(entry, dict) else None
        lacking = [key for key in needed if not isinstance(given, dict) or key not in given]
        if lacking:
            return f"has a group {group} without {', '.join(lacking)}"
    in_step = name == "weight_quantization" and on and not settings.get("quantize_weight_in_forward")
    if in_step and not state.on(at.FP16) and not state.missing(at.FP16):
        return "quantizes in the optimizer's step, which is for fp16 (set quantize_weight_in_forward)"
    return ""
