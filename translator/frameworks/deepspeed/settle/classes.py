"""Classes of torch that ``optimizer.type`` and ``scheduler.type`` may name, and the arguments that they take.

DeepSpeed looks names that are not its own up in ``torch.optim`` and ``torch.optim.lr_scheduler``
(runtime/engine.py:1924 and :1434 at 0.19.2). Read from torch 2.13.0 (``torch/optim``).
"""

from __future__ import annotations

_COMMON = frozenset({"lr", "foreach", "maximize", "differentiable", "capturable"})
_ADAM = _COMMON | {"betas", "eps", "weight_decay"}
_DECOUPLED = _ADAM | {"decoupled_weight_decay"}
OPTIMIZERS: dict[str, frozenset[str]] = {
    "ASGD": _COMMON | {"lambd", "alpha", "t0", "weight_decay"},
    "Adadelta": _COMMON | {"rho", "eps", "weight_decay"},
    "Adafactor": frozenset({"lr", "beta2_decay", "eps", "d", "weight_decay", "foreach", "maximize"}),
    "Adagrad": (_COMMON - {"capturable"}) | {"lr_decay", "weight_decay", "initial_accumulator_value", "eps", "fused"},
    "Adam": _DECOUPLED | {"amsgrad", "fused"},
    "AdamW": _ADAM | {"amsgrad", "fused"},
    "Adamax": _ADAM,
    "LBFGS": frozenset(
        {"lr", "max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size", "line_search_fn"}
    ),
    "NAdam": _DECOUPLED | {"momentum_decay"},
    "RAdam": _DECOUPLED,
    "RMSprop": _COMMON | {"alpha", "eps", "weight_decay", "momentum", "centered"},
    "Rprop": _COMMON | {"etas", "step_sizes"},
    "SGD": (_COMMON - {"capturable"}) | {"momentum", "dampening", "weight_decay", "nesterov", "fused"},
    "SparseAdam": frozenset({"lr", "betas", "eps", "maximize"}),
}
# What a scheduler cannot do without, and what it takes besides.
SCHEDULERS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    name: (frozenset(needed), frozenset(others) | {"last_epoch"})
    for name, needed, others in (
        ("ConstantLR", (), ("factor", "total_iters")),
        ("CosineAnnealingLR", ("T_max",), ("eta_min",)),
        ("CosineAnnealingWarmRestarts", ("T_0",), ("T_mult", "eta_min")),
        (
            "CyclicLR",
            ("base_lr", "max_lr"),
            (
                *("step_size_up", "step_size_down", "mode", "gamma", "scale_fn", "scale_mode", "cycle_momentum"),
                *("base_momentum", "max_momentum"),
            ),
        ),
        ("ExponentialLR", ("gamma",), ()),
        ("LambdaLR", ("lr_lambda",), ()),
        ("LinearLR", (), ("start_factor", "end_factor", "total_iters")),
        ("MultiStepLR", ("milestones",), ("gamma",)),
        ("MultiplicativeLR", ("lr_lambda",), ()),
        (
            "OneCycleLR",
            ("max_lr",),
            (
                *("total_steps", "epochs", "steps_per_epoch", "pct_start", "anneal_strategy", "cycle_momentum"),
                *("base_momentum", "max_momentum", "div_factor", "final_div_factor", "three_phase"),
            ),
        ),
        ("PolynomialLR", (), ("total_iters", "power")),
        (
            "ReduceLROnPlateau",
            (),
            ("mode", "factor", "patience", "threshold", "threshold_mode", "cooldown", "min_lr", "eps"),
        ),
        ("StepLR", ("step_size",), ("gamma",)),
    )
}
# Optimizers that ZeRO takes without zero_allow_untested_optimizer (runtime/zero/utils.py:45 at 0.19.2).
TESTED = frozenset({"adam", "adamw", "adagrad", "lion", "muon"})
# Popped before the class sees them (runtime/engine.py:1783).
POPPED = frozenset({"torch_adam", "adam_w_mode"})


def optimizer_arguments(kind: str, *, torch_adam: bool) -> frozenset[str] | None:
    """What torch's class for an optimizer type takes; None where it is DeepSpeed's own, or none."""
    name = kind.lower()
    if torch_adam and name in {"adam", "adamw"}:
        return OPTIMIZERS["AdamW"] | POPPED  # Adam takes one more, which adam_w_mode false leads to
    return None if name in {"adam", "adamw", "adagrad", "muon"} else OPTIMIZERS.get(kind)


def scheduler_arguments(kind: str) -> frozenset[str] | None:
    """What torch's scheduler of a name takes; None where torch has none."""
    found = SCHEDULERS.get(kind)
    return found[0] | found[1] if found is not None else None
