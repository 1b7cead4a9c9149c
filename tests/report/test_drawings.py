"""What is drawn: ranks, curves and bars say what the numbers behind them say."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from report_support import migrations

from translator.memory.estimate import job_of_reading
from translator.memory.sizes import Job
from translator.report import picture
from translator.report.curves import curves
from translator.report.layout import layout
from translator.report.model import Bar, Memory
from translator.report.words import amount, count, duration
from translator.schedules import curve_of


def job_with(order: str = "tp-cp-ep-dp-pp", **degrees: Any) -> Job:
    job, _ = job_of_reading(migrations()[0].case.convert().source)
    plain = {"tensor": 1, "pipeline": 1, "context": 1, "shard": 1, "replicate": 1, "chunks": 1, "split": None}
    return replace(
        job, layout=replace(job.layout, **{**plain, **degrees}), flat={**job.flat, "parallel.rank_order": order}
    )


def ranks_of(cell: str) -> list[int]:
    """The ranks of a cell: ``3``, ``0-7`` or ``0-6, every 2``."""
    span, _, step = cell.partition(", every ")
    first, _, last = span.partition("-")
    return list(range(int(first), int(last or first) + 1, int(step or 1)))


@pytest.mark.parametrize("order", ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "pp-tp-dp-cp", "dp-tp"])
@pytest.mark.parametrize(
    ("tensor", "context", "data", "pipeline"), [(2, 2, 2, 2), (1, 1, 8, 1), (8, 1, 1, 4), (4, 1, 2, 1)]
)
def test_every_rank_is_drawn_where_the_order_puts_it(
    order: str, tensor: int, context: int, data: int, pipeline: int
) -> None:
    drawn = layout(job_with(order, tensor=tensor, context=context, shard=data, pipeline=pipeline))
    degrees = {"tp": tensor, "cp": context, "dp": data, "pp": pipeline}
    axes = [axis for axis in dict.fromkeys([*order.split("-"), *degrees]) if axis in degrees]
    axes = axes if order != "dp-tp" else ["dp", "tp", "cp", "pp"]
    # product varies its last factor fastest, so that the axes go in backwards.
    numbered = enumerate(product(*(range(degrees[axis]) for axis in reversed(axes))))
    rank_at = {tuple(sorted(zip(reversed(axes), where, strict=True))): rank for rank, where in numbered}
    for stage, column in product(range(pipeline), range(data * context)):
        index, part = divmod(column, context)
        expected = [
            rank_at[tuple(sorted({"tp": at, "cp": part, "dp": index, "pp": stage}.items()))] for at in range(tensor)
        ]
        assert ranks_of(drawn.rows[stage].ranks[column]) == expected
    assert drawn.ranks == tensor * context * data * pipeline


def test_sixteen_thousand_ranks_are_drawn_small() -> None:
    drawn = layout(job_with(tensor=8, pipeline=16, shard=16, replicate=8))
    assert (drawn.ranks, len(drawn.rows), len(drawn.columns)) == (16_384, 16, 6)
    assert [row.ranks[-1] for row in drawn.rows][-1] == "16376-16383"
    assert drawn.columns == [
        "replica 0 shard 0",
        *(f"replica 0 shard {index}" for index in (1, 2, 3)),
        "",
        "replica 7 shard 15",
    ]
    assert drawn.replicas.startswith("A copy of the model spans 128 ranks, and there are 128")
    many = layout(job_with(tensor=2, pipeline=128, shard=64))
    assert [row.stage for row in many.rows] == [*range(8), -1, 127]


def test_layers_of_the_stages_add_up() -> None:
    for migration in migrations():
        job, _ = job_of_reading(migration.case.convert().source)
        drawn = layout(job)
        if all(row.stage >= 0 for row in drawn.rows):
            assert sum(row.layers for row in drawn.rows) == job.model.layers


def test_experts_are_all_held() -> None:
    job, _ = job_of_reading(next(each for each in migrations() if "mixtral" in each.case.name).case.convert().source)
    held = [experts for _, experts in layout(job).experts]
    assert sorted(rank for cell in held for rank in ranks_of(cell)) == list(
        range(job.model.moe.experts if job.model.moe else 0)
    )


def test_curves_are_those_of_the_schedules() -> None:
    done = migrations()[0].case.convert()
    found, why = curves(done.source.flat, done.back.flat, ("one", "other"))
    assert found is not None
    assert why == ""
    for series, flat in zip(found.series, (done.source.flat, done.back.flat), strict=True):
        curve = curve_of(flat)
        assert curve is not None
        assert all(rate == curve.rate(step) for step, rate in series.points)
    gaps = [abs(one - two) for (_, one), (_, two) in zip(*(series.points for series in found.series), strict=True)]
    assert max(gaps) == pytest.approx(found.largest_difference)
    lines = picture.polylines(found)
    assert all(len(line.split()) == len(found.series[0].points) for line in lines)
    places = [tuple(map(float, point.split(","))) for line in lines for point in line.split()]
    assert all(0 <= across <= picture.CURVE_WIDTH and 0 <= down <= picture.CURVE_HEIGHT for across, down in places)
    assert min(down for _, down in places) == pytest.approx(6.0)


def test_without_a_schedule_the_reason_is_told() -> None:
    done = migrations()[0].case.convert()
    found, why = curves({**done.source.flat, "optimizer.lr": None}, done.back.flat, ("one", "other"))
    assert found is None
    assert why.startswith("one leaves the learning rate")


def test_bars_are_to_one_scale() -> None:
    bar = Bar("stage 0", 4, [("parameters", 30.0), ("gradients", 10.0)], 40.0, 50.0, 0.0)
    small = Memory("card", 100, "fits", [bar], [], [])
    large = Memory("card", 100, "does not fit", [replace(bar, reserved_bytes=200.0)], [], [])
    top = picture.top_bytes([small, large])
    assert top == pytest.approx(204.0)
    [track] = picture.tracks(small, top)
    assert [part.kind for part in track.parts] == ["parameters", "gradients", picture.SLACK]
    assert [part.percent for part in track.parts] == pytest.approx([14.71, 4.9, 4.9])
    assert track.limit == pytest.approx(49.02)
    assert sum(part.percent for part in picture.tracks(large, top)[0].parts) <= 100


def test_words() -> None:
    assert [amount(number) for number in (0, 999, 1000, 5 * 2**30, 3e15)] == [
        "0 B",
        "999 B",
        "0.977 KiB",
        "5 GiB",
        "2.66 PiB",
    ]
    assert [duration(number) for number in (12.34, 0.0123, 8e-6)] == ["12.3 s", "12.3 ms", "8 µs"]
    assert [count(1, "loss", "losses"), count(2_000, "line")] == ["1 loss", "2,000 lines"]
