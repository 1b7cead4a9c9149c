"""Facts of a spec that follow from others: one function each, for every framework."""

from __future__ import annotations


def classify(
    *,
    norm: str | None,
    positions: str | None,
    gated: bool | None,
    activation: str | None,
    experts: int | None,
    mla: bool,
    sinks: bool,
) -> str | None:
    """``gpt_oss`` (attention sinks), ``mla`` , ``moe``, ``llama`` (RMSNorm, rotary, SwiGLU), ``gpt`` otherwise.

    None when too little is known to tell.
    """
    if sinks:
        return "gpt_oss"
    if mla:
        return "mla"
    if experts:
        return "moe"
    if norm is None and gated is None and positions is None:
        return None
    return "llama" if (norm, positions, gated, activation) == ("rmsnorm", "rope", True, "silu") else "gpt"


def accumulation(global_batch: int | None, micro_batch: int | None, data_degree: int | None) -> int | None:
    """Micro batches per replica and optimizer step; None when unknown or when the product does not come out."""
    if not global_batch or not micro_batch or not data_degree:
        return None
    steps, rest = divmod(global_batch, micro_batch * data_degree)
    return steps if steps and not rest else None
