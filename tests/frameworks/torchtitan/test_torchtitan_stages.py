"""Pipeline stages: the split as upstream makes it, and the options that reproduce a split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translator.frameworks.torchtitan import stages


def schedule(name: str) -> stages.Schedule:
    found = stages.find_schedule(name)
    assert found is not None
    return found


# From the real generate_llm_fqn_per_model_part of 0.2.2.
@pytest.mark.parametrize(
    ("layers", "count", "first", "last", "expected"),
    [
        (32, 2, 1, 1, [16, 16]),
        (32, 4, 1, 1, [8, 9, 8, 7]),
        (32, 4, 0, 0, [8, 8, 8, 8]),
        (126, 8, 1, 1, [15, 16, 16, 16, 16, 16, 16, 15]),
        (48, 4, 1, 1, [12, 13, 12, 11]),
        (6, 1, 1, 1, [6]),
        (3, 2, 2, 2, [2, 1]),
        (5, 7, 1, 1, [0, 1, 1, 1, 1, 1, 0]),
    ],
)
def test_split(layers: int, count: int, first: int, last: int, expected: list[int]) -> None:
    assert stages.layers_per_stage(layers, count, first, last) == expected
    parts = stages.split(layers, count, first, last)
    assert stages.count_layers(parts) == expected
    assert parts[0][0] == "tok_embeddings"
    assert parts[-1][-2:] == ["norm", "output"]


@pytest.mark.parametrize(("layers", "count", "first", "last"), [(4, 0, 1, 1), (4, 7, 1, 1), (8, 4, 4, 1), (8, 4, 0, 4)])
def test_refused_splits_name_the_upstream_line(layers: int, count: int, first: int, last: int) -> None:
    with pytest.raises(stages.SplitError) as refused:
        stages.layers_per_stage(layers, count, first, last)
    assert refused.value.source.startswith("distributed/pipeline_parallel.py:")


def test_schedules_are_found_whatever_their_case() -> None:
    assert schedule("INTERLEAVED1f1b").name == "Interleaved1F1B"
    assert stages.find_schedule("zb1") is None


def test_stages_of_ranks() -> None:
    looped, bent = schedule("Interleaved1F1B"), schedule("ZBVZeroBubble")
    assert [stages.stages_of_rank(rank, 2, 6, looped) for rank in range(2)] == [(0, 2, 4), (1, 3, 5)]
    assert [stages.stages_of_rank(rank, 4, 8, bent) for rank in range(4)] == [(0, 7), (1, 6), (2, 5), (3, 4)]


def test_number_of_stages() -> None:
    assert stages.stage_count(32, 4, schedule("1F1B")) == 4
    assert stages.stage_count(32, 4, schedule("Interleaved1F1B")) == 8
    assert stages.stage_count(30, 4, schedule("Interleaved1F1B"), layers_each=2) == 16
    for name, each in (("1F1B", 2), ("Interleaved1F1B", 9), ("1F1B", 12)):
        with pytest.raises(stages.SplitError):
            stages.stage_count(32, 4, schedule(name), layers_each=each)


def test_an_even_split_needs_one_weight() -> None:
    # 33 effective layers: 9, 8, 8, 8, of which the embedding is one.
    assert stages.reproduce([8, 8, 8, 8], schedule("1F1B"), 4) == {stages.LAST_LESS: 0}
    assert stages.reproduce([8, 9, 8, 7], schedule("1F1B"), 4) == {}


def test_a_split_that_no_weights_give_is_written_out() -> None:
    options = stages.reproduce([3, 1, 3], schedule("1F1B"), 3)
    lists = options.pop(stages.MODULE_NAMES)
    assert options == {}
    assert lists == [
        ["tok_embeddings", "layers.0", "layers.1", "layers.2"],
        ["layers.3"],
        ["layers.4", "layers.5", "layers.6", "norm", "output"],
    ]


def test_more_than_two_stages_per_rank_are_asked_for() -> None:
    options = stages.reproduce([4] * 8, schedule("Interleaved1F1B"), 2)
    assert options == {stages.FIRST_LESS: 0, stages.LAST_LESS: 0, stages.LAYERS_PER_STAGE: 4}


def test_a_schedule_that_cannot_hold_the_stages_is_refused() -> None:
    with pytest.raises(stages.SplitError):
        stages.reproduce([4] * 6, schedule("ZBVZeroBubble"), 2)
    with pytest.raises(stages.SplitError):
        stages.reproduce([4] * 3, schedule("1F1B"), 2)


@st.composite
def splits(draw: st.DrawFn) -> tuple[list[int], stages.Schedule, int]:
    ranks = draw(st.integers(2, 6))
    found = draw(st.sampled_from([schedule("1F1B"), schedule("Interleaved1F1B"), schedule("DualPipeV")]))
    per_rank = 1 if not found.multi else 2 if found.v_shape else draw(st.integers(2, 4))
    counts = draw(st.lists(st.integers(0, 6), min_size=ranks * per_rank, max_size=ranks * per_rank))
    if draw(st.booleans()):
        counts = [draw(st.integers(0, 6)), *[counts[0]] * (len(counts) - 2), draw(st.integers(0, 6))]
    return counts, found, ranks


@given(splits())
def test_options_give_the_split_that_was_asked_for(case: tuple[list[int], stages.Schedule, int]) -> None:
    counts, found, ranks = case
    options = stages.reproduce(counts, found, ranks)
    first, last = options.get(stages.FIRST_LESS, 1), options.get(stages.LAST_LESS, 1)
    each, lists = options.get(stages.LAYERS_PER_STAGE), options.get(stages.MODULE_NAMES)
    if isinstance(lists, list):
        assert len(options) == 1
        assert stages.count_layers(lists) == counts
        return
    assert isinstance(first, int)
    assert isinstance(last, int)
    assert each is None or isinstance(each, int)
    count = stages.stage_count(sum(counts), ranks, found, layers_each=each, first_less=first, last_less=last)
    assert stages.layers_per_stage(sum(counts), count, first, last) == counts


def test_split_points_of_0_1_0() -> None:
    points = stages.split_points(32, 4, schedule("1F1B"))
    assert points == ["layers.8", "layers.17", "layers.25"]
    assert stages.layers_between(points, 32) == [8, 9, 8, 7]
    assert stages.layers_between(["layers.5", "layers.4"], 8) is None
    assert stages.layers_between(["norm"], 8) is None
    with pytest.raises(stages.SplitError):
        stages.split_points(32, 4, schedule("1F1B"), 8)
    assert stages.reproduce_points([8, 9, 8, 7], schedule("1F1B"), 4) == {}
    assert stages.reproduce_points([8, 8, 8, 8], schedule("1F1B"), 4) == {
        stages.SPLIT_POINTS: ["layers.8", "layers.16", "layers.24"]
    }
    assert stages.reproduce_points([3, 4, 4, 4, 4, 4, 4, 3], schedule("Interleaved1F1B"), 2) == {
        stages.LAYERS_PER_STAGE: 4
    }
