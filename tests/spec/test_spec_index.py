"""The list of leaves says what the models say, and never takes a value that the models refuse."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from translator.compare import equal
from translator.resources import schema_path
from translator.spec import Spec, flatten, leaves, nest
from translator.spec.whole import document

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(sorted({choice for leaf in leaves().values() for choice in leaf.choices})),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(SCALARS, SCALARS, max_size=2))


def test_the_shipped_list_is_the_models() -> None:
    command = "python -m translator.spec.whole -o schemas/spec.json"
    assert schema_path("spec.json").read_text(encoding="utf-8") == document(), f"renew it: {command}"


@given(st.sampled_from(sorted(leaves())), VALUES)
def test_a_value_that_is_surely_taken_is_taken_unchanged(path: str, value: Any) -> None:
    if value is not None and leaves()[path].surely_takes(value):
        assert equal(flatten(Spec.model_validate(nest({path: value})))[path], value)


@pytest.mark.parametrize("path", sorted(leaves()))
def test_a_usual_value_needs_no_model(path: str) -> None:
    leaf = leaves()[path]
    usual: dict[str, list[Any]] = {
        "int": [1],
        "float": [0.5, 1],
        "bool": [True, False],
        "str": ["word", "Wört"],
        "choice": list(leaf.choices),
        "dict[str, str]": [{"A": "1"}],
        "list[int]": [[], [1, 2]],
        "list[float]": [[], [0.5, 2]],
        "list[str]": [[], ["a"]],
        "list[bool]": [[], [True]],
    }
    for value in usual[leaf.kind]:
        assert leaf.surely_takes(value)
        Spec.model_validate(nest({path: value}))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("batch.micro_batch", 0),
        ("optimizer.lr", float("nan")),
        ("model.hidden_dropout", 1.5),
        ("precision.compute", "int8"),
        ("model.layers", True),
        ("model.name", "\ud800"),
        ("launch.environment", {"A": 1}),
        ("batch.ramp_up", [1.5]),
    ],
)
def test_an_impossible_value_is_left_to_the_models(path: str, value: Any) -> None:
    assert not leaves()[path].surely_takes(value)


def test_the_models_refuse_what_is_out_of_bounds() -> None:
    with pytest.raises(ValidationError):
        Spec.model_validate({"batch": {"micro_batch": 0}})


def test_knowing_the_leaves_loads_no_models() -> None:
    code = "import sys; from translator.spec import leaves; leaves(); sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
