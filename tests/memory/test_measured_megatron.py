"""Memory under Megatron-LM against every measured row that can be modelled; ``pytest -s`` prints the table."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import measured
import numpy as np
from measured import GIB, Row

from translator.errors import TtxError
from translator.memory.estimate import Estimate, estimate_reading

# The smallest steady state and peak that say more about a model than about fixed overhead.
STEADY_BYTES, PEAK_GIB = GIB, 4.0


def why_not(row: Row, found: Estimate) -> str | None:
    """Why a row cannot be modelled, if it cannot."""
    if row["model"].get("layers") not in (None, found.job.model.layers):
        return "the stored configuration is not the one that was measured: its layers differ"
    if "not in a recipe" in str(row.get("gpus_note")) and row["zero"] != "ddp":
        return "the number of cards is not known"
    return None


def line(row: Row, ours_gib: float, theirs_gib: float, what: str) -> str:
    name = str(row.get("config") or row["source"]).removesuffix("/model_config.yaml")[-60:]
    return f"{row['id']:>4} {what:<6} {ours_gib:8.2f} {theirs_gib:8.2f} {ours_gib / theirs_gib - 1:+7.1%}  {name}"


def test_rows_of_megatrons_own_tests(corpus: Path) -> None:
    steady, peaks, left_out = [], [], []
    for row in measured.megatron_ci():
        large = row["reported_gib"] >= PEAK_GIB
        if not large and (row.get("steady_allocated_bytes") or 0) < STEADY_BYTES:
            continue
        try:
            found = estimate_reading(measured.reading_of_ci(row, corpus))
        except TtxError as error:
            left_out.append(f"{row['id']:>4} {error}")
            continue
        reason = why_not(row, found)
        if reason is not None:
            left_out.append(f"{row['id']:>4} {reason}")
            continue
        # The last rank wrote the record: the last stage.
        if large:
            ours = found.totals.allocated.expected[0, -1] / GIB
            peaks.append(abs(ours / row["reported_gib"] - 1))
            print(line(row, ours, row["reported_gib"], "peak"))
        if (row.get("steady_allocated_bytes") or 0) >= STEADY_BYTES:
            ours = float(np.asarray(sum(term.amount for term in found.account.state))[0, -1]) / GIB
            theirs = row["steady_allocated_bytes"] / GIB
            steady.append(abs(ours / theirs - 1))
            print(line(row, ours, theirs, "steady"))
    print("left out:", *left_out, sep="\n")
    assert len(left_out) <= 4, left_out
    assert len(steady) >= 12
    assert median(steady) <= 0.02
    assert sorted(steady)[int(0.9 * len(steady))] <= 0.06
    assert len(peaks) >= 11
    assert median(peaks) <= 0.04
    assert max(peaks) <= 0.12


def test_rows_of_simumax() -> None:
    errors = []
    for row in measured.simumax():
        found = estimate_reading(measured.reading_of_simumax(row))
        ours = found.totals.allocated.expected.max() / GIB
        errors.append(abs(ours / row["reported_gib"] - 1))
        print(line(row, ours, row["reported_gib"], "peak"))
    assert len(errors) >= 30
    assert median(errors) <= 0.02
    assert max(errors) <= 0.05
