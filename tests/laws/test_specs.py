"""Whatever a plausible spec says is in the result, or the ledger says that it is not."""

from __future__ import annotations

import os

import pytest
from cases import TARGETS, spoken
from hypothesis import HealthCheck, given, settings
from specs import readings

from translator import api
from translator.compare import equal, lost
from translator.findings import Level
from translator.ledger import summary
from translator.reading import Reading
from translator.spec import Touches, leaves

# TTX_EXAMPLES raises the number for a long hunt; by default a run repeats itself.
EXAMPLES = int(os.environ.get("TTX_EXAMPLES", "60"))
steady = settings(
    max_examples=EXAMPLES,
    derandomize="TTX_EXAMPLES" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
# What a result may be refused for, by code, where a version has no way to say what is wanted and the ledger says so:
# 0.12.0 places layers evenly only.
REFUSALS = {"S102": ("megatron@0.12.0",)}


@pytest.mark.parametrize("target", TARGETS)
@steady
@given(reading=readings())
def test_nothing_is_lost_unsaid_and_nothing_refused(target: str, reading: Reading) -> None:
    found = api.convert(reading, target)
    assert not [finding.message for finding in found.findings if finding.code == "L290"]
    unsaid = {
        leaf
        for leaf in lost(reading.flat, found.back.flat)
        if leaf not in found.sink.shortfalls and leaf not in found.sink.needs
    }
    assert not {leaf for leaf in unsaid if leaves()[leaf].touches is not Touches.NOTHING}
    stated = {leaf for leaf, value in reading.flat.items() if value is not None}
    lines = [line.option for line in found.ledger]
    assert sorted(lines) == sorted(stated | (set(found.sink.needs) & set(lines)))
    assert sum(summary(found.ledger).values()) == len(lines)
    for line in found.ledger:
        assert line.note or not line.entry.is_loss, f"{line.option} is {line.entry} without a reason"
    # The framework takes the result.
    refused = [finding for finding in found.back.findings if finding.level is Level.ERROR]
    assert not [f.message for f in refused if target not in REFUSALS.get(f.code, ())]
    assert {finding.message for finding in refused} <= {finding.message for finding in found.findings}


@pytest.mark.parametrize("target", TARGETS)
@steady
@given(reading=readings())
def test_a_result_converts_to_itself(target: str, reading: Reading) -> None:
    first = api.convert(reading, target)
    again = api.convert(first.back, target)
    assert not [(line.option, line.note) for line in again.ledger if line.entry.is_loss]
    changed = {
        leaf: (value, again.back.flat[leaf])
        for leaf, value in first.back.flat.items()
        if not equal(value, again.back.flat[leaf])
    }
    assert not changed
    # What was written for a default that versions disagree about need not be said twice, all else must.
    for address, text in first.rendered.stated.items():
        assert again.rendered.stated.get(address) == text
    assert spoken(api.convert(again.back, target).rendered.files) == spoken(again.rendered.files)
