"""Launch scripts of torchtitan and the overrides of its command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from translator import api
from translator.catalogue import load
from translator.cli import main
from translator.errors import SourceError, UsageError
from translator.frameworks import detect
from translator.frameworks.torchtitan import launch_line, overrides_tyro
from translator.native import ENVIRONMENT, GPUS_PER_NODE, WORLD_SIZE, Given, Native
from translator.reading import Reading, ReadOptions
from translator.source import Source
from translator.source import load as load_source

PYTHON = """
import os
from torchtitan.components.loss import CrossEntropyLoss
from torchtitan.components.optimizer import default_adamw
from torchtitan.config import TrainingConfig
from torchtitan.models.llama3 import model_registry
from torchtitan.trainer import Trainer


def big() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("8B"),
        loss=CrossEntropyLoss.Config(global_vocab_size=128256),
        optimizer=default_adamw(lr=float(os.environ.get("LR", "3e-4"))),
        training=TrainingConfig(steps=100, seq_len=4096),
    )


def small() -> Trainer.Config:
    config = big()
    config.model_spec = model_registry("1B")
    return config
"""
TOML = '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nsteps = 100\nlocal_batch_size = 2\n'
FILES = {"run.py": PYTHON, "pkg/config_registry.py": PYTHON, "train.toml": TOML, "conf/old.toml": TOML}


def read(script: str, *, siblings: dict[str, str] | None = None, name: str = "go.sh", **more: object) -> Reading:
    source = Source(name, script, siblings=FILES if siblings is None else siblings)
    return api.read(source, options=ReadOptions(**more))  # type: ignore[arg-type]


def value(reading: Reading, address: str) -> object:
    assert reading.native is not None
    return reading.native.values.get(address)


def codes(reading: Reading) -> set[str]:
    return {finding.code for finding in reading.findings if finding.code.startswith("R")}


@pytest.mark.parametrize(
    "script",
    [
        "torchrun --nnodes 2 --nproc_per_node 8 -m torchtitan.train --module run --config small --training.steps 7",
        "torchrun --nnodes=2 --nproc-per-node=8 -m torchtitan.train --module=run --config=small --training.steps=7",
        "#!/bin/bash\nARGS=(--module pkg --config small)\n"
        'srun torchrun --nnodes 2 --nproc_per_node 8 -m torchtitan.train "${ARGS[@]}" --training.steps 7',
        "export NGPU=8\nMODULE=run CONFIG=small ./run_train.sh --training.steps 7",
        "MODULE=run CONFIG=small bash run_train.sh --training.steps=7",
    ],
)
def test_a_script_is_its_configuration_with_what_the_line_says_over_it(script: str) -> None:
    reading = read(script)
    assert reading.version == "0.3.0"
    assert value(reading, "model_spec.flavor") == "1B"
    assert value(reading, "training.steps") == 7
    assert value(reading, "training.seq_len") == 4096
    assert value(reading, WORLD_SIZE) == (16 if "nnodes" in script else 8)
    assert value(reading, GPUS_PER_NODE) == 8
    assert reading.origins["schedule.total"].option == "--training.steps"
    place = reading.origins["batch.seq_len"].place
    assert place is not None
    assert place.file in {"run.py", "pkg/config_registry.py"}


def test_environment_of_the_launch_reaches_the_configuration() -> None:
    script = "export LR=1e-3\nexport NCCL_DEBUG=INFO\nNGPU=4 MODULE=run CONFIG=big ./run_train.sh"
    reading = read(script)
    assert value(reading, "@optimizer.lr") == 1e-3
    assert value(reading, WORLD_SIZE) == 4
    assert value(reading, ENVIRONMENT) == {"LR": "1e-3", "NCCL_DEBUG": "INFO"}
    given = read("NGPU=4 MODULE=run CONFIG=big ./run_train.sh", variables={"LR": "2e-3"})
    assert value(given, "@optimizer.lr") == 2e-3
    assert value(given, ENVIRONMENT) is None


def test_run_train_of_ones_own_is_read_where_it_lies_beside() -> None:
    own = 'torchrun --nproc_per_node=2 -m torchtitan.train --module ${MODULE} --config ${CONFIG} --debug.seed 5 "$@"\n'
    reading = read("MODULE=run CONFIG=big ./run_train.sh --training.steps 3", siblings={**FILES, "./run_train.sh": own})
    assert (value(reading, WORLD_SIZE), value(reading, "debug.seed"), value(reading, "training.steps")) == (2, 5, 3)


@pytest.mark.parametrize(
    "script",
    [
        "torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file train.toml --training.steps=7 "
        "--compile.enable",
        "torchrun --nproc_per_node=8 -m torchtitan.train --job.config-file=./conf/old.toml --training.steps 7 "
        "--compile.enable",
        "CONFIG_FILE=/somewhere/conf/old.toml NGPU=8 ./run_train.sh --training.steps=7 --compile.enable",
    ],
)
def test_a_toml_beside_the_script(script: str) -> None:
    reading = read(script)
    assert reading.version == "0.2.2"
    assert value(reading, "training.steps") == 7
    assert value(reading, "training.local_batch_size") == 2
    assert value(reading, "compile.enable") is True
    assert value(reading, WORLD_SIZE) == 8
    assert "R090" not in codes(reading)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("torchrun -m torchtitan.train --module llama3 --config run", "torchtitan's llama3 has no function run"),
        ("torchrun -m torchtitan.train --module torchft --config f", "torchft has no function f"),
        ("torchrun -m torchtitan.train --module nowhere --config f", "put nowhere.py there"),
        ("torchrun -m torchtitan.train --module run", "no --config"),
        ("torchrun -m torchtitan.train --module run --config absent", "no function absent"),
        ("torchrun -m torchtitan.train --job.config_file none.toml", "none.toml is not beside"),
        ("read M\ntorchrun -m torchtitan.train --module $M --config big", "does not determine"),
        ("echo torchtitan.train", "launches no torchtitan"),
    ],
)
def test_what_a_script_lacks_is_said_in_one_line(script: str, said: str) -> None:
    source = Source("go.sh", script, siblings=FILES)
    with pytest.raises(SourceError, match=said) as error:
        api.read(source, framework="torchtitan", options=ReadOptions())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("module", ["llama3", "torchtitan.models.llama3", "torchtitan.models.llama3.config_registry"])
def test_a_configuration_of_torchtitans_own_is_known(module: str) -> None:
    line = f"torchrun --nproc_per_node 8 -m torchtitan.train --module {module} --config llama3_405b --training.steps 7"
    # A folder of the same name beside the script is not what torchtitan imports.
    reading = read(line, siblings={"llama3/config_registry.py": PYTHON})
    assert value(reading, "model_spec.flavor") == "405B"
    assert value(reading, "model_spec.converters") == [
        {"class": "Float8LinearConverter", "filter_fqns": ["lm_head"], "model_compile_enabled": True}
    ]
    assert value(reading, "training.steps") == 7
    assert value(reading, "@optimizer.lr") == 8e-5
    place = reading.origins["optimizer.lr"].place
    assert place is not None
    assert (place.file, place.line) == ("go.sh", 1)


@pytest.mark.parametrize("path", ["llama3.py", "llama3/config_registry.py"])
def test_a_module_behind_a_name_of_torchtitans_own_is_never_read(path: str) -> None:
    line = "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config "
    reading = read(f"{line}llama3_8b\n", siblings={path: PYTHON})
    assert value(reading, "training.steps") != 100
    found = [finding for finding in reading.findings if finding.code == "S198"]
    assert [(finding.level.value, path in finding.message) for finding in found] == [("warning", True)]
    with pytest.raises(SourceError, match=r"has no function big; .* is never read"):
        read(f"{line}big\n", siblings={path: PYTHON})
    assert "S198" not in {finding.code for finding in read(f"{line}llama3_8b\n", siblings={}).findings}


def test_the_source_of_torchtitan_beside_the_script_comes_before_what_is_known_of_it() -> None:
    line = "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config small"
    reading = read(line, siblings={"torchtitan/models/llama3/config_registry.py": PYTHON})
    assert value(reading, "model_spec.flavor") == "1B"


def test_one_of_several_launches() -> None:
    line = "torchrun --nproc_per_node 2 -m torchtitan.train --module run --config {}\n"
    script = line.format("big") + line.format("small")
    assert value(read(script), "model_spec.flavor") == "8B"
    assert "R023" in codes(read(script))
    assert value(read(script, launch=2), "model_spec.flavor") == "1B"
    with pytest.raises(UsageError, match="no launch 3"):
        read(script, launch=3)


def test_a_variable_that_is_not_given_leaves_the_option_open() -> None:
    script = (
        "TP=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node 8 -m torchtitan.train --module run --config big \\\n"
    )
    reading = read(script + "  --parallelism.tensor_parallel_degree $TP")
    assert reading.native is not None
    assert reading.native.given["parallelism.tensor_parallel_degree"].missing is not None


def test_scripts_are_torchtitans_where_they_launch_it() -> None:
    assert launch_line.sniff("go.sh", "torchrun -m torchtitan.train --module a --config b") > 0.9
    assert launch_line.sniff("go.sh", "torchrun pretrain_gpt.py --num-layers 3") == 0
    assert detect(Source("go.sh", "MODULE=a CONFIG=b ./run_train.sh")).name == "torchtitan"
    assert detect(Source("run.py", PYTHON)).name == "torchtitan"
    with pytest.raises(SourceError, match="configures no torchtitan"):
        detect(Source("other.py", "def f(): ...\n"))


def native(**given: object) -> Native:
    names = {name.replace("__", "."): item for name, item in given.items()}
    return Native("torchtitan", "0.3.0", {name: Given(name, item, name) for name, item in names.items()})


def test_a_subcommand_drops_the_values_of_another_class_and_keeps_those_of_the_same() -> None:
    catalogue = load("torchtitan", "0.3.0")
    same = native(activation_checkpoint="FullAC", activation_checkpoint__debug=True)
    overrides_tyro.apply(same, ["activation-checkpoint:full"], catalogue)
    assert same.given["activation_checkpoint.debug"].value is True
    other = native(activation_checkpoint="FullAC", activation_checkpoint__debug=True)
    overrides_tyro.apply(other, ["activation-checkpoint:selective"], catalogue)
    assert sorted(other.given) == ["activation_checkpoint"]
    assert other.given["activation_checkpoint"].value == "SelectiveAC"


def test_what_is_refused_is_kept_and_said_with_the_nearest_name() -> None:
    found = native()
    overrides_tyro.apply(found, ["--training.stps", "5", "--training.steps=x", "word"], load("torchtitan", "0.3.0"))
    assert not found.given
    assert [(item.address, item.value) for item in found.unknown] == [
        ("training.stps", "5"),
        ("training.steps", "x"),
        ("word", "word"),
    ]
    assert "--training.steps" in found.findings[0].fix
    assert [finding.code for finding in found.findings] == ["R090", "R096", "R107"]


def test_words_after_a_python_file_are_its_overrides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.py").write_text(PYTHON)
    assert main(["parse", f"{tmp_path}/run.py:big", "--args", "--training.steps=9 activation-checkpoint:none"]) == 0
    out = capsys.readouterr().out
    assert "total: 9" in out
    assert main(["parse", f"{tmp_path}/run.py"]) == 2
    assert f"{tmp_path}/run.py:big" in capsys.readouterr().err
    assert main(["parse", f"{tmp_path}/run.py:none"]) == 2


def test_a_name_with_a_function_is_a_file_and_a_function(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(PYTHON)
    source = load_source(f"{tmp_path}/run.py:small")
    assert (source.name, source.function) == (f"{tmp_path}/run.py", "small")
    with pytest.raises(SourceError, match="no such file"):
        load_source(f"{tmp_path}/absent.py:small")


def test_python_is_written_for_an_output_of_that_name_or_as_the_project_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "train.toml", "--to", "torchtitan", "--on-loss", "ignore", "-o", "out.py"]) == 0
    assert "Trainer.Config" in (tmp_path / "out.py").read_text()
    capsys.readouterr()
    main(["convert", "train.toml", "--to", "torchtitan"])
    assert "[training]" in capsys.readouterr().out
    (tmp_path / "pyproject.toml").write_text('[tool.ttx]\ntorchtitan = "0.3.0"\n')
    main(["convert", "train.toml", "--to", "torchtitan"])
    assert "Trainer.Config" in capsys.readouterr().out
    main(["convert", "train.toml", "--to", "torchtitan@0.1.0"])
    assert "[training]" in capsys.readouterr().out
    (tmp_path / "pyproject.toml").write_text("[tool.ttx]\ntorchtitan = 3\n")
    assert main(["convert", "train.toml", "--to", "torchtitan"]) == 2
