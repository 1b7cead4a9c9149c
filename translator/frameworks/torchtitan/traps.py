"""Configurations that torchtitan takes and runs in a way that nobody means; one function per topic.

What it refuses is in `refusals` and `refusals_python`.
"""

from __future__ import annotations

from collections.abc import Mapping

from translator.findings import Level
from translator.frameworks.torchtitan import addresses as at
from translator.frameworks.torchtitan import model_names
from translator.frameworks.torchtitan.state import State

_P = "parallelism."
_CLIP = "training.max_norm"
_LAST_SAVE = "checkpoint.last_save_model_only"
_WARMUP = "lr_scheduler.warmup_steps"
# Converters of the TOML versions that convert nothing until modules are listed for them.
_BY_LIST = ("quantize.grouped_mm.float8", "quantize.grouped_mm.mx")
_SECTIONS = {
    "0.1.0": ("float8", "mx"),
    "0.2.2": ("quantize.linear.float8", "quantize.linear.mx", *_BY_LIST),
}
_AUTO_FILTER = "auto_filter_small_kn"
_CLIP_SOURCE = {
    "0.1.0": "distributed/utils.py:367",
    "0.2.2": "distributed/utils.py:475",
    "0.3.0": "distributed/utils.py:675",
}
# Families whose tensor parallelism would gather float8 (models/*/infra/parallelize.py of 0.2.2).
_FLOAT8_GATHER = frozenset({"llama3", "llama4", "qwen3"})


def check(state: State) -> None:
    """Add a warning for everything in a TOML configuration that is taken and does not do what it says."""
    for topic in (_clipping, _schedule, _last_checkpoint, _without_effect, _float8_gather):
        topic(state)


def check_python(state: State) -> None:
    """The same for a Python configuration."""
    for topic in (_clipping, _schedule, _last_checkpoint, _converted_modules):
        topic(state)


def _warn(state: State, code: str, message: str, address: str, fix: str = "") -> None:
    state.say(code, message, address, fix, Level.WARNING)


def _clipping(state: State) -> None:
    bound = state.real(_CLIP)
    if bound is not None and bound <= 0:
        source = _CLIP_SOURCE[state.native.version]
        message = f"max_norm {bound:g} scales every gradient to nothing, for there is no value that turns clipping off"
        _warn(state, "S186", f"{message} ({source}); it is read as no clipping", _CLIP, "1e9, or the bound you mean")


def _schedule(state: State) -> None:
    warmup, total = state.number(_WARMUP), state.number(at.TOTAL_STEPS)
    if warmup > total:
        fix = f"{_WARMUP} below {total}, or more steps"
        _warn(state, "S178", f"the warm-up of {warmup} steps is cut to all {total}", _WARMUP, fix)
        return
    ratio = state.real("lr_scheduler.decay_ratio")
    wanted = round(total * ratio) if ratio is not None and abs(ratio) < 1e9 else 0
    if wanted > total - warmup:
        message = f"the decay of {wanted} steps is cut to the {total - warmup} that the warm-up leaves"
        fix = "a decay_ratio or warm-up that leaves room for the other"
        _warn(state, "S178", message, "lr_scheduler.decay_ratio", fix)


def _last_checkpoint(state: State) -> None:
    saves = state.get("checkpoint.enable") and not state.get("checkpoint.load_only")
    if saves and state.get(_LAST_SAVE) and _LAST_SAVE not in state.native.given:
        message = "the last checkpoint holds the model only, so a longer run cannot resume from it"
        fix = f"{_LAST_SAVE} = false to resume from it; true to silence this"
        state.say("S195", message, _LAST_SAVE, fix, Level.NOTE)


def _without_effect(state: State) -> None:
    rotate = f"{_P}context_parallel_rotate_method"
    contextual = state.number(f"{_P}context_parallel_degree", 1) > 1
    if state.new and contextual and state.text(rotate) not in {"", "allgather"}:
        message = "only validation reads the rotate method (components/validate.py:213); training gathers all the same"
        _warn(state, "S185", message, rotate, "leave it out")
    converters = state.names("model.converters")
    for section in _SECTIONS[state.native.version]:
        # Templates keep sections for later; what turns something on is meant now.
        stated = [
            address
            for address, given in state.native.given.items()
            if address.startswith(f"{section}.") and (given.value is True or address.endswith("float8.recipe_name"))
        ]
        if stated and not any(section.endswith(name) for name in converters):
            message = f"{section} is not among model.converters, so its options have no effect"
            state.say("S185", message, stated[0], f"add {section} to model.converters", Level.NOTE)
        if section in _BY_LIST and section in converters and not state.get(f"{section}.fqns"):
            source = "float8.py:222" if section.endswith("float8") else "mx.py:152"
            message = f"{section} converts what its fqns name, and they name nothing (components/quantization/{source})"
            _warn(state, "S185", message, "model.converters", f'{section}.fqns = ["experts"]')


def _float8_gather(state: State) -> None:
    """``"float8" in converters`` asks for the name of 0.1.0, which 0.2.2 does not take any more."""
    linear = "quantize.linear.float8"
    rowwise = state.text(f"{linear}.recipe_name").startswith("rowwise")
    tensor = state.number(f"{_P}tensor_parallel_degree", 1) > 1
    if state.new and tensor and not rowwise and linear in state.names("model.converters"):
        name = state.text("model.name")
        if name in _FLOAT8_GATHER:
            line = {"llama3": 77, "llama4": 93, "qwen3": 87}[name]
            source = f"models/{name}/infra/parallelize.py:{line}"
            message = f"tensor parallelism gathers activations in the compute format, never in float8 ({source})"
            fix = 'recipe_name = "rowwise", which gathers so by design, or 0.3.0'
            _warn(state, "S192", message, "model.converters", fix)


def _converted_modules(state: State) -> None:
    """Lists of converters that match something else than they seem to (``components/quantization/*.py`` of 0.3.0)."""
    found = state.get("model_spec.converters")
    layers = state.number(f"{at.MODEL}layers")
    if not isinstance(found, list) or not 0 < layers < 10_000:
        return
    linears = model_names.linears(lambda leaf: state.get(f"{at.MODEL}{leaf}"))
    names = ["lm_head", *(f"layers.{layer}.{name}" for layer in range(layers) for name in linears)]
    for item in found:
        if not isinstance(item, Mapping):
            continue
        kind = str(item.get("class"))
        if kind in {"MXFP8LinearConverter", "NVFP4LinearConverter"} and not item.get("fqns"):
            source = "mx.py:83" if kind.startswith("MX") else "nvfp4.py:300"
            message = f"{kind} without fqns converts every linear, lm_head as well (components/quantization/{source})"
            _warn(state, "S194", message, "model_spec.converters", 'fqns=["layers"] leaves the head out')
        for option in ("fqns", "filter_fqns"):
            stated = item.get(option)
            for part in stated if isinstance(stated, (list, tuple)) else ():
                if isinstance(part, str) and part != _AUTO_FILTER and not any(part in name for name in names):
                    message = f"{option} of {kind} names {part!r}, which is in no linear of this model"
                    fix = "the head is lm_head, and attention has qkv_linear.wqkv and wo"
                    _warn(state, "S194", message, "model_spec.converters", fix)
