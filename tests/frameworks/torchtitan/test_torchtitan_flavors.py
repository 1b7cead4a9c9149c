"""Named architectures: what they mean, finding them again, and arguments for others."""

from __future__ import annotations

import pytest
from parameter_count import parameter_count

from translator.frameworks.torchtitan import flavors
from translator.frameworks.torchtitan.models import families, family
from translator.frameworks.torchtitan.models.parts import rounded_width
from translator.spec import leaves as spec_leaves

VERSIONS = ("0.1.0", "0.2.2")
ALL = [
    (version, name, flavor)
    for version in VERSIONS
    for name in families(version)
    for flavor in flavors.flavor_names(name, version)
]

# Parameters of the real models of 0.2.2, counted on the meta device (sum of numel over parameters()).
PARAMETERS = {
    "llama3/debugmodel": 6_163_712,
    "llama3/debugmodel_flex_attn": 6_163_712,
    "llama3/debugmodel_varlen_attn": 6_163_712,
    "llama3/8B": 8_030_261_248,
    "llama3/8B_flex": 8_030_261_248,
    "llama3/8B_varlen": 8_030_261_248,
    "llama3/70B": 70_553_706_496,
    "llama3/405B": 405_853_388_800,
    "llama4/debugmodel": 15_017_216,
    "llama4/17bx16e": 107_769_861_120,
    "llama4/17bx128e": 400_711_848_960,
    "llama4/debugmodel_irope": 15_017_216,
    "llama4/17bx16e_irope": 107_769_861_120,
    "llama4/17bx128e_irope": 400_711_848_960,
    "deepseek_v3/debugmodel": 33_014_016,
    "deepseek_v3/debugmodel_flex_attn": 33_014_016,
    "deepseek_v3/16B": 15_706_484_224,
    "deepseek_v3/236B": 235_741_434_880,
    "deepseek_v3/671B": 671_026_404_352,
    "qwen3/debugmodel": 31_987_968,
    "qwen3/0.6B": 596_049_920,
    "qwen3/1.7B": 1_720_574_976,
    "qwen3/4B": 4_022_468_096,
    "qwen3/8B": 8_190_735_360,
    "qwen3/14B": 14_768_307_200,
    "qwen3/32B": 32_762_123_264,
    "qwen3/debugmodel_moe": 315_758_848,
    "qwen3/30B-A3B": 30_532_122_624,
    "qwen3/235B-A22B": 235_093_634_560,
    "gpt_oss/debugmodel": 183_397_920,
    "gpt_oss/20b": 20_914_757_184,
    "gpt_oss/120b": 116_829_156_672,
}

# A Llama-like model that no flavor is: other widths, no stretching of the rotary frequencies.
OWN = {
    "model.layers": 24,
    "model.hidden": 2560,
    "model.heads": 20,
    "model.kv_heads": 4,
    "model.head_dim": 128,
    "model.ffn": 6912,
    "model.vocab": 50304,
    "model.positions": "rope",
    "model.rope_base": 10000.0,
    "model.rope.scaling": "none",
    "model.rope.interleaved": False,
    "model.norm": "rmsnorm",
    "model.norm_eps": 1e-6,
    "model.qk_norm": "none",
    "model.activation": "silu",
    "model.gated": True,
    "model.bias_linear": False,
    "model.bias_qkv": False,
    "model.tied_embeddings": False,
    "model.hidden_dropout": 0.0,
    "model.attention_dropout": 0.0,
}
MIXTRAL = {
    **OWN,
    "model.moe.experts": 8,
    "model.moe.top_k": 2,
    "model.moe.ffn": 6912,
    "model.moe.shared_ffn": 0,
    "model.moe.router_score": "softmax",
    "model.moe.router_normalize": True,
    "model.moe.router_bias": False,
    "model.moe.scores_on_input": False,
}
GPT = {
    **OWN,
    "model.kv_heads": 20,
    "model.ffn": 10240,
    "model.positions": "learned",
    "model.norm": "layernorm",
    "model.activation": "gelu",
    "model.gated": False,
    "model.bias_linear": True,
    "model.bias_qkv": True,
    "model.hidden_dropout": 0.1,
    "model.attention_dropout": 0.1,
}


@pytest.mark.parametrize(("name", "flavor"), sorted(tuple(key.split("/")) for key in PARAMETERS))
def test_leaves_of_a_flavor_give_the_real_number_of_parameters(name: str, flavor: str) -> None:
    leaves = flavors.dimensions(name, flavor, "0.2.2")
    assert leaves is not None
    assert parameter_count(leaves) == PARAMETERS[f"{name}/{flavor}"]


def test_every_flavor_of_the_newest_version_is_counted() -> None:
    assert {f"{name}/{flavor}" for version, name, flavor in ALL if version == "0.2.2"} == set(PARAMETERS)


@pytest.mark.parametrize(("version", "name", "flavor"), ALL)
def test_a_flavor_is_found_again_from_its_leaves(version: str, name: str, flavor: str) -> None:
    leaves = flavors.dimensions(name, flavor, version)
    assert leaves is not None
    match = flavors.find(leaves, version)
    assert match is not None
    assert (match.name, match.flavor, match.differences) == (name, flavor, {})


@pytest.mark.parametrize(("version", "name", "flavor"), ALL)
def test_rows_write_what_they_read(version: str, name: str, flavor: str) -> None:
    leaves = flavors.dimensions(name, flavor, version)
    assert leaves is not None
    custom = flavors.native_args(name, leaves, version)
    assert custom is not None
    assert custom.differences == {}
    assert custom.reasons == {}
    full = flavors.complete(name, custom.arguments, version)
    assert flavors.leaves_of(name, full, version) == leaves


@pytest.mark.parametrize("version", VERSIONS)
def test_every_argument_is_owned_by_one_row_or_declared_unused(version: str) -> None:
    for name, known in families(version).items():
        owned = [argument for row in known.rows for argument in row.arguments]
        assert len(owned) == len(set(owned)), name
        groups = set(known.nested)
        whole: set[str] = set()
        for flavor in flavors.flavor_names(name, version):
            for argument, value in (flavors.arguments(name, flavor, version) or {}).items():
                whole.update({f"{argument}.{inner}" for inner in value} if isinstance(value, dict) else {argument})
        whole -= groups
        scaling = {argument for argument in whole if argument.startswith("rope_scaling_args.")}
        assert whole - scaling == (set(owned) - groups) | known.unused, name


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_speak_only_of_leaves_that_the_spec_has(version: str) -> None:
    known = spec_leaves()
    for name, found in families(version).items():
        unknown = [leaf for row in found.rows for leaf in row.leaves if f"model.{leaf}" not in known]
        assert unknown == [], name


def test_a_model_of_ones_own_keeps_its_exact_width() -> None:
    choice = flavors.choose(OWN, "0.2.2", pipeline=2)
    assert choice is not None
    assert choice.flavor is None
    assert choice.name == "llama3"
    assert choice.custom is not None
    assert set(choice.differences) == {"model.rope.interleaved"}
    full = flavors.complete("llama3", choice.custom.arguments, "0.2.2")
    multiple = full["multiple_of"]
    assert isinstance(multiple, int)
    assert rounded_width(2560, full["ffn_dim_multiplier"], multiple) == 6912
    assert full["rope_scaling_args"] == {
        "scaling_factor": 1.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


@pytest.mark.parametrize("ffn", [1, 7, 4095, 5632, 6912, 11008, 13824, 14336, 17920, 28673])
@pytest.mark.parametrize("hidden", [768, 2048, 4096, 5120])
def test_any_width_can_be_said_by_multiplier_and_rounding(hidden: int, ffn: int) -> None:
    custom = flavors.native_args("llama3", {"model.hidden": hidden, "model.ffn": ffn}, "0.2.2")
    assert custom is not None
    full = flavors.complete("llama3", custom.arguments, "0.2.2")
    multiple = full["multiple_of"]
    assert isinstance(multiple, int)
    assert rounded_width(hidden, full["ffn_dim_multiplier"], multiple) == ffn


def test_a_mixture_without_pipeline_takes_the_family_without_differences() -> None:
    choice = flavors.choose(MIXTRAL, "0.2.2")
    assert choice is not None
    assert choice.name == "qwen3"
    assert choice.differences == {}
    assert choice.custom is not None
    assert choice.custom.arguments["moe_args"] == {
        "num_experts": 8,
        "top_k": 2,
        "score_func": "softmax",
        "route_norm": True,
        "score_before_experts": False,
        "load_balance_coeff": None,
        "num_shared_experts": 0,
    }


def test_a_mixture_with_pipeline_takes_a_family_that_can_be_split() -> None:
    choice = flavors.choose(MIXTRAL, "0.2.2", pipeline=4)
    assert choice is not None
    known = family(choice.name, "0.2.2")
    assert known is not None
    assert known.pipeline
    assert "model.moe.experts" not in choice.differences


def test_what_no_family_has_is_named_with_its_reason() -> None:
    choice = flavors.choose(GPT, "0.2.2", pipeline=2)
    assert choice is not None
    lost = {
        "norm",
        "positions",
        "activation",
        "gated",
        "bias_linear",
        "bias_qkv",
        "hidden_dropout",
        "attention_dropout",
    }
    assert {f"model.{leaf}" for leaf in lost} <= set(choice.differences)
    assert choice.differences["model.norm"] == ("layernorm", "rmsnorm")
    assert "models/llama3/model/model.py" in choice.reasons["model.norm"]


def test_minor_differences_do_not_ask_for_a_flavor_of_ones_own() -> None:
    leaves = dict(flavors.dimensions("llama3", "8B", "0.2.2") or {})
    leaves.update({"model.rope.interleaved": False, "model.init_output_scaling": "depth", "model.max_positions": 8192})
    choice = flavors.choose(leaves, "0.2.2")
    assert choice is not None
    assert (choice.name, choice.flavor) == ("llama3", "8B")
    assert choice.nearest.exact
    assert set(choice.differences) == {"model.rope.interleaved", "model.init_output_scaling"}


def test_yarn_of_latent_attention_depends_on_the_sequence_length() -> None:
    short = flavors.dimensions("deepseek_v3", "16B", "0.2.2", seq_len=4096) or {}
    long = flavors.dimensions("deepseek_v3", "16B", "0.2.2", seq_len=4097) or {}
    assert short["model.rope.scaling"] == "none"
    assert (long["model.rope.scaling"], long["model.rope.scaling_factor"], long["model.mla.mscale"]) == (
        "yarn",
        40,
        0.7,
    )


def test_names_of_experiments_lead_to_their_family() -> None:
    assert flavors.dimensions("simple_fsdp.llama3", "8B", "0.2.2") == flavors.dimensions("llama3", "8B", "0.2.2")
    assert flavors.dimensions("llama3_ft", "8B", "0.2.2") == flavors.dimensions("llama3", "8B", "0.2.2")
    assert flavors.dimensions("llama3", "9B", "0.2.2") is None
    assert flavors.dimensions("nonsense", "8B", "0.2.2") is None
