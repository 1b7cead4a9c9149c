"""Options without a neutral meaning: each owned once, explained, and renames that really are no more than renames."""

from __future__ import annotations

from collections import Counter

import pytest

from translator.catalogue import load, versions
from translator.frameworks.megatron.table import MEANING_ROWS, table
from translator.frameworks.megatron.table.own import OWN_ROWS
from translator.frameworks.megatron.table.renames import RENAMED
from translator.ledger import Entry
from translator.spec.touches import Touches

VERSIONS = versions("megatron")
OPTIONS = Counter(option for row in OWN_ROWS for option in row.options)
ROW_OF = {option: row for row in OWN_ROWS for option in row.options}


def test_no_option_stands_twice() -> None:
    assert [option for option, count in OPTIONS.items() if count > 1] == []


def test_every_option_exists_in_some_version() -> None:
    known = {address for version in VERSIONS for address in load("megatron", version).addresses()}
    assert sorted(OPTIONS.keys() - known) == []


def test_every_row_is_explained_and_judged() -> None:
    for row in OWN_ROWS:
        assert row.options
        assert row.note.strip(), row.options
        assert not row.note.endswith("."), row.note
        assert row.entry in (Entry.IRRELEVANT, Entry.UNSUPPORTED, Entry.ADAPTED)
        if row.entry is Entry.UNSUPPORTED:
            assert row.touches in (Touches.TRAINING, Touches.MEMORY, Touches.OPERATION), row.options


def test_machinery_never_claims_to_touch_training() -> None:
    wrong = [row.options for row in OWN_ROWS if row.entry is Entry.IRRELEVANT and row.touches is Touches.TRAINING]
    assert wrong == []


@pytest.mark.parametrize("option", ["use_mup", "qk_clip", "fp8_margin", "spec", "moe_latent_size", "fim_data"])
def test_what_changes_training_is_a_loss(option: str) -> None:
    assert ROW_OF[option].entry is Entry.UNSUPPORTED
    assert ROW_OF[option].touches is Touches.TRAINING


@pytest.mark.parametrize(
    "option", ["bias_gelu_fusion", "log_throughput", "enable_one_logger", "inference_max_requests"]
)
def test_machinery_is_no_loss(option: str) -> None:
    assert ROW_OF[option].entry is Entry.IRRELEVANT


@pytest.mark.parametrize(("new", "old"), RENAMED.items())
def test_renames_keep_kind_arity_and_polarity(new: str, old: str) -> None:
    """No version has both names, the old one comes first, and the last old and first new entry are alike."""
    with_old = [version for version in VERSIONS if old in load("megatron", version)]
    with_new = [version for version in VERSIONS if new in load("megatron", version)]
    assert with_old
    assert with_new
    assert VERSIONS.index(with_old[-1]) + 1 == VERSIONS.index(with_new[0])
    before = load("megatron", with_old[-1]).first(old)
    after = load("megatron", with_new[0]).first(new)
    assert (before.action, before.kind, before.arity, before.default) == (
        after.action,
        after.kind,
        after.arity,
        after.default,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_option_of_a_version_has_exactly_one_row(version: str) -> None:
    known = load("megatron", version).addresses()
    names = {new: old for new, old in RENAMED.items() if new not in known and old in known}
    owned = Counter(names.get(option, option) for row in (*MEANING_ROWS, *OWN_ROWS) for option in row.options)
    assert {address: owned[address] for address in known if owned[address] != 1} == {}
    assert set(known) <= table(version).row_of_option.keys()
