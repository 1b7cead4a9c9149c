"""Floating-point operations against published arithmetic."""

from __future__ import annotations

import pytest

from translator.memory.compute import compute
from translator.memory.hardware import gpu, gpus
from translator.memory.sizes import model_of

LLAMA_70B = {
    "model.layers": 80,
    "model.hidden": 8192,
    "model.ffn": 28672,
    "model.heads": 64,
    "model.kv_heads": 8,
    "model.vocab": 128256,
    "model.gated": True,
}


def test_llama_70b() -> None:
    """4.5e11 FLOPs per token, and 3.7 s for a sequence of 8,192 tokens at 989 TFLOP/s."""
    found = compute(model_of(LLAMA_70B), 8192)
    assert found.training == pytest.approx(4.5e11, rel=0.02)
    seconds = found.training * 8192 / gpu("h100").peak_bf16_flops
    assert seconds == pytest.approx(3.7, rel=0.02)


def test_utilisation_counts_recomputation_in_hfu_only() -> None:
    found = compute(model_of(LLAMA_70B), 8192, recompute="full")
    mfu, hfu = found.utilisation(900, gpu("h100").peak_bf16_flops)
    assert hfu / mfu == pytest.approx(4 / 3, rel=0.02)


def test_every_card_has_its_figures() -> None:
    for name, card in gpus().items():
        assert 20e9 < card.memory_bytes < 400e9, name
        assert 1e14 < card.peak_bf16_flops < 1e16, name
        assert card.source, name
