"""``ttx parse`` and ``ttx render``: the spec as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_support import Ttx
from hypothesis import given, settings
from hypothesis import strategies as st

from translator.compare import equal
from translator.reading import Reading
from translator.source import Source
from translator.spec_file import read_spec, to_yaml

SIZES = "model: {layers: 4, hidden: 64, ffn: 128, heads: 4, kv_heads: 2, head_dim: 16, norm: rmsnorm}\n"


def values(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def test_parse_prints_a_spec_and_nothing_else(ttx: Ttx, script: Path) -> None:
    result = ttx("parse", script)
    spec = values(result.out)
    assert result.code == 0
    assert spec["model"]["layers"] == 32
    assert spec["parallel"]["tensor"] == 2
    assert spec["batch"] | {"accumulation": 0} == {
        "micro_batch": 1,
        "global_batch": 512,
        "seq_len": 8192,
        "accumulation": 0,
    }
    assert "\x1b" not in result.out + result.err


def test_parse_as_json(ttx: Ttx, script: Path) -> None:
    result = ttx("parse", script, "--format", "json")
    document = result.document
    assert (result.code, result.err) == (0, "")
    assert list(document) == ["schema_version", "framework", "version", "spec", "origins", "findings"]
    assert (document["schema_version"], document["framework"], document["version"]) == (1, "megatron", "0.18.0")
    tensor = document["origins"]["parallel.tensor"]
    assert list(tensor) == ["origin", "option", "where", "note"]
    assert (tensor["origin"], tensor["option"]) == ("explicit", "--tensor-model-parallel-size")
    assert tensor["where"]["file"] == str(script)
    assert {origin["origin"] for origin in document["origins"].values()} <= {
        "explicit",
        "default",
        "derived",
        "unknown",
    }


def test_parse_ends_with_1_on_an_error_that_the_framework_would_make(ttx: Ttx, tmp_path: Path) -> None:
    source = tmp_path / "train.sh"
    source.write_text("torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 2 --hidden-size 64\n")
    result = ttx("parse", source)
    assert result.code == 1
    assert "error S" in result.err
    assert values(result.out)["model"]["hidden"] == 64
    assert ttx("parse", source, "--format", "json").code == 1


@pytest.mark.parametrize(
    ("example", "target"),
    [("llama3-8b-megatron/train.sh", "megatron@0.18.0"), ("llama3-8b-megatron/train.sh", "megatron@0.16.0")],
)
def test_a_spec_survives_the_way_through_its_framework(
    ttx: Ttx, examples: Path, tmp_path: Path, example: str, target: str
) -> None:
    first = ttx("parse", examples / example, "--from", target)
    (tmp_path / "s.yaml").write_text(first.out)
    rendered = ttx("render", tmp_path / "s.yaml", "--to", target)
    assert rendered.code == 0, rendered.err
    (tmp_path / "again.sh").write_text(rendered.out)
    again = ttx("parse", tmp_path / "again.sh", "--from", target)
    wanted, found = values(first.out), values(again.out)
    wanted.pop("extras", None), found.pop("extras", None)
    assert found == wanted


def test_a_torchtitan_file_survives_too(ttx: Ttx, toml: Path, tmp_path: Path) -> None:
    first = ttx("parse", toml, "--world-size", "16")
    (tmp_path / "s.yaml").write_text(first.out)
    rendered = ttx("render", tmp_path / "s.yaml", "--to", "torchtitan")
    (tmp_path / "again.toml").write_text(rendered.out)
    assert values(ttx("parse", tmp_path / "again.toml").out) == values(first.out)


def test_a_spec_is_a_source_on_equal_terms(ttx: Ttx, script: Path, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(ttx("parse", script).out)
    result = ttx("convert", spec, "--to", "torchtitan", "batch.global_batch=64", "--format", "json")
    assert result.document["source"] == {"framework": "spec", "version": "1"}
    assert "global_batch_size = 64" in result.document["files"]["train.toml"]
    lines = {line["option"]: line for line in result.document["ledger"]}
    assert lines["parallel.tensor"]["target"] == "parallelism.tensor_parallel_degree = 2"
    assert ttx("parse", spec).out == spec.read_text()
    piped = ttx("convert", "-", "--from", "spec", "--to", "torchtitan", stdin=spec.read_bytes())
    assert piped.out.replace("<stdin>", str(spec)) == ttx("convert", spec, "--to", "torchtitan").out


def test_render_merges_from_left_to_right(ttx: Ttx, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SIZES + "batch: {seq_len: 128, micro_batch: 1}\nparallel: {tensor: 1}\n")
    (tmp_path / "b.yaml").write_text("parallel: {tensor: 2}\nbatch: {global_batch: 8}\n")
    words = (tmp_path / "a.yaml", tmp_path / "b.yaml", "--to", "spec", "batch.seq_len=256", "optimizer.lr=3e-4")
    spec = values(ttx("render", *words).out)
    assert spec["parallel"]["tensor"] == 2
    assert spec["batch"] == {"micro_batch": 1, "global_batch": 8, "seq_len": 256}
    assert spec["optimizer"]["lr"] == 3e-4
    assert values(ttx("render", *reversed(words[:2]), "--to", "spec").out)["parallel"]["tensor"] == 1


def test_render_interpolates(ttx: Ttx, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(SIZES + "batch: {seq_len: '${model.max_positions}'}\n")
    spec = values(ttx("render", path, "model.max_positions=512", "--to", "spec").out)
    assert spec["batch"]["seq_len"] == 512
    path.write_text(SIZES + "checkpoint: {save: '/runs/${model.layers}x${model.hidden}', load: '${.save}'}\n")
    assert values(ttx("render", path, "--to", "spec").out)["checkpoint"] == {"save": "/runs/4x64", "load": "/runs/4x64"}


def test_render_reads_standard_input(ttx: Ttx) -> None:
    result = ttx("render", "-", "--to", "spec", "parallel.tensor=2", stdin=SIZES.encode())
    assert (result.code, values(result.out)["parallel"]["tensor"]) == (0, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: {layrs: 4}\n", "nearest: model.layers"),
        ("model: {layers: many}\n", "model.layers"),
        ("model: {layers: 0}\n", "model.layers"),
        ("modle: {layers: 4}\n", "modle"),
        ("- model\n", "no mapping"),
        ("model\n", "model"),
        ("1: 2\n", "1"),
        ("model: [1, 2\n", "a.yaml:2:1: not valid YAML"),
        ("model: {name: !!python/object/apply:os.system ['id']}\n", "not valid YAML"),
        ("model: {name: &x a, family: *x}\n", "YAML aliases are not read"),
        ("model: {name: '${oc.env:HOME}'}\n", "only ${section.field} is read"),
        ("model: {name: '${model.nothing}'}\n", "model.nothing"),
        ("model: {name: '${model.family}', family: '${model.name}'}\n", "refers to itself"),
        ("model: {name: '${model}'}\n", "refers to itself"),
        ("model: {name: '${'}\n", "a.yaml"),
        ("extras: {megatron: 5}\n", "extras"),
        ("? [a, b]\n: 1\n", "a.yaml"),
        ("model: " + "[" * 10_000 + "\n", "a.yaml"),
        ("model: " + "[" * 100 + "]" * 100 + "\n", "nested too deeply"),
        ("model: {name: " + "a" * 1_100_000 + "}\n", "too large"),
    ],
)
def test_a_wrong_spec_is_one_line(ttx: Ttx, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    for words in (
        ("render", tmp_path / "a.yaml", "--to", "torchtitan"),
        ("parse", tmp_path / "a.yaml", "--from", "spec"),
    ):
        result = ttx(*words)
        assert (result.code, result.out) == (2, "")
        assert len(result.err.splitlines()) == 1
        assert said in result.err


@pytest.mark.parametrize("joined", ["'{x}{x}'", "[{x}, {x}]"])
def test_interpolations_that_grow_without_bound(ttx: Ttx, tmp_path: Path, joined: str) -> None:
    lines = ["  k0: 'aaaaaaaaaa'"]
    lines += [f"  k{n}: {joined.format(x=f'${{extras.m.k{n - 1}}}')}" for n in range(1, 60)]
    (tmp_path / "a.yaml").write_text("extras:\n m:\n" + "\n".join(lines) + "\n")
    result = ttx("render", tmp_path / "a.yaml", "--to", "torchtitan")
    assert (result.code, len(result.err.splitlines())) == (2, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "torchtitan", "a.b=1"), "no spec file"),
        (("missing.yaml", "--to", "torchtitan"), "no such file: missing.yaml"),
        (("a.yaml", "model.layrs=1", "--to", "torchtitan"), "nearest: model.layers"),
        (("a.yaml", "model=1", "--to", "torchtitan"), "no field 'model'"),
        (("a.yaml", "extras.megatron.x=1", "--to", "spec"), ""),
    ],
)
def test_wrong_calls_of_render(
    ttx: Ttx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(SIZES)
    result = ttx("render", *words)
    assert result.code == (2 if said else 0)
    assert said in result.err


TEXT = st.one_of(st.text(max_size=20), st.text(alphabet="\\${}.:a1e-'\"[] \n#?&*!|>%@`~,", max_size=20))
EXTRAS = st.dictionaries(
    TEXT, st.one_of(TEXT, st.integers(), st.floats(allow_nan=False), st.booleans(), st.lists(TEXT)), max_size=3
)


@given(TEXT, TEXT, st.dictionaries(TEXT, TEXT, max_size=3), EXTRAS)
@settings(max_examples=200)
def test_any_text_survives_the_file(one: str, two: str, environment: dict[str, str], extras: dict[str, Any]) -> None:
    flat = {"data.split": one, "data.dataset": [one, two], "launch.environment": environment}
    back = read_spec([Source("s.yaml", to_yaml(Reading("x", "1", flat, {}, extras={"m": extras})))], {})
    assert all(equal(back.flat[leaf], value) for leaf, value in flat.items())
    assert back.extras == {"m": extras}


@pytest.mark.parametrize(
    "text", ["???", "1e5", "0x10", "on", "2024-01-01", "null", "~", "", " ", "${a}", "\\${a}", "1_0"]
)
def test_text_that_yaml_could_mistake(text: str) -> None:
    back = read_spec([Source("s.yaml", to_yaml(Reading("x", "1", {"data.split": text}, {})))], {})
    assert back.flat["data.split"] == text


def test_a_floor_below_zero_is_not_written(ttx: Ttx, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        SIZES + "batch: {micro_batch: 1, global_batch: 1, seq_len: 128}\noptimizer: {lr: 0.0078125}\n"
        "schedule: {unit: steps, total: 3, warmup: 0, decay: exponential, decay_start: 0, decay_length: 1, min_lr: 0, "
        "after_decay: continue}\n"
    )
    for version in ("0.1.0", "0.2.2", "0.3.0"):
        result = ttx("render", tmp_path / "a.yaml", "--to", f"torchtitan@{version}", "-o", tmp_path / version)
        assert result.code == 1, result.err
        names = [path.name for path in (tmp_path / version).iterdir()]
        (main,) = (name for name in names if name.endswith(".toml" if version < "0.3" else ".py"))
        assert ttx("parse", tmp_path / version / main).code in (0, 1)
