"""Configurations of other frameworks, to DeepSpeed and back again: what differs then, one of the ledgers says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from translator import api
from translator.compare import equal
from translator.conversion import Conversion
from translator.ledger import Entry, LedgerLine
from translator.reading import Reading, ReadOptions
from translator.schedules import curve_of, largest_difference
from translator.source import Source
from translator.spec import leaves
from translator.spec.touches import Touches

CASES = (
    "custom-3b-megatron",
    "deepseek-v3-megatron",
    "gpt3-175b-megatron",
    "llama2-13b-megatron",
    "llama3-1b-hsdp-megatron",
    "llama3-70b-megatron",
    "llama3-8b-fsdp-megatron",
    "llama3-8b-megatron",
    "mixtral-8x7b-megatron",
    "qwen3-30b-a3b-megatron",
    "deepseek-v3-torchtitan",
    "llama3-405b-torchtitan",
    "llama3-8b-torchtitan",
    "qwen3-32b-torchtitan",
)
HARMLESS = (Touches.NOTHING, Touches.OPERATION)
SAID = (Entry.APPROXIMATED, Entry.UNSUPPORTED, Entry.NEEDS_INPUT)


def there_and_back(folder: Path) -> tuple[Reading, Conversion, Conversion]:
    case = yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8"))
    keys = ("variables", "positional", "world_size", "launch")
    options = ReadOptions(**{key: case[key] for key in keys if key in case})
    reading = api.read(str(folder / case["source"]), framework=case["framework"], options=options)
    there = api.convert(reading, "deepspeed@0.19.2", nearest=True)
    files = there.rendered.files
    bundle = Source("ds_config.json", files["ds_config.json"], siblings=files)
    back = api.convert(api.read(bundle, framework="deepspeed@0.19.2"), case["framework"])
    return reading, there, back


def admitted(done: Conversion) -> set[str]:
    """The leaves that a ledger says are not what they were, or do nothing in this configuration."""
    found: set[str] = set()
    for line in done.ledger:
        if line.entry in SAID or (line.entry is Entry.IRRELEVANT and line.touches in HARMLESS):
            found |= set(line.fields)
    return found


def same_in_another_form(
    leaf: str, left: Mapping[str, Any], right: Mapping[str, Any], ledger: list[LedgerLine]
) -> bool:
    """Whether leaves that differ mean the same together: checked by what they amount to."""
    if leaf.startswith("schedule."):
        before, after = curve_of(left), curve_of(right)
        if before is None or after is None or before.total != after.total:
            return False
        return largest_difference(before, after, before.total)[0] <= 1e-9 * before.peak
    if leaf == "batch.accumulation":  # it follows from the ranks, whose layout the ledger tells of
        sizes = [flat["batch.micro_batch"] * flat[leaf] * flat["parallel.data.degree"] for flat in (left, right)]
        return bool(sizes[0] == sizes[1] == left["batch.global_batch"])
    if leaf == "model.vocab_divisor":  # the rows of the embedding are a leaf of their own
        return left["model.vocab_padded"] is not None and left["model.vocab_padded"] == right["model.vocab_padded"]
    if leaf == "launch.environment":
        told = " ".join(line.note for line in ledger if leaf in line.fields)
        return all(name in told for name in left[leaf].keys() - (right[leaf] or {}).keys())
    return False


def unsaid(reading: Reading, there: Conversion, back: Conversion) -> Iterator[str]:
    """Leaves that a source states, and that are another thing after both ways, without a word about it."""
    said = admitted(there) | admitted(back)
    for leaf, value in reading.flat.items():
        found = back.back.flat.get(leaf)
        if value is None or equal(value, found) or leaves()[leaf].touches is Touches.NOTHING:
            continue
        if leaf not in said and not same_in_another_form(leaf, reading.flat, back.back.flat, there.ledger):
            yield f"{leaf}: {value!r} became {found!r}"


@pytest.mark.parametrize("name", CASES)
def test_only_what_a_ledger_says_is_lost(name: str, examples: Path) -> None:
    assert list(unsaid(*there_and_back(examples / name))) == []


def test_a_loss_that_no_ledger_says_is_found(examples: Path) -> None:
    reading, there, back = there_and_back(examples / "llama3-8b-megatron")
    back.back.flat["model.layers"] = 7
    back.back.flat["optimizer.beta2"] = 0.5
    back.back.flat["schedule.min_lr"] = 1e-4
    found = {item.split(":")[0] for item in unsaid(reading, there, back)}
    assert found == {"model.layers", "optimizer.beta2", "schedule.min_lr"}
