"""Whole sources: scripts, argument text and YAML; which launch is read, and what is known of it."""

from __future__ import annotations

from typing import Any

import pytest

from translator.errors import SourceError, UsageError
from translator.frameworks.megatron.syntax import read_source, sniff
from translator.native import ENVIRONMENT, GPUS_PER_NODE, NODES, PROGRAM, WORLD_SIZE, Missing, Native

SHAPE = (
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 "
    "--micro-batch-size 1"
)
SCRIPT = f"""#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS=${{GPUS:-8}}
ARGS=({SHAPE} --lr $LR)
torchrun --nproc_per_node $GPUS --nnodes 2 pretrain_gpt.py "${{ARGS[@]}}"
"""
TWO = f"""
torchrun --nproc_per_node 2 pretrain_gpt.py {SHAPE} --lr 1e-4
python tools/report.py --out x
torchrun --nproc_per_node 4 pretrain_gpt.py {SHAPE} --lr 2e-4
"""


def read(text: str, name: str = "train.sh", **options: Any) -> Native:
    return read_source(name, text, version="0.18.0", **options)


def codes(native: Native) -> list[str]:
    return [finding.code for finding in native.findings]


def value(native: Native, address: str) -> object:
    return native.given[address].value


def test_a_script_gives_its_options_and_the_facts_of_its_launch() -> None:
    native = read(SCRIPT, set_values={"LR": "3e-4"})
    assert value(native, "num_layers") == 4
    assert value(native, "lr") == 3e-4
    assert value(native, PROGRAM) == "pretrain_gpt.py"
    assert (value(native, NODES), value(native, GPUS_PER_NODE), value(native, WORLD_SIZE)) == (2, 8, 16)
    assert value(native, ENVIRONMENT)["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"  # type: ignore[index]
    assert codes(native) == []
    place = native.given["num_layers"].place
    assert place is not None
    assert (place.file, place.line) == ("train.sh", 4)


def test_variables_from_outside_change_the_launch() -> None:
    assert value(read(SCRIPT, set_values={"LR": "1", "GPUS": "4"}), WORLD_SIZE) == 8


def test_several_launches_are_listed_and_one_is_picked() -> None:
    first = read(TWO)
    assert codes(first) == ["R023"]
    assert "1 pretrain_gpt.py (train.sh:2:" in first.findings[0].message
    assert "2 pretrain_gpt.py (train.sh:4:" in first.findings[0].message
    assert value(first, "lr") == 1e-4
    second = read(TWO, launch_index=2)
    assert (value(second, "lr"), value(second, WORLD_SIZE), codes(second)) == (2e-4, 4, [])


@pytest.mark.parametrize("number", [0, 3, -1])
def test_a_launch_that_is_not_there_is_a_usage_error(number: int) -> None:
    with pytest.raises(UsageError, match="there is no launch"):
        read(TWO, launch_index=number)


def test_the_training_program_is_preferred_to_a_tool_with_the_same_options() -> None:
    text = f"python tools/preprocess.py {SHAPE}\ntorchrun --nproc_per_node 2 pretrain_gpt.py {SHAPE} --bf16\n"
    assert value(read(text), PROGRAM) == "pretrain_gpt.py"


def test_another_program_with_the_options_is_read_with_a_note() -> None:
    native = read(f"torchrun --nproc_per_node 2 mine.py {SHAPE}\n")
    assert (value(native, PROGRAM), codes(native)) == ("mine.py", ["R035"])


def test_an_open_number_of_nodes_leaves_the_world_size_open() -> None:
    native = read(f"torchrun --nproc_per_node 8 --nnodes $(count_nodes) pretrain_gpt.py {SHAPE}\n")
    assert isinstance(value(native, WORLD_SIZE), Missing)
    finding = next(finding for finding in native.findings if finding.code == "R025")
    assert "--world-size N" in finding.fix
    supplied = read(f"torchrun --nproc_per_node 8 --nnodes $(count_nodes) pretrain_gpt.py {SHAPE}\n", world_size=64)
    assert value(supplied, WORLD_SIZE) == 64
    assert "R025" not in codes(supplied)


def test_a_world_size_that_contradicts_the_launch_is_reported() -> None:
    native = read(TWO, launch_index=1, world_size=8)
    assert (value(native, WORLD_SIZE), codes(native)) == (8, ["R033"])


def test_a_program_without_a_launcher_runs_alone() -> None:
    assert value(read(f"python pretrain_gpt.py {SHAPE}\n"), WORLD_SIZE) == 1


def test_plain_arguments_with_comments_and_continuations() -> None:
    text = "# model\n--num-layers 4 \\\n  --hidden-size 64  # width\n--lr $LR\n--split '99,1,0'\n"
    native = read(text, "model.args", set_values={"LR": "1e-4"})
    assert {address: option.value for address, option in native.given.items() if address[0] != "@"} == {
        "num_layers": 4,
        "hidden_size": 64,
        "lr": 1e-4,
        "split": "99,1,0",
    }
    assert codes(native) == ["R025"]
    assert ENVIRONMENT not in native.given


def test_plain_arguments_keep_open_variables_open() -> None:
    missing = read("--lr $LR --num-layers 2\n", "model.args").given["lr"].missing
    assert missing is not None
    assert (missing.expression, missing.supply) == ("$LR", "--set LR=...")


def test_a_variable_of_several_words_in_plain_arguments() -> None:
    native = read("--data-path $BLEND --num-layers 2\n", "model.args", set_values={"BLEND": "1 a 2 b"})
    assert value(native, "data_path") == ["1", "a", "2", "b"]


def test_a_model_config_is_read_run_by_run() -> None:
    text = "ENV_VARS:\n  A: 1\nMODEL_ARGS:\n  --num-layers: 2\nMODEL_ARGS_2:\n  --num-layers: 3\n"
    first = read(text, "model_config.yaml")
    assert (value(first, "num_layers"), value(first, ENVIRONMENT)) == (2, {"A": "1"})
    assert sorted(codes(first)) == ["R023", "R025"]
    assert value(read(text, "model_config.yaml", launch_index=2), "num_layers") == 3


def test_options_that_point_elsewhere_are_reported() -> None:
    native = read("--yaml-cfg x.yaml --use-checkpoint-args --num-layers 2\n", "a.args", world_size=1)
    assert codes(native) == ["R027", "R028"]


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/bash\necho hello\n",
        '#!/bin/bash\nif [ -z "$1" ]; then echo usage; exit 1; fi\n'
        + f"torchrun --nproc_per_node 2 pretrain_gpt.py {SHAPE}\n",
        "--nothing-of-megatron 1\n",
        "just some words\n",
        "MODEL_ARGS:\n  a: 1\n",
    ],
)
def test_texts_that_train_nothing_are_refused(text: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(text)
    assert "\n" not in str(caught.value)


def test_why_nothing_starts_is_said() -> None:
    text = f'if [ -z "$1" ]; then exit 1; fi\ntorchrun --nproc_per_node 2 pretrain_gpt.py {SHAPE}\n'
    with pytest.raises(SourceError) as caught:
        read(text)
    assert "--args" in caught.value.fix
    assert value(read(text, positional=["go"]), "num_layers") == 4


@pytest.mark.parametrize(
    ("name", "text", "low", "high"),
    [
        ("train.sh", SCRIPT, 0.8, 1.0),
        ("model_config.yaml", "MODEL_ARGS:\n  --num-layers: 2\n", 0.9, 1.0),
        ("model.args", SHAPE, 0.8, 1.0),
        ("wrapper.sh", "source common.sh\ntorchrun pretrain_gpt.py $ARGS --exit-on-missing-checkpoint\n", 0.5, 0.9),
        ("train.toml", '[training]\nsteps = 10\n[model]\nname = "llama3"\n', 0.0, 0.1),
        ("run.sh", "torchrun torchtitan/train.py --job.config_file x.toml --training.steps 10\n", 0.0, 0.1),
        ("ds.json", '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}', 0.0, 0.1),
        ("empty", "", 0.0, 0.0),
    ],
)
def test_sniffing(name: str, text: str, low: float, high: float) -> None:
    assert low <= sniff(name, text) <= high
