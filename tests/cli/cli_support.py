"""What the tests of the command share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "fixtures" / "examples"
SCRIPT = EXAMPLES / "llama3-8b-megatron" / "train.sh"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Ttx = Callable[..., Result]

TOML = """\
[model]
name = "llama3"
flavor = "8B"

[training]
local_batch_size = 2
global_batch_size = 64
seq_len = 4096
steps = 100

[parallelism]
tensor_parallel_degree = 2
"""
