"""The named architectures, held to the parameter counts that their publishers state."""

from __future__ import annotations

import pytest
from parameter_count import parameter_count

from translator.resources import fixture_path
from translator.source import load
from translator.spec_file import read_spec

# Totals of the published checkpoints. That of DeepSeek-V3 counts 58 x 256 balancing biases, no parameters here.
PUBLISHED = {
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama2-7b": 6_738_415_616,
    "llama2-70b": 68_976_648_192,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2-7b": 7_615_616_512,
    "qwen3-8b": 8_190_735_360,
    "qwen3-30b-a3b": 30_532_122_624,
    "gpt-oss-20b": 20_914_757_184,
    "deepseek-v3": 671_026_419_200 - 58 * 256,
}


def leaves(name: str) -> dict[str, object]:
    flat = read_spec([load(str(fixture_path("models", f"{name}.yaml")))], {}).flat
    return {leaf: value for leaf, value in flat.items() if leaf.startswith("model.")}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_named_model_has_the_published_number_of_parameters(name: str) -> None:
    assert parameter_count(leaves(name)) == PUBLISHED[name]


def test_gpt2_has_the_published_number_of_parameters() -> None:
    model = leaves("gpt2")
    layers, hidden, ffn = (model[f"model.{leaf}"] for leaf in ("layers", "hidden", "ffn"))
    vocab, positions = model["model.vocab"], model["model.max_positions"]
    assert isinstance(layers, int)
    assert isinstance(hidden, int)
    assert isinstance(ffn, int)
    assert isinstance(vocab, int)
    assert isinstance(positions, int)
    block = 4 * hidden * hidden + 4 * hidden + 2 * hidden * ffn + ffn + hidden + 4 * hidden
    assert (vocab + positions) * hidden + layers * block + 2 * hidden == 124_439_808


def test_every_named_model_is_held_to_a_number_or_named_here() -> None:
    names = {path.stem for path in fixture_path("models").glob("*.yaml")}
    assert names == {*PUBLISHED, "gpt2", "pythia-1b"}
