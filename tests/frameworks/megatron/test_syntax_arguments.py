"""The argument parser: what each form of an option means, and what is said where argparse would stop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from translator.catalogue import load, versions
from translator.findings import Finding, Level, Place
from translator.frameworks.megatron.arguments import is_negative_number, parse_arguments
from translator.frameworks.megatron.converters import evaluate_pattern
from translator.native import Given, Missing
from translator.shell import Unknown, Word

PLACE = Place("script.sh", 3, 5)


def word(text: str, *open_names: str) -> Word:
    unknowns = tuple(Unknown(f"${name}", name, f"{name} comes from the scheduler", PLACE) for name in open_names)
    return Word(text, PLACE, unknowns)


def parse(*words: str | Word, version: str = "0.18.0") -> tuple[dict[str, Any], list[Given], list[Finding]]:
    parsed = [item if isinstance(item, Word) else word(item) for item in words]
    given, unknown, findings = parse_arguments(parsed, load("megatron", version))
    return {address: option.value for address, option in given.items()}, unknown, findings


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


@pytest.mark.parametrize(
    ("words", "address", "value"),
    [
        (["--num-layers", "32"], "num_layers", 32),
        (["--num-layers=32"], "num_layers", 32),
        (["--num-layers", "1_000"], "num_layers", 1000),
        (["--lr", "3e-4"], "lr", 3e-4),
        (["--lr", "inf"], "lr", float("inf")),
        (["--seed", "-1"], "seed", -1),
        (["--min-lr=-0.5"], "min_lr", -0.5),
        (["--bf16"], "bf16", True),
        (["--disable-bias-linear"], "add_bias_linear", False),
        (["--no-rope-fusion"], "apply_rope_fusion", False),
        (["--rl-use-sequence-packing"], "rl_use_sequence_packing", True),
        (["--no-rl-use-sequence-packing"], "rl_use_sequence_packing", False),
        (["--data-path", "0.5", "a", "0.5", "b"], "data_path", ["0.5", "a", "0.5", "b"]),
        (["--data-path"], "data_path", []),
        (["--data-path=a"], "data_path", ["a"]),
        (["--recompute-modules", "core_attn", "mlp"], "recompute_modules", ["core_attn", "mlp"]),
        (["--rampup-batch-size", "16", "16", "1000"], "rampup_batch_size", [16, 16, 1000]),
        (["--attention-backend", "flash"], "attention_backend", "flash"),
        (["--moe-layer-freq", "([0]*2+[1]*3)"], "moe_layer_freq", [0, 0, 1, 1, 1]),
        (["--moe-layer-freq", "2"], "moe_layer_freq", 2),
        (["--window-size", "(128,0)"], "window_size", (128, 0)),
        (["--onnx-safe", "False"], "onnx_safe", True),  # type=bool: every text but the empty one is true
        (["--split", "99, 1, 0"], "split", "99, 1, 0"),
        (["--split", ""], "split", ""),
    ],
)
def test_forms_of_options(words: list[str], address: str, value: object) -> None:
    given, unknown, findings = parse(*words)
    assert given == {address: value}
    assert type(given[address]) is type(value)
    assert unknown == []
    assert codes(findings) == []


def test_a_later_occurrence_wins_and_is_reported_when_it_differs() -> None:
    given, _, findings = parse("--lr", "1e-4", "--bf16", "--lr", "3e-4")
    assert given["lr"] == 3e-4
    assert codes(findings) == ["R020"]
    assert codes(parse("--bf16", "--bf16")[2]) == ["R039"]


def test_given_options_know_their_spelling_and_place() -> None:
    given, _, _ = parse_arguments([word("--tensor-model-parallel-size=2")], load("megatron", "0.18.0"))
    option = given["tensor_model_parallel_size"]
    assert (option.written, option.place) == ("--tensor-model-parallel-size", PLACE)


@pytest.mark.parametrize(
    ("words", "code", "address"),
    [
        (["--train-iters", "1e5"], "R015", "train_iters"),
        (["--lr", "fast"], "R015", "lr"),
        (["--moe-layer-freq", "[0]*x"], "R015", "moe_layer_freq"),
        (["--window-size", "a,b"], "R015", "window_size"),
        (["--lr-decay-style", "cosin"], "R016", "lr_decay_style"),
        (["--attention-backend", "FLASH"], "R016", "attention_backend"),
        (["--lr"], "R017", "lr"),
        (["--lr", "--bf16"], "R017", "lr"),
        (["--lr", "-1e-5"], "R017", "lr"),
        (["--rampup-batch-size", "16", "16"], "R017", "rampup_batch_size"),
        (["--rampup-batch-size=16"], "R017", "rampup_batch_size"),
        (["--bf16=true"], "R018", "bf16"),
    ],
)
def test_values_that_argparse_refuses_are_findings_and_not_guessed(words: list[str], code: str, address: str) -> None:
    given, _, findings = parse(*words)
    assert isinstance(given[address], Missing)
    found = {finding.code: finding for finding in findings}
    assert found[code].level is Level.ERROR
    assert found[code].option == words[0].split("=")[0]
    assert found[code].place == PLACE


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--bf16", "true"], "write --bf16 alone"),
        (["--lr 1e-4"], "split it into words"),
        (["stray"], "remove it"),
        (["--bf16", "--"], "remove it"),
        (["--lr", "1e-4", "2e-4"], "quote the value"),
    ],
)
def test_stray_words_are_kept_and_explained(words: list[str], hint: str) -> None:
    _, unknown, findings = parse(*words)
    assert codes(findings) == ["R019"]
    assert hint in findings[0].fix
    assert [item.written for item in unknown] == words[-1:]


@pytest.mark.parametrize(
    ("flag", "version", "code", "hint"),
    [
        ("--use-legacy-models", "0.18.0", "R012", "older version"),
        ("--padded-vocab-size", "0.12.0", "R013", "megatron@0.14.0"),
        ("--muon-use-nesterov", "0.18.0", "R014", "--muon-nesterov"),
        ("--use-custom-fsdp", "0.18.0", "R014", "--use-megatron-fsdp"),
        ("--tensor-model-parallel", "0.18.0", "R011", "--tensor-model-parallel-size"),
        ("--num-layer", "0.18.0", "R011", "--num-layers"),
        ("--num_layers", "0.18.0", "R011", "--num-layers"),
        ("--deepspeed-zero-everything", "0.18.0", "R010", ""),
    ],
)
def test_unknown_options_are_explained(flag: str, version: str, code: str, hint: str) -> None:
    _, unknown, findings = parse("--bf16", flag, "1", "x", "--num-layers", "2", version=version)
    assert codes(findings) == [code]
    assert hint in findings[0].fix
    assert unknown == [Given(flag, ["1", "x"], flag, PLACE)]


def test_unknown_options_take_their_words_along_in_every_form() -> None:
    _, unknown, _ = parse("--my-flag=a", "--my-switch", "--bf16", "--my-one", "-3")
    assert [(item.address, item.value) for item in unknown] == [
        ("--my-flag", "a"),
        ("--my-switch", None),
        ("--my-one", "-3"),
    ]


def test_open_values_become_missing() -> None:
    given, unknown, findings = parse("--lr", word("$LR", "LR"), "--save", word("/ckpt/$RUN", "RUN"), "--bf16")
    assert given["lr"] == Missing("$LR", "LR comes from the scheduler", "--set LR=...")
    assert given["save"].expression == "/ckpt/$RUN"
    assert given["bf16"] is True
    assert (unknown, codes(findings)) == ([], [])


def test_an_open_word_with_a_flag_in_it_belongs_to_the_flag() -> None:
    given, _, _ = parse(word("--lr=$LR", "LR"))
    assert isinstance(given["lr"], Missing)


def test_an_open_word_in_place_of_options_is_kept() -> None:
    _, unknown, findings = parse("--bf16", word("$EXTRA_ARGS", "EXTRA_ARGS"), "--num-layers", "2")
    assert codes(findings) == ["R021"]
    assert findings[0].fix == "--set EXTRA_ARGS=..."
    assert unknown[0].written == "$EXTRA_ARGS"
    assert isinstance(unknown[0].value, Missing)


def test_quote_characters_in_a_value_are_kept_and_reported() -> None:
    given, _, findings = parse("--split", "'99,1,0'")
    assert given["split"] == "'99,1,0'"
    assert codes(findings) == ["R026"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1,0]", [1, 0]),
        ("([1]*3+[0]*1)*2", [1, 1, 1, 0, 1, 1, 1, 0]),
        ("2*[1]", [1, 1]),
        ("[0]+[1]*3", [0, 1, 1, 1]),
    ],
)
def test_layer_patterns(text: str, expected: list[int]) -> None:
    assert evaluate_pattern(text) == expected


@pytest.mark.parametrize(
    "text", ["[0]*999999999999", "9**9**9", "[0", "[]*[]", "__import__", "[0]*100000*100000", "(" * 5000, "[1]+2"]
)
def test_hostile_layer_patterns_are_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="list expression"):
        evaluate_pattern(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-1", True),
        ("-0.5", True),
        ("-.5", True),
        ("-1.", False),
        ("-1e-5", False),
        ("-", False),
        ("1", False),
        ("--1", False),
    ],
)
def test_negative_numbers(text: str, expected: bool) -> None:
    assert is_negative_number(text) is expected


FLAGS = sorted(load("megatron", "0.18.0").flags())
TOKENS = st.one_of(
    st.sampled_from(FLAGS),
    st.sampled_from(FLAGS).map(lambda flag: f"{flag}=1"),
    st.sampled_from(["1", "-1", "1e5", "true", "a b", "--", "-", "", "[1]*3", "--x", "'q'", "-1e-3"]),
    st.text(max_size=6),
)


@examples(st.lists(TOKENS, max_size=12), st.sampled_from(versions("megatron")))
def test_every_word_is_accounted_for_and_nothing_raises(texts: list[str], version: str) -> None:
    given, unknown, findings = parse_arguments([word(text) for text in texts], load("megatron", version))
    mentioned = " ".join(
        [option.written for option in given.values()]
        + [item.written for item in unknown]
        + [str(item.value) for item in unknown]
        + [finding.message for finding in findings]
    )
    for text in texts:
        if text.startswith("--") and "=" not in text and text != "--" and " " not in text:
            assert text in mentioned or repr(text) in mentioned
