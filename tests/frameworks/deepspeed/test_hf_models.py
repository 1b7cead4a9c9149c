"""Hugging Face model configurations, read and written by one table per family."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from translator.api import convert, differences
from translator.frameworks.deepspeed import hf_models
from translator.frameworks.deepspeed.hf_models.base import Family
from translator.frameworks.deepspeed.named_models import architecture, find, names
from translator.ledger import Entry
from translator.reading import ReadOptions
from translator.spec import leaves

FAMILIES = list(hf_models.families().values())
SOURCE = os.environ.get("TTX_TRANSFORMERS_SRC", "")


def kind(family: Family) -> str:
    return family.model_type


@pytest.mark.parametrize("family", FAMILIES, ids=kind)
def test_every_leaf_is_one_of_the_spec(family: Family) -> None:
    assert {f"model.{leaf}" for row in family.rows for leaf in row.leaves} <= set(leaves())


@pytest.mark.parametrize("family", FAMILIES, ids=kind)
def test_no_two_rows_of_a_family_own_a_leaf(family: Family) -> None:
    owned = [leaf for row in family.rows for leaf in row.leaves]
    assert sorted(set(owned)) == sorted(owned)


@pytest.mark.parametrize("family", FAMILIES, ids=kind)
def test_a_default_model_reads_writes_and_reads_back(family: Family) -> None:
    first = hf_models.read({"model_type": family.model_type})
    written = hf_models.write(first.leaves)
    assert (written.family.model_type, written.missed) == (family.model_type, {})
    again = hf_models.read(json.loads(json.dumps(written.config)))
    assert again.leaves == first.leaves


@pytest.mark.parametrize("family", FAMILIES, ids=kind)
def test_what_a_family_writes_fits_its_class(family: Family) -> None:
    written = hf_models.write(hf_models.read({"model_type": family.model_type}).leaves)
    assert hf_models.misfits({**family.defaults, **written.config, "model_type": family.model_type}) == {}


@pytest.mark.parametrize(
    ("entry", "value", "expected"),
    [
        ("num_hidden_layers", "32", "a number is expected"),
        ("num_hidden_layers", True, "a number is expected"),
        ("rms_norm_eps", [1e-5], "a number is expected"),
        ("tie_word_embeddings", "true", "true or false is expected"),
        ("hidden_act", "foo", "one of "),
        ("hidden_act", ["silu"], "one of "),
        ("rope_scaling", 5, "an object is expected"),
        ("rope_theta", "1e4", "a number is expected"),
    ],
)
def test_an_entry_of_another_type_is_refused_and_open_in_the_ledger(
    tmp_path: Path, entry: str, value: object, expected: str
) -> None:
    config, model = tmp_path / "ds.json", tmp_path / "config.json"
    config.write_text(json.dumps({"train_batch_size": 8, "zero_optimization": {"stage": 1}}))
    model.write_text(json.dumps({"model_type": "llama", "hidden_size": 64, entry: value}, indent=1))
    done = convert(str(config), "megatron", options=ReadOptions(model=str(model), world_size=8))
    (finding,) = [finding for finding in done.findings if finding.option == entry]
    assert (finding.code, finding.level.value) == ("R133", "error")
    assert expected in finding.message
    assert finding.place is not None
    assert finding.place.line == 4
    (line,) = [line for line in done.ledger if line.option == entry]
    assert line.entry is Entry.NEEDS_INPUT


@pytest.mark.parametrize("target", ["megatron", "torchtitan", "torchtitan@0.3.0"])
@pytest.mark.parametrize("family", FAMILIES, ids=kind)
def test_each_family_is_written_with_its_differences(tmp_path: Path, family: Family, target: str) -> None:
    config, model = tmp_path / "ds.json", tmp_path / "config.json"
    config.write_text(json.dumps({"train_batch_size": 8, "zero_optimization": {"stage": 1}}))
    model.write_text(json.dumps({"model_type": family.model_type}))
    done = convert(str(config), target, options=ReadOptions(model=str(model), world_size=8))
    assert any(finding.code.startswith("D3") for finding in differences(done))


def test_a_model_type_that_is_no_name_is_not_known() -> None:
    assert hf_models.read({"model_type": ["llama"], "hidden_size": 64}).leaves == {"model.hidden": 64}


@pytest.mark.parametrize("name", names())
def test_a_named_architecture_has_a_configuration(name: str) -> None:
    wanted = architecture(name)
    assert set(wanted) <= set(leaves())
    written = hf_models.write(wanted)
    assert written.missed == {}
    found = hf_models.read(json.loads(find(name).text)).leaves
    assert {leaf: found.get(leaf) for leaf in wanted} == wanted


def test_the_width_of_a_head_need_not_follow_from_the_model() -> None:
    found = hf_models.read({"model_type": "qwen3", "hidden_size": 1024, "num_attention_heads": 16}).leaves
    assert found["model.head_dim"] == 128
    plain = hf_models.read({"model_type": "llama", "hidden_size": 1024, "num_attention_heads": 16}).leaves
    assert plain["model.head_dim"] == 64


@pytest.mark.parametrize(
    "entries",
    [
        {"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
         "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
         "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}},
    ],
    ids=["transformers 4", "transformers 5"],
)  # fmt: skip
def test_rotary_positions_are_read_as_both_transformers_write_them(entries: dict[str, Any]) -> None:
    found = hf_models.read({"model_type": "llama", **entries}).leaves
    assert found["model.rope_base"] == 500000.0
    assert found["model.rope.scaling"] == "llama3"
    assert found["model.rope.original_max_positions"] == 8192


def test_dense_layers_between_experts() -> None:
    config = {"model_type": "qwen3_moe", "num_hidden_layers": 6, "decoder_sparse_step": 2, "mlp_only_layers": [1]}
    assert hf_models.read(config).leaves["model.moe.dense_layers"] == [0, 1, 2, 4]


def test_an_unknown_model_type_says_what_its_entries_say() -> None:
    found = hf_models.read({"model_type": "unheard_of", "num_hidden_layers": 3, "hidden_size": 64, "swing": 1})
    assert found.family is None
    assert found.leaves == {"model.layers": 3, "model.hidden": 64}
    assert found.strangers == ("swing",)


@pytest.mark.parametrize("value", [True, "64", -1, 0, None, [64]])
def test_an_unknown_model_type_takes_no_odd_values(value: object) -> None:
    assert hf_models.read({"model_type": "unheard_of", "hidden_size": value}).leaves == {}


def test_the_text_part_of_a_model_of_several_counts() -> None:
    found = hf_models.read({"model_type": "gemma3", "text_config": {"hidden_size": 640}})
    assert found.leaves["model.hidden"] == 640


def test_a_model_that_no_family_is_comes_nearest_and_says_what_is_missed() -> None:
    wanted = hf_models.read({"model_type": "llama"}).leaves | {"model.norm": "layernorm"}
    written = hf_models.write(wanted)
    assert written.missed


def _defaults(path: Path, name: str) -> Iterator[tuple[str, Any]]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not (isinstance(node, ast.ClassDef) and node.name == name):
            continue
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.value is not None:
                value: ast.expr = item.value
                if isinstance(value, ast.Call):  # interval(...)(default=0.02)
                    value = next((word.value for word in value.keywords if word.arg == "default"), value)
                try:
                    yield item.target.id, eval(compile(ast.Expression(value), "", "eval"), {"__builtins__": {}})
                except NameError:
                    continue


@pytest.mark.skipif(not SOURCE, reason="TTX_TRANSFORMERS_SRC names no folder with transformers' models")
@pytest.mark.parametrize("family", FAMILIES, ids=kind)
def test_defaults_are_those_of_the_class(family: Family) -> None:
    path = Path(SOURCE) / family.source
    tree = ast.parse(path.read_text(encoding="utf-8"))
    matching = [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any(
            isinstance(item, ast.Assign)
            and getattr(item.targets[0], "id", "") == "model_type"
            and getattr(item.value, "value", "") == family.model_type
            for item in node.body
        )
    ]
    assert len(matching) == 1
    real = dict(_defaults(path, matching[0]))
    wrong = {key: (value, real.get(key)) for key, value in family.defaults.items() if real.get(key) != value}
    # The configuration of gpt-oss makes these in code, where its argument is None.
    wrong.pop("rope_parameters", None)
    assert not wrong
    known = {*family.keys, *family.defaults, *hf_models.IRRELEVANT, "rope_parameters"}
    strange = set(real) - known - {name for name in real if name.startswith("base_model_") or name == "attribute_map"}
    assert strange <= UNSAID.get(family.model_type, set())


# What changes a model in ways that the spec has no leaf for.
UNSAID = {
    "mixtral": {"router_jitter_noise"},
    "gpt2": {"scale_attn_by_inverse_layer_idx", "add_cross_attention"},
    "gemma": {"use_bidirectional_attention"},
    "gemma2": {"query_pre_attn_scalar", "use_bidirectional_attention"},
    "gemma3_text": {
        "query_pre_attn_scalar",
        "use_bidirectional_attention",
        "final_logit_softcapping",
        "attn_logit_softcapping",
    },
    "deepseek_v2": {"mlp_bias", "head_dim", "output_router_logits"},
    "deepseek_v3": {"output_router_logits"},
}
