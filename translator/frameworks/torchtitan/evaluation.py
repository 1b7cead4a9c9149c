"""How long an evaluation is: torchtitan counts batches of a rank, the spec counts micro batches.

A batch of validation is ``validation.local_batch_size`` sequences on every data-parallel rank
(``components/validate.py:170-183`` at 0.2.2); a rank of 0.3.0 takes as many as in training.
"""

from __future__ import annotations

import math
from typing import Any

from translator.ledger import Entry
from translator.mapping.views import Sink, SpecView

LEAF = "logging.eval_steps"


def read(steps: Any, batch: Any, micro: Any) -> int | None:
    """The leaf for ``steps`` batches of ``batch`` sequences each, where a micro batch has ``micro``."""
    if not isinstance(steps, int) or steps < 0 or not isinstance(batch, int) or not isinstance(micro, int) or micro < 1:
        return steps if isinstance(steps, int) else None
    return math.ceil(steps * batch / micro)


def write(spec: SpecView, sink: Sink, address: str) -> None:
    """State how many batches a rank evaluates, each as large as in training."""
    passes, micro = spec(LEAF), spec("batch.micro_batch")
    batch = sink.get("training.local_batch_size")
    if passes is None:
        if spec("batch.global_batch") is not None and spec("parallel.data.degree") is None:
            sink.need(LEAF, "how many batches of a rank that is depends on the ranks; give --world-size N")
        return
    if passes >= 0 and micro and batch is None:
        sink.need(LEAF, "how many batches of a rank that is depends on training.local_batch_size, which is not known")
        return
    if passes < 0 or not micro or batch <= micro:
        sink.put(address, passes)
        return
    steps = math.ceil(passes * micro / batch)
    sink.put(address, steps)
    if steps * batch != passes * micro:
        sink.short(LEAF, Entry.APPROXIMATED, f"whole batches of {batch} sequences per rank; a few more are evaluated")
