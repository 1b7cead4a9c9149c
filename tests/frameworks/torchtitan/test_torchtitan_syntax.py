"""Reading and writing torchtitan TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translator.errors import SourceError
from translator.findings import Level
from translator.frameworks.torchtitan import syntax_toml
from translator.frameworks.torchtitan.codes import CODES
from translator.frameworks.torchtitan.positions import locate
from translator.frameworks.torchtitan.renames import TO_010, TO_022
from translator.native import WORLD_SIZE, Native

PLAIN = """\
# ttx: world_size=64
[model]
name = "llama3"  # a comment
flavor = "8B"

[training]
seq_len = 8_192
"local_batch_size" = 2

[optimizer]
lr = 1

[parallelism]
module_fqns_per_model_part = [["tok_embeddings", "layers.0"],
    ["norm", "output"]]
"""


def read(text: str, version: str = "0.2.2", **options: object) -> Native:
    return syntax_toml.read_source("run.toml", text, version=version, **options)  # type: ignore[arg-type]


def codes(native: Native) -> list[str]:
    return [finding.code for finding in native.findings]


def test_values_have_type_spelling_and_place() -> None:
    native = read(PLAIN)
    assert native.findings == []
    assert native.unknown == []
    given_values = {address: entry.value for address, entry in native.given.items()}
    assert given_values == {
        WORLD_SIZE: 64,
        "model.name": "llama3",
        "model.flavor": "8B",
        "training.seq_len": 8192,
        "training.local_batch_size": 2,
        "optimizer.lr": 1.0,
        "parallelism.module_fqns_per_model_part": [["tok_embeddings", "layers.0"], ["norm", "output"]],
    }
    assert isinstance(given_values["optimizer.lr"], float)
    assert str(native.given["training.local_batch_size"].place) == "run.toml:8:1"
    assert native.given["training.local_batch_size"].written == "training.local_batch_size"
    assert str(native.given[WORLD_SIZE].place) == "run.toml:1:1"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("training.steps = 3\n", 1, 1),
        ("training = { seq_len = 1, steps = 3 }", 1, 27),
        ('["training"]\r\n# é\r\n  "steps" = 3\r\n', 3, 3),
        ('job = { description = "é" }\n[training]\nsteps = 3', 3, 1),
        ("[training]\n'steps' = 3 # steps = 4\n", 2, 1),
        ('[job]\ndescription = """\nsteps = 1\n"""\n[training]\nsteps = 3\n', 6, 1),
        ("[training.dataloader]\nnum_workers = 1\n[training]\nsteps = 3\n", 4, 1),
    ],
)
def test_places_of_keys_in_every_form(text: str, line: int, column: int) -> None:
    place = read(text).given["training.steps"].place
    assert place is not None
    assert (place.line, place.column) == (line, column)


def test_columns_count_characters() -> None:
    found = locate('"ü" = {"é.x" = 1, b = 2}\n').keys
    assert found["ü", "é.x"] == (1, 8, 1, 13)
    assert found["ü", "b"] == (1, 19, 1, 20)


KEYS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)


@given(
    st.dictionaries(KEYS, st.dictionaries(KEYS, st.one_of(st.integers(), st.text(max_size=4)), max_size=3), max_size=4)
)
def test_every_key_of_written_text_has_a_place(tables: dict[str, dict[str, object]]) -> None:
    values = [(f"{section}.{name}", value, None) for section, inner in tables.items() for name, value in inner.items()]
    values = [row for row in values if row[0].count(".") == 1]
    text = syntax_toml.write_toml(values, [])
    wanted = {tuple(address.split(".")) for address, _, _ in values}
    assert {path for path in locate(text).keys if len(path) == 2} == wanted


@pytest.mark.parametrize(
    "value", [{}, [{}], [{"x": 1}, {"y.z": [1, [2]]}], {"k": {"l": ["a", 'b"c']}}, [[1], {"q": 2}]]
)
def test_tables_within_values_are_written_inline(value: object) -> None:
    text = syntax_toml.write_toml([("here", value, None), ("a.b", value, "why")], [])
    assert tomllib.loads(text) == {"here": value, "a": {"b": value}}


@pytest.mark.parametrize(
    ("name", "level", "way_out"), [("llama3", "error", "remove it"), ("my_model", "warning", "job.custom_")]
)
def test_a_model_of_another_module_may_bring_options(name: str, level: str, way_out: str) -> None:
    native = read(f"[model]\nname = '{name}'\nxyzzy = 1\n[hf_transformers]\nmodel = 'q'\n")
    said = [f for f in native.findings if f.code in ("R090", "R091")]
    assert [f.level.value for f in said] == [level, level]
    assert all(way_out in f.fix for f in said)


def test_unknown_options_and_sections_are_kept_and_named() -> None:
    native = read("[training]\nstep = 5\n[trainin]\na = 1\nb = {c = 2}\n[compile]\nenable = true\n")
    assert {entry.address: entry.value for entry in native.unknown} == {
        "training.step": 5,
        "trainin.a": 1,
        "trainin.b.c": 2,
    }
    assert codes(native) == ["R090", "R091"]
    assert "training.steps" in native.findings[0].fix
    assert "training" in native.findings[1].fix
    assert str(native.findings[1].place) == "run.toml:3:2"
    assert list(native.given) == ["compile.enable"]


def test_an_extension_may_add_what_is_unknown() -> None:
    native = read('[job]\ncustom_config_module = "x"\n[encoder]\na = 1\nb = 2\n[training]\nimg_size = 2\n')
    assert codes(native) == ["R098", "R098"]
    assert {finding.level for finding in native.findings} == {Level.NOTE}
    assert len(native.unknown) == 3


@pytest.mark.parametrize("name", sorted(TO_022))
def test_names_of_0_1_0_are_recognised_in_0_2_2(name: str) -> None:
    native = read(f"{name} = 1\n")
    assert codes(native) == ["R094" if TO_022[name].address is None else "R093"]
    successor = TO_022[name].address
    if successor is not None:
        assert successor in native.findings[0].message
    assert [entry.address for entry in native.unknown] == [name]


def test_names_of_0_2_2_are_recognised_in_0_1_0() -> None:
    native = read("[compile]\nenable = true\n[validation]\nfreq = 3\n", "0.1.0")
    assert codes(native) == ["R093", "R094"]
    assert "training.compile" in native.findings[0].message


OLD = """\
[model]
norm_type = "rmsnorm"
[training]
batch_size = 8
tensor_parallel_degree = 2
warmup_steps = 10
data_parallel_degree = -1
enable_float8_linear = true
[experimental]
pipeline_parallel_degree = 4
pipeline_parallel_microbatches = 8
[metrics]
enable_color_printing = true
"""


def test_layouts_of_2024_are_read_as_0_1_0() -> None:
    assert syntax_toml.guess_version(syntax_toml.paths("old.toml", OLD)) == "0.1.0"
    native = read(OLD, "0.1.0")
    assert {address: (entry.value, entry.written) for address, entry in native.given.items()} == {
        "training.local_batch_size": (8, "training.batch_size"),
        "parallelism.tensor_parallel_degree": (2, "training.tensor_parallel_degree"),
        "lr_scheduler.warmup_steps": (10, "training.warmup_steps"),
        "parallelism.data_parallel_shard_degree": (-1, "training.data_parallel_degree"),
        "model.converters": (["float8"], "training.enable_float8_linear"),
        "parallelism.pipeline_parallel_degree": (4, "experimental.pipeline_parallel_degree"),
        "metrics.disable_color_printing": (False, "metrics.enable_color_printing"),
    }
    assert [entry.address for entry in native.unknown] == [
        "model.norm_type",
        "experimental.pipeline_parallel_microbatches",
    ]
    assert sorted(set(codes(native))) == ["R092", "R094"]


def test_an_old_name_beside_its_successor_is_ignored() -> None:
    native = read("[training]\nbatch_size = 8\nlocal_batch_size = 4\n", "0.1.0")
    assert native.given["training.local_batch_size"].value == 4
    assert [entry.address for entry in native.unknown] == ["training.batch_size"]
    assert codes(native) == ["R092"]


@pytest.mark.parametrize("version", syntax_toml.VERSIONS)
def test_renames_lead_to_options_that_exist(version: str) -> None:
    from translator.catalogue import load

    table = TO_022 if version == "0.2.2" else TO_010
    catalogue = load("torchtitan", version)
    assert [rename.address for rename in table.values() if rename.address and rename.address not in catalogue] == []
    assert [name for name in table if name in catalogue] == []
    if version == "0.2.2":
        assert [name for name in table if name not in load("torchtitan", "0.1.0")] == []


@pytest.mark.parametrize(
    ("text", "code", "value"),
    [
        ('training.steps = "7"', "R095", 7),
        ("training.steps = 7.0", "R095", 7),
        ("training.steps = 7.5", "R096", None),
        ("training.steps = true", "R095", 1),
        ("training.steps = [1]", "R096", None),
        ("training.steps = 2024-01-01", "R096", None),
        ('optimizer.lr = "1e-3"', "R095", 1e-3),
        ("compile.enable = 1", "R095", True),
        ('compile.enable = "yes"', "R096", None),
        ("activation_checkpoint.selective_ac_option = 2", "R095", "2"),
        ('model.converters = "float8"', "R095", ["float8"]),
        ("model.converters = [1.5, {}]", "R096", None),
        ('parallelism.module_fqns_per_model_part = ["a"]', "R096", None),
        ('lr_scheduler.decay_type = "exp"', "R097", None),
        ('quantize.grouped_mm.mx.fqns = "experts"', None, "experts"),
        ("training.max_norm = 1", None, 1),
        ("optimizer.lr = 1" + "0" * 400, "R096", None),
    ],
)
def test_values_of_another_type(text: str, code: str | None, value: object) -> None:
    native = read(text)
    address = text.partition(" ")[0]
    assert codes(native) == ([code] if code else [])
    if value is None:
        assert address not in native.given
        assert [entry.address for entry in native.unknown] == [address]
    else:
        assert native.given[address].value == value
        assert type(native.given[address].value) is type(value)
    if code == "R095":
        # What the finding says to write mends it.
        (finding,) = native.findings
        mended = read(f"{address} = {finding.fix.removeprefix('write ')}")
        assert (codes(mended), mended.given[address].value) == ([], value)


def test_tables_and_values_confused() -> None:
    native = read("training = 3\n[optimizer.lr]\nx = 1\ny = 2\n")
    assert codes(native) == ["R100", "R100"]
    assert [entry.address for entry in native.unknown] == ["training", "optimizer.lr.x", "optimizer.lr.y"]


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        "[a]\nb = 1\nb = 2",
        "a = " + "[" * 3000 + "]" * 3000,
        "a = " + "{a=" * 900 + "1" + "}" * 900,
        "a = " + "9" * 5000,
        'a = "\\ud800"',
        "#!/bin/bash\ntorchrun train.py\n",
        '{"train_batch_size": 8}',
    ],
)
def test_what_is_no_toml_stops_with_one_line(text: str) -> None:
    with pytest.raises(SourceError) as stopped:
        read(text)
    assert "\n" not in str(stopped.value)


def test_errors_have_line_and_column() -> None:
    with pytest.raises(SourceError) as stopped:
        read("[training]\nsteps = 1 2\n")
    assert stopped.value.place is not None
    assert (stopped.value.place.line, stopped.value.place.column) == (2, 11)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read(text)
    except SourceError:
        return


def test_a_byte_order_mark_is_reported() -> None:
    native = read("\ufefftraining.steps = 3\n")
    assert codes(native) == ["R101"]
    assert native.given["training.steps"].value == 3


def test_hints() -> None:
    native = read(
        "# ttx: world_size=16 ignore=S154\n#ttx: nodes=2 gpus_per_node=-1\njob.description = '# ttx: nodes=9'\n"
    )
    assert native.given[WORLD_SIZE].value == 16
    assert native.given["@nodes"].value == 2
    assert "@gpus_per_node" not in native.given
    assert codes(native) == ["R103"]
    assert read("# ttx: world_size=16\n", world_size=8).given[WORLD_SIZE].value == 8
    assert syntax_toml.guess_version([], "# ttx: version=0.1.0\n") == "0.1.0"


def test_sniff() -> None:
    assert syntax_toml.sniff("x.toml", PLAIN) > 0.9
    assert syntax_toml.sniff("pyproject.toml", "[project]\nname = 'x'\n") == 0.0
    assert syntax_toml.sniff("x.sh", "#!/bin/bash\n[ -z $A ]\n[[ a ]]\n") == 0.0


def test_written_text_is_in_order_and_comments_line_up() -> None:
    text = syntax_toml.write_toml(
        [
            ("parallelism.tensor_parallel_degree", 2, "from --tensor-model-parallel-size 2"),
            ("job.description", 'a "b"\n\\c', None),
            ("training.seq_len", 8192, "from --seq-length"),
            ("parallelism.module_fqns_per_model_part", [["tok_embeddings"], ["norm", "output"]], "why\nnot"),
            ("optimizer.eps", 1e-8, None),
            ("quantize.linear.float8.filter_fqns", ["output"], None),
            ("lr_scheduler.total_steps", None, "left out"),
        ],
        ["ttx: world_size=64", "two\nlines"],
    )
    assert text.splitlines()[:3] == ["# ttx: world_size=64", "# two lines", ""]
    headers = [line for line in text.splitlines() if line.startswith("[") and not line.startswith("[[")]
    assert headers == ["[job]", "[optimizer]", "[training]", "[parallelism]", "[quantize.linear.float8]"]
    assert '    ["norm", "output"],\n]' in text
    columns = {line.index("  # from") for line in text.splitlines() if "  # from" in line}
    assert len(columns) == 1
    assert tomllib.loads(text)["job"]["description"] == 'a "b"\n\\c'
    assert read(text).given[WORLD_SIZE].value == 64


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=("Cs",))),
)
VALUES = st.one_of(SCALARS, st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=5), max_size=3))
ADDRESSES = st.from_regex(r"[a-z_]{1,8}\.[A-Za-z0-9_-]{1,8}", fullmatch=True)


@given(st.dictionaries(ADDRESSES, VALUES, max_size=8), st.text(st.characters(exclude_categories=("Cs",))))
def test_written_text_reads_back(values: dict[str, object], comment: str) -> None:
    text = syntax_toml.write_toml([(address, value, comment) for address, value in values.items()], [comment])
    found = tomllib.loads(text)
    back = {f"{section}.{name}": value for section, table in found.items() for name, value in table.items()}
    assert back == values


@pytest.mark.corpus
def test_every_file_of_both_releases_is_read_as_its_version(corpus: Path) -> None:
    files = sorted(corpus.glob("torchtitan/*/*.toml"))
    assert len(files) >= 34
    for file in files:
        text = file.read_text(encoding="utf-8")
        version = syntax_toml.guess_version(syntax_toml.paths(file.name, text), text)
        assert version == file.parent.name, file.name
        native = syntax_toml.read_source(file.name, text, version=version)
        assert len(native.given) > 30, file.name
        assert sorted(syntax_toml.paths(file.name, text)) == sorted(
            [entry.written for entry in [*native.given.values(), *native.unknown]]
        ), file.name
        assert all(entry.place is not None for entry in native.given.values())


def test_every_code_is_documented_with_a_way_out() -> None:
    for code, (title, text) in CODES.items():
        assert title
        assert "Way out:" in text, code
        assert code[:2] in {"R0", "R1", "S1"}
