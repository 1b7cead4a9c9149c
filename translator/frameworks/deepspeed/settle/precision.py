"""Precision, and what ZeRO shards: which of the engine's optimizers wraps the model, and in which types."""

from __future__ import annotations

from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.settle.state import CONFIG, ENGINE, State

_NAMES = {
    **dict.fromkeys(("fp16", "float16", "half", "torch.float16"), "fp16"),
    **dict.fromkeys(("fp32", "float32", "float", "torch.float32"), "fp32"),
    **dict.fromkeys(("bf16", "bfloat16", "torch.bfloat16"), "bf16"),
    **dict.fromkeys(("int8", "torch.int8"), "int8"),
}
_COMMUNICATION = ("fp16", "bf16", "fp32")
_SHARDING = {0: "none", 1: "optimizer", 2: "optimizer_gradients", 3: "full"}
_GRAD = "data_types.grad_accum_dtype"
_COMM, _SEQUENCE_COMM = "communication_data_type", "seq_parallel_communication_data_type"


def dtype_name(text: str) -> str | None:
    """A type by any of its names (``DtypeEnum``, runtime/config.py:98 at 0.19.2); None for another word."""
    return _NAMES.get(text)


def settle_zero(state: State) -> None:
    """Deprecated spellings, dynamic defaults, and what the stage shards."""
    for old, new in (
        ("zero_optimization.cpu_offload", "zero_optimization.offload_optimizer"),
        ("zero_optimization.cpu_offload_param", "zero_optimization.offload_param"),
    ):
        if not state.given(old) or state.missing(old):
            continue
        if state.section(new):
            _both(state, old, new)
        elif state.on(old):
            state.put(f"{new}.device", "cpu", f"{old} (runtime/zero/config.py:190)")
    old, new = (
        "zero_optimization.stage3_gather_fp16_weights_on_model_save",
        "zero_optimization.stage3_gather_16bit_weights_on_model_save",
    )
    if state.given(old):
        if state.given(new):
            _both(state, old, new)
        else:
            state.put(new, state.get(old), f"{old} (runtime/zero/config.py:250)")
    overlap = "zero_optimization.overlap_comm"
    if state.get(overlap) is None and not state.missing("zero_optimization.stage"):
        state.put(overlap, state.zero_stage == 3, "on for stage 3 only (runtime/zero/config.py:377)")
    if not state.missing("zero_optimization.stage"):
        state.put(at.SHARDING, _SHARDING.get(state.zero_stage, "none"), f"ZeRO stage {state.zero_stage}")
    ratio = state.number("zero_optimization.offload_optimizer.ratio")
    if ratio is not None and ratio < 1.0 and state.zero_stage != 3:
        message = "only stage 3 can offload a part of the optimizer (runtime/zero/config.py:385)"
        state.say("S208", message, "zero_optimization.offload_optimizer.ratio")


def _both(state: State, old: str, new: str) -> None:
    message = f"{old} and {new}, which took its place, are both there; DeepSpeed refuses that (config_utils.py:93)"
    state.say("S224", message, old, f"drop {old}")


def settle_precision(state: State, *, pipelined: bool = False) -> None:
    """Types of compute, weights, gradients and reduction; ``pipelined`` under the pipeline's engine."""
    fp16, bf16 = state.on(at.FP16), state.on(at.BF16)
    _communication(state)
    if not state.missing(at.STAGE):
        _master_refusals(state)
    for name in ("fp16", "bf16"):
        if state.missing(f"{name}.enabled") is not None:
            return
    if fp16 and bf16:
        state.say("S204", f"fp16 and bf16 are both on ({CONFIG}:793)", at.BF16, "turn one off")
    compute = "fp16" if fp16 else "bf16" if bf16 else "fp32"
    reason = "fp16.enabled and bf16.enabled"
    autocast = _NAMES.get(state.text("torch_autocast.dtype"), "") if state.on("torch_autocast.enabled") else ""
    state.put(at.PARAM_DTYPE, compute, f"the model is cast to it ({ENGINE}:1575)")
    state.put(at.COMPUTE_DTYPE, autocast or compute, "torch_autocast.dtype" if autocast else reason)
    _gradients(state, compute)
    _reduction(state, compute)
    _master(state, compute)
    if not state.missing(at.STAGE):
        _engine_optimizer(state, compute, pipelined=pipelined)


def _gradients(state: State, compute: str) -> None:
    stated = state.get(_GRAD)
    if stated is None and compute == "bf16" and not state.zero_stage and not state.since("0.19.2"):
        state.put(at.GRAD_DTYPE, "fp32", f"fp32 without ZeRO ({ENGINE}:1041 at 0.16.9)")
    elif stated is None:
        state.put(at.GRAD_DTYPE, compute, f"as the model ({ENGINE}:1317)")
        if compute == "bf16" and state.whole(at.ACCUMULATION, 1) > 1:
            message = (
                "gradients of several micro batches are added up in bf16, since data_types.grad_accum_dtype is not set"
            )
            state.note("S231", message, at.BF16, 'set data_types.grad_accum_dtype to "fp32"')
    elif isinstance(stated, str) and stated in _NAMES:
        state.put(at.GRAD_DTYPE, _NAMES[stated], _GRAD)
    else:
        state.say("S209", f"{_GRAD} cannot be {stated!r} ({CONFIG}:99)", _GRAD, "write fp32, bf16 or fp16")


def _communication(state: State) -> None:
    for key in (_COMM, _SEQUENCE_COMM):
        value = state.get(key)
        if value is not None and (not isinstance(value, str) or value.lower() not in _COMMUNICATION):
            state.say("S205", f"{key} cannot be {value!r} ({CONFIG}:219)", key, "write fp16, bf16 or fp32")


def _reduction(state: State, compute: str) -> None:
    sequence = state.whole(at.SEQUENCE, 1) > 1
    address = _SEQUENCE_COMM if sequence else _COMM
    found = compute
    for key in (_COMM, _SEQUENCE_COMM):
        value = state.get(key)
        if value is None:
            continue
        name = value.lower() if isinstance(value, str) else value
        if name not in _COMMUNICATION:
            continue
        if name != value:
            state.put(key, name, f"in small letters ({CONFIG}:208)")
        if key == address:
            found = str(name)
    given = state.get(address) is not None
    state.put(at.REDUCE_DTYPE, found, address if given else f"as the model ({ENGINE}:1232)")


_LOW = {"fp16": "fp16.fp16_master_weights_and_grads", "bf16": "bf16.bf16_master_weights_and_grads"}


def _master(state: State, compute: str) -> None:
    """The optimizer's own copy of the weights."""
    low = _LOW.get(compute)
    if low is not None and state.on(low):
        state.put(at.MASTER_DTYPE, compute, low)
    else:
        state.put(at.MASTER_DTYPE, None if compute == "fp32" else "fp32", "16-bit models keep an fp32 copy")


def _master_refusals(state: State) -> None:
    """What 16-bit master weights need (runtime/config.py:993-1005 at 0.19.2)."""
    for address in _LOW.values():
        fine = state.zero_stage == 2 if not state.since("0.19.2") else state.zero_stage in {1, 2, 3}
        if state.on(address) and not fine and (state.since("0.19.2") or state.on(at.FP16)):
            message = f"{address} needs ZeRO stage {'1, 2 or 3' if state.since('0.19.2') else '2'} ({CONFIG}:993)"
            state.say("S206", message, address)
    if state.on("bf16.bf16_optimizer_states"):
        if state.zero_stage not in {1, 2, 3}:
            state.say("S206", f"bf16_optimizer_states needs ZeRO ({CONFIG}:1002)", "bf16.bf16_optimizer_states")
        elif not state.on(_LOW["bf16"]):
            message = f"bf16_optimizer_states needs bf16_master_weights_and_grads ({CONFIG}:1005)"
            state.say("S207", message, "bf16.bf16_optimizer_states")
    _offloaded_master(state, *(state.on(address) for address in _LOW.values()))


def _offloaded_master(state: State, half: bool, brain: bool) -> None:
    """They are for an offloaded Adam, or for bf16 states on the card (runtime/base_optimizer.py:467 at 0.19.2)."""
    if not (half or brain) or state.zero_stage not in {1, 2, 3} or not state.since("0.19.2"):
        return
    address = _LOW["fp16" if half else "bf16"]
    if half and brain:
        state.say("S206", "fp16 and bf16 master weights exclude each other (runtime/base_optimizer.py:482)", address)
        return
    offloaded = state.text("zero_optimization.offload_optimizer.device") in {"cpu", "nvme"}
    if not half and state.on("bf16.bf16_optimizer_states") and not offloaded:
        return
    kind = state.text("optimizer.type").lower()
    if offloaded and (kind in {"adam", "adamw", ""} and not state.on("optimizer.params.torch_adam")):
        return
    message = f"{address} needs an optimizer that is offloaded to the CPU, and Adam (runtime/base_optimizer.py:493)"
    fix = "set zero_optimization.offload_optimizer.device to cpu" + ("" if half else ", or bf16_optimizer_states")
    state.say("S206", message, address, fix)


def _engine_optimizer(state: State, compute: str, *, pipelined: bool) -> None:
    """Which wrapper the engine picks (runtime/engine.py:1672-1717 at 0.19.2)."""
    grad = state.text(at.GRAD_DTYPE) or compute
    offloaded = state.text("zero_optimization.offload_optimizer.device") in {"cpu", "nvme"}
    amp = state.on("amp.enabled")
    reason = f"{ENGINE}:1672"
    if amp and (state.zero_stage or compute != "fp32"):
        state.say("S220", f"amp does not go with ZeRO, fp16 or bf16 ({ENGINE}:1678)", "amp.enabled")
    if state.zero_stage:
        special = compute == "bf16" and grad == "fp32" and state.zero_stage == 1 and not offloaded
        state.put(at.ENGINE_OPTIMIZER, "BF16_Optimizer" if special else "ZeRO", reason)
        if special:
            message = (
                "bf16 with fp32 gradient accumulation at stage 1 runs BF16_Optimizer, which keeps full fp32 gradients "
                f"on every rank ({ENGINE}:1688)"
            )
            state.note("S230", message, _GRAD)
    elif amp:
        state.put(at.ENGINE_OPTIMIZER, "AMP", reason)
    elif _sharded_without_zero(state, compute, grad, pipelined=pipelined):
        reason = "bf16 runs BF16_Optimizer here, which shards its states at stage 0 too"
        state.put(at.ENGINE_OPTIMIZER, "BF16_Optimizer", f"{reason} (deepspeed/runtime/bf16_optimizer.py:138)")
        if not state.missing(at.STAGE):
            state.put(at.SHARDING, "optimizer", f"{reason} (deepspeed/runtime/bf16_optimizer.py:138)")
    elif compute == grad == "bf16" and not state.since("0.19.2"):
        message = f"without ZeRO, bf16 gradients cannot be accumulated in bf16 ({ENGINE}:1364 at 0.16.9)"
        state.say("S209", message, _GRAD, "use ZeRO stage 1, or leave the key out")
    elif grad != compute:
        message = f"without ZeRO, a {compute} model cannot accumulate gradients in {grad} ({ENGINE}:1715)"
        state.say("S209", message, _GRAD, "use ZeRO stage 1, or leave the key out")
    else:
        state.put(at.ENGINE_OPTIMIZER, {"fp32": "none", "fp16": "FP16", "bf16": "BF16"}[compute], reason)


def _sharded_without_zero(state: State, compute: str, grad: str, *, pipelined: bool) -> bool:
    """Whether the engine wraps a bf16 model in BF16_Optimizer although ZeRO is off.

    The pipeline's engine does for bf16 gradients (runtime/engine.py:1708 at 0.19.2), 0.16.9 for fp32 ones (``:1370``).
    """
    return compute == "bf16" and ((pipelined and grad == "bf16") or (grad == "fp32" and not state.since("0.19.2")))
