"""Memory under torchtitan against published peaks; ``pytest -s`` prints the table row by row.

The rows are reserved peaks of the worst rank. The tables of December 2024 ran commit 9dec370, before the first release:
its loss was never compiled (``train.py:131`` there), and a pipeline cut a local batch into as many micro batches as it
had ranks (``parallelisms/pipelining_utils.py:80``). 0.1.0 is the release closest to it.
"""

from __future__ import annotations

from statistics import median

import measured
from measured import GIB, Row

from translator import api
from translator.memory.estimate import Estimate, estimate, estimate_reading
from translator.reading import ReadOptions
from translator.source import Source

VOCAB = 128256
FLAVORS = {"llama3.1-8b": "8B", "llama3.1-70b": "70B", "llama3.1-405b": "405B"}
# Rows 49 to 54 and 60 of the table are left out of the measured file; they stand in the same publication
# (pytorch/torchtitan@b5bcd76:benchmarks/llama3_h100_202412_torchtitan.md, tables 2, 4 and 6).
PUBLISHED = [
    ("llama3.1-8b", 8, 1, 8, 1, 1, 1, 32768, 83.9, ""),
    ("llama3.1-8b", 8, 1, 2, 4, 1, 1, 131072, 84.0, ""),
    ("llama3.1-8b", 8, 1, 1, 8, 1, 1, 262144, 84.5, ""),
    ("llama3.1-70b", 256, 8, 32, 1, 1, 16, 8192, 71.9, ""),
    ("llama3.1-70b", 256, 8, 32, 1, 1, 16, 8192, 67.6, "AsyncTP"),
    ("llama3.1-405b", 512, 8, 1, 8, 8, 8, 262144, 84.9, "1F1B AsyncTP"),
]
# What cannot be told apart from what is published, by the text of a row.
UNKNOWN = (
    "405B rows differ by up to 10 % where all sizes of a rank are the same (82.5 against 75.3 GiB in tables 5 and 6, "
    "84.9 against 77.1 GiB along table 6); the settings that made the difference are not published",
)


def published() -> list[Row]:
    """Rows of the publication that the measured file does not hold, in its form."""
    keys = ("name", "gpus", "tp", "dp", "cp", "pp", "micro_batch", "seq", "reported_gib", "notes")
    found: list[Row] = []
    for index, values in enumerate(PUBLISHED):
        row = dict(zip(keys, values, strict=True))
        row |= {"id": f"p{index}", "framework": "torchtitan 2024-12", "dtype": "fp8 linear", "recompute": "full"}
        found.append({**row, "notes": f"compile {row['notes']}", "model": {"name": row["name"]}})
    return found


def measured_rows() -> list[Row]:
    """torchtitan's rows of the measured file."""
    return [row for row in measured.rows() if "pytorch/torchtitan" in row["source"]]


def estimated(row: Row) -> Estimate:
    """The estimate of a row, in the release closest to what it ran."""
    old = row["framework"] == "torchtitan 2024-12"
    version = "0.2.2" if row["framework"] == "torchtitan 2025-10" else "0.1.0"
    source = Source("row.toml", configuration(row, version, old=old))
    reading = api.read(source, framework=f"torchtitan@{version}", options=ReadOptions(world_size=row["gpus"]))
    reading.flat["model.vocab_padded"] = VOCAB
    if "with chunked" in row["notes"]:
        reading.flat["loss.chunks"] = 8
    if "flex" in row["notes"]:
        reading.flat["model.attention_kernel"] = "flex"
    if old:
        assert reading.native is not None
        reading.native.values["compile.components"] = ["model"]
    return estimate_reading(reading)


def configuration(row: Row, version: str, *, old: bool) -> str:
    """A torchtitan configuration of a row, as TOML."""
    mode = "full" if row["recompute"] == "full" else "selective"
    compiled = str("compile" in row["notes"]).lower()
    cut = row["micro_batch"] // row["pp"] if old and row["pp"] > 1 else 1
    converter = "float8" if version == "0.1.0" else "quantize.linear.float8"
    schedule = "Interleaved1F1B" if "Interleaved" in row["notes"] else "1F1B"
    here = f"compile = {compiled}" if version == "0.1.0" else ""
    return f"""
[model]
name = "llama3"
flavor = "{FLAVORS[row["model"]["name"]]}"
converters = {[converter] if "fp8" in row["dtype"] else []}
[training]
local_batch_size = {row["micro_batch"]}
seq_len = {row["seq"]}
steps = 10
{here}
[parallelism]
data_parallel_shard_degree = {row["dp"]}
tensor_parallel_degree = {row["tp"]}
context_parallel_degree = {row["cp"]}
pipeline_parallel_degree = {row["pp"]}
pipeline_parallel_schedule = "{schedule}"
pipeline_parallel_microbatch_size = {cut}
[activation_checkpoint]
mode = "{mode}"
selective_ac_option = "op"
{f"[compile]{chr(10)}enable = {compiled}" if version != "0.1.0" else ""}
"""


def against(rows: list[Row]) -> tuple[list[float], int]:
    """Errors of the expected peaks, and how many measured ones lie between low and high; prints a line per row."""
    errors, covered = [], 0
    for row in rows:
        found = estimated(row)
        totals, theirs = found.totals, row["reported_gib"]
        worst = int(totals.reserved.expected[0].argmax())
        reserved = totals.reserved
        low, ours, high = (float(side[0, worst]) / GIB for side in (reserved.low, reserved.expected, reserved.high))
        errors.append(abs(ours / theirs - 1))
        covered += low <= theirs <= high
        phase = totals.names[int(totals.phase[0, worst])]
        span = f"[{low:6.2f} {high:6.2f}]"
        print(
            f"{row['id']:>4} {ours:7.2f} {span} {theirs:7.2f} {ours / theirs - 1:+7.1%}  {phase}  {row['notes'][:40]}"
        )
    return errors, covered


def test_reserved_peaks() -> None:
    """Every row is modelled; none is left out."""
    rows = measured_rows()
    errors, covered = against(rows)
    print(*UNKNOWN, sep="\n")
    assert len(errors) >= 15
    assert median(errors) <= 0.07
    assert max(errors) <= 0.15
    assert covered >= 0.9 * len(rows)


def test_rows_that_stand_in_the_publication_alone() -> None:
    rows = published()
    errors, covered = against(rows)
    assert median(errors) <= 0.07
    assert max(errors) <= 0.15
    assert covered >= 0.8 * len(rows)


def test_the_first_step_reserves_what_states_and_gradients_need() -> None:
    """A row tells 33.21 GiB after the first step: shards, moments, gradients, and the pool that gathers."""
    row = next(row for row in measured_rows() if "step 1 = 33.21" in row["notes"])
    found = estimated(row)
    state = float(sum(term.amount for term in found.account.state)[0, 0])
    step = float(sum(term.amount for term in found.account.phases["optimizer step"])[0, 0])
    gather = float(sum(term.amount for term in found.account.phases["start of the forward pass"])[0, 0])
    assert abs((state + step + gather) / GIB / 33.21 - 1) <= 0.05
    assert estimate(found.job).totals.reserved.expected[0, 0] > (state + step + gather)
