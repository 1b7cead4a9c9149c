"""DeepSpeed's keys: what the extractor finds in a small parser, and what the shipped catalogues say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from translator.catalogue import history, load, versions
from translator.catalogue.document import catalogue_text, history_text
from translator.catalogue.model import Entry
from translator.catalogue.source_tree import SourceTree
from translator.errors import SourceError
from translator.frameworks.catalogues import generate
from translator.frameworks.deepspeed.extract import extract
from translator.resources import schema_path

VERSIONS = {"0.16.9": (280, 312), "0.19.2": (347, 379), "0.19.8": (342, 374)}

CONSTANTS = """
BATCH = "train_batch_size"
BATCH_DEFAULT = None
CLIP = "gradient_clipping"
CLIP_DEFAULT = 0.
PIPE = "pipe"
SECTION = "profiler"
STEP = "step"
STEP_DEFAULT = 3

class Mode:
    WARN = "WARN"
"""
CONFIG = """
import copy
from enum import Enum
from typing import Optional
from pydantic import Field
from .constants import *
from .models import Zero, get_scalar_param

def get_clip(param_dict):
    return get_scalar_param(param_dict, CLIP, CLIP_DEFAULT)

def section(param_dict):
    return param_dict.get(SECTION, {})

def pipe(param_dict):
    defaults = {"stages": "auto", "seed": False}
    for key, val in param_dict.get(PIPE, {}).items():
        defaults[key] = val
    return defaults

def amp(param_dict):
    if "amp" in param_dict.keys():
        rest = copy.copy(param_dict["amp"])
        rest.pop("enabled")
        return get_scalar_param(param_dict["amp"], "enabled", False)

class Profiler(object):
    def __init__(self, param_dict):
        self.mode = None
        if "other" in param_dict.keys():
            d = param_dict["other"]
        else:
            d = {}
        self._initialize(d)

    def _initialize(self, d):
        self.mode = get_scalar_param(d, "mode", Mode.WARN)

class DeepSpeedConfig(object):
    def __init__(self, config, mpu=None):
        self._param_dict = config
        self.batch = self._param_dict.get(BATCH, BATCH_DEFAULT)
        self.run(copy.copy(self._param_dict))

    def run(self, param_dict):
        self.clip = get_clip(param_dict)
        step = section(param_dict).get(STEP, STEP_DEFAULT)
        self.pipe = pipe(param_dict)
        self.amp = amp(param_dict)
        self.profiler = Profiler(param_dict)
        if "zero" in param_dict:
            z = param_dict["zero"]
        else:
            z = {}
        self.zero = Zero(**z)
        for key in ["bf16", "bfloat16"]:
            self.bf16 = param_dict.get(key, {}).get("enabled", False)
"""
MODELS = """
from enum import Enum
from typing import Optional
from pydantic import BaseModel, Field

class DeepSpeedConfigModel(BaseModel):
    pass

def get_scalar_param(d, k, v):
    return d.get(k, v)

class Device(str, Enum):
    none = "none"
    cpu = "cpu"

class Offload(DeepSpeedConfigModel):
    device: Device = "none"
    ratio: float = Field(1.0, ge=0.0, le=1.0)

class Zero(DeepSpeedConfigModel):
    stage: int = Field(pp_int(1e1), ge=0, alias="zero_stage")
    offload: Optional[Offload] = None
    names: list[str] = Field(default_factory=lambda: ["a"])
    old: Optional[bool] = Field(None, json_schema_extra={"deprecated": True, "new_param": "offload"})
"""


@pytest.fixture
def entries(tmp_path: Path) -> dict[str, Entry]:
    folder = tmp_path / "deepspeed" / "runtime"
    folder.mkdir(parents=True)
    for name, text in (("constants", CONSTANTS), ("config", CONFIG), ("models", MODELS), ("__init__", "")):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    (folder.parent / "__init__.py").write_text("", encoding="utf-8")
    return {entry.address: entry for entry in extract(SourceTree(tmp_path))}


def test_every_key_is_found(entries: dict[str, Entry]) -> None:
    assert set(entries) == {
        "amp.enabled",
        "bf16.enabled",
        "gradient_clipping",
        "other.mode",
        "pipe.seed",
        "pipe.stages",
        "profiler.step",
        "train_batch_size",
        "zero.names",
        "zero.offload.device",
        "zero.offload.ratio",
        "zero.old",
        "zero.zero_stage",
    }


def test_plain_keys(entries: dict[str, Entry]) -> None:
    clip = entries["gradient_clipping"]
    assert (clip.action, clip.kind, clip.default) == ("lax", "float", 0.0)
    assert clip.source == "deepspeed/runtime/config.py:10"
    assert (entries["train_batch_size"].kind, entries["train_batch_size"].default) == ("int", None)
    assert (entries["profiler.step"].default, entries["other.mode"].default) == (3, "WARN")
    assert entries["bf16.enabled"].flags == ("bf16.enabled", "bfloat16.enabled")


def test_sections_whose_rest_is_handed_on(entries: dict[str, Entry]) -> None:
    assert {entries[name].action for name in ("amp.enabled", "pipe.stages", "pipe.seed")} == {"open"}
    assert entries["pipe.stages"].default == "auto"


def test_models(entries: dict[str, Entry]) -> None:
    stage = entries["zero.zero_stage"]
    assert (stage.action, stage.kind, stage.default, stage.type_name) == ("strict", "int", 10, "int ge=0")
    assert stage.flags == ("zero.zero_stage", "zero.stage")
    assert entries["zero.offload.device"].choices == ("none", "cpu")
    assert entries["zero.offload.ratio"].type_name == "float ge=0 le=1"
    assert (entries["zero.names"].default, entries["zero.names"].arity) == (["a"], "*")
    assert (entries["zero.old"].action, entries["zero.old"].const) == ("deprecated", "zero.offload")


def test_a_tree_without_a_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no DeepSpeedConfig"):
        extract(SourceTree(tmp_path))


def test_versions() -> None:
    assert versions("deepspeed") == tuple(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_shipped_catalogue(version: str) -> None:
    catalogue = load("deepspeed", version)
    assert (len(catalogue.addresses()), len(catalogue)) == VERSIONS[version]
    assert len({entry.key for entry in catalogue.entries}) == len(catalogue)
    flags = [flag for entry in catalogue.entries for flag in entry.flags]
    assert len(flags) == len(set(flags))
    assert catalogue.addresses() == tuple(sorted(catalogue.addresses()))
    text = schema_path("deepspeed", f"{version}.json").read_text(encoding="utf-8")
    assert catalogue_text("deepspeed", version, catalogue.entries) == text


def test_sections_are_strict_where_models_check_them() -> None:
    new, old = load("deepspeed", "0.19.2"), load("deepspeed", "0.16.9")
    assert (new.first("bf16.enabled").action, old.first("bf16.enabled").action) == ("strict", "lax")
    assert new.first("zero_optimization.stage").action == "strict"
    assert new.first("activation_checkpointing.profile").action == "lax"
    assert new.first("zero_optimization.cpu_offload").const == "zero_optimization.offload_optimizer"


def test_what_the_usual_class_takes_comes_first() -> None:
    catalogue = load("deepspeed", "0.19.2")
    assert catalogue.first("optimizer.params.lr").key == "optimizer.params.FusedAdam.lr"
    peaks = {entry.key.split(".")[2]: entry.default for entry in catalogue.by_address("scheduler.params.warmup_max_lr")}
    assert peaks == {"WarmupLR": None, "WarmupDecayLR": 0.001}


def test_history() -> None:
    past = history("deepspeed")
    text = schema_path("deepspeed", "history.json").read_text(encoding="utf-8")
    assert history_text("deepspeed", [load("deepspeed", version) for version in VERSIONS]) == text
    assert past.drift["gradient_clipping"] == {"0.16.9": 0.0, "0.19.8": 1.0}
    assert past.drift["bf16.immediate_grad_update"] == {"0.16.9": True, "0.19.2": False}
    assert past.drift["zero_optimization.offload_optimizer.pin_memory"] == {"0.16.9": False, "0.19.8": True}
    assert past.address_span("sparse_gradients") == ("0.16.9", "0.19.8")
    assert past.address_span("expert_parallel.autoep_size") == ("0.19.2", None)


@pytest.mark.parametrize("version", VERSIONS)
def test_shipped_files_are_what_upstream_gives(version: str) -> None:
    source = Path(os.environ.get("TTX_UPSTREAM", "")) / "deepspeed" / version
    if not os.environ.get("TTX_UPSTREAM") or not source.is_dir():
        pytest.skip("TTX_UPSTREAM names no folder with this version's source")
    assert generate("deepspeed", version, source) == schema_path("deepspeed", f"{version}.json").read_text("utf-8")
