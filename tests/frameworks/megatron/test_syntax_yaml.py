"""``model_config.yaml``: the words that the functional tests' runner makes of a mapping."""

from __future__ import annotations

from pathlib import Path

import pytest

from translator.errors import SourceError
from translator.frameworks.megatron.config_yaml import ConfigReading, read_config

HEAD = "ENV_VARS:\n  CUDA_DEVICE_MAX_CONNECTIONS: 1\n  ROOT: /data\nMODEL_ARGS:\n"


def read(body: str, variables: dict[str, str] | None = None) -> ConfigReading:
    lines = "".join(f"  {line}\n" for line in body.splitlines())
    return read_config("model_config.yaml", HEAD + lines, variables or {})


def texts(reading: ConfigReading) -> list[str]:
    return [word.text for word in reading.runs[0].words]


# What bash itself makes of the runner's loop for each value.
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("--bf16: true", ["--bf16"]),
        ('--bf16: "true"', ["--bf16"]),
        ("--bf16: True", ["--bf16", "True"]),
        ("--bf16: false", ["--bf16", "false"]),
        ("--lr: 1.50e-4", ["--lr", "1.50e-4"]),
        ("--lr: null", ["--lr", "null"]),
        ("--lr:", ["--lr"]),
        ("--split: 99,1,0", ["--split", "99,1,0"]),
        ('--recompute-modules: "[core_attn mlp]"', ["--recompute-modules", "core_attn", "mlp"]),
        ("--recompute-modules: [core_attn mlp]", ["--recompute-modules", "core_attn", "mlp"]),
        ("--x: [a, b]", ["--x", "a,", "b"]),
        ("--moe-layer-freq: ([0]*1+[1]*26)", ["--moe-layer-freq", "([0]*1+[1]*26)"]),
        ("--pipeline-model-parallel-layout: Et*3|(tt|)*6L", ["--pipeline-model-parallel-layout", "Et*3|(tt|)*6L"]),
        ('--data-path: "1 a 2 b"', ["--data-path", "1 a 2 b"]),
        ('--step-batch-size-schedule: "0:384 200B:768"', ["--step-batch-size-schedule", "0:384 200B:768"]),
        ("--prompts: '\"the\"'", ["--prompts", "the"]),
        ("--save: ${ROOT}/x", ["--save", "/data/x"]),
        ("--save: $ROOT/x", ["--save", "/data/x"]),
        ("--note: a  b", ["--note", "a b"]),
        ("--text: |\n  one\n  two", ["--text", "one", "two", "two"]),
    ],
)
def test_entries_become_words(entry: str, words: list[str]) -> None:
    assert texts(read(f"--bf16: true\n{entry}"))[1:] == words


def test_the_environment_is_read() -> None:
    assert read("--bf16: true").environment == {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "ROOT": "/data"}


def test_places_are_those_of_the_file() -> None:
    flag, value = read("--bf16: true\n--lr: 3e-4").runs[0].words[1:]
    assert (str(flag.place), str(value.place)) == ("model_config.yaml:6:3", "model_config.yaml:6:9")


def test_variables_of_the_runner_stay_open_until_given() -> None:
    entry = "--save: ${CHECKPOINT_SAVE_PATH}"
    word = read(entry).runs[0].words[1]
    assert (word.text, word.unknowns[0].name) == ("${CHECKPOINT_SAVE_PATH}", "CHECKPOINT_SAVE_PATH")
    assert texts(read(entry, {"CHECKPOINT_SAVE_PATH": "/c"})) == ["--save", "/c"]


def test_a_given_variable_with_spaces_is_one_word() -> None:
    assert texts(read("--data-path: $DATA_BLEND", {"DATA_BLEND": "1 a 2 b"})) == ["--data-path", "1 a 2 b"]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("--lr: 1\n--lr: 2", "R029"),
        ("--lr: {a: 1}", "R030"),
        ("--lr:\n- 1\n- 2", "R030"),
        ("? [a]\n: 1", "R030"),
        ('--lr: ""', "R031"),
        ("--lr: a;b", "R036"),
        ("--lr: $(date)", "R036"),
        ("--lr: it's", "R036"),
    ],
)
def test_what_the_runner_does_not_pass_is_a_finding(entry: str, code: str) -> None:
    assert code in [finding.code for finding in read(f"--bf16: true\n{entry}").findings]


def test_further_runs_and_merged_mappings() -> None:
    text = HEAD + "  <<: &base {--lr: 1, --seed: 2}\n  --seed: 3\nMODEL_ARGS_2:\n  <<: *base\n  --bf16: true\n"
    reading = read_config("model_config.yaml", text, {})
    assert [run.name for run in reading.runs] == ["MODEL_ARGS", "MODEL_ARGS_2"]
    assert [[word.text for word in run.words] for run in reading.runs] == [
        ["--lr", "1", "--seed", "3"],
        ["--lr", "1", "--seed", "2", "--bf16"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "MODEL_ARGS: [1, 2]\n",
        "MODEL_ARGS:\n",
        "MODEL_ARGS:\n  trainer.max_steps: 3\n",
        "MODEL_ARGS: {\n",
        "MODEL_ARGS: !!python/object:os.system {a: b}\n",
        "MODEL_ARGS: \x01\n",
        "- MODEL_ARGS\n",
        "MODEL_ARGS: " + "[" * 5000,
        "MODEL_ARGS:\n  --lr: 1\n" + "#" * 1_000_001,
    ],
)
def test_other_yaml_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_config("model_config.yaml", text, {})
    assert "\n" not in str(caught.value)


def test_nested_aliases_do_not_grow_without_bound() -> None:
    lines = ["a0: &a0 {--x0: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 15)]
    with pytest.raises(SourceError, match="expands to more than"):
        read_config("model_config.yaml", "\n".join(lines) + "\nMODEL_ARGS:\n  <<: *a14\n  --lr: 1\n", {})


@pytest.mark.corpus
def test_every_configuration_of_the_corpus_is_read(corpus: Path) -> None:
    read_in_full = 0
    refused = []
    for path in sorted((corpus / "megatron").rglob("model_config.yaml")):
        try:
            reading = read_config(path.name, path.read_text(), {})
        except SourceError as error:
            refused.append(str(error))
            continue
        assert reading.runs
        read_in_full += 1
    assert read_in_full >= 200
    # Options of NeMo, and files without any options.
    assert all("options of Megatron-LM" in reason or "without a mapping" in reason for reason in refused), refused
