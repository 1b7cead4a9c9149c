"""The scale of the gradients under a pipeline (D304), asked of the real torchtitan's own schedule."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from environments import environment

from translator import api
from translator.differences.registry import stances_of
from translator.source import Source
from translator.subject import Subject

pytestmark = pytest.mark.oracle
CONFIGURATION = """
[model]
name = "llama3"
flavor = "debugmodel"
[training]
local_batch_size = 4
seq_len = 64
steps = 10
[parallelism]
pipeline_parallel_degree = 2
"""


@pytest.mark.parametrize(
    ("version", "module", "kind"), [("0.1.0", "pipeline", "mean"), ("0.2.2", "pipeline_parallel", "sum")]
)
def test_gradients_under_a_pipeline(tmp_path: Path, version: str, module: str, kind: str) -> None:
    real = environment(f"torchtitan-{version}")
    if reason := real.missing():
        if os.environ.get("TTX_ORACLE_REQUIRED") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    found = real.run("torchtitan_pipeline_gradients.py", [module, str(tmp_path / "rendezvous")])
    factor = {"mean": 1.0, "sum": float(found["tokens"])}[kind]
    assert found["ratio"] == pytest.approx(factor, rel=1e-4)
    subject = Subject(api.read(Source("train.toml", CONFIGURATION), framework=f"torchtitan@{version}"))
    stance = stances_of("torchtitan")["D304"](subject)
    assert stance is not None
    assert stance.kind == kind
