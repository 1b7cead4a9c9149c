"""The catalogues that ship: how many options, how fast they load, what they say."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from translator.catalogue import Catalogue, flavors, history, load, nearest, versions
from translator.catalogue.document import catalogue_text, history_text
from translator.errors import UsageError
from translator.frameworks.catalogues import generate
from translator.resources import schema_path

# Options and flags of the real parsers, without the packages that add their own.
MEGATRON = {
    "0.12.0": (455, 456),
    "0.14.0": (513, 514),
    "0.15.0": (565, 575),
    "0.16.0": (651, 680),
    "0.17.0": (700, 731),
    "0.18.0": (750, 785),
    "0.19.0": (807, 845),
}
MODELOPT = {"0.12.0": 13, "0.14.0": 14, "0.15.0": 17, "0.16.0": 18, "0.17.0": 19, "0.18.0": 19, "0.19.0": 21}
TORCHTITAN = {"0.1.0": 102, "0.2.2": 149, "0.3.0": 215}
SHIPPED = [("megatron", version) for version in MEGATRON] + [("torchtitan", version) for version in TORCHTITAN]


def test_versions_are_in_order() -> None:
    assert versions("megatron") == tuple(MEGATRON)
    assert versions("torchtitan") == tuple(TORCHTITAN)


@pytest.mark.parametrize("version", MEGATRON)
def test_megatron_counts(version: str) -> None:
    catalogue = load("megatron", version)
    core = [entry for entry in catalogue.entries if entry.conditional is None]
    assert (len(core), sum(len(entry.flags) for entry in core)) == MEGATRON[version]
    counts = {name: sum(entry.conditional == name for entry in catalogue.entries) for name in ("kitchen", "modelopt")}
    assert counts == {"kitchen": 2 if version >= "0.16.0" else 0, "modelopt": MODELOPT[version]}


@pytest.mark.parametrize("version", TORCHTITAN)
def test_torchtitan_counts(version: str) -> None:
    assert len(load("torchtitan", version)) == TORCHTITAN[version]


@pytest.mark.parametrize(("framework", "version"), SHIPPED)
def test_catalogue_is_consistent(framework: str, version: str) -> None:
    catalogue = load(framework, version)
    assert len({entry.key for entry in catalogue.entries}) == len(catalogue)
    flags = [flag for entry in catalogue.entries for flag in entry.flags]
    assert len(flags) == len(set(flags))
    assert catalogue.addresses() == tuple(sorted(catalogue.addresses()))
    for entry in catalogue.entries:
        assert all(catalogue.by_flag(flag) is entry for flag in entry.flags)
        assert entry.flags or (framework, version) == ("torchtitan", "0.3.0")  # what only Python can state
        assert entry in catalogue.by_address(entry.address)
        assert entry.default_known == (entry.dynamic is None)
        if entry.choices and entry.default is not None and entry.default_known and entry.arity is None:
            assert entry.default in entry.choices


@pytest.mark.parametrize(("framework", "version"), SHIPPED)
def test_file_is_what_its_entries_write(framework: str, version: str) -> None:
    catalogue = load(framework, version)
    text = schema_path(framework, f"{version}.json").read_text(encoding="utf-8")
    assert catalogue_text(framework, version, catalogue.entries) == text


@pytest.mark.parametrize("framework", ["megatron", "torchtitan"])
def test_history_is_what_the_catalogues_say(framework: str) -> None:
    catalogues = [load(framework, version) for version in versions(framework)]
    text = schema_path(framework, "history.json").read_text(encoding="utf-8")
    assert history_text(framework, catalogues) == text


def test_history_of_options() -> None:
    past = history("megatron")
    assert past.flag_span("--use-custom-fsdp") == ("0.12.0", "0.14.0")
    assert past.flag_span("--cuda-graph-modules") == ("0.18.0", None)
    assert past.flag_span("--tensor-model-parallel-size") == ("0.12.0", None)
    assert past.address_span("moe_extended_tp")[1] == "0.17.0"
    assert past.knows_flag("--use-custom-fsdp")
    assert not past.knows_flag("--tensor-model-parallel-size")
    assert past.renames["norm_epsilon"] == ["layernorm_epsilon", "0.16.0"]


def test_defaults_that_versions_disagree_about() -> None:
    past = history("megatron")
    assert past.drift["eval_interval"] == {"0.12.0": 1000, "0.16.0": None}
    assert past.drift["data_parallel_sharding_strategy"] == {"0.12.0": "no_shard", "0.18.0": "optim_grads_params"}
    assert not past.default_drifts("lr")
    assert history("torchtitan").default_drifts("job.dump_folder")


@pytest.mark.parametrize(
    ("address", "flags", "default"),
    [
        ("add_bias_linear", ("--disable-bias-linear",), True),
        ("layernorm_epsilon", ("--norm-epsilon",), 1e-5),
        ("num_layers", ("--num-layers",), None),
        ("num_query_groups", ("--num-query-groups",), 1),
        ("gradient_accumulation_fusion", ("--no-gradient-accumulation-fusion",), True),
        ("hidden_dropout", ("--hidden-dropout",), 0.1),
        ("save_interval", ("--save-interval", "--persistent-save-interval"), None),
    ],
)
def test_megatron_options(address: str, flags: tuple[str, ...], default: object) -> None:
    catalogue = load("megatron", "0.18.0")
    (entry,) = catalogue.by_address(address)
    assert (entry.flags, entry.default) == (flags, default)
    assert catalogue.default(address) == default


def test_what_a_bare_flag_stores() -> None:
    catalogue = load("megatron", "0.18.0")

    def stored(flag: str) -> object:
        entry = catalogue.by_flag(flag)
        assert entry is not None
        return entry.value_of_flag(flag)

    assert stored("--swiglu") is True
    assert stored("--disable-bias-linear") is False
    both = next(entry for entry in catalogue.entries if entry.negative_flags)
    assert [both.value_of_flag(flag) for flag in both.flags] == [True, False]
    assert both.aliases == ()
    with pytest.raises(ValueError, match="takes a value"):
        stored("--num-layers")


def test_torchtitan_flags() -> None:
    catalogue = load("torchtitan", "0.2.2")
    for flag, stored in (("--debug.deterministic", True), ("--debug.no-deterministic", False)):
        entry = catalogue.by_flag(flag)
        assert entry is not None
        assert (entry.address, entry.takes_value, entry.value_of_flag(flag)) == ("debug.deterministic", False, stored)
    steps = catalogue.by_flag("--training.local-batch-size")
    assert steps is catalogue.first("training.local_batch_size")
    assert catalogue.by_flag("--training.nonesuch") is None
    early = catalogue.by_flag("--activation_checkpoint.no_early-stop")
    assert early is not None
    assert early.value_of_flag("--activation_checkpoint.no_early-stop") is False


def test_flavors_of_torchtitan() -> None:
    table = flavors("torchtitan", "0.2.2")
    assert {"llama3", "llama4", "qwen3", "deepseek_v3", "gpt_oss"} <= table.keys()
    llama = table["llama3"]["8B"]["args"]
    assert (llama["dim"], llama["n_kv_heads"], llama["vocab_size"]) == (4096, 8, 128256)
    assert llama["rope_scaling_args"]["original_max_position_embeddings"] == 8192
    deepseek = table["deepseek_v3"]["671B"]["args"]["moe_args"]
    assert (deepseek["num_experts"], deepseek["top_k"], deepseek["use_grouped_mm"]) == (256, 8, True)
    assert table["llama3_ft"] is table["llama3"]
    assert {"llama3", "llama4"} <= flavors("torchtitan", "0.1.0").keys()


def test_nearest() -> None:
    catalogue = load("megatron", "0.18.0")
    assert nearest("--tensor-model-paralel-size", catalogue)[0] == "--tensor-model-parallel-size"
    assert nearest("--num_layers", catalogue)[0] == "--num-layers"
    assert nearest("training.stpes", load("torchtitan", "0.2.2"), 1) == ["training.steps"]
    assert nearest("qqqqqqqqqqqqqqqqqqqqqq", catalogue) == []


@pytest.mark.parametrize(
    ("framework", "version"), [("unheard-of", "1.0"), ("megatron", "9.9.9"), ("megatron", "../x"), ("..", "0.1.0")]
)
def test_unknown_names_are_refused(framework: str, version: str) -> None:
    with pytest.raises(UsageError, match="no catalogue"):
        load(framework, version)
    with pytest.raises(UsageError, match="no model flavors"):
        flavors(framework, version)


def test_loading_is_fast() -> None:
    """Building 800 entries may cost only a small multiple of parsing their JSON, on any machine."""
    text = schema_path("megatron", "0.19.0.json").read_bytes()

    def best(action: object) -> float:
        assert callable(action)
        times = []
        for _ in range(7):
            start = time.perf_counter()
            action()
            times.append(time.perf_counter() - start)
        return min(times)

    assert best(lambda: load.__wrapped__("megatron", "0.19.0")) < 8 * best(lambda: json.loads(text))


def _upstream(framework: str, version: str) -> Path:
    folder = os.environ.get("TTX_UPSTREAM")
    source = Path(folder or "") / framework / version
    if not folder or not source.is_dir():
        pytest.skip("TTX_UPSTREAM names no folder with this version's source")
    return source


@pytest.mark.parametrize(("framework", "version"), SHIPPED)
def test_shipped_files_are_what_upstream_gives(framework: str, version: str) -> None:
    source = _upstream(framework, version)
    assert generate(framework, version, source) == schema_path(framework, f"{version}.json").read_text("utf-8")
    if framework == "torchtitan":
        name = f"flavors-{version}.json"
        assert generate(framework, version, source, "flavors") == schema_path(framework, name).read_text("utf-8")


def test_catalogue_without_options_is_empty() -> None:
    empty = Catalogue("none", "0", ())
    assert len(empty) == 0
    assert "x" not in empty
    assert empty.by_flag("--x") is None
    assert empty.by_address("x") == ()
