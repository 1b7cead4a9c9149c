"""Floating-point operations of a model, and what they take on a card."""

from __future__ import annotations

from dataclasses import dataclass

from translator.memory.sizes import Model


@dataclass(frozen=True, slots=True)
class Compute:
    """FLOPs per token of one training step, and of the recomputation on top."""

    forward: float
    training: float
    recomputed: float

    def utilisation(self, tokens_per_second: float, peak_flops: float) -> tuple[float, float]:
        """MFU and HFU of one card, for its share of the tokens per second."""
        return (
            tokens_per_second * self.training / peak_flops,
            tokens_per_second * (self.training + self.recomputed) / peak_flops,
        )


def matrix_weights(model: Model) -> float:
    """Weights that multiply one token: all matrices but the embedding, of the experts those that are chosen."""
    hidden = model.hidden
    if model.mla is not None:
        mla = model.mla
        query = hidden * mla.q_rank + mla.q_rank * model.query_width if mla.q_rank else hidden * model.query_width
        latent = hidden * (mla.kv_rank + mla.rope) + mla.kv_rank * model.heads * (mla.nope + mla.value)
        attention = query + latent + model.value_width * hidden
    else:
        keys = 2 * model.kv_heads * model.head_dim
        attention = hidden * (model.query_width + keys) + model.value_width * hidden
    branches = 3 if model.gated else 2
    dense, sparse = len(model.dense), model.layers - len(model.dense)
    total = (model.layers + model.mtp_layers) * attention + dense * branches * hidden * model.ffn
    if model.moe is not None:
        chosen = model.moe.top_k * model.moe.ffn + model.moe.shared_ffn
        total += (sparse + model.mtp_layers) * (branches * hidden * chosen + hidden * model.moe.experts)
    elif model.mtp_layers:
        total += model.mtp_layers * branches * hidden * model.ffn
    total += model.mtp_layers * 2 * hidden * hidden
    return float(total + (1 + model.mtp_layers) * hidden * model.vocab)


def attention_scores(model: Model, seq_len: int, *, causal: bool = True) -> float:
    """Forward FLOPs per token of scores and their product with the values, over all layers.

    A causal token sees half of the sequence on average (Dao 2023, arXiv:2307.08691, section 3.1).
    """
    seen = seq_len / 2 if causal else float(seq_len)
    return 2.0 * seen * (model.query_width + model.value_width) * (model.layers + model.mtp_layers)


def compute(model: Model, seq_len: int, *, causal: bool = True, recompute: str = "none") -> Compute:
    """FLOPs per token: a backward pass costs twice its forward pass (Kaplan et al. 2020, arXiv:2001.08361, table 1).

    ``recompute`` is the spec's mode: ``full`` runs every layer's forward pass twice, ``selective`` its scores.
    """
    products = 2.0 * matrix_weights(model)
    scores = attention_scores(model, seq_len, causal=causal)
    forward = products + scores
    output = 2.0 * model.hidden * model.vocab
    again = {"full": forward - output, "selective": scores}.get(recompute, 0.0)
    return Compute(forward, 3 * forward, again)
