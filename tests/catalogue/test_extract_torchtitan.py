"""The rules by which torchtitan's options and flavors are extracted, on small sources of our own."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from translator.catalogue.model import Entry
from translator.catalogue.source_tree import SourceTree
from translator.errors import SourceError
from translator.frameworks.torchtitan.extract import extract, extract_flavors, generate_flavors

CONFIG = """
    from dataclasses import dataclass, field
    from typing import Any, Literal

    @dataclass
    class Loader:
        workers: int = 0
        prefetch: int | None = None

    @dataclass
    class Train:
        steps: int = 10
        lr: float = 1e-3
        fast: bool = False
        norm: float | int = 1.0
        kind: Literal["a", "b"] = "a"
        recipe: Literal["x"] | None = None
        parts: list[list[str]] | None = None
        names: list[str] = field(default_factory=lambda: ["out"])
        fqns: list[str] | str = field(default_factory=list)
        started: str = now()
        loader: Loader = field(default_factory=Loader)

    @dataclass
    class JobConfig:
        train: Train = field(default_factory=Train)
"""
ARGS = """
    from dataclasses import dataclass, field

    @dataclass
    class Scaling:
        factor: float = 8.0

    @dataclass
    class Args:
        _private: str = "hidden"
        dim: int = 64
        heads: int | None = None
        scaling: Scaling = field(default_factory=Scaling)
        length: int = 4 * 1024
"""
FAMILY = """
    from torchtitan.protocols import TrainSpec
    from .args import Args, Scaling

    tables = {
        "tiny": Args(dim=16, heads=2),
        "wide": Args(dim=256, scaling=Scaling(2.0)),
    }

    def get_train_spec():
        return TrainSpec(model_cls=None, model_args=tables)
"""
REUSED = """
    from ..ours import tables

    def get_train_spec():
        return TunedTrainSpec(model_args=tables)
"""
NAMED = """
    from torchtitan.models.ours.args import Args

    old = {"one": Args()}
    TrainSpec(name="elder", config=old)
"""
COMPUTED = """
    def get_train_spec():
        return TrainSpec(model_args=make())
"""
FILES = {
    "torchtitan/__init__.py": "",
    "torchtitan/config/__init__.py": "from .job_config import JobConfig\n",
    "torchtitan/config/job_config.py": CONFIG,
    "torchtitan/models/__init__.py": "",
    "torchtitan/models/ours/__init__.py": FAMILY,
    "torchtitan/models/ours/args.py": ARGS,
    "torchtitan/models/tuned/__init__.py": REUSED,
    "torchtitan/experiments/__init__.py": "",
    "torchtitan/experiments/aged/__init__.py": NAMED,
    "torchtitan/experiments/made/__init__.py": COMPUTED,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("upstream")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return folder


@pytest.fixture(scope="module")
def entries(root: Path) -> dict[str, Entry]:
    return {entry.address: entry for entry in extract(SourceTree(root))}


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("train.steps", {"kind": "int", "default": 10, "flags": ("--train.steps",), "optional": False}),
        ("train.lr", {"kind": "float", "default": 1e-3}),
        ("train.fast", {"kind": "bool", "default": False, "flags": ("--train.fast", "--train.no-fast")}),
        ("train.norm", {"kind": "float", "default": 1.0, "type_name": "float | int"}),
        ("train.kind", {"kind": "str", "choices": ("a", "b")}),
        ("train.recipe", {"kind": "str", "choices": ("x",), "optional": True, "default": None}),
        ("train.parts", {"kind": "str", "arity": "**", "optional": True}),
        ("train.names", {"kind": "str", "arity": "*", "default": ["out"]}),
        ("train.fqns", {"kind": "str", "arity": "*", "default": []}),
        ("train.started", {"default_known": False, "dynamic": "now"}),
        ("train.loader.prefetch", {"kind": "int", "optional": True, "action": "field"}),
    ],
)
def test_option(entries: dict[str, Entry], address: str, expected: dict[str, Any]) -> None:
    found = entries[address]
    assert {name: getattr(found, name) for name in expected} == expected


def test_sections_are_no_options(entries: dict[str, Entry]) -> None:
    assert list(entries) == sorted(entries)
    assert len(entries) == 12
    assert not {"train", "train.loader"} & entries.keys()


def test_flavors_have_every_argument(root: Path) -> None:
    families, aliases = extract_flavors(SourceTree(root))
    assert set(families) == {"elder", "ours"}
    assert aliases == {"tuned": "ours"}
    defaults = {"dim": 64, "heads": None, "scaling": {"factor": 8.0}, "length": 4096}
    assert families["ours"] == {
        "_defaults": {"Args": defaults},
        "tiny": {"args_class": "Args", "args": defaults | {"dim": 16, "heads": 2}},
        "wide": {"args_class": "Args", "args": defaults | {"dim": 256, "scaling": {"factor": 2.0}}},
    }
    assert families["elder"]["one"]["args"] == defaults


def test_flavors_text_is_one_flavor_a_line(root: Path) -> None:
    text = generate_flavors("9.9.9", root)
    assert sum('"args_class"' in line for line in text.splitlines()) == 3


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no JobConfig"):
        extract(SourceTree(tmp_path))
    with pytest.raises(SourceError, match="no table of model flavors"):
        extract_flavors(SourceTree(tmp_path))
