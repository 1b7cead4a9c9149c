"""Codes of what is said about memory: code -> (title, documentation)."""

from __future__ import annotations

CODES: dict[str, tuple[str, str]] = {
    "M400": (
        "the run does not fit on the card",
        "The expected peak of at least one pipeline stage, with reserved memory and what lies outside the allocator, "
        "is above what the card has.\n"
        "Why: the run ends with an out-of-memory error, often only at the second or third step, when the optimizer's "
        "state is there.\n"
        "Example: a 70B model in bf16 with its Adam state on eight cards of 80 GB.\n"
        "Fix: `ttx memory SRC` shows every stage, what dominates, and the smallest changes that make it fit.\n"
        "Source: the terms name theirs; translator/frameworks/*/memory.",
    ),
    "M401": (
        "the run may not fit on the card",
        "The expected peak fits, the high estimate does not: fragmentation, uneven experts or workspaces may take the "
        "rest.\n"
        "Why: such runs end with an out-of-memory error at some steps and not at others.\n"
        "Example: an expected peak of 77 GiB on a card with 79.\n"
        "Fix: leave some room, or set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which fragments less.\n"
        "Source: the terms name theirs; translator/frameworks/*/memory.",
    ),
    "M402": (
        "memory cannot be estimated",
        "The configuration does not say enough for an estimate of its memory.\n"
        "Why: without the size of the model and the number of ranks nothing can be said about a card.\n"
        "Example: a script that leaves the vocabulary to its tokenizer.\n"
        "Fix: the message names what is missing and how it is given.\n"
        "Source: translator/memory/sizes.py.",
    ),
}
