"""What an estimate may assume where the configuration leaves it to other files: the vocabulary of known tokenizers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Entries of the vocabulary that a tokenizer type comes with, or of the model that its path names.
BY_TYPE = {
    "GPT2BPETokenizer": 50257,
    "BertWordPieceLowerCase": 30522,
    "BertWordPieceCase": 28996,
    "Llama2Tokenizer": 32000,
    "TikTokenizer": 131072,
}
BY_NAME = {
    "nemotron_2_256k": 256000,
    "llama-3": 128256,
    "llama3": 128256,
    "llama-2": 32000,
    "qwen3": 151936,
    "qwen2": 152064,
    "mixtral": 32000,
    "mistral": 32000,
    "deepseek-v3": 129280,
    "deepseek-v2": 102400,
    "gpt2": 50257,
}


def assumed(flat: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """Leaves that are not known, with a value to go by and why; padded as the framework does.

    Source of the padding: ``vocab_size_with_padding``, ``megatron/core/tokenizers/utils/build_tokenizer.py:124``
    (core 0.18.0).
    """
    if flat.get("model.vocab_padded") or flat.get("model.vocab"):
        return {}
    kind = str(values.get("tokenizer_type") or "")
    path = str(values.get("tokenizer_model") or "").lower()
    named = next((name for name in BY_NAME if name in path), None)
    if named is not None:
        entries, why = BY_NAME[named], f"that of {named}"
    elif kind in BY_TYPE:
        entries, why = BY_TYPE[kind], f"that of {kind}"
    elif not kind and values.get("vocab_file") is not None:
        entries, why = BY_TYPE["GPT2BPETokenizer"], "that of GPT-2, whose kind of vocabulary file is named"
    else:
        return {}
    divisor = (values.get("make_vocab_size_divisible_by") or 128) * (flat.get("parallel.tensor") or 1)
    padded = -(-entries // divisor) * divisor
    return {"model.vocab_padded": (padded, f"the vocabulary is taken to have {entries:,} entries, {why}")}
