"""The optimizer in force: which class, with which arguments (runtime/engine.py:1772 at 0.19.2)."""

from __future__ import annotations

from translator.findings import Level
from translator.frameworks.deepspeed import addresses as at
from translator.frameworks.deepspeed.sections import OPTIMIZER, OPTIMIZER_CLASSES, OPTIMIZERS, parameter_entry
from translator.frameworks.deepspeed.settle import auto, classes
from translator.frameworks.deepspeed.settle.state import ENGINE, State
from translator.native import Missing

_ONE_BIT = frozenset({"onebitadam", "onebitlamb", "zerooneadam"})
_ADAM = frozenset({"adam", "adamw"})
# torch's own defaults, which hold with torch_adam and for torch's names (torch/optim/adamw.py, adam.py, sgd.py).
_TORCH: dict[str, dict[str, object]] = {
    "adamw": {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 1e-2},
    "adam": {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.0},
    "sgd": {"lr": 1e-3, "weight_decay": 0.0, "momentum": 0.0},
    "adagrad": {"lr": 1e-2, "weight_decay": 0.0, "eps": 1e-10},
}
_FUSED = "ops/adam/fused_adam.py"
# The class that runs, without and with an offloaded optimizer.
_CLASSES = {"adam": "FusedAdam", "adamw": "FusedAdam", "lamb": "FusedLamb", "lion": "FusedLion"}
_CPU_CLASSES = {"adam": "DeepSpeedCPUAdam", "adamw": "DeepSpeedCPUAdam", "adagrad": "DeepSpeedCPUAdagrad"}
_STAGE_3 = 3
_NEVER_CLIPS = 1e9  # no norm of a gradient that trains is above
_NAMES = ("lr", "betas", "eps", "weight_decay")
# Hugging Face names of optimizers that are AdamW (training_args.py, OptimizerNames).
_HF_ADAMW = frozenset(
    {"adamw_torch", "adamw_torch_fused", "adamw_hf", "adamw_torch_xla", "adamw_apex_fused", "adamw_torch_npu_fused"}
)


def settle_optimizer(state: State) -> None:
    """Name, arguments, clipping; everything stays open where neither JSON nor trainer says."""
    kind = state.text("optimizer.type")
    stated = state.get("optimizer.type")
    if stated is not None and not kind and not state.missing("optimizer.type"):
        message = f"optimizer.type cannot be {stated!r}: it is the name of an optimizer"
        state.say("S216", message, "optimizer.type", "write AdamW, or another name")
    if kind and not state.missing("optimizer.type"):
        _from_json(state, kind)
    elif state.trainer == auto.TRANSFORMERS and not state.section("optimizer"):
        _from_trainer(state)
    else:
        state.lack(at.OPTIMIZER, "optimizer", "the training program makes it", "write an optimizer section")
    settle_clip(state)


def _from_json(state: State, kind: str) -> None:
    name = kind.lower() if kind.lower() in OPTIMIZERS else kind
    offloaded = state.text("zero_optimization.offload_optimizer.device") in {"cpu", "nvme"}
    torch_adam = name in _ADAM and state.on(f"{OPTIMIZER}.torch_adam")
    classes = () if torch_adam else OPTIMIZER_CLASSES.get(name, ())
    if offloaded and name in _ADAM and not torch_adam:
        classes = ("DeepSpeedCPUAdam", *classes)
    behaves = name.lower()
    if name in _ADAM:
        decoupled = name == "adamw" or state.get(f"{OPTIMIZER}.adam_w_mode", True) is not False
        behaves = "adamw" if decoupled else "adam"
        if name == "adam" and decoupled:
            message = f"Adam is AdamW here: decay is decoupled unless adam_w_mode is false ({ENGINE}:1787)"
            state.note("S233", message, "optimizer.type")
    state.put(at.OPTIMIZER, behaves, f"optimizer.type {kind}")
    for argument in ("optim", "optim_args", "adafactor"):
        state.idle(f"hf.{argument}", kind, "the JSON has an optimizer, which transformers takes instead")
    torch_defaults = _TORCH.get(behaves, {}) if not classes else {}
    for argument in _NAMES:
        _argument(state, argument, classes, torch_defaults)
    state.put(at.DECAY_ALL, True, "DeepSpeed gives every parameter the same decay unless the program makes groups")
    _refusals(state, kind, name)


def _argument(state: State, name: str, classes: tuple[str, ...], torch_defaults: dict[str, object]) -> None:
    from translator.catalogue import load

    address = f"{OPTIMIZER}.{name}"
    missing = state.missing(address)
    targets = ("beta1", "beta2") if name == "betas" else (name,)
    if missing is not None:
        for target in targets:
            state.lack(f"{at.OPTIMIZER}.{target}", missing.expression, missing.reason, missing.supply)
        return
    value = state.get(address) if state.given(address) else None
    reason = address
    if value is None:
        entry = parameter_entry(load("deepspeed", state.native.version), address, classes) if classes else None
        value = entry.default if entry is not None else torch_defaults.get(name)
        reason = f"the default of {classes[0] if classes else 'torch'}"
        if value is not None:
            state.put(address, value, reason)
    if name == "betas":
        if isinstance(value, list) and len(value) == 2:
            state.put(f"{at.OPTIMIZER}.beta1", value[0], reason)
            state.put(f"{at.OPTIMIZER}.beta2", value[1], reason)
    elif value is not None:
        state.put(f"{at.OPTIMIZER}.{name}", value, reason)


def _refusals(state: State, kind: str, name: str) -> None:
    if any(item.address == f"{OPTIMIZER}.max_grad_norm" for item in state.native.unknown) or state.given(
        f"{OPTIMIZER}.max_grad_norm"
    ):
        message = f"the engine refuses max_grad_norm among the optimizer's arguments ({ENGINE}:1777)"
        state.say("S211", message, f"{OPTIMIZER}.max_grad_norm", "write gradient_clipping at the top level")
    if name in _ONE_BIT:
        if state.since("0.19.8"):
            state.say("S216", f"{kind} is gone since 0.19.8", "optimizer.type", "use AdamW")
        elif state.zero_stage:
            fix = f"use AdamW, or set {at.STAGE} to 0"
            state.say("S221", f"{kind} does not go with ZeRO ({ENGINE}:1839)", "optimizer.type", fix)
    if name == "lamb" and state.on(at.FP16) and state.number("fp16.loss_scale"):
        state.say("S216", f"Lamb needs dynamic loss scaling ({ENGINE}:1523)", "fp16.loss_scale", "set it to 0")
    _names(state, kind, name)
    if name == "muon" and state.zero_stage == _STAGE_3 and state.on("zero_optimization.reduce_scatter"):
        message = "Muon does not go with reduce_scatter at stage 3 (runtime/zero/stage3.py:339)"
        state.say("S216", message, "optimizer.type", "set zero_optimization.reduce_scatter to false")
    if state.on("optimizer.legacy_fusion") and state.text(at.ENGINE_OPTIMIZER) in {"FP16", "BF16"} and name in _ADAM:
        message = "legacy_fusion calls FusedAdam as apex once had it, which it refuses at the first step"
        state.say("S216", message, "optimizer.legacy_fusion", "drop it")
    if name in OPTIMIZERS:
        _arguments(state, kind, name)
    elif kind in classes.OPTIMIZERS:
        _bounds(state, kind)


# mup's functions of these names return torch's Adam and AdamW.
_OF_MUP = ("muadam", "muadamw")


def _names(state: State, kind: str, name: str) -> None:
    if name not in OPTIMIZERS and kind not in classes.OPTIMIZERS:
        message = f"optimizer.type {kind!r} is neither DeepSpeed's nor in torch.optim ({ENGINE}:1519)"
        state.say("S216", message, "optimizer.type", "write AdamW, or another that one of them has")
        return
    tested = name in classes.TESTED or kind in {"Adam", "AdamW", "Adagrad"} or name in {*_ONE_BIT, *_OF_MUP}
    if tested or not state.zero_stage or state.on("zero_allow_untested_optimizer"):
        return
    message = f"ZeRO takes {kind} only with zero_allow_untested_optimizer ({ENGINE}:1683)"
    state.say("S216", message, "optimizer.type", "set zero_allow_untested_optimizer, or use AdamW")


def _arguments(state: State, kind: str, name: str) -> None:
    """Arguments that one of DeepSpeed's classes takes, and the one in force does not (runtime/engine.py:1782)."""
    from translator.catalogue import load

    if state.on(f"{OPTIMIZER}.torch_adam"):
        if name in _ADAM:
            _bounds(state, "Adam")
        return
    offloaded = state.text("zero_optimization.offload_optimizer.device") in {"cpu", "nvme"}
    wanted = _CPU_CLASSES.get(name) if offloaded else _CLASSES.get(name)
    if wanted is None:
        return
    catalogue = load("deepspeed", state.native.version)
    for address in [key for key in state.native.given if key.startswith(f"{OPTIMIZER}.")]:
        argument = address.rpartition(".")[2]
        takes = {entry.key.split(".")[2] for entry in catalogue.by_address(address)}
        if takes and (argument == "adamw_mode" or (wanted not in takes and argument not in classes.POPPED)):
            message = f"{kind} is {wanted} here, which takes no {argument}; the engine stops at it"
            state.say("R132", message, address, "drop it")
    if state.on(f"{OPTIMIZER}.amsgrad") and wanted in {"FusedAdam", "FusedLamb"}:
        state.say("S216", f"{wanted} cannot do amsgrad ({_FUSED}:88)", f"{OPTIMIZER}.amsgrad", "drop it")


def _bounds(state: State, kind: str) -> None:
    """torch's classes check their arguments (torch/optim/adam.py:58 at 2.13.0); DeepSpeed's do not."""
    for name in ("lr", "eps", "weight_decay"):
        value = state.number(f"{OPTIMIZER}.{name}")
        if value is not None and value < 0:
            message = f"{OPTIMIZER}.{name} cannot be {value}: torch's {kind} takes none below 0"
            state.say("S216", message, f"{OPTIMIZER}.{name}", "write a number that is not below 0")
    betas = state.get(f"{OPTIMIZER}.betas")
    if isinstance(betas, list) and any(isinstance(beta, int | float) and not 0 <= beta < 1 for beta in betas):
        message = f"{OPTIMIZER}.betas cannot be {betas}: torch's {kind} takes numbers from 0 to below 1"
        state.say("S216", message, f"{OPTIMIZER}.betas", "write two numbers from 0 to below 1")


def _from_trainer(state: State) -> None:
    """Without an optimizer section transformers makes its own, and allows ZeRO to take it (integrations, line 376)."""
    optimizer = auto.argument(state, "optim")
    if isinstance(optimizer, Missing):
        if not auto.has_trainer_source(state.native):
            optimizer = "adamw_torch"
        else:
            state.lack(at.OPTIMIZER, optimizer.expression, optimizer.reason, optimizer.supply)
            return
    name = "adamw" if optimizer in _HF_ADAMW else str(optimizer)
    if state.on("hf.adafactor"):
        name = "adafactor"
    state.put(at.OPTIMIZER, name, f"transformers' own optimizer, {optimizer}")
    pairs = {"lr": "learning_rate", "beta1": "adam_beta1", "beta2": "adam_beta2", "eps": "adam_epsilon"}
    for target, argument in {**pairs, "weight_decay": "weight_decay"}.items():
        value = auto.argument(state, argument)
        address = f"{at.OPTIMIZER}.{target}"
        if isinstance(value, Missing):
            state.lack(address, value.expression, value.reason, value.supply)
        else:
            state.put(address, value, f"hf.{argument}")
    state.put(
        at.DECAY_ALL, False, "transformers spares biases and norms from decay (trainer.py, get_decay_parameter_names)"
    )
    if not state.given("zero_allow_untested_optimizer"):
        state.put("zero_allow_untested_optimizer", True, "set by transformers for its own optimizer")


def settle_clip(state: State) -> None:
    """The bound on the gradients' norm."""
    missing = state.missing("gradient_clipping")
    value = state.get("gradient_clipping")
    if missing is not None:
        state.lack(at.CLIP, missing.expression, missing.reason, missing.supply)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        off = value <= 0 or value >= _NEVER_CLIPS
        state.put(at.CLIP, 0.0 if off else float(value), "gradient_clipping")
        if off and value:
            message = f"gradient_clipping {value} clips nothing: only norms above it are scaled, if it is positive"
            state.note("S225", message, "gradient_clipping", "write 0.0 for off")
        if not state.given("gradient_clipping"):
            now = "on, at 1.0" if state.since("0.19.8") else "off"
            message = f"without gradient_clipping, clipping is {now} in {state.native.version}; 0.19.8 changed that"
            state.note("S225", message, "gradient_clipping", "write the key")
    elif isinstance(value, bool):
        state.put(at.CLIP, float(value), "gradient_clipping")
        message = f"gradient_clipping {str(value).lower()} counts as {float(value)}"
        state.say("S225", message, "gradient_clipping", "write a number", Level.WARNING)
    else:
        message = f"gradient_clipping is {value!r}, which fails at the first step"
        state.say("S225", message, "gradient_clipping", "write a number")
