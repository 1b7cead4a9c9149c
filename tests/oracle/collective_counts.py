"""Calls and bytes of a step by operation and ranks: as the account of communication has them, and as they were."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from translator.communication import communication_of
from translator.memory.sizes import job_of

Counts = dict[str, Counter[str]]


def accounted(framework: str, version: str, flat: dict[str, Any], values: dict[str, Any]) -> Counts:
    """Calls and bytes of messages as the account has them."""
    found: Counts = {"calls": Counter(), "bytes": Counter()}
    for transfer in communication_of(job_of(framework, version, flat, values)):
        key = f"{transfer.operation} over {int(transfer.group.ranks)}"
        calls = float(np.sum(transfer.calls))
        found["calls"][key] += round(calls)
        found["bytes"][key] += round(calls * float(np.max(transfer.message_bytes)))
    return found


def observed(answer: dict[str, Any]) -> Counts:
    """The same of what the real package ran through; groups of one rank send nothing."""
    found: Counts = {"calls": Counter(), "bytes": Counter()}
    for call in answer["calls"]:
        if call["ranks"] > 1:
            key = f"{call['operation']} over {call['ranks']}"
            found["calls"][key] += 1
            found["bytes"][key] += call["bytes"]
    return found
