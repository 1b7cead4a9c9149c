"""What DeepSpeed refuses besides, and what it silently does not use."""

from __future__ import annotations

from translator.findings import Level
from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.settle import auto
from translator.frameworks.deepspeed.settle.precision import dtype_name
from translator.frameworks.deepspeed.settle.state import CONFIG, ENGINE, State

_TAGS = frozenset({"WARN", "IGNORE", "FAIL"})
_WRITERS = frozenset({"MOCK", "PYTHON", "FAST"})
_UNITS = frozenset({"REPLICA", "SOCKET", "MACHINE"})
_CHECKPOINTING = "activation_checkpointing"
_AUTOTP_STAGES = 2
_WRITER = "checkpoint.writer.type"
_POWER = "fp16.initial_scale_power"
_LARGEST_POWER = 1023  # of a floating-point number


def check(state: State) -> None:
    """All refusals that no other part says."""
    _parallel(state)
    _types(state)
    _scale(state)
    _checkpoint(state)
    _sections(state)
    _experts(state)
    _newer(state)


def remarks(state: State) -> None:
    """Keys that are read by nobody, or not as their name says."""
    if state.section(_CHECKPOINTING):
        message = (
            "the section turns nothing on: it only configures deepspeed.checkpointing, which the program must call"
        )
        first = next(key for key in state.native.given if key.startswith(_CHECKPOINTING))
        state.note("S232", message, first, "hf.gradient_checkpointing, or the model's own switch, recomputes")
    for name in ("stages", "partition"):
        if state.given(f"pipeline.{name}"):
            message = f"no code reads pipeline.{name}; PipelineModule takes the degree"
            state.note("S236", message, f"pipeline.{name}")
    device = state.text("zero_optimization.offload_param.device")
    if device in {"cpu", "nvme"} and state.zero_stage != 3 and not state.missing(at.STAGE):
        message = f"parameters are only offloaded at stage 3; at stage {state.zero_stage} the section does nothing"
        state.say("S240", message, "zero_optimization.offload_param.device", "", Level.WARNING)
    if state.on("flops_profiler.enabled") and not state.on("wall_clock_breakdown"):
        state.put("wall_clock_breakdown", True, f"flops_profiler.enabled ({CONFIG}:821)")
    if state.section("compile") and state.on("compile.deepcompile"):
        state.note("S241", "nothing is compiled unless the program calls engine.compile()", "compile.deepcompile")


def _parallel(state: State) -> None:
    stage = state.native.given.get(at.STAGE)
    if state.trainer == auto.TRANSFORMERS and stage is not None and stage.written == "zero_optimization":
        message = "transformers takes zero_optimization for an object, and stops at a switch"
        state.say("S213", message, at.STAGE, 'write {"stage": 1}')
    autocast = dtype_name(state.text("torch_autocast.dtype")) if state.on("torch_autocast.enabled") else None
    if autocast == "fp16" and state.on(at.FP16) and not state.zero_stage and state.since("0.19.2"):
        message = f"torch_autocast in fp16 beside fp16 needs ZeRO: its scaler finds no gradients ({ENGINE}:356)"
        state.say("S204", message, "torch_autocast.enabled", "turn one of them off")
    tensor = state.whole("tensor_parallel.autotp_size")
    if tensor > 1 and state.zero_stage > _AUTOTP_STAGES:
        state.say("S210", f"AutoTP does not go with ZeRO stage 3 ({ENGINE}:575)", "tensor_parallel.autotp_size")
    prescaled = state.on("prescale_gradients") or state.get("gradient_predivide_factor", 1.0) != 1.0
    if prescaled and state.zero_stage > 1 and state.on("zero_optimization.reduce_scatter"):
        message = (
            "gradients cannot be prescaled with reduce_scatter at stages 2 and 3 (runtime/zero/stage_1_and_2.py:296)"
        )
        state.say("S242", message, "prescale_gradients", "set zero_optimization.reduce_scatter to false")


def _types(state: State) -> None:
    """The engine checks stated types against fp16 and bf16 (runtime/engine.py:1340 at 0.19.2)."""
    stated, compute = state.text("data_types.param_dtype"), state.text(at.PARAM_DTYPE)
    if stated and compute and dtype_name(stated) != compute:
        message = f"data_types.param_dtype {stated} is not the model's type, which is {compute} ({ENGINE}:1340)"
        state.say("S209", message, "data_types.param_dtype", "drop it, or turn that precision on")
    for address in ("data_types.buffer_dtype", "torch_autocast.dtype"):
        value = state.get(address)
        if address == "data_types.buffer_dtype" and compute in {"", "fp32"}:
            continue
        null = value is None and (address != "torch_autocast.dtype" or not state.given(address))
        if null or state.missing(address) or (isinstance(value, str) and dtype_name(value)):
            continue
        message = f"{address} cannot be {value!r} ({CONFIG}:98)"
        state.say("S209", message, address, "write bf16, fp16 or fp32")
    modules = state.get("torch_autocast.lower_precision_safe_modules")
    if isinstance(modules, list) and not all(isinstance(name, str) for name in modules):
        message = f"torch_autocast.lower_precision_safe_modules is a list of names of classes ({CONFIG}:192)"
        state.say("S209", message, "torch_autocast.lower_precision_safe_modules", "write names")


def _scale(state: State) -> None:
    """The first loss scale is two to a power (runtime/fp16/loss_scaler.py), which has to be a number."""
    scale = state.number("fp16.loss_scale")
    if scale is not None and scale < 0 and state.since("0.19.2"):
        message = f"fp16.loss_scale cannot be {scale}: 0 is a dynamic one (runtime/precision_config.py:130)"
        state.say("S204", message, "fp16.loss_scale", "write 0, or a number above it")
    power = state.number(_POWER)
    if power is not None and abs(power) > _LARGEST_POWER and not state.on(at.FP16):
        state.put(_POWER, 16, "fp16 is off, and the scale is not used")
    elif power is not None and not -_LARGEST_POWER <= power <= _LARGEST_POWER:
        message = f"{_POWER} cannot be {power}: two to that power is no floating-point number"
        state.say("S204", message, _POWER, "write a small number; the default is 16")
        state.lack(_POWER, str(power), "two to that power is no floating-point number", "write a smaller one")


def _checkpoint(state: State) -> None:
    tag = state.get("checkpoint.tag_validation")
    stated = state.given("checkpoint.tag_validation") and not state.missing("checkpoint.tag_validation")
    if stated and (not isinstance(tag, str) or tag.upper() not in _TAGS):
        message = f"checkpoint.tag_validation cannot be {tag!r} ({CONFIG}:610)"
        state.say("S218", message, "checkpoint.tag_validation", "write Warn, Ignore or Fail")
    pipeline = state.get("checkpoint.parallel_write.pipeline_stage")
    if pipeline not in (True, False):
        message = f"checkpoint.parallel_write.pipeline_stage cannot be {pipeline!r} ({CONFIG}:619)"
        state.say("S218", message, "checkpoint.parallel_write.pipeline_stage", "write true or false")
    units = state.text("checkpoint.writer.data_parallel")
    if state.section("checkpoint.writer") and not units and state.whole(at.TENSOR, 1) < 2 and state.since("0.19.2"):
        message = "a checkpoint.writer without data_parallel looks for a rank that only model parallelism has"
        fix = "write data_parallel: replica, socket or machine"
        state.say("S218", f"{message} (runtime/model_checkpointing/data_parallel_writer_factory.py:95)", _WRITER, fix)
    for name, allowed in (("type", _WRITERS), ("data_parallel", _UNITS)):
        value = state.get(f"checkpoint.writer.{name}")
        if isinstance(value, str) and value.upper() not in allowed:
            message = f"checkpoint.writer.{name} cannot be {value!r}"
            state.say("S218", message, f"checkpoint.writer.{name}", f"write one of {', '.join(sorted(allowed))}")


def _sections(state: State) -> None:
    """Sections that take out their ``enabled`` without asking whether it is there (runtime/config.py:150-170)."""
    wholes = [("progressive_layer_drop", state.get("progressive_layer_drop"))]
    wholes.append(("curriculum_learning", state.get("curriculum_learning")))
    for name, value in wholes:
        if isinstance(value, dict) and "enabled" not in value:
            state.say("S222", f"{name} needs enabled", name, "write it")
    learning = state.get("data_efficiency.data_sampling.curriculum_learning")
    if isinstance(learning, dict) and learning.get("enabled") and "curriculum_metrics" not in learning:
        message = "curriculum learning is on and has no curriculum_metrics (runtime/data_pipeline/config.py:92)"
        state.say("S222", message, "data_efficiency.data_sampling.curriculum_learning")
    for name in ("autotuning.results_dir", "autotuning.exps_dir"):
        if state.given(name) and not state.get(name) and not state.missing(name):
            state.say("S222", f"{name} cannot be empty (autotuning/config.py:39)", name)


def _experts(state: State) -> None:
    if state.get("expert_parallel.load_balance_coeff") is not None:
        message = "load_balance_coeff must be null (module_inject/auto_ep_config.py:60)"
        state.say("S243", message, "expert_parallel.load_balance_coeff", "drop it")
    if not state.on("expert_parallel.enabled"):
        return
    if state.whole(at.TENSOR, 1) > 1:
        message = "AutoEP does not go with AutoTP (module_inject/auto_ep_config.py:100)"
        state.say("S243", message, "expert_parallel.enabled")
    for name, allowed in (("score_apply", {"auto", "pre", "post"}), ("score_func", {"auto", "softmax", "sigmoid"})):
        value = state.get(f"expert_parallel.{name}")
        if isinstance(value, str) and value not in allowed:
            message = f"expert_parallel.{name} cannot be {value!r}"
            state.say("S243", message, f"expert_parallel.{name}", f"write one of {', '.join(sorted(allowed))}")


def _newer(state: State) -> None:
    """What 0.19.8 checks (runtime/config.py:694 there)."""
    if not state.since("0.19.8"):
        return
    how = state.text("gradient_allreduce_op").lower()
    if how not in {"mean", "sum", ""}:
        message = f"gradient_allreduce_op cannot be {how!r}"
        state.say("S205", message, "gradient_allreduce_op", "write mean or sum")
    elif how == "sum" and state.zero_stage == 3:
        message = f"gradient_allreduce_op sum does not go with stage 3 ({CONFIG}:694)"
        state.say("S205", message, "gradient_allreduce_op")
    if state.get("zero_optimization.compute_grad_norm") is False and state.zero_stage not in {1, 2}:
        message = "compute_grad_norm false is for stages 1 and 2 only (runtime/zero/config.py:390)"
        state.say("S208", message, "zero_optimization.compute_grad_norm")
    if state.on(at.FP16) and state.get("fp16.loss_scale") == 0:
        for name in ("loss_scale_window", "min_loss_scale"):
            value = state.number(f"fp16.{name}")
            if value is not None and value <= 0:
                state.say("S204", f"fp16.{name} must be more than 0 (runtime/precision_config.py:188)", f"fp16.{name}")
