"""The launch script that is written: what bash passes on from it is what was put in, whatever the values hold."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from translator.catalogue import Entry, load, versions
from translator.findings import Place
from translator.frameworks.base import RenderContext, Rendered
from translator.frameworks.megatron.arguments import parse_arguments
from translator.frameworks.megatron.render import default, machines, must_state, render, spelling
from translator.frameworks.megatron.table import table
from translator.mapping.views import Sink
from translator.shell import evaluate
from translator.shell.values import Word

BASH = shutil.which("bash")
VERSION = "0.18.0"
NO_CONTEXT = RenderContext({}, "source.toml", "torchtitan 0.2.2", {})
HOSTILE = (
    "$(touch owned)",
    "`touch owned`",
    "; touch owned; #",
    "a\ntouch owned\n",
    "carriage\r\nreturn \\n \\ ' \t\x01b\x1b[0m\x7f",
    'it\'s "quoted" \\ and $HOME ${IFS}',
    "') ; touch owned ; ('",
    "*",
    "~",
    "!!",
    "{a,b}",
    "",
    "# no comment",
    "--lr",
    "-x",
    "\u202ereversed é",
)

needs_bash = pytest.mark.skipif(BASH is None, reason="no bash on this machine")


def rendered(values: Mapping[str, Any], version: str = VERSION, context: RenderContext = NO_CONTEXT) -> Rendered:
    catalogue = load("megatron", version)
    sink = Sink(frozenset(catalogue.addresses()), {}, version)
    for address, value in values.items():
        assert sink.put(address, value), address
    return render(sink, version, context, catalogue, table(version).fields_of)


def run_in_bash(result: Rendered, folder: Path, **environment: str) -> tuple[list[str], dict[str, str]]:
    """What a launcher in place of torchrun receives: its arguments and its environment."""
    assert BASH is not None
    tools = folder / "tools"
    tools.mkdir()
    stub = tools / "torchrun"
    stub.write_text(f'#!{BASH}\nprintf \'%s\\0\' "$@" > "$RECORD.argv"\n/usr/bin/env -0 > "$RECORD.env"\n')
    stub.chmod(0o755)
    work = folder / "work"
    work.mkdir()
    script = work / result.main
    script.write_text(result.files[result.main])
    variables = {"PATH": str(tools), "RECORD": str(folder / "record"), **environment}
    done = subprocess.run([BASH, script.name], cwd=work, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == ""
    assert [path.name for path in work.iterdir()] == [result.main], "the script left something behind"
    argv = (folder / "record.argv").read_bytes().decode().split("\0")[:-1]
    pairs = (item.partition("=") for item in (folder / "record.env").read_bytes().decode().split("\0")[:-1])
    return argv, {name: value for name, _, value in pairs}


def options_in(argv: list[str], version: str) -> tuple[dict[str, Any], list[str]]:
    """The options that Megatron-LM's parser would find after the program, and what it would say."""
    program = next(index for index, word in enumerate(argv) if word.endswith(".py"))
    place = Place("train.sh", 1, 1)
    words = [Word(word, place) for word in argv[program + 1 :]]
    given, unknown, findings = parse_arguments(words, load("megatron", version))
    assert unknown == []
    # R026 only remarks on quote characters in a value
    said = [str(finding.message) for finding in findings if finding.code != "R026"]
    return {address: option.value for address, option in given.items()}, said


def other_value(entry: Entry) -> Any:
    """A value of the option's type that is not its default."""
    if not entry.takes_value:
        return not entry.default
    one: Any
    if entry.type_name in ("moe_freq_type", "no_rope_freq_type", "la_freq_type"):
        one = [0] * 3 + [1] * 30
    elif entry.type_name == "tuple_type":
        one = (-1, 0)
    elif entry.choices:
        one = next((choice for choice in entry.choices if choice != entry.default), entry.choices[0])
    else:
        one = {"int": 123457, "float": 1.25e-7, "bool": True}.get(entry.kind, "some text; $(touch owned)")
    if isinstance(entry.arity, int):
        return [one] * entry.arity
    return [one, one] if entry.arity in ("+", "*") else one


def read_statically(result: Rendered) -> tuple[list[str], dict[str, str]]:
    """The program with its arguments, and the environment, as the script reader finds them."""
    reading = evaluate(result.files[result.main], result.main)
    assert [finding.message for finding in reading.findings] == []
    (launch,) = reading.launches
    words = [launch.program, *launch.argv]
    assert not any(word.unknowns for word in words)
    return [word.text for word in words], {name: word.text for name, word in launch.env.items()}


@pytest.mark.parametrize("version", versions("megatron"))
def test_every_option_reads_back_without_running(version: str) -> None:
    catalogue = load("megatron", version)
    values = {address: other_value(catalogue.first(address)) for address in catalogue.addresses()}
    result = rendered({**values, "@world_size": 16}, version)
    argv, _ = read_statically(result)
    found, said = options_in(argv, version)
    assert said == []
    assert found == {address: values[address] for address in result.stated if address in values}
    assert len(found) > len(values) - 5


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_read_back_without_running(value: str) -> None:
    values = {"save": value, "tokenizer_model": f"{value} {value}"}
    result = rendered({**values, "@world_size": 16, "@environment": {"NCCL_NOTE": value}, "@program": value + ".py"})
    argv, environment = read_statically(result)
    assert options_in(argv, VERSION) == (values, [])
    assert environment["NCCL_NOTE"] == value
    assert argv[0].removeprefix("./") == value + ".py"


@pytest.mark.parametrize(("nodes", "gpus"), [(1, 8), (4, 8), (3, 6)])
def test_machines_read_back(nodes: int, gpus: int) -> None:
    result = rendered({"num_layers": 2, "@world_size": nodes * gpus, "@nodes": nodes, "@gpus_per_node": gpus})
    (launch,) = evaluate(result.files[result.main], result.main).launches
    assert (launch.nnodes, launch.nproc_per_node, launch.world_size) == (nodes, gpus, nodes * gpus)


def test_unknown_machines_read_back_as_unknown() -> None:
    result = rendered({"num_layers": 2})
    (launch,) = evaluate(result.files[result.main], result.main).launches
    assert launch.world_size is None
    assert [word.text for word in launch.argv] == ["--num-layers", "2"]


@needs_bash
@pytest.mark.parametrize("version", versions("megatron"))
def test_every_option_reads_back_through_bash(version: str, tmp_path: Path) -> None:
    catalogue = load("megatron", version)
    values = {address: other_value(catalogue.first(address)) for address in catalogue.addresses()}
    result = rendered(values, version)
    argv, _ = run_in_bash(result, tmp_path, GPUS_PER_NODE="1", NNODES="1")
    found, said = options_in(argv, version)
    assert said == []
    unsayable = {
        line.split("Left out: ")[1].split(";")[0]
        for line in result.files[result.main].split("\n")
        if "Left out" in line
    }
    for address, value in values.items():
        if address not in found:
            # some switches have no flag for the value that is not the default, and one option has but one choice
            assert value == default(address, version) or spelling(address, version) in unsayable, address
            assert address not in result.stated
        else:
            assert found[address] == value, address


@needs_bash
@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_stay_inert(value: str, tmp_path: Path) -> None:
    values = {
        "save": value,
        "data_path": ["0.5", value] if not value.startswith("-") else [value],
        "num_layers": 2,
        "@environment": {"NCCL_NOTE": value},
        "@program": value + ".py",
        "@world_size": 2,
    }
    context = RenderContext({"save": value, "num_layers": value}, value, value, {})
    argv, environment = run_in_bash(rendered(values, context=context), tmp_path)
    found, said = options_in(argv, VERSION)
    assert said == []
    assert found == {"save": value, "data_path": values["data_path"], "num_layers": 2}
    assert environment["NCCL_NOTE"] == value
    program = argv[argv.index("--master_port") + 2]
    assert program.removeprefix("./") == value + ".py"


@needs_bash
def test_launcher_gets_the_machines_and_the_user_may_override_them(tmp_path: Path) -> None:
    result = rendered({"num_layers": 2, "@nodes": 4, "@gpus_per_node": 8, "@world_size": 32})
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    argv, _ = run_in_bash(result, tmp_path / "a")
    assert argv[:6] == ["--nproc_per_node", "8", "--nnodes", "4", "--node_rank", "0"]
    argv, _ = run_in_bash(result, tmp_path / "b", NNODES="2", NODE_RANK="1", MASTER_ADDR="node0")
    assert argv[:8] == ["--nproc_per_node", "8", "--nnodes", "2", "--node_rank", "1", "--master_addr", "node0"]


@needs_bash
def test_unknown_machines_are_demanded(tmp_path: Path) -> None:
    assert BASH is not None
    script = tmp_path / "train.sh"
    script.write_text(rendered({"num_layers": 2}).files["train.sh"])
    done = subprocess.run([BASH, str(script)], env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "GPUS_PER_NODE: GPUs on each node" in done.stderr


@pytest.mark.parametrize(
    ("world", "nodes", "gpus", "expected"),
    [
        (32, None, None, (4, 8)),
        (6, None, None, (1, 6)),
        (12, None, None, (2, 6)),
        (7 * 13, None, None, (13, 7)),
        (32, 2, None, (2, 16)),
        (32, None, 4, (8, 4)),
        (32, 4, 8, (4, 8)),
        (32, 3, None, (4, 8)),
        (None, 2, 8, (2, 8)),
        (None, None, None, (None, None)),
    ],
)
def test_machines(
    world: int | None, nodes: int | None, gpus: int | None, expected: tuple[int | None, int | None]
) -> None:
    assert machines({"@world_size": world, "@nodes": nodes, "@gpus_per_node": gpus}) == expected


def test_values_are_written_as_their_type_reads_them() -> None:
    stated = rendered(
        {
            "rotary_base": 500000.0,
            "lr": 3e-5,
            "min_lr": 0.0003,
            "init_method_std": 1e-20,
            "clip_grad": 2,
            "window_size": [-1, 0],
            "moe_layer_freq": [0] * 3 + [1] * 58,
            "no_rope_freq": [0, 1],
            "add_bias_linear": False,
            "moe_router_load_balancing_type": ["aux_loss", "seq_aux_loss"],
        }
    ).stated
    assert stated == {
        "rotary_base": "--rotary-base 500000",
        "lr": "--lr 3e-5",
        "min_lr": "--min-lr 0.0003",
        "init_method_std": "--init-method-std 1e-20",
        "clip_grad": "--clip-grad 2",
        "window_size": "--window-size=-1,0",
        "moe_layer_freq": "--moe-layer-freq '[0]*3+[1]*58'",
        "no_rope_freq": "--no-rope-freq '[0,1]'",
        "add_bias_linear": "--disable-bias-linear",
        "moe_router_load_balancing_type": "--moe-router-load-balancing-type aux_loss seq_aux_loss",
    }


def test_defaults_are_not_written_unless_versions_disagree() -> None:
    values = {
        "clip_grad": 1.0,
        "bf16": False,
        "add_bias_linear": True,
        "data_parallel_sharding_strategy": "optim_grads_params",
    }
    assert rendered(values).stated == {
        "data_parallel_sharding_strategy": "--data-parallel-sharding-strategy optim_grads_params"
    }


def test_what_no_command_line_can_say_is_left_out_and_said() -> None:
    result = rendered({"rotary_base": 10000.5, "data_path": ["a", "--lr"], "save": "a\0b", "num_layers": 2})
    assert result.stated == {"num_layers": "--num-layers 2"}
    text = result.files[result.main]
    assert "# Left out: --rotary-base; it takes an integer, not 10000.5\n" in text
    assert "# Left out: --data-path; " in text
    assert "# Left out: --save; " in text


def test_variables_that_would_break_the_script_are_not_exported() -> None:
    result = rendered(
        {
            "@environment": {"A B": "1", "UID": "0", "BASH_ENV": "x", "NNODES": "9", "OMP_NUM_THREADS": "1"},
            "num_layers": 2,
        }
    )
    exports = [line for line in result.files[result.main].splitlines() if line.startswith("export")]
    assert exports == ["export OMP_NUM_THREADS=1"]
    assert result.stated["@environment"] == "export OMP_NUM_THREADS=1"


def test_script_says_where_values_came_from_in_groups() -> None:
    context = RenderContext({"num_layers": "--model.n_layers", "lr": "default of the source"}, "job.toml", "", {})
    text = rendered({"num_layers": 2, "hidden_size": 64, "lr": 1e-4, "muon_momentum": 0.5}, context=context).files[
        "train.sh"
    ]
    assert (
        "MODEL_ARGS=(\n    --num-layers 2    # from --model.n_layers\n    --hidden-size 64\n)\n\n"
        "OPTIMIZER_ARGS=(\n    --lr 0.0001          # default of the source\n    --muon-momentum 0.5\n)\n"
    ) in text
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "# from job.toml.\n" in text
    assert text.endswith('    pretrain_gpt.py \\\n    "${MODEL_ARGS[@]}" \\\n    "${OPTIMIZER_ARGS[@]}"\n')
    assert "\n\n\n" not in text


def test_spelling_and_default() -> None:
    assert spelling("layernorm_epsilon", VERSION) == "--norm-epsilon"
    assert spelling("use_gloo_process_groups", VERSION) == "use_gloo_process_groups"  # its flag says the opposite
    assert spelling("@world_size", VERSION) == "--nproc_per_node x --nnodes"
    assert spelling("not_there", VERSION) == "--not-there"
    assert default("clip_grad", VERSION) == 1.0
    assert default("not_there", VERSION) is None


@pytest.mark.parametrize(
    ("address", "value", "expected"),
    [
        ("clip_grad", 1.0, False),
        ("clip_grad", 1, False),
        ("clip_grad", 0.5, True),
        ("mscale_all_dim", 0.0, True),
        ("eval_interval", None, False),
        ("profile_ranks", [], True),
        ("num_layers", None, False),
        ("iterations_to_skip", (), False),
        ("@nodes", 1, True),
    ],
)
def test_must_state(address: str, value: Any, expected: bool) -> None:
    assert must_state(address, value, VERSION) is expected


def test_rendering_is_quick() -> None:
    catalogue = load("megatron", VERSION)
    values = {address: other_value(catalogue.first(address)) for address in catalogue.addresses()[:120]}
    rendered(values)
    times = []
    for _ in range(10):
        start = time.perf_counter()
        rendered(values)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.003
