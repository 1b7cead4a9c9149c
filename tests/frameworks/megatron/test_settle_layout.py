"""Layers per pipeline stage. The figures are those of the real ``get_num_layers_to_build`` (core 0.18.0)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translator.frameworks.megatron.settle.layout import LayoutError, layers_per_stage, parse_layout


def split(layers: object, pipeline: object, virtual: int | None = None, **more: object) -> list[list[int]]:
    values: dict[str, Any] = {
        "num_layers": layers,
        "pipeline_model_parallel_size": pipeline,
        "virtual_pipeline_model_parallel_size": virtual,
        **more,
    }
    return layers_per_stage(values)


COUNTED = {"account_for_embedding_in_pipeline_split": True, "account_for_loss_in_pipeline_split": True}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (split(32, 1), [[32]]),
        (split(32, 4), [[8]] * 4),
        (split(32, 4, 2), [[4, 4]] * 4),
        (split(30, 4, **COUNTED), [[7], [8], [8], [7]]),
        (split(30, 4, 4, **COUNTED), [[1, 2, 2, 2], [2, 2, 2, 2], [2, 2, 2, 2], [2, 2, 2, 1]]),
        (split(31, 4, account_for_loss_in_pipeline_split=True), [[8], [8], [8], [7]]),
        (
            split(30, 4, decoder_first_pipeline_num_layers=7, decoder_last_pipeline_num_layers=7),
            [[7], [8], [8], [7]],
        ),
        (split(32, 4, 2, decoder_first_pipeline_num_layers=8), [[4, 4]] * 4),
        (split(7, 2, decoder_first_pipeline_num_layers=3, decoder_last_pipeline_num_layers=4), [[3], [4]]),
        (split(16, 2, 4, pipeline_model_parallel_layout="Et*3|(tt|)*6tL"), [[3, 2, 2, 2], [2, 2, 2, 1]]),
        (split(6, 2, None, hybrid_layer_pattern="M-M|M-*/M*/M*"), [[3], [3]]),
        (split(6, 2, 2, hybrid_layer_pattern="M|M|M-|M*"), [[1, 2], [1, 2]]),
        (split(6, 2, None, hybrid_layer_pattern="M-MM-*"), [[3], [3]]),
    ],
)
def test_splits(result: list[list[int]], expected: list[list[int]]) -> None:
    assert result == expected


@pytest.mark.parametrize(
    "result",
    [
        split(30, 4),
        split(None, 4),
        split(32, None),
        split(32, 0),
        split(32, 10**9),
        split(32, 4, 3),
        split(1, 3, **COUNTED, decoder_first_pipeline_num_layers=5),
        split(30, 4, decoder_first_pipeline_num_layers=7),
        split(16, 3, pipeline_model_parallel_layout="Et|tL"),
        split(16, 2, pipeline_model_parallel_layout="Ex|tL"),
        layers_per_stage({"num_layers": 4, "pipeline_model_parallel_size": 2}),  # virtual stages not known
        layers_per_stage({}),
    ],
)
def test_no_split(result: list[list[int]]) -> None:
    assert result == []


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("Et|tL", ["Et", "tL"]),
        ("Et*3|(tt|)*2,m|L", ["Ettt", "tt", "tt", "m", "L"]),
        ("(t|)*2", ["t", "t", ""]),
        ("E|t*2|t,t|L", ["E", "tt", "tt", "L"]),
    ],
)
def test_layouts(text: str, stages: list[str]) -> None:
    assert parse_layout(text) == stages


@pytest.mark.parametrize("text", ["Ex|L", "t*99999999999", "(t*50000|)*50000", "t" * 200_000, "E;L"])
def test_bad_or_hostile_layouts_are_refused(text: str) -> None:
    with pytest.raises(LayoutError):
        parse_layout(text)


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 4), st.booleans(), st.booleans())
def test_all_layers_are_somewhere(pipeline: int, virtual: int, chunk: int, embedding: bool, loss: bool) -> None:
    layers = pipeline * virtual * chunk - embedding - loss
    result = split(
        layers,
        pipeline,
        virtual if virtual > 1 else None,
        account_for_embedding_in_pipeline_split=embedding,
        account_for_loss_in_pipeline_split=loss,
    )
    if result:
        assert sum(map(sum, result)) == layers
        assert [len(rank) for rank in result] == [virtual] * pipeline
    else:
        assert chunk == 1  # a stage would hold less than nothing
