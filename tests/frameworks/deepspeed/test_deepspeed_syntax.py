"""Reading DeepSpeed's JSON, and the YAML and launch lines around it."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from translator.errors import SourceError, TtxError
from translator.findings import Finding
from translator.frameworks.deepspeed import codes
from translator.frameworks.deepspeed.positions_json import MAX_DEPTH, Placeholder, parse, plain
from translator.frameworks.deepspeed.settle import settle
from translator.frameworks.deepspeed.syntax import Companion, Inputs, guess_version, read_source, sniff
from translator.frameworks.deepspeed.values import AUTO
from translator.native import GPUS_PER_NODE, NODES, WORLD_SIZE, Missing, Native

SMALL = '{"train_batch_size": 8}'


def read(text: str, name: str = "ds.json", version: str = "0.19.2", **more: object) -> Native:
    return read_source(name, text, version=version, **more)  # type: ignore[arg-type]


def found(native: Native, code: str) -> list[Finding]:
    return [finding for finding in native.findings if finding.code == code]


def only(native: Native, code: str) -> Finding:
    (finding,) = found(native, code)
    return finding


def test_keys_have_their_places() -> None:
    native = read('{\n  "train_batch_size": 8,\n  "zero_optimization": {\n    "stage": 2\n  }\n}')
    stage = native.given["zero_optimization.stage"]
    assert (stage.value, stage.written) == (2, "zero_optimization.stage")
    assert stage.place is not None
    assert (stage.place.line, stage.place.column, stage.place.end_column) == (4, 5, 12)
    assert native.unknown == []
    assert native.findings == []


def test_what_hjson_takes_and_json_does_not() -> None:
    text = "# c\n{ // c\n train_batch_size: 8 /* c */\n 'fp16': {\"enabled\": true,},\n}"
    native = read(text)
    assert native.given["train_batch_size"].value == 8
    assert native.given["fp16.enabled"].value is True
    kinds = [finding.message.split(":")[0] for finding in found(native, "R135")]
    assert kinds == [
        "the file has comments",
        "the file has keys or values without double quotes",
        "the file has commas that are missing or too many",
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5e8", 500_000_000),
        ("1e-5", 1e-5),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e12", 1e12),
        ("true", True),
        ("null", None),
        ('"a\\u00e9\\n"', "aé\n"),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("[1, 2,]", [1, 2]),
        ("'''\n  a\n'''", "a"),
        ("{}", {}),
    ],
)
def test_values(text: str, value: object) -> None:
    assert plain(parse("x", f'{{"a": {text}}}').root) == {"a": value}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": 1', 1, 8),
        ('{\n "a" 1}', 2, 6),
        ('{"a": }', 1, 7),
        ('{"a": "b\n"}', 1, 7),
        ('{"a": 1} x', 1, 10),
        ('{"a": [1', 1, 9),
        ('{"a": "\\x"}', 1, 8),
        ("{ /* }", 1, 3),
        ("{\"a\": '''b}", 1, 7),
    ],
)
def test_broken_text_has_a_place(text: str, line: int, column: int) -> None:
    with pytest.raises(SourceError) as caught:
        read(text)
    assert caught.value.place is not None
    assert (caught.value.place.line, caught.value.place.column) == (line, column)


def test_a_value_without_quotes_runs_to_the_end_of_its_line() -> None:
    native = read('{"train_batch_size": 8,\n "zero_optimization": {\n "overlap_comm": True,\n "stage": 1}}')
    assert only(native, "R141").option == "zero_optimization.overlap_comm"
    assert only(native, "R133").message.startswith("zero_optimization.overlap_comm cannot be 'True,'")


def test_unknown_keys() -> None:
    native = read(
        '{"gradient_cliping": 1.0, "zero_optimization": {"stages": 2}, "_comment": "x", "amp": {"opt_level": "O1"}}'
    )
    assert "did you mean gradient_clipping" in only(native, "R131").fix
    assert "zero_optimization.stage" in only(native, "R130").fix
    assert only(native, "R148").option == "_comment"
    assert only(native, "R149").option == "amp.opt_level"
    assert {item.address for item in native.unknown} == {
        "gradient_cliping",
        "zero_optimization.stages",
        "_comment",
        "amp.opt_level",
    }


def test_arguments_of_classes() -> None:
    text = """{"optimizer": {"params": {"lr": 1e-4, "betas": [0.9, 0.95], "momentum": 0.9}, "type": "AdamW"},
      "scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 5, "warmup_num_steps": 5}}}"""
    native = read(text)
    assert native.given["optimizer.params.betas"].value == [0.9, 0.95]
    assert {finding.option for finding in found(native, "R132")} == {
        "optimizer.params.momentum",
        "scheduler.params.total_num_steps",
    }


@pytest.mark.parametrize(
    ("value", "kept"),
    [('"2"', 2), ("2.0", 2), ("true", 1), ("4", None), ('"two"', None), ("[1]", None)],
)
def test_values_of_strict_sections(value: str, kept: int | None) -> None:
    native = read(f'{{"zero_optimization": {{"stage": {value}}}}}')
    given = native.given.get("zero_optimization.stage")
    assert (None if given is None or given.missing else given.value) == kept
    assert bool(found(native, "R133")) == (kept is None)


def test_values_of_lax_sections_are_kept() -> None:
    native = read('{"train_batch_size": "8", "prescale_gradients": "false"}')
    assert native.given["prescale_gradients"].value == "false"
    assert len(found(native, "R134")) == 2


def test_sections_and_values_mixed_up() -> None:
    native = read('{"fp16": true, "train_batch_size": {"a": 1}, "aio": null, "zero_optimization": null}')
    assert [finding.option for finding in found(native, "R142")] == ["fp16", "zero_optimization"]


def test_repeated_keys() -> None:
    native = read('{"train_batch_size": 8, "train_batch_size": 16}')
    assert only(native, "R136").place is not None
    assert native.given["train_batch_size"].value == 16
    names = read('{"zero_optimization": {"prefetch_bucket_size": 1, "stage3_prefetch_bucket_size": 2}}')
    assert "the same key" in only(names, "R136").message


def test_other_versions() -> None:
    text = '{"elasticity": {"enabled": false}, "managed_gradient_accumulation": true, "sparse_gradients": true}'
    assert [finding.option for finding in found(read(text), "R138")] == ["managed_gradient_accumulation"]
    newer = found(read(text, version="0.19.8"), "R138")
    assert [(finding.option, finding.level.value) for finding in newer] == [
        ("elasticity", "error"),
        ("sparse_gradients", "error"),
    ]
    assert not found(read('{"bf16": {"enabled": true, "whatever": 1}}', version="0.16.9"), "R130")


def test_deprecated_keys() -> None:
    native = read('{"zero_optimization": {"stage": 2, "cpu_offload": true}}')
    assert only(native, "R137").fix == "use zero_optimization.offload_optimizer"
    old = read('{"zero_optimization": true}')
    assert old.given["zero_optimization.stage"].value == 1


def test_auto_is_kept_for_later() -> None:
    native = read('{"train_batch_size": "auto", "pipeline": {"stages": "auto"}}')
    assert native.given["train_batch_size"].value is AUTO
    assert native.given["pipeline.stages"].value == "auto"


def test_variables_of_templates() -> None:
    text = (
        '{"train_batch_size": CONFIG_BATCH, "zero_optimization": {"stage": $ZERO},\n"wandb": {"project": "${NAME}-x"}}'
    )
    native = read(text)
    batch = native.given["train_batch_size"].value
    assert isinstance(batch, Missing)
    assert batch.supply == "--set CONFIG_BATCH=..."
    assert len(found(native, "R140")) == 3
    filled = read(text, inputs=Inputs({"CONFIG_BATCH": "32", "ZERO": "2"}))
    assert (filled.given["train_batch_size"].value, filled.given["zero_optimization.stage"].value) == (32, 2)
    assert plain(parse("x", '{"a": {{batch}}}').root) == {"a": Placeholder("{{batch}}", "batch")}


def test_hints_and_world_size() -> None:
    assert read("# ttx: world_size=16\n" + SMALL).given[WORLD_SIZE].value == 16
    assert read("# ttx: world_size=16\n" + SMALL, world_size=4).given[WORLD_SIZE].value == 4
    missing = read(SMALL).given[WORLD_SIZE].missing
    assert missing is not None
    assert missing.supply == "--world-size N"
    assert guess_version("# ttx: version=0.16.9\n{}") == "0.16.9"


SCRIPT = """#!/bin/bash
ZERO=2
cat > conf/ds.json <<EOT
{
  "train_micro_batch_size_per_gpu": "auto",
  "zero_optimization": {"stage": $ZERO},
  "gradient_clipping": $CLIP
}
EOT
deepspeed --num_gpus 8 --num_nodes 2 train.py --deepspeed conf/ds.json --learning_rate=3e-4 \\
  --per-device-train-batch-size 4 --bf16 --gradient_checkpointing False --evaluation_strategy no --mine 3
"""


def test_a_script_that_writes_its_configuration() -> None:
    native = read(SCRIPT, "run.sh")
    values = {address: given.value for address, given in native.given.items()}
    assert (values[NODES], values[GPUS_PER_NODE], values[WORLD_SIZE]) == (2, 8, 16)
    assert (values["hf.learning_rate"], values["hf.per_device_train_batch_size"]) == (3e-4, 4)
    assert (values["hf.bf16"], values["hf.gradient_checkpointing"]) == (True, False)
    assert values["zero_optimization.stage"] == 2
    stage = native.given["zero_optimization.stage"].place
    assert stage is not None
    assert (stage.file, stage.line) == ("run.sh", 6)
    assert isinstance(values["gradient_clipping"], Missing)
    assert [item.address for item in native.unknown] == ["--mine"]
    assert only(native, "R145").option == "--evaluation_strategy"


def test_a_configuration_beside_the_script() -> None:
    line = "torchrun --nproc_per_node 4 --nnodes 1 train.py --deepspeed ds.json --max_steps 10"
    siblings = {"ds.json": SMALL}
    native = read(line, "run.sh", inputs=Inputs(read_sibling=siblings.get))
    assert native.given["train_batch_size"].place is not None
    assert native.given["train_batch_size"].place.file == "ds.json"
    assert native.given[WORLD_SIZE].value == 4
    assert only(read(line, "run.sh"), "R144").place is not None
    unknown = read("deepspeed train.py --deepspeed $CONFIG --max_steps 3", "run.sh")
    assert only(unknown, "R144").fix == "--set CONFIG=..."


def test_accelerate() -> None:
    yaml = """compute_environment: LOCAL_MACHINE
deepspeed_config:
  gradient_accumulation_steps: 4
  zero_stage: 3
  offload_param_device: none
  nonsense: 1
distributed_type: DEEPSPEED
mixed_precision: bf16
num_machines: 2
num_processes: 16
"""
    native = read(yaml, "acc.yaml")
    values = {address: given.value for address, given in native.given.items()}
    assert (values["zero_optimization.stage"], values["gradient_accumulation_steps"]) == (3, 4)
    assert (values["bf16.enabled"], values[WORLD_SIZE], values[NODES]) == (True, 16, 2)
    assert values["train_batch_size"] is AUTO
    assert only(native, "R131").place is not None
    line = "accelerate launch --config_file acc.yaml train.py --learning_rate 1e-4"
    launched = read(line, "run.sh", inputs=Inputs(read_sibling={"acc.yaml": yaml}.get))
    assert launched.given["zero_optimization.stage"].value == 3
    named = yaml.replace("  zero_stage: 3", "  deepspeed_config_file: ds.json")
    nested = read(named, "acc.yaml", inputs=Inputs(read_sibling={"ds.json": SMALL}.get))
    assert nested.given["train_batch_size"].value == 8


def test_what_concerns_accelerate_alone() -> None:
    yaml = """compute_environment: LOCAL_MACHINE
deepspeed_config: {zero_stage: 3, zero3_init_flag: true, deepspeed_multinode_launcher: standard}
distributed_type: DEEPSPEED
mixed_precision: 'no'
stranger: 1
"""
    native = read(yaml, "acc.yaml")
    own = {address: given.value for address, given in native.given.items() if address.startswith("@accelerate.")}
    assert own == {
        "@accelerate.compute_environment": "LOCAL_MACHINE",
        "@accelerate.zero3_init_flag": True,
        "@accelerate.deepspeed_multinode_launcher": "standard",
        "@accelerate.distributed_type": "DEEPSPEED",
        "@accelerate.mixed_precision": "no",
    }
    assert [item.address for item in native.unknown] == ["@accelerate.stranger"]


@pytest.mark.parametrize("program", ["train.py", "-m train"])
def test_options_of_accelerate_launch(program: str) -> None:
    script = f"""STAGE=3
accelerate launch --num_processes 8 --mixed_precision=bf16 --use_deepspeed --zero_stage $STAGE \\
  --gradient_accumulation_steps 4 --gradient_clipping 0.5 --offload_optimizer_device cpu \\
  --offload_param_device "$WHERE" {program} --learning_rate 1e-4 --zero_stage 1
"""
    native = read(script, "run.sh")
    values = {address: given.value for address, given in native.given.items()}
    assert (values["zero_optimization.stage"], values["bf16.enabled"], values[WORLD_SIZE]) == (3, True, 8)
    assert (values["gradient_accumulation_steps"], values["gradient_clipping"]) == (4, 0.5)
    assert values["zero_optimization.offload_optimizer.device"] == "cpu"
    assert isinstance(values["zero_optimization.offload_param.device"], Missing)
    assert values["train_batch_size"] is AUTO
    assert "R144" not in [finding.code for finding in native.findings]


def test_the_configuration_that_accelerate_launch_names() -> None:
    line = "accelerate launch --num_processes 4 --use_deepspeed --deepspeed_config_file ds.json train.py --max_steps 3"
    native = read(line, "run.sh", inputs=Inputs(read_sibling={"ds.json": SMALL}.get))
    assert native.given["train_batch_size"].value == 8
    plain_launch = "accelerate launch --num_processes 4 --zero_stage 3 train.py --deepspeed ds.json"
    plain = read(plain_launch, "run.sh", inputs=Inputs(read_sibling={"ds.json": SMALL}.get))
    assert plain.given["train_batch_size"].value == 8


def test_arguments_in_files() -> None:
    yaml = "learning_rate: 1e-5\noutput_dir: x\ndeepspeed:\n  train_batch_size: 8\nmine: 1\n"
    native = read(yaml, "train.yaml")
    assert native.given["hf.learning_rate"].value == 1e-5
    assert native.given["train_batch_size"].value == 8
    assert [item.address for item in native.unknown] == ["mine"]
    for name, text in (
        ("args.json", '{"learning_rate": 2e-5, "per_device_train_batch_size": "x"}'),
        ("args.yaml", "learning_rate: 2e-5\nper_device_train_batch_size: x\n"),
        ("args.txt", "--learning_rate 2e-5 --per_device_train_batch_size x"),
    ):
        given = read(SMALL, trainer=Companion(name, text))
        assert given.given["hf.learning_rate"].value == 2e-5
        assert only(given, "R146").place is not None


def test_the_model() -> None:
    model = '{"hidden_size": 64, "num_hidden_layers": 2}'
    native = read(SMALL, model=Companion("config.json", model))
    assert native.given["model_config.hidden_size"].value == 64
    line = "deepspeed --num_gpus 1 train.py --deepspeed ds.json --model_name_or_path m"
    siblings = {"ds.json": SMALL, "m/config.json": model}
    beside = read(line, "run.sh", inputs=Inputs(read_sibling=siblings.get))
    assert beside.given["model_config.num_hidden_layers"].value == 2


def test_neox_is_not_supported_yet() -> None:
    braces = '{\n\'num-layers\': 12, # c\n"hidden-size": 8,\n"pipe-parallel-size": 1}'
    for text in (braces, "vocab_file: a\ndata_path: b\n"):
        assert sniff("125M.yml", text) >= 0.5
        with pytest.raises(SourceError, match="not supported yet"):
            read(text, "125M.yml")


@pytest.mark.parametrize(
    ("name", "text", "least"),
    [
        ("ds.json", SMALL, 0.5),
        ("x", '# c\n{"zero_optimization": {}, "bf16": {}}', 0.5),
        ("ds.json", '{"a": 1}', 0.0),
        ("run.sh", "deepspeed train.py --deepspeed ds.json", 0.5),
        ("acc.yaml", "distributed_type: DEEPSPEED\ndeepspeed_config: {}\n", 0.5),
        ("run.sh", "torchrun pretrain_gpt.py --tensor-model-parallel-size 2", 0.0),
        ("c.toml", "[training]\nsteps = 1", 0.0),
    ],
)
def test_sniff(name: str, text: str, least: float) -> None:
    assert (sniff(name, text) >= 0.5) == (least >= 0.5)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * (MAX_DEPTH + 2) + "1" + "}" * (MAX_DEPTH + 2),
        "{" * 100_000,
        '{"a": ' + "[" * 100_000,
        '{"a": [' + "1," * 200_000 + "]}",
        '{"a": "' + "x" * 1_000_000,
        '{"train_batch_size": ' + "9" * 100_000 + "}",
        '{"train_batch_size": NaN, "gradient_clipping": Infinity\n}',
        '{"train_batch_size": 1e999}',
        "{" + "/*" * 100_000,
        "{" + "#\n" * 100_000 + "}",
        '{"a": $' + "(" * 50_000,
        "a" * 200_000,
        "{" + "".join(f'"zero_optimizatio{number}": 1,\n' for number in range(40_000)) + "}",
        '{"fp16": {' + ",".join(f'"{number}{"x" * 60}": 1' for number in range(20_000)) + "}}",
        "",
        "{}",
        "[]",
        '{"zero_optimization": [], "optimizer": 3, "scheduler": null, "fp16": "x", "train_batch_size": []}',
    ],
)
def test_hostile_text_is_bounded(text: str) -> None:
    start = time.perf_counter()
    for name in ("ds.json", "ds.yaml"):
        with suppress(TtxError):
            settle(read(text, name, world_size=8))
    assert time.perf_counter() - start < 15


def test_yaml_bombs_are_bounded() -> None:
    lines = ["deepspeed: &a0 {x: 1}"] + [f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(SourceError):
        read("\n".join([*lines, "learning_rate: 1", "output_dir: x"]), "x.yaml")


KEYS = st.sampled_from(
    ["train_batch_size", "zero_optimization", "stage", "fp16", "enabled", "optimizer", "type", "params", "lr", "betas"]
) | st.sampled_from(
    ["scheduler", "warmup_num_steps", "gradient_clipping", "offload_param", "device", "bf16", "checkpoint", "amp", "x"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["auto", "AdamW", "WarmupLR", "cpu", "$X", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=6), st.sampled_from(["0.16.9", "0.19.2", "0.19.8"]))
def test_anything_that_is_json_reads(config: dict[str, object], version: str) -> None:
    native = read(json.dumps(config), version=version, world_size=8)
    settle(native)
    assert all(finding.code in codes.CODES for finding in native.findings)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="{}[]:,\"'#/*\n $abtruefals01e-.\\", max_size=80))
def test_any_text_reads_or_is_refused(text: str) -> None:
    reason = ""
    try:
        settle(read("{" + text, world_size=2))
    except TtxError as error:
        reason = str(error)
    assert "\n" not in reason


def test_corpus() -> None:
    folder = os.environ.get("TTX_CORPUS")
    if not folder:
        pytest.skip("TTX_CORPUS names no folder with configurations")
    refused = []
    for path in sorted((Path(folder) / "deepspeed").iterdir()):
        if path.suffix in {".json", ".yml"}:
            text = path.read_text(encoding="utf-8")
            assert sniff(path.name, text) >= 0.5, path.name
            try:
                settle(read(text, path.name, world_size=8))
            except SourceError as error:
                refused.append(str(error))
    assert len(refused) == 39
    assert all("gpt-neox" in reason for reason in refused)
