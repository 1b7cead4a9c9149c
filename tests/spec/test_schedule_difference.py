"""The largest difference of two learning-rate curves is found without looking at every step."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from translator.schedules import Curve, largest_difference

PEAK = 3e-4


@st.composite
def curves(draw: st.DrawFn, total: int) -> Curve:
    warmup = draw(st.floats(0, total / 3))
    start = draw(st.floats(warmup, total - 1))
    return Curve(
        peak=PEAK,
        total=total,
        warmup=warmup,
        warmup_start=draw(st.sampled_from([0.0, 1e-5])),
        warmup_offset=draw(st.sampled_from([0, 1])),
        warmup_shape="linear",
        decay=draw(st.sampled_from(["linear", "cosine", "sqrt", "inverse_sqrt", None])),
        decay_start=start,
        decay_length=(total - start) * draw(st.sampled_from([0.5, 1.0, 1.2])),
        floor=draw(st.sampled_from([0.0, 3e-5])),
    )


@given(st.data(), st.sampled_from([200, 300, 2000, 25_000]))
@settings(max_examples=100)
def test_it_is_the_largest_of_all_steps(data: st.DataObject, total: int) -> None:
    left, right = data.draw(curves(total)), data.draw(curves(total))
    difference, step = largest_difference(left, right, total)
    every = [abs(one - two) for one, two in zip(left.rates(range(total)), right.rates(range(total)), strict=True)]
    assert difference == every[step]
    assert max(every) - difference <= 1e-4 * PEAK
