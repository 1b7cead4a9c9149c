"""Modules that register a flavor: written, and read back without being run."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translator import api
from translator.frameworks.torchtitan import flavors
from translator.frameworks.torchtitan.addresses import MODEL_ARGUMENTS
from translator.frameworks.torchtitan.custom_model import read_custom_model, render_custom_model
from translator.frameworks.torchtitan.models import families
from translator.frameworks.torchtitan.settle import settle
from translator.frameworks.torchtitan.syntax_toml import read_source
from translator.ledger import Entry
from translator.source import Source


@pytest.mark.parametrize("version", ["0.1.0", "0.2.2"])
def test_every_flavor_can_be_written_as_a_module_and_read_back(version: str) -> None:
    for name in families(version):
        for flavor in flavors.flavor_names(name, version):
            leaves = flavors.dimensions(name, flavor, version) or {}
            custom = flavors.native_args(name, leaves, version)
            assert custom is not None
            text = render_custom_model(name, "mine", custom.arguments, version, module="ttx_flavors")
            assert read_custom_model(text, version) == {(name, "mine"): custom.arguments}
            assert flavors.leaves_of(name, flavors.complete(name, custom.arguments, version), version) == leaves


@given(st.text(), st.text())
def test_names_and_notes_cannot_break_out(flavor: str, note: str) -> None:
    text = render_custom_model("llama3", flavor, {"dim": 256}, "0.2.2", module="m", notes=[note])
    assert len(ast.parse(text).body) == 3
    assert read_custom_model(text) == {("llama3", flavor): {"dim": 256}}


@pytest.mark.parametrize(
    "text",
    [
        "import torchtitan.models.llama3 as m\nm.llama3_args['x'] = m.TransformerModelArgs(dim=256)\n",
        "import torchtitan.models.llama3\n"
        "torchtitan.models.llama3.llama3_args['x'] = torchtitan.models.llama3.TransformerModelArgs(256)\n",
        "from torchtitan.models.llama3 import llama3_args as t, TransformerModelArgs as T\n"
        "t.update({'x': T(dim=256)})\n".replace("T(dim", "TransformerModelArgs(dim").replace(" as T\n", "\n"),
    ],
)
def test_other_ways_to_register(text: str) -> None:
    assert read_custom_model(text) == {("llama3", "x"): {"dim": 256}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def f(:",
        "\x00",
        "(" * 5000,
        "import os\nos.system('touch x')\n",
        "from torchtitan.models.llama3 import llama3_args\nllama3_args['x'] = make(dim=2)\n",
        "from torchtitan.models.llama3 import *\nllama3_args['x'] = TransformerModelArgs(dim=1)\n",
        "from torchtitan.models.llama3 import llama3_args, TransformerModelArgs\n"
        "llama3_args['x'] = TransformerModelArgs(dim=int('7'))\n",
        "from torchtitan.models.llama3 import llama3_args, TransformerModelArgs\n"
        "llama3_args['x'] = TransformerModelArgs(**{'dim': 1})\n",
        "from torchtitan.models.llama3 import llama3_args, TransformerModelArgs\n"
        "llama3_args[__import__('os').name] = TransformerModelArgs(dim=1)\n",
    ],
)
def test_what_is_not_literal_is_left_out(text: str) -> None:
    assert read_custom_model(text) == {}


TOML = "[model]\nname = 'llama3'\nflavor = 'mine'\n[experimental]\ncustom_import = 'pkg.ttx_flavors'\n"
MODULE = render_custom_model("llama3", "mine", {"dim": 512, "n_layers": 3, "n_heads": 8}, "0.2.2", module="ttx_flavors")


def test_a_module_beside_the_file_gives_the_model() -> None:
    asked: list[str] = []

    def sibling(path: str) -> str | None:
        asked.append(path)
        return MODULE

    from translator.catalogue import load

    native = read_source("run.toml", TOML, read_sibling=sibling)
    settle(native, load("torchtitan", "0.2.2"))
    assert asked == ["pkg/ttx_flavors.py"]
    assert native.findings == []
    assert MODEL_ARGUMENTS in native.given
    assert native.values["@model.hidden"] == 512
    assert native.values["@model.layers"] == 3
    assert native.values["@model.head_dim"] == 64
    assert native.values["@model.vocab"] == 128256


def test_a_module_that_is_not_there_is_a_finding() -> None:
    native = read_source("run.toml", TOML, read_sibling=lambda _: None)
    assert [finding.code for finding in native.findings] == ["R099"]
    assert str(native.findings[0].place) == "run.toml:5:1"


@pytest.mark.parametrize("target", ["torchtitan@0.2.2", "torchtitan@0.3.0", "megatron", "spec"])
def test_the_import_has_one_line_of_the_ledger(target: str) -> None:
    done = api.convert(Source("run.toml", TOML, siblings={"pkg/ttx_flavors.py": MODULE}), target)
    (line,) = [line for line in done.ledger if line.option == "experimental.custom_import"]
    assert line.value == "pkg.ttx_flavors"
    assert line.entry is not Entry.IRRELEVANT
